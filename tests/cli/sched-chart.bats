#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What one sees of a schedule, and what is refused.

bats_require_minimum_version 1.5.0

setup() {
	PATH="$(realpath "${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}"):$PATH"
	unset GPEMU_PROFILES
	cd "$BATS_TEST_TMPDIR"
	SIM=(gpemu-sched simulate --progress off)
}

@test "a plot without gnuplot, or with one that fails, is refused" {
	printf 'work_s\n1\n' >t.csv
	sim=$(command -v gpemu-sched)
	run -1 --separate-stderr env PATH="$PWD" "$sim" simulate -t t.csv --nodes gpus=1 --gantt g.svg
	[ "$stderr" = "gpemu-sched simulate: gnuplot is not installed: install it, or leave out --plot" ]
	printf '#!/bin/sh\nexit 3\n' >gnuplot
	chmod +x gnuplot
	run -1 --separate-stderr env PATH="$PWD" "$sim" simulate -t t.csv --nodes gpus=1 --gantt g.svg
	[ "$stderr" = "gpemu-sched simulate: gnuplot failed" ]
	printf '#!/bin/sh\nexit 127\n' >gnuplot
	run -1 --separate-stderr env PATH="$PWD" "$sim" simulate -t t.csv --nodes gpus=1 --gantt g.svg
	[ "$stderr" = "gpemu-sched simulate: gnuplot failed" ]
}

# until_now COMMAND...: for 10 s at most, until it succeeds
until_now() {
	for _ in {1..500}; do
		! "$@" || return 0
		sleep .02
	done
	return 1
}

gone() { ! kill -0 "$1" 2>/dev/null; }

# ends_while_drawing SIGNAL PROGRAM...: it ends, as of the signal, and so does
# gnuplot; what it printed before is in `out`
ends_while_drawing() {
	local pid drawing status=0

	rm -f drawing
	PATH=$PWD:$PATH "${@:2}" >out 3>&- &
	pid=$!
	until_now test -s drawing
	drawing=$(cat drawing)
	kill -"$1" $pid
	until_now gone $pid || kill -KILL $pid
	wait $pid || status=$?
	[ "$status" -eq $((128 + $(kill -l "$1"))) ]
	until_now gone "$drawing"
}

@test "a signal ends a program that draws, and gnuplot" {
	printf 'work_s\n1\n' >t.csv
	printf '#!/bin/sh\necho $$ >drawing\nexec sleep 1000\n' >gnuplot
	chmod +x gnuplot
	for signal in INT TERM HUP; do
		ends_while_drawing $signal "${SIM[@]}" -t t.csv --nodes gpus=1 --gantt g.svg
		grep -q '^SIMULATED' out
	done
	ends_while_drawing TERM gpemu-sched run --progress off -t t.csv --nodes gpus=1 \
		--step 1s -o d --plot g.svg -- \
		gpemu-train --loader null --gpu v100 --model resnet18 -b 32
	grep -q '^LIVE and SIMULATED' out
	ends_while_drawing INT gpemu-cachesim --dataset imagenet --files 500 -p lru --plot g.svg
	grep -q '^policy' out
}

@test "a Gantt chart" {
	command -v gnuplot || skip "gnuplot is not installed"
	printf 'work_s,user,class,gpu_milli,name\n%s\n%s\n%s\n%s\n' \
		'30,a,x,1000,first' '20,b,y,500,second' '20,b,y,500,"&<third' \
		'9,a,x,1000,fourth' >t.csv
	"${SIM[@]}" -t t.csv --nodes '2*gpus=1' -p fifo,srtf --gantt g.svg \
		>/dev/null 2>err
	[ ! -s err ]
	python3 - <<-'PY'
		import xml.etree.ElementTree as tree
		text = ''.join(tree.parse('g.svg').getroot().itertext())
		for word in ('fifo proportional', 'srtf proportional', 'first', 'fourth',
		             'second', '&<third', 'node 0', 'node 1', 'time (s)', 'x', 'y'):
		    assert word in text, (word, text)
	PY
	# nodes without GPUs, a class for each job, times in hours
	printf '%s\n' work_s,gpus,class '7000,0,'{a..j} >u.csv
	"${SIM[@]}" -t u.csv --nodes '2*cpus=1' -p fifo --gantt g.png >/dev/null 2>err
	[ ! -s err ]
	[ "$(head -c 4 g.png | tail -c 3)" = PNG ]
	"${SIM[@]}" -t gnn-20 --nodes gpus=1,gpu_memory=30G -p mps --gantt g.pdf \
		>/dev/null 2>err
	[ ! -s err ]
	[ "$(head -c 4 g.pdf)" = %PDF ]
	# more than a picture shows
	printf 'work_s,count\n1,51000\n' >many.csv
	run -1 --separate-stderr "${SIM[@]}" -t many.csv --nodes gpus=1 -p fifo --gantt g.svg
	[[ $stderr == *"a Gantt chart of 51000 bars, "*": give fewer policies, jobs or nodes, or --timeline" ]]
	[ "$(wc -l <<<"$stderr")" -eq 1 ]
	run -2 "${SIM[@]}" -t t.csv --nodes gpus=1 --gantt g.jpg
}

# Before the run: as many bars as jobs, as many rows as GPUs.
@test "what cannot be drawn is said before anything runs" {
	printf 'work_s,gpus,count\n1,2,26000\n' >many.csv
	run -1 --separate-stderr "${SIM[@]}" -t many.csv --nodes gpus=2 -p fifo \
		--gantt g.svg --json j
	[ -z "$output" ]
	[[ $stderr == *": g.svg: a Gantt chart of 52000 bars, "* ]]
	[ ! -e j ]
	printf 'work_s\n1\n' >one.csv
	run -1 --separate-stderr "${SIM[@]}" -t one.csv --nodes '700*gpus=16' -p fifo \
		--gantt g.svg
	[ -z "$output" ]
	[[ $stderr == *": g.svg: a Gantt chart of 1 bars, 11292 points high: "* ]]
	printf 'work_s,gpus\n1,0\n' >cpu.csv
	run -1 --separate-stderr "${SIM[@]}" -t cpu.csv --nodes cpus=1 -p fifo --plot p.svg
	[ -z "$output" ]
	[[ $stderr == *": p.svg: the cluster has no GPUs to plot" ]]
	run -1 --separate-stderr gpemu-sched run -t many.csv --nodes gpus=2 --step 1s \
		--gantt g.svg -o d -- gpemu-train
	[[ $stderr == *": g.svg: a Gantt chart of 104000 bars, "* ]]
	[ ! -e d ]
}

@test "a timeline: all runs, on tracks where they do not overlap" {
	"${SIM[@]}" -t muri-testbed --nodes '8*gpus=8' -p srtf,muri_s --per-job \
		--timeline t.json --json j >/dev/null
	python3 - <<-'PY'
		import collections, json
		events = json.load(open('t.json'))
		names = {e['pid']: e['args']['name'] for e in events
		         if e['name'] == 'process_name'}
		assert names[1] == 'srtf proportional' and names[10] == 'muri_s'
		assert names[11] == 'muri_s, node 0' and len(names) == 18
		results = json.load(open('j'))['results']
		tracks = collections.defaultdict(list)
		seconds = [collections.Counter(), collections.Counter()]
		for e in events:
		    if e['ph'] == 'X':
		        tracks[e['pid'], e['tid']].append((e['ts'], e['ts'] + e['dur']))
		        seconds[e['pid'] > 9][e['name']] += e['dur'] / 1e6 / e['args']['gpus']
		for runs in tracks.values():
		    runs.sort()
		    assert all(a[1] <= b[0] + .01 for a, b in zip(runs, runs[1:]))
		for cell, r in zip(seconds, results):
		    for job in r['per_job']:
		        assert abs(cell[job['name']] - job['run_s']) < .01, job
		# at the end nobody waits or runs
		for pid in 1, 10:
		    for name in 'jobs waiting', 'jobs running':
		        values = [e['args']['jobs'] for e in events
		                  if e['name'] == name and e['pid'] == pid]
		        assert values[-1] == 0 and min(values) == 0 and max(values) > 9
	PY
	run -1 --separate-stderr "${SIM[@]}" -t muri-testbed --nodes '8*gpus=8' -p srtf \
		--timeline /nowhere/t
	[ "$stderr" = "gpemu-sched simulate: /nowhere/t: No such file or directory" ]
}

@test "tables by user and class, fairness and fragmentation" {
	printf 'work_s,user,class\n10,a,x\n10,b,x\n40,b,y\n' >t.csv
	"${SIM[@]}" -t t.csv --nodes gpus=1 -p fifo,srtf --by class,user --json j >table
	[ "$(wc -L <table)" -le 100 ]
	# two jobs of b: at 20 and 60 s
	[ "$(grep -A2 '^fifo proportional:' table | awk '$1 == "b" { print $2, $3, $5, $8, $9, $10 }')" = \
		"2 40.0 60.0 15.0 0.980 0.90" ]
	[ "$(grep -c '^y  *1 ' table)" -eq 2 ]
	grep -q '^user  *jobs  *mean JCT' table
	grep -q '^class  *jobs  *mean JCT' table
	python3 - <<-'PY'
		import json
		r = json.load(open('j'))['results'][0]
		# three are there for 10 s, two for 10, one for 40
		ratios = 10 / 30, 20 / (10 * 2.5), 60 / (40 * (30 + 20 + 40) / 60)
		assert abs(r['finish_time_ratio'] - sum(ratios) / 3) < 1e-9
		assert abs(r['finish_time_ratio_max'] - max(ratios)) < 1e-9
		assert abs(r['users'][0]['finish_time_ratio'] - ratios[0]) < 1e-9
		assert [u['gpu_s'] for u in r['users']] == [10, 50]
		assert [c['gpu_s'] for c in r['classes']] == [20, 40]
	PY
	run -2 "${SIM[@]}" -t t.csv --nodes gpus=1 --by user,age
	[[ $output == *"--by 'age' (known: user class)"* ]]
	# two shares of .6 leave .8 of a GPU, of no use to a third; of .5 a whole one
	for share in 600:1 500:0; do
		printf 'work_s,gpu_milli,count\n10,%d,2\n' "${share%:*}" >t.csv
		"${SIM[@]}" -t t.csv --nodes gpus=2 -p fifo --json j >/dev/null
		[ "$(python3 -c "import json
print(json.load(open('j'))['results'][0]['fragmentation'])")" = "${share#*:}.0" ]
	done
	# without GPUs there is neither
	printf 'work_s,gpus\n10,0\n' >t.csv
	"${SIM[@]}" -t t.csv --nodes cpus=1 -p fifo --json j >table
	grep -q '^fifo proportional  .* -  *- ' table
	python3 -c "import json
assert json.load(open('j'))['results'][0]['finish_time_ratio'] is None"
}

# One clear line each, at once: also where the numbers are those of a hostile file.
@test "malformed traces, and jobs that no cluster can run" {
	refuses() { # MESSAGE ARGUMENT...
		local message=$1
		shift
		run -1 timeout 20 "${SIM[@]}" -p fifo "$@"
		[ "${#lines[@]}" -eq 1 ] || { printf '%s\n' "$output"; return 1; }
		[[ $output == "gpemu-sched simulate: "$message ]] || {
			printf '%s\n' "$output"
			return 1
		}
	}
	trace() { printf '%s\n' "$@" >t.csv; }
	N=(-t t.csv --nodes '2*gpus=8,cpus=8,memory=9G')

	# not numbers, negative, too large, in each format
	for v in nan inf -inf 1e999 -1 '' x 0x10 1e400; do
		trace arrival_s,work_s "$v,1"
		refuses "t.csv:2:1: arrival_s: *" "${N[@]}"
		trace work_s "$v "
		[ -z "$v" ] || refuses "t.csv:2:1: work_s: *" "${N[@]}"
		trace job_id,model,arrival_s,iterations,gpus "0,res18,$v,5,1"
		refuses "t.csv:2:*: arrival_s: *" "${N[@]}"
		trace job_id,num_gpu,submit_time,iterations,model_name,iteration_time \
			"0,1,$v,5,m,4"
		refuses "t.csv:2:*: submit_time: *" "${N[@]}"
		trace name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time \
			"p,1,1,1,1000,$v,9"
		case $v in
		nan | '') refuses "t.csv: 0 jobs; left out: 1 never scheduled (line 2)" "${N[@]}" ;;
		-1) refuses "t.csv: 0 jobs; left out: 1 with a negative time (line 2)" "${N[@]}" ;;
		*) refuses "t.csv:2:*: creation_time: *" "${N[@]}" ;;
		esac
	done
	# an end before the beginning
	trace name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time \
		p,1,1,1,1000,20,10
	refuses "t.csv: 0 jobs; left out: 1 ended before they began (line 2)" "${N[@]}"
	# a job that asks for more than there is
	trace work_s,gpus 1,17
	refuses "job 0 asks for 17 GPUs, and the cluster has 16: *" "${N[@]}"
	trace work_s,gpu_models '1,a|b'
	refuses "job 0 asks for 1 GPU, and the cluster has 0 of the models that it allows: *" \
		"${N[@]}"
	trace work_s,gpus,gpu_milli 1,2,500
	refuses "t.csv:2:5: gpu_milli: *; only a single GPU may be shared" "${N[@]}"
	trace work_s,gpus,gpu_milli 1,1,0
	refuses "t.csv:2:5: gpu_milli: *" "${N[@]}"
	# lines of the formats without columns
	trace '# 0 x' '1 0 1 5 q' 'stage -1.0 20 4 536 1 2 -1343 1' 0
	refuses "t.csv:3:*: GPU time: *" "${N[@]}"
	trace '# 0 x' '1 0 1 5 q'
	refuses "t.csv:* a job without a stage" "${N[@]}"
	trace 'GCN_training cora -3'
	refuses "t.csv:1:19: layers: *" "${N[@]}"
	trace 'GCN_training nowhere 3'
	refuses "t.csv:1:14: unknown graph 'nowhere'" "${N[@]}"
	# nothing, a header alone, bytes
	: >t.csv
	refuses "t.csv: empty: *" "${N[@]}"
	trace work_s,gpus
	refuses "t.csv: has no jobs, only a header" "${N[@]}"
	printf '\xff\xfe\x00w' >t.csv
	refuses "t.csv:1:1: unknown format: *" "${N[@]}"
	# more time than the clock has
	trace work_s,count 4000000000,6
	refuses "policy fifo proportional: the jobs take more than 292 years, *" \
		-t t.csv --nodes gpus=1
	trace job_id,model,arrival_s,iterations,gpus 0,res18,0,1099511627776,1
	printf 'model,iteration_s\nres18,1e6\n' >s.csv
	refuses "policy fifo proportional: the jobs take more than 292 years, *" \
		-t t.csv --nodes gpus=1 --speeds s.csv
	# simulate and run have one table of options
	printf 'per_job: true\nround: 5s\n' >c.yaml
	for command in simulate run; do
		run -2 gpemu-sched $command -t t.csv --nodes gpus=1 \
			--round 2000000h
		[[ $output == *"--round: "*"is outside"* ]]
		gpemu-sched $command --config c.yaml --dump-config >out
		grep -q '^per_job: true' out && grep -q '^round: 5s' out
	done
}

@test "many names cost little" {
	{ echo model,iteration_s; seq -f 'm%.0f,1' 200000; } >s.csv
	{ echo work_s,class,user; seq -f '1,m%.0f,u' 100000; } >t.csv
	timeout 30 gpemu-sched stat t.csv --speeds s.csv >/dev/null
}
