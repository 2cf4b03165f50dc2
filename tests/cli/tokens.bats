#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-train on language models: token files, sequence lengths, precision,
# optimiser state, accumulated gradients, sharded data parallelism.

bats_require_minimum_version 1.5.0

setup() {
	TRAIN=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}/gpemu-train
	TMP=$BATS_TEST_TMPDIR
	JSON=$TMP/record.json
}

# Conditions on the record j, its first epoch e and its node n.
check() {
	python3 - "$JSON" "$@" <<-'PY'
		import json, sys
		j = json.load(open(sys.argv[1]))
		e, n = j['epochs'][0], j['node']
		near = lambda a, b, by=.01: abs(a - b) <= by * abs(b)
		for condition in sys.argv[2:]:
		    assert eval(condition), (condition, n, e)
	PY
}

# value EXPRESSION...: of the same
value() {
	python3 - "$JSON" "$@" <<-'PY'
		import json, sys
		j = json.load(open(sys.argv[1]))
		e, n = j['epochs'][0], j['node']
		print(*[eval(x) for x in sys.argv[2:]])
	PY
}

# Steps that read nothing.
null() {
	"$TRAIN" --loader null --time-scale 0.001 --json "$JSON" "$@" >"$TMP/out"
}

@test "GPT-2 large on an H100 at the published points" {
	while read -r variant batch ms; do
		null --gpu h100 --model "gpt2_large${variant#-}" --sequence-length 1024 \
			-b "$batch" --max-steps 2
		check "near(e['compute_s'], 2 * $ms / 1000, .0005)" \
			"j['profile']['measured'] == 'measured'" \
			"'gpt2_large-train-1024-$batch' in j['profile']['rows']" \
			"e['batch_bytes'] == 2 * $batch * 16384"
	done <<-END
		- 1 183.977
		- 4 638.809
		:dp4 16 642.081
		:tp4 16 729.665
	END
}

@test "every window of tokens exactly once in each epoch, in each loader" {
	mkdir "$TMP/data"
	# 2003 tokens: 66 windows of 30 and one label, 22 left over
	head -c 4006 /dev/urandom >"$TMP/data/train.bin"
	for loader in sync mmap async; do
		rm -f "$TMP/samples"
		"$TRAIN" --data "$TMP/data" --format tokens:sequence_length=30 \
			--prep tokens:sequence_length=30 --loader $loader -e 2 \
			--workers 2 --gpu h100 --model gpt2_large:seq1024 -b 4 \
			--time-scale 0.0001 --dump-samples "$TMP/samples" \
			--json "$JSON" >/dev/null
		check "j['dataset']['format'] == 'tokens'" \
			"j['dataset']['samples'] == 66" \
			"e['samples'] == 66 and e['failed_samples'] == 0" \
			"e['bytes'] == 66 * 62 and e['batch_bytes'] == 66 * 480"
		python3 - "$TMP/samples" <<-'PY'
			import collections, sys
			seen = collections.Counter()
			for line in open(sys.argv[1]):
			    if line[0] != '#':
			        epoch, step, sample, path = line.split()
			        seen[int(epoch), int(sample)] += 1
			assert seen == {(e, s): 1 for e in range(2) for s in range(66)}
		PY
	done
}

@test "a token file that is cut while it is mapped is failed samples, with their place" {
	mkdir "$TMP/data"
	head -c 4194306 /dev/zero >"$TMP/data/train.bin" # 2048 windows of 1024
	# of 6 seconds of steps, the first is past when the file is cut
	"$TRAIN" --data "$TMP/data" --sequence-length 1024 --gpu h100 \
		--model gpt2_large -b 4 --time-scale 0.02 --loader mmap --workers 1 \
		--order sequential --progress off --json "$JSON" --bad-samples 100% \
		>/dev/null 2>"$TMP/err" 3>&- &
	pid=$!
	until grep -q train.bin /proc/$pid/maps; do
		kill -0 $pid
		sleep .01
	done
	truncate -s 2M "$TMP/data/train.bin"
	status=0
	wait $pid || status=$?
	[ "$status" -eq 0 ]
	# 1023 are whole, and of the next one a token is missing
	check "e['failed_samples'] == 1025 and e['samples'] == 1023"
	place="$TMP/data/train.bin#1023, from byte 2095104: its size changed since"
	grep -q "$place the dataset was listed" "$TMP/err"
	grep -q "1025 of 2048 samples could not be used" "$TMP/err"
}

@test "tokens have the size that the index of Megatron says" {
	mkdir "$TMP/data"
	python3 - "$TMP/data/train" <<-'PY'
		import struct, sys
		lengths = [10, 0, 1, 70]  # of documents; int32, as large vocabularies
		n = sum(lengths)
		open(sys.argv[1] + '.bin', 'wb').write(struct.pack(f'<{n}i', *range(n)))
		starts = [4 * sum(lengths[:i]) for i in range(4)]
		open(sys.argv[1] + '.idx', 'wb').write(
		    b'MMIDIDX\0\0' + struct.pack('<QBQQ', 1, 4, 4, 5) +
		    struct.pack('<4i4q5q', *lengths, *starts, *range(5)))
	PY
	for documents in off on; do
		"$TRAIN" --data "$TMP/data" --gpu h100 --model bert_large:seq512 -b 2 \
			--format "tokens:sequence_length=32,documents=$documents" \
			--prep tokens:sequence_length=32 --time-scale 0.001 \
			--json "$JSON" >/dev/null
		# 2 windows; 10 tokens, 2 windows and the rest of 70
		check "e['samples'] == {'off': 2, 'on': 4}['$documents']" \
			"e['failed_samples'] == 0" \
			"j['prep']['output'] == 'int64' and not j['prep']['image_size']"
	done
	run -1 "$TRAIN" --data "$TMP/data" --gpu h100 --model bert_large:seq512 \
		-b 2 --format tokens:sequence_length=32 \
		--prep tokens:sequence_length=32,token_bytes=2
	[[ "$output" == *"token_bytes=2: the dataset's tokens have 4"* ]]
}

@test "a document is all sequences between its bounds in the index of Megatron" {
	mkdir "$TMP/data"
	index() { # SEQUENCES BOUND...: of 200 tokens each
		python3 - "$TMP/data/train" "$@" <<-'PY'
			import struct, sys
			n, bounds = int(sys.argv[2]), [int(x) for x in sys.argv[3:]]
			open(sys.argv[1] + '.bin', 'wb').write(bytes(400 * n))
			open(sys.argv[1] + '.idx', 'wb').write(
			    b'MMIDIDX\0\0' + struct.pack('<QBQQ', 1, 8, n, len(bounds)) +
			    struct.pack('<%di%dq%dq' % (n, n, len(bounds)), *[200] * n,
			                *range(0, 400 * n, 400), *bounds))
		PY
	}
	train() {
		"$TRAIN" --data "$TMP/data" --gpu h100 --model bert_large:seq512 -b 2 \
			--format tokens:sequence_length=1024,documents=on \
			--prep tokens:sequence_length=1024 --time-scale 0.001 \
			--json "$JSON"
	}
	index 4 0 2 4
	run -0 train
	check "e['samples'] == 2 and e['bytes'] == 2 * 800"
	[[ $output == *" a sample, "*" samples/s per core, on "* ]]
	[[ $output != *images* ]]
	index 4 0 4
	train
	check "e['samples'] == 1 and e['bytes'] == 1600"
	while read -r why bounds; do
		# shellcheck disable=SC2086 # words
		index 4 $bounds
		run -1 train
		[[ $output == *"train.bin: its .idx: byte "*"$why"* ]]
	done <<-END
		last 0 5 1
		first 1 2 4
		last 0 2 3
		ends 0 3 2 4
	END
	index 4 0 2 4
	printf '\x20' | dd of="$TMP/data/train.idx" bs=1 seek=33 conv=notrunc status=none
	run -1 train
	[[ $output == *"its .idx: byte 26: more documents than the file has room for"* ]]
}

@test "shards of llm.c: the header is no tokens, and has their width" {
	mkdir "$TMP/gpt2" "$TMP/llama3" "$TMP/both"
	python3 - "$TMP" <<-'PY'
		import struct, sys
		def shard(path, magic, version, code, ids):
		    open(sys.argv[1] + path, 'wb').write(
		        struct.pack('<3i', magic, version, len(ids)) + bytes(1012) +
		        struct.pack('<%d%s' % (len(ids), code), *ids))
		ids = [i * 7919 % 50257 for i in range(10001)]
		shard('/gpt2/fineweb_train_000001.bin', 20240520, 1, 'H', ids)
		shard('/llama3/tinystories_train.bin', 20240801, 7, 'I', ids)
		shard('/both/a.bin', 20240520, 1, 'H', ids)
		open(sys.argv[1] + '/both/b.bin', 'wb').write(struct.pack('<10001H', *ids))
		# ids of four bytes, which nothing says
		open(sys.argv[1] + '/raw.bin', 'wb').write(struct.pack('<10001I', *ids))
	PY
	train() { # DATA FORMAT-OPTIONS
		"$TRAIN" --data "$TMP/$1" --format "tokens:sequence_length=1024$2" \
			--prep tokens:sequence_length=1024 --gpu h100 -b 4 \
			--model gpt2_large:seq1024 --order sequential --progress off \
			--time-scale 0.001 --json "$JSON"
	}
	train gpt2
	check "j['dataset']['samples'] == e['samples'] == 9" \
		"j['dataset']['tokens'] == {'bytes': 2, 'from': 'header'}" \
		"e['bytes'] == 9 * 2050"
	train llama3
	check "j['dataset']['samples'] == e['samples'] == 9" \
		"j['dataset']['tokens'] == {'bytes': 4, 'from': 'header'}" \
		"e['bytes'] == 9 * 4100"
	run -1 train both
	[[ $output == *"a.bin has a header before its tokens, b.bin has none" ]]
	run -1 train raw.bin
	[[ $output == *"raw.bin: its tokens look like four bytes each"*"token_bytes=4"* ]]
	run -1 train raw.bin ,token_bytes=4,vocabulary=50000
	[[ $output == *"raw.bin: token "*" outside the vocabulary of 50000" ]]
	train raw.bin ,token_bytes=4,vocabulary=50257
	check "j['dataset']['tokens'] == {'bytes': 4, 'from': 'option'}"
	printf x >>"$TMP/gpt2/fineweb_train_000001.bin"
	run -1 train gpt2
	[[ $output == *"header counts 10001 tokens of 2 bytes, and 20003 bytes follow it" ]]
}

@test "--sequence-length chooses format, transforms and the model's variant" {
	mkdir "$TMP/data"
	head -c 8196 /dev/zero >"$TMP/data/train.bin" # 8 windows of 512, a label, a token
	"$TRAIN" --data "$TMP/data" --sequence-length 512 --gpu h100 \
		--model bert_large -b 2 --time-scale 0.001 --json "$JSON" >/dev/null
	check "j['profile']['model'] == 'bert_large:seq512'" \
		"j['dataset']['samples'] == 8" "e['batch_bytes'] == 8 * 8192" \
		"j['prep']['name'].startswith('tokens:')" \
		"near(e['compute_s'], 4 * .07475)"
	run -1 "$TRAIN" --loader null --gpu h100 --model bert_large \
		--sequence-length 256 -b 2
	[[ "$output" == *"unknown model 'bert_large:seq256' (known: "* ]]
}

@test "precision and optimiser decide the bytes of gradients and checkpoints" {
	bytes() { # PRECISION OPTIMIZER: of gradients, and of a checkpoint
		rm -rf "$TMP/ck"
		null --gpu "$TMP/gpu.yaml" --model m -b 1 --gpus 2 --max-steps 1 \
			--precision "$1" --optimizer "$2" --checkpoint-every 1 \
			--checkpoint-dir "$TMP/ck"
		value "n['allreduce']['gradient_bytes']" \
			"j['totals']['checkpoint_bytes']"
	}
	cat >"$TMP/gpu.yaml" <<-END
		name: G
		source: test
		precision: fp32
		memory_mib: 1000
		usable_memory: 1
		sample_bytes: 100
		pinned: {base_ms: 0, per_sample_ms: 0, source: s}
		pin_copy: {base_ms: 0, per_sample_ms: 0, source: s}
		models:
		  m: {parameters: 1000000, rows: [[1, 10, 20]]}
		  m:bf16: {parameters: 1000000, rows: [[1, 5, 10]]}
	END
	read -r gradients small <<<"$(bytes fp32 sgd)"
	[ "$gradients" -eq 4000000 ]
	[ "$small" -ge 8000000 ] && [ "$small" -lt 8300000 ]
	read -r gradients large <<<"$(bytes fp32 adamw)"
	[ $((large - small)) -eq 4000000 ]
	read -r gradients large <<<"$(bytes bf16 adamw)"
	[ "$gradients" -eq 2000000 ]
	[ $((large - small)) -eq 6000000 ]
	check "j['profile']['model'] == 'm:bf16'" "near(e['compute_s'], .015)"
	run -1 "$TRAIN" --loader null --gpu "$TMP/gpu.yaml" --model m -b 1 \
		--precision fp8
	[[ "$output" == *"m was not measured in fp8 (the profile: fp32)"* ]]
}

@test "accumulated gradients are reduced in every Nth step" {
	null --gpu p100 --model alexnet -b 32 --gpus 2 --max-steps 8
	check "e['allreduce_s'] > 0"
	full=$(value "e['allreduce_s']")
	null --gpu p100 --model alexnet -b 32 --gpus 2 --max-steps 8 --accumulate 4
	check "near(e['allreduce_s'], $full / 4, .02)" "n['accumulate'] == 4" \
		"e['steps'] == 8"
	run "$TRAIN" --loader null --model alexnet --max-steps 8 --accumulate 4 \
		--checkpoint-every 6 --checkpoint-dir "$TMP/ck"
	[ "$status" -ne 0 ]
	[[ "$output" == *"not a multiple of --accumulate 4"* ]]
}

@test "sharded: parameters and gradients pass layer by layer" {
	null --gpu h100 --model gpt2_large --sequence-length 1024 -b 1 --gpus 4 \
		--max-steps 4 --parallel fsdp --fsdp-units 36
	check "n['parallel'] == 'fsdp' and n['fsdp']['units'] == 36" \
		"n['fsdp']['weight_bytes'] == 4 * 774000000" \
		"n['allreduce']['gradient_bytes'] == 0" "e['allreduce_s'] > 0" \
		"all(near(sum(g[k + '_s'] for k in ('compute', 'data_wait', 'transfer_stall', 'barrier_wait', 'allreduce', 'prep_gpu')), e['seconds'], .02) for g in e['gpus'])"
	ahead=$(value "e['allreduce_s']")
	null --gpu h100 --model gpt2_large --sequence-length 1024 -b 1 --gpus 4 \
		--max-steps 4 --parallel fsdp --fsdp-units 36 --fsdp-prefetch 0
	check "e['allreduce_s'] > 1.1 * $ahead"
	# a rank saves its share of 12 bytes a parameter
	null --gpu h100 --model bert_large --sequence-length 512 -b 2 --max-steps 1 \
		--parallel fsdp --optimizer adamw --world-size 400 \
		--checkpoint-every 1 --checkpoint-dir "$TMP/ck"
	check "near(j['totals']['checkpoint_bytes'], 12 * 340e6 / 400, .02)"
}

@test "a batch that is padded to its longest computes that share of the model's tokens" {
	mkdir "$TMP/data"
	python3 - "$TMP/data/train" <<-'PY'
		import struct, sys
		lengths = [257, 65, 65, 3, 2, 513]  # of documents, uint16
		open(sys.argv[1] + '.bin', 'wb').write(bytes(2 * sum(lengths)))
		starts = [2 * sum(lengths[:i]) for i in range(6)]
		open(sys.argv[1] + '.idx', 'wb').write(
		    b'MMIDIDX\0\0' + struct.pack('<QBQQ', 1, 8, 6, 7) +
		    struct.pack('<6i6q7q', *lengths, *starts, *range(7)))
	PY
	for pad in 0 64 100; do
		"$TRAIN" --data "$TMP/data" --gpu h100 --model bert_large -b 2 \
			--sequence-length 512 --format tokens:documents=on \
			--order sequential --time-scale 0.001 --pad-multiple $pad \
			--steps "$TMP/$pad.csv" --json "$JSON" >/dev/null
	done
	python3 - "$TMP" <<-'PY'
		import csv, sys
		def computed(pad):
		    return [float(x['compute_end_s']) - float(x['compute_start_s'])
		            for x in csv.DictReader(open('%s/%d.csv' % (sys.argv[1], pad)))]
		full = computed(0)
		for pad, want in (64, (256, 64, 512)), (100, (300, 100, 512)):
		    for a, b, tokens in zip(computed(pad), full, want):
		        assert abs(a / b - tokens / 512) < 1e-5, (pad, a, b, tokens)
	PY
	run -2 "$TRAIN" --data "$TMP/data" --model resnet18 --pad-multiple 64
	[[ $output == *"--pad-multiple needs --sequence-length"* ]]
}
