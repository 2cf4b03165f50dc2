#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A read takes the time that the profile gives.

load mount

setup()
{
	common_setup
	[ -z "${GPEMU_SANITIZED-}" ] || skip "a sanitizer takes its own time"
	make_files 1000 3000
	cat >"$BATS_TEST_TMPDIR/10ms.yaml" <<-END
	name: 10ms
	source: a test
	read: {source: a test, latency: {kind: const, value: 10ms}}
	END
}

teardown()
{
	common_teardown
}

# measure STORAGE N MODE: what `readers` prints, on a fresh mount
measure()
{
	gpemu-fs -s "$1" -p none "$src" "$mp"
	readers "$mp" "$2" "$3"
	fusermount3 -u "$mp"
	eventually no_daemon
}

# Every measurement asserts that no read is early by more than 100 us, which a
# busy machine may add to the round trip during calibration. One in five asserts
# 10 us, the clock of the calibration, and a bound on lateness. The means are
# printed by tests/bench/latency.
@test "100 reads of 10 ms in a row: none early, median error under 50 us" {
	for try in 1 2 3 4 5; do
		read -r _ _ _ round_trip <<<"$(measure ideal 100 paced)"
		read -r _ _ least median \
			<<<"$(measure "$BATS_TEST_TMPDIR/10ms.yaml" 100 serial)"
		echo "round trip $round_trip us, median $median us, least $least us"
		awk "BEGIN { exit !($least >= 9900) }"
		awk "BEGIN { exit !($least >= 9990 && $median - 10000 - $round_trip < 50) }" &&
			return 0
	done
	false
}

@test "1000 concurrent reads of 10 ms: at most 15 ms more than without delay" {
	for try in 1 2 3 4 5; do
		read -r plain _ <<<"$(measure ideal 1000 together)"
		read -r all _ least _ \
			<<<"$(measure "$BATS_TEST_TMPDIR/10ms.yaml" 1000 together)"
		echo "without delay $plain ms, with $all ms"
		awk "BEGIN { exit !($least >= 9900) }"
		awk "BEGIN { exit !($least >= 9990 && $all < $plain + 15) }" &&
			return 0
	done
	false
}

@test "10000 concurrent reads of 500 ms: none early, the last soon after, few threads" {
	# 8 with two processors: the number grows with processors, not with
	# reads
	most=$((2 * $(nproc --all) + 4))
	printf 'name: c\nsource: a test\nread: {source: a test, latency: {kind: const, value: 500ms}}\n' \
		>"$BATS_TEST_TMPDIR/500ms.yaml"
	for try in 1 2 3 4 5; do
		for storage in ideal "$BATS_TEST_TMPDIR/500ms.yaml"; do
			plain=${all-}
			gpemu-fs -s "$storage" -p none \
				synth:imagenet,files=10000,content=random "$mp"
			read -r all _ least _ <<<"$(readers "$mp" 10000 together)"
			status=/proc/$(daemon_pid)/status
			threads=$(awk '/^Threads/ { print $2 }' "$status")
			kib=$(awk '/^VmHWM/ { print $2 }' "$status")
			fusermount3 -u "$mp"
			eventually no_daemon
		done
		echo "without delay $plain ms, with $all ms, least $least us," \
			"$threads threads, $kib KiB"
		awk "BEGIN { exit !($least >= 499900) }"
		[ "$threads" -le "$most" ]
		[ "$kib" -le 200000 ]
		awk "BEGIN { exit !($least >= 499990 && $all <= 500 + 1.2 * $plain) }" &&
			return 0
	done
	false
}

@test "64 lookups of 10 ms in one directory run concurrently" {
	sed 's/^read:/lookup:/' "$BATS_TEST_TMPDIR/10ms.yaml" \
		>"$BATS_TEST_TMPDIR/lookup.yaml"
	mkdir "$src/many"
	touch "$src"/many/{1..640}
	gpemu-fs -s "$BATS_TEST_TMPDIR/lookup.yaml" -p none "$src" "$mp"
	python3 - "$mp/many" <<-'END'
	import os, sys, threading, time
	os.stat(sys.argv[1])
	# in one of ten tries: begun before the first, ended after the last
	for n in range(10):
	    start = threading.Barrier(65)
	    ended = [0] * 64
	    def one(i):
	        start.wait()
	        os.stat(f"{sys.argv[1]}/{64 * n + i + 1}")
	        ended[i] = time.monotonic()
	    threads = [threading.Thread(target=one, args=(i,)) for i in range(64)]
	    for t in threads:
	        t.start()
	    t0 = time.monotonic()
	    start.wait()
	    for t in threads:
	        t.join()
	    took = max(ended) - t0
	    print(f"{took * 1e3:.1f} ms")
	    assert took >= .009
	    if took < .020:
	        sys.exit()
	sys.exit("64 lookups take longer than two")
	END
}
