# SPDX-License-Identifier: MIT
# gpemu-run check with the real programs: errors, and the time that a workload
# takes, which gpemu-train --simulate computes. Nothing runs.
bats_require_minimum_version 1.5.0

setup()
{
	unset GPEMU_BIN
	bin=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}
	cd "$BATS_TEST_TMPDIR" || return
	export TMPDIR=$BATS_TEST_TMPDIR
}

# workload FS TRAIN [LINE]...: of 4000 files
workload()
{
	cat >w.yaml <<-END
		name: w
		question: How long?
		dataset: {synth: imagenet, files: 4000}
		base:
		  fs: {$1}
		  train: {model: resnet18, batch: 32, prep: ${prep-none}, $2}
	END
	shift 2
	printf '%s\n' "$@" >>w.yaml
}

# check LEAST MOST: seconds
check()
{
	run --separate-stderr "$bin/gpemu-run" check w.yaml
	[ "$status" -eq 0 ]
	python3 - "$output" "$@" <<-'END'
		import re, sys
		text, least, most = sys.argv[1], *map(float, sys.argv[2:])
		found = re.search(r"^time +about ([0-9.]+) s for 1 cells", text, re.M)
		assert found, text
		assert least <= float(found[1]) <= most, found[0]
	END
}

@test "a disk sorts its queue, with every loader that fills it" {
	# 5.6 ms a file alone, 2.5 ms among 24
	workload "storage: hdd, cache_policy: none" "gpu: p100, loader: sync, workers: 1"
	check 20 26
	workload "storage: hdd, cache_policy: none" "gpu: p100, gpus: 8, loader: threads, queue_depth: 24"
	check 9 13
	workload "storage: hdd, cache_policy: none" "gpu: p100, gpus: 8, loader: async, queue_depth: 24"
	check 9 13
}

# simulated FS TRAIN: of the workload's files; within the three digits that check
# prints
simulated()
{
	echo "{$1}" >fs.yaml
	echo "{model: resnet18, batch: 32, $2}" >train.yaml
	"$bin/gpemu-train" --simulate --data synth:imagenet,files=4000 --seed 7 \
		--config train.yaml --fs-config fs.yaml --json record.json >/dev/null
	python3 -c "
import json
s = json.load(open('record.json'))['totals']['seconds'] * ${3-1} + .9
print(s * .994, s * 1.006)"
}

@test "the estimate is what gpemu-train --simulate says, and the start of a cell" {
	while IFS='|' read -r scale fs train; do
		workload "$fs" "$train" "seed: 7" "time_scale: $scale"
		range=$(simulated "$fs" "prep: none, $train" "$scale")
		check $range
	done <<-END
		1|storage: hdd, prefetch: 64M|gpu: p100, epochs: 3, workers: 4
		0.5|storage: hdd, prefetch: 64M, cache_policy: lru|gpu: p100, epochs: 3, workers: 4
		1|storage: hdd, tier: "nvme:minio:20%"|gpu: v100, gpus: 8, epochs: 2, workers: 4
		1|storage: s3-standard, cache_size: 10%|gpu: v100, epochs: 2, workers: 2, loader: sync
		1|storage: hdd|gpu: v100, max_steps: 50, workers: 4
	END
}

@test "the nodes of a job, and their cache" {
	workload "storage: hdd, peers: auto" "gpu: v100, nodes: 4, workers: 4" "seed: 7"
	range=$(simulated "storage: hdd" "prep: none, gpu: v100, nodes: 4, workers: 4, caches: partitioned")
	check $range
}

@test "what a simulation has no model of is left out, and named" {
	prep=decode workload "storage: hdd, memory: 64M" \
		"gpu: v100, checkpoint_every: 50, trace: t, workers: 4" "seed: 7"
	range=$(simulated "storage: hdd" "gpu: v100, workers: 4, prep: emulated, prep_time: 0s")
	check $range
	grep -x "            left out: --checkpoint-every, --prep decode, --trace, memory" <<<"$output"
	# on the emulated storage they have one
	set -- "gpu: v100, checkpoint_every: 50, checkpoint_size: 1G, workers: 4"
	workload "storage: nvme, writable: scratch" "$1" "seed: 7"
	range=$(simulated "storage: nvme" "prep: none, $1")
	check $range
	! grep -q "left out" <<<"$output" || false
}

@test "a check writes no file of the workload" {
	workload "storage: nvme, trace: $PWD/out.fs" "gpu: v100, max_steps: 2, dump_order: $PWD/out.order, steps: $PWD/out.steps, dump_samples: $PWD/out.samples, trace: $PWD/out.trace"
	run -0 "$bin/gpemu-run" check w.yaml
	[[ $output == *"for 1 cells, 1 simulated"* ]]
	run ! compgen -G "out.*"
}

# bats test_tags=slow
@test "of many points some are simulated, and the others take their mean" {
	workload "storage: hdd, cache_policy: none" "gpu: v100, gpus: 8, workers: 4" \
		"axes: {train.workers: [$(seq -s, 1 100)]}"
	run "$bin/gpemu-run" check w.yaml
	[[ $output =~ "time        about "[0-9.]+" "[a-z]+" for 100 cells, "([0-9]+)" simulated, "([0-9]+)" as the mean of these" ]]
	[ "${BASH_REMATCH[1]}" -le 64 ]
	[ $((BASH_REMATCH[1] + BASH_REMATCH[2])) -eq 100 ]
}

@test "LRU misses more than the share that does not fit" {
	# 2.5 ms a miss, 4000 of them and 60 % or 91 %
	for row in "minio 15 18" "lru 19 22"; do
		read -r policy least most <<<"$row"
		workload "storage: hdd, cache_policy: $policy, cache_size: 40%" \
			"gpu: p100, gpus: 8, epochs: 2, queue_depth: 24"
		check "$least" "$most"
	done
}

@test "check uses the defaults of the programs" {
	workload "storage: ideal" "epochs: 1"
	check 5 9 # a V100: 125 steps of 37 ms
	workload "storage: ideal" "node: dgx-1v"
	check 1 2.5 # with eight of them
}

@test "virtual cores" {
	prep=emulated workload "storage: ideal" "cores: 2"
	check 12 15 # 155 images/s each
	prep=emulated workload "storage: ideal" "loader: sync, node: dgx-1v"
	check 1 2.5 # the node's 40
}

@test "jobs run concurrently, but for a shared GPU" {
	workload "storage: ideal" "loader: \"null\", samples: 3200, epochs: 2" \
		"jobs: {one: {}, two: {}, late: {start: 20s}}"
	check 27 31 # 200 steps of 37 ms, from 20 s on
	sed -i 's/^base:/&\n  gpud: {gpu: v100}/' w.yaml
	check 27 31 # two of them before
	sed -i 's/start: 20s/start: 5s/' w.yaml
	check 22 25 # none is idle
}

@test "copied and pinned bytes cost the same as in a run" {
	# 125 steps of 37 ms on a V100; of 1120 x 1120 pixels a batch of 32 takes
	# 39 ms from pinned memory and 128 ms into it, 113 ms from pageable, a
	# quarter of that in bytes; transforms are left out
	for row in "direct fp32 5.7 6.2" "on fp32 16.5 17.5" "off fp32 14.5 15.5" \
		"on uint8 5.4 5.7" "off uint8 5.4 5.7"; do
		read -r pin output least most <<<"$row"
		prep=decode workload "storage: ideal" \
			"gpu: v100, pin: \"$pin\", prep_output: $output, image_size: 1120, pin_budget: 4G"
		check "$least" "$most"
	done
	# raw files, 0.1 MB each
	workload "storage: ideal" "gpu: v100, image_size: 1120"
	check 5.4 5.7
}

# trained: the estimate of train.yaml is what a run of it takes
trained()
{
	"$bin/gpemu-train" --config train.yaml --time-scale 0.02 --json record.json
	# starting a cell takes 0.9 s; no computation hides the first copy; data
	# waits depend on this machine
	check $(python3 -c "
import json
t = json.load(open('record.json'))['totals']
s = t['seconds'] - t['data_wait_s'] + .9
print(s * .97, s * 1.02)")
}

# bats test_tags=timed
@test "a step of several GPUs takes as long as in gpemu-train" {
	[ -z "${GPEMU_SANITIZED-}" ] || skip "times mean nothing with a sanitizer"
	for train in "gpus: 8" "gpus: 8, transfer: blocking" "gpus: 4, parallel: dp" \
		"gpus: 4, parallel: dp, inference: true" "gpus: 2, pin: \"off\"" \
		"gpus: 8, node: dgx-1v, allreduce: tree, inference: true" \
		"node: config-ssd-v100, prep_gpu: dali-gpu"; do
		workload "storage: ideal" "gpu: v100, loader: \"null\", samples: 25600, $train"
		sed -i s/resnet18/alexnet/ w.yaml
		echo "{model: alexnet, batch: 32, prep: none, loader: \"null\", gpu: v100, samples: 25600, $train}" >train.yaml
		for try in 1 2 3 4 5; do
			! (trained) || break # others may use the machine, too
			[ "$try" -lt 5 ]
		done
	done
}

@test "cells that cannot be estimated are reported without a time" {
	workload "storage: ideal" "epochs: 1"
	sed -i '/train:/d' w.yaml
	sed -i 's/^base:/&\n  exec: {command: "true"}/' w.yaml
	run "$bin/gpemu-run" check w.yaml
	[[ $output == *"time        1 cell without an estimate: a user's program"* ]]
	[[ $output != *about* ]]
	printf '%s\n' "name: all" "question: All?" "workloads: [w.yaml]" >all.yaml
	run "$bin/gpemu-run" check all.yaml
	[[ $output =~ w\ +1\ +1\ +-\ +plus\ 1\ without\ an\ estimate ]]
	workload "storage: hdd, group: 64" "order: group"
	run "$bin/gpemu-run" check w.yaml
	[[ $output == *"time        1 cell without an estimate: the order group needs groups"* ]]
}

@test "a simulation: neither mounts nor an estimate" {
	workload "storage: hdd" "simulate: true"
	run "$bin/gpemu-run" check w.yaml
	[[ $output == *"job         train: gpemu-train --simulate, without mounts, of data"* ]]
	[[ $output == *"time        1 cell simulated"* ]]
	workload "storage: hdd" "gpu: v100"
	run "$bin/gpemu-run" check --no-mount w.yaml
	[[ $output == *"job         train: gpemu-train on the plain folder of data"* ]]
}

@test "the rules of MLPerf Storage, as a simulation finds them" {
	rule()
	{
		[[ $output == *"$1  MLPerf Storage, rule $2"* ]] || { echo "$output"; false; }
	}
	prep=decode workload "storage: hdd, cache_size: 50%" "gpu: v100, workers: 4, epochs: 2"
	run "$bin/gpemu-run" check w.yaml
	[[ $output != *"MLPerf"* ]]
	echo 'rules: {au: 60%}' >>w.yaml
	run "$bin/gpemu-run" check w.yaml
	rule WARN "dataset-size: down to 2 times, wanted 5 times the mount's cache (1 of 1)"
	rule "ok  " "cold-cache: cold"
	rule WARN "steps-per-epoch: down to 125 steps, wanted 500 steps (closed division) (2 of 2)"
	# with transforms that are left out, nobody knows
	rule "-   " "au: not known"
	run "$bin/gpemu-run" check --no-mount w.yaml
	rule WARN "dataset-size: down to 0.0"
	rule WARN "cold-cache: the page cache may hold the folder"
	sed -i 's/prep: decode/prep: none/; s/v100/p100/; s/cache_size: 50%/cache_size: 10%/' w.yaml
	run "$bin/gpemu-run" check w.yaml
	rule "ok  " "dataset-size: 10 times"
	rule "ok  " "au: "
	sed -i 's/workers: 4/&, gpus: 8/' w.yaml
	run "$bin/gpemu-run" check w.yaml
	rule WARN "au: down to "
	sed -i 's/prep: none/&, direct: true, loader: sync/' w.yaml
	run "$bin/gpemu-run" check --no-mount w.yaml
	rule "ok  " "cold-cache: cold"
}

# refuses SED TEXT
refuses()
{
	sed "$1" w.yaml >bad.yaml
	run "$bin/gpemu-run" bad.yaml
	[ "$status" -ne 0 ]
	[[ ${lines[0]} == *"$2"* ]]
	[ "${#lines[@]}" -eq 1 ]
	[ ! -e results ]
}

@test "check rejects unknown names with their position before anything runs" {
	workload "storage: ideal" "gpu: v100, node: dgx-1v, order: torch, loader: sync" \
		"axes:" "  fs.cache_policy: [lru, minio]" \
		"jobs: {one: {}, two: {train: {model: alexnet}}}"
	refuses s/ideal/idle/ "bad.yaml:5:17: gpemu-fs: storage: unknown storage profile 'idle' (known: ebs-gp3"
	refuses s/minio/mini/ "bad.yaml:8:26: gpemu-fs: cache_policy: unknown cache policy 'mini'; did you mean 'minio'? (known: none lru"
	refuses s/v100,/v101,/ "bad.yaml:6:56: gpemu-train: gpu: unknown gpu profile 'v101'"
	refuses s/dgx-1v/dgx/ "gpemu-train: node: unknown node profile 'dgx'"
	refuses s/torch/torche/ "gpemu-train: order: unknown order 'torche'"
	refuses s/sync/synch/ "gpemu-train: loader: unknown engine 'synch'"
	refuses "s/prep: none/prep: non/" "gpemu-train: prep: unknown prep 'non'"
	refuses "s/prep: none/prep_profile: x/" "gpemu-train: prep_profile: unknown prep profile 'x'"
	refuses "s/prep: none/format: x/" "gpemu-train: format: unknown format 'x'"
	refuses s/resnet18/resnet19/ "bad.yaml:6:18: Tesla V100-PCIE-32GB: unknown model 'resnet19'"
	refuses s/alexnet/alex/ "bad.yaml:9:38: Tesla V100-PCIE-32GB: unknown model 'alex'"
	refuses "s/synth: imagenet/synth: x/" "bad.yaml:3:18: unknown dataset profile 'x'"
	refuses "s/synth: imagenet/dataset: x/" "bad.yaml:3:20: gpemu-data: dataset: unknown dataset profile 'x'"
}

@test "check reports a missing or wrong profile by its path" {
	workload "storage: ideal" "gpu: v100, node: dgx-1v" "axes:" \
		"  fs.cache_policy: [lru, minio]"
	refuses s/ideal/no.yaml/ "storage profile no.yaml: No such file"
	refuses s/v100,/no.yaml,/ "gpu profile no.yaml: No such file"
	refuses s/dgx-1v/no.yaml/ "node profile no.yaml: No such file"
	printf '%s\n' "name: d" "source: s" "read: {source: s, latency: 5ms}" >d.yaml
	refuses s/ideal/d.yaml/ "d.yaml:3:28: "
}

@test "a default profile is part of a run's identity, too" {
	cp -r "${GPEMU_PROFILES:-$bin/../profiles}" profiles
	export GPEMU_PROFILES=$PWD/profiles XDG_CACHE_HOME=$PWD/cache
	prep=emulated workload "storage: ideal" "pin: off" "time_scale: 0.01"
	sed -i 's/synth: imagenet, files: 4000/dataset: imagenette, files: 5/' w.yaml
	"$bin/gpemu-run" --no-mount w.yaml
	for profile in gpu/tesla-v100-pcie-32gb prep/pytorch-pillow; do
		run "$bin/gpemu-run" check --no-mount w.yaml
		[[ $output == *"records     1 of 1 cells"* ]]
		cp "profiles/$profile.yaml" kept
		echo "# changed" >>"profiles/$profile.yaml"
		run "$bin/gpemu-run" check --no-mount w.yaml
		[[ $output == *"records     0 of 1 cells"* ]]
		mv kept "profiles/$profile.yaml"
	done
}

@test "check finds keys that exclude each other, at any point" {
	workload "storage: ideal, cache_policy: lru" "gpu: v100" \
		"axes:" "  train.batch: [16, 32]" \
		"  fs.tier: [\"dram:minio:10%\", \"dram:lru:20%\"]"
	refuses s/x/x/ "bad.yaml:9:13: 16, dram:minio:10%: gpemu-fs: --tier replaces --cache-policy and --cache-size"
	# one of two axes, in one of four points
	workload "storage: ideal" "gpu: v100" "axes:" \
		"  a: [{label: one}, {label: two, fs.cache_policy: lru}]" \
		"  b: [{label: three}, {label: four, fs.tier: \"dram:lru:20%\"}]"
	refuses s/x/x/ "bad.yaml:9:46: two, four: gpemu-fs: --tier replaces"
	# that point is excluded
	echo "exclude: [{a: two, b: four}]" >>w.yaml
	"$bin/gpemu-run" check w.yaml
}

@test "check finds what the program of a run would refuse" {
	workload "storage: ideal" "gpu: v100, node: dgx-1v" "axes:" \
		"  train.gpus: [8, 9]"
	refuses s/x/x/ "bad.yaml:8:19: 9: gpemu-train: --gpus 9: "
	refuses "s/8, 9/8/;s/node: dgx-1v/loader: mmap, direct: true/" \
		"gpemu-train: --direct on: --loader mmap cannot"
	refuses "s/8, 9/8/;s/^base:/&\n  gpud: {gpu: v100}/" "gpemu-train: --node: not with --gpu-server"
	# the key alone is right
	workload "storage: ideal" "gpu: v100, prep_profile: pytorch-pillow"
	refuses s/x/x/ "gpemu-train: --prep-profile needs --prep emulated"
	sed -i 's/prep: none/prep: emulated/' w.yaml
	"$bin/gpemu-run" check w.yaml
}

@test "check finds what a simulation does not know" {
	workload "storage: hdd" "simulate: true, order: locality" "axes:" "  train.nodes: [1, 4]" \
		"  fs.cache_policy: [lru, minio]"
	"$bin/gpemu-run" check w.yaml
	refuses "s/prep: none/prep: decode/" "bad.yaml:8:17: 1, lru: gpemu-train: --prep decode runs real code"
	refuses "s/order: locality/direct: true/" "gpemu-train: --direct: not with --simulate"
	refuses "s/storage: hdd/group: 4/" "bad.yaml:9:21: 1, lru: gpemu-train --simulate: unknown key 'group'"
	refuses "s/storage: hdd/peers: auto/" "gpemu-train --simulate: unknown key 'peers'"
	sed -i 's/simulate: true, //;s/storage: hdd/&, group: 4/' w.yaml
	"$bin/gpemu-run" check w.yaml
}
