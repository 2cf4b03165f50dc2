# SPDX-License-Identifier: MIT
# The end of the processes that a test started.

# end_processes PID...: children of this shell, one after the other. One that
# runs on for 20 s is killed, and the test fails; what its threads did is shown.
end_processes()
{
	local pid bad=0

	for pid; do
		kill "$pid" 2>/dev/null || continue
		kill -CONT "$pid" 2>/dev/null || true
		if ! timeout 20 tail -s .02 --pid="$pid" -f /dev/null; then
			echo "does not end: $(ps -o pid=,stat=,args= -p "$pid")"
			ps -L -o ppid=,tid=,stat=,wchan:20=,comm= -p "$pid" \
				--ppid "$pid"
			! command -v gdb >/dev/null || timeout 30 gdb -p "$pid" \
				-batch -ex 'thread apply all bt 9' 2>/dev/null |
				grep -E '^(Thread|#)' || true
			kill -9 "$pid" 2>/dev/null || true
			bad=1
		fi
		wait "$pid" 2>/dev/null || true
	done
	return $bad
}
