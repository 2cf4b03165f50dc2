#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Every program started with stdin, stdout, stderr or all three closed.

bats_require_minimum_version 1.5.0
load mount

setup()
{
	BUILD=$(realpath "${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}")
	PATH=$BUILD:$PATH
	unset GPEMU_BIN GPEMU_PROFILES
	cd "$BATS_TEST_TMPDIR" || return
	mkdir files
	for i in $(seq 8); do
		head -c 1000 /dev/urandom >files/$i.bin
	done
}

teardown()
{
	common_teardown
}

# closed in|out|err|all COMMAND...
closed()
{
	case $1 in
	in) "${@:2}" <&- ;;
	out) "${@:2}" >&- ;;
	err) "${@:2}" 2>&- ;;
	all) "${@:2}" <&- >&- 2>&- ;;
	esac
}

# prints COMMAND...: something to stdout; only a closed stdout is an error
prints()
{
	local how

	for how in in err; do
		closed $how "$@" >out
		[ -s out ]
	done
	for how in out all; do
		run --separate-stderr closed $how "$@"
		[ "$status" -eq 1 ]
		[ $how = all ] || [[ $stderr == *"stdout: "* ]]
	done
}

# null PID: 0, 1 and 2 of a daemon are /dev/null
null()
{
	local fd

	for fd in 0 1 2; do
		[ "$(readlink "/proc/$1/fd/$fd")" = /dev/null ]
	done
}

@test "gpemu-fs mounts, and reads match the source" {
	common_setup
	cp files/* "$src"
	for how in in out err all; do
		closed $how gpemu-fs "$src" "$mp" 3>&-
		null "$(daemon_pid)"
		[ "$(tree_sum "$mp")" = "$(tree_sum "$src")" ]
		fusermount3 -u "$mp"
		eventually no_daemon
	done
	closed all gpemu-fs -f "$src" "$mp" 3>&- &
	pids=$!
	eventually is_mounted
	[ "$(tree_sum "$mp")" = "$(tree_sum "$src")" ]
	eventually fusermount3 -u "$mp"
	wait "$pids"
	# the caller still gets the error
	for how in in out err all; do
		run closed $how gpemu-fs nowhere "$mp"
		[ "$status" -eq 1 ]
	done
}

@test "gpemu-train" {
	# the log of steps is open while messages are written
	train=(gpemu-train -v --data files --loader sync --prep none -b 4
		--time-scale 0.01 --steps steps --trace trace --json record)
	prints "${train[@]}"
	for how in in out err all; do
		rm -f steps record
		closed $how "${train[@]}" >out 2>err || [[ $how =~ out|all ]]
		python3 - <<-'PY'
			import csv, json
			assert json.load(open('record'))['totals']['steps'] == 2
			json.load(open('trace'))
			steps = list(csv.reader(open('steps')))
			assert len(steps) == 3 and len(set(map(len, steps))) == 1, steps
		PY
	done
}

@test "gpemu-data, gpemu-profile, gpemu-cachesim" {
	prints gpemu-data stat files
	for how in in out err all; do
		closed $how gpemu-data sum files >sums.$how || [[ $how =~ out|all ]]
		closed $how gpemu-data pack --force files "p.$how" ||
			[[ $how =~ out|all ]]
		cmp p.in "p.$how"
	done
	cmp sums.in sums.err
	prints gpemu-profile list
	prints gpemu-profile show gpu v100
	printf '%s\n' 0,1,100 1,2,100 2,1,100 >t.csv
	prints gpemu-cachesim --trace t.csv -p lru -c 50% --json j
}

@test "gpemu-gpud and gpemu-smi" {
	for how in in out err all; do
		closed $how gpemu-gpud --socket "$PWD/s" 3>&- &
		pids=$!
		eventually test -S s
		eventually gpemu-smi --socket s >out
		server=$(pgrep -P "$pids" gpemu-gpud)
		for fd in 0 1 2; do
			[[ $(readlink "/proc/$server/fd/$fd") != socket:* ]]
		done
		prints gpemu-smi --socket s
		kill "$server"
		wait "$pids"
	done
}

@test "gpemu-run" {
	common_setup
	cp files/* "$src"
	cat >w.yaml <<-'END'
		name: w
		question: Does it run?
		dataset: {dir: src}
		base:
		  fs: {storage: ideal}
		  train: {loader: sync, prep: none, batch: 4}
		time_scale: 0.01
		noise: 100%
	END
	prints gpemu-run check w.yaml
	for how in in out err all; do
		closed $how gpemu-run -o "r.$how" w.yaml || [[ $how =~ out|all ]]
		python3 - "r.$how" <<-'PY'
			import glob, json, sys
			record, = glob.glob(sys.argv[1] + '/records/*')
			assert json.load(open(record))['totals']['steps'] == 2
		PY
	done
}
