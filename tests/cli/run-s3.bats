# SPDX-License-Identifier: MIT
# gpemu-run with the real programs: cells with an object store.
bats_require_minimum_version 1.5.0

setup()
{
	unset GPEMU_BIN
	bin=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}
	share=$BATS_TEST_DIRNAME/../..
	cd "$BATS_TEST_TMPDIR" || return
	export TMPDIR=$BATS_TEST_TMPDIR/tmp
	mkdir -p "$TMPDIR" data/a data/b
	for ((i = 0; i < 40; i++)); do
		head -c $((i * 1000)) /dev/urandom >"data/$((i % 2 ? 1 : 0))$i"
		head -c 5000 /dev/urandom >"data/b/x y+$i"
	done
	cat >w.yaml <<-END
		name: store
		question: What does the object store answer?
		dataset: {dir: data}
		base:
		  s3: {storage: ideal, bucket: pictures}
		  exec: {command: "python3 $share/examples/s3.py {mount} {record} threads={threads}",
		         threads: 4}
		axes:
		  store:
		    - {label: quiet}
		    - {label: throttles, s3.fault: ["op=read,every=4,errno=EBUSY"]}
		    - {label: breaks, s3.fault: ["op=read,every=9,errno=ECONNRESET"], s3.bucket: other}
		noise: 100%
		metrics:
		  retries: {path: retries}
		  gets: {path: s3.s3.operations.GetObject}
		expect:
		  - {that: retries == 0 +- 0, kind: self, where: {store: quiet}}
		  - {that: retries > 0, kind: self, where: {store: [throttles, breaks]}}
		  - {that: gets == 80 + retries +- 0, kind: self}
	END
}

nothing_left()
{
	run ! pgrep -f "$TMPDIR"
	[ -z "$(ls "$TMPDIR")" ]
}

@test "s3: the program of a cell reads its object store, which a fault disturbs" {
	run --separate-stderr "$bin/gpemu-run" w.yaml
	echo "$output" "$stderr"
	[ "$status" -eq 0 ]
	[[ $output == *"6 of 6 checks passed"* ]]
	[[ $output == *"REAL      the program and the bytes of the object store; gpemu-s3,"*"EMULATED  the storage device; the records"* ]]
	python3 - <<-'END'
		import glob, json, os
		total = sum(os.path.getsize(os.path.join(t, n)) for t, _, ns in os.walk("data") for n in ns)
		for label, bucket in ("quiet", "pictures"), ("throttles", "pictures"), ("breaks", "other"):
		    r = json.load(open(glob.glob(f"results/store/records/{label}-*")[0]))
		    assert r["bytes"] == total, (r["bytes"], total)
		    assert r["objects"] == 80 and r["cell"]["mounted"] is False
		    assert r["s3"]["delivered_bytes"] >= total
		    assert r["cell"]["s3"].get("bucket", "pictures") == bucket
		    s3, job = r["cell"]["commands"]
		    assert s3[0].endswith("gpemu-s3") and f"s3://{bucket}" in job[2]
		    assert "SECRET" not in json.dumps(r)
		    assert (r["s3"]["s3"]["errors"].get("SlowDown", 0) > 0) == (label == "throttles")
	END
	nothing_left
	# the configuration of the store is part of what a cell is
	run "$bin/gpemu-run" w.yaml
	[[ $output != *"cell 1 of"* ]]
	run "$bin/gpemu-run" w.yaml s3.storage=nvme
	[[ $output == *"cell 1 of 3"* ]]
}

@test "s3: what is checked before anything runs" {
	run "$bin/gpemu-run" check w.yaml
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *"gpemu-s3 serves the dataset of mount data as bucket pictures"* ]]
	[[ $output == *"a program on the object store"* ]]
	run -1 "$bin/gpemu-run" check w.yaml s3.storge=ideal
	[[ $output == *"unknown key 'storge'"* ]]
	run -1 "$bin/gpemu-run" check w.yaml s3.bucket=Bad
	[[ $output == *"gpemu-s3: bucket: a bucket has 3 to 63"* ]]
	run -1 "$bin/gpemu-run" check w.yaml s3.listen=127.0.0.1:1
	[[ $output == *"listen: gpemu-run itself sets this"* ]]
	run -1 "$bin/gpemu-run" check w.yaml axes.fs.storage='[ideal, nvme]'
	[[ $output == *"fs.storage: base has s3 and no fs, so nothing is mounted"* ]]
	run -1 "$bin/gpemu-run" check w.yaml s3='~' base.s3='~'
	[[ $output == *"base has no s3"* ]]
	[ ! -e results ]
}

@test "s3: gpemu-train reads the object store, as it reads a folder" {
	sed -i '/exec:/,/threads: 4/d' w.yaml
	sed -i '/^axes/,$d' w.yaml
	cat >>w.yaml <<-'END'
		  train: {model: alexnet, gpu: v100, batch: 8, epochs: 2, prep: none, workers: 2,
		          ceiling: off}
		axes:
		  train.loader: [async, threads, sync]
		  store: [{label: quiet}, {label: throttles, s3.fault: "op=read,every=9,errno=EBUSY"}]
		noise: 100%
		metrics:
		  retries: {path: store.retries}
		  samples: {path: totals.samples}
		  bytes: {path: totals.bytes}
		  most_in_flight: {path: s3.s3.connections}
		expect:
		  - {that: samples == 80 +- 0, kind: self}
		  - {that: bytes == 400000 +- 0, kind: self}
		  - {that: retries == 0 +- 0, kind: self, where: {store: quiet}}
		  - {that: retries > 3, kind: self, where: {store: throttles}}
		  - {that: "most_in_flight[async] > 4 * most_in_flight[sync]", kind: self}
	END
	# the store of the cell, whatever the user's own is, past a proxy
	export AWS_ENDPOINT_URL_S3=http://127.0.0.1:1
	export http_proxy=http://127.0.0.1:1 all_proxy=http://127.0.0.1:1 no_proxy=example.com
	run --separate-stderr "$bin/gpemu-run" w.yaml
	echo "$output" "$stderr"
	[ "$status" -eq 0 ]
	[[ $output == *"20 of 20 checks passed"* ]]
	run "$bin/gpemu-run" check w.yaml train.batch=16
	[[ $output == *"without an estimate: jobs on an object store"* ]]
	nothing_left
}

@test "s3: a mount and an object store beside it" {
	[ -w /dev/fuse ] || skip "no /dev/fuse"
	cat >both.yaml <<-'END'
		name: both
		question: Do they have the same files?
		dataset: {dir: data}
		base:
		  s3: {storage: ideal}
		  fs: {storage: ideal}
		  exec:
		    command: >-
		      test -f {mount}/b/x\ y+1 &&
		      curl -sf --aws-sigv4 aws:amz:$AWS_REGION:s3
		      --user $AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY
		      -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD'
		      "$AWS_ENDPOINT_URL/$GPEMU_S3_BUCKET/b/x%20y%2B1" | cmp - {mount}/b/x\ y+1
		noise: 100%
	END
	command -v curl >/dev/null || skip "curl is not installed"
	run --separate-stderr "$bin/gpemu-run" both.yaml
	echo "$output" "$stderr"
	[ "$status" -eq 0 ]
	python3 - <<-'END'
		import glob, json
		r = json.load(open(glob.glob("results/both/records/*")[0]))
		assert r["cell"]["mounted"] and r["mount"]["files"] == r["s3"]["files"] == 80
	END
	nothing_left
}

@test "s3: a store that cannot start fails the cell, with its reason" {
	run --separate-stderr "$bin/gpemu-run" w.yaml s3.storage=./none.yaml
	[ "$status" -eq 1 ]
	[[ $stderr == *"none.yaml"* ]]
	nothing_left
}
