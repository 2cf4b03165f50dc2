# SPDX-License-Identifier: MIT
# gpemu-run compare, on results of gpemu-run with stand-ins for its programs.
bats_require_minimum_version 1.5.0
load standins

setup()
{
	standins_setup
	cp -r "$GPEMU_BIN" bin
	GPEMU_BIN=$PWD/bin
	cat >w.yaml <<-'END'
		name: small
		question: What changed?
		dataset: {dataset: imagenette, files: 5}
		base:
		  train: {epochs: 2}
		axes: {train.loader: [sync, async]}
		repetitions: 3
		time_scale: 0.5
		seed: 7
		noise: 100%
	END
}

# slower N: the stand-in's epochs take N times as long
slower()
{
	sed -i "s/^s=.*/s=\$((s * $1 + \${o[--seed]}))/" bin/gpemu-train
}

@test "compare: runs of one seed are pairs, and three pairs show a factor of 9.8" {
	gpemu_run -o a w.yaml
	slower 14
	gpemu_run -o b w.yaml
	run gpemu_run compare a b --metric seconds --json c.json
	[ "$status" -eq 0 ]
	echo "$output"
	[[ $output == *"seconds "*"sync "*"3 pairs "*"28.00 "*"288.0 "*"x"*" *"* ]]
	[[ $output == *"2 of 2 differ significantly"* ]]
	# the changed program is named
	[[ $output == *"Differs also:  files.gpemu-train: "*" -> "* ]]
	"$BATS_TEST_DIRNAME/../in-terminal" 80 "$bin/gpemu-run" compare a b >out
	cat out
	[ -z "$(grep -vE '^[AB]  |^Differs' out | grep -E '.{81}')" ]
	[ "$(grep -c '^metric ' out)" -gt 1 ] # as two tables
	python3 - <<-'END'
		import json, math
		c = json.load(open("c.json"))
		assert {x["metric"] for x in c["changes"]} == {"seconds"}
		sync, = [x for x in c["changes"] if x["axes"] == {"train.loader": "sync"}]
		# 20 + seed and 280 + seed, of the seeds 7 8 9
		d = [math.log((280 + s) / (20 + s)) for s in (7, 8, 9)]
		m = sum(d) / 3
		se = math.sqrt(sum((x - m) ** 2 for x in d) / 6)
		assert sync["paired"] and sync["scale"] == "ratio"
		assert abs(sync["change"] - math.exp(m)) < 1e-9
		assert abs(sync["low"] - math.exp(m - 4.30265273 * se)) < 1e-5
		assert abs(sync["high"] - math.exp(m + 4.30265273 * se)) < 1e-5
		# Holm's strictest step of two: t of 0.025 with 2 degrees of freedom
		assert abs(sync["detectable"] - math.exp(6.20534682 * se)) < 1e-5
		assert sync["significant"] and sync["p"] <= sync["p_holm"] < .05
	END
}

@test "compare: other seeds make no pairs, and equal runs show no change" {
	gpemu_run -o a w.yaml
	gpemu_run --seed 107 -o b w.yaml
	run gpemu_run compare a b --metric seconds
	[[ $output == *"sync "*"3, 3 "*"28.00 "*"128.0 "*" *"* ]]
	[[ $output == *"Differs also:  seed: 7 -> 107"* ]]
	# of more runs those of the same seeds count
	gpemu_run -r 5 -o more w.yaml
	run gpemu_run compare more a --metric seconds
	[[ $output == *"sync "*"3 pairs "* ]]
	[[ $output == *"0 of 2 differ significantly"* ]]
	[[ $output == *"repetitions: 5 -> 3"* ]]
	run gpemu_run compare a a
	[[ $output == *"0 of "*" differ significantly"* ]]
	[[ $output != *"Differs"* ]]
	# one run says nothing about chance
	gpemu_run -r 1 -o one w.yaml
	run gpemu_run compare one one --metric seconds
	[[ $output == *"2 have too few runs to tell: it takes two on each side"* ]]
}

@test "compare: differences between the files are shown" {
	gpemu_run -o a w.yaml
	sed -i 's/epochs: 2/epochs: 3, workers: 4/; s/^time_scale/warmup: 1\n&/' w.yaml
	sed -i 's/files: 5/files: 6/' w.yaml
	gpemu_run -o b w.yaml
	run gpemu_run compare a b
	[ "$status" -eq 0 ]
	[[ $output == *"base.train.epochs: 2 -> 3"* ]]
	[[ $output == *"base.train.workers: - -> 4"* ]]
	[[ $output == *"dataset.files: 5 -> 6"* ]]
	[[ $output == *"warmup: - -> 1"* ]]
	# paths of profiles and programs are not shown
	[[ $output != *"$PWD"* ]]
}

@test "compare: an unknown metric, and files with nothing in common, are refused" {
	gpemu_run -o a w.yaml
	run gpemu_run compare a a --metric minutes
	[ "$status" -eq 1 ]
	[[ $output == "gpemu-run compare: no metric 'minutes'; there are "*"seconds"* ]]
	[ "${#lines[@]}" -eq 1 ]
	sed -i 's/\[sync, async\]/[null]/' w.yaml
	gpemu_run -o b w.yaml
	run gpemu_run compare a b
	[ "$status" -eq 1 ]
	[[ $output == *"the two have no point in common"* ]]
	run gpemu_run compare a nowhere
	[ "$status" -eq 1 ]
	run gpemu_run compare a
	[ "$status" -eq 2 ]
}

# refuses OPTION WORD...: the command of these words has no such option
refuses()
{
	run -2 "$bin/gpemu-run" "${@:2}"
	[[ $output == *": unrecognized option '$1'"* ]]
}

@test "run: options of other commands are refused" {
	refuses --metric check w.yaml --metric nonsense
	refuses --epochs w.yaml --epochs
	refuses --jobs compare a b --jobs 4
	refuses --fresh export a --fresh
	refuses --slurm import w.yaml --slurm 3
	refuses --au merge a b -o c --au .5
	# neither random numbers nor a record
	refuses --seed compare a b --seed 3
	refuses --seed merge a b -o c --seed 3
	for command in export import; do
		refuses --seed $command a --seed 3
		refuses --json $command a --json c.json
	done
	run -2 "$bin/gpemu-run" -o c compare a b
	[[ $output == *"'a' is not KEY=VALUE; expected one workload file, or a command in front"* ]]
	for command in check compare merge export import; do
		"$bin/gpemu-run" --help | grep "^  $command "
		"$bin/gpemu-run" $command --help
	done
}

@test "compare: a side without a value is shown, not left out" {
	gpemu_run -o a w.yaml
	FAIL_LOADER=async run gpemu_run -o b w.yaml
	run gpemu_run compare a b --metric seconds
	[ "$status" -eq 0 ]
	grep -E '^seconds +async +3, 0 +18.00 +- +- ' <<<"$output"
	[[ $output == *"1 have too few runs to tell"* ]]
}

@test "compare: two lists, workload by workload" {
	sed 's/name: small/name: other/' w.yaml >other.yaml
	printf 'name: all\nquestion: q\nworkloads: [w.yaml, other.yaml]\n' >all.yaml
	gpemu_run -o a all.yaml
	sed -i 's/, other.yaml//' all.yaml
	slower 14
	gpemu_run -o b all.yaml
	run gpemu_run compare a b --metric seconds --json c.json
	echo "$output"
	[ "$status" -eq 0 ]
	[ "${lines[0]}" = small ]
	[[ $output == *"2 of 2 differ significantly"* ]]
	[[ $output == *"Only in A: other"* ]]
	python3 - <<-'END'
		import json
		c = json.load(open("c.json"))
		assert [w["workload"] for w in c["workloads"]] == ["small"]
		assert len(c["workloads"][0]["changes"]) == 2
	END
	run gpemu_run compare a b/small
	[ "$status" -eq 1 ]
	[[ $output == *"a is of a list of workloads, b/small of a single workload; compare two of a kind"* ]]
	run gpemu_run compare a b --metric minutes
	[ "$status" -eq 1 ]
}

@test "a pipe named as a file does not block" {
	gpemu_run -o a w.yaml
	cp -r a b
	for file in a/table.txt a/results.csv; do
		rm "$file" && mkfifo "$file"
	done
	run timeout -k 1 20 "$bin/gpemu-run" --no-mount -o a w.yaml
	echo "$output"
	[ "$status" -eq 0 ]
	cmp a/table.txt b/table.txt
	rm a/summary.json && mkfifo a/summary.json
	run timeout -k 1 20 "$bin/gpemu-run" compare a b
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $output == *"a/summary.json: Illegal seek"* ]]
}

@test "run: a pipe named as an input or output does not block" {
	echo 'plot: [{x: train.loader, y: seconds}]' >>w.yaml
	gpemu_run -o a w.yaml
	for file in a/plots/*.dat a/plots/*.gp a/plots/*.svg a/logs/* \
		a/configs/* a/records/* a/report.html; do
		rm "$file" && mkfifo "$file"
	done
	ls -l a/*
	run timeout -k 1 60 "$bin/gpemu-run" --no-mount -o a w.yaml
	echo "$output"
	[ "$status" -eq 0 ]
	[ -z "$(find a/plots/*.dat a/plots/*.gp a/logs a/configs a/records -type p)" ]
	# a profile that is looked up by its name
	cp -rL "$bin/../profiles" profiles
	mkfifo profiles/gpu/aaa.yaml
	export GPEMU_PROFILES=$PWD/profiles
	run timeout -k 1 20 "$bin/gpemu-profile" show gpu aaa
	[ "$status" -eq 1 ]
	run timeout -k 1 20 "$bin/gpemu-train" --gpu no-such --data .
	[[ $output == *"no-such"* ]]
}

@test "run: no link in a shared folder of datasets is followed" {
	gpemu_run -o a --data-dir data w.yaml
	lock=$(echo data/*.lock)
	rm -r "${lock%.lock}" "$lock"
	ln -s "$PWD/elsewhere" "$lock"
	run gpemu_run -o b --data-dir data w.yaml
	echo "$output"
	[ "$status" -ne 0 ]
	[ ! -e elsewhere ]
	rm "$lock"
	mkdir kept
	touch kept/file
	ln -s "$PWD/kept" "${lock%.lock}.unfinished"
	gpemu_run -o b --data-dir data w.yaml
	[ "$(ls kept)" = file ]
	[ -d "${lock%.lock}" ]
}

@test "run: a second user waits for the maker of a dataset and uses it" {
	[ "$(id -u)" -eq 0 ] || skip "needs root, to be another user"
	chmod a+X "$BATS_RUN_TMPDIR" "$(dirname "$BATS_TEST_TMPDIR")"
	chmod -R a+rX "$BATS_TEST_TMPDIR"
	as_nobody() {
		setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
	}
	as_nobody test -x "$bin/gpemu-run" || skip "another user cannot run gpemu-run"
	as_nobody test -x "$PWD/bin" || skip "another user cannot enter $PWD"
	gpemu_run -o a --data-dir data w.yaml
	lock=$(echo data/*.lock)
	made=${lock%.lock}
	mkdir b
	chown 65534 b tmp "$STANDIN_LOG"
	mv "$made" away
	# the first user is making it until somebody waits for it
	cat >maker <<-'END'
		import fcntl, os, sys, time
		lock, made = sys.argv[1:]
		f = open(lock, "r+")
		fcntl.lockf(f, fcntl.LOCK_EX)
		open("locked", "w")
		for i in range(600):
		    if os.path.exists("said") and "waiting" in open("said").read():
		        os.rename("away", made)
		        break
		    time.sleep(.05)
	END
	python3 maker "$lock" "$made" 3>&- &
	maker=$!
	for try in {1..400}; do
		[ ! -e locked ] || break
		sleep .05
	done
	as_nobody timeout 60 "$bin/gpemu-run" --no-mount -o b --data-dir data \
		w.yaml >said 2>&1 || { cat said; false; }
	wait $maker
	# what the first user has not made cannot be made in its place
	mv "$made" away
	run as_nobody "$bin/gpemu-run" --no-mount -o b --data-dir data w.yaml
	echo "$output"
	[ "$status" -ne 0 ]
	[[ $output == *"$lock: Permission denied (it belongs to user 0)"* ]]
}
