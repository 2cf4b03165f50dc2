#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-run import: workloads of DLIO, which then run.
bats_require_minimum_version 1.5.0

setup() {
	BUILD=$(realpath "${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}")
	RUN=$BUILD/gpemu-run
	cd "$BATS_TEST_TMPDIR" || return
	cat >unet3d.yaml <<-'END'
		model: {name: unet3d, type: cnn, model_size_bytes: 499153191}
		framework: pytorch
		workflow: {generate_data: False, train: True, checkpoint: True}
		dataset:
		  data_folder: data/unet3d/
		  format: npz
		  num_files_train: 168
		  num_samples_per_file: 1
		  record_length_bytes: 146600628
		  record_length_bytes_stdev: 68341808
		  record_length_bytes_resize: 2097152
		reader: {data_loader: pytorch, batch_size: 7, read_threads: 4, file_shuffle: seed, sample_shuffle: seed}
		train:
		  epochs: 5
		  computation_time: {mean: 0.323, stdev: 0.03, type: normal}
		checkpoint: {checkpoint_folder: c, checkpoint_after_epoch: 5, epochs_between_checkpoints: 2}
		metric: {au: 0.90}
	END
}

@test "import: a workload on stdout or in a file, and what is lost in it and on stderr" {
	run --separate-stderr "$RUN" import unet3d.yaml
	[ "$status" -eq 0 ]
	sed 1d <<<"$stderr" | cut -d: -f3 | sort -nc
	[[ $stderr == "gpemu-run import: unet3d.yaml: left out or changed:"* ]]
	[[ $stderr == *"gpemu-run import: unet3d.yaml:5:16: dataset.data_folder: "* ]]
	[[ $output == *"#   dataset.data_folder: "* ]]
	[[ $output == *'step_time: "normal:mean=323ms,sd=30ms"'* ]]
	"$BUILD/gpemu" run import unet3d.yaml -o w.yaml 2>err
	[ "$(cat w.yaml)" = "$output" ]
	[ "$(cat err)" = "$stderr" ]
	"$RUN" check w.yaml | grep -q "expects  *busy as required: au >= 90"
	run "$RUN" import none.yaml
	[ "$status" -eq 1 ]
	[[ $output == "gpemu-run import: none.yaml: No such file or directory" ]]
	sed -i 's/epochs: 5/epochs: five/' unet3d.yaml
	run "$RUN" import unet3d.yaml -o w2.yaml
	[ "$status" -eq 1 ]
	[[ $output == "gpemu-run import: unet3d.yaml:14:11: epochs: 'five' is not a number" ]]
	[ ! -e w2.yaml ]
	run "$RUN" import
	[ "$status" -eq 2 ]
}

@test "import: the workload runs, on the event clock as it is" {
	"$RUN" import unet3d.yaml -o w.yaml 2>err
	# the event clock writes no checkpoints
	"$RUN" w.yaml --no-mount train.simulate=true 'base.train.checkpoint_every=~' >out
	grep -q "^PASS (self)  busy as required" out
	python3 - <<-'END'
		import glob, json
		r = json.load(open(glob.glob("results/unet3d/records/*.json")[0]))
		assert [e["steps"] for e in r["epochs"]] == [24] * 5
		assert abs(r["totals"]["compute_s"] / 120 - 0.323) < 4 * 0.03 / 120 ** .5
		# a mean of 168 sizes of which the least is 1
		assert abs(r["totals"]["bytes"] / 840 / 146600628 - 1) < 0.02
		assert r["config"]["step_time"] == "normal:mean=323ms,sd=30ms"
	END
}

@test "import: the workload runs, scaled, with several samples in a file" {
	[ -w /dev/fuse ] || skip "no /dev/fuse"
	sed -i 's/_per_file: 1/_per_file: 6/; s/train: 168/train: 7/; s/: 146600628/: 5000/; /stdev: 6/d' unet3d.yaml
	sed -i 's/after_epoch: 5/after_epoch: 1/; s/epochs: 5/epochs: 2/; s/_bytes: 499153191/_bytes: 65536/' unet3d.yaml
	"$RUN" import unet3d.yaml -o w.yaml 2>err
	timeout 60 "$RUN" w.yaml time_scale=0.02 train.ceiling=off noise=100% 'expect=~' 'kind=~' >out
	python3 - <<-'END'
		import glob, json
		r = json.load(open(glob.glob("results/unet3d/records/*.json")[0]))
		assert [(e["steps"], e["samples"], e["bytes"]) for e in r["epochs"]] == [(6, 42, 42 * 5000)] * 2
		assert r["totals"]["checkpoints"] == 1 and r["totals"]["checkpoint_bytes"] >= 65536
		assert r["mount"]["misses"] > 0
	END
}

@test "records: a sample is as many bytes as the option says" {
	mkdir d m
	head -c 1000 /dev/zero >d/a.bin
	head -c 300 /dev/zero >d/b.bin
	"$BUILD/gpemu-train" --data d --format records:bytes=300 --gpu dlio --model any --prep none \
		--order sequential --loader sync -b 1 --ceiling off --dump-samples s --json r.json >out
	# what is left of a file is no sample
	python3 -c 'import json; r = json.load(open("r.json")); assert r["totals"]["samples"] == 4 and r["totals"]["bytes"] == 1200'
	run "$BUILD/gpemu-train" --data d --format records --gpu dlio --model any --prep none
	[[ $output == *"a.bin: format records needs the size of a record: records:bytes=SIZE"* ]]
	run "$BUILD/gpemu-train" --data d --format records:bytes=301 --gpu dlio --model any --prep none
	[[ $output == *"b.bin: smaller than a record of format records"* ]]
	run "$BUILD/gpemu-fs" synth:records,files=3 m
	[[ $output == *"synth: records needs files= and size="* ]]
	run "$BUILD/gpemu-fs" synth:imagenet,size=3 m
	[[ $output == *"size= is for records"* ]]
}
