#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Several files with one read of the backend; packs.

load mount

setup()
{
	common_setup
}

teardown()
{
	common_teardown
}

# every file, group after group
read_groups()
{
	python3 - "$mp" <<-'END'
	import json, sys
	mp = sys.argv[1]
	for line in open(f"{mp}/.gpemu/groups"):
	    for path in json.loads(line):
	        open(f"{mp}/{path}", "rb").read()
	END
}

unmount()
{
	fusermount3 -u "$mp"
	eventually no_daemon
}

@test "the manifest names every file once, in groups of N, the last smaller" {
	make_files 61 1000
	for order in sequential random diffclass; do
		gpemu-fs -g 8 --group-order $order "$src" "$mp"
		python3 - "$mp" $order <<-'END'
		import json, os, sys
		mp, order = sys.argv[1:]
		groups = [json.loads(l) for l in open(f"{mp}/.gpemu/groups")]
		assert [len(g) for g in groups] == [8] * 7 + [5], groups
		files = sorted(os.path.relpath(os.path.join(d, f), mp)
		               for d, _, fs in os.walk(mp) for f in fs)
		assert sorted(p for g in groups for p in g) == files
		flat = [p for g in groups for p in g]
		assert (flat == files) == (order == "sequential")
		if order == "diffclass":
		    assert len({p.split("/")[0] for p in groups[0][:5]}) == 5
		END
		[ "$(stat_of '["groups"]')" = 8 ]
		unmount
	done
}

# bats test_tags=slow
@test "one backend read per group, in any policy; the read amplification" {
	make_files 64 5000
	bytes=$(cat "$src"/c*/* | wc -c)
	for policy in lru minio none; do
		gpemu-fs -p $policy -c 10% -g 8 --group-order random "$src" "$mp"
		read_groups
		[ "$(stat_of '["backend_reads"]')" = 8 ]
		[ "$(stat_of '["backend_bytes"]')" = "$bytes" ]
		[ "$(stat_of '["misses"]')" = 8 ]
		[ "$(stat_of '["group_hits"]')" = 56 ]
		stat_of '["read_amplification"]'
		[ "$(stat_of '["read_amplification"] * s["miss_bytes"] - s["backend_bytes"] < 1')" = True ]
		[ "$(stat_of '["read_amplification"] > 4')" = True ]
		unmount
	done
	# single files in another order than the groups', with no room for the
	# other members: N times the bytes
	gpemu-fs -p none -g 8 --group-buffer 1 "$src" "$mp"
	find "$mp" -type f -exec cat {} + >/dev/null
	[ "$(stat_of '["backend_bytes"]')" = $((8 * bytes)) ]
	[ "$(stat_of '["read_amplification"]')" = 8.0 ]
}

# bats test_tags=timed
@test "the device is charged the latency once and the bytes of the group" {
	make_files 64 20000
	cat >"$BATS_TEST_TMPDIR/slow.yaml" <<-END
	name: slow
	source: a test
	read: {source: a test, latency: {kind: const, value: 50ms}}
	END
	gpemu-fs -s "$BATS_TEST_TMPDIR/slow.yaml" -c 100% -g 16 "$src" "$mp"
	for try in 1 2 3 4 5; do
		echo drop-cache >"$mp/.gpemu/control"
		start=$(date +%s%N)
		read_groups
		took=$((($(date +%s%N) - start) / 1000000))
		echo "$took ms"
		# 4 reads; alone they were 64, which is 3200 ms
		[ $took -ge 200 ]
		[ "$(stat_of '["backend_reads"]')" = $((4 * try)) ]
		[ "$(stat_of '["latency_us"]["requested"]["mean"]')" != 0 ]
		[ $took -ge 1600 ] || return 0
	done
	false
}

@test "readers of one group share its read" {
	make_files 32 5000
	cat >"$BATS_TEST_TMPDIR/slow.yaml" <<-END
	name: slow
	source: a test
	read: {source: a test, latency: {kind: const, value: 500ms}}
	END
	gpemu-fs -s "$BATS_TEST_TMPDIR/slow.yaml" -p none -g 32 "$src" "$mp"
	for f in "$mp"/c*/*; do
		cat "$f" >/dev/null 3>&- &
		readers="${readers-} $!"
	done
	wait $readers
	readers=
	[ "$(stat_of '["backend_reads"]')" = 1 ]
	[ "$(stat_of '["misses"] + s["group_hits"]')" = 32 ]
}

@test "bytes equal the source's, whatever the policy, order and size" {
	make_files 200 40000
	head -c 9000001 /dev/urandom >"$src/large"
	: >"$src/c0/empty"
	want=$(tree_sum "$src")
	for mode in "lru 3 random" "none 64 diffclass" "minio 500 sequential" \
		"sff 16 random"; do
		set -- $mode
		gpemu-fs -p $1 -c 10% -g $2 --group-order $3 "$src" "$mp"
		[ "$(tree_sum "$mp")" = "$want" ]
		[ "$(tree_sum "$mp")" = "$want" ]
		[ "$(stat_of '["used_bytes"]')" -le \
			"$(stat_of '["capacity_bytes"]')" ]
		unmount
	done
}

@test "an unreadable member does not fail the others" {
	make_files 8 5000
	gpemu-fs -c 100% -g 8 "$src" "$mp"
	rm "$src/c1/f00001"
	cmp "$mp/c0/f00000" "$src/c0/f00000"
	run cat "$mp/c1/f00001"
	[ "$status" -ne 0 ]
	cmp "$mp/c2/f00002" "$src/c2/f00002"
}

@test "a pack is served as the packed tree, by its groups" {
	make_files 61 30000
	head -c 9000001 /dev/urandom >"$src/large"
	mkdir -p "$src/c1-x/deep/er" && echo x >"$src/c1-x/deep/er/y"
	touch -d '2001-02-03 04:05:06' "$src/c0/f00000"
	pack=$BATS_TEST_TMPDIR/p.pack
	gpemu-data pack -g 8 --group-order random "$src" "$pack"
	list="find . -type f -printf '%P %y %s %T@\n'"
	for group in 1 auto 5; do
		gpemu-fs -c 100% -g $group pack:"$pack" "$mp"
		diff -r "$src" "$mp"
		[ "$(cd "$src" && eval "$list" | sort)" = \
			"$(cd "$mp" && eval "$list" | sort)" ]
		if [ $group = auto ]; then
			cmp "$mp/.gpemu/groups" <(gpemu-data stat --groups "$pack")
			# 62 small files, and the large one in three extents
			[ "$(stat_of '["backend_reads"]')" = $((8 + 3)) ]
		fi
		unmount
	done
	gpemu-data sum "$src" | diff - <(gpemu-data sum pack:"$pack")
}

@test "the manifest of a mount gives the next one the same groups" {
	make_files 30 100
	gpemu-fs -g 7 --group-order random --seed 5 "$src" "$mp"
	cp "$mp/.gpemu/groups" "$BATS_TEST_TMPDIR/groups"
	unmount
	gpemu-fs -g 7 --group-order "$BATS_TEST_TMPDIR/groups" "$src" "$mp"
	cmp "$mp/.gpemu/groups" "$BATS_TEST_TMPDIR/groups"
}

@test "an error in groups is one line" {
	make_files 5 100
	check()
	{
		run gpemu-fs "${@:2}" "$mp"
		echo "$output"
		[ "$status" -eq 1 ]
		[ "${#lines[@]}" -eq 1 ]
		[[ $output == *"$1"* ]]
		is_not_mounted
	}
	check "has no groups of its own" -g auto "$src"
	check "--group: " -g x "$src"
	check "sequential, random, diffclass, or a file" \
		-g 2 --group-order nope "$src"
	echo "c0/nope" >"$BATS_TEST_TMPDIR/list"
	check "list:1: no such file" \
		-g 2 --group-order "$BATS_TEST_TMPDIR/list" "$src"
	check "not a pack" "pack:$src/c0/f00000"
	check "No such file" "pack:$src/nope"
}
