#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Ranks that MPI has started: one run on several nodes.

bats_require_minimum_version 1.5.0

setup_file() {
	local train=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}/gpemu-train

	[ -e "${train%/*}/gpemu-mpi.so" ] || skip "gpemu-train was built without MPI"
	command -v mpirun >/dev/null || skip "no mpirun"
	# Open MPI: also as root, also with more ranks than cores
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
	# Open MPI 5
	export PRTE_MCA_rmaps_default_mapping_policy=node:oversubscribe
	export PRTE_MCA_hwloc_default_binding_policy=none
	# MPI leaves memory behind, in modules that it unloads
	export ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0
	mkdir "$BATS_FILE_TMPDIR/data"
	for i in $(seq 120); do head -c 100 /dev/zero >"$BATS_FILE_TMPDIR/data/$i"; done
}

setup() {
	TRAIN=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}/gpemu-train
	DATA=$BATS_FILE_TMPDIR/data
	TMP=$BATS_TEST_TMPDIR
	JSON=$TMP/record.json
	COMMON="--data $DATA --prep none --loader sync --workers 1 --order torch --index off"
}

# Open MPI 5.0.7, of Debian 13, crashes.
takes_two_programs() {
	mpirun -n 1 true : -n 1 true || skip "mpirun fails by itself with two programs"
}

# What is true of the record r.
record() {
	python3 -c "
import json
r = json.load(open('$JSON'))
$1"
}

pid_of() { # the process that writes FILE
	find /proc/[0-9]*/fd -lname "$1" 2>/dev/null | sed -n '1s,/proc/\([0-9]*\)/.*,\1,p'
}

newest() { # the last step of which RANK has a checkpoint
	local at

	at=$(ls "$TMP/ck/rank-$1" 2>/dev/null | sed -n 's/checkpoint-0*\([0-9]*\).gpemu/\1/p' | tail -n 1)
	echo "${at:-0}"
}

# Wait until the last rank has a checkpoint after STEP of the run PID.
saved() {
	until [ "$(newest $((RANKS - 1)))" -gt "$1" ]; do
		sleep .05
		kill -0 "$2" || { cat "$TMP/err"; false; }
	done
}

@test "only runs on several nodes load MPI" {
	local file seen=0 mpi='libmpi|libopen-(rte|pal)|libpmix|libprrte|libhwloc|libevent'

	meson introspect "${TRAIN%/*}" --installed | python3 -c \
		'import json, sys; print(*json.load(sys.stdin), sep="\n")' >"$TMP/installed"
	while read -r file; do
		# programs and libraries; not the module itself
		[ "$(head -c 4 "$file" 2>/dev/null | tr -d '\0')" = $'\177ELF' ] || continue
		[ "${file##*/}" != gpemu-mpi.so ] || continue
		ldd "$file" >"$TMP/needs" 2>&1
		! grep -E "$mpi" "$TMP/needs" || { echo "$file"; false; }
		seen=$((seen + 1))
	done <"$TMP/installed"
	[ "$seen" -ge 14 ]
	ldd "${TRAIN%/*}/gpemu-mpi.so" | grep -E "$mpi"
	LD_DEBUG=files timeout 60 "$TRAIN" $COMMON -b 12 --time-scale .01 >"$TMP/out" 2>"$TMP/one"
	grep -q 'file=libc\.so' "$TMP/one"
	run grep -E "$mpi|gpemu-mpi" "$TMP/one"
	[ "$status" -eq 1 ]
	LD_DEBUG=files timeout 60 mpirun -n 2 "$TRAIN" $COMMON -b 6 --time-scale .01 \
		>"$TMP/out" 2>"$TMP/two"
	grep -qE 'file=[^ ]*gpemu-mpi\.so' "$TMP/two"
}

@test "1, 2 and 4 ranks: each sample once in an epoch, the same global batches" {
	for p in 1 2 4; do
		timeout 60 "$TRAIN" $COMMON -b $((12 / p)) -e 2 --time-scale .01 --nodes $p \
			--dump-samples "$TMP/$p.%r.log" --json "$JSON" >"$TMP/out" 2>"$TMP/err"
		# one table, not one for each rank
		[ "$(grep -c '^epoch' "$TMP/out")" -eq 1 ]
		record "
nodes = r.get('nodes', [])
assert len(nodes) == ($p if $p > 1 else 0), len(nodes)
assert [e['samples'] for e in r['epochs']] == [120, 120], r['epochs']
assert [e['steps'] for e in r['epochs']] == [10, 10]
assert r['config']['world_size'] == $p
for i, n in enumerate(nodes):
    assert n['rank'] == i and n['totals']['samples'] == 240 // $p, n
assert sum(n['straggler']['steps_last'] for n in nodes) <= 20
# the limits of the rig are those of the nodes
out = open('$TMP/out').read()
limits = ['(%s, node %d)' % (l['limit'], n['rank']) for n in nodes for l in n['rig']['limits']]
assert not nodes or r['rig'] is None and limits, r['rig']
assert not nodes or out.count('Limit of the testbed') == len(limits), (limits, out)
assert all('Limit of the testbed ' + l in out for l in limits), (limits, out)"
		[ $p -eq 1 ] && mv "$TMP/1.%r.log" "$TMP/1.0.log"
		python3 - "$TMP" $p <<-'PY'
			import collections, sys
			tmp, p = sys.argv[1], int(sys.argv[2])
			def read(p):
			    batch = collections.defaultdict(list)
			    for rank in range(p):
			        steps = collections.Counter()
			        for line in open(f'{tmp}/{p}.{rank}.log'):
			            epoch, step, sample = map(int, line.split()[:3])
			            steps[step] += 1
			            batch[epoch, step].append(sample)
			        assert set(steps.values()) == {12 // p} and len(steps) == 20, steps
			    return batch
			mine, alone = read(p), read(1)
			for epoch in 0, 1:
			    seen = [s for (e, _), b in mine.items() if e == epoch for s in b]
			    assert sorted(seen) == list(range(120)), seen
			order = [[s for (e, _), b in alone.items() if e == epoch for s in b] for epoch in (0, 1)]
			assert order[0] != order[1]
			assert {k: sorted(b) for k, b in mine.items()} == {k: sorted(b) for k, b in alone.items()}
		PY
	done
}

# bats test_tags=timed
@test "the slower node keeps the others waiting, and the record says for what" {
	[ -z "${GPEMU_SANITIZED-}" ] || skip "compares times"
	takes_two_programs
	local node="$TRAIN --data $DATA --index off --workers 1 --prep emulated -b 10 --node config-ssd-v100 --gpus 1 --max-steps 5
		--time-scale 4 --json $JSON"

	timeout 60 mpirun -n 1 $node --cores 32 : -n 1 $node --cores 1 -v >"$TMP/out"
	grep -q '^2 nodes, 20 samples per step. Node 1 kept the others waiting longest: .* for its transforms' "$TMP/out"
	record "
fast, slow = r['nodes']
assert r['node']['allreduce']['ranks'] == 2
assert slow['straggler']['steps_last'] >= 4, slow
wait = slow['straggler']['kept_waiting_s']
assert slow['straggler']['prep_s'] > .6 * wait > 0, slow['straggler']
assert abs(fast['straggler']['waited_s'] - wait) < 1e-6, fast
# who waits for a node that waits for data waits for data
a, b = fast['totals'], slow['totals']
assert a['barrier_wait_s'] < .2 * wait, a
assert a['prep_stall_s'] > .8 * b['prep_stall_s'] > 0, (a, b)
# both made the same steps at the same time
assert a['steps'] == b['steps'] == 5
assert abs(a['seconds'] - b['seconds']) < .1 * b['seconds'], (a, b)
assert a['allreduce_s'] == b['allreduce_s'] > 0
# and the fast one slept, with little else to do
assert a['cpu_s'] < .1 * a['wall_seconds'], a"
}

# bats test_tags=slow
@test "a killed rank ends the run on all ranks, and a resume visits each sample once" {
	local RANKS=4 before=0 from victim pid rank
	local run="$TRAIN $COMMON -b 3 -e 3 --model alexnet --checkpoint-dir $TMP/ck --checkpoint-every 2
		--checkpoint-size 64K --dump-samples $TMP/%r.log --resume --json $JSON"

	for victim in 1 0; do
		timeout 60 mpirun -n 4 $run --time-scale 120 >"$TMP/out" 2>"$TMP/err" 3>&- &
		pid=$!
		saved $before $pid
		before=$(newest 3)
		kill -9 "$(pid_of "$TMP/$victim.log")"
		from=$SECONDS
		! wait $pid || false
		[ $((SECONDS - from)) -lt 8 ]
		for rank in 0 1 2 3; do
			[ $rank -eq $victim ] || grep -q "rank $rank: rank $victim has died" "$TMP/err" ||
				{ cat "$TMP/err"; false; }
		done
	done
	timeout 60 mpirun -n 4 $run --time-scale .01 >"$TMP/out"
	grep -q "^Resumed from step .*, of which all 4 ranks have a checkpoint" "$TMP/out"
	record "assert r['resumed']['step'] >= $before - 2, r['resumed']"
	cat "$TMP"/?.log | awk '{ print $1, $3 }' | sort | uniq -c >"$TMP/seen"
	[ "$(wc -l <"$TMP/seen")" -eq 360 ]
	awk '$1 != 1 { exit 1 }' "$TMP/seen"
}

@test "an interrupted rank ends the run on all after a step, with a record" {
	local RANKS=2 pid

	timeout 60 mpirun -n 2 "$TRAIN" $COMMON -b 3 -e 9 --model alexnet --time-scale 20 \
		--checkpoint-dir "$TMP/ck" --checkpoint-every 2 --checkpoint-size 64K \
		--dump-samples "$TMP/%r.log" --json "$JSON" >"$TMP/out" 2>"$TMP/err" 3>&- &
	pid=$!
	saved 1 $pid
	kill -INT "$(pid_of "$TMP/1.log")"
	! wait $pid || false
	grep -q 'rank 0: interrupted after [0-9]* of 180 steps' "$TMP/err" || { cat "$TMP/err"; false; }
	record "
assert r['interrupted'] and len(r['nodes']) == 2
a, b = (n['totals']['steps'] for n in r['nodes'])
assert 0 < a == b < 180, (a, b)"
}

@test "ranks that do not fit together are refused, by the rank that differs" {
	run timeout 60 mpirun -n 2 "$TRAIN" $COMMON --steps "$TMP/steps"
	[ "$status" -ne 0 ]
	[[ $output == *"rank 0: --steps $TMP/steps: each rank writes its own: the name needs a %r"* ]]
	[ "$(grep -c 'needs a %r' <<<"$output")" -eq 1 ]
	run "$TRAIN" $COMMON --mpi on --world-size 2
	[ "$status" -eq 2 ]
	[[ $output == *"--world-size: not with --mpi on"* ]]
	takes_two_programs
	run timeout 60 mpirun -n 1 "$TRAIN" $COMMON -b 3 : -n 1 "$TRAIN" $COMMON -b 4
	[ "$status" -ne 0 ]
	[[ $output == *"rank 1: all ranks need the same --batch: rank 0 has 3, and rank 1 has 4"* ]]
	run timeout 60 mpirun -n 1 "$TRAIN" $COMMON : -n 1 "$TRAIN" $COMMON --data "$TMP/none"
	[ "$status" -ne 0 ]
	[[ $output == *"rank 1: "*"$TMP/none: No such file"* ]]
	[[ $output == *"rank 0: rank 1 failed"* ]]
}

@test "gpemu-run starts the nodes of a cell, each with its own mount" {
	[ -r /dev/fuse ] || skip "no /dev/fuse"
	unset ${!OMPI_*} ${!PRTE_*}
	mkdir -p "$TMP/data/c"
	cp "$DATA"/* "$TMP/data/c"
	cat >"$TMP/w.yaml" <<-'YAML'
		name: nodes
		question: Does it run?
		dataset: {dir: data}
		base:
		  fs: {storage: ideal, cache_policy: minio, cache_size: 50%}
		  train: {batch: 5, epochs: 2, prep: none, workers: 1, order: locality, nodes: 2}
		noise: 100%
		time_scale: 0.1
		expect:
		  - {that: hit_ratio > 70, kind: self}
	YAML
	cd "$TMP"
	run timeout 100 "${TRAIN%-train}-run" w.yaml
	[ "$status" -eq 0 ] || { echo "$output"; cat results/nodes/logs/*; false; }
	JSON=$(ls results/nodes/records/*.json)
	record "
assert len(r['nodes']) == 2 and r['totals']['samples'] == 240
a, b = (r['mounts']['data-%d' % i]['epochs'] for i in (0, 1))
# each mount had its node's half, and kept it
assert a[0]['misses'] == b[0]['misses'] == 60, (a, b)
assert a[1]['hits'] + b[1]['hits'] == r['mount']['epochs'][1]['hits'] > 80, (a, b)
assert a[1]['hits'] + a[1]['misses'] == 60, a"
}

# nodes_with_peers BYTES OPTIONS: two nodes whose caches together hold 120 files
nodes_with_peers() {
	mkdir -p "$TMP/data/c"
	for i in $(seq 120); do head -c "$1" /dev/urandom >"$TMP/data/c/$i"; done
	cat >"$TMP/w.yaml" <<-YAML
		name: peers
		question: Does it run?
		dataset: {dir: data}
		base:
		  fs: {storage: ideal, cache_size: 52%, peers: auto, nic: ethernet-1g}
		  train: {batch: 10, epochs: 2, prep: none, workers: 1, loader: sync, nodes: 2, $2}
		noise: 100%
		time_scale: 0.1
		expect:
		  - {that: hit_ratio > 50, kind: self}
	YAML
	cd "$TMP"
}

mounts_of() { # OPTIONS of pgrep: the processes of gpemu-fs below $TMP
	pgrep "$@" -f "gpemu-fs.*$TMP/data" || true
}

networks_of() { # interfaces and named namespaces of the machine
	ip -br link | awk '{ print $1 }'
	ls /run/netns 2>/dev/null || true
}

# No mount, and no process in the network namespace SPACE.
nothing_runs() {
	[ -z "$(mounts_of)" ] && ! readlink /proc/[0-9]*/ns/net 2>/dev/null | grep -qF "$1"
}

@test "the nodes of a cell share their caches, in network namespaces or on loopback" {
	[ -r /dev/fuse ] || skip "no /dev/fuse"
	unset ${!OMPI_*} ${!PRTE_*}
	local networks=loopback network

	nodes_with_peers 20000 "order: locality"
	! unshare -n ip link add type veth 2>/dev/null || networks="namespaces loopback"
	for network in $networks; do
		run timeout 100 "${TRAIN%-train}-run" --network $network -o $network w.yaml
		[ "$status" -eq 0 ] || { echo "$output"; cat $network/logs/*; false; }
		JSON=$(ls $network/records/*.json)
		record "
assert r['cell']['network'] == '$network', r['cell']['network']
a, b = (r['mounts']['data-%d' % i] for i in (0, 1))
address = b['peer']['peers'][0]['address']
assert address.startswith('10.' if '$network' == 'namespaces' else '127.'), address
assert a['peer']['connected'] == b['peer']['connected'] == 1
# each rank reads from its own storage what its own cache keeps, once
assert a['epochs'][0]['backend_reads'] + b['epochs'][0]['backend_reads'] == 120
assert a['epochs'][1]['backend_reads'] + b['epochs'][1]['backend_reads'] == 0
# and what it has too little of from the other's cache
moved = a['epochs'][1]['misses'] + b['epochs'][1]['misses']
assert 0 < moved < 30, moved
assert a['peer']['served'] + b['peer']['served'] >= moved"
	done
}

@test "no network is left behind, however gpemu-run ends" {
	[ -r /dev/fuse ] || skip "no /dev/fuse"
	unshare -n ip link add type veth 2>/dev/null || skip "no network namespaces"
	unset ${!OMPI_*} ${!PRTE_*}
	local signal pid space before

	nodes_with_peers 100 "model: alexnet"
	export TMPDIR=$TMP # of a killed one something is left there
	before=$(networks_of)
	for signal in INT KILL; do
		"${TRAIN%-train}-run" --fresh --network namespaces --time-scale 100 w.yaml >/dev/null 2>&1 3>&- &
		pid=$!
		# not the processes that a mount starts for a moment
		until [ "$(mounts_of -P $pid | wc -l)" -ge 2 ]; do sleep .05; kill -0 $pid; done
		space=$(readlink "/proc/$(mounts_of -P $pid | head -n 1)/ns/net")
		[ "$space" != "$(readlink /proc/self/ns/net)" ]
		kill -$signal $pid
		wait $pid || true
		# of a killed one the kernel ends the mounts
		for i in $(seq 200); do ! nothing_runs "$space" || break; sleep .05; done
		nothing_runs "$space"
		[ "$(networks_of)" = "$before" ]
	done
}

# bats test_tags=timed
@test "gradients wait for the traffic of the caches on the card of the node" {
	[ -r /dev/fuse ] || skip "no /dev/fuse"
	[ -z "${GPEMU_SANITIZED-}" ] || skip "compares times"
	unset ${!OMPI_*} ${!PRTE_*}
	# each rank reads the same files in each epoch
	nodes_with_peers 400000 "model: squeezenet1_1, node: ethernet-1g, gpus: 1, order: sequential"
	run timeout 100 "${TRAIN%-train}-run" --network loopback --time-scale 1 w.yaml fs.cache_size=100%
	[ "$status" -eq 0 ] || { echo "$output"; cat results/peers/logs/*; false; }
	JSON=$(ls results/peers/records/*.json)
	record "
e = r['epochs']
# epoch 1 reads its own caches only: the modelled time, exactly
c = r['node']['allreduce']
assert c['ranks'] == 2 and c['gb_per_s'] == .125, c
first, later = e[0]['allreduce_s'], e[1]['allreduce_s']
late = [n['straggler']['card_s'] for n in r['nodes']]
assert 0 < max(late) <= first - later + 1e-9 <= sum(late) + 2e-9, (late, first, later)"
}
