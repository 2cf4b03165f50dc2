#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --trace: its lines, their exact replay in the simulator, and that it never
# delays readers.

bats_require_minimum_version 1.5.0

load mount

setup()
{
	common_setup
	trace=$BATS_TEST_TMPDIR/trace
}

teardown()
{
	common_teardown
}

unmount()
{
	fusermount3 -u "$mp"
	eventually no_daemon
}

# sim_counts TRACE [options]: (hits, misses, evictions) of the simulator
sim_counts()
{
	gpemu-cachesim --trace "$@" --json "$BATS_TEST_TMPDIR/sim" >/dev/null
	python3 -c 'import json, sys
e = json.load(open(sys.argv[1]))["results"][0]["epochs"]
print(tuple(sum(x[k] for x in e) for k in ("hits", "misses", "evictions")))' \
		"$BATS_TEST_TMPDIR/sim"
}

# read_randomly SEED...: a thread each, that opens files in random order
read_randomly()
{
	python3 - "$mp" "$@" <<-'END'
	import os, random, sys, threading
	mp = sys.argv[1]
	names = sorted(os.path.join(d, f) for d, _, fs in os.walk(mp)
	               for f in fs)
	def reader(seed):
	    r = random.Random(seed)
	    for _ in range(500):
	        open(names[int(len(names) * r.random() ** 2)], "rb").read()
	threads = [threading.Thread(target=reader, args=(s,))
	           for s in sys.argv[2:]]
	for t in threads:
	    t.start()
	for t in threads:
	    t.join()
	END
}

@test "a line per operation, with request and result" {
	mkdir "$src/d"
	head -c 5000000 /dev/urandom >"$src/large"
	head -c 1000 /dev/urandom >"$src/d/a,b\"c#\\d
e"
	cat >"$BATS_TEST_TMPDIR/slow.yaml" <<-END
	name: slow
	source: a test
	lookup: {source: a test, latency: {kind: const, value: 2ms}}
	open: {source: a test, latency: {kind: const, value: 3ms}}
	read: {source: a test, latency: {kind: const, value: 20ms}}
	END
	gpemu-fs --trace "$trace" -s "$BATS_TEST_TMPDIR/slow.yaml" -c 100% \
		--hit-path reply "$src" "$mp"
	python3 - "$mp" "$src" <<-'END'
	import os, sys
	mp, src = sys.argv[1:]
	for name in ("large", "d/a,b\"c#\\d\ne"):
	    for turn in range(2):
	        with open(f"{mp}/{name}", "rb", buffering=0) as f:
	            while f.read(1 << 20):
	                pass
	try:
	    os.stat(mp + "/none")
	except FileNotFoundError:
	    pass
	os.truncate(src + "/large", 0)
	open(f"{mp}/.gpemu/control", "w").write("drop-cache\nepoch\n")
	try:
	    open(f"{mp}/large", "rb").read()
	    raise SystemExit("a file that was cut off can be read")
	except OSError:
	    pass
	END
	# an answer may be read before its line is written: all are at the end
	unmount
	python3 - "$trace" <<-'END'
	import csv, sys
	rows = csv.DictReader(l for l in open(sys.argv[1]) if l[0] != "#")
	rows = sorted(rows, key=lambda r: float(r["time"]))
	def of(op, name=None):
	    return [r for r in rows if r["op"] == op and
	            (name is None or r["path"] == name)]
	odd = r"d/a\x2cb\x22c\x23\x5cd\x0ae"
	times = [float(r["time"]) for r in of("open")]
	assert 0 < times[0] and times[-1] < 60, times
	assert [r["result"] for r in of("read", odd)] == ["miss", "hit"]
	assert [float(r["requested_us"]) for r in of("open", odd)] == [3000, 0]
	miss, hit = of("read", odd)
	assert miss["file_size"] == miss["size"] == miss["bytes"] == "1000"
	assert float(miss["requested_us"]) == 20000
	assert float(miss["achieved_us"]) > 15000
	assert float(hit["requested_us"]) == 0
	large = of("read", "large")
	counted = [r for r in large if r["seq"]]
	# two objects, read twice; then the first again, which fails
	assert [(r["result"], r["offset"], r["size"]) for r in counted] == [
	    ("miss", "0", "4194304"), ("miss", "4194304", "805696"),
	    ("hit", "0", "4194304"), ("hit", "4194304", "805696"),
	    ("miss", "0", "4194304")], counted
	assert sum(int(r["bytes"]) for r in large) == 2 * 5000000 + \
	    int(counted[-1]["bytes"])
	assert int(counted[1]["id"]) == int(counted[0]["id"]) + 1
	assert counted[-1]["error"] == "ESTALE", counted[-1]
	assert [r["error"] for r in of("lookup")].count("ENOENT") == 1
	assert all(float(r["requested_us"]) == 2000 for r in of("lookup"))
	for op in "drop-cache", "epoch", "remove":
	    assert len(of(op)) == 1 and of(op)[0]["seq"], op
	seqs = [int(r["seq"]) for r in rows if r["seq"]]
	assert sorted(seqs) == list(range(1, len(seqs) + 1))
	END
}

@test "the mount's own requests are neither traced nor hit by faults" {
	make_files 10 1000
	gpemu-fs -f --trace "$trace" --fault op=lookup,errno=EIO \
		--fault op=readdir,errno=EIO --fault op=open,errno=EIO \
		"$src" "$mp" >"$BATS_TEST_TMPDIR/log" 2>&1 3>&- &
	pids="${pids-} $!"
	# calibration ends before the mount is ready
	eventually eval '[ "$(stat_of "[\"round_trip_us\"] > 0")" = True ]'
	eventually eval '[ "$(stat_of "[\"alone_round_trip_us\"][\"read\"] > 0")" = True ]'
	[ "$(stat_of '["faults"][0]["matched"], s["faults"][1]["matched"], s["faults"][2]["matched"]')" = "(0, 0, 0)" ]
	unmount
	cat "$BATS_TEST_TMPDIR/log"
	run ! grep -q "cannot measure the round trip" "$BATS_TEST_TMPDIR/log"
	[ "$(grep -vc "^#" "$trace")" -eq 1 ] # the head of the table
}

# bats test_tags=slow
@test "the simulator has exactly the hits of the mount, in any policy" {
	make_files 200 5000
	head -c 9000000 /dev/urandom >"$src/c0/large"
	i=0
	for policy in lru fifo random sff sff_online 2q arc gdsf s3fifo \
		tinylfu shade slru none; do
		path=reply
		[ $((i++ % 2)) = 0 ] || path=passthrough
		gpemu-fs -p $policy -c 35% --seed 3 --hit-path $path \
			--trace "$trace" "$src" "$mp"
		read_randomly 1 2 3 4
		real=$(stat_of '["hits"], s["misses"], s["evictions"]')
		[ "$(stat_of '["trace"]["lost"]')" = 0 ]
		# without passthrough in the kernel, the rest still applies
		[ $path = reply ] || (passes_through)
		unmount
		sim=$(sim_counts "$trace" -p $policy -c 35% --seed 3)
		echo "$policy, $path: mount $real simulator $sim"
		[ "$real" = "$sim" ]
		[[ $policy = none || $real != "(0, "* ]]
	done
	# another policy would have had other hits
	[ "$(sim_counts "$trace" -p lru -c 35%)" != "$real" ]
}

# bats test_tags=slow
@test "warm, drop-cache, groups, metadata and epochs are replayed too" {
	make_files 200 5000
	for policy in lru arc sff minio; do
		gpemu-fs -p $policy -c 30% --cache-metadata on \
			--trace "$trace" "$src" "$mp"
		echo 'warm c[12]/*' >"$mp/.gpemu/control"
		read_randomly 1 2
		echo epoch >"$mp/.gpemu/control"
		read_randomly 3
		printf 'drop-cache\nepoch\n' >"$mp/.gpemu/control"
		read_randomly 4 5
		real=$(stat_of '["hits"], s["misses"], s["evictions"]')
		epochs=$(stat_of '["epochs"]' | tr -dc , | wc -c)
		unmount
		sim=$(sim_counts "$trace" -p $policy -c 30% --metadata)
		echo "$policy: mount $real simulator $sim"
		[ "$real" = "$sim" ]
		[ "$(grep -c ,warm, "$trace")" -gt 20 ]
		[ "$(python3 -c 'import json, sys
print(len(json.load(open(sys.argv[1]))["results"][0]["epochs"]))' \
			"$BATS_TEST_TMPDIR/sim")" = 3 ]
	done
	# members that were fetched along: hits if the cache, not the buffer,
	# held them; with everything cached that is all of them
	gpemu-fs -p lru -c 100% -g 8 --trace "$trace" "$src" "$mp"
	read_randomly 1 2
	real=$(stat_of '["hits"], s["misses"], s["evictions"]')
	unmount
	[ "$(sim_counts "$trace" -p lru -c 100%)" = "$real" ]
}

@test "a cache set while mounted is replayed as a new epoch" {
	make_files 100 5000
	gpemu-fs -p lru -c 10% --trace "$trace" "$src" "$mp"
	read_randomly 1
	echo 'set cache_size 30%' >"$mp/.gpemu/control"
	read_randomly 2
	real=$(stat_of '["epochs"][-1]["hits"], s["epochs"][-1]["misses"]')
	[ "$(stat_of '["epochs"].__len__()')" = 2 ]
	[ "$(stat_of '["hits"] + s["misses"]')" = 1000 ]
	unmount
	gpemu-cachesim --trace "$trace" -p lru -c 30% \
		--json "$BATS_TEST_TMPDIR/sim" >/dev/null
	sim=$(python3 -c 'import json, sys
e = json.load(open(sys.argv[1]))["results"][0]["epochs"]
assert len(e) == 2
print((e[-1]["hits"], e[-1]["misses"]))' "$BATS_TEST_TMPDIR/sim")
	[ "$real" = "$sim" ]
}

# bats test_tags=slow
@test "SIGHUP continues in a new file; both files hold every line" {
	make_files 100 5000
	cd "$BATS_TEST_TMPDIR"
	gpemu-fs -p lru -c 30% --trace trace "$src" "$mp"
	read_randomly 1
	mv trace old
	kill -HUP "$(daemon_pid)"
	reopened() { [ -s trace ]; }
	eventually reopened
	read_randomly 2
	real=$(stat_of '["hits"], s["misses"], s["evictions"]')
	unmount
	# the lines of an operation that was under way may be in either
	[ "$(grep -c ^# old)" = "$(grep -c ^# trace)" ]
	[ "$(grep -cE ',(hit|miss),' old)" -ge 490 ]
	[ "$(grep -cE ',(hit|miss),' trace)" -ge 490 ]
	cat old trace >both
	[ "$(sim_counts both -p lru -c 30%)" = "$real" ]
	run -0 gpemu-cachesim --trace trace -p lru -c 30%
	[[ $output == *"the trace lacks "*" accesses"* ]]
}

@test "a full disk ends the trace, not the mount" {
	[ -w /dev/full ] || skip "no /dev/full"
	make_files 20 5000
	gpemu-fs --log "$BATS_TEST_TMPDIR/log" --trace /dev/full "$src" "$mp" \
		2>"$BATS_TEST_TMPDIR/early"
	[ "$(tree_sum "$mp")" = "$(tree_sum "$src")" ]
	lost() { [ "$(stat_of '["trace"]["lost"]')" -gt 20 ]; }
	eventually lost || {
		cat "$mp/.gpemu/stats" "$BATS_TEST_TMPDIR"/{log,early}
		false
	}
	[ "$(stat_of '["trace"]["records"]')" = 0 ]
	[ "$(grep -c 'trace /dev/full: No space left on device; the trace ends here' \
		<(cat "$BATS_TEST_TMPDIR/log" "$BATS_TEST_TMPDIR/early"))" = 1 ]
	unmount
}

@test "lines that nobody reads are dropped and counted; readers continue" {
	head -c 2000000 /dev/urandom >"$src/a"
	mkfifo "$trace"
	# opened for both, and never read
	exec 7<>"$trace"
	gpemu-fs --hit-path reply --trace "$trace" "$src" "$mp" 7<&-
	python3 - "$mp" <<-'END'
	import json, os, sys
	mp = sys.argv[1]
	fd = os.open(mp + "/a", os.O_RDONLY)
	n = 0
	while n < 200000:
	    for i in range(5000):
	        assert len(os.pread(fd, 16, n)) == 16
	        n += 1
	    t = json.load(open(mp + "/.gpemu/stats"))["trace"]
	    if t["lost"] > 5000:
	        break
	assert t["lost"] > 5000, t
	# all but what the pipe and the writer's buffer hold is in the ring
	assert 65000 <= n - t["lost"] <= 65536 + 20000, (n, t)
	END
	fusermount3 -u "$mp"
	exec 7<&-
	eventually no_daemon
}

@test "an unwritable trace or record is reported before the mount" {
	make_files 5 100
	run -1 gpemu-fs --trace "$BATS_TEST_TMPDIR/no/trace" "$src" "$mp"
	[[ $output == *"trace $BATS_TEST_TMPDIR/no/trace: No such file"* ]]
	run -1 gpemu-fs --json "$BATS_TEST_TMPDIR/no/record" "$src" "$mp"
	[[ $output == *"$BATS_TEST_TMPDIR/no/record: No such file"* ]]
	is_not_mounted
}
