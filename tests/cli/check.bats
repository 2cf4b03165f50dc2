# SPDX-License-Identifier: MIT
# How long gpemu-run check says a workload takes; nothing runs.
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

@test "a disk sorts what its queue holds, with every loader that fills one" {
	# 5.6 ms a file alone, 2.5 ms among 24
	workload "storage: hdd, cache_policy: none" "gpu: p100, loader: sync, workers: 1"
	check 20 26
	workload "storage: hdd, cache_policy: none" "gpu: p100, gpus: 8, loader: threads, queue_depth: 24"
	check 9 13
	workload "storage: hdd, cache_policy: none" "gpu: p100, gpus: 8, loader: async, queue_depth: 24"
	check 9 13
}

@test "LRU misses more than it does not hold" {
	# 2.5 ms a miss, 4000 of them and 60 % or 91 %
	for row in "minio 15 18" "lru 19 22"; do
		read -r policy least most <<<"$row"
		workload "storage: hdd, cache_policy: $policy, cache_size: 40%" \
			"gpu: p100, gpus: 8, epochs: 2, queue_depth: 24"
		check "$least" "$most"
	done
}

@test "what is not said is what the programs take" {
	workload "storage: ideal" "epochs: 1"
	check 5 9 # a V100: 125 steps of 41 ms
	workload "storage: ideal" "node: dgx-1v"
	check 1 2.5 # with eight of them
}

@test "virtual cores" {
	prep=emulated workload "storage: ideal" "cores: 2"
	check 12 15 # 155 images/s each
	prep=emulated workload "storage: ideal" "loader: sync, node: dgx-1v"
	check 1 2.5 # the node's 40
}

@test "jobs run side by side, but for a GPU that they share" {
	workload "storage: ideal" "loader: \"null\", samples: 3200, epochs: 2" \
		"jobs: {one: {}, two: {}, late: {start: 20s}}"
	check 27 31 # 200 steps of 41 ms, from 20 s on
	sed -i 's/^base:/&\n  gpud: {gpu: v100}/' w.yaml
	check 27 31 # two of them before
	sed -i 's/start: 20s/start: 5s/' w.yaml
	check 24 28 # none is idle
}

@test "what cannot be estimated is said, without a time" {
	workload "storage: ideal" "epochs: 1"
	sed -i '/train:/d' w.yaml
	sed -i 's/^base:/&\n  exec: {command: "true"}/' w.yaml
	run "$bin/gpemu-run" check w.yaml
	[[ $output == *"time        1 cells cannot be estimated"* ]]
	[[ $output != *about* ]]
	printf '%s\n' "name: all" "question: All?" "workloads: [w.yaml]" >all.yaml
	run "$bin/gpemu-run" check all.yaml
	[[ $output =~ w\ +1\ +1\ +-\ +and\ 1\ cells ]]
}
