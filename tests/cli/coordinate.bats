#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-train --coordinate: jobs that share one sweep over the dataset.
bats_require_minimum_version 1.5.0

setup()
{
	BUILD=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}
	TRAIN=$BUILD/gpemu-train
	cd "$BATS_TEST_TMPDIR" || return
	export XDG_RUNTIME_DIR=$BATS_TEST_TMPDIR/run
	mkdir -m 700 run
	python3 - <<-'PY'
		import os
		os.makedirs('data/class')
		for i in range(200):
		    with open('data/class/%d' % i, 'wb') as f:
		        f.write(os.urandom(1 + 37 * i))
	PY
	pids=()
}

teardown()
{
	kill -9 "${pids[@]}" 2>/dev/null || true
	[ ${#pids[@]} = 0 ] || wait "${pids[@]}" || true
	# nothing of the area is left
	[ -z "$(ls run)" ]
}

# job NAME OPTION...: in the background, with a record and a log of samples
job()
{
	local name=$1
	shift
	"$TRAIN" --data data --index off --model alexnet --gpu a100 -b 8 -e 3 --workers 1 \
		--loader sync --prep none --pin off --json "$name.json" \
		--dump-samples "$name.txt" "$@" >"$name.out" 2>&1 3>&- &
	pids+=($!)
}

all_end_well()
{
	local pid
	for pid in "${pids[@]}"; do wait "$pid" || return; done
}

# check EXPRESSION: `r` is the list of records, `n` that of samples by epoch
check()
{
	python3 - "$@" <<-'PY'
		import collections, json, sys
		names = sys.argv[2:]
		r = [json.load(open(n + '.json')) for n in names]
		c = [x['coordination'] for x in r]
		for n in names:
		    times = collections.Counter(tuple(line.split()[::2])
		        for line in open(n + '.txt') if line[0] != '#')
		    epochs = {e for e, _ in times}
		    assert len(times) == 200 * len(epochs), (n, len(times))
		    assert set(times.values()) == {1}, n
		if not eval(sys.argv[1]):
		    sys.exit('not so: %s\n%s' % (sys.argv[1], json.dumps(c, indent=1)))
	PY
}

@test "coordinate: one sweep an epoch, and every job has every sample once" {
	for i in a b c; do job $i --coordinate hp:jobs=3; done
	all_end_well || { cat ./*.out; false; }
	check "sum(x['batches_made'] for x in c) == 75" a b c
	check "all(x['batches_used'] == 75 and x['jobs_died'] == 0 for x in c)" a b c
	check "all(0 < x['bytes_high_water'] <= x['bytes'] for x in c)" a b c
	check "all(x['totals']['samples'] == 600 for x in r)" a b c
	grep "Coordinated with 2 other jobs (hp): of 75 batches it made" a.out
	# each sample was read once in an epoch, by one of them
	check "sum(x['totals']['bytes_read'] for x in r) == r[0]['totals']['bytes']" a b c
}

@test "coordinate: a killed job is replaced, and the others miss nothing" {
	# slow enough to be killed in the middle
	for i in a b c; do
		job $i --coordinate hp:jobs=3 --prep emulated --image-size 8
	done
	# the log is written in pieces of 4 KiB
	until [ -s a.txt ]; do
		kill -0 "${pids[0]}"
		sleep 0.02
	done
	kill -9 "${pids[0]}"
	wait "${pids[1]}"
	wait "${pids[2]}"
	check "all(x['batches_used'] == 75 and x['jobs_died'] == 1 for x in c)" b c
	check "sum(x['batches_made'] for x in c) < 75" b c
	[ -z "$(ls run)" ]
}

@test "coordinate: a job with fewer epochs leaves, the others go on" {
	job a --coordinate hp:jobs=2 -e 1
	job b --coordinate hp:jobs=2
	all_end_well
	check "[x['batches_used'] for x in c] == [25, 75]" a b
	check "all(x['jobs_died'] == 0 for x in c)" a b
}

@test "coordinate: jobs that need other batches are refused" {
	job a --coordinate hp:jobs=2
	until [ -s run/gpemu-hp.area ]; do sleep 0.05; done
	run -1 "$TRAIN" --data data --index off --model alexnet -b 8 -e 3 --workers 1 \
		--loader sync --prep none --pin off --seed 2 --coordinate hp:jobs=2
	[[ $output == *"need the same --seed: those of hp have 0; this one has 2"* ]]
	run -1 "$TRAIN" --data data --index off --model alexnet -b 16 -e 3 --workers 1 \
		--loader sync --prep none --pin off --coordinate hp:jobs=2
	[[ $output == *"need the same --batch"* ]]
	# another model may share them
	job b --coordinate hp:jobs=2 --model resnet50
	all_end_well
	check "sum(x['batches_made'] for x in c) == 75" a b
}

@test "coordinate: waits for all jobs, but not for ever" {
	run -75 "$TRAIN" --data data --index off --model alexnet -b 8 --workers 1 \
		--prep none --pin off --loader sync --coordinate hp:jobs=2,wait=100ms
	[[ $output == *"--coordinate: hp: 1 of 2 jobs have joined within 100ms: start the others, or give a longer wait="* ]]
	# an interrupt ends the wait
	job a --coordinate hp:jobs=2
	until [ -s run/gpemu-hp.area ]; do sleep 0.05; done
	kill -INT "${pids[0]}"
	status=0
	wait "${pids[0]}" || status=$?
	[ "$status" -eq 1 ]
	grep "interrupted while waiting for the other jobs of hp" a.out
	pids=()
}

@test "coordinate: what cannot be shared is an error" {
	for wrong in "--loader null" "--superbatch 2" "--pin direct" \
		"--resume --checkpoint-dir run/x"; do
		# shellcheck disable=SC2086
		run -2 "$TRAIN" --data data --loader sync --prep none --coordinate hp:jobs=2 $wrong
		[[ $output == *"--coordinate: "* ]]
	done
	run -2 "$TRAIN" --data data --coordinate hp
	[[ $output == *"hp:jobs=N"* ]]
	run -2 "$TRAIN" --data data --coordinate hp:job=2
	[[ $output == *"unknown option 'job'; did you mean 'jobs'? (known: jobs size wait)"* ]]
	run -1 "$TRAIN" --data data --index off --loader sync --prep none --pin off -b 8 \
		--coordinate hp:jobs=2,size=10K
	[[ $output == *"the largest batch has"*"size="* ]]
	run -2 "$TRAIN" --data data --coordinate ../hp:jobs=2
	[[ $output == *"--coordinate: '../hp' is not a valid name"*"NAME:jobs=N"* ]]
}

@test "coordinate: a job alone is not slowed down" {
	job a --coordinate hp:jobs=1
	all_end_well
	check "c[0]['batches_made'] == c[0]['batches_used'] == 75" a
}

@test "coordinate: the jobs of a cell share with each other alone" {
	cat >w.yaml <<-'END'
		name: shared
		question: Do two jobs share their batches?
		dataset: {dir: data}
		base:
		  train: {model: alexnet, batch: 8, epochs: 2, loader: sync, workers: 1,
		          prep: none, pin: off, coordinate: "hp:jobs=2"}
		jobs: {one: {}, two: {train: {model: resnet50}}}
		noise: 100%
		metrics:
		  made: {path: jobs.one.coordination.batches_made + jobs.two.coordination.batches_made}
		expect:
		  - {that: made == 50 +- 0, kind: self}
	END
	# jobs of another experiment, with the same name
	job a --coordinate hp:jobs=2 --seed 9
	until [ -s run/gpemu-hp.area ]; do sleep 0.05; done
	run "$BUILD/gpemu-run" --no-mount w.yaml
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *"1 of 1 checks passed"* ]]
	job b --coordinate hp:jobs=2 --seed 9
	all_end_well
}
