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

# two_trees: real/ and linked/, whose names lead to the same files
two_trees()
{
	mkdir -p "$src/real"/{a,b/c} "$src/linked/b"
	for i in $(seq 12); do
		head -c $((i * 700)) /dev/urandom >"$src/real/a/$i.bin"
		head -c 900 /dev/urandom >"$src/real/b/c/$i.bin"
	done
	cp -r "$src/real/a" "$src/linked"
	rm "$src/linked/a"/[3-9].bin
	for i in $(seq 3 5); do ln -s "$src/real/a/$i.bin" "$src/linked/a"; done
	for i in $(seq 6 9); do ln -s "../../real/a/$i.bin" "$src/linked/a"; done
	ln -s "$src/real/b/c" "$src/linked/b/c"
	ln -s linked "$src/root"
}

# record KEY...: numbers of the record
record()
{
	python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))
print(*(eval("r" + k) for k in sys.argv[2:]))' "$BATS_TEST_TMPDIR/record" "$@"
}

# bats test_tags=slow
@test "links, also as the root: through device and cache, as the real files" {
	two_trees
	for root in linked root real; do
		gpemu-fs -c 100% "$src/$root" "$mp"
		[ "$(stat_of '["links"]["followed"]')" = $([ $root = real ] && echo 0 || echo 8) ]
		gpemu-train --data "$mp" --prep none -b 4 -e 2 --index off \
			--time-scale 0.001 --json "$BATS_TEST_TMPDIR/record" >/dev/null
		[ "$(record '["fs"]["misses"]' '["fs"]["hits"]' \
			'["fs"]["backend_bytes"]' '["totals"]["bypassed_samples"]')" = \
			"24 24 $(find "$src/real" -type f -printf '%s\n' |
				awk '{ n += $1 } END { print n }') 0" ]
		cmp "$mp/a/7.bin" "$src/real/a/7.bin"
		[ "$(data_numbers "$src/$root")" = "$(data_numbers "$mp")" ]
		gpemu-cachesim --dir "$src/$root" --epochs 2 -p lru -c 100% \
			--json "$BATS_TEST_TMPDIR/record" >/dev/null
		[ "$(record '["trace"]["requests"]' '["trace"]["objects"]' \
			'["results"][0]["tiers"][0]["epochs"][1]["hits"]')" = '48 24 24' ]
		fusermount3 -u "$mp"
	done
}

@test "links that are not followed stay links, are counted and named" {
	mkdir -p "$src/a/b" "$src/c"
	echo x >"$src/a/x"
	ln -s ../.. "$src/a/b/up"
	ln -s "$src/a" "$src/a/b/again"
	ln -s ../c "$src/a/c"
	ln -s ../a "$src/c/a" # a folder of the other: each has no end
	ln -s self "$src/c/self"
	ln -s none "$src/c/dangling"
	ln -s "$BATS_TEST_TMPDIR" "$src/c/above"
	ln -s /dev/null "$src/c/device"
	run gpemu-fs "$src" "$mp"
	[ "$status" -eq 0 ]
	[[ $output == *"links not followed: "*" dangling, "*" in a loop or to one folder too often, 0 to targets outside "*"; the first is c/above"* ]]
	[ "$(cat "$mp/a/x" "$mp/c/a/x" | xargs)" = 'x x' ]
	for name in a/b/up a/b/again c/self c/dangling c/above c/device a/c/a \
		c/a/c; do
		[ -L "$mp/$name" ]
		[ "$(readlink "$mp/$name")" = "$(readlink "$src/$name")" ]
	done
	[ "$(stat_of '["links"]["followed"]')" = 2 ]
	[ "$(stat_of '["links"]["dangling"]')" = $(find "$mp" -lname none -o -lname /dev/null | wc -l) ]
	[ "$(stat_of '["links"]["loops"]')" = $(find "$mp" -type l ! -lname none ! -lname /dev/null | wc -l) ]
	run cat "$mp/c/dangling"
	[[ $output == *"No such file"* ]]
	run cat "$mp/c/self"
	[[ $output == *"Too many levels"* ]]
}

@test "a folder that a link and an option name has its loops as others" {
	far=$BATS_TEST_TMPDIR/far
	mkdir -p "$src/data" "$far/sub"
	echo x >"$far/sub/x"
	ln -s "$far" "$src/data/far"
	ln -s ../sub "$far/sub/again"
	gpemu-fs --follow-links "$far" "$src" "$mp"
	[ "$(cat "$mp/data/far/sub/x")" = x ]
	[ -L "$mp/data/far/sub/again" ]
	[ "$(stat_of '["links"]["loops"]')" = 1 ]
}

@test "links that multiply end: one folder is listed a thousand times" {
	last=$src/l0
	mkdir "$last"
	echo x >"$last/x"
	for i in $(seq 40); do
		mkdir "$src/l$i"
		ln -s "$last" "$src/l$i/a"
		ln -s "$last" "$src/l$i/b"
		last=$src/l$i
	done
	timeout 60 gpemu-fs "$src" "$mp"
	[ "$(stat_of '["links"]["followed"]')" -le 40000 ]
	[ "$(stat_of '["links"]["loops"]')" -gt 0 ]
	[ "$(cat "$mp/l3/a/b/a/x")" = x ]
	run timeout 60 gpemu-data stat "$src"
	[ "$status" -eq 1 ]
	[[ $output == *"links lead to this folder more than 1000 times"* ]]
}

@test "what a link led to at the scan is opened, or nothing" {
	mkdir -p "$src/data" "$BATS_TEST_TMPDIR/far/d"
	echo far >"$BATS_TEST_TMPDIR/far/d/x"
	ln -s "$BATS_TEST_TMPDIR/far/d/x" "$src/data/x"
	ln -s "$BATS_TEST_TMPDIR/far/d" "$src/data/d"
	gpemu-fs -p none "$src" "$mp"
	[ "$(cat "$mp/data/x" "$mp/data/d/x" "$mp/data/d/../x" | xargs)" = 'far far far' ]
	# the link is another one
	ln -sf "$BATS_TEST_TMPDIR/beside/file" "$src/data/x"
	[ "$(cat "$mp/data/x")" = far ]
	# a folder on the way, or the file, is a link
	mv "$BATS_TEST_TMPDIR/far/d" "$BATS_TEST_TMPDIR/far/e"
	ln -s e "$BATS_TEST_TMPDIR/far/d"
	run cat "$mp/data/x"
	[[ $output == *"Stale"* ]]
	run cat "$mp/data/d/x"
	[[ $output == *"Stale"* ]]
}

@test "samples that bypass the mount are counted, whatever reads them" {
	two_trees
	tar -C "$src/real" -cf "$src/shard.tar" a
	mkdir "$src/shards"
	ln -s "$src/shard.tar" "$src/shards"
	gpemu-fs --follow-links none "$src" "$mp"
	for loader in sync async threads mmap; do
		run gpemu-train --data "$mp/linked" --prep none -b 4 --index off \
			--loader $loader --time-scale 0.001 \
			--json "$BATS_TEST_TMPDIR/record"
		[[ $status = 0 || $output == *"io_uring is not available"* ]]
		[ "$(record '["totals"]["bypassed_samples"]' \
			'["epochs"][0]["bypassed_samples"]' '["totals"]["samples"]')" = '15 15 24' ]
		[ "$(grep -c 'bypassed the mount' <<<"$output")" = 1 ]
	done
	gpemu-train --data "$mp/shards" --prep none -b 4 --time-scale 0.001 \
		--index off --json "$BATS_TEST_TMPDIR/record" >/dev/null
	[ "$(record '["totals"]["bypassed_samples"]')" = 12 ]
	# not on a mount: nothing to bypass
	gpemu-train --data "$src/linked" --prep none -b 4 --time-scale 0.001 \
		--index off --json "$BATS_TEST_TMPDIR/record" >/dev/null
	[ "$(record '["totals"]["bypassed_samples"]')" = 0 ]
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
