#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-fs, gpemu-train and gpemu-data see the same tree (the rules are those of
# common/system/walk.h).

load mount

setup()
{
	common_setup
	# links out of the tree resolve, also from the mount
	mkdir "$BATS_TEST_TMPDIR/beside"
	echo outside >"$BATS_TEST_TMPDIR/beside/file"
}

teardown()
{
	common_teardown
}

# train_list DIR: gpemu-train's samples, by name
train_list()
{
	# 1: a dangling link cannot be read
	gpemu-train --data "$1" --order sequential --dump-order "$BATS_TEST_TMPDIR/order" \
		--prep none --index off -b 1 --time-scale 0.001 --pin off \
		>/dev/null || [ $? -eq 1 ]
	sed -n 's/^[0-9]* //p' "$BATS_TEST_TMPDIR/order" | LC_ALL=C sort
}

# data_numbers DIR: "FILES BYTES" of gpemu-data
data_numbers()
{
	gpemu-data stat --json - "$1" | python3 -c 'import json, sys
j = json.load(sys.stdin)
print(j["files"], j["bytes"])'
}

# files DIR: names and sizes by find, links followed; one to nowhere, or to a
# pipe, has 0
files()
{
	(cd "$1" && find -L . -name '.?*' -prune -o -type f -printf '%P %s\n' \
		-o \( -type l -o -type p -name 'to-*' \) -printf '%P 0\n' |
		LC_ALL=C sort)
}

@test "files, links, hidden names, pipes and deep folders" {
	mkdir -p "$src"/{a,a-b,a/b,B}
	for name in a/x a/b/y a-b/z B/x a/ä; do echo "$name" >"$src/$name"; done
	mkdir "$src/a/.hidden"
	: >"$src/a/.hidden/x"
	echo hidden >"$src/a/.x"
	mkfifo "$src/a/pipe"
	ln -s x "$src/a/inside"
	ln -s pipe "$src/a/to-pipe"
	ln -s none "$src/a/dangling"
	ln -s ../B "$src/a-b/folder"
	ln -s ../../beside/file "$src/a-b/outside"
	ln -s ../../beside "$src/B/outside-folder"
	ln -s a "$src/class"
	deep=$src/a/$(printf 'd/%.0s' $(seq 40))
	mkdir -p "$deep"
	echo deep >"$deep/x"
	gpemu-fs "$src" "$mp"

	want=$(files "$src")
	[ "$(wc -l <<<"$want")" -gt 15 ]
	diff <(files "$mp") <(echo "$want")
	names=$(sed 's/ [0-9]*$//' <<<"$want")
	numbers=$(awk '{ n++; bytes += $NF } END { print n, bytes }' <<<"$want")
	for dir in "$src" "$mp"; do
		diff <(train_list "$dir") <(echo "$names")
		[ "$(data_numbers "$dir")" = "$numbers" ]
	done
}

@test "a loop of links: each program names its link" {
	mkdir -p "$src/a/b"
	: >"$src/a/b/x"
	ln -s .. "$src/a/b/up"
	gpemu-fs "$src" "$mp"
	[ "$(readlink "$mp/a/b/up")" = .. ]
	for dir in "$src" "$mp"; do
		for command in "gpemu-train --index off --data" "gpemu-data stat" \
			"gpemu-data sum"; do
			run $command "$dir"
			[ "$status" -ne 0 ]
			[[ $output == *"a/b/up: a link to one of its parent folders"* ]]
		done
	done
}

@test "a tree that is too deep: each program names the folder" {
	path=$(printf 'd/%.0s' $(seq 65))
	mkdir -p "$src/$path"
	: >"$src/$path/x"
	for command in "gpemu-fs $src $mp" "gpemu-train --data $src" \
		"gpemu-data stat $src"; do
		run $command
		[ "$status" -ne 0 ]
		[[ $output == *"${path%/}: "*"nested more than 64 deep"* ]]
	done
}
