#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-train: what a run prints, records and refuses.

load gpus

setup() {
	BUILD=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}
	TRAIN=$BUILD/gpemu-train
	DATA=$BUILD/gpemu-data
	TMP=$(mktemp -d)
	JSON=$TMP/record.json
}

teardown() {
	rm -rf "$TMP"
}

# Files of random bytes: files N, bytes each, in two classes.
raw() {
	mkdir -p "$TMP/raw/a" "$TMP/raw/b"
	for i in $(seq "$1"); do
		head -c "$2" /dev/urandom >"$TMP/raw/$([ $((i % 2)) = 0 ] && echo a || echo b)/$i.bin"
	done
}

jpegs() {
	"$DATA" make --files "$1" --scale-bytes 0.25 "$TMP/jpeg" >/dev/null
}

# check EXPRESSION: true of the record `j`, its first epoch `e`, totals `t`.
check() {
	python3 - "$JSON" "$1" <<-'PY'
		import json, sys
		j = json.load(open(sys.argv[1]))
		e, t = j['epochs'][0], j['totals']
		if not eval(sys.argv[2]):
		    sys.exit('not so: %s\n%s' % (sys.argv[2], json.dumps(j, indent=1)))
	PY
}

# at the pace of the profile: the numbers for resnet50 on the v100 at 64
on_pace()
{
	python3 - "$JSON" "$BATS_TEST_DIRNAME/../../profiles/gpu" <<-'PY'
		import json, pathlib, re, sys
		j = json.load(open(sys.argv[1]))
		text = next(pathlib.Path(sys.argv[2]).glob('*v100*')).read_text()
		model = re.split(r'\n  resnet50:', text)[1]
		row = re.search(r'\[64, ([\d.]+), ([\d.]+)', model)
		want = float(row[1]) + float(row[2])
		mean = j['totals']['step_ms']['mean']
		print(mean, want, j['totals']['au'])
		assert abs(j['totals']['compute_s'] * 1e3 / 30 - want) < 1e-3 * want
		sys.exit(abs(mean - want) / want >= 1e-3 or j['totals']['au'] < 0.999)
	PY
}

@test "--help lists the options in groups, each once" {
	"$TRAIN" --help >"$TMP/help"
	run sed -n 's/^ \([A-Z].*:\)$/\1/p' "$TMP/help"
	[ "${lines[0]}" = "Dataset:" ]
	[ "${lines[1]}" = "GPUs and model:" ]
	[ "${lines[-1]}" = "Output and configuration:" ]
	run sed -n '/^ GPUs and model:/,/^ Loader:/p' "$TMP/help"
	[[ "$output" == *"--transfer="* && "$output" != *"--order="* ]]
	[ "$(grep -c -- '--batch=N' "$TMP/help")" = 1 ]
}

# bats test_tags=timed
@test "null: the rig keeps the GPU busy, at the speed of the profile" {
	# a machine that stops for milliseconds can spoil one run
	for try in 1 2 3 4 5; do
		run "$TRAIN" --loader null --max-steps 30 --time-scale 0.5 \
			--json "$JSON"
		[ "$status" -eq 0 ]
		check "t['steps'] == 30 and t['samples'] == 30 * 64"
		check "j['ceiling']['samples_per_s'] > 0"
		[ -z "${GPEMU_SANITIZED-}" ] || return 0
		check "j['ceiling']['au'] >= 0.95" && on_pace && return 0
	done
	false
}

@test "the record and the summary say that a small time scale amplifies real work" {
	raw 8 1000000
	run "$TRAIN" --data "$TMP/raw" --prep none -b 2 --time-scale 0.001 --json "$JSON"
	[ "$status" -eq 0 ]
	[[ "$output" == *"Limit of the testbed (time_scale): at time scale 0.001 real work counts 1000-fold"* ]]
	check "'time_scale' in [l['limit'] for l in j['rig']['limits']]"
	check "j['rig']['real_stall_share'] > .01"
	run "$TRAIN" --data "$TMP/raw" --prep none -b 2 --json "$JSON"
	check "'time_scale' not in [l['limit'] for l in j['rig']['limits']]"
	check "j['rig']['ceiling_samples_per_wall_s'] > 0"
}

@test "the record has every field, even the empty ones" {
	raw 6 1000
	run "$TRAIN" --data "$TMP/raw" --loader sync --prep none -b 2 -e 2 --workers 2 \
		--time-scale 0.01 --seed 7 --json "$JSON"
	[ "$status" -eq 0 ]
	check "set('gpemu command config plugins seed time_scale host profile prep pin node epochs totals warm ceiling timer_error_us rig fs analysis checkpoints resumed dataset sharing coordination interrupted'.split()) == set(j)"
	check "set('epoch seconds wall_seconds steps samples bytes samples_per_s mib_per_s au compute_s transfer_s pin_s allreduce_s optimizer_s data_wait_s fetch_stall_s prep_stall_s pin_stall_s first_batch_s step_ms read_ms prep_ms cpu_s cpu_s_per_gib hits misses'.split()) <= set(e)"
	check "set(('mean', 'p50', 'p90', 'p99', 'max')) <= set(e['read_ms'])"
	check "j['seed'] == 7 and j['time_scale'] == 0.01 and j['config']['batch'] == 2"
	check "j['fs'] is None and e['hits'] is None and e['allreduce_s'] == 0"
	check "set(j['profile']) == set('gpu model batch_size source measured tolerance_pct optimizer precision notice kind'.split())"
	check "len(j['epochs']) == 2 and e['steps'] == 3 and e['samples'] == 6 and e['bytes'] == 6000"
	check "e['read_ms']['max'] > 0 and e['prep_ms']['max'] == 0"
	check "j['interrupted'] is False"
	# the parts add up to the whole
	check "abs(t['fetch_stall_s'] + t['prep_stall_s'] + t['pin_stall_s'] - t['data_wait_s']) < 1e-6"
	check "t['compute_s'] + t['data_wait_s'] + t['transfer_stall_s'] <= t['seconds']"
}

@test "an unwritable record is reported before the first step" {
	run "$TRAIN" --loader null --max-steps 1 --json "$TMP/no/record"
	[ "$status" -eq 1 ]
	[ "$output" = "gpemu-train: $TMP/no/record: No such file or directory" ]
}

@test "every engine reads the same bytes" {
	raw 21 20000
	for engine in $("$TRAIN" --list engine | awk '$1 != "null" && $1 != "service" { print $1 }'); do
		run "$TRAIN" --data "$TMP/raw" --loader "$engine" --prep none -b 4 \
			--superbatch 2 --time-scale 0.001 --json "$JSON"
		[ "$status" -eq 75 ] && continue # io_uring is forbidden here
		[ "$status" -eq 0 ]
		check "t['steps'] == 6 and t['samples'] == 21 and t['bytes'] == 21 * 20000"
	done
}

@test "plug-ins have their own options, and the record has the values" {
	raw 21 20000
	for engine in threads:stack=64K mmap:advice=random async:submit=1,punt=0; do
		run "$TRAIN" --data "$TMP/raw" --loader $engine --prep none -b 4 \
			--order quasi-random:page=64K --time-scale 0.001 --json "$JSON"
		[ "$status" -eq 75 ] && continue # io_uring is forbidden here
		[ "$status" -eq 0 ]
		check "t['samples'] == 21 and t['bytes'] == 21 * 20000"
		check "j['config']['loader'] == '$engine'"
		check "j['plugins']['order'] == {'name': 'quasi_random', 'options': {'window': 0, 'page': '64K'}}"
		check "j['plugins']['prep'] == {'name': 'none', 'options': {}}"
		check "j['plugins']['loader']['name'] == '${engine%%:*}'"
	done
	run "$TRAIN" --loader threads:stack=1 --data "$TMP/raw"
	[ "$status" -eq 2 ]
	[ "$output" = "gpemu-train: --loader: engine threads: stack: 1 is outside 65536..1073741824" ]
	run "$TRAIN" --loader mmap:advise=random --data "$TMP/raw"
	[ "$status" -eq 2 ]
	[ "$output" = "gpemu-train: --loader: engine mmap: unknown option 'advise'; did you mean 'advice'? (known: advice)" ]
	run "$TRAIN" --loader mmap:advice=none --data "$TMP/raw"
	[[ $output == *"engine mmap: advice: unknown advice 'none' (known: normal sequential random willneed)" ]]
	run "$TRAIN" --list engine:mmap
	[ "$status" -eq 0 ]
	[[ ${lines[0]} == "advice=normal|sequential|random|willneed "*madvise* ]]
	run "$TRAIN" --list engine:mmaps
	[ "$status" -eq 2 ]
}

@test "each batching trains on each sample once in an epoch" {
	raw 21 20000
	for batching in in-order out-of-order ready ready:bound=0; do
		for loader in sync async threads; do
			run "$TRAIN" --data "$TMP/raw" --loader $loader --workers 2 --prep none \
				-b 4 -e 2 --batching $batching --dump-samples "$TMP/samples" \
				--time-scale 0.001 --json "$JSON"
			[ "$status" -eq 75 ] && continue # io_uring is forbidden here
			[ "$status" -eq 0 ]
			check "t['steps'] == 12 and t['distinct_samples'] == t['samples'] == 42"
			check "j['plugins']['batching']['name'] == '${batching%%:*}'.replace('-', '_')"
			[ "$(cut -d' ' -f1,3 "$TMP/samples" | sort -u | wc -l)" -eq 42 ]
		done
	done
	check "j['plugins']['batching']['options'] == {'bound': 0}"
	# also where virtual cores complete the samples
	for loader in sync async; do
		run "$TRAIN" --data "$TMP/raw" --loader $loader --prep emulated --cores 4 \
			--prep-profile nominal-slow -b 4 -e 2 --batching ready \
			--time-scale 0.001 --json "$JSON"
		[ "$status" -eq 75 ] && continue
		[ "$status" -eq 0 ]
		check "t['steps'] == 12 and t['distinct_samples'] == t['samples'] == 42"
	done
	run "$TRAIN" --batching ready:bound=5000 --data "$TMP/raw"
	[ "$status" -eq 2 ]
	[[ $output == *"--batching: batching ready: bound: 5000 is outside 0..4096" ]]
	for wrong in "--sort-extents" "--pin direct" "--coordinate a:jobs=2"; do
		run "$TRAIN" --data "$TMP/raw" --batching ready $wrong
		[ "$status" -eq 2 ]
		[[ $output == *--batching* ]]
	done
}

@test "--direct bypasses the page cache, or says that it cannot" {
	raw 21 20000
	for engine in sync threads async; do
		run "$TRAIN" --data "$TMP/raw" --loader $engine --direct on \
			--sort-extents --prep none -b 4 --superbatch 2 \
			--time-scale 0.001 --json "$JSON"
		[ "$status" -eq 75 ] && continue # io_uring is forbidden here
		[ "$status" -eq 0 ]
		check "t['samples'] == 21 and t['bytes'] == 21 * 20000"
		[[ "$output" == *"cannot bypass the page cache"* ]] ||
			check "j['config']['direct'] is True"
	done
	# an engine without such reads is refused before anything is read
	for engine in mmap null; do
		run "$TRAIN" --data "$TMP/raw" --loader $engine --direct on
		[ "$status" -eq 2 ]
		[[ "$output" == *"--direct on: --loader $engine"* ]]
	done
}

@test "a refused O_DIRECT is one warning, and is in the record" {
	mkdir "$TMP/raw"
	# proc's files have no blocks to be read from
	ln -s /proc/self/limits "$TMP/raw/a"
	ln -s /proc/self/limits "$TMP/raw/b"
	run "$TRAIN" --data "$TMP/raw" --loader sync --direct on --prep none -b 2 \
		--pin off --time-scale 0.001 --json "$JSON"
	[ "$(grep -c 'cannot bypass the page cache' <<<"$output")" -eq 1 ]
	check "j['config']['direct'] is False"
}

@test "--sort-extents keeps the order of files that are on no device" {
	[ -w /dev/shm ] || skip "no /dev/shm"
	shm=$(mktemp -d -p /dev/shm)
	for i in 1 2 3; do echo "$i" >"$shm/$i"; done
	run "$TRAIN" -v --data "$shm" --loader sync --sort-extents --prep none \
		-b 2 --time-scale 0.001 --json "$JSON"
	rm -r "$shm"
	[ "$status" -eq 0 ]
	[[ "$output" == *"FIEMAP"* ]]
	check "j['config']['sort_extents'] is False"
}

@test "drop-last and max-steps" {
	raw 7 100
	run "$TRAIN" --data "$TMP/raw" --loader sync --prep none -b 2 -e 2 --drop-last \
		--time-scale 0.001 --json "$JSON"
	[ "$status" -eq 0 ]
	check "[x['samples'] for x in j['epochs']] == [6, 6]"
	run "$TRAIN" --data "$TMP/raw" --loader sync --prep none -b 2 -e 3 --max-steps 5 \
		--time-scale 0.001 --json "$JSON"
	[ "$status" -eq 0 ]
	check "[x['steps'] for x in j['epochs']] == [4, 1]"
	run "$TRAIN" --data "$TMP/raw" --loader sync --prep none -b 8 --drop-last
	[ "$status" -eq 1 ]
	[[ "$output" == *"do not fill a batch of 8"* ]]
}

@test "a slow copy into pinned memory is reported as the bottleneck" {
	raw 64 1000
	run "$TRAIN" --data "$TMP/raw" --loader sync --prep none --model alexnet -b 1 \
		--max-steps 60 --json "$JSON"
	[ "$status" -eq 0 ]
	check "t['pin_s'] > 0 and 0 < t['pin_stall_s'] <= t['data_wait_s']"
	run "$TRAIN" --data "$TMP/raw" --loader sync --prep none --model alexnet -b 1 \
		--pin off --max-steps 60 --json "$JSON"
	[ "$status" -eq 0 ]
	check "t['pin_s'] == 0 and t['pin_stall_s'] == 0"
}

# pin_stage MODE: computing takes 32 ms, pinning 13
pin_stage() {
	run "$TRAIN" --data "$TMP/raw" --prep none --model alexnet --gpu "$TMP/slow.yaml" \
		-b 64 --transfer blocking --pin "$1" --json "$JSON"
	[ "$status" -eq 0 ]
	check "j['pin']['on'] and j['pin']['mode'] == '$1'"
	check "t['pin_s'] / t['steps'] > .0129"
}

# bats test_tags=timed
@test "pinning in the consumer adds to the step, a separate pin stage overlaps" {
	raw 512 1000
	sed 's/base_ms: 3$/base_ms: 13/' \
		"$BATS_TEST_DIRNAME/../../profiles/gpu/tesla-p100-pcie-16gb.yaml" >"$TMP/slow.yaml"
	pin_stage inline
	check "t['pin_stall_s'] > t['pin_s'] * .99"
	# unless reading takes longer than computing, as on a machine that stops
	for try in 1 2 3 4 5; do
		pin_stage on
		[ -z "${GPEMU_SANITIZED-}" ] || break
		check "t['pin_stall_s'] < t['pin_s'] / 2" && break
		[ "$try" -lt 5 ]
	done
	run "$TRAIN" --data "$TMP/raw" --prep none --gpus 2 -b 8 --pin inline
	[ "$status" -eq 2 ]
	[[ "$output" == *"--pin inline"* ]]
}

# bats test_tags=timed
@test "a copy costs what its bytes do: prepared, of any size, and raw" {
	copied() { # ms a step: of 64 samples, of which 602,112 bytes take 48.67 us
		run "$TRAIN" --loader null --time-scale 0.02 --max-steps 5 --json "$JSON" "${@:2}"
		[ "$status" -eq 0 ]
		check "abs(t['transfer_s'] / 5 * 1e3 - $1) < 1e-4"
	}
	copied 3.24288
	check "t['batch_bytes'] == 5 * 64 * 602112"
	copied 0.90672 --prep-output uint8
	copied 0.90672 --image-size 112
	copied 12.58752 --image-size 448
	copied 3.24288 --prep none # the profile's samples
	microsecond
	copied 3000 --gpu "$TMP/microsecond.yaml" --model m -b 10 --time-scale 1e-4
	copied 3000 --gpu "$TMP/microsecond.yaml" --model m -b 10 --time-scale 1e-4 --pin off
	raw 40 1500
	# the ceiling's, too, whose batches take no time: 15 ms a step
	run "$TRAIN" --data "$TMP/raw" --prep none --gpu "$TMP/microsecond.yaml" --model m \
		-b 10 --max-steps 4 --json "$JSON"
	[ "$status" -eq 0 ]
	check "abs(t['transfer_s'] / 4 - .015) < 1e-6"
	check "j['ceiling']['samples_per_s'] < 700"
	check "15e-3 <= t['pin_s'] / 4"
	[ -z "${GPEMU_SANITIZED-}" ] || return 0
	check "600 < j['ceiling']['samples_per_s']"
	check "t['pin_s'] / 4 < 45e-3"
}

@test "--json - writes nothing else to stdout" {
	"$TRAIN" --loader null --max-steps 2 --time-scale 0.01 --json - >"$JSON" 2>"$TMP/err"
	check "t['steps'] == 2"
	grep -q Bottleneck "$TMP/err"
}

@test "unknown names list the known ones" {
	run "$TRAIN" --loader null --gpu v1000
	[ "$status" -eq 2 ]
	[[ "$output" == *"v1000"*"v100"* ]]
	run "$TRAIN" --loader null --model resnet5
	[ "$status" -eq 1 ]
	[[ "$output" == *"resnet5"*"resnet50"* ]]
	run "$TRAIN" --loader nil
	[ "$status" -eq 2 ]
	[[ "$output" == *"nil"*"sync"*"null"* ]]
	run "$TRAIN" --loader null --transfer sideways
	[ "$status" -eq 2 ]
	[[ "$output" == *"sideways"*"overlap"*"blocking"* ]]
}

@test "a missing or empty dataset" {
	run "$TRAIN" --data "$TMP/nowhere"
	[ "$status" -eq 1 ]
	[ "${#lines[@]}" -eq 1 ]
	[[ "$output" == *"$TMP/nowhere: No such file or directory"* ]]
	mkdir -p "$TMP/empty/class" "$TMP/empty/.hidden"
	touch "$TMP/empty/.hidden/file" "$TMP/empty/class/.gpemu-data.json"
	run "$TRAIN" --data "$TMP/empty"
	[ "$status" -eq 1 ]
	[[ "$output" == *"no samples"* ]]
	run "$TRAIN"
	[ "$status" -eq 2 ]
	[[ "$output" == *"--data DIR is required"* ]]
}

@test "a batch that does not fit names the largest that does" {
	run "$TRAIN" --data "$TMP" --model resnet152 -b 4096
	[ "$status" -eq 1 ]
	[ "${#lines[@]}" -eq 1 ]
	[[ "$output" =~ "the largest that fits is "([0-9]+) ]]
	fits=${BASH_REMATCH[1]}
	run "$TRAIN" --loader null --model resnet152 -b "$((fits + 1))" --extrapolate
	[ "$status" -eq 1 ]
	run "$TRAIN" --loader null --model resnet152 -b "$fits" --extrapolate --max-steps 1 \
		--time-scale 0.001
	[ "$status" -eq 0 ]
}

@test "a batch beyond the table needs --extrapolate, and the record says so" {
	run "$TRAIN" --loader null --model alexnet -b 300 --max-steps 2 --time-scale 0.01
	[ "$status" -eq 1 ]
	[[ "$output" == *"--extrapolate"* ]]
	run "$TRAIN" --loader null --model alexnet -b 300 --max-steps 2 --time-scale 0.01 \
		--extrapolate --json "$JSON"
	[ "$status" -eq 0 ]
	check "j['profile']['measured'] == 'extrapolated'"
}

@test "an unknown key in a configuration file is reported with its position" {
	printf 'model: resnet18\nbatchsize: 3\n' >"$TMP/c.yaml"
	run "$TRAIN" --config "$TMP/c.yaml" --loader null
	[ "$status" -eq 2 ]
	[[ "$output" == *"c.yaml:2:1:"*"batchsize"* ]]
}

@test "the effective configuration reads back" {
	"$TRAIN" --loader null --model resnet18 -b 8 --dump-config >"$TMP/c.yaml"
	run "$TRAIN" --config "$TMP/c.yaml" --max-steps 2 --time-scale 0.01 --json "$JSON"
	[ "$status" -eq 0 ]
	check "j['profile']['model'] == 'resnet18' and j['profile']['batch_size'] == 8"
}

@test "a percentage of bad samples is exact" {
	mkdir "$TMP/files"
	for i in $(seq 93); do echo "$i" >"$TMP/files/$i"; done
	for i in $(seq 94 100); do ln -s none "$TMP/files/$i"; done
	some() {
		run "$TRAIN" --data "$TMP/files" --format files --prep none -b 50 \
			--time-scale 0.001 --pin off --index off --bad-samples "$1"
	}
	some 7%
	[ "$status" -eq 0 ]
	rm "$TMP/files/1"
	ln -s none "$TMP/files/1"
	some 7%
	[ "$status" -eq 1 ]
	[[ "$output" == *"8 samples of an epoch of 100 cannot be used"* ]]
}

@test "JPEGs are decoded, truncated ones counted and named once" {
	jpegs 24
	run "$TRAIN" --data "$TMP/jpeg" --loader sync -b 4 --time-scale 0.05 --json "$JSON"
	[ "$status" -eq 0 ]
	check "t['samples'] == 24 and t['failed_samples'] == 0 and t['prep_ms']['mean'] > 0"

	bad=$(find "$TMP/jpeg" -name '[!.]*' -type f | sort | head -3)
	for f in $bad; do truncate -s 200 "$f"; done
	bad() {
		run "$TRAIN" --data "$TMP/jpeg" --loader "$1" -b 4 -e 2 --time-scale 0.05 \
			--progress off --ceiling off --order sequential --json "$JSON" \
			--dump-samples "$TMP/samples" --bad-samples "$2"
	}
	for loader in sync threads; do
		bad $loader 3
		[ "$status" -eq 0 ]
		check "[x['failed_samples'] for x in j['epochs']] == [3, 3] and e['samples'] == 21"
		check "e['distinct_samples'] == 21 and t['steps'] == 12 and len(j['bad_samples']) == 3"
		check "all(b['reason'] == 'a truncated image' for b in j['bad_samples'])"
		[ "$(wc -l <"$TMP/samples")" -eq 42 ]
		[[ "$output" == *"6 of 48 samples could not be used, and were left out of their batches:"* ]]
		[ "$(grep -c ': a truncated image' <<<"$output")" -eq 3 ]
	done
	# the first three of a batch of four: the fourth takes their place
	bad sync 12.5%,replace
	[ "$status" -eq 0 ]
	check "e['failed_samples'] == 3 and e['samples'] == 24 and e['distinct_samples'] == 21"
	[ "$(cut -d' ' -f1-3 "$TMP/samples" | head -4 | uniq -c | tr -s ' ')" = " 4 0 0 3" ]
	bad sync 3,zeros
	check "e['failed_samples'] == 3 and e['samples'] == 21 and t['steps'] == 12"
	bad sync 2
	[ "$status" -eq 1 ]
	[[ "$output" == *"3 samples of an epoch of 24 cannot be used, more than --bad-samples 2 permits; the first: $TMP/jpeg/"*": a truncated image"* ]]
	run "$TRAIN" --loader null --bad-samples 3x
	[ "$status" -eq 2 ]
	[[ "$output" == *"--bad-samples: '3x' is not a number of samples"* ]]
	# a batch of bad ones alone still makes its step
	for f in $(find "$TMP/jpeg" -name '[!.]*' -type f | sort | head -4); do truncate -s 200 "$f"; done
	bad sync 4
	[ "$status" -eq 0 ]
	check "e['failed_samples'] == 4 and e['samples'] == 20 and t['steps'] == 12"
	bad sync 4,replace
	[[ "$output" == *"8 of 48 samples could not be used"* ]]
}

@test "one PNG among 41 JPEGs is decoded, and one text file left out of its batch" {
	"$DATA" make --files 41 --classes 2 --scale-bytes 0.2 "$TMP/in" >/dev/null
	python3 - "$(find "$TMP/in" -name '*7.JPEG' | head -1)" <<-'PY'
		import struct, sys, zlib
		def chunk(name, data):
		    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
		open(sys.argv[1], "wb").write(b"\x89PNG\r\n\x1a\n" +
		    chunk(b"IHDR", struct.pack(">IIBBBBB", 90, 60, 8, 2, 0, 0, 0)) +
		    chunk(b"IDAT", zlib.compress((b"\0" + b"\x80" * 270) * 60)) + chunk(b"IEND", b""))
	PY
	run "$TRAIN" --data "$TMP/in" --loader sync -b 8 --time-scale 0.05 --json "$JSON" --ceiling off
	[ "$status" -eq 0 ]
	check "t['failed_samples'] == 0 and t['samples'] == 41 and 'bad_samples' not in j"
	echo text >"$(find "$TMP/in" -name '*7.JPEG' | head -1)"
	run "$TRAIN" --data "$TMP/in" --loader sync -b 8 --time-scale 0.05 --json "$JSON" --ceiling off --index off
	[ "$status" -eq 0 ]
	check "t['failed_samples'] == 1 and t['samples'] == 40 and j['bad_samples'][0]['reason'] == 'not an image'"
	[[ "$output" == *"1 of 41 samples could not be used"* ]]
	# it was visited, so a resumed run has room for all others
	for steps in 3 0; do
		"$TRAIN" --data "$TMP/in" --loader sync -b 8 --time-scale 0.05 --ceiling off \
			--index off --checkpoint-every 3 --checkpoint-dir "$TMP/ck" \
			--checkpoint-size 1K --resume --max-steps $steps \
			--dump-samples "$TMP/samples" >/dev/null 2>&1
	done
	[ "$(cut -d' ' -f3 "$TMP/samples" | sort -u | wc -l)" -eq 40 ]
}

@test "SIGINT finishes the step and writes the record" {
	# as a foreground job of a shell: SIGINT is not ignored
	python3 - "$TRAIN" "$JSON" <<-'PY'
		import signal, subprocess, sys, time
		p = subprocess.Popen([sys.argv[1], '--loader', 'null', '--model', 'alexnet',
		                      '--json', sys.argv[2], '--progress', 'on'],
		                     stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
		p.stderr.read(1)  # the bar is drawn: it is training
		p.send_signal(signal.SIGINT)
		err = p.communicate(timeout=20)[1]
		assert p.wait() == 1, p.returncode
		assert 'interrupted after' in err, err
	PY
	check "j['interrupted'] is True and t['steps'] >= 1"
}

# bats test_tags=timed
@test "too little lockable memory: batches fit, go unpinned, or end a run that insists" {
	! grep -q __asan_init "$TRAIN" || skip "a sanitizer makes mlock do nothing"
	[ "$(id -u)" -ne 0 ] || command -v setpriv >/dev/null || skip "setpriv is missing"
	raw 8 1000
	chmod -R a+rX "$TMP"
	low() ( # the limit is the subshell's
		ulimit -l "${limit-1}"
		if [ "$(id -u)" -eq 0 ]; then
			setpriv --bounding-set -ipc_lock --inh-caps -ipc_lock "$@"
		else
			"$@"
		fi
	)
	run low "$TRAIN" --data "$TMP/raw" --loader sync --prep none -b 8 --pin on
	[ "$status" -eq 75 ]
	[[ "$output" == *"ulimit -l"*"--pin off"* ]]
	# in real time: the real copy is a lower bound of the profile's
	unpinned=(--data "$TMP/raw" --loader sync --prep none)
	low "$TRAIN" "${unpinned[@]}" -b 8 --pin off --json - >"$JSON" 2>"$TMP/err"
	[ "$(grep -c "not pinned" "$TMP/err")" -eq 0 ]
	pageable=$(python3 -c 'import json, sys
print(json.load(open(sys.argv[1]))["totals"]["transfer_s"])' "$JSON")
	low "$TRAIN" "${unpinned[@]}" -b 8 -e 3 --json - >"$JSON" 2>"$TMP/err"
	[ "$(grep -c "not pinned: one takes 8 KiB and 0 KiB may be locked" "$TMP/err")" -eq 1 ]
	check "not j['pin']['on'] and j['pin']['mode'] == 'auto'"
	check "j['pin']['notice'] and j['pin']['pinned_bytes'] == 0"
	check "abs(t['transfer_s'] / (3 * $pageable) - 1) < .5"
	# room for one batch of 8000 bytes, not for three
	limit=12 low "$TRAIN" "${unpinned[@]}" -b 8 -e 3 --json - >"$JSON" 2>"$TMP/err"
	[ "$(grep -c "not pinned" "$TMP/err")" -eq 0 ]
	check "j['pin']['on'] and 'notice' not in j['pin']"
	check "8000 <= j['pin']['pinned_bytes'] <= j['pin']['budget_bytes'] == 12288"
	# if sizes differ, the largest possible batch counts
	head -c 30000 /dev/zero >"$TMP/raw/a/large.bin"
	limit=32 low "$TRAIN" "${unpinned[@]}" -b 8 --json - >"$JSON" 2>"$TMP/err"
	grep "not pinned: one takes 37 KiB and 32 KiB" "$TMP/err"
	limit=40 low "$TRAIN" "${unpinned[@]}" -b 8 -e 3 --json - >"$JSON" 2>"$TMP/err"
	check "j['pin']['on'] and j['pin']['budget_bytes'] == 40960"
}

@test "trace and steps: every sample, every step, stalls that add up" {
	raw 12 3000
	run "$TRAIN" --data "$TMP/raw" --loader async --prep none -b 4 -e 2 --workers 2 \
		--time-scale 0.01 --trace "$TMP/trace" --steps "$TMP/steps" --json "$JSON"
	[ "$status" -eq 0 ]
	python3 - "$JSON" "$TMP/trace" "$TMP/steps" <<-'PY'
		import csv, json, sys
		record, trace = (json.load(open(p)) for p in sys.argv[1:3])
		steps = list(csv.DictReader(open(sys.argv[3])))
		named = lambda ph, name: [e for e in trace if e['ph'] == ph and e['name'] == name]
		# two epochs of twelve samples in three steps
		for ph in 'be':
		    assert len(named(ph, 'read')) == 24
		assert sorted(e['args']['sample'] for e in named('b', 'read')) == sorted(2 * list(range(12)))
		assert len(named('X', 'step')) == len(named('X', 'copy')) == len(steps) == 6
		for cause in ('fetch', 'transfer'):
		    total = record['totals'][cause + '_stall_s']
		    assert abs(sum(float(s[cause + '_stall_s']) for s in steps) - total) < 1e-6, cause
		    assert abs(sum(e['dur'] for e in named('X', cause)) - total * 1e6) < 1, cause
		compute = sum(e['dur'] for e in named('X', 'step'))
		assert abs(compute - record['totals']['compute_s'] * 1e6) < 1
		assert record['totals']['bytes_read'] == record['totals']['batch_bytes'] == 24 * 3000
		assert record['warm']['samples'] == 12
	PY
	run "$TRAIN" --data "$TMP/raw" --prep none -b 4 --trace /dev/full
	[ "$status" -eq 1 ]
	[[ $output == *"/dev/full: "* ]]
	run "$TRAIN" --data "$TMP/raw" --prep none -b 4 --steps "$TMP/no/where"
	[ "$status" -eq 1 ]
}

@test "a record goes into a pipe or through a link, and replaces neither" {
	null=("$TRAIN" --loader null --max-steps 2 --time-scale 0.001)
	mkfifo "$TMP/pipe"
	ln -s "$JSON" "$TMP/link"
	exec 8<>"$TMP/pipe" # its reader: a record is less than a pipe holds
	"${null[@]}" --json "$TMP/pipe" >/dev/null
	[ -p "$TMP/pipe" ]
	python3 -c 'import json, os; json.loads(os.read(8, 1 << 16))'
	exec 8>&-
	"${null[@]}" --json "$TMP/link" >/dev/null
	[ -L "$TMP/link" ]
	check "t['steps'] == 2"
}

@test "an accelerator of MLPerf Storage has the published step time" {
	"$TRAIN" --loader null --gpu mlperf-h100 --model unet3d -b 7 \
		--max-steps 4 --json "$JSON" >/dev/null
	check "abs(t['compute_s'] - 4 * .323) < 1e-6 and t['transfer_s'] == 0"
	# no other batch size was published
	run "$TRAIN" --loader null --gpu mlperf-h100 --model unet3d -b 8
	[ "$status" -eq 1 ]
	[[ "$output" == *"was not measured"* ]]
}

@test "an option that a choice would ignore is refused, with the reason" {
	mkdir "$TMP/raw"
	# refused REASON OPTIONS
	refused() {
		local reason=$1
		shift
		run "$TRAIN" --data "$TMP/raw" --max-steps 1 "$@"
		[ "$status" -eq 2 ]
		[[ "$output" == *"$reason"* ]]
	}
	for batching in out_of_order ready; do
		refused "leave out --batching" --loader service \
			--dispatcher 127.0.0.1:1 --batching $batching
	done
	refused "--inference has no gradients" --loader null --inference --accumulate 2
	refused "--parallel fsdp: not with --gpu-server" --loader null \
		--gpu-server "$TMP/none" --parallel fsdp
}

@test "--stages: nothing of a step overlaps" {
	"$TRAIN" --loader null --samples 640 --time-scale 0.1 --stages load=50ms,network=20ms \
		--json "$JSON"
	# 10 steps of resnet50 on the v100 at 64
	check 't["seconds"] >= 10 * .07 + t["compute_s"] and t["steps"] == 10'
	mkdir "$TMP/raw"
	for bad in '--stages gpu=1s' "--stages cpu=1s --data $TMP/raw --loader sync" \
		"--stages cpu=1s --data $TMP/raw --loader service --dispatcher 127.0.0.1:1" \
		'--turns fd=9,members=2'; do
		run "$TRAIN" --loader null --samples 64 $bad
		[ "$status" -ne 0 ]
		[[ "$output" == *"stages"* ]]
	done
}

@test "--ceiling off: nothing is measured before the run" {
	"$TRAIN" --loader null --samples 640 --time-scale 0.01 --json "$JSON"
	check 'j["ceiling"]["steps"] > 0'
	"$TRAIN" --loader null --samples 640 --time-scale 0.01 --ceiling off \
		--json "$JSON"
	check 'j["ceiling"] is None and t["steps"] == 10'
}

@test "gpu-rate: a step is its samples over the rate, without a profile" {
	"$TRAIN" --loader null --samples 330 -b 32 --gpu-rate 1000 --model mine --simulate --prep none \
		--json "$JSON" >"$TMP/out"
	[[ "$(<"$TMP/out")" != *WARN* ]]
	python3 - "$JSON" <<-'PY'
		import json, sys
		j = json.load(open(sys.argv[1]))
		p, e = j["profile"], j["epochs"][0]
		# the last step has 10 samples
		assert abs(e["compute_s"] - .33) < 1e-6, e["compute_s"]
		assert p["measured"] == "given" and "user's number" in p["source"], p
		assert p["kind"].startswith("EMULATED") and p["notice"] is None, p
		assert j["config"]["gpu_rate"] == 1000 and j["config"].get("gpu") is None
	PY
	# with a profile: its copies and memory
	"$TRAIN" --loader null --samples 320 -b 32 --gpu-rate 1000 --gpu v100 --simulate --prep none --json "$JSON" >/dev/null
	python3 - "$JSON" <<-'PY'
		import json, sys
		e = json.load(open(sys.argv[1]))["epochs"][0]
		assert abs(e["compute_s"] - .32) < 1e-6 and e["transfer_s"] > 0, e
	PY
	# but not its first steps: they took this long at the profile's own rate
	for given in --gpu-rate=1000 --inference; do
		"$TRAIN" --loader null --samples 320 -b 32 --gpu h100 --model resnet50 "$given" \
			--simulate --prep none --json "$JSON" >/dev/null
		check 'j["epochs"][0]["host_stall_s"] == 0'
	done
	run "$TRAIN" --loader null --samples 32 --gpu-rate 1000 --step-time 3ms
	[ "$status" -ne 0 ]
	[[ "$output" == *"--step-time"* ]]
	run "$TRAIN" --loader null --samples 32 --gpu-rate .001
	[ "$status" -eq 2 ]
}

@test "a precision that no profile states is a warning, once" {
	"$TRAIN" --loader null --samples 64 --gpu a100 --simulate --prep none --json "$JSON" >"$TMP/out"
	[ "$(grep -c '^WARN the precision of resnet50 on NVIDIA A100' "$TMP/out")" -eq 1 ]
	grep -q -- --gpu-rate "$TMP/out"
	python3 - "$JSON" <<-'PY'
		import json, sys
		p = json.load(open(sys.argv[1]))["profile"]
		assert p["precision"] is None and "not stated" in p["notice"], p
	PY
	"$TRAIN" --loader null --samples 64 --gpu h100 --model resnet50:tf32 --simulate --prep none --json "$JSON" >"$TMP/out"
	[[ "$(<"$TMP/out")" != *WARN* ]]
	grep -q '"precision": "tf32"' "$JSON"
}

@test "a model that the GPU lacks: who has it, and what this GPU has" {
	run "$TRAIN" --loader null --samples 64 --gpu h100 --model vgg16
	[ "$status" -eq 1 ]
	[[ "$output" == *nvidia-a100-sxm4-40gb*tesla-v100*"NVIDIA H100"*resnet50* ]]
	run "$TRAIN" --loader null --samples 64 --gpu-rate 100 --gpu v100 --model mine
	[[ "$output" == *"without --gpu the rate needs no profile"* ]]
}
