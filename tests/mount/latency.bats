#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A read takes the time that the profile gives.

bats_require_minimum_version 1.5.0

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
# bats test_tags=alone
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

# bats test_tags=alone
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

# bats test_tags=alone
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

# bats test_tags=alone
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

# One in three tries, as other programs may have been in the way.
# bats test_tags=alone
@test "gpemu-profile measure --storage finds the profile of a mount" {
	cat >"$BATS_TEST_TMPDIR/lab.yaml" <<-END
	name: lab
	source: a test
	channels: {source: a test, mb_per_s: 100}
	link: {source: a test, mb_per_s: 200}
	iops: {source: a test, per_s: 1000}
	read: {source: a test, latency: {kind: const, value: 5ms}}
	END
	head -c 32M /dev/urandom >"$src/data"
	gpemu-fs -s "$BATS_TEST_TMPDIR/lab.yaml" -p none "$src" "$mp"
	cd "$BATS_TEST_TMPDIR"
	for try in 1 2 3; do
		run -0 gpemu-profile measure --storage "$mp/data" --seconds .15 \
			--state $try.state --output found.yaml --json found.json
		[[ "$output" == *"lookups, opens, lists and how long names are kept, as a file has no names"* ]]
		[[ "$output" != *"are taken from"* ]]
		gpemu-profile measure --storage "$mp/data" --state $try.state \
			--output found.yaml 2>&1 | grep -q " points are taken from $try.state"
		gpemu-profile check ./found.yaml
		gpemu-profile show storage ./found.yaml --json show.json >/dev/null
		python3 - <<-'END' && return 0
		import json
		p = json.load(open("show.json"))
		near = lambda a, b: abs(a / b - 1) < .1
		print(p["channels"]["mb_per_s"], p["link"]["mb_per_s"], p["iops"]["per_s"])
		# the kernel cuts reads at 1 MiB
		assert near(p["channels"]["mb_per_s"], 100)
		assert p["channels"]["stripe"] == "1M"
		assert near(p["link"]["mb_per_s"], 200)
		assert near(p["iops"]["per_s"], 1000)
		points = {q["point"]: q for q in json.load(open("found.json"))["points"]}
		alone = points["random 4.00 KiB, depth 1"]
		assert near(alone["p50_us"], 5040) and near(alone["model_p50_us"], 5040)
		END
	done
	false
}

# bats test_tags=slow
@test "measure --storage finds for how long the kernel keeps names" {
	local keeps try found
	command -v bindfs >/dev/null || skip "bindfs is not installed"
	[ -w /proc/sys/vm/drop_caches ] || skip "only root can drop the kernel's cache of names"
	cd "$BATS_TEST_TMPDIR"
	mkdir lab
	for keeps in 0 1; do
		for try in 1 2 3; do # other programs may have delayed one
			bindfs -o "entry_timeout=$keeps,attr_timeout=$keeps" lab "$mp"
			gpemu-profile measure --storage "$mp" --space 32M --seconds .02 \
				--output "$keeps.$try.yaml"
			fusermount3 -u "$mp"
			found=$(sed -n 's/^  kept: \(.*\)s$/\1/p' "$keeps.$try.yaml")
			case "$keeps $found" in
			"0 0.00" | "1 0.9"* | "1 1.0"* | "1 1.1"*) break ;;
			esac
			[ "$try" -lt 3 ]
		done
	done
	run -0 gpemu-profile show "./1.$try.yaml"
	[[ "$output" == *"names       kept for "*" by a client's kernel"* ]]
	gpemu-profile measure --storage lab --space 32M --seconds .02 --output lab.yaml
	! grep -q '^names:' lab.yaml || false
}

@test "measure --storage removes what it made, also when it is stopped" {
	cd "$BATS_TEST_TMPDIR"
	mkdir lab
	gpemu-profile measure --storage lab --space 24M --seconds 20 \
		--output lab.yaml 2>err &
	pid=$!
	eventually test -s lab.yaml.state
	eventually compgen -G "lab/gpemu-measure.*/data"
	kill -INT $pid
	wait $pid && false
	[ -z "$(ls lab)" ]
	grep -q "stopped; nothing is measured yet" err
	[ ! -e lab.yaml.state ]
	run -1 gpemu-profile measure --storage lab --space 500T --output x.yaml
	[[ "$output" == *"--space is "* ]]
	[ ! -e x.yaml.state ]
	run -2 gpemu-profile measure --storage lab
	[[ "$output" == *"--output or --against is missing"* ]]
}
