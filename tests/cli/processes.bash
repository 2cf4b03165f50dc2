# SPDX-License-Identifier: MIT
# The end of the processes that a test started.

# end_processes PID...: children of this shell, one after the other. One that
# runs on for 20 s is killed, and the test fails.
end_processes()
{
	local pid bad=0

	for pid; do
		kill "$pid" 2>/dev/null || continue
		kill -CONT "$pid" 2>/dev/null || true
		if ! timeout 20 tail -s .02 --pid="$pid" -f /dev/null; then
			echo "does not end: $(ps -o pid=,stat=,wchan=,args= -p "$pid")"
			kill -9 "$pid" 2>/dev/null || true
			bad=1
		fi
		wait "$pid" 2>/dev/null || true
	done
	return $bad
}
