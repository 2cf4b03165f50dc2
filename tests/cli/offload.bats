#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-train --offload and --last-step: what a trainer does itself, and what
# the preparation service does.
bats_require_minimum_version 1.5.0
load service

@test "offload: each sample once, a part here and a part there" {
	dispatcher
	worker 1
	worker 2
	# of 38 batches
	while read -r part there; do
		train -e 3 --offload "$part"
		check "len(times) == 3 * 301" "set(times.values()) == {1}" \
			"o['batches_received'] == 3 * $there" \
			"o['batches_local'] == 3 * (38 - $there)" \
			"o['mode'] == 'given' and o['measured'] is None" \
			"not s or s['batches'] == 3 * $there"
	done <<-'END'
		none 0
		0.25 10
		50% 19
		all 38
	END
	for loader in static,split=3,local=sync dynamic,local=threads; do
		train -e 2 --offload .7 --workers 2 --loader "service:sharding=$loader" \
			--pin off
		check "set(times.values()) == {1}" "o['batches_received'] == 2 * 27"
	done
	# with several GPUs, whose steps have a batch for each
	train --gpus 3 --offload .5
	check "set(times.values()) == {1}" "len(times) == 301" \
		"r['totals']['steps'] == 13"
}

@test "offload: kill -9 of a worker, SIGTERM to the trainer" {
	dispatcher
	worker 1
	worker 2
	start -e 2 --offload .6
	kill -9 "${w[2]}"
	ended
	check "set(times.values()) == {1}" "s['workers_gone'] == 1" \
		"len(times) == 602 - sum(x['samples'] for x in s['lost'])" \
		"o['batches_local'] == 2 * 15"
	start -e 9 --offload .6
	kill -TERM "$t"
	wait "$t" || true
	check "r['interrupted'] and set(times.values()) == {1}"
}

# bats test_tags=timed,slow
@test "offload: auto measures here and there, decides, and need not do so again" {
	[ -z "${GPEMU_SANITIZED-}" ] || skip "a sanitizer changes the rates"
	# 200 batches; 2 cores prepare 500 samples/s, far less than the GPU takes
	mkdir many
	for ((i = 0; i < 1600; i++)); do echo $i >"many/$i"; done
	# workers know transforms by name
	cp -r "$BATS_TEST_DIRNAME/../../profiles" .
	echo '{name: p, source: test, verified: false, sample: {kind: const, value: 4ms}}' >profiles/prep/p.yaml
	export GPEMU_PROFILES=$PWD/profiles
	auto=(--data many --prep emulated --prep-profile p --image-size 8
		--loader service:split=2 --offload auto)
	dispatcher
	worker 1 --cores 2
	train "${auto[@]}" --cores 2 -e 2 --offload-cache kept.json >out
	check "len(times) == 3200" "set(times.values()) == {1}" \
		"o['mode'] == 'auto' and not o['measured']['from_cache']" \
		"abs(o['measured']['local_samples_per_s'] / 500 - 1) < .15" \
		"abs(o['measured']['remote_samples_per_s'] / 500 - 1) < .15" \
		"3.5 < o['measured']['prep_cpu_ms'] < 6" \
		"o['measured']['receive_cpu_ms'] < 2" \
		"o['measured']['workers'] == 1" ".4 < o['part'] < .6" \
		"abs(o['batches_received'] - 50 - 300 * o['part']) < 8"
	grep "^Offloaded: .* % of the batches, the GPU is faster" out
	part=$(python3 -c 'import json; print(json.load(open("r.json"))["offload"]["part"])')
	train "${auto[@]}" --cores 2 --offload-cache kept.json
	check "set(times.values()) == {1}" "o['measured']['from_cache']" \
		"abs(o['part'] - $part) < 1e-6" \
		"o['batches_received'] == round(200 * o['part'])"
	# another number of cores is another profile; enough of them need no service
	train "${auto[@]}" --cores 64 --offload-cache kept.json
	check "set(times.values()) == {1}" "not o['measured']['from_cache']" \
		"o['part'] == 0 and o['batches_received'] == 0" \
		"o['measured']['remote_samples_per_s'] == 0"
}

@test "offload: what cannot be done ends with a reason" {
	for wrong in 2 -0.1 101% some; do
		run -2 train --offload "$wrong"
		[[ $output == *"--offload '$wrong': auto, none, all, or a part"* ]]
	done
	run -2 "$TRAIN" --data data --offload .5
	[[ $output == *"--offload needs --loader service"* ]]
	run -2 train --offload .5 --offload-cache x
	[[ $output == *"--offload-cache: only --offload auto measures"* ]]
	run -1 train --offload auto
	[[ $output == *"measures on 2 x 50 steps, and the first epoch has 38"* ]]
	run -2 train --offload .5 --loader service:local=null
	[[ $output == *"--loader service: local: null reads no samples"* ]]
	run -2 train --offload .5 --loader service:local=what
	[[ $output == *"--loader service: local: unknown engine 'what'"* ]]
	run -2 train --offload .5 --resume --checkpoint-dir c
	[[ $output == *"not with --resume"* ]]
	run -2 train --offload auto --gpu-server nowhere
	[[ $output == *"--offload auto: other jobs use the GPU"* ]]
	for any in job=ours consumers=1 sharding=off; do
		run -2 train --offload .5 --loader service:$any
		[[ $output == *"--offload takes none or all of them"* ]]
	done
	# no dispatcher is there, and none is needed
	train --offload none --workers 2
	check "set(times.values()) == {1}" "s is None" "o['split'] == 'batch'" \
		"r['plugins']['local']['name'] == 'async'"
}

# bats test_tags=slow
@test "last step: it runs here, and fewer bytes are sent" {
	"$BUILD/gpemu-data" make --files 64 --classes 1 --scale-bytes 1 \
		--progress off jpeg >/dev/null
	cp data/class/300 jpeg/class_0000/broken.jpg
	# 16-bit ids, of which 256 windows of 129 follow each other
	mkdir ids
	python3 -c 'import os; open("ids/t.bin", "wb").write(os.urandom(2 * 256 * 128 + 2))'
	dispatcher
	worker 1
	while read -r status what; do
		mapfile -t options < <(tr ' ' '\n' <<<"$what")
		for where in there here pecan; do
			run -"$status" train "${options[@]}" --last-step $where -e 2
			check "set(times.values()) == {1}"
			mv r.json $where.json
		done
		python3 - <<-'PY'
			import json
			there, here, pecan = (json.load(open(w + '.json'))
			    for w in ('there', 'here', 'pecan'))
			for r in here, pecan:
			    t, s = r['totals'], r['service']
			    assert t['samples'] + t['failed_samples'] == 2 * r['dataset']['samples'], t
			    for key in 'samples', 'bytes', 'batch_bytes', 'failed_samples':
			        assert t[key] == there['totals'][key], key
			    # fp32 to 8 bits; rows of 2 x 128 x 8 bytes to 129 x 2
			    ratio = there['service']['bytes_received'] / s['bytes_received']
			    assert ratio > 3.5, ratio
			    assert s['last_step']['threads'] >= 1
			    assert abs(sum(s['stall_s'].values()) - t['data_wait_s']) < .05, s
			assert 'last_step' not in there['service']
		PY
	done <<-'END'
		0 --data jpeg --prep decode --image-size 64 --bad-samples 100%
		0 --data ids --format tokens:sequence_length=128 --prep tokens:sequence_length=128
	END
}

# bats test_tags=timed,slow
@test "last step: --offload auto measures both ways" {
	[ -z "${GPEMU_SANITIZED-}" ] || skip "a sanitizer changes the rates"
	"$BUILD/gpemu-data" make --files 880 --classes 1 --scale-bytes 1 \
		--progress off jpeg >/dev/null
	dispatcher
	worker 1
	train --data jpeg --prep decode --offload auto --last-step auto \
		--workers 1 -e 3 >out
	check "set(times.values()) == {1}" "len(times) == 2640" \
		"set(o['measured']['splits']) == {'batch', 'last_step'}" \
		"o['split'] in o['measured']['splits']" \
		"0 < o['part'] <= 1" "len(s['earlier']) >= 1" \
		"s['batches'] + sum(x['batches'] for x in s['earlier']) >= o['batches_received']"
	grep "service [0-9.]*, service without the last step [0-9.]*\.$" out
}

@test "last step: what cannot be done ends with a reason" {
	run -2 train --last-step some
	[[ $output == *"'some'"*"there here pecan auto"* ]]
	run -2 train --last-step here
	[[ $output == *"the last of these transforms does not make samples larger"* ]]
	run -2 train --prep decode --last-step auto
	[[ $output == *"--last-step auto: only --offload auto measures"* ]]
	run -2 "$TRAIN" --data data --last-step here
	[[ $output == *"--last-step needs --loader service"* ]]
	run -2 train --prep decode --prep-output uint8 --last-step here
	[[ $output == *"the last of these transforms does not make samples larger"* ]]
}
