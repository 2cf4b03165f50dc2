#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-fs --selftest: profiles that it confirms or refutes, and what it leaves
# behind.

load mount

setup()
{
	common_setup
	[ -z "${GPEMU_SANITIZED-}" ] || skip "a sanitizer takes its own time"
	export TMPDIR=$BATS_TEST_TMPDIR
}

teardown()
{
	common_teardown
}

# no mount, no folder, no process
nothing_left()
{
	[ -z "$(grep " $BATS_TEST_TMPDIR" /proc/mounts)" ]
	[ -z "$(ls -d "$BATS_TEST_TMPDIR"/gpemu-selftest* 2>/dev/null)" ]
}

# one_of_five PROFILE: a busy machine makes the mount late at times
one_of_five()
{
	for try in 1 2 3 4 5; do
		run gpemu-fs --selftest -s "$1" --json "$TMPDIR/j.json"
		echo "$output"
		[ "$status" -le 1 ]
		nothing_left
		[ "$status" -ne 0 ] || return 0
	done
	false
}

# bats test_tags=alone
@test "a slow device matches its profile" {
	cat >"$TMPDIR/slow.yaml" <<-END
	name: slow
	source: a test
	channels: {source: a test, mb_per_s: 200}
	link: {source: a test, mb_per_s: 400}
	iops: {source: a test, per_s: 2000}
	lookup: {source: a test, latency: {kind: uniform, min: 16ms, max: 24ms}}
	read: {source: a test, occupancy: {kind: const, value: 4ms},
	       latency: {kind: gamma, mean: 16ms, shape: 9}}
	END
	one_of_five "$TMPDIR/slow.yaml"
	# the closed forms of this profile, from the record
	python3 - "$TMPDIR/j.json" <<-'END'
	import json, sys
	j = json.load(open(sys.argv[1]))
	lookup, read, rate, stream = j["lines"]
	assert j["passed"] and lookup["operation"] == "lookup"
	assert abs(lookup["requested_us"]["mean"] - 20000) < 1
	assert abs(read["requested_us"]["mean"] - (20000 + 4096 / 200)) < 1
	assert read["ks"] < .1
	assert rate["requested"] == 2000
	assert abs(stream["requested"] - 400) < .1
	END
}

# bats test_tags=alone,slow
@test "a disk that sorts its queue is tested with a full queue" {
	cat >"$TMPDIR/disk.yaml" <<-END
	name: disk
	source: a test
	channels: {source: a test, count: 1}
	read: {source: a test, seek: {kind: const, value: 2ms},
	       reorder: [[1, 1], [8, 0.5], [16, 0.25]]}
	random_reads: [[64K, 32.768]]
	END
	one_of_five "$TMPDIR/disk.yaml"
	python3 - "$TMPDIR/j.json" <<-'END'
	import json, sys
	alone, published, rate = json.load(open(sys.argv[1]))["lines"]
	assert abs(alone["requested_us"]["mean"] - 2000) < 1
	assert published["kind"] == "published_mb_per_s"
	assert abs(rate["requested"] - 2000) < .1 and rate["streams"] > 16
	END
}

# bats test_tags=alone
@test "a device faster than the mount is slowed down until the mount can follow" {
	one_of_five nvme
	python3 - "$TMPDIR/j.json" <<-'END'
	import json, sys
	rate = [x for x in json.load(open(sys.argv[1]))["lines"]
	        if x["kind"] == "operations_per_s"][0]
	assert rate["time_scale"] > 1
	assert rate["requested"] < .5 * rate["mount_alone"]
	END
}

# bats test_tags=slow
@test "a mount that misses the profile gives exit status 1" {
	# ten million reads a second
	cat >"$TMPDIR/fast.yaml" <<-END
	name: fast
	source: a test
	iops: {source: a test, per_s: 10000000}
	END
	run gpemu-fs --selftest --time-scale 1 -s "$TMPDIR/fast.yaml"
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $output == *"faster than the mount can follow"* ]]
	[[ $output == *MISS* ]]
	nothing_left
}

@test "an interrupted test leaves nothing mounted" {
	for signal in TERM INT; do
		env --default-signal=INT gpemu-fs --selftest -s hdd \
			>"$TMPDIR/out" 2>&1 3>&- &
		pid=$!
		pids="${pids-} $pid"
		eventually grep -q "without a device" "$TMPDIR/out"
		kill -$signal $pid
		status=0
		wait $pid || status=$?
		[ "$status" -ne 0 ]
		grep -q "interrupted by a signal" "$TMPDIR/out"
		nothing_left
	done
}

@test "the mount of a killed test ends with it" {
	gpemu-fs --selftest -s hdd >"$TMPDIR/out" 2>&1 3>&- &
	pid=$!
	eventually grep -q "without a device" "$TMPDIR/out"
	kill -9 $pid
	wait $pid || true
	eventually eval '! grep -q " $BATS_TEST_TMPDIR" /proc/mounts'
}

@test "a given source and mount point; a too small source is reported" {
	make_files 20 20000
	run gpemu-fs --selftest -s ideal "$src" "$mp"
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *"source $src"* ]]
	[ -d "$mp" ]
	is_not_mounted
	rm -r "$src"/c?
	echo x >"$src/x"
	run gpemu-fs --selftest -s ideal "$src"
	[ "$status" -eq 1 ]
	[[ $output == *"contains no file of 4 KiB or more"* ]]
	run gpemu-fs --selftest -s nope
	[ "$status" -eq 2 ]
	[[ $output == *"unknown storage profile 'nope'"* ]]
	nothing_left
}
