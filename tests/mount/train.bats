#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-train on a gpemu-fs mount: they meet by the files in .gpemu only.

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

@test "each epoch's hits are those of a cache that never evicts" {
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

@test "a folder of the mount is on the mount, one beside it is not" {
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

@test "the waits on a slow device are put down to storage" {
	gpemu-fs -s hdd -p none "$src" "$mp"
	run gpemu-train --data "$mp" --loader sync --prep none --model alexnet \
		-b 4 --pin off --json "$JSON"
	[ "$status" -eq 0 ]
	[[ "$output" == *"Bottleneck: storage."* ]]
	check "j['totals']['fetch_stall_s'] > 0.9 * j['totals']['data_wait_s']"
}
