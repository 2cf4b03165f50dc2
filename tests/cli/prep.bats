#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-train: virtual cores, and the options for transforms.

setup() {
	BUILD=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}
	TRAIN=$BUILD/gpemu-train
	DATA=$BUILD/gpemu-data
	TMP=$(mktemp -d)
	JSON=$TMP/record.json
}

teardown() {
	rm -rf "$TMP"
}

# files N: small ones; emulated transforms do not read their bytes
files() {
	python3 - "$TMP/raw" "$1" <<-'PY'
		import os, sys
		os.makedirs(sys.argv[1] + '/class')
		for i in range(int(sys.argv[2])):
		    with open('%s/class/%d' % (sys.argv[1], i), 'wb') as f:
		        f.write(b'x' * (1 + i % 50))
	PY
}

# check EXPRESSION: true of the record `j` and its totals `t`
check() {
	python3 - "$JSON" "$1" <<-'PY'
		import json, sys
		j = json.load(open(sys.argv[1]))
		t = j['totals']
		if not eval(sys.argv[2]):
		    sys.exit('not so: %s\n%s' % (sys.argv[2], json.dumps(j, indent=1)))
	PY
}

# A GPU that takes 8000 images/s and more; samples by the thousand.
emulate() {
	"$TRAIN" --data "$TMP/raw" --prep emulated --model alexnet --gpu a100 -b 64 \
		--pin off --json "$JSON" "$@"
}

# rate CORES PER_CORE ARGS...: the images/s of the cores, within 2 %, and the
# GPU waits for them; one of five tries, as the machine may stop
rate() {
	local cores=$1 each=$2 try
	shift 2
	for try in 1 2 3 4 5; do
		emulate --cores "$cores" "$@"
		[ -z "${GPEMU_SANITIZED-}" ] || return 0
		check "abs(t['samples_per_s'] / ($each * $cores) - 1) < 0.02" &&
			check "t['prep_stall_s'] > 0.9 * t['data_wait_s']" &&
			check "t['data_wait_s'] + t['transfer_stall_s'] > 0.15 * t['seconds']" &&
			check "abs(t['prep_samples_per_core_s'] / $each - 1) < 0.001" &&
			return 0
	done
	false
}

have_uring() {
	emulate --loader async --cores 64 --max-steps 1 >/dev/null 2>&1
}

# bats test_tags=timed,slow
@test "two threads are 24 cores of 155 images/s" {
	files 6144
	have_uring || skip "io_uring is not available"
	rate 24 155 --loader async --workers 2
	check "j['prep']['kind'] == 'EMULATED' and j['prep']['cores'] == 24"
	check "j['prep']['profile']['name'] == 'pytorch-pillow'"
	check "j['config']['workers'] == 2"
	# it takes no CPU time
	[ -n "${GPEMU_SANITIZED-}" ] || check "t['cpu_s'] < t['wall_seconds']"
}

# cores_ten_times_slower: into $TMP/slow.yaml, so that what the machine takes
# for reads and to wake counts little
cores_ten_times_slower() {
	cat >"$TMP/slow.yaml" <<-'END'
		name: slow
		source: test
		verified: true
		sample: {kind: const, value: 64.52ms}
	END
}

# bats test_tags=timed,slow
@test "one core or three, shared by two threads or one per thread" {
	cores_ten_times_slower
	files 192
	set -- -b 16 --prep-profile "$TMP/slow.yaml"
	if have_uring; then
		rate 1 15.5 "$@" --loader async --workers 2 --max-steps 4
		rate 3 15.5 "$@" --loader async --workers 2
	fi
	rate 3 15.5 "$@" --loader sync
	check "j['config']['workers'] == 3 and j['prep']['cores'] == 3"
}

# bats test_tags=timed,slow
@test "24 workers that own their batches, however late each wakes" {
	# 24 batches are done at a time, and the GPU takes a while for the last
	# of them
	cores_ten_times_slower
	files 6144
	rate 24 15.5 --loader sync -b 16 --time-scale 0.1 --prep-profile "$TMP/slow.yaml"
}

# bats test_tags=timed,slow
@test "faster cores wait for the GPU, and are not reported as the bottleneck" {
	files 640
	# a machine that stops for seconds keeps the GPU waiting
	for try in 1 2 3 4 5; do
		run emulate --loader sync --cores 24 --model resnet50 --gpu k80
		[ "$status" -eq 0 ]
		check "t['samples_per_s'] < 100"
		[[ "$output" == *"Bottleneck: the GPU"* ]] || continue
		[ -z "${GPEMU_SANITIZED-}" ] || return 0
		check "t['au'] > 0.99" && return 0
	done
	false
}

# bats test_tags=timed
@test "--control: cores come and go while it runs" {
	files 3072
	# held open: nothing is lost before it reads
	mkfifo "$TMP/control"
	exec 7<>"$TMP/control"
	printf 'set cores 8\nset cores none\nset kettle 3\nset cores 0\n' >&7
	emulate --cores 1 --loader threads --workers 2 --ceiling off --time-scale 0.5 \
		--control "$TMP/control" --steps "$TMP/steps" 2>"$TMP/err" 3>&- 7>&- &
	sleep 0.4
	echo 'set cores 4' >&7
	wait $!
	exec 7>&-
	grep -q "control: set cores: 'none' is not a number of cores" "$TMP/err"
	grep -q "control: unknown command: use 'set cores N'" "$TMP/err"
	check "[c['cores'] for c in j['prep']['cores_set']] == [8, 4]"
	check "j['prep']['cores'] == 1 and t['samples'] == 3072"
	# the queue of the eight is worked off by four: 155 images/s each
	[ -n "${GPEMU_SANITIZED-}" ] || python3 - "$JSON" "$TMP/steps" <<-'PY'
		import csv, json, sys
		first, then = (c['at_s'] for c in json.load(open(sys.argv[1]))['prep']['cores_set'])
		done = [float(r['complete_s']) for r in csv.DictReader(open(sys.argv[2]))]
		after = [s for s in done if s > then]
		rate = len(after) * 64 / (max(after) - then)
		before = (len(done) - len(after)) * 64 / (then - first)
		print(before, rate)
		assert abs(rate / (4 * 155) - 1) < .1 and before > 1.2 * rate
	PY
	for loader in sync null; do
		run "$TRAIN" --data "$TMP/raw" --loader $loader --prep emulated \
			--control "$TMP/control"
		[ "$status" -eq 2 ]
		[[ "$output" == *"--control: "* ]]
	done
}

@test "--control: nobody else reads the commands, or writes them" {
	files 64
	emulate --loader threads --workers 2 --control "$TMP/control"
	[ "$(stat -c %A "$TMP/control")" = prw------- ]
	[ "$(id -u)" -eq 0 ] || skip "not root"
	chown 65534 "$TMP/control"
	run emulate --loader threads --workers 2 --control "$TMP/control"
	[ "$status" -eq 1 ]
	[[ "$output" == *"control belongs to user 65534"* ]]
}

@test "a user's profile: a distribution, and a cost per byte" {
	mkdir -p "$TMP/raw/class"
	for i in $(seq 64); do head -c 100000 /dev/zero >"$TMP/raw/class/$i"; done
	cat >"$TMP/own.yaml" <<-'END'
		name: own
		source: test
		verified: true
		per_mb: 20ms
		sample: {kind: uniform, min: 1ms, max: 3ms}
	END
	emulate --loader sync --cores 8 --prep-profile "$TMP/own.yaml" --time-scale 0.5
	check "3 <= t['prep_ms']['p50'] <= 5 and t['prep_ms']['max'] <= 5.05"
	check "t['prep_ms']['mean'] > 3.5 and t['bytes'] == 6400000"
	check "t['prep_ms']['p99'] > t['prep_ms']['p50'] * 1.1"
	echo "sample: {kind: const, value: 3}" >"$TMP/bad.yaml"
	run emulate --loader sync --prep-profile "$TMP/bad.yaml"
	[ "$status" -eq 1 ]
	[[ "$output" == *"bad.yaml:1:"* ]]
	run emulate --loader sync --prep-profile fastest
	[ "$status" -eq 2 ]
	[[ "$output" == *"fastest"*"ffcv"* ]]
}

@test "incompatible options are rejected" {
	files 4
	run "$TRAIN" --data "$TMP/raw" --prep decode --cores 3
	[ "$status" -eq 2 ]
	[[ "$output" == *"--cores needs --prep emulated"* ]]
	run "$TRAIN" --data "$TMP/raw" --prep none --prep-profile ffcv
	[ "$status" -eq 2 ]
	[[ "$output" == *"--prep-profile needs --prep emulated"* ]]
	run emulate --loader sync --cores 3 --workers 2
	[ "$status" -eq 2 ]
	[[ "$output" == *"each worker is a core"* ]]
	run emulate --loader sync --prep-output fp16
	[ "$status" -eq 2 ]
	[[ "$output" == *"fp16"*"uint8"* ]]
	run emulate --cores 1025
	[ "$status" -eq 2 ]
	run "$TRAIN" --list prep_profile
	[[ "$output" == *pytorch-pillow* ]]
}

@test "unreadable samples take no core time and complete their batch" {
	files 128
	"$TRAIN" --data "$TMP/raw" --loader sync --prep none -b 64 --time-scale 0.01 \
		--pin off --json "$JSON" >/dev/null
	chmod -R u+w "$TMP/raw"
	for loader in sync async; do
		# a link to nowhere is listed, and fails when it is read
		for i in $(seq 0 69); do ln -sf nowhere "$TMP/raw/class/$i"; done
		run emulate --loader "$loader" --cores 4 --order sequential --bad-samples 70
		[ "$status" -eq 75 ] && continue
		[ "$status" -eq 0 ]
		check "t['failed_samples'] == 70 and t['steps'] == 2"
	done
}

@test "pinned memory stays within its budget, and one batch must fit" {
	mkdir -p "$TMP/raw/class"
	# batches of four: 40 KB, one of 640 KB that all buffers make room for
	for i in $(seq 100 163); do head -c 10000 /dev/zero >"$TMP/raw/class/$i"; done
	head -c 610000 /dev/zero >"$TMP/raw/class/130"
	pin() {
		"$TRAIN" --data "$TMP/raw" --loader sync --prep none --order sequential -b 4 \
			--time-scale 0.05 --json "$JSON" "$@"
	}
	run pin --pin-budget 700K
	[ "$status" -ne 75 ] || skip "no memory to lock"
	[ "$status" -eq 0 ]
	check "j['pin']['budget_bytes'] == 700 * 1024 and 640000 < j['pin']['pinned_bytes'] <= 700 * 1024"
	check "t['failed_samples'] == 0 and t['bytes'] == 63 * 10000 + 610000"
	run pin --pin-budget 400K
	[ "$status" -eq 1 ]
	[[ "$output" == *"--pin-budget allows 400"* ]]
	pin --pin off
	check "j['pin'] == dict(on=False, mode='off', budget_bytes=2**30, pinned_bytes=0)"
}

@test "samples are read into pinned memory, and the GPU copies at its rate" {
	mkdir -p "$TMP/raw/class"
	for i in $(seq 100 163); do head -c 10000 /dev/zero >"$TMP/raw/class/$i"; done
	pin() {
		"$TRAIN" --data "$TMP/raw" --loader sync --prep none --order sequential -b 4 \
			--time-scale 0.05 --json "$JSON" "$@"
	}
	run pin --pin direct
	[ "$status" -ne 75 ] || skip "no memory to lock"
	[ "$status" -eq 0 ]
	check "j['pin']['mode'] == 'direct' and j['pin']['on'] and j['config']['pin'] == 'direct'"
	check "j['pin']['pinned_bytes'] > 2 * 40000 and t['pin_s'] == 0"
	direct=$(python3 -c "import json; print(json.load(open('$JSON'))['totals']['transfer_s'])")
	pin --pin on
	check "abs(t['transfer_s'] - $direct) < 1e-6 and t['pin_s'] > 0"
	# the pageable rate; the real copies can only add to it
	pin --pin off
	check "t['transfer_s'] > 1.5 * $direct and t['pin_s'] == 0"
	# room for one window of 40 KB at a time
	pin --pin direct --pin-budget 50K
	check "40000 < j['pin']['pinned_bytes'] <= 50 * 1024 and t['bytes'] == 640000"
	run pin --pin direct --pin-budget 30K
	[ "$status" -eq 1 ]
	[[ "$output" == *"--pin-budget allows 30"* ]]
	run pin --pin sometimes
	[ "$status" -eq 2 ]
	[[ "$output" == *"sometimes"*"on off direct"* ]]
	run emulate --loader sync --pin direct
	[ "$status" -eq 2 ]
	[[ "$output" == *"--pin direct"*"emulated"* ]]
}

# the least that any transfer took, in emulated ms
least_transfer() {
	python3 - "$TMP/steps" <<-'PY'
		import csv, sys
		rows = list(csv.DictReader(open(sys.argv[1])))
		print(min(float(r['copy_end_s']) - float(r['copy_start_s']) for r in rows) * 1e3)
	PY
}

@test "without pinned memory, batches are really staged" {
	mkdir -p "$TMP/raw/class"
	# 64 MB a batch: no machine copies that within the 0.2 ms (wall) that
	# the profile wants of so many bytes at this scale
	for i in $(seq 8); do head -c 16000000 /dev/zero >"$TMP/raw/class/$i"; done
	stage() {
		"$TRAIN" --data "$TMP/raw" --loader sync --workers 1 --prep none -b 4 \
			--model alexnet --gpu a100 --time-scale 0.01 --steps "$TMP/steps" \
			--json "$JSON" "$@"
	}
	run stage --pin direct
	[ "$status" -ne 75 ] || skip "no memory to lock"
	direct=$(least_transfer)
	stage --pin off
	# 64 MB at 50 GB/s are 1.3 ms of wall time, a hundred times that here
	python3 -c "import sys; sys.exit(not $(least_transfer) > 100 > 10 * $direct)"
}

# bats test_tags=slow
@test "transformed images differ little from Pillow's, at each scale" {
	/usr/bin/python3 -c 'import numpy, PIL' ||
		skip "python3-pil or python3-numpy is not installed"
	"$DATA" make --files 12 --classes 1 "$TMP/jpeg" >/dev/null
	compare="$BATS_TEST_DIRNAME/compare-pixels $BUILD/tests/cli/pixels"
	run $compare 224 6 "$TMP"/jpeg/class_*/*
	[ "$status" -eq 0 ]
	[[ "$output" == *"      8 "* ]]
	run $compare 40 6 "$TMP"/jpeg/class_*/*
	[ "$status" -eq 0 ]
	[[ "$output" == *"      2 "*"      4 "* ]]
	run $compare 12 6 "$TMP"/jpeg/class_*/*
	[ "$status" -eq 0 ]
	[[ "$output" == *"      1 "* ]]
}

# bats test_tags=slow
@test "the same odd images are readable as by Pillow, with the same pixels" {
	/usr/bin/python3 -c 'import numpy, PIL' ||
		skip "python3-pil or python3-numpy is not installed"
	run "$BATS_TEST_DIRNAME/odd-images" "$BUILD/tests/cli/pixels" "$TMP"
	[ "$status" -eq 0 ]
}

@test "the size and the type of a transformed image" {
	"$DATA" make --files 8 --scale-bytes 0.1 "$TMP/jpeg" >/dev/null
	run "$TRAIN" --data "$TMP/jpeg" --loader sync -b 4 --time-scale 0.1 --image-size 100 \
		--prep-output uint8 --json "$JSON"
	[ "$status" -eq 0 ] || [ "$status" -eq 75 ]
	[[ "$output" == *"samples/s per core, on"*"threads"* ]]
	check "j['prep'] == dict(j['prep'], kind='REAL', output='uint8', image_size=100, sample_bytes=30000, profile=None)"
	check "t['prep_samples_per_core_s'] > 0"
}
