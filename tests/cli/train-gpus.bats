#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-train with several GPUs, nodes, and the GPU's work besides training.

setup() {
	GPEMU_BUILD=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}
	TRAIN=$GPEMU_BUILD/gpemu-train
	TMP=$BATS_TEST_TMPDIR
	JSON=$TMP/record.json
	NULL="--loader null --time-scale 0.05"
}

# A condition on the record j and its first epoch e.
check() {
	python3 - "$JSON" "$@" <<-'PY'
		import json, sys
		j = json.load(open(sys.argv[1]))
		e = j['epochs'][0]
		near = lambda a, b, by=.01: abs(a - b) <= by * abs(b)
		for condition in sys.argv[2:]:
		    assert eval(condition), (condition, j['node'], e)
	PY
}

raw() { # n bytes
	mkdir -p "$TMP/raw"
	for i in $(seq "$1"); do head -c "$2" /dev/zero >"$TMP/raw/$i"; done
}

# bats test_tags=timed
@test "four GPUs: four batches per step, and all time accounted for" {
	run "$TRAIN" $NULL --model resnet18 -b 32 --gpus 4 --samples 1280 --json "$JSON"
	[ "$status" -eq 0 ]
	[[ $output == *"4 GPUs (ddp): "*" all-reduce"* ]]
	check "e['steps'] == 10 and e['samples'] == 1280 and len(e['gpus']) == 4" \
		"j['node']['gpus'] == 4 and j['node']['parallel'] == 'ddp'" \
		"j['node']['allreduce']['ranks'] == 4" \
		"j['node']['allreduce']['gradient_bytes'] == 4 * 11689512" \
		"e['allreduce_s'] > 0 and e['barrier_wait_s'] >= 0" \
		"all(near(sum(g[k + '_s'] for k in ('compute', 'data_wait', 'transfer_stall', 'barrier_wait', 'allreduce', 'prep_gpu')), e['seconds'], .02) for g in e['gpus'])" \
		"near(e['au'], sum(g['au'] for g in e['gpus']) / 4)"
}

@test "four GPUs read each sample once, also in a last step that is not full" {
	raw 21 1000
	# 21 samples: a step of 4 x 4, then 5 in parts of 2, 2, 1 and none
	run timeout 60 "$TRAIN" --data "$TMP/raw" --prep none --order sequential -b 4 --gpus 4 \
		--model alexnet --time-scale 0.05 --dump-samples "$TMP/samples" \
		--steps "$TMP/steps" --trace "$TMP/trace" --json "$JSON"
	[ "$status" -eq 0 ]
	check "e['steps'] == 2 and e['samples'] == 21 and e['bytes'] == 21000" \
		"e['gpus'][3]['barrier_wait_s'] > e['gpus'][0]['barrier_wait_s']"
	[ "$(grep -vc '^#' "$TMP/samples")" -eq 21 ]
	[ "$(wc -l <"$TMP/steps")" -eq 9 ]
	python3 -c "
import json, sys
names = {e['args']['name'] for e in json.load(open('$TMP/trace')) if e['name'] == 'thread_name'}
assert 'GPU compute (emulated)' in names and 'GPU 3 copy (emulated)' in names, names"
	run "$TRAIN" --data "$TMP/raw" --prep none -b 4 --gpus 4 --drop-last \
		--model alexnet --time-scale 0.05 --json "$JSON"
	[ "$status" -eq 0 ]
	check "e['steps'] == 1 and e['samples'] == 16"
}

# bats test_tags=timed
@test "a late batch counts as data wait on all GPUs of the step" {
	raw 64 1000
	# a core makes 155 images/s: 26 ms a batch, and four of them a step
	run timeout 60 "$TRAIN" --data "$TMP/raw" --prep emulated --cores 1 -b 4 --gpus 4 \
		--model alexnet --pin off --json "$JSON"
	[ "$status" -eq 0 ]
	check "e['steps'] == 4 and e['barrier_wait_s'] < .1 * e['data_wait_s']" \
		"all(g['data_wait_s'] > .6 * e['seconds'] for g in e['gpus'])" \
		"near(e['fetch_stall_s'] + e['prep_stall_s'] + e['pin_stall_s'], e['data_wait_s'], 1e-6)" \
		"all(near(sum(g[k + '_s'] for k in ('compute', 'data_wait', 'transfer_stall', 'barrier_wait', 'allreduce', 'prep_gpu')), e['seconds'], .02) for g in e['gpus'])"
}

@test "fewer pinned buffers than GPUs are enough" {
	raw 22 4096
	# one buffer of 4 x 4096 bytes, eight GPUs; the last step has three batches
	for pin in "--pin on --pin-budget 16K" "--pin on" "--pin off"; do
		run timeout 60 "$TRAIN" --data "$TMP/raw" --prep none -b 2 --gpus 4 -e 2 \
			--model alexnet --time-scale 0.05 --prefetch 1 --workers 1 $pin --json "$JSON"
		[ "$status" -eq 0 ]
		check "j['totals']['samples'] == 44 and j['totals']['steps'] == 6"
	done
}

# bats test_tags=timed
@test "DataParallel on two P100s takes the published time" {
	for row in 64:.1377 128:.2606 256:.505 512:.996; do
		run "$TRAIN" $NULL --node 2xp100 --parallel dp --model alexnet -b "${row%:*}" \
			--extrapolate --max-steps 20 --json "$JSON"
		[ "$status" -eq 0 ]
		# without the copy to the first GPU, which was measured
		# separately
		check "near((e['compute_s'] + e['allreduce_s'] + e['barrier_wait_s']) / 20, ${row#*:}, .03)" \
			"j['node']['parallel'] == 'dp' and j['node']['profile']['name'] == '2xp100'"
	done
}

# bats test_tags=timed
@test "GPUs under one PCIe root share its link" {
	sed 's/root_gb_per_s: 12.4/root_gb_per_s: 0/' \
		"$BATS_TEST_DIRNAME/../../profiles/node/config-ssd-v100.yaml" >"$TMP/free.yaml"
	# pageable copies of alexnet: the GPU waits for the copy
	local step=()
	for node in config-ssd-v100 "$TMP/free.yaml"; do
		run "$TRAIN" $NULL --node "$node" --model alexnet -b 64 --transfer blocking --max-steps 20 --json "$JSON"
		[ "$status" -eq 0 ]
		check "len(e['gpus']) == 8 and j['config']['gpu'] == 'v100'"
		step+=("$(python3 -c "import json; e = json.load(open('$JSON'))['epochs'][0]; print(e['transfer_s'] / 20 * 1e3)")")
	done
	# two at a time: the second waits for the first, 1.5 times on average
	python3 -c "assert 1.35 < ${step[0]} / ${step[1]} < 1.6, '${step[*]}'"
}

@test "ring, tree and several nodes: a slower link takes more time" {
	for how in "ring --world-size 1" "tree --world-size 1" "ring --world-size 4"; do
		run "$TRAIN" $NULL --node config-ssd-v100 --model vgg16 -b 8 --samples 4096 --max-steps 10 \
			--allreduce $how --json "$JSON"
		[ "$status" -eq 0 ]
		python3 -c "import json; j = json.load(open('$JSON')); print(j['epochs'][0]['allreduce_s'], j['node']['allreduce']['ranks'])" >>"$TMP/out"
	done
	python3 - "$TMP/out" <<-'PY'
		import sys
		(ring, a), (tree, b), (far, c) = (map(float, l.split()) for l in open(sys.argv[1]))
		assert (a, b, c) == (8, 8, 32)
		assert 0 < ring < tree < far, (ring, tree, far)
	PY
}

# bats test_tags=timed
@test "the optimiser waits for the last gradients, and the record says who knows it" {
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
		    parameters: 6815744 # 26 MiB of gradients
		    model_transfer_ms: 0
		    last_batch: 1
		    last_is_limit: false
		    tolerance_pct: 0
		    rows: [[1, 10, 33, 1, 100, 50, 7, 0]]
	YAML
	# buckets of 1 and 25 MiB, a MiB in 2 ms over a tree of two: from 36 ms on
	# 50 ms of all-reduce and 7 ms of optimiser; the first copy takes 1 ms
	run "$TRAIN" $NULL --prep none --gpu "$TMP/apart.yaml" --model m -b 1 --gpus 2 --allreduce tree \
		--max-steps 10 --steps "$TMP/steps" --json "$JSON"
	[ "$status" -eq 0 ]
	check "near(e['seconds'], .001 + 10 * .093)" "near(e['compute_s'], .43, 1e-6)" \
		"near(e['allreduce_s'], .5, 1e-3)" "near(e['optimizer_s'], .07, 1e-6)" \
		"j['profile']['optimizer'] == 'measured'" \
		"j['node']['transfer'] == 'overlap'" \
		"j['node']['beside_mib'] == {'prep': 0, 'gradient_buckets': 26, 'waiting_batches': 1}"
	head -1 "$TMP/steps" | grep -q ',allreduce_s,optimizer_s,host_stall_s$'
	run "$TRAIN" $NULL --prep none --gpu "$TMP/apart.yaml" --model m -b 1 --gpus 2 --parallel dp \
		--max-steps 2 --json "$JSON"
	[ "$status" -eq 0 ]
	check "j['node']['transfer'] == 'blocking' and j['config']['transfer'] == 'overlap'"
	run "$TRAIN" $NULL --model resnet50 --max-steps 1 --json "$JSON"
	check "j['profile']['optimizer'] == 'in backward' and e['optimizer_s'] == 0"
}

@test "a batch that waits on the GPU takes the memory of its copied bytes" {
	raw 8 1048576
	# for raw files and for transformed ones, whatever the size of the
	# model's own samples
	run "$TRAIN" --data "$TMP/raw" --prep none -b 4 --model resnet18 --time-scale .05 --json "$JSON"
	[ "$status" -eq 0 ]
	check "j['node']['beside_mib']['waiting_batches'] == 4"
	sed 's/^    parameters:/    sample_bytes: 1048576\n&/' "$BATS_TEST_DIRNAME"/../../profiles/gpu/tesla-v100*.yaml >"$TMP/own.yaml"
	run "$TRAIN" --data "$TMP/raw" --prep emulated --image-size 512 --prep-output uint8 -b 4 \
		--gpu "$TMP/own.yaml" --model resnet18 --time-scale .05 --json "$JSON"
	[ "$status" -eq 0 ]
	check "j['node']['beside_mib']['waiting_batches'] == 3" "e['batch_bytes'] == 8 * 3 * 512 * 512"
}

@test "DataParallel replicates the model for inference, too" {
	run "$TRAIN" $NULL --model alexnet -b 32 --gpus 4 --parallel dp --inference --max-steps 5 --json "$JSON"
	[ "$status" -eq 0 ]
	# half of 2 * 3 / 4 of the parameters, and three parts
	check "near(e['allreduce_s'] / 5, (.75 * 4 * 61100840 + 3 * 32 * 602112) / (j['node']['allreduce']['gb_per_s'] * 1e9))" \
		"j['node']['allreduce']['gradient_bytes'] == 0"
}

@test "jitter makes stragglers, and one seed the same ones" {
	local out=()
	for seed in 1 1 2; do
		run "$TRAIN" $NULL --model resnet18 -b 32 --gpus 4 --jitter 0.1 --max-steps 30 --seed $seed --json "$JSON"
		[ "$status" -eq 0 ]
		check "e['barrier_wait_s'] > .02 * e['compute_s']" "j['node']['jitter'] == .1"
		out+=("$(python3 -c "import json; print(json.load(open('$JSON'))['epochs'][0]['compute_s'])")")
	done
	[ "${out[0]}" = "${out[1]}" ]
	[ "${out[0]}" != "${out[2]}" ]
	run "$TRAIN" $NULL --model resnet50 -b 64 --jitter profile --max-steps 5 --json "$JSON"
	[ "$status" -eq 0 ]
	check "j['node']['jitter'] == .0015"
	run "$TRAIN" $NULL --model vgg11 --jitter profile
	[ "$status" -eq 1 ]
	[[ $output == *"the jitter of vgg11 was not measured"*resnet50* ]]
}

@test "inference: the forward pass, without an all-reduce" {
	run "$TRAIN" $NULL --model resnet50 -b 64 --gpus 2 --inference --max-steps 10 --json "$JSON"
	[ "$status" -eq 0 ]
	check "e['allreduce_s'] == 0 and j['node']['inference'] is True" \
		"near(e['compute_s'], 10 * .0612, .02)"
}

@test "the model is copied to the GPU once" {
	run "$TRAIN" $NULL --model vgg16 -b 8 --max-steps 2 --json "$JSON"
	[ "$status" -eq 0 ]
	check ".1 < j['node']['model_transfer_s'] < .15"
	run "$TRAIN" $NULL --model vgg16 -b 8 --max-steps 2 --model-transfer off --json "$JSON"
	[ "$status" -eq 0 ]
	check "j['node']['model_transfer_s'] == 0"
}

@test "transforms on the GPU occupy its compute stream and its memory" {
	run "$TRAIN" $NULL --model resnet18 -b 128 --prep-gpu ffcv-gpu --max-steps 10 --json "$JSON"
	[ "$status" -eq 0 ]
	check "near(e['prep_gpu_s'], .01992)" \
		"e['compute_s'] + e['prep_gpu_s'] <= e['seconds']" \
		"j['node']['prep_gpu']['name'] == 'ffcv-gpu'"
	run "$TRAIN" $NULL --gpu k80 --model resnet50 -b 120 --max-steps 1
	[ "$status" -eq 0 ]
	run "$TRAIN" $NULL --gpu k80 --model resnet50 -b 120 --prep-gpu dali-gpu --max-steps 1
	[ "$status" -eq 1 ]
	[[ $output == *"out of GPU memory"*"transforms 2486,"*"the largest that fits is "* ]]
	run "$TRAIN" $NULL --prep-gpu pytorch-pillow
	[ "$status" -eq 1 ]
	[[ $output == *"no part of it runs on the GPU"* ]]
}

@test "emulated transforms may run in part on the GPU" {
	raw 32 1000
	run "$TRAIN" --data "$TMP/raw" --prep emulated --prep-profile ffcv-gpu --cores 4 -b 16 \
		--model resnet18 --image-size 8 --time-scale 0.2 --json "$JSON"
	[ "$status" -eq 0 ]
	# .123 ms for a batch of 16, on the line through 64 and 128
	check "near(e['prep_gpu_s'], 2 * .000123, .05)" "e['prep_ms']['mean'] > 0"
	run "$TRAIN" --data "$TMP/raw" --prep emulated --prep-profile dali-gpu -b 16
	[ "$status" -eq 1 ]
	[[ $output == *"has no CPU cost"* ]]
}

@test "cost and energy of an epoch follow from the node, the time and the GPUs" {
	sed 's/usd_per_hour: .*/usd_per_hour: 36/; s/idle_w: .*/idle_w: 1000/; s/full_w: .*/full_w: 9000/' \
		"$BATS_TEST_DIRNAME/../../profiles/node/dgx-a100.yaml" >"$TMP/node.yaml"
	run "$TRAIN" $NULL --node "$TMP/node.yaml" --gpus 4 --model resnet50 -b 64 --max-steps 30 --json "$JSON"
	[ "$status" -eq 0 ]
	# 4 of 8 GPUs, while they compute
	check "abs(e['cost_usd'] - e['seconds'] / 100) < 1e-9" \
		"abs(e['energy_kwh'] - (1000 * e['seconds'] + 8000 * e['compute_s'] / 2) / 3.6e6) < 1e-9" \
		"j['totals']['cost_usd'] == e['cost_usd']"
	run "$TRAIN" $NULL --model resnet50 -b 64 --max-steps 3 --json "$JSON"
	check "e['cost_usd'] is None and e['energy_kwh'] is None"
	sed -i 's/full_w: .*/full_w: 999/' "$TMP/node.yaml"
	run "$TRAIN" $NULL --node "$TMP/node.yaml" --max-steps 3
	[ "$status" -ne 0 ]
	[[ $output == *"full_w is below idle_w"* ]]
}

@test "a node supplies defaults, and reports what it lacks" {
	raw 8 100
	run "$TRAIN" --data "$TMP/raw" --node config-ssd-v100 --prep emulated --image-size 8 -b 1 \
		--time-scale 0.05 --json "$JSON"
	[ "$status" -eq 0 ]
	check "j['prep']['cores'] == 24 and j['node']['gpus'] == 8"
	run "$TRAIN" $NULL --node config-ssd-v100 --gpus 9
	[ "$status" -eq 2 ]
	[[ $output == *"has only 8"* ]]
	run "$TRAIN" $NULL --node config-hdd-1080ti
	[ "$status" -eq 2 ]
	[[ $output == *"name another with --gpu"* ]]
	run "$TRAIN" $NULL --node nowhere
	[ "$status" -eq 2 ]
	[[ $output == *"unknown node profile"*dgx-1v* ]]
	run "$TRAIN" $NULL --parallel zero
	[ "$status" -eq 2 ]
	run "$TRAIN" $NULL --jitter lots
	[ "$status" -eq 1 ]
	[[ $output == *"--jitter 'lots'"* ]]
	run "$TRAIN" --list node
	[ "$status" -eq 0 ]
	[[ $output == *2xp100* ]]
}

@test "interrupted in the middle of a step and resumed: each sample once" {
	raw 64 1000
	set -- --data "$TMP/raw" --prep none -b 2 --gpus 4 --model alexnet \
		--checkpoint-dir "$TMP/ck" --checkpoint-every 1 --checkpoint-size 4K --loader sync --workers 1 --prefetch 1
	timeout -s INT 1.5 "$TRAIN" "$@" --time-scale 6 --dump-samples "$TMP/a" || true
	run "$TRAIN" "$@" --resume --time-scale 0.05 --dump-samples "$TMP/b" --json "$JSON"
	echo "$output"
	[ "$status" -eq 0 ]
	check "j['totals']['steps'] <= 8"
	[ "$(cat "$TMP/a" "$TMP/b" | grep -v '^#' | awk '{print $NF}' | sort | uniq -d | wc -l)" -eq 0 ] || {
		head "$TMP/a" "$TMP/b"; false; }
}
