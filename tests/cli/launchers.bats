#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Conventions of those that start ranks: mpirun, srun.

bats_require_minimum_version 1.5.0

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
	local pid at

	while read -r _ at _; do
		[[ $at != "$TMP"/* ]] || fusermount3 -u -z "$at"
	done </proc/mounts
	# the last one started ends first
	for pid in $pids; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" || true
	done
}

need_mpi() {
	ldd "$TRAIN" | grep -q libmpi || skip "gpemu-train was built without MPI"
	command -v mpirun >/dev/null || skip "no mpirun"
}

# What is true of the record r.
record() {
	python3 -c "
import json
r = json.load(open('$JSON'))
$1"
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
