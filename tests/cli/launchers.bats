#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Conventions of those that start ranks: mpirun with a hostfile, srun.
#
# Several machines are stood in for by a network of its own, in which no port
# is taken: an agent of mpirun that starts its daemons here, and two slurmd.

bats_require_minimum_version 1.5.0
load processes
load slurm

setup() {
	BUILD=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}
	TRAIN=$BUILD/gpemu-train
	TMP=$BATS_TEST_TMPDIR
	JSON=$TMP/record.json
	DATA=$TMP/data
	mkdir "$DATA"
	for i in $(seq 40); do head -c 100 /dev/zero >"$DATA/$i"; done
	COMMON="--prep none --loader sync --workers 1 --index off -b 5 -e 2 --time-scale .01"
	# MPI leaves memory behind, in modules that it unloads
	export ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	pids=
}

teardown() {
	local at

	while read -r _ at _; do
		[[ $at != "$TMP"/* ]] || fusermount3 -u -z "$at"
	done </proc/mounts
	# the last one started ends first
	end_processes $pids
}

need_mpi() {
	[ -e "${TRAIN%/*}/gpemu-mpi.so" ] || skip "gpemu-train was built without MPI"
	command -v mpirun >/dev/null || skip "no mpirun"
}

# What is true of the record r.
record() {
	python3 -c "
import json
r = json.load(open('$JSON'))
$1"
}

two_nodes() {
	record "
assert [n['rank'] for n in r['nodes']] == [0, 1], r['nodes']
assert [n['totals']['samples'] for n in r['nodes']] == [40, 40]
assert [e['samples'] for e in r['epochs']] == [40, 40]"
}

@test "processes that cannot find each other end with an error, and without a record" {
	local alone="$TRAIN --data $DATA $COMMON --json $JSON" n

	# srun without PMI: no rank asks MPI, each says so
	for n in 0 1; do
		run env SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=$n $alone
		[ "$status" -eq 1 ]
		[[ $output == *"srun has started 2 processes that cannot connect: it needs --mpi=pmix"* ]]
		[ ! -e "$JSON" ]
	done
	# one process of a step, or of an mpirun that Slurm starts, is alone
	env SLURM_STEP_NUM_TASKS=1 $alone
	record "assert r['totals']['samples'] == 80"
	env SLURM_STEP_NUM_TASKS=2 OMPI_COMM_WORLD_SIZE=1 $alone
	env SLURM_STEP_NUM_TASKS=2 $alone --mpi off
	rm "$JSON"
	need_mpi
	# the mpirun of another MPI
	for n in auto on; do
		run env PMI_SIZE=2 $alone --mpi $n
		[ "$status" -eq 1 ]
		[[ $output == *"2 processes were started, but MPI knows of one"* ]]
		[ ! -e "$JSON" ]
	done
}

workload() { # OPTIONS of gpemu-train: w.yaml in the test's folder
	cd "$TMP"
	cat >w.yaml <<-YAML
		name: cells
		question: Does it run?
		dataset: {dir: data}
		base:
		  fs: {storage: ideal}
		  train: {batch: 5, prep: none, workers: 1, $1}
		noise: 100%
	YAML
}

@test "the cells of a gpemu-run that srun has started are no ranks" {
	workload "epochs: 1"
	run env SLURM_STEP_NUM_TASKS=2 "$BUILD/gpemu-run" --no-mount w.yaml
	[ "$status" -eq 0 ] || { echo "$output"; cat results/cells/logs/*; false; }
}

@test "a hostfile: one rank on each machine first, connected over the network" {
	need_mpi
	network
	# each daemon has a folder of its own, as on a machine of its own
	cat >"$TMP/agent" <<-END
		#!/bin/sh
		export TMPDIR=$TMP/\$1
		mkdir -p "\$TMPDIR" && shift && exec sh -c "\$*"
	END
	chmod +x "$TMP/agent"
	printf 'node0 slots=2\nnode1 slots=2\n' >"$TMP/hosts"
	export OMPI_MCA_plm_rsh_agent=$TMP/agent OMPI_MCA_opal_if_do_not_resolve=1
	export OMPI_MCA_orte_default_hostfile=$TMP/hosts
	OMPI_MCA_rmaps_base_display_map=1 \
		$in_net timeout 60 "$TRAIN" --data "$DATA" $COMMON --nodes 2 --json "$JSON" >"$TMP/out"
	two_nodes
	grep -q 'node0.*Num procs: 1' "$TMP/out" && grep -q 'node1.*Num procs: 1' "$TMP/out" ||
		{ cat "$TMP/out"; false; }
	unset OMPI_MCA_orte_default_hostfile
	rm "$JSON"
	$in_net timeout 60 mpirun --hostfile "$TMP/hosts" -n 2 --map-by node --bind-to none \
		"$TRAIN" --data "$DATA" $COMMON --json "$JSON"
	two_nodes
}

@test "the nodes of a cell are on this machine, whatever the hostfile" {
	need_mpi
	printf '#!/bin/sh\necho "$1" >>%s/started\n' "$TMP" >"$TMP/agent"
	chmod +x "$TMP/agent"
	printf 'node0\nnode1\n' >"$TMP/hosts"
	export OMPI_MCA_plm_rsh_agent=$TMP/agent OMPI_MCA_opal_if_do_not_resolve=1
	export OMPI_MCA_orte_default_hostfile=$TMP/hosts
	workload "nodes: 2"
	timeout 60 "$BUILD/gpemu-run" --no-mount w.yaml || { cat results/cells/logs/*; false; }
	[ ! -e "$TMP/started" ]
}

@test "srun: a rank with its own mount on each node; without PMI an error" {
	need_mpi
	[ -w /dev/fuse ] || skip "no /dev/fuse"
	slurm
	mkdir "$TMP/mnt0" "$TMP/mnt1"
	$in_net salloc -N 2 sh -e <<-END
		srun -K --mpi=pmix sh -c '"$BUILD/gpemu-fs" -s ideal "$DATA" "$TMP/mnt"\$SLURM_PROCID &&
			exec "$TRAIN" --data "$TMP/mnt%r" $COMMON --json "$JSON"'
		srun sh -c 'cp "$TMP/mnt"\$SLURM_PROCID/.gpemu/stats "$TMP/stats"\$SLURM_PROCID &&
			fusermount3 -u "$TMP/mnt"\$SLURM_PROCID'
	END
	two_nodes
	for i in 0 1; do
		python3 -c "
import json
s = json.load(open('$TMP/stats$i'))
assert s['misses'] + s['hits'] == 40, s"
	done
	rm "$JSON"
	run $in_net srun -N 2 "$TRAIN" --data "$DATA" $COMMON --json "$JSON"
	[ "$status" -ne 0 ]
	[ "$(grep -c 'srun has started 2 processes that cannot connect' <<<"$output")" -eq 2 ]
	[ ! -e "$JSON" ]
	# mpirun takes the nodes from the job, also in a step that holds them
	for step in "" "srun -N 1 -n 1"; do
		$in_net timeout 60 salloc -N 2 $step "$TRAIN" --data "$DATA" $COMMON --nodes 2 --json "$JSON"
		two_nodes
		rm "$JSON"
	done
}
