#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-train --simulate: labels, options, and gpemu-run without mounts.

bats_require_minimum_version 1.5.0

setup() {
	BUILD=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}
	TRAIN=$BUILD/gpemu-train
	TMP=$BATS_TEST_TMPDIR
	JSON=$TMP/record.json
	SIM="--simulate --data synth:imagenet,files=400 --model alexnet --prep none -b 16"
}

check() {
	python3 - "$1" "$2" <<-'PY'
		import json, sys
		r = json.load(open(sys.argv[1]))
		if not eval(sys.argv[2]):
		    sys.exit('not so: %s\n%s' % (sys.argv[2], json.dumps(r, indent=1)[:9000]))
	PY
}

@test "output and record say SIMULATED, and have what a real run has" {
	"$TRAIN" $SIM --fs storage=hdd --fs cache_policy=minio -e 2 --json "$JSON" >"$TMP/out"
	[ "$(head -n 1 "$TMP/out")" = "SIMULATED: all times are computed, nothing was read." ]
	check "$JSON" 'r["kind"] == "SIMULATED" and r["rig"] is None and r["ceiling"] is None'
	check "$JSON" 'r["fs"]["kind"] == "SIMULATED" and r["fs"]["config"]["storage"] == "hdd"'
	check "$JSON" '[e["hits"] + e["misses"] for e in r["epochs"]] == [400, 400]'
	check "$JSON" 'r["fs"]["epochs"][1]["backend_reads"] == r["epochs"][1]["misses"] > 0'
	# a real run has none of that
	"$TRAIN" --loader null --max-steps 2 --time-scale .001 --json "$JSON" >"$TMP/out"
	run ! grep -q SIMULATED "$TMP/out" "$JSON"
}

@test "more nodes than samples: a warning says what an epoch has" {
	few="--simulate --data synth:imagenet,files=3 --model alexnet --prep none -b 1"
	run "$TRAIN" $few --nodes 5
	[[ $output == *"5 nodes share 3 samples: each epoch has some of them several times"* ]]
	run "$TRAIN" $few --nodes 3
	[[ $output != *"nodes share"* ]]
}

@test "--step-time: steps have its mean and deviation, by the seed" {
	# a step each epoch
	steps="--simulate --data synth:records,files=4,size=100K,size_sd=9K -b 4 -e 1500 --gpu dlio
		--model any --loader sync --workers 1 --prep emulated --drop-last --pin off"
	record() { "$TRAIN" $steps --prep-time 0 --json "$JSON" "$@" >"$TMP/out"; }
	steps() {
		python3 - "$JSON" "$@" <<-'PY'
			import json, statistics, sys
			s = [e["compute_s"] for e in json.load(open(sys.argv[1]))["epochs"]]
			mean, sd = statistics.mean(s), statistics.stdev(s)
			want = [float(x) for x in sys.argv[2:]]
			# four standard errors of a normal distribution's, twice that of a gamma's
			assert abs(mean - want[0]) < 4 * want[1] / len(s) ** .5, (mean, sd)
			assert abs(sd - want[1]) < want[2] * want[1] / (2 * len(s)) ** .5, (mean, sd)
		PY
	}
	record --step-time normal:mean=323ms,sd=30ms
	steps 0.323 0.03 4
	check "$JSON" 'r["node"]["step_time"] == "normal:mean=323ms,sd=30ms" and r["profile"]["measured"] == "given"'
	mv "$JSON" "$TMP/first.json"
	record --step-time normal:mean=323ms,sd=30ms
	check "$JSON" "[e['compute_s'] for e in r['epochs']] == [e['compute_s'] for e in json.load(open('$TMP/first.json'))['epochs']]"
	record --step-time normal:mean=323ms,sd=30ms --seed 9
	check "$JSON" "r['epochs'][0]['compute_s'] != json.load(open('$TMP/first.json'))['epochs'][0]['compute_s']"
	record --step-time gamma:mean=1s,shape=4
	steps 1 0.5 8
	record --step-time 20ms --max-steps 3 --prep-time 30ms
	# four samples on one core, then the step
	check "$JSON" '[round(e["compute_s"], 9) for e in r["epochs"]] == [0.02] * 3 and r["prep"]["profile"]["sample"]["value"] == "30ms"'
	check "$JSON" 'all(e["seconds"] >= 0.12 for e in r["epochs"])'
	run "$TRAIN" $steps --step-time 1s --jitter .1
	[[ $output == *"--jitter: --step-time has a distribution of its own"* ]]
	run "$TRAIN" $steps --step-time normal:mean=1s
	[[ $output == *"--step-time: 'normal' needs 'sd'"* ]]
}

@test "an epoch of hours takes no time, on 1,024 nodes as well" {
	timeout 60 "$TRAIN" --simulate --data synth:imagenet,files=16384 --model vgg11 --prep none \
		-b 4 --fs storage=hdd --nodes 1024 --node config-hdd-1080ti --gpu v100 --gpus 4 \
		--json "$JSON"
	check "$JSON" 'len(r["nodes"]) == 1024 and r["totals"]["samples"] == 16384'
	check "$JSON" 'r["totals"]["steps"] == 1 and r["totals"]["gpus"] == []'
	timeout 60 "$TRAIN" $SIM --fs storage=s3-standard --loader sync --workers 1 -e 20 --json "$JSON"
	check "$JSON" 'r["totals"]["seconds"] > 120'
}

@test "slow samples stop the GPU in order, and not where ready samples make batches" {
	for loader in sync async; do
		for profile in slow even; do
			for batching in in-order out-of-order ready; do
				"$TRAIN" --simulate --data synth:imagenet,files=2048 --model resnet50 \
					--gpu v100 -b 8 --loader $loader --workers 8 --cores 8 --prefetch 1 \
					--pin off --prep emulated --prep-profile nominal-$profile \
					--batching $batching --json "$TMP/$profile-$batching" >/dev/null
			done
		done
		python3 - "$TMP" <<-'PY'
			import json, sys
			def epoch(name):
			    e = json.load(open(sys.argv[1] + '/' + name))['epochs'][0]
			    assert e['distinct_samples'] == 2048, e
			    return e
			slow, even = ({b: epoch(p + '-' + b) for b in ('in-order', 'out-of-order', 'ready')}
			              for p in ('slow', 'even'))
			s = {b: e['seconds'] for b, e in slow.items()}
			assert s['in-order'] > 1.4 * s['ready'], s
			# what remains is a slow sample at the end
			for b in 'ready', 'out-of-order':
			    assert s[b] < slow[b]['compute_s'] + 2.3, s
			s = {b: e['seconds'] for b, e in even.items()}
			assert max(s.values()) < 1.02 * min(s.values()), s
		PY
	done
}

@test "the hits of each epoch are those of gpemu-cachesim" {
	mkdir -p "$TMP/data/a" "$TMP/data/a-b" "$TMP/data/a/z"
	for i in $(seq 300); do
		case $((i % 3)) in 0) at=a ;; 1) at=a-b ;; *) at=a/z ;; esac
		truncate -s $((i * 977 % 50000 + 1)) "$TMP/data/$at/$i"
	done
	for policy in lru sff; do
		"$BUILD/gpemu-cachesim" --dir "$TMP/data" -p $policy -c 40% -e 4 --per-epoch \
			--json "$TMP/cachesim.json" >/dev/null
		"$TRAIN" --simulate --data "$TMP/data" --model alexnet --prep none --workers 1 \
			--loader sync -b 10 -e 4 --fs cache_policy=$policy --fs cache_size=40% --json "$JSON"
		python3 - "$TMP/cachesim.json" "$JSON" <<-'PY'
			import json, sys
			a, b = (json.load(open(p)) for p in sys.argv[1:])
			a = [e['hits'] for e in a['results'][0]['epochs']]
			b = [e['hits'] for e in b['epochs']]
			assert a == b and sum(b) > 50, (a, b)
		PY
	done
}

@test "gradients share the card of the caches if it is that of the node" {
	run_nodes() { # OPTION...
		"$TRAIN" $SIM --node config-ssd-v100 --fs nic=config-ssd-v100 --fs cache_size=60% \
			--gpus 1 --json "$JSON" "$@" >"$TMP/out"
	}
	run_nodes --nodes 2 --caches partitioned
	check "$JSON" 'all(n["straggler"]["card_s"] > 0 for n in r["nodes"])'
	for other in "--nodes 2" "--nodes 1 --caches partitioned" \
		"--nodes 2 --caches partitioned --fs nic=ethernet-1g"; do
		run_nodes $other
		check "$JSON" 'all(n["straggler"]["card_s"] == 0 for n in r.get("nodes") or [])'
	done
}

@test "what a simulation does not know is refused" {
	no() { # WORDS OPTION...
		run -2 "$TRAIN" $SIM "${@:2}"
		[[ $output == *"$1"* ]] || { echo "$output"; false; }
	}
	no "--checkpoint-every: not with --simulate" --checkpoint-every 1 --checkpoint-dir "$TMP"
	no "--world-size: not with --simulate" --world-size 2
	no "known: private partitioned" --caches shared
	run -2 "$TRAIN" --loader null --fs storage=hdd
	[[ $output == *"--fs needs --simulate"* ]]
	run -2 "$TRAIN" --loader null --caches private
	[[ $output == *"--caches needs --simulate"* ]]

	run -1 "$TRAIN" $SIM --prep decode
	[[ $output == *"--prep decode: its time is that of real code"* ]]
	for fs in group=4 hit_path=reply storage=no-such cache_size=x lru; do
		run -1 "$TRAIN" $SIM --fs $fs
		[[ $output == *"--fs $fs"* ]] || { echo "$output"; false; }
	done
	run -1 "$TRAIN" $SIM --fs group=4
	[[ $output == *"(known: storage cache_policy cache_size"* ]]
	echo "group: 4" >"$TMP/fs.yaml"
	run -1 "$TRAIN" $SIM --fs-config "$TMP/fs.yaml"
	[[ $output == *"--fs-config of a simulation: $TMP/fs.yaml:1:1: unknown key 'group'"* ]] ||
		{ echo "$output"; false; }
}

# shards N FILES: of FILES samples of 64 KiB each
shards()
{
	python3 - "$@" <<-'END'
		import io, os, sys, tarfile
		os.makedirs("shards")
		for i in range(int(sys.argv[1])):
		    with tarfile.open(f"shards/{i}.tar", "w") as t:
		        for k in range(int(sys.argv[2])):
		            member = tarfile.TarInfo(f"{k:04}.bin")
		            member.size = 1 << 16
		            t.addfile(member, io.BytesIO(bytes(1 << 16)))
	END
}

@test "shards of a folder: whole extents, hits by epoch, and sequential reads" {
	cd "$TMP"
	shards 4 120
	set -- --simulate --model alexnet --gpu v100 --prep none -b 16 --data shards --json "$JSON" \
		--loader sync --index off --fs storage=hdd
	# 4 shards of 2 extents; minio keeps the 16 MiB of four of them
	"$TRAIN" "$@" -e 3 --fs cache_policy=minio --fs cache_size=16M --order webdataset
	python3 - "$JSON" <<-'END'
		import json, sys
		j = json.load(open(sys.argv[1]))
		first, *later = j["fs"]["epochs"]
		assert (first["hits"], first["misses"]) == (0, 8), first
		for e in later:
		    assert e["hits"] + e["misses"] == 8 and e["hits"] == later[0]["hits"] >= 4, e
		assert j["epochs"][1]["hits"] == later[0]["hits"]
	END
	# without a cache each sample is a read; one worker seeks by shard, or by sample
	for order in webdataset shuffle; do
		"$TRAIN" "$@" --workers 1 --fs cache_policy=none --order $order
		cp "$JSON" $order.json
	done
	python3 - <<-'END'
		import json
		near, far = (json.load(open(f"{o}.json")) for o in ("webdataset", "shuffle"))
		for j in near, far:
		    e = j["fs"]["epochs"][0]
		    assert (e["misses"], e["backend_reads"], e["backend_bytes"]) == (8, 480, 480 << 16), e
		assert far["totals"]["seconds"] > 2 * near["totals"]["seconds"]
	END
}

@test "shards that a simulation does not know are refused" {
	cd "$TMP"
	shards 2 20
	mkdir -p files/a
	truncate -s 10240 files/a/{0.tar,1.jpg}
	set -- --simulate --model alexnet --prep none -b 16
	run -1 "$TRAIN" "$@" --data shards --nodes 2 --caches partitioned
	[[ $output == *"shards: has shards: not with --simulate and --caches partitioned"* ]]
	run -1 "$TRAIN" "$@" --data shards --fs prefetch=1M
	[[ $output == *"shards: has shards: not with --simulate and --fs prefetch"* ]]
	"$TRAIN" "$@" -b 1 --data shards --format files
	run -1 "$TRAIN" "$@" --data files
	[[ $output == *"files: files of two formats, tar (0.tar) and files (1.jpg)"* ]]
	"$TRAIN" "$@" -b 1 --data files --format files
	run -1 "$TRAIN" $SIM --format tar
	[[ $output == *"synth:"* ]]
}

@test "--dump-config of a run refuses what the run would, and prints only what was given" {
	run -2 "$TRAIN" $SIM --prep decode --dump-config
	[[ $output == *"--prep decode: its time is that of real code"* ]]
	run -2 "$TRAIN" $SIM --fs group=4 --dump-config
	[[ $output == *"--fs group=4: "* ]]
	run -0 "$TRAIN" $SIM --nodes 4 --dump-config
	[[ $output == *"world_size: 1"* && $output == *"workers: 0"* && $output == *"gpus: 0"* ]]
	# parts of a run, as in a file for --config
	run -0 "$TRAIN" --simulate --prep decode --dump-config
}

@test "gpemu-run simulates a workload that says train.simulate, without mounts" {
	cat >"$TMP/w.yaml" <<-'END'
		name: simulated
		question: Does a simulation need a mount?
		dataset: {synth: imagenet, files: 400}
		base:
		  fs: {storage: hdd, cache_policy: minio, cache_size: 50%}
		  train: {simulate: true, model: alexnet, prep: none, batch: 16, epochs: 2, loader: sync, workers: 2}
		axes:
		  train.nodes: [1, 4]
		metrics:
		  reads: {path: "mount.epochs[1].backend_reads"}
		columns: [seconds, hit_ratio, reads]
		expect:
		  - {name: half is cached, kind: self, that: "hit_ratio > 40", where: {train.nodes: 1}}
		  - {name: nodes help, kind: order, that: "seconds < seconds[train.nodes=1]", where: {train.nodes: 4}}
	END
	timeout 120 "$BUILD/gpemu-run" -o "$TMP/out" "$TMP/w.yaml" >"$TMP/log" 2>&1 || { cat "$TMP/log"; false; }
	[ "$(ls "$TMP/out/records" | wc -l)" -eq 2 ]
	for f in "$TMP"/out/records/*.json; do
		check "$f" 'r["kind"] == "SIMULATED" and r["cell"]["simulated"] and not r["cell"]["mounted"]'
		check "$f" 'r["mount"]["config"]["cache_policy"] == "minio" and not r["cell"]["disturbed"]'
	done
	grep -q SIMULATED "$TMP/out/report.html"
	# another cache is another cell
	sed -i 's/50%/60%/' "$TMP/w.yaml"
	"$BUILD/gpemu-run" -o "$TMP/out" "$TMP/w.yaml" >"$TMP/log" 2>&1 || { cat "$TMP/log"; false; }
	[ "$(ls "$TMP/out/records" | wc -l)" -eq 4 ]
}
