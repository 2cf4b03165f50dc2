# SPDX-License-Identifier: MIT
# gpemu-run on stand-ins for the programs it runs (run-standins/).
bats_require_minimum_version 1.5.0
load standins

setup()
{
	standins_setup
	cat >w.yaml <<-'END'
		name: small
		question: Is async faster?
		dataset: {dataset: imagenette, files: 5}
		base:
		  fs: {storage: hdd}
		  train: {epochs: 2}
		axes:
		  fs.cache_policy: [lru, minio]
		  train.loader: [sync, async]
		repetitions: 2
		time_scale: 0.5
		seed: 7
		order: interleaved
		noise: 100%
		plot:
		  - {x: train.loader, y: seconds, series: fs.cache_policy,
		     kind: bars}
	END
}

nothing_left()
{
	run ! grep -F " $BATS_TEST_TMPDIR/" /proc/mounts
	[ -z "$(ls "$TMPDIR")" ]
}

need_root()
{
	[ "$(id -u)" -eq 0 ] || skip "a bind mount needs root"
	mkdir probe && mount --bind probe probe 2>/dev/null ||
		skip "nothing can be mounted here"
	umount probe
	[ -w /dev/fuse ] || skip "no /dev/fuse"
}

@test "run: every cell runs once per repetition, with its seed and time scale" {
	run --separate-stderr gpemu_run w.yaml
	[ "$status" -eq 0 ]
	[ "$(grep -c 'sync 7 0.5' standin.log)" -eq 4 ]
	[ "$(grep -c '^async 8 0.5' standin.log)" -eq 2 ]
	[ "$(ls results/small/records | wc -l)" -eq 8 ]
	# 20 + 7 and 20 + 8 seconds
	[[ $output == *"lru "*"sync "*"27.50 (27.00-28.00)"* ]]
	[[ $output == *"minio "*"async "*"17.50 (17.00-18.00)"* ]]
	[[ $output == *"REAL "*"images decoded"*"EMULATED "*"the GPU"* ]]
	nothing_left
}

@test "run: without a mount, rows that differ only in gpemu-fs are marked" {
	run --separate-stderr gpemu_run w.yaml
	[ "$(grep -c '2 \*$' <<<"$output")" -eq 4 ]
	[[ $output == *"* Not mounted: these rows differ only in gpemu-fs"* ]]
}

@test "run: plots come with their data and script" {
	command -v gnuplot >/dev/null || skip "gnuplot is not installed"
	gpemu_run w.yaml
	cd results/small/plots
	[ "$(head -c 4 seconds-by-train_loader.png | tail -c 3)" = PNG ]
	grep -q '</svg>' seconds-by-train_loader.svg
	grep -qx '1 "async" 17.5 17 18' seconds-by-train_loader.dat
	grep -q "^set ylabel 'epoch time (s)'" seconds-by-train_loader.gp
}

@test "run: cells with a record are not run again, unless --fresh" {
	gpemu_run w.yaml
	[ "$(wc -l <standin.log)" -eq 9 ]
	run --separate-stderr gpemu_run w.yaml
	[ "$status" -eq 0 ]
	[[ $stderr == *"8 of 8 cells have a record"* ]]
	[[ $output == *"27.50 (27.00-28.00)"* ]]
	[ "$(wc -l <standin.log)" -eq 9 ]
	gpemu_run --fresh w.yaml
	[ "$(wc -l <standin.log)" -eq 17 ]
}

@test "run: an edited workload runs only what changed" {
	gpemu_run w.yaml
	sed -i 's/\[sync, async\]/[sync, async, null]/' w.yaml
	gpemu_run w.yaml
	[ "$(grep -c '^null' standin.log)" -eq 4 ]
	[ "$(wc -l <standin.log)" -eq 13 ]
	sed -i 's/epochs: 2/epochs: 3/' w.yaml
	gpemu_run w.yaml
	[ "$(wc -l <standin.log)" -eq 25 ]
}

@test "run: a damaged record is run again" {
	gpemu_run w.yaml
	echo '{' >"$(ls -d results/small/records/lru-sync-r1-*)"
	gpemu_run w.yaml
	[ "$(wc -l <standin.log)" -eq 10 ]
}

@test "run: a failing cell is reported, the others run, the status says so" {
	FAIL_LOADER=async run --separate-stderr gpemu_run w.yaml
	[ "$status" -eq 1 ]
	[[ $stderr == *"cell lru-async-r1-"*"failed: gpemu-train: exit status 1 (gpemu-train: sample 3 is broken)"* ]]
	[[ $stderr == *"4 of 8 cells failed; logs are in results/small/logs"* ]]
	[[ $output == *"27.50 (27.00-28.00)"* ]]
	[[ $output == *"0, 2 failed"* ]]
	grep -q '"status": "failed"' results/small/records/lru-async-r1-*.json
	# the next run repeats the failed ones
	: >standin.log
	gpemu_run w.yaml
	[ "$(grep -c '^async' standin.log)" -eq 4 ]
	run ! grep '^sync' standin.log
}

@test "run: of a program that crashed its signal is reported, not its last line" {
	FAIL_LOADER=async CRASH='kill -SEGV $$' run gpemu_run -r 1 w.yaml
	[ "$status" -eq 1 ]
	[[ $output == *"failed: gpemu-train: killed by SIGSEGV (gpemu-train: sample 3 is broken)"* ]]
	grep -q Bottleneck results/small/logs/*
	cat >e.yaml <<-'END'
		name: e
		question: Who was it?
		dataset: {dataset: imagenette, files: 5}
		base: {exec: {command: "echo Bottleneck; kill -ABRT $$"}}
	END
	run gpemu_run e.yaml
	[[ $output == *"failed: /bin/sh: killed by SIGABRT"* ]]
	[[ $output != *"("*Bottleneck* ]]
}

@test "run: of a script its last line on stderr, or the error of ours that it started" {
	cat >e.yaml <<-'END'
		name: e
		question: Why?
		dataset: {dataset: imagenette, files: 5}
		base:
		  exec: {command: ["python3", "-c", "print('Bottleneck'); raise SystemError('no tape')"]}
	END
	run gpemu_run e.yaml
	[[ $output == *"failed: python3: exit status 1 (SystemError: no tape)"* ]]
	grep -q Bottleneck results/e/logs/*
	grep -q Traceback results/e/logs/*
	sed -i "s,command:.*,command: \"$bin/gpemu-train --data /none; echo gave up >\&2; exit 4\"}," e.yaml
	run gpemu_run e.yaml
	[[ $output == *"failed: /bin/sh: exit status 4 (gpemu-train: /none: No such file or directory)"* ]]
}

@test "run: a cell that hangs is ended after cell_timeout" {
	echo 'cell_timeout: 1s' >>w.yaml
	HANG_LOADER=async run --separate-stderr gpemu_run -r 1 w.yaml
	[ "$status" -eq 1 ]
	[[ $stderr == *"not finished after cell_timeout, 1s"* ]]
	[[ $output == *"27.00"* ]]
	run ! pgrep -f "$BATS_TEST_TMPDIR"
	nothing_left
}

# expects "VERDICT (KIND)" TEXT: that line of the verdict, and only once
expects()
{
	[ "$(grep -cFx -- "$1  $2" <<<"$output")" -eq 1 ] || {
		echo "$output"
		false
	}
}

@test "run: expectations are judged, and one that fails is exit status 1" {
	cat >>w.yaml <<-'END'
		kind: self
		expect:
		  - that: seconds[async] < seconds[sync]
		    kind: order
		  - that: seconds[sync] - seconds[async] == 10 +- 0.5
		    name: async saves ten seconds
		    where: {fs.cache_policy: lru}
		  - {falling: seconds, along: train.loader, kind: order}
		  - that: max(seconds[train.loader=*]) == 20 * train.epochs +- 50%
		published:
		  paper: {source: a paper, metric: seconds, along: train.loader,
		          values: {sync: 28, async: 17}, tolerance: 50%, rank: 1,
		          kind: prediction}
	END
	run --separate-stderr gpemu_run w.yaml
	[ "$status" -eq 0 ]
	# pairs of a seed differ by ten seconds, whatever the seed
	expects 'PASS (order)' 'seconds[async] < seconds[sync], lru: 17.50 < 27.50; 95 %: difference -10.00 to -10.00'
	expects 'PASS (order)' 'seconds[async] < seconds[sync], minio: 17.50 < 27.50; 95 %: difference -10.00 to -10.00'
	expects 'PASS (self)' 'async saves ten seconds, lru: 10.00 == 10.00 +- 0.500; 95 %: 10.00 to 10.00'
	expects 'PASS (order)' 'seconds falls along train.loader, lru: sync 27.50, async 17.50; 95 %: least step 10.00 to 10.00'
	expects 'REPRODUCED (prediction)' 'epoch time as published (paper), lru, sync: 27.50, published 28.00 +- 14.00; 95 %: 21.15 to 33.85'
	expects 'PASS (order)' "order of epoch time as published (paper), minio: Spearman's rho 1.000 >= 1, of 2 values; 95 %: 1.000 to 1.000"
	[[ $output == *"13 of 13 checks passed: self 3 of 3, prediction 4 of 4, order 6 of 6"* ]]
	# an edited expectation is judged without a new run
	: >standin.log
	sed -i 's/seconds\[async\] < /seconds[async] > /' w.yaml
	run --separate-stderr gpemu_run --json s.json w.yaml
	[ "$status" -eq 1 ]
	expects 'FAIL (order)' 'seconds[async] > seconds[sync], lru: 17.50 > 27.50; 95 %: difference -10.00 to -10.00'
	[[ $output == *"11 of 13 checks passed: self 3 of 3, prediction 4 of 4, order 4 of 6; 2 failed"* ]]
	[ ! -s standin.log ]
	[ "$(grep -c '"verdict": "fail"' s.json)" -eq 2 ]
	grep -q 'FAIL' results/small/table.txt
}

@test "run: a check that the repetitions do not decide is exit status 3" {
	cat >>w.yaml <<-'END'
		expect:
		  - {that: seconds < 30, where: {train.loader: sync}, kind: order}
		  - {that: seconds < 90, where: {train.loader: sync}, kind: order}
		published:
		  paper: {source: a paper, metric: seconds, along: train.loader,
		          values: {sync: 99}, where: {fs.cache_policy: lru},
		          tolerance: 5%, kind: prediction, reason: "typed, off"}
	END
	run --separate-stderr gpemu_run --json s.json w.yaml
	echo "$output"
	[ "$status" -eq 3 ]
	expects 'UNDECIDED (order)' 'seconds < 30, lru, sync: 27.50 < 30.00; 95 %: 21.15 to 33.85; about 3 repetitions would decide'
	expects 'NOT REPRODUCED (prediction)' 'epoch time as published (paper), lru, sync: 27.50, published 99.00 +- 4.950; 95 %: 21.15 to 33.85; typed, off'
	[[ $output == *"2 of 5 checks passed: prediction 0 of 1, order 2 of 4; 2 undecided, 1 not reproduced"* ]]
	grep -q '<td class="k">order</td>.*<span class="badge open">UNDECIDED</span><br><small>about 3' results/small/report.html
	grep -q '<td class="k">prediction</td>.*<span class="badge not">NOT REPRODUCED</span>' results/small/report.html
	python3 - <<-'END'
		import csv, json
		v = json.load(open("s.json"))["verdicts"]
		assert v[0]["verdict"] == "undecided" and v[0]["needed"] == 3, v[0]
		rows = list(csv.DictReader(open("results/small/verdicts.csv")))
		assert [r["verdict"] for r in rows] == [r["verdict"] for r in v], rows
		assert rows[-1]["kind"] == "prediction"
		assert rows[-1]["note"] == "typed, off", rows[-1]
		assert rows[0]["interval"] == "21.15 to 33.85", rows[0]
		assert abs(float(rows[0]["low"]) - 21.1469) < 1e-4, rows[0]
		assert abs(v[0]["high"] - 33.8531) < 1e-4, v[0]
	END
	# a single run has no interval, and is taken as it is
	run gpemu_run -r 1 w.yaml
	[ "$status" -eq 0 ]
	expects 'PASS (order)' 'seconds < 30, lru, sync: 27.00 < 30.00'
	[[ $output == *"5 of 5 checks have one repetition, and so no interval"* ]]
	# what fails says more than what is undecided
	sed -i 's/seconds < 90/seconds < 9/' w.yaml
	run gpemu_run w.yaml
	[ "$status" -eq 1 ]
}

@test "run: a check on a disturbed cell is undecided" {
	echo 'expect: [{that: "seconds < 90", kind: order}]' >>w.yaml
	gpemu_run w.yaml
	sed -i 's/"disturbed": false/"disturbed": true/' results/small/records/lru-async-r2-*.json
	run gpemu_run w.yaml
	[ "$status" -eq 3 ]
	expects 'UNDECIDED (order)' 'seconds < 90, lru, async: 17.50 < 90.00; 95 %: 11.15 to 23.85; other programs disturbed a run'
	[[ $output == *"3 of 4 checks passed: order 3 of 4; 1 undecided"* ]]
	# the tables of runs say which one
	gpemu_run export results/small >export.csv
	for table in results/small/results.csv export.csv; do
		python3 - $table <<-'END'
			import csv, sys
			rows = list(csv.DictReader(open(sys.argv[1])))
			assert {r["cell"][:13] for r in rows if r["disturbed"] == "true"} == {"lru-async-r2-"}, rows
			assert "false" in {r["disturbed"] for r in rows}
		END
	done
	# it alone runs again when asked for
	n=$(wc -l <standin.log)
	gpemu_run --again w.yaml
	[ "$(wc -l <standin.log)" -eq $((n + 1)) ]
}

@test "run: plots with long names and published values stay legible" {
	command -v gnuplot >/dev/null || skip "gnuplot is not installed"
	sed -i '/^plot:/,$d; /fs.cache_policy:/d; /train.loader:/d' w.yaml
	cat >>w.yaml <<-'END'
		plot: [{x: n, y: seconds, kind: bars}]
		published:
		  paper: {source: a paper, metric: seconds, along: n,
		          values: {"a name \"of `touch pwned`\" one": 20}}
	END
	sed -i 's/^axes:/&\n  n:\n    - {label: "a name \\"of `touch pwned`\\" one", train.loader: sync}\n    - {label: another one that is about as long as 90%, train.loader: async}/' w.yaml
	gpemu_run -r 1 w.yaml
	cd results/small/plots
	[ ! -e pwned ]
	grep -q '^set key below' seconds-by-n.gp
	grep -q '^set xtics scale 0 rotate by' seconds-by-n.gp
	for words in 'a name "of `touch pwned`" one' 'as long as 90%' \
		'paper, published'; do
		python3 - seconds-by-n.svg "$words" <<-'END'
			import html, re, sys
			text = html.unescape(re.sub("<[^>]*>", "", open(sys.argv[1]).read()))
			assert sys.argv[2] in " ".join(text.split()), text
		END
	done
}

@test "run: published series of a plot have points of their own" {
	sed -i '/^plot:/,$d' w.yaml
	cat >>w.yaml <<-'END'
		plot: [{x: train.loader, y: seconds, series: fs.cache_policy, kind: bars}]
		published:
	END
	for i in 1 2 3 4 5 6 7; do
		echo "  p$i: {source: a paper, metric: seconds, along: train.loader, where: {fs.cache_policy: lru}, values: {sync: 2$i}}"
	done >>w.yaml
	gpemu_run -r 1 w.yaml
	gp=results/small/plots/seconds-by-train_loader.gp
	[ "$(grep -c "'p.*published'" "$gp")" -eq 7 ]
	[ "$(grep "'p.*published'" "$gp" | grep -o ' pt [0-9]*' | sort -u | wc -l)" -eq 7 ]
}

@test "run: the legend of a plot names its series" {
	gpemu_run -r 1 w.yaml
	gp=results/small/plots/seconds-by-train_loader.gp
	grep -q "^set key .* title 'fs.cache_policy' left$" "$gp"
	sed -i 's/kind: bars}/kind: bars, series_label: "the policy"}/' w.yaml
	gpemu_run -r 1 w.yaml
	grep -q "^set key .* title 'the policy' left$" "$gp"
}

@test "run: a derived metric, in each repetition" {
	cat >>w.yaml <<-'END'
		metrics:
		  gain: {of: "seconds[sync] - seconds", unit: s}
		  saved: {of: "gain / seconds[sync] / train.epochs", scale: 100}
		columns: [seconds, gain, saved]
		expect:
		  - {that: "gain == 10 +- 0.001", where: {train.loader: async}, kind: self}
		  - {falling: saved, along: train.loader, of: [async, sync], kind: order}
		published:
		  paper: {source: a paper, metric: saved, along: train.loader,
		          values: {async: 18.2}, tolerance: 50%, kind: prediction}
	END
	run --separate-stderr gpemu_run w.yaml
	[ "$status" -eq 0 ]
	expects 'PASS (self)' 'gain == 10 +- 0.001, lru, async: 10.00 == 10.00 +- 0.00100; 95 %: 10.00 to 10.00'
	[[ $output == *"6 of 6 checks passed"* ]]
	python3 - <<-'END'
		import csv
		rows = list(csv.DictReader(open("results/small/results.csv")))
		got = {(r["train.loader"], r["seed"]): float(r["saved"]) for r in rows}
		assert abs(got["async", "7"] - 100 * 10 / 27 / 2) < 1e-6, got
		assert abs(got["async", "8"] - 100 * 10 / 28 / 2) < 1e-6, got
		assert got["sync", "8"] == 0, got
	END
	FAIL_LOADER=sync run gpemu_run --fresh -o failed w.yaml
	[ "$status" -eq 1 ]
	expects 'UNDECIDED (self)' 'gain == 10 +- 0.001, lru, async: no value of gain'
}

@test "run: an expectation on a cell that failed is undecided" {
	echo 'expect: [{that: "seconds[async] < seconds[sync]", kind: order}]' >>w.yaml
	FAIL_LOADER=async run --separate-stderr gpemu_run w.yaml
	[ "$status" -eq 1 ]
	expects 'UNDECIDED (order)' 'seconds[async] < seconds[sync], lru: no value of seconds'
}

@test "run: the summary as JSON" {
	gpemu_run --json - w.yaml >summary.json
	python3 - <<-'END'
		import json
		s = json.load(open("summary.json"))
		assert s["workload"] == "small" and s["mounted"] is False
		c = [c for c in s["cells"] if c["axes"] ==
		     {"fs.cache_policy": "minio", "train.loader": "async"}][0]
		assert c["n"] == 2 and c["failed"] == 0
		m = c["metrics"]
		assert m["seconds"]["median"] == 17.5 and m["seconds"]["n"] == 2
		assert m["hit_ratio"] is None
		assert s == json.load(open("results/small/summary.json"))
	END
}

@test "run: --dry-run prints the commands and runs nothing" {
	run gpemu_run --dry-run w.yaml
	[ "$status" -eq 0 ]
	[[ $output == *"4 points, 2 repetitions, 8 cells"* ]]
	[ "$(grep -c 'gpemu-train --config results/small/configs/' <<<"$output")" -eq 8 ]
	[[ $output == *"train: epochs=2 loader=async"* ]]
	[ ! -s standin.log ]
	[ ! -e results ]
	[ -z "$(ls cache/gpemu)" ]
}

@test "run: --repetitions, --seed and --time-scale override the workload" {
	gpemu_run -r 1 --seed 3 --time-scale 0.25 w.yaml
	[ "$(grep -c 'sync 3 0.25' standin.log)" -eq 4 ]
	[ "$(wc -l <standin.log)" -eq 5 ]
}

@test "run: the dataset is made once, completely or not at all" {
	gpemu_run -r 1 w.yaml
	[ "$(cat cache/gpemu/imagenette-????????????????/a)" = 1 ]
	gpemu_run -r 1 -o other w.yaml
	[ "$(grep -c made standin.log)" -eq 1 ]
	sed -i 's/files: 5/files: 6/' w.yaml
	FAIL_DATA=1 run gpemu_run -r 1 w.yaml
	[ "$status" -eq 1 ]
	[[ $output == *"gpemu-data make"*"exit status 1"* ]]
	[ "$(ls -d cache/gpemu/*/ | wc -l)" -eq 1 ]
}

@test "run: an existing dataset, relative to the workload file" {
	mkdir -p deep/photos
	sed 's/^dataset:.*/dataset: {dir: photos}/' w.yaml >deep/w.yaml
	gpemu_run -r 1 deep/w.yaml
	run ! grep made standin.log
	sed -i 's/photos/nowhere/' deep/w.yaml
	run gpemu_run deep/w.yaml
	[ "$status" -eq 1 ]
	[[ $output == *"deep/w.yaml:3:16: no folder deep/nowhere"* ]]
}

refuses()
{
	run gpemu_run w.yaml
	[ "$status" -eq 1 ]
	[[ $output == "gpemu-run: $1"* ]]
	[ "${#lines[@]}" -eq 1 ]
	[ ! -s standin.log ]
	[ ! -e results ]
}

@test "run: an error is reported with its position before anything runs" {
	good=$(cat w.yaml)
	sed -i 's/^seed:/sede:/' w.yaml
	refuses "w.yaml:12:1: unknown key 'sede'"
	echo "${good/storage:/storrage:}" >w.yaml
	refuses "w.yaml:5:8: gpemu-fs: unknown key 'storrage'"
	echo "${good/fs.cache_policy: \[lru, minio\]/fs.cache_size: [20%, lots]}" |
		sed 's/series: fs.cache_policy/series: fs.cache_size/' >w.yaml
	refuses "w.yaml:8:24: gpemu-fs: cache_size: 'lots' is not a size"
	echo "${good/files: 5/flies: 5}" >w.yaml
	refuses "w.yaml:3:32: gpemu-data: unknown key 'flies'"
	echo "${good/y: seconds/y: minutes}" >w.yaml
	refuses "w.yaml:16:26: no metric 'minutes'"
	rm w.yaml
	refuses "w.yaml: No such file"
}

@test "run: check says what would run and how long, and runs nothing" {
	sed -i 's/dataset: imagenette/dataset: imagenet/; s/async\]/async]\n  node: {zip: {train.workers: [1, 2], train.epochs: [3, 4]}}/' w.yaml
	sed -i 's/^plot:/expect: [{that: "seconds > 1", kind: order}]\nwarmup: 1\nplot:/' w.yaml
	sed -i 's/kind: bars/kind: bars, where: {node: 1\/3}/' w.yaml
	run --separate-stderr gpemu_run check w.yaml
	echo "$output$stderr"
	[ "$status" -eq 0 ]
	[[ $output == *"imagenet-"*" (will be made)"* ]]
	[[ $output == *"axis        node: 1/3 2/4"* ]]
	[[ $output == *"8 points x 2 repetitions = 16, 8 warm-ups, time scale 0.5"* ]]
	[[ $output == *"expects     seconds > 1 (order)"* ]]
	[[ $output == *"0 of 16 cells have one"* ]]
	[[ $output == *"first       lru, sync, 1/3, repetition 1, seed 7"* ]]
	[[ $output == *"and 8 more"* ]]
	[ ! -s standin.log ]
	[ ! -e results ]
	gpemu_run w.yaml
	run gpemu_run check w.yaml
	[[ $output == *"nothing to run"* ]]
	run gpemu_run check -r 3 w.yaml
	[[ $output == *"8 cells, 8 of them from earlier runs"* ]]
	run gpemu_run check
	[ "$status" -eq 2 ]
}

@test "run: zipped values go together, warm-ups leave no record" {
	sed -i '/fs.cache_policy/d; s/train.loader:.*/n: {zip: {train.loader: [sync, async], train.workers: [1, 2]}}/; /^plot/,$d' w.yaml
	echo 'warmup: 2' >>w.yaml
	gpemu_run w.yaml
	[ "$(ls results/small/records | wc -l)" -eq 4 ]
	# 2 points: 2 warm-ups and 2 repetitions each; and the dataset
	[ "$(wc -l <standin.log)" -eq 9 ]
	grep -q '"loader": "async"' results/small/configs/async_2-r1-*
	grep -q '"workers": "2"' results/small/configs/async_2-r1-*
	run ! grep -l '"workers": "1"' results/small/configs/async_2-*
}

@test "run: the order is shuffled within each repetition, by the seed" {
	sed -i 's/order: .*/order: random/; s/\[sync, async\]/[a, b, c, d, e]/' w.yaml
	gpemu_run w.yaml
	grep -v made standin.log >one
	gpemu_run --fresh -o again w.yaml
	grep -v made standin.log | tail -n 20 >two
	cmp one two
	# all of the first repetition before the second
	[ "$(head -n 10 one | grep -c ' 7 ')" -eq 10 ]
	# and not as listed
	[ "$(cut -d' ' -f1 one | head -n 10 | tr -d '\n')" != abcdeabcde ]
	sed -i 's/order: .*/order: listed/' w.yaml
	gpemu_run --fresh -o listed w.yaml
	[ "$(tail -n 20 standin.log | head -n 2 | tr '\n' ' ')" = "a 7 0.5 a 8 0.5 " ]
}

@test "run: an axis may choose the dataset" {
	sed -i 's/fs.cache_policy: .*/dataset.files: [5, 7]/; /^plot/,$d' w.yaml
	gpemu_run -r 1 w.yaml
	[ "$(grep -c made standin.log)" -eq 2 ]
	[ "$(ls -d cache/gpemu/*/ | wc -l)" -eq 2 ]
}

@test "run: a changed profile runs again" {
	mkdir -p db/storage
	export GPEMU_PROFILES=$PWD/db
	printf 'name: x\nsource: a test\n' >db/storage/hdd.yaml
	sed -i 's/^base:/base:\n  environment: {A: b}/' w.yaml
	need_root
	"$bin/gpemu-run" -r 1 w.yaml
	grep -q '"storage/hdd"' results/small/records/lru-sync-r1-*.json
	: >standin.log
	"$bin/gpemu-run" -r 1 w.yaml
	[ ! -s standin.log ]
	printf 'name: x\nsource: another\n' >db/storage/hdd.yaml
	"$bin/gpemu-run" -r 1 w.yaml
	[ "$(wc -l <standin.log)" -eq 4 ]
}

@test "run: whatever option names a profile, the programs say" {
	export GPEMU_PROFILES=$PWD/db
	need_root
	mkdir -p db/storage db/node
	printf 'name: x\nsource: a test\n' >db/storage/hdd.yaml
	cp "$BATS_TEST_DIRNAME/../../profiles/node/2xp100.yaml" db/node/card.yaml
	sed -i 's/storage: hdd/storage: hdd, nic: card/' w.yaml
	"$bin/gpemu-run" -r 1 w.yaml
	grep -q '"node/card"' results/small/records/lru-sync-r1-*.json
	: >standin.log
	echo '# another' >>db/node/card.yaml
	"$bin/gpemu-run" -r 1 w.yaml
	[ "$(wc -l <standin.log)" -eq 4 ]
}

@test "programs say which of their options name a profile" {
	PATH=$bin:$PATH
	diff - <(gpemu-fs --list profiles) <<<$'storage: storage\nnic: node'
	diff - <(gpemu-prepd worker --list profiles) <<<'nic: node'
	gpemu-train --list profiles | grep -x 'prep_gpu: prep'
	gpemu-gpud --list profiles | grep -x 'slicing: share'
}

@test "run: a program that does not say which profiles it takes is refused" {
	local standins=$GPEMU_BIN

	cp -r "$standins" own
	export GPEMU_BIN=$PWD/own
	says() # COMMAND MESSAGE: the stand-in does COMMAND for --list
	{
		sed "s|--list) .*|--list) $1 ;;|" "$standins/gpemu-fs" >own/gpemu-fs
		run -1 gpemu_run -r 1 w.yaml
		echo "$output"
		[[ $output == *"gpemu-fs --list profiles: "$2 ]]
	}
	says "echo \"gpemu-fs: unknown kind 'profiles'\" >\&2; exit 2" \
		"unknown kind 'profiles'"
	says 'exit 1' 'rejected without a message'
	says "echo 'nic: [card]'; exit" 'nic: not the name of a kind'
	says "echo 'nic: card'; exit" "nic: unknown kind 'card'*"
}

exec_workload()
{
	cat >w.yaml <<-'END'
		name: small
		question: Does a program run?
		dataset: {dataset: imagenette, files: 5}
		base:
		  exec:
		    command: [sh, -c, 'test -d "$1" -a -x "$BIN/gpemu-train" -a "$SHARE" = "$BIN/../share/gpemu" || exit 9; echo "{\"n\": $3, \"env\": $EXTRA}" >"$2"; exit $4',
		              x, '{mount}', '{record}', '{seed}', '{status}']
		    status: 0
		  environment: {EXTRA: '{workers}', BIN: '{bin}', SHARE: '{share}'}
		axes: {exec.workers: [3, 4]}
		metrics: {n: {path: n}, env: {path: env}}
		noise: 100%
		seed: 7
	END
}

@test "run: exec runs a program, with its variables, environment and record" {
	exec_workload
	gpemu_run w.yaml
	python3 - <<-'END'
		import csv, json, glob
		rows = list(csv.DictReader(open("results/small/results.csv")))
		assert [(r["exec.workers"], r["n"], r["env"]) for r in rows] == \
		    [("3", "7", "3"), ("4", "7", "4")], rows
		assert all(0 < float(r["wall_seconds"]) < 60 for r in rows)
		r = json.load(open(glob.glob("results/small/records/3-r1-*")[0]))
		assert r["run"]["exit_status"] == 0 and r["host"]["cpus"] >= 1
		assert r["cell"]["jobs"]["train"]["exec"]["status"] == "0"
	END
	run ! grep '^sync\|^async' standin.log
	sed -i 's/status: 0/status: 3/' w.yaml
	run gpemu_run w.yaml
	[ "$status" -eq 1 ]
	[[ $output == *"failed: sh: exit status 3"* ]]
	sed -i 's/{status}/{statos}/' w.yaml
	rm -r results
	: >standin.log
	refuses "w.yaml:7:51: {statos} is none of {mount} {record} {bin} {share} {seed} {time_scale} {gpud} {prepd} {prepd_key}, the keys of exec, and the axes"
}

@test "run: several jobs run at once in a cell" {
	cat >w.yaml <<-'END'
		name: small
		question: Do two jobs run at once?
		dataset: {dataset: imagenette, files: 5}
		base: {exec: {command: 'touch $DIR/$ME; until [ -e $DIR/$OTHER ]; do sleep .05; done'}}
		jobs:
		  one: {environment: {ME: a, OTHER: b}}
		  two: {start: 200ms, environment: {ME: b, OTHER: a}}
		  three: {exec: {command: [gpemu-none]}}
		axes: {three.exec.command: [['true'], [sh, -c, 'exit 4']]}
		metrics:
		  one: {path: jobs.one.run.wall_seconds}
		  both: {path: jobs.one.run.wall_seconds + jobs.two.run.wall_seconds}
		cell_timeout: 30s
		noise: 100%
		order: interleaved
	END
	sed -i "s,ME:,DIR: $PWD\, ME:," w.yaml
	run gpemu_run w.yaml
	[[ $output == *"w.yaml:9:29: a point is a value"* ]]
	sed -i 's/^axes:.*/axes: {c: [{label: good, three.exec.command: ["true"]}, {label: bad, three.exec.command: "exit 4"}]}/' w.yaml
	run --separate-stderr gpemu_run w.yaml
	[ "$status" -eq 1 ]
	[[ $stderr == *"cell bad-r1-"*" failed: /bin/sh: exit status 4"* ]]
	python3 - <<-'END'
		import json, glob
		r = json.load(open(glob.glob("results/small/records/good-*")[0]))
		j = r["jobs"]
		assert sorted(j) == ["one", "three", "two"]
		assert j["one"]["run"]["wall_seconds"] > 0.19
		assert r["cell"]["jobs"]["two"]["start_s"] == 0.2
	END
	run ! pgrep -f "$BATS_TEST_TMPDIR"
	nothing_left
	sed -i 's/^  two: {/  two: {mount: b, /' w.yaml
	run gpemu_run w.yaml
	[[ $output == *"w.yaml:7:16: no mount 'b'"* ]]
}

@test "run: a check on a metric that no run has is undecided and has no column" {
	sed -i 's/^plot:/kind: order\nexpect: [{that: cost < 1}, {falling: energy, along: train.loader}]\n&/' w.yaml
	sed -i 's/^repetitions.*/metrics: {double: {of: 2 * cost}}/' w.yaml
	run --separate-stderr gpemu_run w.yaml
	[ "$status" -eq 3 ]
	[[ $output == *"UNDECIDED (order)  cost < 1, lru, sync: no value of cost"* ]]
	[[ ${lines[1]} == *"throughput"*"double"* ]]
	[[ ${lines[1]} != *cost* ]]
	printf '%s\n' "jobs: {one: {}, two: {}}" >>w.yaml
	run --separate-stderr gpemu_run w.yaml
	[[ ${lines[1]} == *"hit ratio"*"double"* ]]
	[[ ${lines[1]} != *throughput* ]]
}

@test "run: with several jobs, the message of the failed one is reported" {
	cat >w.yaml <<-'END'
		name: small
		question: Which one failed?
		dataset: {dataset: imagenette, files: 5}
		jobs:
		  fails: {exec: {command: "until [ -e DIR/trap ]; do sleep .05; done; echo no tape >&2; exit 4"}}
		  goes-on: {exec: {command: "trap 'echo rewound; exit' TERM; touch DIR/trap; sleep 20 & wait"}}
		noise: 100%
	END
	sed -i "s,DIR,$PWD,g" w.yaml
	run --separate-stderr gpemu_run w.yaml
	[ "$status" -eq 1 ]
	[[ $stderr == *"failed: /bin/sh: exit status 4 (no tape)"* ]]
	grep rewound results/small/logs/*
}

@test "run: a cell beside a core busy one second in five runs again, and is disturbed" {
	[ -r /proc/self/schedstat ] || skip "the kernel does not report waits for a CPU"
	exec_workload
	sed -i '/^axes/d; s/workers/seed/; /^noise/d; /{mount}/d' w.yaml
	sed -i "s,command: .*,command: 'echo run >>$PWD/runs; timeout 2.5 sh -c \"while :; do :; done\" || true'," w.yaml
	# all on one CPU, so that they meet
	taskset -cp "$(taskset -cp $$ | sed 's/.*[ ,-]//')" $BASHPID
	busy "$PWD/runs" &
	load=$!
	run --separate-stderr gpemu_run w.yaml
	kill $load
	[ "$status" -eq 0 ]
	echo "$stderr"
	[[ $stderr == *"other load disturbed 1 of 1 cells"* ]]
	[[ $stderr == *"other programs took up to "*" s of "*"used "*" % of the CPUs"* ]]
	[[ $output == *"WARN  disturbed by other load, cpu: 1 of 1 runs"* ]]
	[ "$(wc -l <runs)" -ge 2 ]
	python3 - <<-'END'
		import json, glob
		r = json.load(open(glob.glob("results/small/records/*")[0]))
		c, w = r["cell"], r["host"]["watch"]
		assert c["attempts"] >= 2 and c["disturbed"] is True, c
		assert [s["sign"] for s in c["disturbance"]] == ["cpu"], c
		assert w["cpus"] == 1 and w["windows"] >= 2, w
		assert .05 < w["taken_share"] <= 1, w
	END
	grep -q 'disturbed by other load' results/small/report.html
}

@test "run: results.csv has one line per run, failed or not" {
	FAIL_LOADER=async run gpemu_run w.yaml
	python3 - <<-'END'
		import csv
		rows = list(csv.DictReader(open("results/small/results.csv")))
		assert len(rows) == 8
		bad = [r for r in rows if r["train.loader"] == "async"]
		assert all(r["status"] == "failed" and r["seconds"] == "" for r in bad)
		good = [r for r in rows if r["status"] == "ok"]
		assert sorted(float(r["seconds"]) for r in good) == [27, 27, 28, 28]
		assert {r["seed"] for r in good} == {"7", "8"}
	END
}

# valid FILE: every element is closed, no id occurs twice, and no URL is fetched
valid_html()
{
	python3 - "$1" <<-'END'
		import sys
		from html.parser import HTMLParser
		VOID = {"meta", "link", "br", "img", "hr", "input"}
		class P(HTMLParser):
		    stack, ids = [], set()
		    def handle_starttag(self, tag, attrs):
		        for k, v in attrs:
		            if k == "id":
		                assert v not in self.ids, v
		                self.ids.add(v)
		            if k in ("src", "href", "xlink:href"):
		                assert v.startswith(("#", "data:")), v
		        assert tag not in ("script", "iframe", "object"), tag
		        if tag not in VOID:
		            self.stack.append(tag)
		    def handle_startendtag(self, tag, attrs):
		        self.handle_starttag(tag, attrs)
		        if tag not in VOID:
		            self.stack.pop()
		    def handle_endtag(self, tag):
		        assert self.stack.pop() == tag, (tag, self.getpos())
		text = open(sys.argv[1], encoding="utf-8").read()
		p = P()
		p.feed(text)
		p.close()
		assert text.startswith("<!DOCTYPE html>") and not p.stack, p.stack
		assert "url(http" not in text and "@import" not in text
	END
}

@test "run: the report is one valid, self-contained page" {
	sed -i 's/^question:.*/question: Is "async" < sync \& faster?/' w.yaml
	printf '  - {x: fs.cache_policy, y: au, series: train.loader}\nkind: order\nexpect:\n- that: seconds[async] < seconds[sync]\n' >>w.yaml
	gpemu_run w.yaml
	valid_html results/small/report.html
	for wanted in 'Is &quot;async&quot; &lt; sync &amp; faster' \
		'2 of 2 checks passed' '<h2>Where the time went' \
		'title="all-reduce: ' 'title="waits for the slowest GPU: ' 'title="checkpoints: ' \
		'Commands of one run' 'The workload file'; do
		grep -qF "$wanted" results/small/report.html
	done
	! command -v gnuplot || [ "$(grep -c '<svg role' results/small/report.html)" -eq 2 ]
}

@test "run: the report in a browser, at the width of a desk and of a phone" {
	command -v chromium >/dev/null || skip "chromium is not installed"
	printf '%s\n' "expect: [{falling: seconds, along: train.loader, kind: order}]" >>w.yaml
	gpemu_run w.yaml
	printf '<!DOCTYPE html><title>x</title><iframe id=f style="border:0;width:%spx;height:900px" src="file://%s"></iframe><script>onload=()=>{const d=document.getElementById("f").contentDocument.documentElement;const v=d.querySelector(".found").closest(".wide");document.title="fits "+[d,v].every(e=>e.scrollWidth<=e.clientWidth)}</script>' \
		390 "$PWD/results/small/report.html" >phone.html
	# a page wider than the window would scroll sideways, and cut verdicts
	chrome=(timeout 60 chromium --headless --no-sandbox --disable-gpu
		--user-data-dir="$PWD/profile" --allow-file-access-from-files
		--enable-logging=stderr)
	"${chrome[@]}" --dump-dom "file://$PWD/phone.html" >dom 2>err
	grep -q '<title>fits true</title>' dom
	"${chrome[@]}" --dump-dom "file://$PWD/results/small/report.html" \
		>dom 2>>err
	grep -q '<h1>Is async faster' dom
	run ! grep 'CONSOLE' err
}

@test "run: the rules of MLPerf Storage are reported" {
	sed -i 's/dataset: imagenette, files: 5/dataset: imagenet, files: 320/' w.yaml
	echo 'rules: {au: 60%}' >>w.yaml
	cp -r "$GPEMU_BIN" bin
	cat >bin/gpemu-train <<-'END'
		#!/bin/sh
		while [ $# -gt 0 ]; do
			case $1 in
			--dump-config) exit ;;
			--json) to=$2 ;;
			esac
			shift
		done
		echo '{"epochs": [{"steps": 700, "au": 0.5}, {"steps": 600, "au": 0.8}],
		 "dataset": {"bytes": 1e18},
		 "config": {"direct": true}}' >"$to"
	END
	GPEMU_BIN=$PWD/bin run gpemu_run -r 1 w.yaml
	[ "$status" -eq 0 ]
	[[ $output == *"ok    MLPerf Storage, rule dataset-size: "*"e+"*" times"* ]]
	[[ $output == *"ok    MLPerf Storage, rule cold-cache: cold"* ]]
	[[ $output == *"ok    MLPerf Storage, rule steps-per-epoch: 600 steps"* ]]
	[[ $output == *"WARN  MLPerf Storage, rule au: down to 50 %, wanted 60 % (4 of 8)"* ]]
	[[ $output == *"AU enough"*"runs"*">= 60 %"* ]]
	[[ $output =~ " yes"\ +1 ]]
	grep -q 'AU enough<small>&ge; 60 %' results/small/report.html
	grep -q '<h2>Rules of MLPerf Storage' results/small/report.html
	grep -q '"rule": "au"' results/small/summary.json
	sed -i 's/au: 60%/au: 81%/' w.yaml
	GPEMU_BIN=$PWD/bin run gpemu_run -r 1 w.yaml
	[[ $output =~ " no"\ +1 ]]
	sed -i 's/au: 81%/au: 60M/' w.yaml
	run gpemu_run w.yaml
	[[ $output == *"w.yaml:"*": au is a share: 90%"* ]]
}

@test "run: an unknown option is a usage error" {
	run gpemu_run --policies lru w.yaml
	[ "$status" -eq 2 ]
	run gpemu_run
	[ "$status" -eq 2 ]
}

# Starts gpemu-run in the background and waits until a loader hangs.
start_hanging()
{
	HANG_LOADER=async "$bin/gpemu-run" -r 1 "$@" w.yaml >out 2>&1 3>&- &
	pid=$!
	for _ in $(seq 100); do
		[ -e standin.log.hangs ] && return
		sleep 0.1
	done
	false
}

@test "run: SIGINT and SIGTERM leave no process and no file behind" {
	for signal in INT TERM; do
		rm -f standin.log.hangs
		# bash starts background jobs with SIGINT ignored; gpemu-run
		# handles it nevertheless
		start_hanging --no-mount
		kill -$signal $pid
		wait $pid && false
		[ $? -eq $((128 + $(kill -l $signal))) ]
		grep -q "stopped by" out
		nothing_left
		run ! pgrep -f "$BATS_TEST_TMPDIR"
	done
}

@test "run: each cell has a fresh mount, and nothing stays mounted" {
	need_root
	"$bin/gpemu-run" -r 1 w.yaml >out
	run ! grep 'Not mounted' out
	grep -q '"mounted": true' results/small/records/lru-sync-r1-*.json
	grep -q 'gpemu-fs"' results/small/records/lru-sync-r1-*.json
	nothing_left
}

@test "run: an interrupted run leaves nothing mounted" {
	need_root
	start_hanging
	grep -F " $TMPDIR/" /proc/mounts
	kill -TERM $pid
	wait $pid && false
	nothing_left
	run ! pgrep -f "$BATS_TEST_TMPDIR"
	# finished cells are kept
	[ "$(ls results/small/records | wc -l)" -eq 1 ]
}

@test "run: a cell whose loader fails is unmounted" {
	need_root
	FAIL_LOADER=sync run "$bin/gpemu-run" -r 1 w.yaml
	[ "$status" -eq 1 ]
	nothing_left
}

@test "run: without mounts it warns and continues" {
	need_root
	sed -i "/fs.cache_policy: /d; s/, series: fs.cache_policy//" w.yaml
	FAIL_MOUNT="cannot mount" run --separate-stderr "$bin/gpemu-run" w.yaml
	[ "$status" -eq 0 ]
	[ "$(grep -c 'cannot mount' <<<"$stderr")" -eq 1 ]
	[[ $stderr == *"the cells run on the plain folder"* ]]
}

@test "run: independent cells run concurrently" {
	exec_workload
	sed -i 's/exec.workers: .*/exec.workers: [1, 2, 3, 4, 5, 6]}/' w.yaml
	# each waits until another one is there
	cat >wait.sh <<-'END'
		mkdir "$PWD/here.$1"
		for i in $(seq 200); do
			[ "$(ls -d "$PWD"/here.* | wc -l)" -gt 1 ] && break
			sleep .05
		done
		[ "$(ls -d "$PWD"/here.* | wc -l)" -gt 1 ] || exit 4
		echo "{\"n\": $1, \"env\": 0}" >"$2"
	END
	sed -i "s,command: .*,command: ['sh'\, '$PWD/wait.sh'\, '{workers}'\, '{record}'],; /x, '{mount}'/d" w.yaml
	run gpemu_run --jobs 3 w.yaml
	[ "$status" -eq 1 ]
	[[ $output == *"--jobs: the cells of w.yaml would disturb each other's times"* ]]
	echo 'independent: true' >>w.yaml
	run gpemu_run --jobs 3 w.yaml
	echo "$output"
	[ "$status" -eq 0 ]
	[ "$(ls results/small/records | wc -l)" -eq 6 ]
	[[ $output == *"cell 6 of 6"* ]]
	# a failure in a worker is reported, the rest is kept
	rm -r here.* results
	sed -i 's/command: .*/command: "test {workers} != 2"/' w.yaml
	run gpemu_run --jobs 3 w.yaml
	[ "$status" -eq 1 ]
	[[ $output == *"1 of 6 cells failed"* ]]
	# a signal ends the workers and what they run
	rm -r results
	sed -i "s,command: .*,command: 'echo \$\$ >>$PWD/pids; exec sleep 60'," w.yaml
	"$bin/gpemu-run" --no-mount --jobs 3 w.yaml >out 2>&1 3>&- &
	pid=$!
	for i in $(seq 200); do
		[ "$(cat pids 2>/dev/null | wc -l)" -eq 3 ] && break
		sleep .05
	done
	kill -TERM $pid
	status=0
	wait $pid || status=$?
	[ "$status" -eq 143 ]
	for p in $(cat pids); do run ! kill -0 "$p"; done
}

@test "run: an axis of the mount is refused where nothing can be mounted" {
	need_root
	FAIL_MOUNT="cannot mount" run "$bin/gpemu-run" w.yaml
	[ "$status" -eq 75 ]
	[[ $output == *"cannot mount here ("*"the axis fs.cache_policy varies the mount"*"--no-mount"* ]]
	[ -z "$(ls results/small/records)" ]
	"$bin/gpemu-run" --no-mount w.yaml
	# as without /dev/fuse itself
	unshare -m true 2>/dev/null || skip "no permission to make a mount name space"
	[ -e /dev/fuse ] || skip "no /dev/fuse to hide"
	run unshare -m --propagation private sh -c '
		touch null && mount --bind /dev/null null &&
		mount -t tmpfs none /dev && touch /dev/null &&
		mount --bind null /dev/null && exec "$0" --fresh w.yaml' \
		"$bin/gpemu-run"
	echo "$output"
	[ "$status" -eq 75 ]
	[[ $output == *"cannot mount here (/dev/fuse: No such file"*"the axis fs.cache_policy"* ]]
}
