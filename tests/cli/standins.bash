# SPDX-License-Identifier: MIT
# What tests of gpemu-run on stand-ins for its programs share.

# In the test's own folder; what the stand-ins did is in standin.log.
standins_setup()
{
	bin=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}
	cd "$BATS_TEST_TMPDIR" || return
	export GPEMU_BIN=$BATS_TEST_DIRNAME/run-standins
	export STANDIN_LOG=$BATS_TEST_TMPDIR/standin.log
	export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
	export TMPDIR=$BATS_TEST_TMPDIR/tmp
	mkdir "$TMPDIR"
	: >"$STANDIN_LOG"
}

gpemu_run()
{
	case $1 in
	check) "$bin/gpemu-run" "$@" --no-mount ;;
	compare | export) "$bin/gpemu-run" "$@" ;;
	*) "$bin/gpemu-run" --no-mount "$@" ;;
	esac
}

# A study of 24 cells, w.yaml; a cell waits while a file hang.NM-SEED is there.
study_setup()
{
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
		expect: [{rising: n, along: exec.n, kind: order}]
		repetitions: 2
		independent: true
		noise: 100%
	END
}

# busy NAME: a program that keeps this CPU busy for .5 s in 2.5 s, from when
# something is in the file NAME
busy()
{
	exec timeout 30 sh -c 'until [ -s $0 ]; do sleep .01; done
		while :; do timeout .5 sh -c "while :; do :; done"; sleep 2; done' \
		"$1" 3>&-
}
