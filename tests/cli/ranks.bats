#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Ranks of a run that share a folder of checkpoints resume at one step.

bats_require_minimum_version 1.5.0

setup() {
	BUILD=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}
	TMP=$BATS_TEST_TMPDIR
	CK=$TMP/ck
	mkdir "$TMP/data"
	for i in $(seq 120); do head -c 100 /dev/zero >"$TMP/data/$i"; done
}

# rank R OPTION...: of $WORLD, its record in R.json, its samples in R.log
rank() {
	timeout 60 "$BUILD/gpemu-train" --data "$TMP/data" --prep none --loader sync -b 4 \
		--time-scale 0.001 --rank "$1" --world-size "${WORLD:-2}" --checkpoint-dir "$CK" \
		--checkpoint-every 5 --checkpoint-size 64K --dump-samples "$TMP/$1.log" \
		--json "$TMP/$1.json" "${@:2}"
}

steps() { # R: that have a checkpoint
	ls "$CK/rank-$1" | sed -n 's/checkpoint-0*\([0-9]*\).gpemu/\1/p' | xargs
}

resumed() { # R STEP
	python3 -c "
import json, sys
r = json.load(open('$TMP/$1.json'))['resumed']
assert (r and r['step']) == $2, r
assert r is None or r['ranks'] == ${WORLD:-2}, r"
}

# Each of 120 samples once in each of E epochs, over all ranks.
exactly_once() {
	cat "$TMP"/?.log | awk '{ print $1, $3 }' | sort | uniq -c >"$TMP/seen"
	[ "$(wc -l <"$TMP/seen")" -eq $((120 * $1)) ]
	awk '$1 != 1 { exit 1 }' "$TMP/seen"
}

damage() { # R STEP
	printf x | dd of="$(printf '%s/rank-%d/checkpoint-%010d.gpemu' "$CK" "$1" "$2")" \
		bs=1 seek=30000 conv=notrunc status=none
}

@test "one rank is killed, the others are stopped: all resume at one step, each sample once" {
	for WORLD in 2 4; do
		rm -rf "$CK" "$TMP"/?.log
		python3 - "$BUILD/gpemu-train" "$TMP" "$CK" $WORLD <<-'PY'
			import glob, json, os, random, signal, subprocess, sys, time
			train, tmp, ck, world = sys.argv[1:]
			world = int(world)
			random.seed(world)
			def start(*options):
			    return [subprocess.Popen(
			        [train, '--data', tmp + '/data', '--prep', 'none', '--loader', 'sync',
			         '--workers', '1', '-b', '3', '-e', '4', '--rank', str(r), '--world-size',
			         str(world), '--checkpoint-dir', ck, '--checkpoint-every', '2',
			         '--checkpoint-size', '64K', '--dump-samples', f'{tmp}/{r}.log', '--json',
			         f'{tmp}/{r}.json', '--resume', '--model', 'alexnet',
			         # they do not keep step
			         '--time-scale', str(3 + r * .7), *options],
			        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for r in range(world)]
			def newest(r):
			    names = glob.glob(f'{ck}/rank-{r}/checkpoint-*.gpemu')
			    return max((int(n[-16:-6]) for n in names), default=0)
			kills, last = 0, 0
			while kills < 3:
			    ranks = start()
			    while min(map(newest, range(world))) < last + 2:
			        time.sleep(.01)
			        assert all(p.poll() in (None, 0) for p in ranks), [
			            p.stderr.read() for p in ranks if p.poll()]
			    victim = random.randrange(world)
			    ranks[victim].send_signal(signal.SIGKILL)
			    ranks[victim].wait()
			    time.sleep(random.uniform(0, .2))
			    for p in ranks:
			        p.send_signal(signal.SIGKILL)
			        p.wait()
			    kills += 1
			    sets = [{int(n[-16:-6]) for n in glob.glob(f'{ck}/rank-{r}/checkpoint-*.gpemu')}
			            for r in range(world)]
			    last = max(set.intersection(*sets))
			ranks = start('--time-scale', '.01')
			assert not any(p.wait() for p in ranks), [p.stderr.read() for p in ranks]
			at = [json.load(open(f'{tmp}/{r}.json'))['resumed']['step'] for r in range(world)]
			assert at == [last] * world, (at, last)
		PY
		exactly_once 4
	done
}

@test "ranks that resume one by one take the step that the first chose" {
	WORLD=3
	rank 0 -e 2 --max-steps 7
	rank 1 -e 2 --max-steps 12
	rank 2 -e 2 --max-steps 17
	[ "$(steps 0)/$(steps 1)/$(steps 2)" = "5/5 10/5 10 15" ]
	# the last one completes before the others have begun
	for r in 0 2 1; do
		run rank $r -e 2 --resume
		[ "$status" -eq 0 ]
		[[ $output == *"Resumed from step 5, 5 of epoch 0, of which all 3 ranks have a checkpoint."* ]]
		resumed $r 5
	done
	exactly_once 2
}

@test "the checkpoints of a rank that missed the last resume are older than it" {
	rank 0 --max-steps 5
	rank 1 --max-steps 15
	rank 0 --max-steps 15 --resume # to 15; rank 1 never came
	rank 0 --resume
	resumed 0 5
	rank 1 --resume
	resumed 1 5
	exactly_once 1
}

@test "no rank resumes while another runs" {
	rank 0 --max-steps 5
	rank 1 --max-steps 5
	rank 1 --resume --time-scale 20 3>&- &
	local pid=$!
	until grep -q '"step":5' "$CK/ranks"; do sleep .05; done
	rank 0 --resume # what rank 1 chose
	resumed 0 5
	run rank 0 --resume # again, by itself
	kill "$pid"
	wait "$pid" || true
	[ "$status" -eq 75 ] || [ "$status" -eq 1 ]
	[[ $output == *"rank 1 is still running; stop all ranks before you resume"* ]]
}

@test "a damaged checkpoint of one rank makes all resume at an older step" {
	for r in 0 1; do rank $r --max-steps 12; done
	damage 1 10
	run rank 0 --resume
	[ "$status" -eq 0 ]
	[[ $output == *"$CK/rank-1/checkpoint-0000000010.gpemu: damaged; an older checkpoint is used"* ]]
	rank 1 --resume
	resumed 0 5
	resumed 1 5
	exactly_once 1
}

@test "--resume-step resumes there, or names the rank that lacks the step" {
	rank 0 --checkpoint-keep 0 --max-steps 15
	rank 1 --checkpoint-keep 0 --max-steps 10
	run rank 0 --resume --resume-step 15
	[ "$status" -eq 1 ]
	[[ $output == *"$CK: rank-1/checkpoint-0000000015.gpemu: No such file or directory"* ]]
	run rank 0 --resume --resume-step 7
	[ "$status" -eq 1 ]
	damage 1 10
	run rank 0 --resume --resume-step 10
	[ "$status" -eq 1 ]
	[[ $output == *"rank-1/checkpoint-0000000010.gpemu: damaged"* ]]
	# that changed nothing
	[ "$(steps 0)/$(steps 1)" = "5 10 15/5 10" ]
	rank 0 --resume --resume-step 5 --max-steps 5
	[ "$(steps 0)" = 5 ]
	run rank 1 --resume --resume-step 10
	[ "$status" -eq 1 ]
	[[ $output == *"other ranks resumed from step 5"* ]]
	rank 1 --resume --resume-step 5
	resumed 1 5
	rank 0 --resume
	exactly_once 1
	run rank 0 --resume-step 5
	[ "$status" -eq 2 ]
	[[ $output == *"--resume is required"* ]]
}

@test "no step in common is an error; --resume-step 0 starts over" {
	rank 0 --max-steps 5
	run rank 1 --resume
	[ "$status" -eq 1 ]
	[[ $output == *"no step has a checkpoint of all 2 ranks (rank 1 has none); --resume-step 0"* ]]
	for r in 0 1; do
		rank $r --resume --resume-step 0
		resumed $r None
	done
	exactly_once 1
}

@test "old checkpoints are kept until all ranks have newer ones" {
	rank 0
	[ "$(steps 0)" = "5 10 15" ]
	rank 1
	[ "$(steps 1)" = "10 15" ]
}

@test "another world size, or none, is refused" {
	rank 0 --max-steps 5
	WORLD=3 run rank 1
	[ "$status" -eq 1 ]
	[[ $output == *"--world-size 2; this one has 3"* ]]
	WORLD=1 run rank 0 --resume
	[ "$status" -eq 1 ]
	[[ $output == *"several ranks; this one has --world-size 1"* ]]
	run rank 1 --seed 1 --resume
	[ "$status" -eq 1 ]
	rank 1 --seed 1 --max-steps 5
	run rank 0 --resume
	[ "$status" -eq 1 ]
	[[ $output == *"rank-1/checkpoint-0000000005.gpemu was written by a run with --seed 1; this one has 0"* ]]
	# the new part of a resumed run
	rm -r "$CK"
	for r in 0 1; do rank $r --max-steps 5; done
	rank 0 --resume
	rm -r "$CK/rank-1"
	run rank 1
	[ "$status" -eq 1 ]
	[[ $output == *"has checkpoints of another run"* ]]
}
