#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Everything concurrently: readers of all kinds, control commands, policy and
# storage switches, faults, and readers that are killed. Also run under the
# thread sanitizer (tests/run).

load mount

setup()
{
	common_setup
	make_files 60 60000
	head -c 9000001 /dev/urandom >"$src/large"
	: >"$src/empty"
}

teardown()
{
	common_teardown
}

# commands SEED SECONDS: write random commands to the control file
commands()
{
	python3 - "$mp" "$@" <<-'END'
	import json, os, random, sys, time
	mp, r = sys.argv[1], random.Random(int(sys.argv[2]))
	end = time.monotonic() + float(sys.argv[3])
	commands = ["epoch", "reset", "drop-cache", "drop-cache", "fault clear"]
	commands += [f"set cache_policy {p}" for p in
	             "lru none minio s3fifo arc sff_online".split()]
	commands += [f"set cache_size {s}" for s in "0 10% 60% 100%".split()]
	commands += [f"resize {s}" for s in "0 30% 80%".split()]
	commands += ["set bandwidth 500M", "set bandwidth 0"]
	commands += [f"set storage {s}" for s in "ideal nvme ideal".split()]
	commands += ["fault add " + f for f in (
	    "op=read,p=0.05,errno=EIO", "op=open,every=7,errno=EACCES",
	    "op=any,p=0.1,delay=2ms", "op=read,path=c1/**,delay=3ms,errno=ESTALE",
	    "op=read,path=large,every=3,stuck", "op=open,p=0.05,stuck,for=20ms",
	    "op=metadata,p=0.05,stuck", "op=read,first=20,errno=ETIMEDOUT")]
	n = 0
	while time.monotonic() < end or n <= 20:
	    with open(f"{mp}/.gpemu/control", "w") as f:
	        f.write(r.choice(commands) + "\n")
	    for name in "stats", "stats.prom", "config":
	        text = open(f"{mp}/.gpemu/{name}").read()
	        assert text, name
	        if name == "stats":
	            s = json.loads(text)
	            assert s["used_bytes"] <= s["capacity_bytes"], s
	    n += 1
	    time.sleep(r.random() * .02)
	END
}

# kill_readers SECONDS: readers that are killed before the answer
kill_readers()
{
	local end=$((SECONDS + $1)) pid

	while [ $SECONDS -lt $end ]; do
		cat "$mp"/c?/* >/dev/null 2>&1 3>&- &
		pid=$!
		sleep .1
		kill -9 $pid 2>/dev/null || true
		wait $pid 2>/dev/null || true
	done
}

# stress_mount SECONDS OPTIONS...: all of it, on a mount with these options
stress_mount()
{
	local pid readers helpers= p status=0 seconds=$1

	shift
	gpemu-fs -f "$@" "$src" "$mp" 3>&- &
	pid=$!
	pids="${pids-} $pid"
	eventually is_mounted
	for p in 1 2; do
		commands $p "$seconds" 3>&- &
		helpers="$helpers $!"
	done
	kill_readers "$seconds" 2>/dev/null 3>&- &
	helpers="$helpers $!"
	stress "$src" "$mp" "$seconds" 6 >"$BATS_TEST_TMPDIR/stress" 3>&- &
	readers=$!
	for p in $helpers; do
		wait "$p"
	done
	echo 'fault clear' >"$mp/.gpemu/control"
	wait $readers || status=$?
	tail -n 20 "$BATS_TEST_TMPDIR/stress"
	[ $status -eq 0 ]
	# without faults every byte is there
	echo 'set cache_policy lru' >"$mp/.gpemu/control"
	[ "$(tree_sum "$mp")" = "$(tree_sum "$src")" ]
	[ "$(stat_of '["inflight"]')" = 0 ]
	kill $pid
	wait $pid
	is_not_mounted
}

@test "readers, commands and faults at once: no byte is wrong" {
	stress_mount 10 --fault 'op=read,p=0.02,errno=EIO'
}

@test "the same with groups" {
	stress_mount 4 -g 8 --group-order random
}
