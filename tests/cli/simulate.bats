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
	[[ $output == *"5 nodes share 3 samples: each epoch repeats some of them"* ]]
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
	no "--resume: not with --simulate" --resume --checkpoint-dir "$TMP"
	no "--world-size: not with --simulate" --world-size 2
	no "known: private partitioned" --caches shared
	run -2 "$TRAIN" --loader null --fs storage=hdd
	[[ $output == *"--fs needs --simulate"* ]]
	run -2 "$TRAIN" --loader null --caches private
	[[ $output == *"--caches needs --simulate"* ]]

	run -1 "$TRAIN" $SIM --prep decode
	[[ $output == *"--prep decode runs real code"* ]]
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

@test "--approximate leaves out what a simulation has no model of" {
	run -2 "$TRAIN" --loader null --approximate
	[[ $output == *"--approximate needs --simulate"* ]]
	printf '%s\n' "storage: hdd" "group: 4" "log: stderr" >"$TMP/fs.yaml"
	set -- $SIM --fs-config "$TMP/fs.yaml" --trace "$TMP/t" --steps "$TMP/s" --direct on --mpi on \
		--pin inline --resume --checkpoint-dir "$TMP/c" --workers 2 --ceiling off
	run -2 "$TRAIN" "$@"
	run --separate-stderr -0 "$TRAIN" "$@" --approximate --json "$JSON"
	[ "${#stderr_lines[@]}" -eq 8 ]
	[ "${stderr_lines[0]}" = "gpemu-train: left out: --mpi on" ]
	check "$JSON" 'r["fs"]["left_out"] == ["--mpi on", "--resume", "--trace", "--steps",
		"--direct", "--pin inline", "group", "log"]'
	[ ! -e "$TMP/t" ] && [ ! -e "$TMP/s" ] && [ ! -e "$TMP/c" ]
	"$TRAIN" $SIM --fs storage=hdd --workers 2 --pin on --json "$TMP/plain" >"$TMP/out"
	python3 -c "
import json, sys
a, b = (json.load(open(f))['totals']['seconds'] for f in sys.argv[1:])
assert a == b, (a, b)" "$JSON" "$TMP/plain"
	# real transforms: their output, in no time
	"$TRAIN" $SIM --approximate --prep decode --json "$JSON" >"$TMP/out"
	check "$JSON" 'r["fs"]["left_out"] == ["--prep decode"] and r["totals"]["prep_stall_s"] == 0'
	check "$JSON" 'r["totals"]["batch_bytes"] == 400 * 3 * 224 * 224 * 4'
	# ranks are nodes
	"$TRAIN" $SIM --approximate --world-size 4 --rank 2 --json "$JSON" >"$TMP/out"
	check "$JSON" 'len(r["nodes"]) == 4 and r["fs"]["left_out"] == ["--world-size"]'
	run -1 "$TRAIN" $SIM --approximate --fs group=4
	[[ $output == *"--fs group=4"* ]]
}

# saves OPTION...: into $JSON. 20 steps of 10 ms, a state of 16 MiB
saves()
{
	"$TRAIN" --simulate --loader null --model alexnet --gpu v100 --batch 1 --max-steps 20 \
		--step-time 10ms --transfer blocking --prep none --pin off --checkpoint-every 5 \
		--checkpoint-size 16M --fs storage="$TMP/one.yaml" --json "$JSON" "$@" >"$TMP/out"
}

@test "checkpoints take their bytes over the storage, and training waits for them" {
	cat >"$TMP/one.yaml" <<-END
		name: one
		source: a test
		channels: {source: a test, count: 1, mb_per_s: 100}
	END
	saves
	grep -q "Checkpoints: 4 of 16 MiB" "$TMP/out"
	check "$JSON" 'r["totals"]["checkpoints"] == r["checkpoints"]["written"] == 4'
	check "$JSON" 'r["checkpoints"]["last_step"] == 20 and r["checkpoints"]["dir"] is None'
	# 16 MiB at 100 MB/s
	check "$JSON" '167.7 < r["checkpoints"]["write_ms"]["p50"] < 169'
	check "$JSON" 'r["checkpoints"]["stall_ms"]["mean"] > r["checkpoints"]["write_ms"]["mean"]'
	check "$JSON" 'abs(r["totals"]["checkpoint_stall_s"] * 250 - r["checkpoints"]["stall_ms"]["mean"]) < .01'
	check "$JSON" 'abs(r["totals"]["seconds"] - .2 - r["totals"]["checkpoint_stall_s"]) < .01'
	check "$JSON" '(r["fs"]["bytes_written"], r["fs"]["syncs"]) == (r["checkpoints"]["bytes"], 8)'
	# a part stands for the whole
	cp "$JSON" "$TMP/whole"
	saves --checkpoint-scale 0.01
	check "$JSON" 'r["checkpoints"]["bytes"] < 1e6 and r["checkpoints"]["write_ms"]["p50"] > 167.7'
	# in the background: the copy, and what 5 steps leave of the write before
	saves --checkpoint async
	check "$JSON" 'r["checkpoints"]["tail_s"] > .15 and r["totals"]["checkpoints"] == 4'
	check "$JSON" '117 * 3 / 4 < r["checkpoints"]["stall_ms"]["mean"] < 125'
}

@test "failures cost what Daly's formula says" {
	cat >"$TMP/one.yaml" <<-END
		name: one
		source: a test
		channels: {source: a test, count: 1, mb_per_s: 100}
	END
	# a checkpoint takes .0105 s and each fifth second a failure: 400 in 2000 s
	saves --checkpoint-size 1M --checkpoint-every 50 --max-steps 200000 --samples 200000 \
		--mtbf 5s --restart 200ms
	cat >"$TMP/daly.py" <<-END
		import json, math, sys
		r = json.load(open(sys.argv[1]))
		t, c = r["totals"], r["checkpoints"]["stall_ms"]["mean"] / 1e3
		f = r["fs"]["failures"]
		steps = t["seconds"] - t["checkpoint_stall_s"] - f["delay_s"]
		every, down, mtbf = steps / 4000, .2 + .0105, 5
		want = mtbf * math.exp(down / mtbf) * (math.exp((every + c) / mtbf) - 1) / every
		assert 2000 < steps < 2100, t
		assert abs(t["seconds"] / steps / want - 1) < .015, (t["seconds"], want)
		assert abs(t["seconds"] / f["n"] / mtbf - 1) < .15, f
	END
	python3 "$TMP/daly.py" "$JSON"
	grep -qE '^Failures: [0-9]{3}, which delay the run by [0-9.]+ s\.$' "$TMP/out"
	grep -q '^Bottleneck: failures. They took' "$TMP/out"
	# of several nodes all wait
	saves --checkpoint-size 1M --checkpoint-every 50 --max-steps 200000 --samples 800000 \
		--mtbf 5s --restart 200ms --nodes 4
	python3 "$TMP/daly.py" "$JSON"
	check "$JSON" 'len({n["totals"]["seconds"] for n in r["nodes"]}) == 1'
	# without a checkpoint a run begins again
	saves --checkpoint-every 0 --mtbf 100ms --max-steps 20
	check "$JSON" 'r["fs"]["failures"]["n"] > 0 and r["checkpoints"] is None'
	run -1 saves --checkpoint-every 0 --mtbf 10ms --max-steps 200
	[[ $output == *"--mtbf: failures come too often"* ]]
	# nor in more ns than a number has
	for long in "--max-steps 2000" "--max-steps 3000 --restart 2500000h"; do
		run -1 saves --checkpoint-every 0 --mtbf 100h --step-time 1h --samples 3000 $long
		[[ $output == *"--mtbf: failures come too often"* ]]
	done
	run -2 "$TRAIN" --loader null --mtbf 1s
	[[ $output == *"--mtbf needs --simulate"* ]]
	run -2 "$TRAIN" $SIM --mtbf 1s --inference
	[[ $output == *"--mtbf: not with --inference"* ]]
}

@test "nodes that write at once share one storage, or have one each" {
	cat >"$TMP/one.yaml" <<-END
		name: one
		source: a test
		channels: {source: a test, count: 1, mb_per_s: 100}
	END
	saves --nodes 4
	check "$JSON" '167.7 < r["checkpoints"]["write_ms"]["p50"] < 169'
	saves --nodes 4 --shared-storage
	# the four files take turns, 1 MiB at a time
	check "$JSON" '3.8 * 167.7 < r["checkpoints"]["write_ms"]["p50"] < 4.04 * 167.7'
	check "$JSON" 'r["fs"]["bytes_written"] == 4 * r["checkpoints"]["bytes"]'
	check "$JSON" 'all(n["totals"]["checkpoints"] == 4 for n in r["nodes"])'
	# shards of one state
	saves --nodes 4 --shared-storage --checkpoint-size 0 --parallel fsdp
	check "$JSON" 'abs(r["checkpoints"]["state_bytes"] - 61100840 * 8 / 4) < 4'
}

@test "what gpemu-fs refuses of a cache, a simulation refuses in the same words" {
	for fs in tier=none:10% "tier=lru:10% cache_size=10%" tier=nvme:lru:auto tier=lru:7x \
		cache_size=20 tier_admit=second cache_policy=lro; do
		mount='' simulation=''
		for setting in $fs; do
			key=${setting%%=*}
			mount+=" --${key//_/-} ${setting#*=}"
			simulation+=" --fs $setting"
		done
		run ! "$BUILD/gpemu-fs" $mount "$TMP" "$TMP"
		refused=$(sed -E 's/^gpemu-fs: (--[a-z-]+: )?//' <<<"${lines[0]}")
		run ! "$TRAIN" $SIM $simulation
		[ "$(sed -E 's/^gpemu-train: (--tier: |--fs [^ ]+: )?//' <<<"${lines[0]}")" = "$refused" ] ||
			{ echo "$refused"; echo "$output"; false; }
	done
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
	[[ $output == *"--prep decode runs real code"* ]]
	run -2 "$TRAIN" $SIM --fs group=4 --dump-config
	[[ $output == *"--fs group=4: "* ]]
	run -0 "$TRAIN" $SIM --nodes 4 --dump-config
	[[ $output == *"world_size: 1"* && $output == *"workers: 0"* && $output == *"gpus: 0"* ]]
	# parts of a run, as in a file for --config
	run -0 "$TRAIN" --simulate --prep decode --dump-config
}

@test "a cache is advised where it could have helped" {
	fs="--fs storage=hdd --fs cache_policy=minio --gpu-rate 20000"
	# nothing is read twice, or nothing is kept
	"$TRAIN" $SIM $fs --fs cache_size=20% >"$TMP/out"
	grep "Bottleneck: storage" "$TMP/out" | grep -q "none of them was a cache hit"
	[[ $(cat "$TMP/out") != *"larger cache"* ]]
	"$TRAIN" $SIM $fs --fs cache_policy=none -e 3 >"$TMP/out"
	grep "Bottleneck: storage" "$TMP/out" | grep -q "none of them was a cache hit"
	"$TRAIN" $SIM $fs --fs cache_size=20% -e 3 >"$TMP/out"
	grep "Bottleneck: storage" "$TMP/out" | grep -q "faster storage or a larger cache would help"
}

@test "AU of few counted steps is not printed; each epoch leaves out its first" {
	# two steps an epoch: two are counted in two epochs, three in three
	au() { awk -v row="$1" '$1 == row { print $5 }' "$TMP/out"; }
	"$TRAIN" $SIM -b 200 -e 3 >"$TMP/out"
	[ "$(au 1)" = - ] && [ "$(au warm)" = - ] && [ "$(au all)" != - ]
	"$TRAIN" $SIM -b 100 -e 1 >"$TMP/out"
	[ "$(au 0)" != - ]
	grep -q "AU without the first step of an epoch" "$TMP/out"
}

@test "the first steps of a job are not said to be the host's time for a step" {
	sim="--simulate --data synth:imagenet,files=400 --gpu h100 --model resnet50 --prep none"
	"$TRAIN" $sim >"$TMP/out"
	grep -q "Bottleneck: the first steps of the job" "$TMP/out"
	"$TRAIN" $sim -e 2 >"$TMP/out"
	grep -q "Bottleneck: the GPU" "$TMP/out"
}

@test "the summary fits a terminal of 80 columns" {
	python3 - "$TRAIN" $SIM --progress off <<-'PY' >"$TMP/out"
		import fcntl, os, pty, struct, sys, termios
		pid, fd = pty.fork()
		if pid == 0:
		    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('HHHH', 40, 80, 0, 0))
		    os.execv(sys.argv[1], sys.argv[1:])
		text = b''
		try:
		    while part := os.read(fd, 65536):
		        text += part
		except OSError:
		    pass
		os.waitpid(pid, 0)
		print(text.decode().replace('\r', ''))
	PY
	grep -q "^WARN" "$TMP/out"
	! grep -n '.\{81\}' "$TMP/out"
}

@test "progress names no time that is left before it knows one" {
	"$TRAIN" --simulate --data synth:imagenet,files=64 --model alexnet --gpu v100 \
		--prep none -b 1 --progress on 2>"$TMP/err" >"$TMP/out"
	grep -q 'simulating  \[.*64/64' "$TMP/err"
	run ! grep -E '(^|[^0-9])0 s left' "$TMP/err"
}

@test "a logarithmic axis of a plot is marked" {
	command -v gnuplot >/dev/null || skip "gnuplot is not installed"
	plot()
	{
		printf '%s\n' "name: wide" "question: Is it marked?" \
			"dataset: {synth: imagenet, files: 64}" "axes: {train.batch: $1}" \
			"base: {train: {simulate: true, prep: none, gpu_rate: 1000}}" \
			"plot: [{x: train.batch, y: samples_per_s}]" >wide.yaml
		"$BUILD/gpemu-run" -o "$2" --progress off wide.yaml >/dev/null
		cat "$2"/plots/*.gp
	}
	cd "$TMP"
	[[ $(plot '[1, 8, 64]' far) == *"set xlabel 'train.batch, log scale'"*"set logscale x"* ]]
	[[ $(plot '[8, 16]' near) == *"set xlabel 'train.batch'"* ]]
	run ! grep -r 'log scale' near/plots
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
