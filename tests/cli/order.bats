#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-train: the order in which samples are visited, dumped and replayed.

setup() {
	BUILD=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}
	TMP=$(mktemp -d)
	FILE=$TMP/order
}

teardown() {
	rm -rf "$TMP"
}

# 30 small files in two classes, one with a name that needs quoting.
data() {
	mkdir -p "$TMP/data/a" "$TMP/data/b"
	for i in $(seq 29); do
		head -c $((i * 10)) /dev/zero >"$TMP/data/$([ $((i % 2)) = 0 ] && echo a || echo b)/$i"
	done
	touch "$TMP/data/b/"$'new\nline \\ here'
}

train() {
	"$BUILD/gpemu-train" --time-scale 0.0001 "$@"
}

on_data() {
	train --data "$TMP/data" --loader sync --prep none -b 4 "$@"
}

@test "dump-order: every sample once per epoch, with its path" {
	data
	on_data -e 2 --seed 3 --dump-order "$FILE"
	python3 - "$FILE" "$TMP/data" <<-'PY'
		import os, sys
		data = sys.argv[2]
		paths = [os.path.join(c, f) for c in 'ab' for f in sorted(os.listdir(os.path.join(data, c)))]
		epochs = open(sys.argv[1]).read().split('epoch ')
		assert epochs[0] == '' and len(epochs) == 3
		for e, text in enumerate(epochs[1:]):
		    lines = text.splitlines()
		    assert lines[0] == str(e)
		    seen = {}
		    for line in lines[1:]:
		        index, path = line.split(' ', 1)
		        seen[int(index)] = path.encode().decode('unicode_escape')
		    assert len(lines) == 31 and [seen[i] for i in range(30)] == paths, seen
		assert epochs[1][1:] != epochs[2][1:]
	PY
}

@test "replay-order repeats the dumped order, whatever --order and --seed" {
	data
	for order in quasi-random:window=2,page=500 shuffle; do
		on_data -e 2 --order $order --dump-order "$FILE"
		on_data -e 2 --seed 9 --replay-order "$FILE" --dump-order "$TMP/again"
		cmp "$FILE" "$TMP/again"
	done
	# comments, empty lines and no paths
	{ echo "# by hand"; echo; sed 's/^\([0-9]*\) .*/\1/' "$FILE"; } >"$TMP/bare"
	on_data -e 2 --replay-order "$TMP/bare" --dump-order "$TMP/again"
	cmp "$FILE" "$TMP/again"
}

@test "an error in an order file is reported with its position" {
	data
	on_data --order sequential --dump-order "$FILE"
	# refused PLACE TEXT: what remains of the file after sed's -e "$3"
	refused() {
		sed -e "$3" "$FILE" >"$TMP/bad"
		run on_data --replay-order "$TMP/bad"
		[ "$status" -eq 1 ]
		[ "${#lines[@]}" -eq 1 ]
		[[ "$output" == *"$TMP/bad:$1: $2"* ]]
	}
	refused 1:7 "not an epoch number" '1s/0/x/'
	refused 1:1 "a sample before 'epoch N'" '1d'
	refused 3:1 "the dataset has only 30 samples" '3s/^1/30/'
	refused 3:2 "neither 'epoch N' nor the index" '3s/^1/1x/'
	refused 3:1 "neither 'epoch N' nor the index" '3s/^1/-1/'
	refused 3:3 "this is not the path" '3s/a/c/'
	refused 4:1 "this sample occurs twice" '4s/.*/1/'
	refused 30:1 "epoch 0 ends after 29 of 30 samples" '31d'
	refused 5:1 "epoch 0 ends after 3 of 30 samples" '5iepoch 1'
	refused 32:7 "epochs must ascend" '$aepoch 0'
	refused 3:2 "a NUL in the line" '3s/ /\x00/'
	run on_data -e 2 --replay-order "$FILE"
	[ "$status" -eq 1 ]
	[[ "$output" == *"epoch 1 is missing"* ]]
	: >"$TMP/empty"
	run on_data --replay-order "$TMP/empty"
	[ "$status" -eq 1 ]
	[[ "$output" == *"epoch 0 is missing"* ]]
	run on_data --replay-order "$TMP/none"
	[ "$status" -eq 1 ]
	[[ "$output" == *"$TMP/none: No such file"* ]]
	run on_data --dump-order /dev/full
	[ "$status" -eq 1 ]
	[[ "$output" == *"/dev/full: No space left on device"* ]]
}

# bats test_tags=slow
@test "torch: equal to PyTorch's randperm and DistributedSampler" {
	/usr/bin/python3 -c 'import torch' 2>/dev/null ||
		skip "python3-torch is not installed"
	for n in 1 2 3 17 1000 30011; do
		for seed in 0 42 4294967295; do
			train --loader null --samples $n --order torch --seed $seed -e 3 \
				--max-steps 100000 -b 256 --model alexnet --time-scale 0.000001 \
				--dump-order "$TMP/$n.$seed"
		done
	done
	/usr/bin/python3 - "$TMP" <<-'PY'
		import glob, os, sys
		import torch
		from torch.utils.data import DistributedSampler
		n_files = 0
		for name in glob.glob(sys.argv[1] + '/[0-9]*.*'):
		    n, seed = map(int, os.path.basename(name).split('.'))
		    for e, text in enumerate(open(name).read().split('epoch ')[1:]):
		        g = torch.Generator()
		        g.manual_seed(seed + e)
		        got = list(map(int, text.split()[1:]))
		        assert got == torch.randperm(n, generator=g).tolist(), (n, seed, e)
		        sampler = DistributedSampler(range(n), 1, 0, seed=seed)
		        sampler.set_epoch(e)
		        assert got == list(sampler), (n, seed, e)
		        n_files += 1
		assert n_files == 6 * 3 * 3, n_files
	PY
}

# bats test_tags=slow
@test "torch: the ranks of DistributedSampler, padded and with drop-last" {
	/usr/bin/python3 -c 'import torch' 2>/dev/null ||
		skip "python3-torch is not installed"
	data
	for world in 1 2 4 7 30 31 64; do
		for drop in "" --drop-last; do
			[ -n "$drop" ] && [ $world -gt 30 ] && continue
			for rank in 0 $((world / 2)) $((world - 1)); do
				on_data -b 1 --order torch --seed 5 -e 2 --rank $rank \
					--world-size $world $drop \
					--dump-samples "$TMP/rank.$world.$rank.$drop"
			done
		done
	done
	/usr/bin/python3 - "$TMP" <<-'PY'
		import glob, os, sys
		from torch.utils.data import DistributedSampler
		n_files = 0
		for name in glob.glob(sys.argv[1] + '/rank.*'):
		    world, rank, drop = os.path.basename(name).split('.')[1:]
		    sampler = DistributedSampler(range(30), int(world), int(rank), seed=5, drop_last=bool(drop))
		    got = [list(map(int, line.split()[:3])) for line in open(name)]
		    for e in range(2):
		        sampler.set_epoch(e)
		        assert [s for epoch, step, s in got if epoch == e] == list(sampler), name
		    n_files += 1
		assert n_files >= 20, n_files
	PY
}

@test "group needs groups; a rank is below the world size" {
	data
	run on_data --order group
	[ "$status" -eq 1 ]
	[[ "$output" == *"needs groups"*"shards"*"gpemu-fs --group"* ]]
	run on_data --rank 2 --world-size 2
	[ "$status" -eq 2 ]
	[[ "$output" == *"--rank 2 is not below --world-size 2"* ]]
	run train --loader null --order quasi-random --dump-order "$FILE"
	[ "$status" -eq 1 ]
	[[ "$output" == *"needs the sizes"* ]]
}

# samples FILE: of --dump-samples, the epoch and the sample of each visit, sorted
samples() {
	cut -d' ' -f1,3 "$1" | sort
}

@test "weighted: samples repeat, the same ones with every loader and by replay" {
	data
	on_data -e 2 --order weighted --dump-order "$FILE" --json "$TMP/r" \
		--dump-samples "$TMP/one"
	[ "$(head -n 1 "$FILE")" = repeats ]
	python3 - "$TMP/one" "$TMP/r" <<-'PY'
		import json, sys
		visits = [l.split(' ')[::2][:2] for l in open(sys.argv[1])]
		for e in json.load(open(sys.argv[2]))['epochs']:
		    mine = [int(s) for epoch, s in visits if int(epoch) == e['epoch']]
		    assert len(mine) == e['samples'] == 30
		    assert len(set(mine)) == e['distinct_samples'] < 30
	PY
	for loader in async threads mmap; do
		on_data -e 2 --order weighted --loader $loader --dump-samples "$TMP/two"
		cmp <(samples "$TMP/one") <(samples "$TMP/two")
	done
	on_data -e 2 --seed 9 --replay-order "$FILE" --dump-order "$TMP/again"
	cmp "$FILE" "$TMP/again"
	# without its first line the file may not repeat
	sed 1d "$FILE" >"$TMP/bare"
	run on_data -e 2 --replay-order "$TMP/bare"
	[ "$status" -eq 1 ]
	[[ $output == *"this sample occurs twice in the epoch"* ]]
}

@test "weighted: a resumed run makes the visits that are left" {
	local step k="--checkpoint-dir $TMP/k --checkpoint-every 1 --checkpoint-keep 99 --checkpoint-size 4K"

	data
	train() { "$BUILD/gpemu-train" --model alexnet --gpu a100 --time-scale 0.0001 "$@"; }
	on_data -e 2 --order weighted --dump-samples "$TMP/one"
	for step in 3 9; do
		rm -rf "$TMP/k"
		on_data -e 2 --order weighted $k --max-steps $step \
			--dump-samples "$TMP/two"
		on_data -e 2 --order weighted $k --resume --dump-samples "$TMP/two"
		cmp <(samples "$TMP/one") <(samples "$TMP/two")
	done
}

@test "weighted: labels have equal shares, a file gives others" {
	data
	rm "$TMP/data/b/"*[2-9]
	# 14 of a and few of b
	shares() {
		on_data -e 200 --order "$1" --dump-samples "$TMP/s" >/dev/null
		awk '{n[substr($4, 1, 1)]++} END {printf "%.2f\n", n["b"] / NR}' "$TMP/s"
	}
	[[ $(shares weighted) =~ ^0.(49|50|51)$ ]]
	printf '%s\n' 1 0 >"$TMP/w"
	[ "$(shares "weighted:file=$TMP/w")" = 0.00 ]
	run on_data --order "weighted:by=sample,file=$TMP/w"
	[ "$status" -eq 1 ]
	[[ $output == *"$TMP/w: 2 weights for "*" samples" ]]
	run on_data --order weighted:by=samples
	[ "$status" -eq 2 ]
	[[ $output == *"by: unknown value of by 'samples'; did you mean 'sample'?"* ]]
	run train --data "$TMP/data" --model alexnet --gpu a100 --prep none \
		--loader service --dispatcher 127.0.0.1:1 --order "weighted:file=$TMP/w"
	[ "$status" -eq 2 ]
	[[ $output == *"workers open no file that a trainer names"* ]]
}

@test "webdataset reads shards one after the other, each in its order" {
	cd "$TMP"
	python3 - <<-'PY'
		import io, os, tarfile
		os.mkdir('shards')
		for s in range(4):
		    with tarfile.open(f'shards/{s}.tar', 'w') as t:
		        for i in range(6):
		            m = tarfile.TarInfo(f'{s}{i}.jpg')
		            m.size = 100
		            t.addfile(m, io.BytesIO(bytes(100)))
	PY
	train --data shards --prep none -b 3 -e 2 --order webdataset:streams=2 \
		--dump-order "$FILE"
	python3 - "$FILE" <<-'PY'
		import sys
		epochs = [[line.split()[-1] for line in part.splitlines()[1:]]
		          for part in open(sys.argv[1]).read().split('epoch ')[1:]]
		assert len(epochs) == 2 and epochs[0] != epochs[1], epochs
		for visits in epochs:
		    streams = {}
		    for i, path in enumerate(visits):
		        streams.setdefault(i // 3 % 2, []).append(path)
		    for reads in streams.values():
		        shards = [reads[:6], reads[6:]]
		        assert all(s == sorted(s) for s in shards), visits
		        assert all(len({p[0] for p in s}) == 1 for s in shards), visits
	PY
}
