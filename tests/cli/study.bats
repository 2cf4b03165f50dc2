# SPDX-License-Identifier: MIT
# gpemu-run: a study by several processes, in one folder or in shards.
bats_require_minimum_version 1.5.0
load standins

setup()
{
	standins_setup
	study_setup
}

# start NAME [option...]: in the background; its output is in NAME.out
start()
{
	"$bin/gpemu-run" --no-mount "${@:2}" w.yaml >"$1.out" 2>&1 3>&- &
	pid=$!
}

wait_for()
{
	for _ in $(seq 1200); do
		[ -e "$1" ] && return
		sleep 0.05
	done
	false
}

@test "study: two processes share a folder, and each cell runs once" {
	# the first two cells wait until both are running
	sed -i '1i mkdir here.$$; for i in $(seq 200); do [ "$(ls -d here.* | wc -l)" -gt 1 ] && break; sleep .05; done' cell.sh
	start a
	one=$pid
	start b
	two=$pid
	wait $one
	wait $two
	[ "$(wc -l <standin.log)" -eq 24 ]
	[ "$(ls results/study/records | wc -l)" -eq 24 ]
	# both have the whole table, and know what the other one did
	for name in a b; do
		grep -q '4 of 4 checks passed' $name.out
		grep -q 'cells were run by another gpemu-run' $name.out
		sed '/^gpemu-run: \|^cell /d' $name.out >$name.table
	done
	cmp a.table b.table
}

@test "study: a cell of a killed process is run by the other one" {
	: >hang.21-1
	start a -r 1
	one=$pid
	wait_for hangs.21-1
	rm hang.21-1
	start b -r 1
	two=$pid
	for _ in $(seq 200); do
		grep -q 'waiting for 1 cells' b.out && break
		sleep .05
	done
	grep -q 'waiting for 1 cells that another gpemu-run is running' b.out
	kill -KILL $one
	wait $one || true
	wait $two
	grep -q '4 of 4 checks passed' b.out
	[ "$(ls results/study/records | wc -l)" -eq 12 ]
	# the waiting process takes a signal all the same
	rm -r results
	: >hang.21-1
	rm hangs.21-1
	start a -r 1
	one=$pid
	wait_for hangs.21-1
	start b -r 1
	two=$pid
	for _ in $(seq 200); do
		grep -q 'waiting for 1 cells' b.out && break
		sleep .05
	done
	kill -TERM $two
	status=0
	wait $two || status=$?
	[ "$status" -eq 143 ]
	kill -TERM $one
	wait $one || true
	run ! pgrep -f "$BATS_TEST_TMPDIR"
}

@test "study: cells that measure times are not shared on one machine" {
	sed -i '/independent/d' w.yaml
	: >hang.21-1
	start a
	one=$pid
	wait_for hangs.21-1
	run --separate-stderr gpemu_run w.yaml
	[ "$status" -eq 75 ]
	[[ $stderr == *"results/study: another gpemu-run on this machine is using this folder"* ]]
	kill -TERM $one
	wait $one || true
}

@test "study: shards are disjoint, complete, and of one size" {
	for i in 1 2 3 4 5; do
		gpemu_run -n --shard $i/5 w.yaml | grep -E -- '-r[12]-' >$i.cells
	done
	# 24 cells: four shards have 5, one has 4
	[ "$(wc -l <5.cells)" -eq 4 ]
	[ "$(wc -l <1.cells)" -eq 5 ]
	[ "$(cat ?.cells | sort -u | wc -l)" -eq 24 ]
	# and no shard has only one value of an axis
	for i in 1 2 3 4 5; do
		[ "$(cut -d- -f2 $i.cells | sort -u | wc -l)" -gt 1 ]
	done
	run --separate-stderr gpemu_run check --shard 5/5 w.yaml
	[[ $output == *"shard       5 of 5: 4 of these cells"*"0 of 4 cells have one"* ]]
	for wrong in 0/4 5/4 1 1/4x -1/4 1/0; do
		run --separate-stderr gpemu_run --shard=$wrong w.yaml
		[ "$status" -eq 2 ]
		[[ $stderr == *"--shard: '$wrong' is not I/N"* ]]
	done
}

# shards_merge CELLS: the cells of w.yaml in four shards, of which one is killed
# and run again, make the table of one run
shards_merge()
{
	gpemu_run w.yaml
	: >standin.log
	: >hang.34-2
	for i in 1 2 3 4; do
		if gpemu_run -n --shard $i/4 w.yaml | grep -q '^3-4-r2-'; then
			killed=$i
		fi
		start s$i --shard $i/4 -o s$i
		pids[i]=$pid
	done
	wait_for hangs.34-2
	kill -KILL ${pids[killed]}
	for i in 1 2 3 4; do
		wait ${pids[i]} || [ $i -eq $killed ]
	done
	cat s?.out | grep -q "of 4 of study: $(($1 / 4)) of its $(($1 / 4)) cells have a record in s"
	# nobody makes a table of a part
	[ ! -e s1/table.txt ]
	run --separate-stderr "$bin/gpemu-run" merge s? -o part
	[ "$status" -eq 1 ]
	[[ $stderr == *"no folder has a record of 3, 4, repetition 2"* ]]
	[[ $stderr == *" of $1 cells have no record: run their shards again"* ]]
	rm hang.34-2
	gpemu_run --shard $killed/4 -o s$killed w.yaml
	run --separate-stderr "$bin/gpemu-run" merge s? -o merged
	[ "$status" -eq 0 ]
	cmp results/study/table.txt merged/table.txt
	# each cell ran once, but for the one that was killed
	[ "$(wc -l <standin.log)" -eq $(($1 + 1)) ]
	# a merged folder is a folder like any other
	gpemu_run -o merged w.yaml
	[ "$(wc -l <standin.log)" -eq $(($1 + 1)) ]
	"$bin/gpemu-run" merge part merged -o again
	cmp merged/table.txt again/table.txt
}

@test "study: four shards, one killed and resumed, merge into the whole" {
	shards_merge 24
}

@test "study: 500 cells in four shards" {
	[ -n "${GPEMU_FULL-}" ] || skip "half a minute; tests/run --full"
	sed -i 's/exec.n: .*/exec.n: {from: 1, to: 10, step: 1}/
		s/exec.m: .*/exec.m: {from: 1, to: 25, step: 1}/' w.yaml
	shards_merge 500
}

@test "study: folders of different studies are not merged" {
	sed -i 's/repetitions: 2/repetitions: 1/' w.yaml
	gpemu_run --shard 1/2 -o s1 w.yaml
	# refuses WORDS: to merge s1 with s2
	refuses() {
		run --separate-stderr "$bin/gpemu-run" merge s1 s2 -o merged
		[ "$status" -eq 1 ]
		[[ $stderr == *"s1 and s2: $1"* ]] || {
			echo "$stderr"
			false
		}
		[ ! -e merged ]
	}
	gpemu_run --shard 2/2 -o s2 -r 2 w.yaml
	refuses 'repetitions is 1 and 2'
	gpemu_run --shard 2/2 -o s2 --seed 3 w.yaml
	refuses 'seed is 1 and 3'
	sed 's/exec.m: .*/exec.m: [1, 2]/' w.yaml >v.yaml
	gpemu_run --shard 2/2 -o s2 v.yaml
	refuses 'workload.axes.exec.m is ["1'
	gpemu_run --shard 2/2 -o s2 w.yaml
	sed 's/"gpemu": "/&other/' s2/study.json >s2/other
	mv s2/other s2/study.json
	refuses 'gpemu is "'
	echo '# edited' >>cell.sh
	gpemu_run --shard 2/2 -o s2 w.yaml
	refuses 'file.cell.sh is "'
	rm s2/study.json
	run --separate-stderr "$bin/gpemu-run" merge s1 s2 -o merged
	[[ $stderr == *"s2/study.json: No such file"* ]]
	run "$bin/gpemu-run" merge s1
	[ "$status" -eq 2 ]
}

@test "study: keys are overridden on the command line, and recorded" {
	gpemu_run -o o w.yaml repetitions=1 'axes.exec.m=[7]' exec.k=9
	[ "$(ls o/records | wc -l)" -eq 3 ]
	python3 - <<-'END'
		import glob, json
		for name in glob.glob('o/records/*'):
		    cell = json.load(open(name))['cell']
		    assert cell['overrides'] == ['repetitions=1',
		        'axes.exec.m=[7]', 'exec.k=9'], cell
		    assert cell['axes']['exec.m'] == '7'
		    assert cell['jobs']['train']['exec']['k'] == '9'
	END
	run --separate-stderr gpemu_run check w.yaml base.fs.sede=1
	[ "$status" -eq 1 ]
	[[ $stderr == *"base.fs.sede=1:1:1: gpemu-fs: unknown key 'sede'"* ]]
	run --separate-stderr gpemu_run w.yaml v.yaml
	[ "$status" -eq 2 ]
	[[ $stderr == *"'v.yaml' is not KEY=VALUE; expected one workload file"* ]]
}

@test "study: excluded points do not run, and checks pass over them" {
	cat >>w.yaml <<-'END'
		exclude:
		  - {exec.n: [1, 2], exec.m: 1}
		  - {exec.n: 2, exec.m: 3}
		plot: [{x: exec.n, y: n, series: exec.m}]
	END
	sed -i 's/^expect:.*/expect:\n  - {rising: n, along: exec.n, kind: order}\n  - that: n > n[exec.n=1]\n    kind: order\n    where: {exec.n: [2, 3]}\n  - that: max(n[exec.n=*]) - n[exec.n=3] == 0 +- 0\n    kind: self/' w.yaml
	run --separate-stderr gpemu_run w.yaml
	[ "$status" -eq 0 ]
	[ "$(ls results/study/records | wc -l)" -eq 18 ]
	[ "$(wc -l <standin.log)" -eq 18 ]
	# m = 1 has one point, so that nothing rises; m = 3 has no n = 2
	! grep -q 'rises along exec.n, 1:' <<<"$output" || false
	[[ $output == *"n rises along exec.n, 3: 1 13.00, 3 33.00"* ]]
	[[ $output == *"PASS (order)  n > n[exec.n=1], 2, 2: 22.00 > 12.00"* ]]
	! grep -q 'n > n.exec.n=1., ., 1' <<<"$output" || false
	[[ $output == *"n[exec.n=3] == 0 +- 0, 1: 0"* ]]
	! grep -q FAIL <<<"$output" || false
	[ "$(grep -c '^1 "1" [nN]a[nN]\|^2 "2" [nN]a[nN]' results/study/plots/n-by-exec_n.dat)" -eq 3 ]
}

@test "study: axes and settings stand in a command and its environment" {
	cat >w.yaml <<-'END'
		name: study
		question: What does a program see?
		dataset: {dir: data}
		base:
		  fs: {cache_size: 10%}
		  exec: {command: 'echo "{\"n\": {exec.n}, \"node\": \"{node}\", \"size\": \"{fs.cache_size}\", \"policy\": \"$POLICY\", \"more\": \"{more}\", \"no\": \"{1..3}\"}" >{record}', more: x}
		  environment: {POLICY: '{fs.cache_policy}'}
		axes:
		  exec.n: [1, 2]
		  node:
		    - {label: small, fs.cache_policy: lru}
		    - {label: big, fs.cache_policy: minio, fs.cache_size: 20%}
		noise: 100%
	END
	gpemu_run w.yaml
	python3 - <<-'END'
		import glob, json
		seen = set()
		for name in glob.glob('results/study/records/*'):
		    r = json.load(open(name))
		    seen.add((r['n'], r['node'], r['size'], r['policy'], r['more'], r['no']))
		    assert '{exec.n}' not in str(r['cell']), r['cell']
		assert seen == {(n, *rest, 'x', '{1..3}') for n in (1, 2) for rest in
		    (('small', '10%', 'lru'), ('big', '20%', 'minio'))}, seen
	END
	# the label is part of the key of a cell
	sed -i 's/label: small/label: tiny/' w.yaml
	: >standin.log
	run --separate-stderr gpemu_run w.yaml
	[[ $stderr == *"2 of 4 cells have a record"* ]]
	sed -i 's/{node}/{nod}/' w.yaml
	run --separate-stderr gpemu_run w.yaml
	[[ $stderr == *"w.yaml:6:"*": {nod} is none of {mount}"* ]]
	sed -i 's/{nod}/{fs.cache_sise}/' w.yaml
	run --separate-stderr gpemu_run w.yaml
	[[ $stderr == *"w.yaml:6:"*": {fs.cache_sise}: no axis and no key of the file sets this at every point"* ]]
}

# A workload of the stand-in for gpemu-train, whose records have two epochs.
train_workload()
{
	cat >w.yaml <<-'END'
		name: train
		question: What is in the table?
		dataset: {dataset: imagenette, files: 5}
		base:
		  fs: {storage: hdd}
		  train: {epochs: 2}
		axes:
		  fs.cache_size: [10%, 20%]
		  train.loader: [sync, async]
		metrics: {twice: {of: 2 * seconds, unit: "s, doubled"}}
		repetitions: 2
		time_scale: 0.5
		noise: 100%
	END
}

@test "study: export writes a line for each run and metric, or epoch" {
	train_workload
	FAIL_LOADER=none gpemu_run w.yaml
	# one run has failed: it has no line
	FAIL_LOADER=async run gpemu_run --fresh -r 1 w.yaml
	gpemu_run -r 2 w.yaml
	rm w.yaml # the folder is enough
	"$bin/gpemu-run" export results/train >runs.csv
	"$bin/gpemu-run" export results/train --epochs -o epochs.csv
	python3 - <<-'END'
		import csv
		runs = list(csv.DictReader(open('runs.csv', newline='')))
		of = [r for r in runs if r['metric'] == 'seconds']
		assert len(of) == 8, len(of)
		for r in of:
		    # 20 or 10 seconds, and the seed
		    assert float(r['value']) == int(r['seed']) + (
		        20 if r['train.loader'] == 'sync' else 10), r
		    assert r['unit'] == 's'
		    # what was constant
		    assert r['fs.storage'] == 'hdd' and r['train.epochs'] == '2'
		    assert r['dataset.files'] == '5'
		    assert r['time_scale_wall_s_per_s'] == '0.5'
		    assert float(r['cell_wall_s']) > 0 and r['host']
		assert list(of[0]).count('fs.cache_size') == 1
		assert {r['fs.cache_size'] for r in of} == {'10%', '20%'}
		twice = [r for r in runs if r['metric'] == 'twice']
		assert twice[0]['unit'] == 's, doubled'
		assert float(twice[0]['value']) == 2 * float(of[0]['value'])
		epochs = list(csv.DictReader(open('epochs.csv', newline='')))
		assert len(epochs) == 16, len(epochs)
		assert [e['epoch'] for e in epochs[:2]] == ['0', '1']
		assert epochs[0]['job'] == 'train'
		assert epochs[0]['epoch_s'] == '90'
		assert epochs[1]['hits'] == '4'
		assert epochs[0]['allreduce_s'] == '' and epochs[1]['allreduce_s'] == '2'
		assert epochs[0]['au_share'] == '0.1'
		for name in epochs[0]:
		    assert name not in ('seconds', 'au', 'wall_seconds')
	END
	run "$bin/gpemu-run" export nothing
	[ "$status" -eq 1 ]
	[[ $output == *"nothing/study.json: No such file"* ]]
	run "$bin/gpemu-run" export results/train -o no/where.csv
	[ "$status" -eq 1 ]
	run "$bin/gpemu-run" export
	[ "$status" -eq 2 ]
}

# bats test_tags=slow
@test "study: the example reads the table with pandas and draws a figure" {
	/usr/bin/python3 -c 'import matplotlib, pandas' 2>/dev/null ||
		skip "no pandas and matplotlib"
	example=$BATS_TEST_DIRNAME/../../examples/export.py
	train_workload
	gpemu_run w.yaml
	"$bin/gpemu-run" export results/train -o runs.csv
	export MPLCONFIGDIR=$TMPDIR
	run /usr/bin/python3 "$example" runs.csv -x fs.cache_size -y seconds -s train.loader
	echo "$output"
	[ "$status" -eq 0 ]
	[ "$(head -c 4 figure.png | tail -c 3)" = PNG ]
	# series, x, median, min, max, runs
	grep -qE '^ *async +10(.0)? +11.5 +11.0 +12.0 +2$' <<<"$output"
	run /usr/bin/python3 "$example" runs.csv -x fs.cache_size -y minutes
	[ "$status" -eq 1 ]
	[[ $output == *"no metric minutes"* ]]
}
