# SPDX-License-Identifier: MIT
# gpemu-run on a file that lists workloads, with stand-ins for the programs.
bats_require_minimum_version 1.5.0
load standins

setup()
{
	standins_setup
	mkdir files
	cat >all.yaml <<-'END'
		name: all
		question: What holds?
		budget: 1h
		workloads:
		  - files/one.yaml
		  - files/two.yaml
	END
	workload one 'figure: "A <paper>, figure 1"'
	workload two
	cat >>files/one.yaml <<-'END'
		kind: order
		expect:
		  - that: seconds[async] < seconds[sync]
		  - that: 20 <= seconds <= 30
		    where: {train.loader: sync}
		published:
		  paper: {source: a paper, metric: seconds, along: train.loader,
		          values: {sync: 28, async: 17}, tolerance: 5%, kind: prediction, doubt: "typed off"}
		  other: {source: another, metric: seconds, along: train.loader,
		          values: {sync: 99}}
	END
}

# workload NAME [LINE]
workload()
{
	cat >"files/$1.yaml" <<-END
		name: $1
		question: Is $1 so?
		${2-}
		dataset: {dataset: imagenette, files: 5}
		axes:
		  train.loader: [sync, async]
		time_scale: 0.5
		seed: 7
		noise: 100%
		order: listed
	END
}

# line TEXT: stdout has a line with these words and any blanks between
line()
{
	tr -s ' ' <<<"$output" | sed 's/^ //; s/ $//' | grep -qFx -- "$1" || {
		echo "$output"
		false
	}
}

@test "suite: each workload runs, and one table judges all" {
	run --separate-stderr gpemu_run all.yaml
	[ "$status" -eq 0 ]
	[ "$(grep -vc made standin.log)" -eq 4 ]
	[[ $stderr == *"workload 1 of 2: ./files/one.yaml"*"workload 2 of 2: "* ]]
	line "all: What holds?"
	[[ $output == *"A <paper>, figure 1: PASS, in "* ]]
	line "4 of 4 checks passed: prediction 2 of 2, order 2 of 2"
	line "seconds[async] < seconds[sync] order < 27.00 17.00 one run PASS"
	line "20 <= seconds <= 30 order 20.00 <= x <= 30.00 27.00 one run PASS"
	line "epoch time as published (paper) prediction sync: 28.00 +- 1.400; asy... sync: 27.00; async: 17.00 one run REPRODUCED"
	line "epoch time (other) sync: 99.00 sync: 27.00 -"
	[[ $output == *"two: -, in "*"no checks"* ]]
	line "kind of evidence checks passed failed undecided not reproduced"
	line "prediction 2 2 0 0 0"
	line "order 2 2 0 0 0"
	[[ $output == *"2 of 2 workloads passed, in "*" of 3600 s"* ]]
	cmp results/all/table.txt <(head -n -2 <<<"$output")
	# in the folders of single runs, so that nothing runs twice
	[ -e results/one/report.html ]
	: >standin.log
	gpemu_run files/one.yaml
	gpemu_run all.yaml
	[ ! -s standin.log ]
}

@test "suite: tables and verdicts fit a terminal of 80 columns" {
	gpemu_run all.yaml >/dev/null
	for what in files/one.yaml all.yaml "check files/one.yaml"; do
		# shellcheck disable=SC2086
		"$BATS_TEST_DIRNAME/../in-terminal" 80 "$bin/gpemu-run" $what --no-mount >out
		cat out
		# progress ends with a return, and a path may be as long as it is
		sed -E 's/.*\r//; /^(records|report|plot|page|dataset) |^gpemu-run: /d' out >lines
		[ -z "$(grep -E '.{81}' lines)" ]
	done
	gpemu_run check files/one.yaml | grep -E '.{81}'
}

@test "suite: the summary has every row of each workload's summary" {
	gpemu_run --json - all.yaml >s.json
	cmp s.json results/all/summary.json
	python3 - <<-'END'
		import json
		s = json.load(open("s.json"))
		one, two = s["workloads"]
		assert s["suite"] == "all" and s["failed"] == 0 and not s["over_budget"]
		assert one["summary"] == json.load(open("results/one/summary.json"))
		assert one["figure"] == "A <paper>, figure 1" and two["figure"] is None
		assert one["result"].startswith("4 of 4 checks passed: ") and two["rows"] == []
		assert s["score"]["prediction"]["pass"] == 2 and s["undecided"] == 0
		assert [r["kind"] for r in one["rows"]] == ["order", "order", "prediction", ""]
		assert [r["verdict"] for r in one["rows"]] == ["pass", "pass", "pass", "shown"]
		assert one["rows"][2]["doubt"] == "typed off"
		assert one["rows"][2]["ours"] == "sync: 27.00; async: 17.00"
		assert one["seconds"] >= one["summary"]["wall_seconds"] > 0
		assert abs(s["seconds"] - one["seconds"] - two["seconds"]) < 1e-9
	END
}

@test "suite: a workload that is undecided is exit status 3" {
	echo 'repetitions: 2' >>files/one.yaml
	sed -i 's/tolerance: 5%/&, reason: "typed off"/; s/values: {sync: 28, async: 17}/values: {sync: 58}/' files/one.yaml
	run --separate-stderr gpemu_run all.yaml
	echo "$output"
	[ "$status" -eq 3 ]
	line "seconds[async] < seconds[sync] order < 27.50 17.50 difference -10.00 to -10.00 PASS"
	line "20 <= seconds <= 30 order 20.00 <= x <= 30.00 27.50 21.15 to 33.85 UNDECIDED: about 3 repetitions would decide"
	line "epoch time as published (paper) prediction 58.00 +- 2.900 27.50 21.15 to 33.85 NOT REPRODUCED: typed off"
	line "1 of 3 checks passed: prediction 0 of 1, order 1 of 2; 1 undecided, 1 not reproduced"
	[[ $output == *"1 of 2 workloads passed, 1 undecided, in "* ]]
	grep -qF 'about 3 repetitions would decide' results/all/report.html
}

@test "suite: a failure in one workload does not stop the others" {
	FAIL_LOADER=async run --separate-stderr gpemu_run all.yaml
	[ "$status" -eq 1 ]
	[ "$(grep -c '^async' standin.log)" -eq 2 ]
	[[ $output == *"1 of 4 checks"* ]] || [[ $output == *"2 of 4 checks"* ]]
	[[ $output == *"0 of 2 workloads passed"* ]]
	# a dataset that cannot be made: no cell of it runs
	sed -i 's/files: 5/files: 6/' files/one.yaml
	rm -r results
	: >standin.log
	mkdir -p cache/gpemu && cp -r cache/gpemu keep
	FAIL_DATA=1 run --separate-stderr gpemu_run all.yaml
	[ "$status" -eq 1 ]
	[[ $output == *"A <paper>"*"FAIL"*"gpemu-data make"* ]]
	[[ $output == *"1 of 2 workloads passed"* ]]
	[ "$(wc -l <standin.log)" -eq 2 ]
	grep -q 'no report' results/all/report.html
}

@test "suite: exceeding the budget fails" {
	sed -i 's/budget: .*/budget: 1s/' all.yaml
	sed -i 's/^seed:/cell_timeout: 1s\n&/' files/*.yaml
	HANG_LOADER=async run --separate-stderr gpemu_run all.yaml
	[[ $output == *" of 1.00 s: too long"* ]]
	[ "$status" -eq 1 ]
}

# refuses TEXT: an error of that line, and nothing ran
refuses()
{
	run gpemu_run all.yaml
	[ "$status" -eq 1 ]
	[[ $output == "gpemu-run: $1"* ]] || { echo "$output"; false; }
	[ "${#lines[@]}" -eq 1 ]
	[ ! -s standin.log ]
	[ ! -e results ]
}

@test "suite: an error in any file is reported with its position, and nothing runs" {
	good=$(cat all.yaml)
	two=$(cat files/two.yaml)
	sed -i 's/budget/buget/' all.yaml
	refuses "all.yaml:3:1: unknown key 'buget'"
	echo "${good/two.yaml/three.yaml}" >all.yaml
	refuses "all.yaml:6:5: ./files/three.yaml: No such file"
	echo "${good/two.yaml/one.yaml}" >all.yaml
	refuses "all.yaml:6:5: 'files/one.yaml' twice"
	echo "${good/files\/two.yaml/all.yaml}" >all.yaml
	refuses "all.yaml:6:5: ./all.yaml is itself a list of workloads; lists cannot be nested"
	echo "${good/name: all/name: two}" >all.yaml
	refuses "all.yaml:6:5: ./files/two.yaml: another workload of the list is called 'two'; names must differ"
	echo "$good" >all.yaml
	echo "${two/seed: 7/sead: 7}" >files/two.yaml
	refuses "./files/two.yaml:8:1: unknown key 'sead'"
	echo "${two/train.loader/train.loadr}" >files/two.yaml
	refuses "./files/two.yaml:6:3: gpemu-train: unknown key 'loadr'"
	printf 'name: all\nquestion: x\nworkloads: []\n' >all.yaml
	refuses "all.yaml:3:12: workloads is empty: list at least one file"
}

@test "suite: check estimates the time of all, --dry-run lists what runs" {
	run --separate-stderr gpemu_run check all.yaml
	[ "$status" -eq 0 ]
	[[ $output == *"one "*"2       2 "*"two "*"2       2 "*"all "*" of 3600 s"* ]]
	gpemu_run files/one.yaml
	run --separate-stderr gpemu_run check all.yaml
	[[ $output == *"one "*"2       0 "* ]]
	run gpemu_run -n all.yaml
	[ "$(grep -c 'gpemu-train --config' <<<"$output")" -eq 4 ]
	[ ! -e results/all ]
}

@test "suite: -o writes all into one folder, with working links" {
	gpemu_run -o out all.yaml
	[ -e out/one/report.html ]
	grep -q 'href="one/report.html"' out/report.html
	gpemu_run all.yaml
	grep -q 'href="../one/report.html"' results/all/report.html
	[ -e results/all/../one/report.html ]
	grep -qF 'A &lt;paper&gt;, figure 1' out/report.html
	grep -qF 'Doubtful: typed off' out/report.html
}

# bats test_tags=slow
@test "suite: the page in a browser, at the width of a phone" {
	command -v chromium >/dev/null || skip "chromium is not installed"
	gpemu_run all.yaml
	printf '<!DOCTYPE html><title>x</title><iframe id=f style="border:0;width:390px;height:900px" src="file://%s"></iframe><script>onload=()=>{const d=document.getElementById("f").contentDocument.documentElement;document.title="fits "+(d.scrollWidth<=d.clientWidth)}</script>' \
		"$PWD/results/all/report.html" >phone.html
	timeout 60 chromium --headless --no-sandbox --disable-gpu \
		--user-data-dir="$PWD/profile" \
		--allow-file-access-from-files --enable-logging=stderr \
		--dump-dom "file://$PWD/phone.html" >dom 2>err
	grep -q '<title>fits true</title>' dom
	run ! grep 'CONSOLE' err
}

@test "suite: SIGTERM ends it, and finished cells are kept" {
	HANG_LOADER=async "$bin/gpemu-run" --no-mount all.yaml >out 2>&1 3>&- &
	pid=$!
	for _ in $(seq 100); do
		[ -e standin.log.hangs ] && break
		sleep 0.1
	done
	kill -TERM $pid
	wait $pid && false
	[ $? -eq 143 ]
	grep -q 'stopped by' out
	[ "$(ls results/one/records | wc -l)" -eq 1 ]
	[ -z "$(ls "$TMPDIR")" ]
}
