#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-train: checkpoints, their stall, and resuming from them.

load gpus

setup() {
	BUILD=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}
	TMP=$(mktemp -d)
	CK=$TMP/ck
	LOG=$TMP/log
	JSON=$TMP/record.json
}

teardown() {
	rm -rf "$TMP"
}

# N small files, every seventh larger, so that it arrives late.
data() {
	mkdir -p "$TMP/data"
	for i in $(seq "$1"); do
		head -c $((i % 7 ? 100 : 300000)) /dev/zero >"$TMP/data/$i"
	done
}

train() {
	"$BUILD/gpemu-train" --prep none "$@"
}

# Small checkpoints, fast.
quick() {
	train --data "$TMP/data" -b 4 --time-scale 0.001 --checkpoint-dir "$CK" \
		--checkpoint-every 5 --checkpoint-size 64K "$@"
}

# check EXPRESSION: true of the record `j`, its totals `t`.
check() {
	python3 - "$JSON" "$1" <<-'PY'
		import json, sys
		j = json.load(open(sys.argv[1]))
		t, c = j['totals'], j['checkpoints']
		if not eval(sys.argv[2]):
		    sys.exit('not so: %s\n%s' % (sys.argv[2], json.dumps(j, indent=1)))
	PY
}

# Every one of N samples once in each of E epochs.
exactly_once() {
	python3 - "$LOG" "$1" "$2" <<-'PY'
		import collections, sys
		seen = collections.Counter()
		for line in open(sys.argv[1]):
		    epoch, step, sample, path = line.split()
		    seen[int(epoch), int(sample)] += 1
		n, epochs = map(int, sys.argv[2:])
		want = {(e, s): 1 for e in range(epochs) for s in range(n)}
		assert seen == want, [x for x in set(seen) | set(want) if seen[x] != want.get(x)]
	PY
}

# Repeatedly kill a run of 2 epochs over 200 samples, shortly after it has made
# progress, and resume it each time; at least three kills, in one of five tries:
# if the machine stops for a while, a run may complete.
kill_and_resume() {
	python3 - "$BUILD/gpemu-train" "$TMP" "$@" <<-'PY'
		import glob, json, os, random, shutil, signal, subprocess, sys, time
		train, tmp, *options = sys.argv[1:]
		kills, tries = 0, 0
		random.seed(repr(options))
		newest = lambda: max(glob.glob(tmp + '/ck/checkpoint-*.gpemu'), default='')
		while True:
		    before = newest()
		    p = subprocess.Popen([train, '--data', tmp + '/data', '--prep', 'none', '-b', '4',
		                          '-e', '2', '--time-scale', '0.7', '--checkpoint-dir', tmp + '/ck',
		                          '--checkpoint-every', '3', '--checkpoint-size', '1M', '--resume',
		                          '--dump-samples', tmp + '/log', '--json', tmp + '/record.json',
		                          *options], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
		    while p.poll() is None and newest() == before:
		        time.sleep(0.002)
		    time.sleep(random.uniform(0, 0.4))
		    if p.poll() is not None:
		        tries += 1
		        if p.returncode != 0 or kills >= 3 or tries == 5:
		            break
		        p.communicate()
		        shutil.rmtree(tmp + '/ck')
		        os.remove(tmp + '/log')
		        kills = 0
		        continue
		    p.send_signal(signal.SIGKILL)
		    p.communicate()
		    kills += 1
		if p.returncode == 75:
		    sys.exit(75)
		assert p.returncode == 0, p.stderr.read()
		r = json.load(open(tmp + '/record.json'))
		assert kills >= 3, kills
		assert r['resumed']['step'] % 3 == 0 and r['resumed']['step'] > 0
		assert r['totals']['steps'] + r['resumed']['step'] == 100, r['resumed']
	PY
}

@test "killed and resumed, every sample comes exactly once: in order" {
	data 200
	kill_and_resume --loader sync --workers 2
	exactly_once 200 2
}

# bats test_tags=slow
@test "killed and resumed, every sample comes exactly once: in order of arrival" {
	data 200
	for how in sync async; do
		rm -rf "$CK" "$LOG"
		r=0
		kill_and_resume --loader async --workers 2 --superbatch 4 --checkpoint $how || r=$?
		[ $r -eq 75 ] && skip "io_uring is forbidden here"
		[ $r -eq 0 ]
		exactly_once 200 2
	done
}

# bats test_tags=slow
@test "killed and resumed, every sample comes exactly once: batches in any order" {
	data 200
	kill_and_resume --loader threads --workers 2 --queue-depth 8 --superbatch 4
	exactly_once 200 2
}

@test "SIGTERM leaves a checkpoint of the last step, and none is repeated" {
	data 400
	python3 - "$BUILD/gpemu-train" "$TMP" <<-'PY'
		import glob, json, signal, subprocess, sys, time
		train, tmp = sys.argv[1:]
		newest = lambda: max(glob.glob(tmp + '/ck/checkpoint-*.gpemu'), default='')
		command = [train, '--data', tmp + '/data', '--prep', 'none', '--loader', 'threads',
		           '--superbatch', '4', '-b', '4', '--checkpoint-dir', tmp + '/ck',
		           '--checkpoint-every', '10', '--checkpoint-size', '64K',
		           '--dump-samples', tmp + '/log', '--json', tmp + '/record.json']
		p = subprocess.Popen(command + ['--time-scale', '3'], stdout=subprocess.DEVNULL)
		while p.poll() is None and not newest():
		    time.sleep(.002)
		time.sleep(.1)
		p.send_signal(signal.SIGTERM)
		assert p.wait(60) == 1
		steps = json.load(open(tmp + '/record.json'))['totals']['steps']
		assert newest().endswith(f'/checkpoint-{steps:010}.gpemu'), (steps, newest())
		subprocess.run(command + ['--resume', '--time-scale', '.001'], check=True,
		               stdout=subprocess.DEVNULL)
		assert json.load(open(tmp + '/record.json'))['totals']['steps'] == 100 - steps
	PY
	exactly_once 400 1
}

@test "SIGTERM leaves no checkpoint between steps that accumulate gradients" {
	data 400
	# 100 steps of some 60 ms
	run timeout -s TERM 1 "$BUILD/gpemu-train" --prep none --data "$TMP/data" \
		-b 4 --time-scale 3 --ceiling off --checkpoint-dir "$CK" \
		--checkpoint-every 100 --checkpoint-size 64K --accumulate 100
	[ "$status" -eq 124 ]
	[ -z "$(ls "$CK")" ]
}

@test "a resumed run may use another engine, and more epochs" {
	data 50
	quick --loader async --superbatch 4 -e 2 --max-steps 15 --dump-samples "$LOG" || skip "no io_uring"
	quick --resume --loader sync --batching ready --max-steps 20 -e 2 --dump-samples "$LOG" --json "$JSON"
	check "j['resumed']['step'] == 15 and j['resumed']['epoch'] == 1 and t['steps'] == 5"
	quick --resume --loader async --superbatch 3 -e 3 --dump-samples "$LOG" --json "$JSON"
	check "[(e['epoch'], e['steps'], e['samples']) for e in j['epochs']] == [(1, 6, 22), (2, 13, 50)]"
	exactly_once 50 3
	# nothing left to do is no error, for scripts that always resume
	run quick --resume -e 3 --dump-samples "$LOG" --json "$JSON"
	[ "$status" -eq 0 ]
	[[ "$output" == *"nothing left to do"* || "$output" == *"epoch"* ]]
	exactly_once 50 3
}

@test "in-order batches after a resume equal those of an uninterrupted run" {
	data 50
	train --data "$TMP/data" --loader sync -b 4 -e 2 --time-scale 0.001 --dump-samples "$TMP/whole"
	quick --loader sync --max-steps 7 -e 2 --dump-samples "$LOG"
	quick --loader sync --resume -e 2 --dump-samples "$LOG"
	cmp "$TMP/whole" "$LOG"
	# with batches that are left out
	rm -r "$CK"
	train --data "$TMP/data" --loader sync -b 4 -e 2 --drop-last --time-scale 0.001 \
		--rank 1 --world-size 2 --dump-samples "$TMP/whole"
	share() {
		for rank in 0 1; do
			quick --loader sync -e 2 --drop-last --rank $rank --world-size 2 \
				--dump-samples "$LOG.$rank" "$@"
		done
	}
	share --max-steps 5
	share --resume --max-steps 10
	share --resume
	cmp "$TMP/whole" "$LOG.1"
}

@test "damaged checkpoints are recognised, and an older one is used" {
	data 50
	quick --loader sync --checkpoint-keep 0 --max-steps 13 -e 2 --dump-samples "$LOG"
	[ "$(ls "$CK")" = "$(printf 'checkpoint-%010d.gpemu\n' 5 10)" ]
	printf x | dd of="$CK/checkpoint-0000000010.gpemu" bs=1 seek=30000 conv=notrunc status=none
	run quick --loader sync --resume -e 2 --dump-samples "$LOG" --json "$JSON"
	[ "$status" -eq 0 ]
	[[ "$output" == *"checkpoint-0000000010.gpemu: damaged; an older checkpoint is used"* ]]
	check "j['resumed']['step'] == 5"
	exactly_once 50 2
	for f in "$CK"/*; do truncate -s 5000 "$f"; done
	run quick --loader sync --resume
	[ "$status" -eq 1 ]
	[[ "$output" == *"all checkpoints are damaged"* ]]
}

@test "a pipe named as a checkpoint does not block" {
	data 8
	mkdir "$CK"
	mkfifo "$CK/checkpoint-0000000002.gpemu"
	run timeout 60 "$BUILD/gpemu-train" --prep none --data "$TMP/data" -b 4 \
		--time-scale 0.001 --checkpoint-dir "$CK" --resume
	[ "$status" -eq 1 ]
	[[ "$output" == *"checkpoint-0000000002.gpemu: Illegal seek"* ]]
}

@test "checkpoints are not written through a link" {
	data 8
	mkdir "$CK"
	ln -s "$TMP/prey" "$CK/checkpoint.tmp"
	quick --loader sync --checkpoint-every 1 --max-steps 1
	[ ! -e "$TMP/prey" ]
	[ "$(ls "$CK")" = checkpoint-0000000001.gpemu ]
}

@test "checkpoints of another run are refused, with the reason" {
	data 50
	quick --loader sync --max-steps 5
	# refused TEXT OPTIONS
	refused() {
		local text=$1
		shift
		run quick --loader sync "$@"
		[ "$status" -eq 1 ]
		[ "${#lines[@]}" -eq 1 ]
		[[ "$output" == *"$text"* ]]
	}
	refused "has checkpoints of another run" -e 2
	refused "--seed 0; this one has 1" --resume --seed 1
	refused "--batch 4; this one has 5" --resume -b 5
	refused '--order "shuffle"; this one has "torch"' --resume --order torch
	refused '--model "resnet50"; this one has "alexnet"' --resume --model alexnet
	refused "--world-size 1; this one has 2" --resume --world-size 2
	refused '--optimizer "sgd"; this one has "adamw"' --resume --optimizer adamw
	refused '--parallel "ddp"; this one has "fsdp"' --resume --parallel fsdp
	refused "--accumulate 1; this one has 5" --resume --accumulate 5
	echo more >>"$TMP/data/3"
	refused "another dataset" --resume
	head -c 100 /dev/zero >"$TMP/data/3"
	quick --loader sync --resume
	# the log of another run
	rm -r "$CK"
	quick --loader sync --max-steps 5 --dump-samples "$LOG"
	echo short >"$TMP/other"
	refused "not the log of that run" --resume --dump-samples "$TMP/other"
}

@test "without a checkpoint, --resume warns and starts from the beginning" {
	data 50
	run quick --loader sync --resume --dump-samples "$LOG" --json "$JSON"
	[ "$status" -eq 0 ]
	[[ "$output" == *"no checkpoint to resume from"* ]]
	check "j['resumed'] is None and c['written'] == 2"
	exactly_once 50 1
}

@test "checkpoints have the size of the model's state, and are not compressible" {
	train --loader null --model resnet18 --max-steps 4 --checkpoint-every 2 \
		--checkpoint-dir "$CK" --checkpoint-keep 1 --json "$JSON"
	[ "$(ls "$CK")" = checkpoint-0000000004.gpemu ]
	# 11,689,512 parameters, their momentum, and the head
	[ "$(stat -c %s "$CK"/*)" -eq $((11689512 * 8 + 4096)) ]
	[ "$(head -c 20M "$CK"/* | gzip -1 | wc -c)" -gt $((20 * 1024 * 1024 * 99 / 100)) ]
	check "c['state_bytes'] == 11689512 * 8 and c['written'] == 2 and c['last_step'] == 4"
	# no samples to compare, but as many steps
	train --loader null --model resnet18 --max-steps 6 --resume --checkpoint-dir "$CK" --json "$JSON"
	check "t['steps'] == 2 and j['resumed']['step'] == 4 and c is None"
}

# bats test_tags=timed
@test "the stall is elapsed time and not compute time, and smaller when async" {
	# a machine that stops for a while can spoil one run
	for try in 1 2 3 4 5; do
		for how in sync async; do
			rm -rf "$CK"
			train --loader null --model resnet18 -b 64 --max-steps 30 --checkpoint-every 10 \
				--checkpoint-dir "$CK" --checkpoint $how --json "$TMP/$how" >"$TMP/$how.out"
		done
		python3 - "$TMP" <<-'PY' && return
			import json, sys
			sync, later = (json.load(open(sys.argv[1] + '/' + n)) for n in ('sync', 'async'))
			for j in (sync, later):
			    t, c = j['totals'], j['checkpoints']
			    assert t['checkpoints'] == c['written'] == 3
			    assert t['checkpoint_bytes'] == c['bytes'] and t['checkpoint_s'] > 0
			    idle = t['data_wait_s'] + t['transfer_stall_s'] + t['checkpoint_stall_s']
			    assert abs(t['compute_s'] + idle - t['seconds']) < 0.05 * t['seconds'], t
			    assert abs(t['au'] - t['compute_s'] / t['seconds']) < 0.05, t
			assert sync['totals']['checkpoint_stall_s'] >= sync['totals']['checkpoint_s']
			# resnet18's 94 MB leave the device at 12 GB/s: 7.6 ms, and are copied
			assert later['totals']['checkpoint_stall_s'] > 3 * 7e-3
			ok = later['totals']['checkpoint_stall_s'] < 0.7 * sync['totals']['checkpoint_stall_s']
			sys.exit(not ok)
		PY
	done
	false
}

@test "checkpoints that cannot be written end the run" {
	data 50
	for how in sync async; do
		rm -rf "$CK"
		# a limit on the size of files, without its signal
		run bash -c "trap '' XFSZ; ulimit -f 100; exec \"\$@\"" - \
			"$BUILD/gpemu-train" --loader null --max-steps 20 --time-scale 0.001 \
			--checkpoint-dir "$CK" --checkpoint-every 5 --checkpoint-size 1M --checkpoint $how
		[ "$status" -eq 1 ]
		[[ "$output" == *"$CK: cannot write a checkpoint: File too large"* ]]
		[ -z "$(ls "$CK")" ]
	done
	run quick --loader sync --dump-samples /dev/full
	[ "$status" -eq 1 ]
	[[ "$output" == *"/dev/full: No space left on device"* ]]
}

@test "options that require each other" {
	data 8
	run train --loader null --checkpoint-every 5
	[ "$status" -eq 2 ]
	[[ "$output" == *"--checkpoint-dir DIR is required with --checkpoint-every"* ]]
	run train --loader null --resume
	[ "$status" -eq 2 ]
	[[ "$output" == *"--checkpoint-dir DIR is required with --resume"* ]]
	run train --loader null --checkpoint-dir "$CK"
	[ "$status" -eq 2 ]
	run train --loader null --checkpoint sometimes
	[ "$status" -eq 2 ]
	[[ "$output" == *"sometimes"*"sync async"* ]]
	run train --loader null --dump-samples "$LOG"
	[ "$status" -eq 2 ]
	mkdir "$CK"
	run flock "$CK" "$BUILD/gpemu-train" --data "$TMP/data" --prep none -b 4 \
		--checkpoint-dir "$CK" --checkpoint-every 5
	[ "$status" -eq 1 ]
	[[ "$output" == *"another run has its checkpoints there"* ]]
}

@test "the error of an unreadable folder names it, once" {
	[ "$(id -u)" -eq 0 ] || skip "another user is needed"
	data 10
	chmod -R a+rX "$TMP"
	setpriv --reuid 65534 --regid 65534 --clear-groups test -x "$BUILD/gpemu-train" ||
		skip "another user cannot run $BUILD/gpemu-train"
	mkdir "$CK"
	chown 65534 "$CK"
	chmod 400 "$CK"
	run setpriv --reuid 65534 --regid 65534 --clear-groups "$BUILD/gpemu-train" \
		--data "$TMP/data" --index off --prep none -b 2 --checkpoint-dir "$CK" --resume
	[ "$status" -eq 1 ]
	[ "$output" = "gpemu-train: $CK: Permission denied" ]
}

@test "checkpoints go through no link of another user" {
	[ "$(id -u)" -eq 0 ] || skip "another user is needed"
	data 10
	mkdir "$TMP/mine"
	ln -s "$TMP/mine" "$CK"
	train() {
		"$BUILD/gpemu-train" --data "$TMP/data" --index off --prep none -b 2 --pin off \
			--checkpoint-dir "$CK" --checkpoint-every 1 --checkpoint-size 1000 "$@"
	}
	train >"$TMP/out"
	[ -n "$(ls "$TMP/mine")" ]
	rm "$TMP/mine"/*
	chown -h 65534 "$CK"
	for ranks in "" "--rank 0 --world-size 1"; do
		run train $ranks
		[ "$status" -eq 1 ]
		[[ $output == *"$CK: another user's link"* ]]
	done
	[ -z "$(ls "$TMP/mine")" ]
}

@test "a checkpoint leaves the GPU at the cost of its bytes, and needs a size" {
	microsecond
	save() {
		run train --loader null --gpu "$TMP/microsecond.yaml" --model m -b 10 \
			--max-steps 2 --time-scale 0.02 --json "$JSON" \
			--checkpoint-dir "$TMP/sized" --checkpoint-every 1 "$@"
	}
	# a byte takes a microsecond, from either memory; writing takes longer
	save --checkpoint-size 10M --checkpoint async
	[ "$status" -eq 0 ]
	python3 -c "
import json
t = json.load(open('$JSON'))['totals']
assert 2 * 10.48 < t['checkpoint_stall_s'] < 2 * 10.48 + 20 + 2 * t['checkpoint_s'], t"
	rm -r "$TMP/sized"
	save
	[ "$status" -eq 1 ]
	[[ $output == *"microsecond has no number of parameters for m"*"--checkpoint-size"* ]]
	[ ! -e "$TMP/sized" ]
}
