#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Requests over io_uring. With enable_uring on, all other files here are served
# over it too.

load mount

switch=/sys/module/fuse/parameters/enable_uring

setup()
{
	common_setup
	make_files 20 60000
}

teardown()
{
	common_teardown
}

need_uring()
{
	[ -e $switch ] || skip "no FUSE over io_uring (Linux 6.14)"
	[ "$(cat $switch)" = Y ] || skip "$switch is N"
}

# delayed TIME: a device with this latency of reads
delayed()
{
	cat >"$BATS_TEST_TMPDIR/delayed.yaml" <<-END
	name: delayed
	source: a test
	read: {source: a test, latency: {kind: const, value: $1}}
	END
	echo "$BATS_TEST_TMPDIR/delayed.yaml"
}

is_held()
{
	[ "$(stat_of '["faults"][0]["held"]')" = 1 ]
}

transport()
{
	stat_of '["transport"]'
}

@test "--transport chooses, and the stats show the choice" {
	need_uring
	for option in '' '--transport auto' '--transport uring'; do
		gpemu-fs $option "$src" "$mp"
		[ "$(transport)" = uring ]
		fusermount3 -u "$mp"
	done
	gpemu-fs --transport dev "$src" "$mp"
	[ "$(transport)" = dev ]
	fusermount3 -u "$mp"
	run gpemu-fs --transport pigeon "$src" "$mp"
	[ "$status" -eq 2 ]
	[[ $output == *"unknown --transport 'pigeon' (known: auto dev uring)"* ]]
}

@test "no memory for queues: falls back to /dev/fuse" {
	need_uring
	[ -z "${GPEMU_SANITIZED-}" ] || skip "a sanitizer needs the addresses"
	# a queue's first entries take 256 MiB of addresses
	run sh -c "ulimit -v 600000 && exec gpemu-fs --transport uring '$src' '$mp'"
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *"Cannot allocate memory; using /dev/fuse"* ]]
	[ "$(transport)" = dev ]
	[ "$(tree_sum "$src")" = "$(tree_sum "$mp")" ]
}

@test "the same bytes, and listings of folders with many files" {
	need_uring
	mkdir "$src/many"
	(cd "$src/many" && touch {1..3000})
	head -c 9000001 /dev/urandom >"$src/large"
	want=$(tree_sum "$src")
	names=$(cd "$src" && find . | sort)
	for options in '-p none' '-c 100% --hit-path reply' '-c 100%'; do
		gpemu-fs --transport uring $options "$src" "$mp"
		for pass in 1 2; do
			[ "$(tree_sum "$mp")" = "$want" ]
			[ "$(cd "$mp" && find . | sort)" = "$names" ]
			ls -l "$mp/many" >/dev/null
		done
		fusermount3 -u "$mp"
		eventually no_daemon
	done
}

@test "10000 concurrent reads from one processor: all are answered" {
	need_uring
	[ -z "${GPEMU_SANITIZED-}" ] || skip "a sanitizer takes its own time"
	# if each waited for the answer before, they would take four seconds
	gpemu-fs --transport uring -s "$(delayed 2s)" -p none \
		synth:imagenet,files=10000,content=random "$mp"
	for try in 1 2 3 4 5; do
		read -r all _ least _ \
			<<<"$(taskset -c 0 readers "$mp" 10000 together)"
		echo "all $all ms, least $least us"
		awk "BEGIN { exit !($least >= 1999900) }"
		awk "BEGIN { exit !($all < 3900) }" && return 0
	done
	false
}

@test "the memory of many long answers is freed" {
	need_uring
	[ -z "${GPEMU_SANITIZED-}" ] || skip "a sanitizer keeps memory"
	gpemu-fs --transport uring -s "$(delayed 500ms)" -p none \
		synth:unet3d,files=8,content=random "$mp"
	python3 - "$mp" <<-'END'
	import os, sys, threading
	path = next(os.path.join(d, f[0]) for d, _, f in os.walk(sys.argv[1]) if f)
	fd = os.open(path, os.O_RDONLY)
	def one(i):
	    assert len(os.pread(fd, 1 << 20, i << 20)) == 1 << 20
	threads = [threading.Thread(target=one, args=(i % 20,)) for i in range(400)]
	for t in threads:
	    t.start()
	for t in threads:
	    t.join()
	END
	# the mappings of this length, which no other has
	few() {
		kib=$(awk '/^Size:/ { long = $2 > 200000 }
			/^Rss:/ && long { sum += $2 }
			END { print sum }' "/proc/$(daemon_pid)/smaps")
		[ "$kib" -gt 0 ] && [ "$kib" -le 70000 ]
	}
	eventually few || status=$?
	echo "$kib KiB"
	[ "${status:-0}" -eq 0 ]
}

@test "a long write arrives in one piece and gets its error" {
	need_uring
	gpemu-fs --transport uring "$src" "$mp"
	run dd if=/dev/zero of="$mp/.gpemu/control" bs=1M count=2 conv=notrunc
	[ "$status" -ne 0 ]
	echo epoch >"$mp/.gpemu/control"
	cmp "$src/c0/f00000" "$mp/c0/f00000"
}

@test "a killed reader of a stuck file dies; shutdown with reads pending" {
	need_uring
	gpemu-fs -f --transport uring --fault op=read,path=f00000,stuck \
		"$src" "$mp" 3>&- &
	pid=$!
	pids="${pids-} $pid"
	eventually is_mounted
	cat "$mp/c0/f00000" 3>&- &
	reader=$!
	eventually is_held
	kill $reader
	status=0
	wait $reader || status=$?
	[ "$status" -eq 143 ]
	cat "$mp/c0/f00000" 2>/dev/null 3>&- &
	reader=$!
	eventually is_held
	start=$SECONDS
	kill $pid
	wait $pid
	[ $((SECONDS - start)) -le 20 ] # else it hangs
	is_not_mounted
	status=0
	wait $reader || status=$?
	[ "$status" -eq 1 ]
}

@test "kill -9 with reads pending, and the next mount there" {
	need_uring
	gpemu-fs --transport uring -s "$(delayed 1000s)" "$src" "$mp"
	pid=$(daemon_pid)
	for f in "$mp"/c?/*; do
		cat "$f" >/dev/null 2>&1 3>&- &
		readers="${readers-} $!"
	done
	sleep .3
	kill -9 "$pid"
	for reader in $readers; do
		status=0
		wait $reader || status=$?
		[ "$status" -eq 1 ]
	done
	gpemu-fs --transport uring "$src" "$mp"
	[ "$(transport)" = uring ]
	[ "$(tree_sum "$src")" = "$(tree_sum "$mp")" ]
}

@test "what is changed over io_uring is as on the file system below" {
	need_uring
	mkdir "$BATS_TEST_TMPDIR/dir" "$BATS_TEST_TMPDIR/beside"
	gpemu-fs --transport uring --writable "$BATS_TEST_TMPDIR/dir" "$src" "$mp"
	[ "$(stat_of '["transport"]')" = uring ]
	mkdir "$mp/c0/work"
	python3 "$BATS_TEST_DIRNAME/churn" "$mp/c0/work" \
		"$BATS_TEST_TMPDIR/beside" 4 2000
}
