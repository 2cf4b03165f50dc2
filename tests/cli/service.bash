# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# For tests of the preparation service: a folder of 301 files, a dispatcher and
# workers in the background, a trainer that reads from them.

setup()
{
	BUILD=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}
	TRAIN=$BUILD/gpemu-train
	PREPD=$BUILD/gpemu-prepd
	cd "$BATS_TEST_TMPDIR" || return
	python3 - <<-'PY'
		import os
		os.makedirs('data/class')
		for i in range(301):
		    with open('data/class/%d' % i, 'wb') as f:
		        f.write(os.urandom(1 + 37 * i))
	PY
	pids=()
	via= TMP=
	# the key of programs that are given none
	export XDG_CONFIG_HOME=$BATS_TEST_TMPDIR/config
	ports
}

teardown()
{
	kill -9 "${pids[@]}" 2>/dev/null || true
	[ ${#pids[@]} = 0 ] || wait "${pids[@]}" 2>/dev/null || true
	[ -z "${TMP-}" ] || rm -rf "$TMP"
}

# addresses that nobody uses now: ${at[0]} of the dispatcher, the others of
# workers
ports()
{
	mapfile -t at < <(python3 - <<-'PY'
		import socket
		all = [socket.socket() for i in range(4)]
		for s in all:
		    s.bind(('127.0.0.1', 0))
		    print('127.0.0.1:%d' % s.getsockname()[1])
	PY
	)
}

# dispatcher OPTION...: in the background
dispatcher()
{
	"$PREPD" dispatcher --listen "${at[0]}" --timeout 2s --json d.json \
		"$@" >>d.out 2>&1 3>&- &
	d=$!
	pids+=($!)
}

# worker I OPTION...: the same
worker()
{
	local i=$1
	shift
	"$PREPD" worker --dispatcher "${at[0]}" --listen "${at[$i]}" \
		--workers 1 --json "w$i.json" "$@" >>"w$i.out" 2>&1 3>&- &
	w[i]=$!
	pids+=($!)
}

# train OPTION...: with a record r.json and a log of samples
train()
{
	$via "$TRAIN" --data data --index off --model alexnet --gpu a100 -b 8 \
		--prep none --loader service:split=2,wait=20s \
		--dispatcher "${at[0]}" --json r.json --dump-samples s.txt "$@"
}

# start OPTION...: the same in the background, slow enough that something may
# happen to it; returns in the middle of an epoch
start()
{
	rm -f s.txt
	# $t is then the trainer itself
	via="exec" train --prep emulated --image-size 8 "$@" >out 2>&1 3>&- &
	t=$!
	pids+=($!)
	until [ -s s.txt ]; do kill -0 $t; sleep .02; done
}

# wait for it
ended()
{
	wait $t || { cat out; false; }
}

# check EXPRESSION: `r` is the record, `s` its part of the service, `o` that of
# the offloading, `times` how often a sample came in an epoch
check()
{
	python3 - "$@" <<-'PY'
		import collections, json, os, sys
		r = json.load(open('r.json'))
		s, o = r.get('service'), r['offload']
		times = collections.Counter(tuple(line.split()[::2])
		    for line in open('s.txt') if line[0] != '#')
		for what in sys.argv[1:]:
		    if not eval(what):
		        sys.exit('not so: %s\n%s' % (what, json.dumps(s, indent=1)))
	PY
}
