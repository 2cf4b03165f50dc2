#!/usr/bin/env bats
# SPDX-License-Identifier: MIT

bats_require_minimum_version 1.5.0

setup() {
	PATH="$(realpath "${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}"):$PATH"
	unset GPEMU_PROFILES
	cd "$BATS_TEST_TMPDIR"
}

# A table of one model: forward 10 + 2 b ms, and the rest of it as simple.
make_tables() {
	awk 'BEGIN {
		print "model,batch_size,forward_s,backward_s,transfer_s," \
		      "peak_mib,persistent_mib"
		for (b = 1; b <= 20; b++)
			printf "m,%d,%g,%g,%g,%g,%g\n", b, (10 + 2 * b) / 1e3,
			       (20 + 4 * b) / 1e3, b / 1e3, 100 + 10 * b, 50
	}' >gpu.csv
	printf 'gpu,model,last_measured_batch_compute\ngpu,m,16\n' >coverage.csv
	printf 'model,parameters\nm,1000\n' >facts.csv
	printf 'model,model_transfer_s\nm,0.005\n' >transfer.csv
	cat >head.yaml <<-END
		name: G
		source: test
		memory_mib: 1000
		usable_memory: 0.9
		sample_bytes: 100
		pinned: {base_ms: 1, per_sample_ms: 0.5, source: s}
		pin_copy: {base_ms: 2, per_sample_ms: 0.25, source: s}
	END
}

import() {
	gpemu-profile import gpu.csv --head head.yaml --coverage coverage.csv \
		--facts facts.csv --model-transfer transfer.csv "$@"
}

one_line() {
	[ "${#lines[@]}" -eq 1 ]
}

@test "list shows all kinds, or one" {
	run -0 gpemu-profile list
	[[ "$output" == *tesla-v100-pcie-32gb* && "$output" == *hdd* ]]
	[[ "$output" == *imagenet* && "$output" != *broken* ]]
	run -0 gpemu-profile list storage
	[[ "$output" == *hdd* && "$output" != *imagenet* ]]
	run -2 gpemu-profile list disks
	one_line
}

@test "every shipped profile is valid" {
	run -0 gpemu-profile check
	[[ "$output" != *BAD* ]]
}

@test "a step is shown with its source" {
	run -0 gpemu-profile show v100 resnet50 64 --json step.json
	[[ "$output" == *measured* || "$output" == *interpolated* ]]
	grep -q '"fits": true' step.json
	# the bytes that are copied
	[[ "$output" == *"38535168 bytes"* ]]
	grep -q '"batch_bytes": 38535168' step.json
	run -0 gpemu-profile show k80 resnet50 200
	[[ "$output" == *extrapolated* && "$output" == *"fits"*"no"* ]]
	[[ "$output" == *"largest batch size 126 (measured)"* ]]
}

@test "profiles of each kind are shown" {
	run -0 gpemu-profile show v100
	[[ "$output" == *resnet50* ]]
	run -0 gpemu-profile show gpu v100 resnet50
	[[ "$output" == *25557032* ]]
	run -0 gpemu-profile show s3-standard
	[[ "$output" == *UNVERIFIED* && "$output" == *5500* ]]
	[[ "$output" == *"price "*"readdir 0.005, read 0.0004, write 0.005,"* ]]
	run -0 gpemu-profile show s3-express
	[[ "$output" == *"; 0.0006 a GiB read, 0.0032 a GiB written"* ]]
	run -0 gpemu-profile show dataset imagenet --json -
	[[ "${lines[0]}" == "{" && "$output" == *1281167* ]]
	run -0 gpemu-profile show ffcv
	[[ "$output" == *UNVERIFIED* && "$output" == *"1.32 ms"* ]]
	run -0 gpemu-profile show share mps-nominal
	[[ "$output" == *UNVERIFIED* && "$output" == *"pace of each job"* ]]
}

@test "operations that a storage profile omits show no source" {
	cat >disk.yaml <<-END
		name: disk
		source: mine
		read: {source: mine, latency: {kind: const, value: 5ms}}
	END
	run -0 gpemu-profile show ./disk.yaml
	[[ "$output" == *"read        (mine)  UNVERIFIED"*"5.00 ms"* ]]
	[[ "$output" != *null* && "$output" != *open* ]]
	[[ "${lines[3]}" == link* && "${lines[4]}" == "IOPS        no cap" ]]
}

@test "a missing file is named" {
	run -1 gpemu-profile show h9000
	one_line
	run -1 gpemu-profile show v100 resnet51
	one_line
	[[ "$output" == *resnet50* ]]
	run -2 gpemu-profile show v100 resnet50 64 65
	[[ $output == *"unexpected argument '65'"* ]]
	run -2 gpemu-profile show v100 resnet50 none
	one_line
	run -2 gpemu-profile show hdd resnet50
	one_line
}

@test "a measured table becomes a profile" {
	make_tables
	import --output g.yaml
	run -0 gpemu-profile show ./g.yaml m 3
	[[ "$output" == *interpolated* && "$output" == *"16.000 ms"* ]]
	# 17 ran out of memory
	[[ "$output" == *"largest batch size 16 (measured)"* ]]
	grep -q 'last_is_limit: true' g.yaml
	[ "$(grep -c '^    - ' g.yaml)" -eq 2 ]
	run -0 gpemu-profile verify ./g.yaml --against gpu.csv
}

@test "a profile can be its own --head" {
	make_tables
	import --output a.yaml
	import --head a.yaml --output b.yaml
	cmp a.yaml b.yaml
}

@test "verify finds a profile that deviates from its table" {
	make_tables
	import --output g.yaml
	sed -i 's/^m,8,0.026/m,8,0.029/' gpu.csv
	run -1 gpemu-profile verify ./g.yaml --against gpu.csv
	[[ "$output" == *"1 points are beyond the tolerance"* ]]
}

# A table as a GPU makes it: flat while launches take longer than the work,
# then a line with a step at each multiple of 16, 1 % of seeded noise on it.
# $1: a batch size that takes half as long again as it should.
make_device_table() {
	awk -v odd="${1:-0}" 'BEGIN {
		srand(7)
		print "model,batch_size,forward_s,backward_s,transfer_s," \
		      "peak_mib,persistent_mib"
		for (b = 1; b <= 200; b++) {
			t = .004 * (int((b + 15) / 16) / 16 + b / 16)
			t = (t < .006 ? .006 : t) * (b == odd ? 1.5 : 1)
			f = t * (1 + .01 * (rand() + rand() + rand() - 1.5))
			g = t * (1 + .01 * (rand() + rand() + rand() - 1.5))
			printf "m,%d,%g,%g,%g,%g,%g\n", b, f, 2 * g,
			       b / 1e4, 100 + b, 50
		}
	}' >gpu.csv
	printf 'gpu,model,last_measured_batch_compute\ngpu,m,200\n' \
		>coverage.csv
}

# held COLUMN FIELD: a figure of hold.json
held() {
	python3 -c 'import json, sys
print(json.load(open("hold.json"))[sys.argv[1]][sys.argv[2]])' "$@"
}

@test "the rest of a table predicts the points left out" {
	make_tables
	make_device_table
	import --output g.yaml
	hold() {
		gpemu-profile verify ./g.yaml --against gpu.csv --hold-out 7 \
			--json hold.json "$@"
	}
	run -0 hold
	[[ "$output" == *"every 7th point left out"* ]]
	[ "$(held step_ms points)" -eq 28 ] # 7, 14, ... 196
	awk "BEGIN { exit !($(held step_ms p50_pct) <= 1.5 &&
		$(held step_ms p95_pct) <= 6 &&
		$(held step_ms p50_pct) > .05) }"
	# a table thinned too far predicts badly
	run -0 hold --tolerance-pct 50
	awk "BEGIN { exit !($(held step_ms p95_pct) > 6) }"
	# without a remaining point nothing shows the rest of a spike
	make_device_table 77
	run -0 hold
	awk "BEGIN { e = $(held step_ms max_pct); exit !(e > 31 && e < 35) }"
	[[ "$output" == *"m 77"* ]]
	[[ "$output" == *"1 of 28 steps are further off than import states"* ]]
	python3 -c 'import json; assert json.load(open("hold.json"))["beyond_stated"] == 1'
	# where one remains, the neighbours are unchanged
	make_device_table 78
	run -0 hold
	awk "BEGIN { exit !($(held step_ms p95_pct) <= 6) }"
	[[ "$output" != *"m 78"* ]]
}

@test "no line is drawn across a jump of the transfer" {
	make_tables
	make_device_table
	awk -F, -v OFS=, 'NR > 1 && $2 >= 56 { $5 *= 1.3 } 1' gpu.csv >jump.csv
	mv jump.csv gpu.csv
	hold() {
		import --output g.yaml
		gpemu-profile verify ./g.yaml --against gpu.csv --hold-out 7 \
			--json hold.json
	}
	run -0 hold # 56 is left out
	awk "BEGIN { exit !($(held transfer_ms max_pct) > 10) }"
	printf 'transfer_jump: {bytes: 5600, source: test}\n' >>head.yaml
	run -0 hold
	awk "BEGIN { exit !($(held transfer_ms max_pct) < .1) }"
	import --head g.yaml --output again.yaml
	cmp g.yaml again.yaml
	run -0 gpemu-profile show ./g.yaml
	[[ "$output" == *"jumps  at 5600 bytes"*"(test)"* ]]
	run -0 gpemu-profile show ./g.yaml m 56
	[[ "$output" == *"pageable       7.280 ms"* ]]
}

@test "a table too small to leave points out is refused" {
	make_tables
	sed -i '5,$d' gpu.csv
	sed -i 's/,16/,3/' coverage.csv
	import --output g.yaml
	run -1 gpemu-profile verify ./g.yaml --against gpu.csv --hold-out 7
	one_line
	run -2 gpemu-profile verify ./g.yaml --against gpu.csv --hold-out 1
	one_line
}

@test "between two points the error of a step is not known, and shows say so" {
	run -0 gpemu-profile show h100 bert_large:seq512 4
	[[ "$output" == *interpolated* ]]
	[[ "$output" == *"how far off is unknown: measured at batch size 2, 8"* ]]
	[[ "$output" != *"% off"* ]]
	run -0 gpemu-profile show h100 bert_large:seq512
	[[ "$output" == *"how far off steps between them are is unknown"* ]]
	run -0 gpemu-profile show h100 bert_large:seq512 8
	[[ "$output" == *measured* && "$output" != *"how far off"* ]]
	# two batch sizes with none between them, one, and a long table
	run -0 gpemu-profile show h100
	[[ "$output" == *bert_large:seq512*" 2 unknown"* ]]
	[[ "$output" == *opt_13:seq2048*"0.1 %"* ]]
	[[ "$output" == *gpt3_27:seq2048*" 1       -"* ]]
	run -0 gpemu-profile show v100 resnet50 63
	[[ "$output" == *"at most "*"% off the measured value"* ]]
	tolerance() {
		gpemu-profile show "$@" --json t.json >/dev/null
		python3 -c 'import json; print(json.load(open("t.json"))["tolerance_pct"])'
	}
	[ "$(tolerance h100 bert_large:seq512 4)" = None ]
	[ "$(tolerance h100 bert_large:seq512 8)" = 0.0 ]
	[ "$(tolerance h100 gpt3_27:seq2048)" = None ]
	[ "$(tolerance v100 resnet50 63)" != None ]
}

@test "a table of some models with inner points names the number of the others" {
	make_tables
	make_device_table
	printf 'n,1,.01,.02,.001,200,50\nn,9,.05,.1,.005,250,50\n' >>gpu.csv
	printf 'gpu,n,9\n' >>coverage.csv
	sed 's/^m,/n,/; 1d' facts.csv >more.csv && cat more.csv >>facts.csv
	sed 's/^m,/n,/; 1d' transfer.csv >more.csv && cat more.csv >>transfer.csv
	import --output g.yaml
	run -0 gpemu-profile verify ./g.yaml --against gpu.csv --hold-out 7 \
		--json hold.json
	[[ "$output" == *"unknown of 1 models of 2"* ]]
	[ "$(python3 -c 'import json; print(json.load(open("hold.json"))["models_unknown"])')" -eq 1 ]
}

@test "impossible memory cells are replaced with another GPU's" {
	make_tables
	cp gpu.csv other.csv
	sed -i 's/^\(m,16,.*\),260,50$/\1,5000,50/' gpu.csv
	run -1 import --output g.yaml
	one_line
	import --memory-from other.csv --output g.yaml
	grep -q 'those of other' g.yaml
	grep -q '^    - \[16, 42, 84, 16, 260, 50\]$' g.yaml
}

@test "malformed tables are reported by line" {
	make_tables
	sed -i '3s/.*/m,2,x,0.02,0.001,100,50/' gpu.csv
	run -1 import
	one_line
	[[ "$output" == *"gpu.csv:3:5: forward_s: 'x' is not a number"* ]]
	make_tables
	sed -i '4s/^m,3,/m,2,/' gpu.csv
	run -1 import
	one_line
	[[ "$output" == *"gpu.csv:4:1: batch sizes must ascend"* ]]
	make_tables
	sed -i '2s/,16/,30/' coverage.csv
	run -1 import
	one_line
	[[ "$output" == *"coverage.csv:2:"* ]]
	run -1 gpemu-profile import none.csv --head head.yaml \
		--facts facts.csv --model-transfer transfer.csv
	one_line
	run -2 gpemu-profile import gpu.csv
	one_line
}

@test "check reports bad files by line and continues" {
	printf 'name: x\nsizes: [[0, 1]]\n' >bad.yaml
	printf 'nothing: here\n' >none.yaml
	printf 'a: [\n' >broken.yaml
	make_tables
	import --output good.yaml
	run -1 gpemu-profile check bad.yaml none.yaml broken.yaml good.yaml
	[[ "$output" == *"BAD  dataset"*"bad.yaml:1:1: 'source' is missing"* ]]
	[[ "$output" == *none.yaml:1:1:*broken.yaml:* ]]
	[[ "${lines[-1]}" == ok* ]]
}

@test "check reports everything that is missing or wrong in a file" {
	cat >gpu.yaml <<-END
		name: mine
		memory_mib: lots
		colour: green
		models:
		  a: {rows: [[64, 3]]}
		  b: {parameters: 0, rows: [[64, 3, 4]], last: 64}
	END
	run -1 gpemu-profile check gpu.yaml --json check.json
	[ "${#lines[@]}" -eq 7 ]
	for what in "2:13: memory_mib: 'lots' is not a number" "3:1: unknown key 'colour'" \
		"5:14: a row without 'backward_ms'" "5:6: 'parameters' is missing" \
		"6:42: unknown key 'last'" "1:1: 'source' is missing" \
		"1:1: 'sample_bytes' is missing"; do
		[[ "$output" == *"gpu.yaml:$what"* ]] || { echo "no $what: $output"; return 1; }
	done
	python3 -c 'import json; assert json.load(open("check.json"))[0]["text"].count("\n") == 6'
	cat >disk.yaml <<-END
		name: mine
		read: {latency: 5ms}
		link: {mb_per_s: 0}
	END
	run -1 gpemu-profile check disk.yaml
	[ "${#lines[@]}" -eq 4 ]
}

@test "a GPU profile needs no copies and no share of its memory" {
	cat >gpu.yaml <<-END
		name: mine
		source: test
		memory_mib: 40000
		sample_bytes: 150528
		models: {resnet50: {parameters: 25557032, rows: [[64, 8, 16]]}}
	END
	run -0 gpemu-profile check gpu.yaml
	gpemu-profile show ./gpu.yaml resnet50 64 --json step.json
	python3 - <<-'PY'
		import json
		cost = json.load(open("step.json"))
		assert all(v == 0 for k, v in cost.items() if k.startswith(("transfer", "pin_copy"))), cost
	PY
}

@test "new storage: a device from the numbers that one knows" {
	run -0 gpemu-profile new storage --read-latency 500us --bandwidth 1.5G -o nfs.yaml
	run -0 gpemu-profile check nfs.yaml
	gpemu-profile show nfs.yaml --json show.json
	python3 - <<-'PY'
		import json
		p = json.load(open("show.json"))
		assert p["link"]["mb_per_s"] == 1500 and p["link"]["verified"] == False, p
		assert p["read"]["latency"]["value"] == "500us" and p["name"] == "nfs", p
		assert "--read-latency 500us --bandwidth 1.5G" in p["source"], p
	PY
	printf '%s\n' 'name: l' 'source: s' 'read:' '  source: s' '  loaded:' \
		'  - {in_queue: 1, size: 4K, quantiles: [[0, 100us], [1, 200us]]}' >l.yaml
	run -0 gpemu-profile check l.yaml
	[[ "$output" == *"takes 0.15 ms"* ]]
	run -1 gpemu-profile measure --storage . --against none
	[[ "$output" == *"unknown storage profile 'none'"* && ! -e storage.state ]]
	gpemu profile new storage --iops 3000 --seek 8ms --name d >d.yaml
	run -0 gpemu-profile check d.yaml
	run -2 gpemu-profile new storage
	[[ "$output" == *"--read-latency"*"--bandwidth"* ]]
	run -2 gpemu-profile new storage --bandwidth 1.5GB
	[[ "$output" == *"1.5G"* ]]
	run -2 gpemu-profile new floppy
	# a buffer of 16 units on their way together, each at a part of the rate
	gpemu-profile new storage --bandwidth 3G --write-bandwidth 1G --write-buffer 64M \
		--write-latency 20us --sync-latency 2ms -o w.yaml
	gpemu-profile show w.yaml --json show.json
	python3 - <<-'PY'
		import json
		p = json.load(open("show.json"))
		b = p["buffer"]
		assert (b["size"], b["unit"]) == ("64M", "4M"), b
		assert p["write"]["mb_per_s"] == 62.5 and p["write"]["latency"]["value"] == "20us", p
		assert p["sync"]["latency"]["value"] == "2ms", p
	PY
	gpemu-profile new storage --seek 8ms --bandwidth 150M --write-bandwidth 140M -o d.yaml
	grep -A 4 '^write:' d.yaml | grep -q 'seek: .*8ms'
	run -2 gpemu-profile new storage --bandwidth 3G --write-buffer 64M
	[[ "$output" == *"--write-bandwidth"* ]]
}

@test "new gpu: a GPU from a rate that one measured" {
	run -0 gpemu-profile new gpu --model resnet50 --rate 2700 -o gpu.yaml
	run -0 gpemu-profile check gpu.yaml
	for batch in 1 64 1000; do
		gpemu-profile show ./gpu.yaml resnet50 "$batch" --json step.json
		python3 - "$batch" <<-'PY'
			import json, sys
			c = json.load(open("step.json"))
			ms = c["forward_ms"] + c["backward_ms"]
			assert abs(ms - 1e3 * int(sys.argv[1]) / 2700) < 1e-3, c
		PY
	done
	# a rate at one batch size says nothing about others
	gpemu profile new gpu --model mine --rate 100 --batch 32 --memory 40G --precision amp >one.yaml
	run -0 gpemu-profile show ./one.yaml mine 32
	run -0 gpemu-profile show ./one.yaml mine 33
	[[ "$output" == *extrapolated* ]]
	grep -q '^precision: amp' one.yaml
	run -2 gpemu-profile new gpu --model mine
	[[ "$output" == *"--rate"* ]]
}

@test "GPEMU_PROFILES is another database" {
	mkdir -p db/gpu
	make_tables
	import --output db/gpu/mine.yaml
	GPEMU_PROFILES=$PWD/db run -0 gpemu-profile show mine m 4
	GPEMU_PROFILES=$PWD/none run -1 gpemu-profile list
	one_line
}

@test "fit: estimates of the largest batch, next to the measured limits" {
	run -0 gpemu-profile fit --json all.json
	[[ "${lines[-1]}" == *"estimates ("*" %) are within 7 % of"* ]]
	python3 - all.json <<-'PY'
		import json, sys
		rows = [r for r in json.load(open(sys.argv[1])) if r['last_is_limit']]
		close = [r for r in rows if abs(r['error']) <= .07]
		print(len(close), len(rows))
		assert len(rows) >= 90 and len(close) >= .9 * len(rows)
		vgg = [r for r in rows if r['model'].startswith('vgg')]
		assert len(vgg) >= 20
	PY
	run -0 gpemu-profile fit vgg16 p100
	[[ "${lines[0]}" == *"largest batch is 175 (measured;"* ]]
	[[ "${lines[-1]}" == *176*"too large"* ]]
	run -0 gpemu-profile fit k80
	[[ "$output" == *densenet121* ]]
	run -1 gpemu-profile fit nosuch v100
	one_line
}

# A published table: one batch size for each of two models.
make_published() {
	make_tables
	cat >benchmark-train-nchw.csv <<-END
		model,train_step_time,train_batch_size,train_img_size,param_count
		m,60,8,224,1.5
		n,90,4,106,2
	END
	cp benchmark-train-nchw.csv benchmark-train-nhwc.csv
	printf 'precision: amp\n' >>head.yaml
}

@test "published tables become a profile, several files at once" {
	make_published
	gpemu-profile import --head head.yaml --output g.yaml benchmark-*.csv
	[ "$(grep -c 'rows: \[\[8, 20, 40\]\]}$' g.yaml)" -eq 2 ]
	run -0 gpemu-profile show ./g.yaml n:px106:channels_last 4
	[[ "$output" == *measured* && "$output" == *"30.000 ms"* ]]
	run -0 gpemu-profile verify ./g.yaml --against benchmark-train-nchw.csv \
		--against benchmark-train-nhwc.csv
	[[ "$output" == *"forward_ms "*" 4 "*"0.000"* ]]
	# nothing lies between single points
	run -1 gpemu-profile verify ./g.yaml --hold-out 2 \
		--against benchmark-train-nchw.csv
	one_line
	[[ "$output" == *"no model has an inner point"* ]]
	run -1 gpemu-profile import --head head.yaml --format neusight \
		benchmark-train-nchw.csv
	one_line
	[[ "$output" == *"benchmark-train-nchw.csv:1:1: "* ]]
	run -2 gpemu-profile import --head head.yaml --format tim gpu.csv
	one_line
	run -0 gpemu-profile import --list format
	[[ "$output" == *timm* && "$output" == *gpus* ]]
}

@test "a batch size that was not measured is refused with those that were" {
	make_published
	gpemu-profile import --head head.yaml --output g.yaml \
		benchmark-train-nchw.csv
	train() {
		gpemu-train --gpu ./g.yaml --loader null --max-steps 1 \
			--time-scale 0.01 "$@"
	}
	run -1 train --model m -b 7
	[[ "$output" == *"a batch of 7 of m was not measured on G (measured: 8)"* ]]
	run -1 train --model n -b 4
	[[ "$output" == *"unknown model 'n'; did you mean 'n:px106'? (known: n:px106 m)"* ]]
	run -0 train --model n:px106 -b 4
}

@test "list --models finds models on all GPUs" {
	run -0 gpemu-profile list --models gpt2_large
	[[ "$output" == *nvidia-h100-80gb-hbm3*"gpt2_large:seq1024 "*"batch 1, 4"* ]]
	[[ "$output" == *amd-instinct-mi210* && "$output" != *resnet* ]]
	run -0 gpemu-profile list gpu --models 'resnet5?' --json -
	echo "$output" >models.json
	python3 - <<-'PY'
		import json
		j = json.load(open('models.json'))
		assert {r['gpu'] for r in j} >= {'tesla-k80', 'nvidia-geforce-rtx-3090'}
		assert {r['model'] for r in j} == {'resnet50'}, j
		assert all(r['batch_sizes'] and r['source'] for r in j)
	PY
	run -1 gpemu-profile list --models nothing-like-it
	one_line
	run -2 gpemu-profile list storage --models resnet50
	one_line
}

@test "the page of profiles is what list --markdown prints" {
	gpemu-profile list --markdown >profiles.md
	diff profiles.md "$BATS_TEST_DIRNAME/../../docs/profiles.md"
}
