# SPDX-License-Identifier: MIT
# gpemu-run with the real programs: cells with a preparation service.
bats_require_minimum_version 1.5.0
load standins

setup()
{
	unset GPEMU_BIN
	bin=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}
	cd "$BATS_TEST_TMPDIR" || return
	export TMPDIR=$BATS_TEST_TMPDIR/tmp
	mkdir "$TMPDIR" data
	for ((i = 0; i < 128; i++)); do echo "$i" >"data/$i"; done
	cat >w.yaml <<-'END'
		name: prepared
		question: Who prepares the batches?
		dataset: {dir: data}
		base:
		  prepd: {threads: 1, cores: 2}
		  train: {model: alexnet, gpu: a100, batch: 8, prep: emulated, image_size: 8,
		          epochs: 2, index: off, ceiling: off, loader: "service:split=1"}
		axes:
		  where:
		    - {label: local, prepd.workers: 0, train.loader: async, train.cores: 2}
		    - {label: one}
		    - {label: three, prepd.workers: 3}
		time_scale: 0.05
		noise: 100%
		metrics:
		  made: {path: prepd.batches_made}
		  cpu: {path: prepd.cpu_s, unit: s}
		expect:
		  - {that: made == 32 +- 0, kind: self, where: {where: [one, three]}}
		  - {that: cpu > 0, kind: self, where: {where: [one, three]}}
	END
}

nothing_left()
{
	run ! pgrep -f "$TMPDIR"
	[ -z "$(ls "$TMPDIR")" ]
}

# until PATTERN: a process of the cell has this command line
until_runs()
{
	until pgrep -f "$1.*$TMPDIR" >/dev/null; do kill -0 "$pid"; sleep .02; done
}

# slow: a cell that would take minutes, in the background
slow()
{
	sed -i '/^axes/,/label: three/d; /^expect/,$d; s/epochs: 2/epochs: 100000/' w.yaml
	"$bin/gpemu-run" --no-mount w.yaml >out 2>&1 3>&- &
	pid=$!
	# not the one that only checks its options
	until_runs "gpemu-train.*--service-key"
}

@test "prepd: the workers of a cell make the batches of its job" {
	run --separate-stderr gpemu_run w.yaml
	echo "$output" "$stderr"
	[ "$status" -eq 0 ]
	[[ $output == *"4 of 4 checks passed"* ]]
	[[ $output == *"; gpemu-prepd,"*"its workers and connections"* ]]
	python3 - <<-'END'
		import glob, json, os
		def of(label):
		    return json.load(open(glob.glob(f"results/prepared/records/{label}-*")[0]))
		local = of("local")
		assert local["cell"]["prepd"] is None and "prepd" not in local
		assert len(local["cell"]["commands"]) == 1
		for name, n in ("one", 1), ("three", 3):
		    r = of(name)
		    p, commands = r["prepd"], r["cell"]["commands"]
		    assert r["totals"]["samples"] == 256
		    assert len(r["service"]["workers"]) == len(p["workers"]) == n
		    assert len(p["dispatcher"]["workers"]) == n
		    assert p["dispatcher"]["splits_done"] == 32
		    assert p["dispatcher"]["splits_lost"] == 0
		    for key in "batches", "batches_made", "made_s", "cpu_s", "bytes_sent":
		        total = sum(w[key] for w in p["workers"])
		        assert abs(p[key] - total) < 1e-9 * total, key
		    assert all(w["config"]["cores"] == 2 for w in p["workers"])
		    assert all(w["config"]["workers"] == 1 for w in p["workers"])
		    # addresses that only this machine reaches, with a key
		    assert [c[1] for c in commands[:-1]] == ["dispatcher"] + n * ["worker"]
		    listen = [c[c.index("--listen") + 1] for c in commands[:-1]]
		    assert len(set(listen)) == n + 1
		    assert all(a.startswith("127.") for a in listen)
		    keys = {c[c.index("--key") + 1] for c in commands[:-1]}
		    assert keys == {commands[-1][commands[-1].index("--service-key") + 1]}
		    assert not os.path.exists(keys.pop())
		    assert "gpemu-prepd" in str(r["cell"]["files"])
	END
	nothing_left
	run gpemu_run export results/prepared
	[[ ${lines[0]} == *"prepd.threads"*"prepd.workers"* ]]
	# a record is found again; the options of the workers decide it, too
	run gpemu_run check w.yaml
	[[ $output == *"prepd       jobs with loader: service take the batches of gpemu-prepd"* ]]
	[[ $output == *"nothing to run"* ]]
	run gpemu_run check w.yaml prepd.cores=1
	# without workers no option of theirs counts
	[[ $output == *"1 of 3 cells have one"* ]]
}

@test "prepd: the job reads at its mount, and so do the workers" {
	[ -w /dev/fuse ] || skip "no /dev/fuse"
	run "$bin/gpemu-run" w.yaml 'axes.where=[{label: two, prepd.workers: 2}]' \
		'expect=[{that: "made == 32 +- 0", kind: self}]' \
		fs.storage=nvme base.fs.cache_policy=none
	echo "$output"
	[ "$status" -eq 0 ]
	python3 - <<-'END'
		import glob, json
		r = json.load(open(glob.glob("results/prepared/records/two-*")[0]))
		assert r["mount"]["misses"] == 256, r["mount"]
	END
	nothing_left
}

@test "prepd: a program finds the dispatcher and the key" {
	run gpemu_run w.yaml 'axes=~' 'base.train=~' 'prepd.workers=2' \
		"exec.command='{bin}/gpemu-train --data {mount} --model alexnet --gpu a100 -b 8 --prep emulated --image-size 8 --index off --loader service --dispatcher {prepd} --service-key {prepd_key} --time-scale {time_scale} --json {record}'" \
		'expect=[{that: made == 16 +- 0, kind: self}]'
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *"1 of 1 checks passed"* ]]
	nothing_left
}

# refuses TEXT OVERRIDE...
refuses()
{
	local text=$1
	shift
	run gpemu_run check w.yaml "$@"
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $output == *"$text"* ]]
}

@test "prepd: errors are reported with their position" {
	refuses "prepd.corse=1:1:1: gpemu-prepd: unknown key 'corse'" prepd.corse=1
	sed -i 's/cores: 2}/corse: 2}/' w.yaml
	refuses "w.yaml:5:23: gpemu-prepd: unknown key 'corse'"
	sed -i 's/corse: 2}/key: x}/' w.yaml
	refuses "w.yaml:5:23: key: gpemu-run itself sets this"
	sed -i 's/key: x}/nic: nosuch}/' w.yaml
	refuses "w.yaml:5:28: gpemu-prepd: nic: unknown node profile 'nosuch'"
	sed -i 's/nic: nosuch}/cores: 2}/; s/threads: 1/threads: 5000/' w.yaml
	refuses "w.yaml:5:20: gpemu-prepd: workers: 5000 is outside 0..1024"
	sed -i 's/threads: 5000/threads: 1/; s/workers: 3/workers: 300/' w.yaml
	refuses "w.yaml:12:37: workers: 300 is outside 0..64"
	sed -i 's/workers: 300/workers: 3, train.cores: 3/' w.yaml
	refuses "three: gpemu-train: --loader service: the workers of the service have --workers and --cores of their own"
	sed -i 's/, train.cores: 3/, train.dispatcher: a/' w.yaml
	refuses "w.yaml:12:40: dispatcher: gpemu-run itself sets this, as base has prepd"
	sed -i 's/, train.dispatcher: a//; /prepd:/d' w.yaml
	refuses "prepd.workers: base has no prepd"
	# a service that is not there
	sed -i 's/prepd.workers: [03], //; s/, prepd.workers: 3//' w.yaml
	refuses "one: gpemu-train: --loader service: --dispatcher HOST:PORT is required"
}

@test "prepd: it ends with the cell, also when that is interrupted" {
	for signal in INT TERM; do
		slow
		kill -"$signal" "$pid"
		status=0
		wait "$pid" || status=$?
		[ "$status" -ge 128 ]
		nothing_left
	done
}

@test "prepd: a worker that dies fails the cell" {
	slow
	kill -9 "$(pgrep -f "gpemu-prepd worker.*$TMPDIR")"
	status=0
	wait "$pid" || status=$?
	[ "$status" -eq 1 ]
	grep "failed: gpemu-prepd: killed by SIGKILL while the jobs ran" out
	nothing_left
}
