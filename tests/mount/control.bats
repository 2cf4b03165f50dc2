#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Commands that wait, and that name files of all kinds.

bats_require_minimum_version 1.5.0

load mount

setup()
{
	common_setup
	make_files 5 1000
	printf 'name: here\nsource: a test\n' >"$src/here.yaml"
	control=$mp/.gpemu/control
}

teardown()
{
	common_teardown
}

# eight commands that wait for a file that is stuck; their pids are $writers
wait_for_the_stuck()
{
	local i

	writers=
	for i in 1 2 3 4 5 6 7 8; do
		echo "set storage $mp/here.yaml" 2>/dev/null >"$control" 3>&- &
		writers="$writers $!"
		pids="${pids-} $!"
	done
	eventually is_stuck
}

is_stuck()
{
	[ "$(stat_of '["faults"][0]["held"]')" -ge 1 ]
}

@test "commands that wait for the mount itself do not block it" {
	gpemu-fs --fault path=here.yaml,stuck "$src" "$mp"
	wait_for_the_stuck
	timeout 10 cmp "$src/c0/f00000" "$mp/c0/f00000"
	timeout 10 grep -q '^storage: ideal$' "$mp/.gpemu/config"
	timeout 10 sh -c "echo epoch >'$control'"
	timeout 10 sh -c "echo fault clear >'$control'"
	for writer in $writers; do
		wait "$writer"
	done
	[ "$(stat_of '["storage"]')" = "$mp/here.yaml" ]
}

@test "shutdown does not wait for a command" {
	for options in '--hit-path reply' '--hit-path auto'; do
		gpemu-fs -f $options --fault path=here.yaml,stuck "$src" "$mp" \
			2>/dev/null 3>&- &
		pid=$!
		pids="${pids-} $pid"
		eventually is_mounted
		eventually cmp "$src/c0/f00000" "$mp/c0/f00000"
		wait_for_the_stuck
		start=$SECONDS
		kill $pid
		wait $pid
		[ $((SECONDS - start)) -le 20 ] # else it hangs
		is_not_mounted
		for writer in $writers; do
			status=0
			wait "$writer" || status=$?
			[ "$status" -ne 0 ]
		done
	done
}

@test "shutdown does not wait for a reload" {
	echo "storage: $mp/here.yaml" >"$BATS_TEST_TMPDIR/c.yaml"
	gpemu-fs -f -s ideal --fault path=here.yaml,stuck "$src" "$mp" \
		--config "$BATS_TEST_TMPDIR/c.yaml" 2>/dev/null 3>&- &
	pid=$!
	pids="${pids-} $pid"
	eventually is_mounted
	kill $pid
	wait $pid
	: >"$BATS_TEST_TMPDIR/c.yaml"
	gpemu-fs -f --fault path=here.yaml,stuck "$src" "$mp" \
		--config "$BATS_TEST_TMPDIR/c.yaml" 2>/dev/null 3>&- &
	pid=$!
	pids="${pids-} $pid"
	eventually is_mounted
	eventually cmp "$src/c0/f00000" "$mp/c0/f00000"
	echo "storage: $mp/here.yaml" >"$BATS_TEST_TMPDIR/c.yaml"
	kill -HUP $pid
	eventually is_stuck
	start=$SECONDS
	kill $pid
	wait $pid
	[ $((SECONDS - start)) -le 20 ] # else it hangs
	is_not_mounted
}

@test "a relative path of a profile starts where the mount was started" {
	cd "$BATS_TEST_TMPDIR"
	mkdir sub
	cp "$src/here.yaml" sub
	gpemu-fs "$src" "$mp"
	echo 'set storage sub/here.yaml' >"$control"
	[ "$(stat_of '["storage"]')" = "$(pwd -P)/sub/here.yaml" ]
	run -1 bash -c "echo 'set storage sub/none.yaml' >'$control'"
	[[ $output == *"No such file"* ]]
	grep -q '^storage: .*/sub/here.yaml$' "$mp/.gpemu/config"
}

@test "a path of a profile with odd characters" {
	cp "$src/here.yaml" "$BATS_TEST_TMPDIR/a \"b\\c.yaml"
	gpemu-fs "$src" "$mp"
	echo "set storage $BATS_TEST_TMPDIR/a \"b\\c.yaml " >"$control"
	[ "$(stat_of '["storage"]')" = "$BATS_TEST_TMPDIR/a \"b\\c.yaml" ]
	grep -qF '/a \"b\\c.yaml"} 1' "$mp/.gpemu/stats.prom"
}

@test "a pipe is refused as a profile or a list" {
	mkfifo "$BATS_TEST_TMPDIR/p.yaml"
	gpemu-fs "$src" "$mp"
	run -1 timeout 10 bash -c \
		"echo 'set storage $BATS_TEST_TMPDIR/p.yaml' >'$control'"
	run -1 timeout 10 bash -c \
		"echo 'warm $BATS_TEST_TMPDIR/p.yaml' >'$control'"
	[ "$(stat_of '["storage"]')" = ideal ]
}

@test "no fault prevents the start of the mount" {
	timeout 10 gpemu-fs --fault op=lookup,stuck "$src" "$mp"
	echo fault clear >"$control"
	timeout 10 cmp "$src/c0/f00000" "$mp/c0/f00000"
}

@test "-o remount sets what can be set, and reports what cannot" {
	cd "$BATS_TEST_TMPDIR"
	gpemu-fs -p lru -c 10% "$src" "$mp"
	run -0 --separate-stderr gpemu-fs "$src" "$mp" \
		-o rw,remount,storage=hdd,cache_size=20%,seed=7
	[ "$stderr" = "gpemu-fs: remount: seed stays 0; to change it to 7, unmount and mount again" ]
	[ "$(stat_of '["storage"]')" = hdd ]
	[ "$(stat_of '["policy"]')" = lru ]
	grep -q '^cache_size: 20%$' "$mp/.gpemu/config"
	run -2 gpemu-fs "$src" "$mp" -o remount,cache_policy=nope
	[[ $output == *"--cache-policy: unknown cache policy 'nope'"* ]]
	run -1 gpemu-fs "$src" "$mp" -o remount,storage=/no/where.yaml
	[[ $output == *"; see the log of the mount"* ]]
	[ "$(stat_of '["policy"]')" = lru ]
	fusermount3 -u "$mp"
	run -1 gpemu-fs "$src" "$mp" -o remount
	[[ $output == *"no gpemu-fs is mounted there"* ]]
}
