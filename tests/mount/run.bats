#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-run with the real programs: its measurements, and that no mount or
# process outlives it.

bats_require_minimum_version 1.5.0
load mount

setup()
{
	common_setup
	unset GPEMU_BIN
	export TMPDIR=$BATS_TEST_TMPDIR/tmp
	mkdir "$TMPDIR"
	cd "$BATS_TEST_TMPDIR"
	make_files 60 4000
	cat >w.yaml <<-'END'
		name: small
		question: Does a larger cache hit more?
		dataset: {dir: src}
		base:
		  fs: {storage: ideal, cache_policy: minio}
		  train: {loader: async, prep: none, batch: 16, epochs: 3}
		axes:
		  fs.cache_size: [30%, 100%]
		time_scale: 0.05
		order: interleaved
		noise: 100%
	END
}

teardown()
{
	[ -z "${pid-}" ] || kill "$pid" 2>/dev/null || true
	common_teardown
}

nothing_left()
{
	run ! grep -F " $BATS_TEST_TMPDIR/" /proc/mounts
	run ! pgrep -f "gpemu-(fs|train) .*$BATS_TEST_TMPDIR"
	[ -z "$(ls "$TMPDIR")" ]
}

# value CELL PATH: a number of the record of the cell whose name begins so
value()
{
	python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))
print(eval("r" + sys.argv[2]))' "$(ls results/small/records/"$1"-*)" "$2"
}

# counts NAME: the counters of all its cells
counts()
{
	python3 - results/"$1"/records/* <<-'END'
	import json, sys
	for name in sys.argv[1:]:
	    r = json.load(open(name))
	    print(r["cell"]["axes"], r["totals"]["bypassed_samples"],
	          [(e["hits"], e["misses"], e["backend_bytes"])
	           for e in r["mount"]["epochs"]],
	          r["totals"]["fetch_stall_s"] > 0)
	END
}

@test "run: a cell's record has the counts of the mount" {
	gpemu-run w.yaml
	[ "$(value 100p '["mount"]["epochs"][2]["hits"]')" -eq 60 ]
	[ "$(value 100p '["mount"]["epochs"][0]["misses"]')" -eq 60 ]
	hits=$(value 30p '["mount"]["epochs"][2]["hits"]')
	[ "$hits" -gt 5 ]
	[ "$hits" -lt 40 ]
	[ "$(value 30p '["cell"]["mounted"]')" = True ]
	grep -E '^100% .* 100\.0 +1$' results/small/table.txt
	nothing_left
}

# bats test_tags=slow
@test "run: a dataset of links gives the numbers of the real files" {
	mkdir -p links
	for c in src/c*; do mkdir "links/${c##*/}"; done
	(cd src && find . -type f -exec ln -s "$PWD/{}" "../links/{}" \;)
	sed -i 's/async, prep/sync, workers: 1, prep/; s/ideal/hdd/' w.yaml
	sed 's/name: small/name: links/; s/dir: src/dir: links/' w.yaml >links.yaml
	gpemu-run w.yaml
	gpemu-run links.yaml
	diff <(counts small) <(counts links)
	[ "$(counts small | wc -l)" = 2 ]
	# what leaves the mount is no result
	sed -i 's/hdd/hdd, follow_links: none/' links.yaml
	run -1 gpemu-run links.yaml -o past
	[[ $output == *"180 reads of samples bypassed the mount"* ]]
	grep -q '"status": "failed"' past/records/*
	# nor what a worker of the service reads past it
	sed -i 's/loader: sync, workers: 1/loader: service/; s/^  fs:/  prepd: {threads: 1}\n  fs:/' links.yaml
	run -1 gpemu-run links.yaml -o served
	[[ $output == *"180 reads of samples bypassed the mount"* ]]
	nothing_left
}

# bats test_tags=slow
@test "run: the shipped workloads are valid" {
	export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
	local all=$BATS_TEST_DIRNAME/../../workloads/all.yaml
	gpemu-run check "$all"
	for w in "${all%/*}"/*.yaml; do
		grep -qF "${w##*/}" "$all" || [ "$w" = "$all" ] ||
			gpemu-run check "$w"
	done
	[ ! -e results ]
}

@test "run: a bad value in a workload is reported with its position" {
	sed -i 's/100%\]/100M]/' w.yaml # a size, too
	gpemu-run --dry-run w.yaml
	sed -i 's/batch: 16/batch: none/' w.yaml
	run gpemu-run w.yaml
	[ "$status" -eq 1 ]
	[ "$output" = "gpemu-run: w.yaml:6:45: gpemu-train: batch: 'none' is not a non-negative integer" ]
	[ ! -e results ]
}

# Starts a long run and waits until its first cell is mounted.
start_long()
{
	sed -i 's/storage: ideal/storage: hdd/; s/time_scale.*/time_scale: 10/' \
		w.yaml
	gpemu-run --progress off w.yaml >out 2>&1 3>&- &
	pid=$!
	eventually pgrep -f "gpemu-train .*--data $TMPDIR"
}

@test "run: SIGTERM ends the loader, the mount and the run" {
	start_long
	kill -TERM $pid
	wait $pid && false
	[ $? -eq 143 ]
	grep -q "stopped by" out
	nothing_left
}

@test "run: its children end with it when it is killed" {
	start_long
	kill -KILL $pid
	wait $pid && false
	gone()
	{
		pgrep -f "gpemu-(fs|train) .*$TMPDIR" && return 1
		! grep -F " $TMPDIR/" /proc/mounts
	}
	eventually gone
}

@test "run: a cell whose mount dies is reported, the others finish" {
	start_long
	kill -KILL $(pgrep -f "gpemu-fs .*$TMPDIR")
	eventually grep -q 'cell 30p-r1-.* failed' out
	# the second cell runs
	eventually pgrep -f "gpemu-train .*--data $TMPDIR"
	kill -TERM $pid
	wait $pid && false
	nothing_left
	grep -q '"status": "failed"' results/small/records/30p-r1-*.json
}

@test "run: two mounts and two jobs in a cell, one of them a program" {
	make_files 20 2000
	cat >w.yaml <<-'END'
		name: small
		question: Do two mounts serve two jobs?
		dataset: {dir: src}
		base:
		  fs: {storage: ideal}
		  train: {loader: async, prep: none, batch: 16, epochs: 2}
		mounts:
		  a: {fs: {cache_policy: none}}
		  b: {}
		jobs:
		  train: {mount: a}
		  cat:
		    mount: b
		    exec:
		      command: 'find {mount} -type f | xargs cat | wc -c | sed "s/.*/{{\"bytes\": &}}/; s/^{//; s/}$//" >{record}'
		metrics:
		  hits: {path: mounts.a.hits}
		  bytes: {path: jobs.cat.bytes}
		  epochs: {path: 'jobs.train.epochs[-1].epoch'}
		time_scale: 0.05
		noise: 100%
	END
	gpemu-run w.yaml
	python3 - <<-'END'
		import json, os
		s = json.load(open("results/small/summary.json"))
		m = s["cells"][0]["metrics"]
		size = sum(os.path.getsize(os.path.join(d, f))
		           for d, _, fs in os.walk("src") for f in fs)
		assert m["bytes"]["median"] == size, (m, size)
		assert m["hits"]["median"] == 0
	END
	nothing_left
}

@test "run: a mount that dies under a program ends the cell at once" {
	sed -i 's/^  train:.*/  exec: {command: [sleep, "1000"]}/' w.yaml
	gpemu-run --progress off w.yaml >out 2>&1 3>&- &
	pid=$!
	eventually pgrep -f "gpemu-fs .*$TMPDIR"
	eventually pgrep -f "^sleep 1000"
	kill -KILL $(pgrep -f "gpemu-fs .*$TMPDIR")
	eventually grep -q 'cell 30p-r1-.* failed: gpemu-fs: killed by SIGKILL' out
	kill -TERM $pid
	wait $pid && false
	nothing_left
}

@test "an axis of datasets: folders, shards, packs and synthetic ones" {
	mkdir shards
	python3 - <<-'PY'
		import os, tarfile
		with tarfile.open('shards/0.tar', 'w') as tar:
		    for folder, _, names in os.walk('src'):
		        for name in names:
		            tar.add(os.path.join(folder, name), 'd/%d.bin' % len(tar.getmembers()))
	PY
	"$BUILD/gpemu-data" pack src p.pack >/dev/null
	sed -i -e '/^dataset:/d' -e 's/^  fs.cache_size: .*/  dataset:/' w.yaml
	sed -i '/^  dataset:/a\
    - src\
    - {label: shards, dataset: ./shards}\
    - pack:p.pack\
    - "synth:imagenet,files=60,content=random"\
    - {label: mapped, dataset: {synth: imagenette, files: 50, content: random}}' w.yaml
	"$BUILD/gpemu-run" check w.yaml >out
	[ "$(grep -c '^dataset ' out)" -eq 5 ]
	[ "$(grep -c '(generated on read)' out)" -eq 2 ]
	"$BUILD/gpemu-run" w.yaml >out
	python3 - results/small/records/* <<-'PY'
		import json, sys
		r = [json.load(open(p)) for p in sys.argv[1:]]
		assert len(r) == 5
		n = sorted(x['epochs'][0]['samples'] for x in r)
		# the folder, its shards and its pack have the same files
		assert n[0] == 50 and n[1:] == [60] * 4, n
		b = sorted(x['epochs'][0]['bytes'] for x in r)
		assert b[0] == b[1] == b[2] < b[3], b
	PY
	nothing_left
	# one of them is missing, a folder or the dataset as such
	sed -i 's/ - src/ - nowhere/' w.yaml
	run "$BUILD/gpemu-run" check w.yaml
	[ "$status" -ne 0 ]
	[[ $output == *"no folder"*nowhere* ]]
	sed -i '/^  dataset:/,/^    - {label: mapped/d; s/^axes:/axes: {train.workers: [1, 2]}/' w.yaml
	run "$BUILD/gpemu-run" check w.yaml
	[[ $output == *"'dataset' is missing" ]]
}
