#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A mount that fetches ahead what a loader announces in .gpemu/future
# (tests/contract/test_prefetch.c has the layer).

bats_require_minimum_version 1.5.0
load mount

setup() { common_setup; }
teardown() { common_teardown; }

# announce EPOCHS: all files in the order of their names, again and again
announce()
{
	python3 - "$mp" "$1" <<-'END'
		import os, struct, sys
		mp, epochs = sys.argv[1], int(sys.argv[2])
		inodes = [os.stat(os.path.join(d, f)).st_ino
		          for d, _, fs in sorted(os.walk(mp)) for f in sorted(fs)]
		n = len(inodes)
		with open(f"{mp}/.gpemu/future", "wb", buffering=0) as f:
		    f.write(b"gpemufut" + struct.pack("<7I", 1, 0, 1, epochs, n, n, 0))
		    f.write(struct.pack(f"<{n * epochs}I", *(inodes * epochs)))
	END
}

# prefetch FIELD: of the stats
prefetch()
{
	stat_of "['prefetch']['$1']"
}

is()
{
	[ "$(prefetch "$1")" = "$2" ]
}

@test "what is announced is read from storage before it is asked for" {
	make_files 50 20000
	head -c 9000000 /dev/urandom >"$src/c0/large"
	gpemu-fs -s nvme -p none --prefetch 64M "$src" "$mp"
	announce 1
	eventually is from_storage 53
	[ "$(stat_of '["backend_reads"]')" = 53 ]
	[ "$(stat_of '["delivered_bytes"]')" = 0 ]
	[ "$(tree_sum "$mp")" = "$(tree_sum "$src")" ]
	[ "$(stat_of '["backend_reads"]')" = 53 ]
	is used 53
	is missed 0
	is staged_bytes 0
	grep -q '^gpemu_fs_prefetch_used 53$' "$mp/.gpemu/stats.prom"
	# it is over: other reads are as ever
	[ "$(tree_sum "$mp")" = "$(tree_sum "$src")" ]
	is used 53
}

@test "gpemu-train announces; one that is killed leaves a mount that works" {
	make_files 100 20000
	# about five files
	gpemu-fs -s nvme -p minio -c 30% --prefetch 100K "$src" "$mp"
	gpemu-train --data "$mp" --loader sync --prep none --pin off -b 10 \
		-e 1000 --model resnet50 >"$BATS_TEST_TMPDIR/log" 2>&1 3>&- &
	pids=$!
	used() { [ "$(prefetch used)" -gt 150 ]; }
	eventually used
	kill -9 "$pids"
	wait "$pids" || true
	[ "$(tree_sum "$mp")" = "$(tree_sum "$src")" ]
	[ "$(prefetch most_bytes)" -le 102400 ]
	echo reset >"$mp/.gpemu/control"
	# each epoch another order, half of the samples each
	gpemu-train --data "$mp" --loader sync --prep none --pin off -b 10 \
		-e 4 --world-size 2 --rank 1 --time-scale 0.1 \
		--json "$BATS_TEST_TMPDIR/json" >/dev/null
	python3 - "$BATS_TEST_TMPDIR/json" <<-'END'
		import json, sys
		j = json.load(open(sys.argv[1]))["fs"]
		p = j["prefetch"]
		assert p["used"] + p["missed"] == 200, p
		assert p["used"] > 0 and p["announced"] == 0, p
		assert j["hits"] + j["misses"] == 200, j
	END
	fusermount3 -u "$mp"
	gpemu-fs -p minio -c 30% "$src" "$mp"
	gpemu-train --data "$mp" --loader sync --prep none --pin off -b 10 \
		-e 1 --time-scale 0.01 2>"$BATS_TEST_TMPDIR/log" >/dev/null
	[ "$(cat "$BATS_TEST_TMPDIR/log")" = "" ]
}

@test "what is no list of accesses is refused" {
	local file=$mp/.gpemu/future

	make_files 10 1000
	gpemu-fs "$src" "$mp"
	run -1 announce 1
	fusermount3 -u "$mp"
	gpemu-fs --prefetch 1M --log "$BATS_TEST_TMPDIR/log" "$src" "$mp"
	[ "$(stat -c %a "$file")" = 600 ]
	run -1 bash -c "head -c 100 /dev/zero >'$file'"
	grep -q 'not a list of future accesses' "$BATS_TEST_TMPDIR/log"
	head -c 20 /dev/zero >"$file"
	cut_short() { grep -q "gpemu/future: the list ends after $1 of $2 bytes" "$BATS_TEST_TMPDIR/log"; }
	eventually cut_short 20 "at least 36"
	printf 'gpemufut\1\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0\2\0\0\0\2\0\0\0\0\0\0\0\2\0' >"$file"
	eventually cut_short 38 44
	run -1 bash -c "printf 'gpemufut\1\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\0\0\0\0\0\1\0\0' >'$file'"
	grep -q 'no file has the inode number 256' "$BATS_TEST_TMPDIR/log"
	[ -z "$(cat "$file")" ]
	announce 3
	[ "$(tree_sum "$mp")" = "$(tree_sum "$src")" ]
	run -2 gpemu-fs --prefetch 1M --layers cache,device,source "$src" "$mp"
	[[ $output == *"--prefetch needs the layer 'prefetch'"* ]]
	run -2 gpemu-fs --prefetch 1M --layers cache,prefetch,device,source \
		"$src" "$mp"
	[[ $output == *"'prefetch' cannot stand below 'cache'"* ]]
}

@test "files that do not fit into the buffer: one warning, with the size that would do" {
	local log=$BATS_TEST_TMPDIR/log

	truncate -s 20000 "$src"/{a,b,c}
	truncate -s 9000000 "$src/large"
	gpemu-fs --prefetch 19999 "$src" "$mp" 2>"$log"
	fusermount3 -u "$mp"
	[ "$(wc -l <"$log")" -eq 1 ]
	grep -q -- '--prefetch 19999 has no room for 4 of 4 files.*give at least 4M' "$log"
	gpemu-fs --prefetch 20000 "$src" "$mp" 2>"$log"
	fusermount3 -u "$mp"
	grep -q 'no room for 1 of 4 files' "$log"
	gpemu-fs --prefetch 4M "$src" "$mp" 2>"$log"
	[ ! -s "$log" ]
}
