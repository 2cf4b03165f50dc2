#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Injected errors, delays and hangs.

load mount

setup()
{
	common_setup
	make_files 20 3000
	control=$mp/.gpemu/control
}

teardown()
{
	common_teardown
}

# read_each: cat each file; prints how many failed
read_each()
{
	local f failed=0

	for f in "$mp"/c?/*; do
		cat "$f" >/dev/null 2>&1 || failed=$((failed + 1))
	done
	echo $failed
}

fails_of_each()
{
	[ "$(read_each)" = "$1" ]
}

holds()
{
	[ "$(stat_of '["faults"][0]["held"]')" = "$1" ]
}

# held_in_all N: by all rules together
held_in_all()
{
	[ "$(stat_of '["faults"] and sum(f["held"] for f in s["faults"])')" = "$1" ]
}

# took COMMAND...: its wall time in ms, whatever its exit status
took()
{
	local from=${EPOCHREALTIME/./}

	"$@" >/dev/null 2>&1 || true
	echo $(((${EPOCHREALTIME/./} - from) / 1000))
}

# gone PID
gone()
{
	! kill -0 "$1" 2>/dev/null
}

@test "every Nth read fails, even of cached files, on any hit path" {
	for path in reply passthrough; do
		gpemu-fs -c 100% --hit-path $path \
			--fault 'op=read,every=4,errno=EIO' "$src" "$mp"
		for pass in 1 2 3; do
			[ "$(read_each)" = 5 ]
		done
		[ "$(stat_of '["faults"][0]["matched"]')" = 60 ]
		[ "$(stat_of '["faults"][0]["fired"]')" = 15 ]
		grep -q '^gpemu_fs_fault_fired{id="1",rule="op=read,every=4,errno=EIO"} 15$' \
			"$mp/.gpemu/stats.prom"
		# a failed access counts neither as a hit nor as a miss
		[ "$(stat_of '["hits"] + s["misses"]')" = 45 ]
		[ "$(stat_of '["passthrough_opens"]')" = 0 ]
		echo 'fault clear 1' >"$control"
		[ "$(tree_sum "$mp")" = "$(tree_sum "$src")" ]
		[ $path = reply ] || passes_through
		fusermount3 -u "$mp"
		eventually no_daemon
	done
}

@test "the errno is the requested one" {
	for e in EIO ENOENT ESTALE ETIMEDOUT EACCES; do
		gpemu-fs --fault "op=read,errno=$e" "$src" "$mp"
		python3 - "$mp/c0/f00000" $e <<-'END'
		import errno, sys
		f = open(sys.argv[1], "rb", buffering=0)
		try:
		    f.read()
		except OSError as e:
		    assert errno.errorcode[e.errno] == sys.argv[2], e
		else:
		    sys.exit("it was read")
		END
		fusermount3 -u "$mp"
		eventually no_daemon
	done
}

@test "each class of operations has its faults" {
	gpemu-fs --fault 'op=lookup,path=c3,errno=EACCES' \
		--fault 'op=readdir,path=c4,errno=EIO;op=open,path=c0/*,errno=EPERM' \
		"$src" "$mp"
	run cat "$mp/c0/f00000"
	[[ $output == *"Operation not permitted"* ]]
	cmp "$mp/c1/f00001" "$src/c1/f00001"
	run ls "$mp/c4"
	[[ $output == *"Input/output error"* ]]
	ls "$mp/c2" >/dev/null
	run cat "$mp/c3/f00003"
	[[ $output == *"Permission denied"* ]]
	# a failed lookup does not remove the name
	echo 'fault clear' >"$control"
	cmp "$mp/c3/f00003" "$src/c3/f00003"
	cmp "$mp/c0/f00000" "$src/c0/f00000"
}

@test "a delay is seen by the client, and follows the time scale" {
	gpemu-fs --fault 'op=open,delay=300ms' "$src" "$mp"
	for i in 0 1 2; do
		[ "$(took cat "$mp/c$i/f0000$i")" -ge 300 ]
	done
	[ "$(stat_of '["faults"][0]["fired"]')" = 3 ]
	fusermount3 -u "$mp"
	eventually no_daemon
	gpemu-fs --time-scale .1 --fault 'op=read,delay=20s' "$src" "$mp"
	[ "$(took cat "$mp/c0/f00000")" -ge 2000 ]
	[ "$(took cat "$mp/c0/f00000")" -le 15000 ]
}

@test "delay, then fail" {
	gpemu-fs --fault 'op=read,delay=300ms,errno=ETIMEDOUT' "$src" "$mp"
	[ "$(took cat "$mp/c0/f00000")" -ge 300 ]
	run cat "$mp/c0/f00000"
	[ "$status" -eq 1 ]
	[[ $output == *"Connection timed out"* ]]
	[ "$(stat_of '["misses"]')" = 0 ]
}

@test "stuck operations continue after fault clear" {
	gpemu-fs --fault 'op=read,path=c1/*,stuck' "$src" "$mp"
	cat "$mp/c1/f00001" >"$BATS_TEST_TMPDIR/out" 3>&- &
	reader=$!
	eventually holds 1
	# others are served meanwhile
	cmp "$mp/c0/f00000" "$src/c0/f00000"
	[ ! -s "$BATS_TEST_TMPDIR/out" ]
	echo 'fault clear 1' >"$control"
	wait $reader
	cmp "$BATS_TEST_TMPDIR/out" "$src/c1/f00001"
}

@test "operations stuck for a time continue by themselves" {
	gpemu-fs --fault 'op=open,stuck,for=300ms' "$src" "$mp"
	[ "$(took cmp "$mp/c0/f00000" "$src/c0/f00000")" -ge 300 ]
	cmp "$mp/c0/f00000" "$src/c0/f00000"
}

# ends_with_stuck_readers COMMAND...: in ms, from it to the end of all of them
ends_with_stuck_readers()
{
	local pid r f readers= from

	gpemu-fs -f --fault 'op=read,every=2,stuck;op=read,delay=1h' \
		"$src" "$mp" 3>&- &
	pid=$!
	pids="${pids-} $pid"
	eventually is_mounted
	for f in "$mp"/c?/*; do
		cat "$f" >/dev/null 2>&1 3>&- &
		readers="$readers $!"
	done
	eventually holds 10
	from=${EPOCHREALTIME/./}
	"$@" "$pid"
	wait "$pid"
	for r in $readers; do
		! wait "$r" || return 1
	done
	ms=$(((${EPOCHREALTIME/./} - from) / 1000))
	# a connection that is aborted from outside leaves its mount point
	is_not_mounted || [ "$1" != kill ]
	is_not_mounted || umount "$mp"
}

# within_a_second COMMAND...: one of five tries
within_a_second()
{
	local try

	for try in 1 2 3 4 5; do
		ends_with_stuck_readers "$@"
		[ "$ms" -ge 1000 ] || return 0
	done
	return 1
}

@test "shutdown ends stuck and delayed readers: SIGTERM" {
	within_a_second kill
}

force_unmount()
{
	# its files are open: EBUSY, but the connection is aborted
	umount -f "$mp" 2>/dev/null || true
}

@test "shutdown ends stuck and delayed readers: umount -f" {
	[ "$(id -u)" = 0 ] || skip "umount -f needs root"
	within_a_second force_unmount
}

@test "a killed client can die" {
	gpemu-fs --fault 'op=read,path=c0/*,stuck' \
		--fault 'op=open,path=c1/*,delay=1h;op=lookup,path=c2/*,stuck' \
		"$src" "$mp"
	for f in c0/f00000 c1/f00001 c2/f00002; do
		for signal in KILL TERM; do
			cat "$mp/$f" >/dev/null 2>&1 3>&- &
			reader=$!
			pids="${pids-} $reader"
			eventually held_in_all 1
			kill -$signal $reader
			eventually gone $reader
		done
	done
	held_in_all 0
	cmp "$mp/c3/f00003" "$src/c3/f00003"
}

# bats test_tags=slow
@test "rules change at run time, and the configuration shows them" {
	gpemu-fs "$src" "$mp"
	[ "$(read_each)" = 0 ]
	echo 'fault add op=read,path=c2/*,errno=EIO' >"$control"
	# cached files are read by the kernel itself while they are open: the
	# mount learns of a close a moment later
	eventually fails_of_each 4
	echo 'fault add op=open,path=c[34]/**,errno=EIO;op=read,p=0,stuck' \
		>"$control"
	[ "$(read_each)" = 12 ]
	[ "$(stat_of '["faults"].__len__()')" = 3 ]
	cp "$mp/.gpemu/config" "$BATS_TEST_TMPDIR/c.yaml"
	echo 'fault clear 2' >"$control"
	[ "$(read_each)" = 4 ]
	for bad in 'fault add op=x,stuck' 'fault add' 'fault clear 2' \
		'fault clear x' fault; do
		run sh -c "echo '$bad' >'$control'"
		[ "$status" -ne 0 ]
	done
	echo 'fault clear' >"$control"
	[ "$(read_each)" = 0 ]
	fusermount3 -u "$mp"
	eventually no_daemon
	gpemu-fs --config "$BATS_TEST_TMPDIR/c.yaml" "$src" "$mp"
	[ "$(read_each)" = 12 ]
	fusermount3 -u "$mp"
	eventually no_daemon
	# flags override the file
	gpemu-fs --config "$BATS_TEST_TMPDIR/c.yaml" --fault p=0,stuck \
		"$src" "$mp"
	[ "$(read_each)" = 0 ]
}

@test "the same seed, the same faults" {
	for seed in 1 1 2; do
		gpemu-fs --seed $seed --fault op=read,p=0.4,errno=EIO \
			"$src" "$mp"
		for f in "$mp"/c?/* "$mp"/c?/*; do
			cat "$f" >/dev/null 2>&1 && echo -n . || echo -n x
		done >"$BATS_TEST_TMPDIR/seen"
		seen="${seen-} $(cat "$BATS_TEST_TMPDIR/seen")"
		fusermount3 -u "$mp"
		eventually no_daemon
	done
	set -- $seen
	[ "$1" = "$2" ]
	[ "$1" != "$3" ]
}

@test "a bad rule is refused with its column" {
	run gpemu-fs --fault 'op=read,evry=3,errno=EIO' "$src" "$mp"
	[ "$status" -eq 2 ]
	[[ $output == *"--fault: column 9: unknown word 'evry'; did you mean 'every'? (known: op path"* ]]
	printf 'fault:\n  - stuck\n  - op=read,errno=EX\n' \
		>"$BATS_TEST_TMPDIR/c.yaml"
	run gpemu-fs --config "$BATS_TEST_TMPDIR/c.yaml" "$src" "$mp"
	[ "$status" -eq 2 ]
	[[ $output == *"c.yaml:3:5: fault: column 15: unknown errno 'EX' (known: EIO"* ]]
	is_not_mounted
}
