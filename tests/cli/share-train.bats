#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-train --gpu-server: the time and memory of shared GPUs.

load gpud

# bats test_tags=timed
@test "a single client trains as on a private GPU; the record names the server" {
	for try in 1 2 3 4 5; do
		gpud --gpu p100 --scheduler rr
		train one --model resnet50 -b 64 --max-steps 20
		wait "$JOB"
		gpud_end
		check one "j['sharing']['scheduler'] == 'rr' and j['sharing']['share'] == 'time'"
		check one "j['sharing']['gpu'] == 'Tesla P100-PCIE-16GB' and j['sharing']['queue_s'] == 0"
		check one "j['profile']['gpu'] == 'Tesla P100-PCIE-16GB' and j['totals']['steps'] == 20"
		grep -q 'Shared GPU' "$TMP/one.out"
		[ -z "$GPEMU_SANITIZED" ] || return 0
		"$TRAIN" --loader null --model resnet50 -b 64 --max-steps 20 \
			--gpu p100 --pin off --time-scale "$SCALE" --json "$TMP/own.json"
		python3 - "$TMP" <<-'PY' && return
			import json, sys
			one, own = (json.load(open('%s/%s.json' % (sys.argv[1], n)))['totals']
			            for n in ('one', 'own'))
			a, b = one['compute_s'], own['compute_s']
			assert abs(a / b - 1) < 1e-6, (a, b)
			a, b = one['step_ms']['mean'], own['step_ms']['mean']
			print(a, b)
			sys.exit(abs(a / b - 1) > .01)
		PY
	done
	false
}

# same A B: records of a run on a server and on GPUs of its own agree, in the
# mean of a step within 1 %
same() {
	python3 - "$TMP" "$@" <<-'PY'
		import json, sys
		a, b = (json.load(open('%s/%s.json' % (sys.argv[1], n)))['totals']
		        for n in sys.argv[2:])
		for key in 'steps', 'samples':
		    assert a[key] == b[key], (key, a[key], b[key])
		for key in 'compute_s', 'allreduce_s':
		    assert abs(a[key] - b[key]) <= 1e-6 * b[key], (key, a[key], b[key])
		a, b = a['step_ms']['mean'], b['step_ms']['mean']
		print(a, b)
		sys.exit(abs(a / b - 1) > .01)
	PY
}

# bats test_tags=timed
@test "several GPUs train as those of a process, the last step in unequal parts" {
	local job=(--model vgg16 -b 32 --gpus 3 --samples 971)

	for try in 1 2 3 4 5; do
		gpud --gpu p100 --gpus 4
		train three "${job[@]}"
		wait "$JOB"
		gpud_end
		check three "j['sharing']['gpus'] == [0, 1, 2] and len(j['epochs'][0]['gpus']) == 3"
		check three "j['totals']['steps'] == 11 and j['totals']['allreduce_s'] > .01"
		check three "all(abs(sum(g[k + '_s'] for k in ('compute', 'data_wait', 'transfer_stall', 'barrier_wait', 'allreduce')) / j['epochs'][0]['seconds'] - 1) < .05 for g in j['epochs'][0]['gpus'])"
		grep -q 'Shared GPUs' "$TMP/three.out"
		"$TRAIN" --loader null "${job[@]}" --gpu p100 --pin off \
			--time-scale "$SCALE" --json "$TMP/own.json"
		same three own && return
		[ -z "$GPEMU_SANITIZED" ] || return 0
	done
	false
}

@test "a job takes as many GPUs as came with it" {
	gpud --gpus 4
	export GPEMU_GPU_SERVER=$SOCKET GPEMU_GPUS=2
	common=(--loader null --time-scale "$SCALE" --pin off --max-steps 2)
	"$TRAIN" "${common[@]}" --json "$TMP/a.json"
	check a "len(j['sharing']['gpus']) == 2 and j['config']['gpus'] == 2"
	"$TRAIN" "${common[@]}" --gpus 1 --json "$TMP/a.json"
	check a "len(j['sharing']['gpus']) == 1"
	run "$TRAIN" "${common[@]}" --gpus 5
	[ "$status" -ne 0 ]
	[[ $output == *'5 GPUs requested, but the server has 4'* ]]
	GPEMU_GPUS=65 run "$TRAIN" "${common[@]}"
	[ "$status" -eq 2 ]
	[[ $output == *'GPEMU_GPUS=65: not 1 to 64'* ]]
	run "$TRAIN" "${common[@]}" --parallel dp
	[ "$status" -eq 2 ]
	[[ $output == *'--parallel dp: not with --gpu-server'* ]]
}

@test "the largest batch that fits a grant, beside gradients in buckets, does" {
	local a=$TMP/gpud.sock.d/a/gpud.sock

	gpud --gpus 2
	"$CLIENT" "$SOCKET" grant a 0 8000
	"$CLIENT" "$SOCKET" grant a 1 8000
	fit() {
		run "$TRAIN" --loader null --gpu-server "$a" --time-scale "$SCALE" \
			--pin off --model vgg16 --gpus 2 -b "$1" --max-steps 1 --extrapolate
	}
	fit 128
	[ "$status" -eq 1 ]
	[[ $output =~ 'the largest that fits is '([0-9]+) ]]
	largest=${BASH_REMATCH[1]}
	fit $((largest + 1))
	[ "$status" -eq 1 ]
	fit "$largest"
	[ "$status" -eq 0 ]
}

# bats test_tags=timed
@test "two jobs on the same two GPUs: half of the rate each" {
	for try in 1 2 3 4 5; do
		gpud --gpu p100 --gpus 2 --scheduler rr
		train a --model resnet50 -b 32 --gpus 2 --max-steps 60
		first=$JOB
		train b --model resnet50 -b 32 --gpus 2 --max-steps 60
		wait "$JOB" "$first"
		gpud_end
		[ -z "$GPEMU_SANITIZED" ] || return 0
		python3 - "$TMP" <<-'PY' && return
			import json, sys
			a, b = (json.load(open('%s/%s.json' % (sys.argv[1], n)))
			        for n in 'ab')
			for j in a, b:
			    t = j['totals']
			    waits = j['sharing']['share_wait_s'] / t['seconds']
			    print(waits, t['compute_s'] / t['seconds'])
			    if not .4 < waits < .55:
			        sys.exit(1)
		PY
	done
	false
}

@test "the server that came with the job's GPUs is the default" {
	gpud
	export GPEMU_GPU_SERVER=$SOCKET:/nowhere GPEMU_GPU_PROFILE=p100
	common=(--loader null --time-scale "$SCALE" --pin off --max-steps 2)
	"$TRAIN" "${common[@]}" --json "$TMP/a.json"
	check a "j['sharing']['server'] == '$SOCKET'"
	check a "'V100' in j['sharing']['gpu']"
	"$SMI" --json - | grep -q V100
	# the command line comes first
	run "$SMI" --socket /elsewhere
	[[ $output == */elsewhere:* ]]
	"$TRAIN" "${common[@]}" --gpu a100 --json "$TMP/a.json"
	check a "j['sharing'] is None"
	run "$TRAIN" "${common[@]}" --inference
	[ "$status" -eq 2 ]
	[[ $output == *'--inference: not with --gpu-server (or $GPEMU_GPU_SERVER)'* ]]
	GPEMU_GPU_SERVER=/nowhere run "$TRAIN" "${common[@]}"
	[ "$status" -eq 75 ]
	GPEMU_GPU_SERVER= "$TRAIN" "${common[@]}" --json "$TMP/a.json"
	check a "j['sharing'] is None and j['config']['gpu'] == 'p100'"
}

@test "a GPU that is named must be the server's" {
	gpud --gpu p100
	common=(--loader null --time-scale "$SCALE" --pin off --max-steps 2)
	# by name, or another copy of its profile
	cp "$(realpath "$BUILD")/../profiles/gpu/tesla-p100-pcie-16gb.yaml" "$TMP/mine.yaml"
	for gpu in p100 "$TMP/mine.yaml"; do
		"$TRAIN" "${common[@]}" --gpu-server "$SOCKET" --gpu "$gpu" --json "$TMP/a.json"
		check a "j['sharing']['server'] == '$SOCKET' and 'P100' in j['profile']['gpu']"
	done
	run "$TRAIN" "${common[@]}" --gpu-server "$SOCKET" --gpu v100
	[ "$status" -ne 0 ]
	[[ $output == *"--gpu v100: $SOCKET has GPUs of another kind, Tesla P100-PCIE-16GB; leave out --gpu"* ]]
	run "$TRAIN" "${common[@]}" --gpu-server "$SOCKET" --node dgx-1v
	[ "$status" -eq 2 ]
	[[ $output == *'--node: not with --gpu-server'* ]]
}

@test "a server reports the end of a step, not the start of its optimiser" {
	cat >"$TMP/apart.yaml" <<-'YAML'
		name: apart
		source: nominal
		memory_mib: 1000
		usable_memory: 1
		sample_bytes: 1048576
		pinned: {base_ms: 0, per_sample_ms: 1, source: nominal}
		pin_copy: {base_ms: 0, per_sample_ms: 0, source: nominal}
		models:
		  m:
		    parameters: 1000
		    model_transfer_ms: 0
		    last_batch: 1
		    last_is_limit: false
		    tolerance_pct: 0
		    rows: [[1, 10, 33, 1, 100, 50, 7, 0]]
	YAML
	gpud --gpu "$TMP/apart.yaml"
	train one --model m -b 1 --max-steps 5
	wait "$JOB"
	gpud_end
	check one "j['totals']['optimizer_s'] == 0 and j['profile']['optimizer'] == 'in backward'"
	check one "abs(j['totals']['compute_s'] - 5 * .043) < 1e-3"
}

# Iterations per emulated second of each process during a phase; the connected
# processes identify the phase.
phase() {
	local what=$1 seconds=$2

	so 'True' && cp "$TMP/status.json" "$TMP/a.json"
	sleep "$seconds"
	so 'True' && cp "$TMP/status.json" "$TMP/b.json"
	python3 - "$TMP" "$what" >>"$TMP/rates" <<-'PY'
		import json, sys
		a, b = (json.load(open('%s/%s.json' % (sys.argv[1], n))) for n in 'ab')
		s = b['server']['seconds'] - a['server']['seconds']
		before = {p['job']: p['iterations'] for p in a['processes']}
		print(sys.argv[2], *((p['iterations'] - before[p['job']]) / s
		                     for p in b['processes']))
	PY
}

three_clients() {
	local first second third

	rm -f "$TMP/rates"
	gpud --scheduler fair
	# a step of 96 ms, 9.6 ms of ours
	train a --model resnet50 -b 32 --max-steps 100000
	first=$JOB
	until_so 'len(p) == 1 and p[0]["iterations"] > 3'
	phase alone 1
	train b --model resnet50 -b 32 --max-steps 100000
	second=$JOB
	until_so 'len(p) == 2 and p[1]["iterations"] > 3'
	phase two 2
	train c --model resnet50 -b 32 --max-steps 100000
	third=$JOB
	until_so 'len(p) == 3 and p[2]["iterations"] > 3'
	phase three 3
	kill -9 "$first"
	until_so 'len(p) == 2'
	phase two 2
	kill "$second"
	until_so 'len(p) == 1'
	phase alone 1
	kill -9 "$third"
	until_so 'not p and g[0]["memory_used_mib"] == 0'
	gpud_end
}

# bats test_tags=timed,slow
@test "three clients, one after the other: rates R, R/2, R/3 and back" {
	for try in 1 2 3 4 5; do
		three_clients
		cat "$TMP/rates"
		[ -z "$GPEMU_SANITIZED" ] || return 0
		python3 - "$TMP/rates" <<-'PY' && return
			import sys
			rows = [l.split() for l in open(sys.argv[1])]
			rates = [[float(x) for x in r[1:]] for r in rows]
			R = rates[0][0]
			assert [len(r) for r in rates] == [1, 2, 3, 2, 1]
			x = rates[2]
			jain = sum(x) ** 2 / (3 * sum(v * v for v in x))
			print('R', R, 'jain', jain)
			ok = all(abs(v * len(r) / R - 1) < .03 for r in rates for v in r)
			sys.exit(not (ok and jain >= .99))
		PY
	done
	false
}

@test "the memory of a killed client goes to the queue at once" {
	gpud --share mps --gpu k80
	train a --model resnet50 -b 64 --max-steps 100000
	first=$JOB
	until_so 'len(p) == 1 and p[0]["state"] != "queued"'
	train b --model resnet50 -b 64 --max-steps 5
	until_so '[x["state"] for x in p].count("queued") == 1'
	run "$SMI" --socket "$SOCKET"
	[ "$status" -eq 0 ]
	[[ $output == *Queue*gpemu-train* ]]
	kill -9 "$first"
	wait "$JOB"
	check b "j['sharing']['queue_s'] > 0 and j['totals']['steps'] == 5"
	grep -q 'no free memory on the GPU now' "$TMP/b.out"
	until_so 'not p and g[0]["memory_used_mib"] == 0'
}

@test "a client that waits for memory, or for its turn, can be interrupted" {
	gpud --gpu k80 --share mps --scheduler fifo
	train a --model resnet50 -b 64 --max-steps 100000
	until_so 'len(p) == 1 and p[0]["iterations"] > 0'
	train b --model resnet50 -b 64 --max-steps 5
	until_so '[x["state"] for x in p].count("queued") == 1'
	kill -INT "$JOB"
	status=0
	wait "$JOB" || status=$?
	[ "$status" -eq 1 ]
	grep -q 'interrupted while waiting for the GPU' "$TMP/b.out"
	train c --model resnet50 -b 1 --max-steps 5
	until_so '[x["state"] for x in p].count("waiting") == 1'
	kill -INT "$JOB"
	status=0
	wait "$JOB" || status=$?
	[ "$status" -eq 1 ]
	until_so 'len(p) == 1'
}

@test "the server goes away: an error, not a hang" {
	gpud
	train a --model resnet50 -b 32 --max-steps 100000
	until_so 'len(p) == 1 and p[0]["iterations"] > 3'
	kill "$SERVER"
	status=0
	wait "$JOB" || status=$?
	[ "$status" -eq 1 ]
	grep -q 'gpemu-gpud closed the connection' "$TMP/a.out"
}

@test "another time scale, and a job that does not fit, are refused" {
	gpud
	run "$TRAIN" --loader null --gpu-server "$SOCKET" --time-scale 0.2
	[ "$status" -eq 1 ]
	[[ $output == *"runs at --time-scale 0.1"* ]]
	run "$TRAIN" --loader null --gpu-server "$SOCKET" --time-scale "$SCALE" \
		-b 100000 --extrapolate
	[ "$status" -eq 1 ]
	[[ $output == *"out of GPU memory"* ]]
}

@test "transforms on a server's GPU are refused" {
	gpud
	{
		sed 's/^name:.*/name: both/' "$BATS_TEST_DIRNAME/../../profiles/prep/dali-gpu.yaml"
		echo 'sample: {kind: const, value: 1ms}'
	} >"$TMP/both.yaml"
	mkdir "$TMP/data"
	echo 1 >"$TMP/data/1"
	run "$TRAIN" --data "$TMP/data" --prep emulated --prep-profile "$TMP/both.yaml" -b 1 \
		--gpu-server "$SOCKET" --time-scale "$SCALE"
	[ "$status" -eq 1 ]
	[[ $output == *"both: a part of it runs on the GPU"* ]]
}

@test "a job gets all of its GPUs at once, or none" {
	gpud --gpus 2
	mkfifo "$TMP/in" "$TMP/in2"
	"$CLIENT" "$SOCKET" hold 1 24000 <"$TMP/in" >"$TMP/small" 3>&- &
	PIDS+=($!)
	exec 8>"$TMP/in"
	until_so 'len(p) == 1'
	"$CLIENT" "$SOCKET" hold 2 24000 <"$TMP/in2" >"$TMP/big" 3>&- 8>&- &
	PIDS+=($!)
	exec 9>"$TMP/in2"
	until_so 'len(p) == 2 and p[1]["state"] == "queued" and g[1]["memory_used_mib"] == 0'
	exec 8>&-
	until_so 'len(p) == 1 and p[0]["gpus"] == [0, 1] and g[1]["memory_used_mib"] == 24000'
	exec 9>&-
	until_so 'not p and g[0]["memory_used_mib"] == 0 and g[1]["memory_used_mib"] == 0'
	grep -q queued "$TMP/big"
	grep -q 'gpus 0x3' "$TMP/big"
}

@test "pack: two lanes run concurrently, each at half speed" {
	gpud --share lanes --scheduler pack
	train a --model resnet50 -b 32 --max-steps 100000
	train b --model resnet50 -b 32 --max-steps 100000
	until_so 'len(p) == 2 and g[0]["lanes"] == 2 and g[0]["running"] == 2'
	until_so '{x["lanes"][0] for x in p} == {0, 1}'
}

# completion SCHEDULER: mean of one long job and three short ones behind it,
# in emulated ms
completion() {
	local jobs=() job

	gpud --scheduler "$1"
	train long --model resnet50 -b 32 --max-steps 200
	jobs+=("$JOB")
	until_so 'len(p) == 1 and p[0]["iterations"] > 0'
	for job in 1 2 3; do
		train short$job --model resnet50 -b 32 --max-steps 20
		jobs+=("$JOB")
	done
	for job in "${jobs[@]}"; do
		wait "$job"
	done
	gpud_end
	python3 - "$TMP"/long.json "$TMP"/short?.json <<-'PY'
		import json, sys
		s = [json.load(open(f)) for f in sys.argv[1:]]
		print(round(sum(j['totals']['seconds'] + j['sharing']['queue_s'] for j in s) * 250))
	PY
}

# bats test_tags=timed,slow
@test "mean completion time: srtf before fair before fifo" {
	local fifo fair srtf

	for try in 1 2 3 4 5; do
		fifo=$(completion fifo)
		fair=$(completion fair)
		srtf=$(completion srtf)
		echo "fifo $fifo fair $fair srtf $srtf"
		[ -z "$GPEMU_SANITIZED" ] || return 0
		((srtf < fair && fair < fifo)) && return
	done
	false
}

@test "real files, checkpoints and --pin off, on a shared GPU" {
	mkdir -p "$TMP/data/a"
	for i in {1..20}; do
		head -c 1000 /dev/urandom >"$TMP/data/a/$i.bin"
	done
	gpud
	run "$TRAIN" --data "$TMP/data" --prep none -b 4 -e 2 --transfer blocking \
		--gpu-server "$SOCKET" --time-scale "$SCALE" --pin off \
		--checkpoint-every 3 --checkpoint-dir "$TMP/ck" --checkpoint-size 1M \
		--steps "$TMP/steps.csv" --trace "$TMP/trace.json" --json "$TMP/r.json"
	echo "$output"
	[ "$status" -eq 0 ]
	check r "j['totals']['steps'] == 10 and j['totals']['samples'] == 40"
	check r "j['checkpoints']['written'] == 3 if 'written' in j['checkpoints'] else True"
	[ "$(wc -l <"$TMP/steps.csv")" -eq 11 ]
}

@test "a GPU that fails ends its jobs and gets no others until it is repaired" {
	gpud --gpus 2 --idle-limit 1s
	"$CLIENT" "$SOCKET" watch >"$TMP/watch" 3>&- &
	PIDS+=("$!")
	mkfifo "$TMP/in" "$TMP/in2"
	"$CLIENT" "$SOCKET" hold 2 <"$TMP/in" >"$TMP/held" 3>&- &
	PIDS+=("$!")
	exec 8>"$TMP/in"
	until_so "len(p) == 1 and [x['healthy'] for x in g] == [True, True]"
	run "$SMI" --socket "$SOCKET" --fail 1
	[ "$status" -eq 0 ]
	[[ $output == *"ERR!"* ]]
	until_so "not p and [x['healthy'] for x in g] == [True, False]"
	# a job of two GPUs waits, one of one GPU gets the sound one
	"$CLIENT" "$SOCKET" hold 2 <"$TMP/in2" >"$TMP/two" 3>&- 8>&- &
	PIDS+=("$!")
	exec 9>"$TMP/in2"
	until_so "[x['state'] for x in p] == ['queued']"
	train one --model resnet50 -b 32 --max-steps 3
	wait "$JOB"
	run "$SMI" --socket "$SOCKET" --fail 2
	[ "$status" -eq 1 ]
	[[ $output == *"GPU 2: the server has 2"* ]]
	run "$SMI" --socket "$SOCKET" --repair 1
	[ "$status" -eq 0 ]
	until_so "[x['gpus'] for x in p] == [[0, 1]]"
	exec 8>&- 9>&-
	# a watcher hears of each change, and is never idle
	tick=0
	until [ "$(tr '\n' ' ' <"$TMP/watch")" = "0x0 0x2 0x0 " ]; do
		[ $((tick++)) -lt 100 ]
		sleep 0.05
	done
	gpud_end
}
