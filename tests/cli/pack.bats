#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-data pack, and stat and sum of packs

bats_require_minimum_version 1.5.0

setup() {
	BUILD=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}
	DATA=$BUILD/gpemu-data
	D=$BATS_TEST_TMPDIR/set
	P=$BATS_TEST_TMPDIR/set.pack
	"$DATA" make --files 61 --classes 5 --content random \
		--scale-bytes 0.2 "$D" >/dev/null
}

@test "every file is in one group, the last group is smaller, checksums match" {
	for order in sequential random diffclass; do
		"$DATA" pack -g 8 --group-order $order --force "$D" "$P"
		run -0 "$DATA" stat --verify "$P"
		[[ "$output" =~ "groups"\ +8\ +"of 8 files, $order" ]]
		"$DATA" stat --groups "$P" |
			python3 -c 'import json, sys
groups = [json.loads(line) for line in sys.stdin]
assert [len(g) for g in groups] == [8] * 7 + [5], groups
assert len({p for g in groups for p in g}) == 61'
		diff <("$DATA" sum "$D") <("$DATA" sum "pack:$P")
	done
}

@test "one seed makes the same pack twice, another seed other groups" {
	"$DATA" pack -g 8 --group-order random "$D" "$P"
	"$DATA" pack -g 8 --group-order random "$D" "$P.2"
	"$DATA" pack -g 8 --group-order random --seed 2 "$D" "$P.3"
	cmp "$P" "$P.2"
	run ! cmp -s "$P" "$P.3"
}

@test "groups of one pack make another" {
	"$DATA" pack -g 8 --group-order random "$D" "$P"
	"$DATA" stat --groups "$P" >"$BATS_TEST_TMPDIR/groups"
	"$DATA" pack --group-order "$BATS_TEST_TMPDIR/groups" "$D" "$P.2"
	diff "$BATS_TEST_TMPDIR/groups" <("$DATA" stat --groups "$P.2")
}

@test "an interrupted, truncated, damaged or newer pack is refused" {
	"$DATA" pack -g 8 "$D" "$P"
	n=$(stat -c %s "$P")
	refused() {
		run -1 "$DATA" stat "$BATS_TEST_TMPDIR/bad"
		[ "${#lines[@]}" -eq 1 ]
		[[ "$output" =~ "$1" ]]
	}
	head -c 64 /dev/zero | cat - <(tail -c +65 "$P") \
		>"$BATS_TEST_TMPDIR/bad"
	refused interrupted
	head -c $((n - 1)) "$P" >"$BATS_TEST_TMPDIR/bad"
	refused "truncated or extended"
	head -c 10 "$P" >"$BATS_TEST_TMPDIR/bad"
	refused "not a pack"
	cp "$P" "$BATS_TEST_TMPDIR/bad"
	printf X | dd of="$BATS_TEST_TMPDIR/bad" bs=1 seek=$((n - 3)) \
		conv=notrunc status=none
	refused "checksum"
	cp "$P" "$BATS_TEST_TMPDIR/bad"
	printf '\2' | dd of="$BATS_TEST_TMPDIR/bad" bs=1 seek=8 conv=notrunc \
		status=none
	refused "version 2"
}

@test "a changed byte of a file is found and named" {
	"$DATA" pack "$D" "$P"
	printf 'XX' | dd of="$P" bs=1 seek=4100 conv=notrunc status=none
	"$DATA" stat "$P"
	run -1 "$DATA" stat --verify "$P"
	[[ "$output" =~ "1 of 61 files".*"class_0000/img_00000000.bin" ]]
}

@test "a signal leaves nothing behind" {
	mkfifo "$BATS_TEST_TMPDIR/fifo"
	# block the writer: a list that never ends
	"$DATA" pack --group-order "$BATS_TEST_TMPDIR/fifo" "$D" "$P" 3>&- \
		2>"$BATS_TEST_TMPDIR/err" &
	pid=$!
	exec 7>"$BATS_TEST_TMPDIR/fifo"
	kill -TERM $pid
	# until one of its threads has taken the signal
	while grep -qE '^(ShdPnd|SigPnd):.*[4567cdef]...$' /proc/$pid/status; do
		sleep .05
	done
	sleep .2
	exec 7>&-
	status=0
	wait $pid || status=$?
	[ $status = 1 ]
	grep -q "interrupted" "$BATS_TEST_TMPDIR/err"
	[ ! -e "$P" ]
	[ -z "$(find "$(dirname "$P")" -maxdepth 1 -name "*.tmp")" ]
}

@test "errors: one line, the right status" {
	run -1 "$DATA" pack "$D/none" "$P"
	[[ "$output" =~ "No such file" ]]
	mkdir "$BATS_TEST_TMPDIR/empty"
	run -1 "$DATA" pack "$BATS_TEST_TMPDIR/empty" "$P"
	[[ "$output" =~ "no files" ]]
	run -1 "$DATA" pack --group-order nope "$D" "$P"
	[[ "$output" =~ "sequential, random, diffclass, or a file" ]]
	run -2 "$DATA" pack -g 0 "$D" "$P"
	run -2 "$DATA" pack "$D"
	[ ! -e "$P" ]
	"$DATA" pack "$D" "$P"
	run -1 "$DATA" pack "$D" "$P"
	[[ "$output" =~ "--force" ]]
	run -2 "$DATA" stat --verify "$D"
	run -2 "$DATA" stat --decode "$P"
	run -1 "$DATA" pack "$D" "$BATS_TEST_TMPDIR/no/folder"
	[[ "$output" =~ "No such file" ]]
}
