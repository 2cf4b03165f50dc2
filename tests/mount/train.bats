#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-train on a gpemu-fs mount: they communicate only through the files in
# .gpemu.

bats_require_minimum_version 1.5.0

load mount

setup()
{
	common_setup
	for i in $(seq 40); do
		mkdir -p "$src/class$((i % 4))"
		head -c 10000 /dev/urandom >"$src/class$((i % 4))/$i.bin"
	done
	JSON=$BATS_TEST_TMPDIR/record.json
}

teardown()
{
	common_teardown
}

check()
{
	python3 - "$JSON" "$1" <<-'PY'
		import json, sys
		j = json.load(open(sys.argv[1]))
		if not eval(sys.argv[2]):
		    sys.exit('not so: %s\n%s' % (sys.argv[2], json.dumps(j, indent=1)))
	PY
}

@test "the hits of each epoch are those of a cache that never evicts" {
	gpemu-fs -p minio -c 50% "$src" "$mp"
	for engine in sync async; do
		echo drop-cache >"$mp/.gpemu/control"
		run gpemu-train --data "$mp" --loader "$engine" --prep none \
			-b 8 -e 3 --time-scale 0.01 --json "$JSON"
		[ "$status" -eq 75 ] && continue # io_uring is forbidden here
		[ "$status" -eq 0 ]
		check "[(e['hits'], e['misses']) for e in j['epochs']] == [(0, 40), (20, 20), (20, 20)]"
		check "j['fs']['policy'] == 'minio' and j['fs']['hits'] >= 40"
	done
}

@test "a folder in the mount is found to be, one next to it is not" {
	gpemu-fs -p minio -c 100% "$src" "$mp"
	run gpemu-train --data "$mp/class1" --loader sync --prep none -b 5 \
		--time-scale 0.01 --json "$JSON"
	[ "$status" -eq 0 ]
	check "j['epochs'][0]['misses'] == 10 and j['fs'] is not None"
	run gpemu-train --data "$src/class1" --loader sync --prep none -b 5 \
		--time-scale 0.01 --json "$JSON"
	[ "$status" -eq 0 ]
	check "j['epochs'][0]['misses'] is None and j['fs'] is None"
}

# bats test_tags=timed
@test "the waits on a slow device are attributed to storage" {
	gpemu-fs -s hdd -p none "$src" "$mp"
	run gpemu-train --data "$mp" --loader sync --prep none --model alexnet \
		-b 4 --pin off --json "$JSON"
	[ "$status" -eq 0 ]
	[[ "$output" == *"Bottleneck: storage."* ]]
	check "j['totals']['fetch_stall_s'] > 0.9 * j['totals']['data_wait_s']"
}

# bats test_tags=timed
@test "the epoch that fills the cache is not judged" {
	[ -z "${GPEMU_SANITIZED-}" ] || skip "a sanitizer takes its own time"
	gpemu-fs -s hdd -p lru -c 100% "$src" "$mp"
	run gpemu-train --data "$mp" --loader sync --prep none --model alexnet \
		-b 4 -e 3 --json "$JSON"
	[ "$status" -eq 0 ]
	# the first epoch waits for reads, and yet no larger cache would help
	check "j['epochs'][0]['fetch_stall_s'] > .1 * j['epochs'][0]['seconds']"
	check "j['warm']['misses'] == 0 and j['warm']['hits'] > 0"
	[[ "$output" != *"larger cache"* ]]
	[[ "$output" == *"Epoch 0, the first, is not judged: the GPU waited "* ]]
}

# bats test_tags=timed
@test "--analyze predicts the epochs and restores the storage" {
	gpemu-fs -s hdd -p minio -c 50% "$src" "$mp"
	# a machine that stops for a while can spoil one run
	for try in 1 2 3 4 5; do
		run gpemu-train --data "$mp" --loader sync --workers 1 --prep none \
			--model alexnet -b 4 -e 2 --pin off --analyze --json "$JSON"
		[ "$status" -eq 0 ]
		[[ $output == *"cached    samples/s  bound by"* ]]
		check "j['fs']['storage'] == 'hdd'"
		check "[(e['hits'], e['misses']) for e in j['epochs']] == [(0, 40), (20, 20)]"
		check "j['analysis']['serial'] and j['analysis']['samples'] == 40"
		check "[p['bottleneck'] for p in j['analysis']['predicted']][0] == 'fetch'"
		[ -z "${GPEMU_SANITIZED-}" ] || return 0
		check "j['analysis']['g'] > j['analysis']['f0'] and j['analysis']['f1'] > 2 * j['analysis']['f0']" &&
			check "all(abs(e['error']) < .15 for e in j['analysis']['epochs'])" && return 0
	done
	false
}

@test "--analyze without a mount drops pages; interrupted, it restores the storage" {
	run gpemu-train --data "$src" --loader sync --prep none --model alexnet \
		-b 4 --pin off --analyze --time-scale 0.01 --json "$JSON"
	[ "$status" -eq 0 ]
	check "j['analysis']['f0'] > 0 and j['analysis']['epochs'] == []"
	gpemu-fs -s hdd -p none --time-scale 10 "$src" "$mp"
	gpemu-train --data "$mp" --loader sync --prep none -b 4 --pin off \
		--analyze --time-scale 10 3>&- &
	pid=$!
	pids="$pids $pid"
	is_read() { [ "$(stat_of '["misses"]')" -gt 0 ]; }
	eventually is_read
	kill -INT "$pid"
	r=0; wait "$pid" || r=$?
	[ "$r" -ne 0 ]
	grep -q '"storage": "hdd"' "$mp/.gpemu/stats"
}

@test "--order group reads each group of the mount once" {
	gpemu-fs -p none -g 5 --group-order random --group-buffer 64K "$src" "$mp"
	order()
	{
		run gpemu-train --data "$mp$1" --loader sync --prep none -b 5 -e 2 \
			--workers 1 --time-scale 0.01 --order group:window=1 \
			--dump-order "$BATS_TEST_TMPDIR/order" --json "$JSON"
		[ "$status" -eq 0 ]
		python3 - "$BATS_TEST_TMPDIR/order" "$mp/.gpemu/groups" "$1" <<-'PY'
			import json, sys
			group, below = {}, sys.argv[3].strip('/')
			for i, line in enumerate(open(sys.argv[2])):
			    for path in json.loads(line):
			        if path.startswith(below):
			            group[path[len(below):].strip('/')] = i
			for text in open(sys.argv[1]).read().split('epoch ')[1:]:
			    visited = [group[line.split()[1]] for line in text.splitlines()[1:]]
			    assert len(visited) == len(group)
			    changes = sum(a != b for a, b in zip(visited, visited[1:]))
			    assert changes == len(set(group.values())) - 1, visited
		PY
	}
	order ""
	check "j['fs']['backend_reads'] == 2 * 8"
	order /class1
}

# bats test_tags=slow
@test "synth:imagenet is listed once, then read from its index" {
	export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
	record=$BATS_TEST_TMPDIR/record.json
	gpemu-fs -c 64M synth:imagenet,content=random "$mp"
	for from_index in False True; do
		gpemu-train --data "$mp" --prep none --loader sync --max-steps 50 \
			--time-scale 0.01 --json "$record"
		python3 - "$record" $from_index <<-'END'
		import json, sys
		j = json.load(open(sys.argv[1]))
		d = j["dataset"]
		print(d)
		assert d["samples"] == 1281167 and d["classes"] == 1000, d
		assert j["totals"]["samples"] == 50 * 64
		assert j["totals"]["failed_samples"] == 0
		assert d["from_index"] is (sys.argv[2] == "True"), d
		assert d["list_s"] < (60 if sys.argv[2] == "False" else 10), d
		END
	done
	# other files of the same names, at the same times
	for seed in 1 9; do
		fusermount3 -u "$mp"
		eventually no_daemon
		gpemu-fs -c 64M synth:imagenet,files=100000,content=random,seed=$seed "$mp"
		gpemu-train --data "$mp" --prep none --loader sync --max-steps 2 \
			--time-scale 0.01 --json "$record"
		grep -q '"from_index": false' "$record"
	done
	gpemu-train --data "$mp" --prep none --loader sync --max-steps 2 \
		--time-scale 0.01 --json "$record"
	grep -q '"from_index": true' "$record"
}

# places FILE...: the device positions that the mount reports, a line each
places()
{
	python3 - "$@" <<-'PY'
		import os, sys
		for path in sys.argv[1:]:
		    print(os.getxattr(path, 'user.gpemu.place').decode())
	PY
}

@test "--sort-extents reads a window in the order of device positions" {
	gpemu-fs -s hdd-whole -p none --time-scale 0.01 \
		--trace "$BATS_TEST_TMPDIR/trace" "$src" "$mp"
	cd "$mp"
	paste -d , <(places class*/*.bin) <(printf '%s\n' class*/*.bin) \
		>"$BATS_TEST_TMPDIR/places"
	cd /
	run gpemu-train -v --data "$mp" --loader sync --workers 1 -b 20 \
		--prep none --pin off --sort-extents --max-steps 1 --time-scale 0.01 --json "$JSON"
	[ "$status" -eq 0 ]
	check "j['config']['sort_extents'] is True"
	# the query is not counted
	[ "$(stat_of "['misses']")" -eq 20 ]
	fusermount3 -u "$mp"
	eventually no_daemon
	# the lines of a trace come in the order of the answers
	python3 - "$BATS_TEST_TMPDIR/places" "$BATS_TEST_TMPDIR/trace" <<-'PY'
		import csv, sys
		place = {p: int(n) for n, p in csv.reader(open(sys.argv[1]))}
		rows = csv.DictReader(l for l in open(sys.argv[2]) if l[0] != '#')
		reads = [r for r in rows if r['op'] == 'read' and r['seq']]
		reads.sort(key=lambda r: int(r['seq']))
		at = [place[r['path']] for r in reads]
		assert len(set(at)) == 20 and at == sorted(at), at
	PY
}

@test "a device without positions reports none, and the order stays" {
	gpemu-fs -s hdd -p none --time-scale 0.01 "$src" "$mp"
	run ! places "$mp/class1/1.bin"
	[[ "$output" == *"No data available"* ]]
	run python3 -c "import os; print(os.listxattr('$mp/class1/1.bin'))"
	[ "$output" = "[]" ]
	echo "set storage hdd-whole" >"$mp/.gpemu/control"
	run python3 -c "import os; print(os.listxattr('$mp/class1/1.bin'))"
	[ "$output" = "['user.gpemu.place']" ]
	run ! places "$mp/class1"
	run ! places "$mp/.gpemu/stats"
	echo "set storage hdd" >"$mp/.gpemu/control"
	run gpemu-train -v --data "$mp" --loader sync --sort-extents --prep none \
		-b 4 --time-scale 0.01 --json "$JSON"
	[ "$status" -eq 0 ]
	[[ "$output" == *"FIEMAP"* ]]
	check "j['config']['sort_extents'] is False"
}

# A list that took 0.2 s is kept: on a busy machine also that of few files.
@test "the index of a writable mount is not written to its device" {
	export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
	mkdir "$BATS_TEST_TMPDIR/dir"
	find "$src" -exec touch -d '2001-02-03' {} +
	touch -d '2001-02-03' "$BATS_TEST_TMPDIR/dir"
	gpemu-fs --writable "$BATS_TEST_TMPDIR/dir" "$src" "$mp"
	gpemu-train --data "$mp" --loader sync --prep none -b 5 --time-scale 0.01 \
		--index rebuild --json "$JSON"
	check "j['dataset']['index'].startswith('$XDG_CACHE_HOME/gpemu/')"
	check "j['fs']['bytes_written'] == 0"
	[ -z "$(ls -A "$BATS_TEST_TMPDIR/dir")" ]
	gpemu-train --data "$mp" --loader sync --prep none -b 5 --time-scale 0.01 --json "$JSON"
	check "j['dataset']['from_index']"
}
