#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-run --slurm: a study as an array of jobs.

bats_require_minimum_version 1.5.0
load processes
load standins
load slurm

setup() {
	standins_setup
	study_setup
	TMP=$BATS_TEST_TMPDIR
	pids=
}

teardown() {
	end_processes $pids
}

# An sbatch that runs a job at once, the tasks of an array one after the other;
# the tasks that the file `never` lists do not begin.
stand_in() {
	mkdir "$TMP/path"
	cat >"$TMP/path/sbatch" <<-'END'
		#!/bin/bash
		printf '%s\n' "$*" >>sbatch.log
		job=$(($(wc -l <sbatch.log) + 100))
		for word; do
			case $word in
			--array=1-*) tasks=$(seq "${word#*-*-*-}") ;;
			--output=*) output=${word#*=} ;;
			esac
		done
		for i in ${tasks-no}; do
			! grep -qsx "$i" never || continue
			SLURM_ARRAY_TASK_ID=$i SLURM_JOB_ID=$job sh "${!#}" \
				>>"${output//%a/$i}" 2>&1
			status=$?
		done
		echo "$job;cluster"
		exit $status
	END
	chmod +x "$TMP/path/sbatch"
	PATH=$TMP/path:$PATH
}

@test "slurm: an array of shards, and their merge, are the whole study" {
	stand_in
	gpemu_run -o whole w.yaml
	: >standin.log
	run gpemu_run -o "it's here" --slurm 5 --slurm-options '-p gpu  -t 10' \
		--json job.json w.yaml repetitions=2
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *"24 cells in 5 shards, job 101; they are merged by job 102"* ]]
	cmp whole/table.txt "it's here/table.txt"
	[ "$(wc -l <standin.log)" -eq 24 ]
	[ "$(ls "it's here/shards" | wc -l)" -eq 5 ]
	grep -q 'of its . cells have a record' "it's here/slurm/3.log"
	grep -q '"merge_job": "102"' job.json
	[ "$(sed -n 1p sbatch.log)" = "--parsable --requeue --open-mode=append --array=1-5 --output=$TMP/it's here/slurm/%a.log --job-name=study -p gpu -t 10 $TMP/it's here/slurm/shard.sh" ]
	[ "$(sed -n 2p sbatch.log)" = "--parsable --dependency=afterany:101 --output=$TMP/it's here/slurm/merge.log --job-name=study-merge -p gpu -t 10 $TMP/it's here/slurm/merge.sh" ]
	# options and keys go to the shards
	grep -q 'no_mount: true' "it's here/slurm/options.yaml"
	grep -q "'repetitions=2'" "it's here/slurm/shard.sh"
}

@test "slurm: a shard that did not begin is missed, and resumes when it does" {
	stand_in
	echo 2 >never
	run gpemu_run -o out --slurm 4 w.yaml
	[ "$status" -eq 1 ]
	grep -q '6 of 24 cells have no record' out/slurm/merge.log
	rm never
	: >standin.log
	run gpemu_run -o out --slurm 4 w.yaml
	[ "$status" -eq 0 ]
	[ "$(wc -l <standin.log)" -eq 6 ]
	[ -s out/table.txt ]
}

@test "slurm: --dry-run prints the scripts and the commands" {
	run gpemu_run -o out -n --slurm 3 w.yaml
	[ "$status" -eq 0 ]
	[ ! -e out ]
	[[ $output == *"--shard \"\$SLURM_ARRAY_TASK_ID/3\""*"'sbatch' '--parsable'"*"'--array=1-3'"*"afterany:JOB"* ]]
}

@test "slurm: what cannot be submitted" {
	run gpemu_run --slurm 25 w.yaml
	[ "$status" -eq 1 ]
	[[ $output == *"--slurm 25: study has only 24 cells"* ]]
	for wrong in '--slurm 2 --fresh' '--slurm 2 --shard 1/2' '--slurm-options -pgpu' \
		'--slurm 2 --find-max-gpus'; do
		run gpemu_run $wrong w.yaml
		[ "$status" -eq 2 ]
	done
	mkdir refuses
	printf '#!/bin/sh\necho "sbatch: error: invalid partition" >&2\nexit 1\n' >refuses/sbatch
	chmod +x refuses/sbatch
	PATH=$PWD/refuses:$PATH run gpemu_run --slurm 2 w.yaml
	[ "$status" -eq 1 ]
	[[ $output == *"invalid partition"*"sbatch has submitted no job"* ]]
	! command -v sbatch >/dev/null || return 0
	run gpemu_run --slurm 2 w.yaml
	[ "$status" -eq 75 ]
	[[ $output == *"sbatch: No such file"* ]]
}

@test "slurm: eight shards on two nodes, one requeued while it runs" {
	slurm
	gpemu_run -o whole w.yaml
	: >standin.log
	: >hang.21-1
	$in_net env PATH="$PATH" "$bin/gpemu-run" --no-mount -o out --slurm 8 \
		--json job.json w.yaml
	job=$(sed -n 's/.*"job": "\([0-9]*\)".*/\1/p' job.json)
	merge=$(sed -n 's/.*"merge_job": "\([0-9]*\)".*/\1/p' job.json)
	for try in {1..600}; do
		[ ! -e hangs.21-1 ] || break
		sleep .1
	done
	task=$($in_net squeue -h -j "$job" -t R -o %K |
		while read -r i; do
			! "$bin/gpemu-run" --no-mount -n --shard "$i/8" w.yaml | grep -q '^2-1-r1-' || echo "$i"
		done)
	[ -n "$task" ]
	$in_net scontrol requeue "${job}_$task"
	# else the cell ends before it is killed
	for try in {1..600}; do
		[ -n "$($in_net squeue -h -j "${job}_$task" -t R,CG 2>/dev/null)" ] || break
		sleep .1
	done
	rm hang.21-1
	for try in {1..600}; do
		[ "$($in_net squeue -h -j "$job,$merge" 2>/dev/null | wc -l)" -gt 0 ] || break
		# Slurm would wait for two minutes
		$in_net scontrol update "JobId=${job}_$task" StartTime=now 2>/dev/null || true
		sleep .1
	done
	$in_net squeue
	cat out/slurm/merge.log
	cmp whole/table.txt out/table.txt
	# only the cell that hung has run twice
	[ "$(sort standin.log | uniq -d)" = 21-1 ]
}

# bats test_tags=slow
@test "slurm: four jobs on three GPUs, the fourth waits" {
	[ "$(id -u)" -eq 0 ] || skip "device files need root"
	cat >node.yaml <<-YAML
		gpus:
		  v100: {count: 3, server: $TMP/v100/gpud.sock, device: $TMP/gpu}
	YAML
	for i in 0 1 2; do mknod "gpu$i" c 1 3; done
	"$bin/gpemu-slurm" --nodes 'n[0-1]' --cpus 4 -o "$TMP/conf" --run-dir "$TMP/run" node.yaml
	mkdir slurm
	cp conf/gres.conf slurm
	grep -v '^NodeName' conf/nodes.conf >more
	slurm "$(sed -n 's/^NodeName=[^ ]* //p' conf/nodes.conf)" more
	cat >job <<-END
		#!/bin/sh
		echo "\$CUDA_VISIBLE_DEVICES \$GPEMU_GPU_SERVER" >"$TMP/job.\$SLURM_JOB_ID"
		until [ -e "$TMP/go" ]; do sleep .1; done
		exec "$bin/gpemu-train" --loader null --gpu-server "\$GPEMU_GPU_SERVER" \
			--max-steps 5 --pin off
	END
	for i in 1 2 3 4; do
		$in_net sbatch -w n0 --gres=gpu:v100:1 -o "$TMP/%j.out" job
	done
	for try in {1..600}; do
		[ "$($in_net squeue -h -t R | wc -l)" -lt 3 ] || break
		sleep .1
	done
	sleep 1
	[ "$($in_net squeue -h -t R | wc -l)" -eq 3 ]
	[ "$($in_net squeue -h -t PD -o %r)" = Resources ]
	[ "$(cut -d" " -f1 job.* | sort | tr '\n' ' ')" = "0 1 2 " ]
	[ "$(cut -d" " -f2 job.* | sort -u)" = "$TMP/v100/gpud.sock" ]
	: >go
	for try in {1..600}; do
		[ -n "$($in_net squeue -h)" ] || break
		sleep .1
	done
	[ "$(ls job.* | wc -l)" -eq 4 ]
	grep -l 'Shared GPU' ./*.out | wc -l | grep -qx 4
	# on two of them without an option
	$in_net timeout 120 srun -w n0 --gres=gpu:v100:2 "$bin/gpemu-train" \
		--loader null --pin off --max-steps 5 --json "$TMP/two.json"
	python3 -c 'import json, sys
assert json.load(open(sys.argv[1]))["sharing"]["gpus"] == [0, 1]' two.json
	# the last epilog ends the server
	for try in {1..100}; do
		[ -e run/v100.pid ] || break
		sleep .1
	done
	[ ! -e run/v100.pid ]
}

@test "slurm: each rank trains on the GPU that its node was handed" {
	[ "$(id -u)" -eq 0 ] || skip "device files need root"
	[ -e "$bin/gpemu-mpi.so" ] || skip "gpemu-train was built without MPI"
	export ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 # MPI's
	mkdir slurm
	for node in n0 n1; do
		mknod "$node-gpu0" c 1 3
		cat >$node.yaml <<-YAML
			gpus:
			  v100: {count: 1, server: $TMP/$node/gpud.sock, device: $TMP/$node-gpu}
		YAML
		"$bin/gpemu-slurm" --nodes $node -o "$TMP/conf/$node" --run-dir "$TMP/run/$node" $node.yaml
		cat conf/$node/gres.conf >>slurm/gres.conf
	done
	# of two nodes on one machine, each has its own files
	for script in prolog epilog task_prolog; do
		printf '#!/bin/sh\nexec "%s/conf/$SLURMD_NODENAME/%s"\n' "$TMP" $script >$script
		chmod +x $script
	done
	grep -v '^NodeName' conf/n0/nodes.conf | sed 's|conf/n0/||' >more
	slurm "$(sed -n 's/^NodeName=[^ ]* //p' conf/n0/nodes.conf)" more
	# the ranks of one run, with GPUs of their own; a run on each node's server
	$in_net timeout 120 salloc -N 2 --gres=gpu:v100:1 sh -e <<-END
		srun -K --mpi=pmix sh -c 'echo \$SLURM_PROCID \$CUDA_VISIBLE_DEVICES >>gpus &&
			exec "$bin/gpemu-train" --loader null --gpu "\$GPEMU_GPU_PROFILE" \
				--max-steps 5 --json record.json'
		srun sh -c 'exec "$bin/gpemu-train" --mpi off --loader null \
			--gpu-server "\$GPEMU_GPU_SERVER" --pin off --max-steps 5 \
			--json "\$SLURMD_NODENAME.json"'
	END
	[ "$(sort gpus | tr '\n' ' ')" = "0 0 1 0 " ]
	TMP=$TMP python3 - <<-'PY'
		import json, os
		nodes = json.load(open('record.json'))['nodes']
		assert [n['rank'] for n in nodes] == [0, 1], nodes
		for name in ('n0', 'n1'):
		    gpu = json.load(open(name + '.json'))['sharing']
		    at = '%s/%s/gpud.sock' % (os.environ['TMP'], name)
		    assert (gpu['server'], gpu['job'], gpu['gpus']) == (at, 0, [0]), gpu
	PY
	for try in {1..100}; do
		[ -n "$(ls run/*/v100.pid 2>/dev/null)" ] || break
		sleep .1
	done
	[ -z "$(ls run/*/v100.pid 2>/dev/null)" ]
}
