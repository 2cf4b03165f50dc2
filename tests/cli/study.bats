# SPDX-License-Identifier: MIT
# gpemu-run: a study by several processes, in one folder or in shards.
bats_require_minimum_version 1.5.0
load standins

setup()
{
	standins_setup
	mkdir data
	echo 1 >data/a
	cat >cell.sh <<-'END'
		echo "$1-$2" >>"$STANDIN_LOG"
		[ ! -e "hang.$1-$2" ] || { : >"hangs.$1-$2"; exec sleep 1000; }
		echo "{\"n\": $1, \"seed\": $2}" >"$3"
	END
	cat >w.yaml <<-'END'
		name: study
		question: Is every cell run once?
		dataset: {dir: data}
		base:
		  exec: {command: [sh, cell.sh, '{n}{m}', '{seed}', '{record}']}
		axes:
		  exec.n: [1, 2, 3]
		  exec.m: [1, 2, 3, 4]
		metrics: {n: {path: n}, seed: {path: seed}}
		columns: [n, seed]
		expect: [{rising: n, along: exec.n}]
		repetitions: 2
		independent: true
		noise: 100%
	END
}

# start NAME [option...]: in the background; its output is in NAME.out
start()
{
	"$bin/gpemu-run" --no-mount "${@:2}" w.yaml >"$1.out" 2>&1 3>&- &
	pid=$!
}

wait_for()
{
	for _ in $(seq 200); do
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
