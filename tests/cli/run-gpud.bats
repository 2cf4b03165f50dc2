# SPDX-License-Identifier: MIT
# gpemu-run with the real programs: cells whose jobs share a gpemu-gpud.
bats_require_minimum_version 1.5.0

setup()
{
	unset GPEMU_BIN
	bin=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}
	cd "$BATS_TEST_TMPDIR" || return
	export TMPDIR=$BATS_TEST_TMPDIR/tmp
	mkdir "$TMPDIR" data
	echo x >data/a
	cat >w.yaml <<-'END'
		name: shared
		question: Do two get half each?
		dataset: {dir: data}
		base:
		  gpud: {gpu: p100}
		  train: {model: resnet50, batch: 64, loader: "null", samples: 640,
		          epochs: 4, pin: off}
		axes:
		  gpud.scheduler: [fair, rr]
		jobs: {one: {}, two: {}}
		time_scale: 0.05
		noise: 100%
		metrics:
		  one: {path: "jobs.one.epochs[1:3].samples_per_s"}
		  two: {path: "jobs.two.epochs[1:3].samples_per_s"}
		expect:
		  - {that: one / two == 1 +- 20%, kind: self}
	END
}

nothing_left()
{
	run ! pgrep -f "$BATS_TEST_TMPDIR"
	[ -z "$(ls "$TMPDIR")" ]
}

# bats test_tags=timed
@test "gpud: the jobs of a cell share the server of the cell" {
	# if one begins much later than the other, they do not overlap
	for try in 1 2 3 4 5; do
		rm -rf results
		run --separate-stderr "$bin/gpemu-run" --no-mount w.yaml
		echo "$output"
		[[ $output == *"of 2 checks passed"* ]]
		[ "$status" -ne 0 ] || break
	done
	[ "$status" -eq 0 ]
	[[ $output == *"2 of 2 checks passed"* ]]
	[[ $output == *"REAL      no data: batches are synthetic; gpemu-gpud,"* ]]
	python3 - <<-'END'
		import glob, json
		for name in ("fair", "rr"):
		    r = json.load(open(glob.glob("results/shared/records/%s-*" % name)[0]))
		    assert r["cell"]["gpud"] == {"gpu": "p100", "scheduler": name}
		    assert r["gpud"]["config"]["scheduler"] == name
		    assert r["gpud"]["gpus"][0]["busy_s"] > 0
		    assert r["cell"]["commands"][0][0].endswith("gpemu-gpud")
		    assert "gpu/p100" in r["cell"]["profiles"]
		    for job in r["jobs"].values():
		        assert job["sharing"]["scheduler"] == name
	END
	nothing_left
	# a record is found again; --gpud's keys decide it, too
	run "$bin/gpemu-run" check --no-mount w.yaml
	[[ $output == *"the jobs share the GPUs of gpemu-gpud"* ]]
	[[ $output == *"nothing to run"* ]]
	sed -i 's/gpu: p100/gpu: k80/' w.yaml
	run "$bin/gpemu-run" check --no-mount w.yaml
	[[ $output == *"0 of 2 cells have one"* ]]
}

@test "gpud: errors are reported with their position, a rejected job fails the cell" {
	sed -i 's/gpud: {gpu: p100}/gpud: {gpu: p100, sheduler: rr}/' w.yaml
	run "$bin/gpemu-run" --no-mount w.yaml
	[[ $output == *"w.yaml:5:21: gpemu-gpud: unknown key 'sheduler'"* ]]
	sed -i 's/sheduler: rr/socket: x/' w.yaml
	run "$bin/gpemu-run" --no-mount w.yaml
	[[ $output == *"w.yaml:5:21: socket: gpemu-run itself sets this"* ]]
	sed -i '/gpud: {/d' w.yaml
	run "$bin/gpemu-run" --no-mount w.yaml
	[[ $output == *"gpud.scheduler: base has no gpud"* ]]
	sed -i 's/^base:/&\n  gpud: {gpu: nosuch}/' w.yaml
	run "$bin/gpemu-run" --no-mount w.yaml
	[[ $output == *"w.yaml:5:15: gpemu-gpud: gpu: unknown gpu profile 'nosuch'"* ]]
	sed -i 's/nosuch/p100, speedup: mps-nominal/' w.yaml
	run "$bin/gpemu-run" --no-mount w.yaml
	[ "$status" -eq 1 ]
	[[ $output == *"failed: gpemu-gpud: exit status 2 before it was ready ("*"--speedup: with --share time"* ]]
	nothing_left
}
