#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Shutdown of a mount while its own work is still going on. Each test is a race:
# GPEMU_END_RUNS says how often it is run (12).

load mount

setup()
{
	common_setup
	runs=${GPEMU_END_RUNS:-12}
	log=$BATS_TEST_TMPDIR/log
}

teardown()
{
	common_teardown
}

held()
{
	[ "$(stat_of '["faults"][0]["held"]')" -ge "$1" ]
}

# stuck N: a mount on which a fault holds N reads; their process is $reader, the
# daemon $pid
stuck()
{
	gpemu-fs -f -c 1M --fault op=read,stuck \
		synth:imagenet,files=4000,content=random "$mp" 3>&- \
		>"$log" 2>&1 &
	pid=$!
	pids="${pids-} $pid"
	eventually is_mounted
	readers "$mp" "$1" together >"$BATS_TEST_TMPDIR/readers" 2>&1 3>&- &
	reader=$!
	pids+=" $reader"
	eventually held "$1"
}

# clear_and_kill: SIGTERM as soon as the first of the held reads goes on
clear_and_kill()
{
	timeout -k 1 60 python3 - "$mp/.gpemu" $pid 3>&- <<-'END'
	import json, os, signal, sys, threading, time
	ctl, pid = sys.argv[1], int(sys.argv[2])
	def clear():
	    try:
	        with open(ctl + "/control", "w") as f:
	            f.write("set storage ideal\nfault clear\n")
	    except OSError:
	        pass
	thread = threading.Thread(target=clear)
	thread.start()
	end = time.monotonic() + 20
	while not json.load(open(ctl + "/stats"))["misses"]:
	    assert time.monotonic() < end, "no read has ended"
	os.kill(pid, signal.SIGTERM)
	thread.join()
	END
}

gone()
{
	! kill -0 "$1" 2>/dev/null
}

# ended: the daemon exited cleanly
ended()
{
	if ! eventually gone $pid; then
		cat "$log"
		echo "run $i: still running"
		return 1
	fi
	status=0
	wait $pid || status=$?
	if [ "$status" -ne 0 ]; then
		cat "$log"
		echo "run $i: status $status"
		return 1
	fi
	is_not_mounted
}

# bats test_tags=slow
@test "SIGTERM while a command frees 3000 stuck reads" {
	for i in $(seq "$runs"); do
		stuck 3000
		clear_and_kill &
		writer=$!
		ended
		eventually gone $writer
		eventually gone $reader
		wait $writer || true
		wait $reader || true
	done
}
