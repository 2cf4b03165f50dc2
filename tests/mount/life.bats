#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Starting and stopping, and the errors of both.

load mount

setup()
{
	common_setup
	make_files 5 1000
}

teardown()
{
	common_teardown
}

@test "the mount serves when the command returns, and ends with the unmount" {
	gpemu-fs "$src" "$mp"
	is_mounted
	cmp "$src/c0/f00000" "$mp/c0/f00000"
	fusermount3 -u "$mp"
	eventually no_daemon
}

# a mount whose caller is killed before it serves; false: it was too late
ends_with_its_caller()
{
	gpemu-fs -c 1M synth:imagenet,files=500000,content=random "$mp" 3>&- &
	caller=$!
	pids="${pids-} $caller"
	eventually pgrep -P $caller >/dev/null
	kill -9 $caller
	wait $caller 2>/dev/null || true
	eventually no_daemon && is_not_mounted && return 0
	fusermount3 -u "$mp"
	eventually no_daemon
	return 1
}

@test "a caller that has gone leaves no mount" {
	# if the machine stops for a while, the mount may be ready before
	for try in 1 2 3 4 5; do
		ends_with_its_caller && return 0
	done
	false
}

@test "SIGTERM and Ctrl-C unmount" {
	for signal in TERM INT; do
		# the shell has background commands ignore SIGINT
		env --default-signal=INT gpemu-fs -f "$src" "$mp" 3>&- &
		pid=$!
		pids="${pids-} $pid"
		eventually is_mounted
		kill -$signal $pid
		wait $pid
		is_not_mounted
	done
}

# abort: as umount -f does, even with open files
abort()
{
	python3 -c 'import ctypes, sys
ctypes.CDLL(None).umount2(sys.argv[1].encode(), 1)' "$mp"
}

# ends_early HOW: a mount that is ended during calibration, which takes a
# process of its own some 0.2 s
ends_early()
{
	gpemu-fs -f "$src" "$mp" 2>"$BATS_TEST_TMPDIR/log" 3>&- &
	pid=$!
	pids="${pids-} $pid"
	eventually pgrep -P $pid >/dev/null
	exec 9<"$mp/c0/f00000"
	case $1 in
	term) kill $pid ;;
	lazy)
		fusermount3 -u -z "$mp"
		while pgrep -P $pid >/dev/null; do sleep .02; done
		;;
	abort)
		# it gets the end and the error at the same time
		kill -STOP $pid
		abort
		sleep .1
		kill -CONT $pid
		;;
	esac
	exec 9<&-
	wait $pid
	cat "$BATS_TEST_TMPDIR/log"
	# libfuse's own words, rarely; nothing of ours
	run grep -v '^fuse: reading device: Software caused connection abort$' \
		"$BATS_TEST_TMPDIR/log"
	[ "$status" = 1 ]
	! is_mounted || fusermount3 -u "$mp"
}

# bats test_tags=slow
@test "a mount that ends during calibration logs nothing" {
	[ "$(id -u)" = 0 ] || skip "only root aborts a mount"
	for how in term lazy abort; do
		for round in {1..10}; do
			echo "# $how $round"
			ends_early $how
		done
	done
}

@test "SIGTERM with reads pending does not wait for them" {
	cat >"$BATS_TEST_TMPDIR/slow.yaml" <<-END
	name: slow
	source: a test
	read: {source: a test, latency: {kind: const, value: 1000s}}
	END
	gpemu-fs -f -s "$BATS_TEST_TMPDIR/slow.yaml" "$src" "$mp" 3>&- &
	pid=$!
	pids="${pids-} $pid"
	eventually is_mounted
	for f in "$mp"/c?/*; do
		cat "$f" >/dev/null 2>&1 3>&- &
		readers="${readers-} $!"
	done
	eventually all_wait 5
	start=$SECONDS
	kill $pid
	wait $pid
	[ $((SECONDS - start)) -le 20 ] # of 1000; how soon, see below
	is_not_mounted
	for r in $readers; do
		status=0
		wait "$r" || status=$?
		[ "$status" -eq 1 ] # what cat says of a failed read
	done
}

# pending N: a mount on which N reads wait for a slow device; their process is
# $reader, the daemon $pid
pending()
{
	printf 'name: slow\nsource: a test\nread: {source: a test, latency: {kind: const, value: 1000s}}\n' \
		>"$BATS_TEST_TMPDIR/slow.yaml"
	gpemu-fs -f -p none -s "$BATS_TEST_TMPDIR/slow.yaml" \
		synth:imagenet,files=1200,content=random "$mp" 3>&- &
	pid=$!
	pids="${pids-} $pid"
	eventually is_mounted
	readers "$mp" "$1" together >"$BATS_TEST_TMPDIR/readers" 2>&1 3>&- &
	reader=$!
	eventually all_wait "$1"
}

all_wait()
{
	[ "$(stat_of '["inflight"]')" -eq "$1" ]
}

@test "SIGTERM with 1000 delayed reads pending: ends within a second" {
	for try in 1 2 3 4 5; do
		pending 1000
		start=$(date +%s%N)
		kill $pid
		wait $pid
		ms=$((($(date +%s%N) - start) / 1000000))
		status=0
		wait $reader || status=$?
		[ "$status" -eq 1 ]
		grep -q "pread: Software caused connection abort" \
			"$BATS_TEST_TMPDIR/readers"
		is_not_mounted
		echo "$ms ms"
		[ $ms -gt 1000 ] || return 0
	done
	false
}

@test "kill -9 with 1000 reads pending: errors for them, the next mount works" {
	pending 1000
	kill -9 $pid
	status=0
	wait $pid || status=$?
	[ "$status" -eq 137 ]
	status=0
	wait $reader || status=$?
	[ "$status" -eq 1 ]
	grep -q "^pread: " "$BATS_TEST_TMPDIR/readers"
	gpemu-fs "$src" "$mp"
	cmp "$src/c0/f00000" "$mp/c0/f00000"
	[ "$(grep -c " $mp " /proc/mounts)" = 1 ]
}

@test "the mount of a killed daemon is cleared" {
	gpemu-fs "$src" "$mp"
	kill -9 "$(daemon_pid)"
	eventually no_daemon
	run ls "$mp"
	[ "$status" -ne 0 ]
	run gpemu-fs "$src" "$mp"
	[ "$status" -eq 0 ]
	[[ $output == *"was killed"* ]]
	cmp "$src/c0/f00000" "$mp/c0/f00000"
	[ "$(grep -c " $mp " /proc/mounts)" = 1 ]
}

# fails STATUS TEXT COMMAND...: one line on stderr, nothing mounted
fails()
{
	local want=$1 text=$2

	shift 2
	run "$@"
	echo "$output"
	[ "$status" -eq "$want" ]
	[ "${#lines[@]}" -eq 1 ]
	[[ $output == *"$text"* ]]
	is_not_mounted
}

@test "invalid input: one line, the right status, nothing mounted" {
	fails 1 "No such file or directory" gpemu-fs "$src/none" "$mp"
	fails 1 "No such file or directory" gpemu-fs "$src" "$mp/none"
	fails 1 "not a folder" gpemu-fs "$src" "$src/c0/f00000"
	fails 2 "--cache-policy: unknown cache policy 'nope'; did you mean 'none'? (known: none lru fifo random clock" \
		gpemu-fs -p nope "$src" "$mp"
	fails 2 "--storage: unknown storage profile 'nope'" gpemu-fs -s nope "$src" "$mp"
	fails 1 "choose a smaller --cache-size" gpemu-fs -c 900T "$src" "$mp"
	fails 1 "cannot use the mount options" gpemu-fs -o nope "$src" "$mp"
	fails 1 "not empty" gpemu-fs "$src" "$src"
	fails 2 "--cache-size: '5Q' is not a size" gpemu-fs -c 5Q "$src" "$mp"
	fails 2 "--time-scale: 0 is outside" gpemu-fs --time-scale 0 "$src" "$mp"
	fails 2 "missing argument" gpemu-fs "$src"
	echo 'cache_pollicy: lru' >"$BATS_TEST_TMPDIR/c.yaml"
	fails 2 "c.yaml:1:1: unknown key 'cache_pollicy'" \
		gpemu-fs --config "$BATS_TEST_TMPDIR/c.yaml" "$src" "$mp"
	printf 'name: x\nsource: a test\nread:\n  latency: {kind: const, value: -5ms}\n' \
		>"$BATS_TEST_TMPDIR/s.yaml"
	fails 1 "s.yaml:4:33:" \
		gpemu-fs -s "$BATS_TEST_TMPDIR/s.yaml" "$src" "$mp"
}

@test "a mount point in use is left alone" {
	gpemu-fs "$src" "$mp"
	run gpemu-fs "$src" "$mp"
	[ "$status" -eq 1 ]
	[[ $output == *"already a mount point"* ]]
	cmp "$src/c0/f00000" "$mp/c0/f00000"
}

@test "--config is overridden by flags, and --dump-config reads back" {
	printf 'cache_policy: fifo\ncache_size: 7%%\n' >"$BATS_TEST_TMPDIR/c.yaml"
	gpemu-fs --config "$BATS_TEST_TMPDIR/c.yaml" -p minio --dump-config \
		"$src" "$mp" >"$BATS_TEST_TMPDIR/d.yaml"
	grep -q '^cache_policy: minio$' "$BATS_TEST_TMPDIR/d.yaml"
	grep -q '^cache_size: 7%$' "$BATS_TEST_TMPDIR/d.yaml"
	gpemu-fs --config "$BATS_TEST_TMPDIR/d.yaml" --dump-config \
		"$src" "$mp" | cmp - "$BATS_TEST_TMPDIR/d.yaml"
}

@test "without FUSE over io_uring, auto says nothing, uring warns, both serve" {
	switch=/sys/module/fuse/parameters/enable_uring
	[ "$(cat $switch 2>&1)" != Y ] || skip "$switch is Y"
	run gpemu-fs "$src" "$mp"
	[ "$status" -eq 0 ]
	[ -z "$output" ]
	fusermount3 -u "$mp"
	run gpemu-fs --transport uring "$src" "$mp"
	[ "$status" -eq 0 ]
	[[ $output == *"using /dev/fuse"* ]]
	[ "$(stat_of '["transport"]')" = dev ]
	cmp "$src/c0/f00000" "$mp/c0/f00000"
}
