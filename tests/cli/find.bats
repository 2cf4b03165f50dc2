# SPDX-License-Identifier: MIT
# gpemu-run --find-max-gpus on a stand-in whose storage feeds a given number of
# GPUs.
bats_require_minimum_version 1.5.0
load standins

setup()
{
	standins_setup
	mkdir data bin
	cp "$GPEMU_BIN"/* bin
	cat >bin/gpemu-train <<-'END'
		#!/bin/bash
		declare -A o
		while [ $# -gt 0 ]; do
			case $1 in
			--dump-config) exit ;;
			--*) o[$1]=$2; shift ;;
			esac
			shift
		done
		config=${o[--config]}
		value() { sed -n "s/^  \"$1\": \"\(.*\)\".*/\1/p" "$config"; }
		gpus=$(value gpus) feeds=$(value workers)
		echo "$feeds $gpus ${o[--seed]}" >>"$STANDIN_LOG"
		[ "$gpus" != "${FAIL_GPUS-}" ] || { echo gpemu-train: too many >&2; exit 1; }
		[ -z "${WORK-}" ] || exec python3 "$WORK" "${o[--json]}"
		share=$(awk "BEGIN { x = $feeds / $gpus; print x < 1 ? x : 1 }")
		cat >"${o[--json]}" <<-JSON
			{"config": {}, "epochs": [{"seconds": 1, "au": $share,
			 "steps": ${STEPS-50}, "samples_per_s": $gpus}]}
		JSON
	END
	GPEMU_BIN=$PWD/bin
	cat >w.yaml <<-'END'
		name: feed
		question: How many?
		dataset: {dir: data}
		base: {train: {loader: async}}
		axes:
		  train.workers: [3, 11]
		seed: 5
		noise: 100%
	END
}

find_max()
{
	gpemu_run --find-max-gpus "$@" w.yaml
}

@test "find: the boundary at each point, its record, table, page and plot" {
	run --separate-stderr find_max
	[ "$status" -eq 0 ]
	python3 - <<-'END'
		import json
		f = json.load(open("results/feed/find-max.json"))
		a, b = f["points"]
		assert f["au"] == 0.9 and a["axes"] == {"train.workers": "3"}
		# 3/3 is 100 %, 3/4 75 %; 11/12 is 92 %, 11/13 85 %
		assert a["max_gpus"] == 3 and a["au"] == 100 and a["au_above"] == 75
		assert b["max_gpus"] == 12 and round(b["au"]) == 92
		assert b["samples_per_s"] == 12
		assert [x["gpus"] for x in b["by_gpus"]] == [1, 2, 4, 8, 12, 13, 14, 16]
		assert [x["n"] for x in b["by_gpus"]] == [1, 1, 1, 1, 3, 3, 1, 1]
	END
	# three seeds at the boundary, one elsewhere
	[ "$(grep -c '^11 12 ' standin.log)" -eq 3 ]
	grep -q '^11 12 7$' standin.log
	[ "$(grep -c '^11 8 ' standin.log)" -eq 1 ]
	[[ $output == *"11 "*" 12 "*"91.67 "*"84.62"* ]]
	[[ $stderr == *"find-max  11: 8 GPUs, run 1: AU 100.0 %"* ]]
	grep -q '<h1>How many GPUs does this storage keep at 90 %' results/feed/find-max.html
	! command -v gnuplot || grep -q '<svg role' results/feed/find-max.html
	[ -z "$(ls "$TMPDIR")" ]
	# runs of an earlier search are not repeated
	: >standin.log
	find_max
	[ ! -s standin.log ]
	find_max --au 0.5
	run ! grep '^11 8 ' standin.log
	grep -q '"max_gpus": 22' results/feed/find-max.json
}

@test "find: too few steps or no AU is an error, not a number" {
	STEPS=2 run --separate-stderr find_max
	[ "$status" -eq 1 ]
	[[ $stderr == *"with 1 GPUs an epoch has 2 steps: the dataset or max_steps"* ]]
	grep -q '"max_gpus": null' results/feed/find-max.json
	rm -r results
	# a point whose runs fail does not stop the other
	sed -i 's/\[3, 11\]/[11, 3]/' w.yaml
	FAIL_GPUS=16 run --separate-stderr find_max
	[ "$status" -eq 1 ]
	[[ $stderr == *"11: gpemu-train: exit status 1"*"too many"* ]]
	grep -q '"max_gpus": 3' results/feed/find-max.json
	# an unreachable value
	sed -i 's/\[11, 3\]/[1000]/' w.yaml
	find_max
	grep -q '"max_gpus": 64' results/feed/find-max.json
}

@test "find: a workload that sets the number of GPUs is refused" {
	sed -i 's/loader: async/gpus: 2/' w.yaml
	run find_max
	[ "$status" -eq 1 ]
	[[ $output == *"w.yaml:4:22: --find-max-gpus sets train.gpus"* ]]
	sed -i 's/gpus: 2/epochs: 1/; s/train.workers/train.gpus/' w.yaml
	run find_max
	[[ $output == *"w.yaml:6:"*"--find-max-gpus sets train.gpus"* ]]
	[ ! -e results ]
	run find_max --au 2
	[ "$status" -eq 2 ]
	printf 'name: all\nquestion: x\nworkloads: [w.yaml]\n' >all.yaml
	run "$bin/gpemu-run" --find-max-gpus all.yaml
	[ "$status" -eq 2 ]
}

# bats test_tags=slow
@test "find: what other load disturbed runs again, whatever the checks say" {
	[ -r /proc/self/schedstat ] || skip "the kernel does not report waits for a CPU"
	export WORK=$PWD/work.py
	cat >"$WORK" <<-'END'
		import json, os, sys, time
		burner = os.fork()
		if burner == 0:
		    while True: pass
		began = time.time()
		while time.process_time() < 0.7: pass
		os.kill(burner, 9)
		json.dump({"config": {}, "epochs": [
		    {"seconds": time.time() - began, "au": .5, "steps": 50}]},
		    open(sys.argv[1], "w"))
	END
	sed -i 's/\[3, 11\]/[3]/; /^noise/d' w.yaml
	printf 'kind: self\nexpect: [{that: seconds < 1000}]\n' >>w.yaml
	# all on one CPU, so that they meet
	taskset -cp "$(taskset -cp $$ | sed 's/.*[ ,-]//')" $BASHPID
	busy "$STANDIN_LOG" &
	load=$!
	run --separate-stderr find_max --repetitions 1
	kill $load || true
	echo "$stderr"
	[[ $stderr == *"other load disturbed 1 of 1 cells; these run once more"* ]]
}
