#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What the process takes: defaults that fit the machine, and bounds that hold.

load mount

setup()
{
	common_setup
}

teardown()
{
	common_teardown
	[ -z "${group-}" ] || rmdir "$group"
}

unmount()
{
	fusermount3 -u "$mp"
	eventually no_daemon
}

# limited BYTES: a memory control group for this test, in $group
limited()
{
	local files="memory.max memory.limit_in_bytes" at file

	for at in /sys/fs/cgroup /sys/fs/cgroup/memory; do
		group=$at/gpemu-test-$$
		mkdir "$group" 2>/dev/null || continue
		for file in $files; do
			[ -e "$group/$file" ] || continue
			echo "$1" >"$group/$file" && return
		done
		rmdir "$group"
	done
	group=
	skip "no memory control group can be made here"
}

@test "the README's synth:imagenet fits any machine, with a cache and without" {
	memory=$(($(getconf _PHYS_PAGES) * $(getconf PAGESIZE)))
	gpemu-fs synth:imagenet "$mp" 2>"$BATS_TEST_TMPDIR/said"
	capacity=$(stat_of '["capacity_bytes"]')
	wanted=$(stat_of '["file_bytes"] * 35 // 100')
	echo "memory $memory, wanted $wanted, has $capacity"
	[ "$capacity" -le $((memory / 2)) ]
	if [ "$capacity" -lt $((wanted - 1)) ]; then
		grep -q "half of the memory" "$BATS_TEST_TMPDIR/said"
	else
		[ ! -s "$BATS_TEST_TMPDIR/said" ]
	fi
	grep -q '^cache_size: auto$' "$mp/.gpemu/config"
	unmount
	gpemu-fs -p none synth:imagenet "$mp"
	[ "$(stat_of '["capacity_bytes"]')" = 0 ]
	unmount
	gpemu-fs -p none -c 900T synth:imagenet,files=10 "$mp"
	unmount
	run gpemu-fs -c 900T synth:imagenet,files=10 "$mp"
	[ "$status" -eq 1 ]
	[[ $output == *"choose a smaller --cache-size"* ]]
	is_not_mounted
}

@test "a control group's limit counts as the machine's" {
	limited 600M
	in_group()
	{
		sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"
	}
	in_group gpemu-fs synth:imagenet,files=100000 "$mp" \
		2>"$BATS_TEST_TMPDIR/said"
	[ "$(stat_of '["capacity_bytes"]')" = $((300 << 20)) ]
	grep -q "the cache has 300 MiB, half of the memory" \
		"$BATS_TEST_TMPDIR/said"
	unmount
	run in_group gpemu-fs -c 700M synth:imagenet,files=10 "$mp"
	[ "$status" -eq 1 ]
	[[ $output == *"does not fit the 600 MiB"* ]]
	is_not_mounted
}
