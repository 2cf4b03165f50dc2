#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-profile measure and validate, on the CPU and two small models. Tests that
# need PyTorch are skipped without it: tools/setup full installs it.
# bats file_tags=long

bats_require_minimum_version 1.5.0

setup() {
	BUILD=$(realpath "${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}")
	PATH="$BUILD:$PATH"
	unset GPEMU_PROFILES
	cd "$BATS_TEST_TMPDIR"
}

needs_torch() {
	local p

	# PyTorch alone takes most of the time, and is not sanitized
	[ -z "${GPEMU_SANITIZED-}" ] || skip "a sanitizer does not see Python"
	for p in "${GPEMU_PYTHON:-python3}" /usr/bin/python3; do
		"$p" -c 'import importlib.util as u, sys
sys.exit(not (u.find_spec("torch") and u.find_spec("torchvision")))' \
			2>/dev/null || continue
		export GPEMU_PYTHON=$(command -v "$p")
		return
	done
	skip "python3-torch or python3-torchvision is not installed"
}

measure() {
	gpemu-profile measure --device cpu --image-size 64 --seconds 0.1 \
		--threads 1 "$@"
}

# check FILE EXPRESSION: true of the JSON `j`
check() {
	python3 - "$@" <<-'PY'
		import json, sys
		j = json.load(open(sys.argv[1]))
		if not eval('(' + sys.argv[2] + ')'):
		    sys.exit('not so: %s\n%s' % (sys.argv[2], json.dumps(j)[:3000]))
	PY
}

# bats test_tags=slow
@test "two measured models make a profile that a run can use" {
	needs_torch
	measure --models squeezenet1_1,shufflenet_v2_x0_5 --batches 1,2,4 \
		--output m.yaml --json m.json
	run -0 gpemu-profile check ./m.yaml
	[[ "$output" == *"2 models"* ]]
	# it names the hardware and software of the measurement
	check m.json "all(w in j['source'] for w in
		('gpemu-profile measure', 'PyTorch', '--batches 1,2,4'))"
	check m.json "[m for m in j['models']] ==
		['squeezenet1_1:px64', 'shufflenet_v2_x0_5:px64']"
	check m.json "j['models']['squeezenet1_1:px64']['parameters'] == 1235496"
	check m.json "all([r[0] for r in m['rows']] == [1, 2, 4]
		for m in j['models'].values())"
	# forward, backward, transfer, peak, persistent, optimiser
	check m.json "all(v > 0 for m in j['models'].values()
		for r in m['rows'] for v in r[:7])"
	check m.json "all(r[6] < r[2] and r[5] < r[4] and r[5] * 2**20 >=
		12 * m['parameters'] for m in j['models'].values()
		for r in m['rows'])"
	run -0 gpemu-profile show ./m.yaml squeezenet1_1:px64 3 --json step.json
	[[ "$output" == *interpolated*optimiser* ]]
	gpemu-train --loader null --gpu ./m.yaml --model squeezenet1_1:px64 \
		-b 3 --max-steps 5 --json run.json >run.out
	check step.json "abs(json.load(open('run.json'))['totals']['compute_s'] *
		200 / (j['forward_ms'] + j['backward_ms']) - 1) < 1e-3"
}

# bats test_tags=slow
@test "validate runs steps that were not measured, next to the prediction" {
	needs_torch
	measure --models squeezenet1_1 --batches 1,4,8 --output m.yaml
	run -0 gpemu-profile validate ./m.yaml --device cpu --seconds 0.1 \
		--threads 1 --json v.json
	[[ "$output" == *"2 steps: off by"* ]]
	check v.json "[s['batch'] for s in j['steps']] == [2, 6]"
	check v.json "all(s['origin'] == 'interpolated' and s['step_ms'] > 0
		for s in j['steps'])"
	for b in 2 6; do
		gpemu-profile show ./m.yaml squeezenet1_1:px64 $b --json $b.json
		check v.json "[abs(s['predicted_ms'] - p['forward_ms'] -
			p['backward_ms'] - p['transfer_pinned_ms']) < 1e-6
			for p in [json.load(open('$b.json'))]
			for s in j['steps'] if s['batch'] == $b] == [True]"
	done
	check v.json "all(abs(s['error_pct'] - 100 * (s['predicted_ms'] /
		s['step_ms'] - 1)) < 1e-6 for s in j['steps'])"
	run -2 gpemu-profile validate ./m.yaml --device cpu --batches 0
	run -1 gpemu-profile validate ./m.yaml --device cpu --models vgg11
	[[ "$output" == *"unknown model 'vgg11'"* ]]
}

# bats test_tags=slow
@test "a stopped run continues where it was" {
	needs_torch
	go() {
		measure --models squeezenet1_1 --batches 1-4 --output m.yaml
	}
	gpemu-profile measure --device cpu --image-size 64 --seconds 0.1 \
		--threads 1 --models squeezenet1_1 --batches 1-4 \
		--output m.yaml 2>first.err &
	pid=$!
	for i in $(seq 600); do
		[ "$(grep -c '"kind": "point"' m.yaml.state)" -ge 2 ] && break
		sleep .1
	done 2>/dev/null
	kill -TERM $pid
	status=0
	wait $pid || status=$?
	[ $status -eq 143 ]
	[ ! -e m.yaml ]
	grep -q 'measured points are in m.yaml.state' first.err
	grep '"kind": "point"' m.yaml.state >before
	# killed in the middle of a line
	printf '{"kind": "point", "mod' >>m.yaml.state
	go
	run -0 gpemu-profile check ./m.yaml
	grep '"kind": "point"' m.yaml.state >after
	# old points were kept, and none was measured twice
	head -n "$(wc -l <before)" after | cmp before
	[ "$(wc -l <after)" -eq 4 ]
	# one more point measures only that one
	measure --models squeezenet1_1 --batches 1-5 --output m.yaml
	[ "$(grep -c '"kind": "point"' m.yaml.state)" -eq 5 ]
	# points of another setup are not mixed in
	run -1 measure --models squeezenet1_1 --batches 1 --output m.yaml \
		--memory 1G
	[[ "$output" == *"m.yaml.state was measured with memory_mib"* ]]
	echo '[]' >>m.yaml.state
	run -1 go
	[[ "$output" == *"m.yaml.state:"*": not a measurement"* ]]
}

# bats test_tags=slow
@test "the largest batch size that fits into memory is found and measured" {
	needs_torch
	measure --models squeezenet1_1,alexnet --batches 1,200 --memory 160M \
		--output m.yaml --json m.json
	# alexnet's parameters alone are 233 MiB
	check m.json "list(j['models']) == ['squeezenet1_1:px64']"
	check m.json "j['memory_mib'] == 160"
	check m.json "all(m['last_is_limit'] and 1 < m['last_batch'] < 200 and
		[r[0] for r in m['rows']] == [1, m['last_batch']]
		for m in j['models'].values())"
	last=$(python3 -c 'import json
m = json.load(open("m.json"))["models"]["squeezenet1_1:px64"]
print(m["last_batch"])')
	grep -q "\"batch\": $((last + 1)), \"fits\": false" m.yaml.state
	# without a batch that waits beside the step's memory
	run -1 gpemu-train --loader null --gpu ./m.yaml --transfer blocking \
		--model squeezenet1_1:px64 -b $((last + 1))
	[[ "$output" == *"the largest that fits is $last"* ]]
}

# bats test_tags=slow
@test "bf16 and channels_last are models of their own" {
	needs_torch
	measure --models squeezenet1_1 --batches 1 --precision fp32,bf16,tf32 \
		--channels-last both --output m.yaml --json m.json 2>err
	check m.json "list(j['models']) == ['squeezenet1_1:px64' + w for w in
		('', ':channels_last', ':bf16', ':bf16:channels_last')]"
	grep -q 'tf32: left out, cpu has no tf32' err
}

# stand_in: a PyTorch with one CUDA device, and a virtual clock.
stand_in() {
	[ -z "${GPEMU_SANITIZED-}" ] || skip "a sanitizer does not see Python"
	export PYTHONPATH=$BATS_TEST_DIRNAME/standin-torch
	export GPEMU_PYTHON=/usr/bin/python3 PYTHONDONTWRITEBYTECODE=1
}

@test "a CUDA device is measured by any of its names" {
	stand_in
	for device in auto cuda cuda:0; do
		rm -f m.yaml*
		gpemu-profile measure --device $device --models resnet18 \
			--batches 8,16,32 --output m.yaml --json m.json
		check m.json "j['name'] == 'Stand-in GPU' and
			j['precision'] == 'fp32' and j['memory_mib'] == 1000"
	done
	# each row is what the stand-in takes
	check m.json "[[round(v, 3) for v in r[:3] + r[4:5]] for r in
		j['models']['resnet18']['rows']] ==
		[[n, 1 + n, round(2 * n + n * n / 100 + .5, 3), 100 + 10 * n]
		for n in (8, 16, 32)]"
	run -75 gpemu-profile measure --device cuda:1 --models resnet18 \
		--batches 8 --output n.yaml
	[[ "$output" == *"invalid device ordinal"* ]]
}

# run_host HOW [PROFILE]: two epochs of ten steps
run_host() {
	gpemu-train --gpu "./${2-m.yaml}" --model resnet18 --data data \
		--loader sync --prep none --batch 8 --epochs 2 \
		--model-transfer=off --json t.json $1 >out
}

@test "the host's time of a step and the first steps are measured, and charged" {
	stand_in
	gpemu-profile measure --device cuda --models resnet18 --batches 8,16 \
		--output m.yaml --json m.json
	check m.json "j['models']['resnet18']['host_ms'] == .15 and
		j['models']['resnet18']['warmup_ms'] == [30, 10]"
	run -0 gpemu-profile show ./m.yaml resnet18
	[[ "$output" == *"the host launches a step in 0.15 ms"* ]]
	[[ "$output" == *"the first steps take 30, 10 ms more"* ]]
	mkdir data
	for i in $(seq 80); do echo $i >data/$i; done
	# on both clocks: the first steps, then 50 ms of the host for each of 26.14
	for how in "" --simulate; do
		run_host "$how"
		check t.json "[round(e['host_stall_s'], 3) for e in j['epochs']]
			== [.04, 0]"
		sed 's/host_ms: .*/host_ms: 50/' m.yaml >slow.yaml
		run_host "$how" slow.yaml
		check t.json "j['node']['host_ms'] == 50 and
			all(abs(e['host_stall_s'] - .239) < .001 and
			e['seconds'] > .5 for e in j['epochs'])"
		grep -q "Bottleneck: the host's own time" out
	done
}

@test "copies are a table by bytes, measured by one thread after first touches" {
	stand_in
	gpemu-profile measure --device cuda --models resnet18 --batches 1,96 \
		--output m.yaml --json m.json 2>err
	# 1,000 MiB hold 90 samples, but copies only go that far
	check m.json "j['models']['resnet18']['last_batch'] == 90"
	check m.json "all(abs(ms[0] - .01 - n * (2e-7 if n > 24 * 2**20 else
		1e-7)) < 1e-3 * ms[0] and abs(ms[1] - .01 - n * 2e-8) < 1e-3 and
		abs(ms[2] - .01 - n * 4e-7) < 1e-3 * ms[2]
		for n, *ms in j['copies']['rows'])"
	check m.json "[n for n, *_ in j['copies']['rows']][-1] >= 90 * 602120"
	! grep -q upwards err || false
	# gpemu-profile show says what a copy of 12 samples takes: 7.2 MB
	gpemu-profile show ./m.yaml resnet18 12 --json s.json
	check s.json "abs(j['transfer_pinned_ms'] - .01 - 12 * 602120 * 2e-8)
		< .01"
}

@test "what a profile is off is measured between its rows" {
	stand_in
	gpemu-profile measure --device cuda --models resnet18 --batches 8,40 \
		--output m.yaml --json m.json
	# 24 is held out: 79.56 ms with its copy of 0.30, 82.12 by the rows
	check m.json "[(m['tolerance_pct'], m['tolerance_points'])
		for m in j['models'].values()] == [(3.3, 1)]"
	run -0 gpemu-profile show ./m.yaml resnet18 20
	[[ "$output" == *"steps between rows were up to 3.3 % off (1 of them measured)"* ]]
	run -0 gpemu-profile validate ./m.yaml --device cuda --json v.json
	check v.json "abs(j['error_pct']['max'] - 3.3) < .1"
	# adjacent rows have nothing between them
	gpemu-profile measure --device cuda --models resnet18 --batches 8,9 \
		--output n.yaml --json n.json
	check n.json "j['models']['resnet18']['tolerance_pct'] == 100"
}

@test "a smaller memory has smaller batches" {
	run -0 gpemu-profile fit resnet50 v100 --memory 8G
	[[ "$output" == *"the largest batch is 88 (estimated"* ]]
	run -1 gpemu-train --loader null --model resnet50 --gpu v100 -b 89 \
		--gpu-memory 8G --transfer blocking
	[[ "$output" == *"the largest that fits is 88"* ]]
	run -0 gpemu-train --loader null --model resnet50 --gpu v100 -b 88 \
		--gpu-memory 8G --transfer blocking --max-steps 1 \
		--time-scale .01 --extrapolate
	run -0 gpemu-profile fit resnet50 v100 --memory 400M --json none.json
	[[ "${lines[0]}" == *": not even a batch of 1 fits into 400 MiB" ]]
	check none.json "[r['batch_size'] for r in j['rows']] == [1]"
	run -2 gpemu-profile fit resnet50 v100 --memory 40
	# 96 GiB have more than was measured
	run -0 gpemu-profile fit v100 --memory 96G
	[[ "$output" != *" miss"* ]]
}

# bats test_tags=slow
@test "measure rejects invalid options before it measures" {
	needs_torch
	while read -r option value; do
		run -2 measure --output m.yaml --models squeezenet1_1 \
			$option $value
		[ "${#lines[@]}" -eq 1 ]
		[ ! -e m.yaml ] && [ ! -e m.yaml.state ]
	done <<-END
		--models nosuch
		--device gpu
		--precision fp64
		--batches 4-1
		--channels-last maybe
		--image-size 8
	END
	run -2 gpemu-profile measure --device cpu
	[[ "$output" == *"--output FILE is missing"* ]]
	run -1 measure --output "$PWD/none/m.yaml" --models squeezenet1_1
	[[ "$output" == *"none/m.yaml: No such file or directory"* ]]
}

# bats test_tags=slow
@test "without PyTorch, the error says what to install" {
	GPEMU_PYTHON=/bin/false run -75 gpemu-profile measure --output m.yaml
	[ "${#lines[@]}" -eq 1 ]
	[[ "$output" == *"/bin/false has no PyTorch"*python3-torch* ]]
	GPEMU_PYTHON=/no/python run -75 gpemu-profile validate v100
	[ "${#lines[@]}" -eq 1 ]
	# no CUDA here: not there now, which is not a usage error
	needs_torch
	"$GPEMU_PYTHON" -c 'import torch, sys
sys.exit(torch.cuda.is_available())' || skip "there is a CUDA device"
	run -75 gpemu-profile measure --device cuda --output m.yaml
	[[ "$output" == *"no CUDA device"* ]]
}
