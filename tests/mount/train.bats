#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-train on a gpemu-fs mount: they meet by the files in .gpemu only.

setup() {
	BUILD=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}
	TMP=$(mktemp -d)
	[ -c /dev/fuse ] && [ -w /dev/fuse ] || skip "/dev/fuse is not usable"
	mkdir "$TMP/mnt"
	for i in $(seq 40); do
		mkdir -p "$TMP/data/class$((i % 4))"
		head -c 10000 /dev/urandom >"$TMP/data/class$((i % 4))/$i.bin"
	done
	JSON=$TMP/record.json
}

teardown() {
	mountpoint -q "$TMP/mnt" && fusermount3 -u "$TMP/mnt"
	rm -rf "$TMP"
}

check() {
	python3 - "$JSON" "$1" <<-'PY'
		import json, sys
		j = json.load(open(sys.argv[1]))
		if not eval(sys.argv[2]):
		    sys.exit('not so: %s\n%s' % (sys.argv[2], json.dumps(j, indent=1)))
	PY
}

@test "each epoch's hits are those of a cache that never evicts" {
	"$BUILD/gpemu-fs" -p minio -c 50% "$TMP/data" "$TMP/mnt"
	for engine in sync async; do
		echo drop-cache >"$TMP/mnt/.gpemu/control"
		run "$BUILD/gpemu-train" --data "$TMP/mnt" --loader "$engine" --prep none \
			-b 8 -e 3 --time-scale 0.01 --json "$JSON"
		[ "$status" -eq 75 ] && continue # io_uring is forbidden here
		[ "$status" -eq 0 ]
		check "[(e['hits'], e['misses']) for e in j['epochs']] == [(0, 40), (20, 20), (20, 20)]"
		check "j['fs']['policy'] == 'minio' and j['fs']['hits'] >= 40"
	done
}

@test "a folder of the mount is on the mount, one beside it is not" {
	"$BUILD/gpemu-fs" -p minio -c 100% "$TMP/data" "$TMP/mnt"
	run "$BUILD/gpemu-train" --data "$TMP/mnt/class1" --loader sync --prep none -b 5 \
		--time-scale 0.01 --json "$JSON"
	[ "$status" -eq 0 ]
	check "j['epochs'][0]['misses'] == 10 and j['fs'] is not None"
	run "$BUILD/gpemu-train" --data "$TMP/data/class1" --loader sync --prep none -b 5 \
		--time-scale 0.01 --json "$JSON"
	[ "$status" -eq 0 ]
	check "j['epochs'][0]['misses'] is None and j['fs'] is None"
}

@test "the waits on a slow device are put down to storage" {
	"$BUILD/gpemu-fs" -s hdd -p none "$TMP/data" "$TMP/mnt"
	run "$BUILD/gpemu-train" --data "$TMP/mnt" --loader sync --prep none --model alexnet \
		-b 4 --pin off --json "$JSON"
	[ "$status" -eq 0 ]
	[[ "$output" == *"Bottleneck: storage."* ]]
	check "j['totals']['fetch_stall_s'] > 0.9 * j['totals']['data_wait_s']"
}
