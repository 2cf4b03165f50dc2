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
