#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-sched run: the caches of mounts, and their bandwidth, are those of jobs.

load mount

setup() {
	common_setup
	cd "$BATS_TEST_TMPDIR"
}

teardown() {
	common_teardown
}

@test "memory of a job that runs is taken from its cache, and given back" {
	make_files 20 5000
	mkdir m m/0 m/1
	for i in 0 1; do gpemu-fs -p minio -c 1% "$src" m/$i; done
	# all of the node alone, half of it beside another one
	cat >speeds.csv <<-'CSV'
		model,iteration_s,memory_mib,reference_memory_mib,cpus,speed
		large,1,40,20,1,1
	CSV
	printf 'arrival_s,work_s,class\n0,8,large\n2,2,large\n' >t.csv
	cat >job <<-'SH'
		#!/bin/sh
		for word; do
		    case $word in --max-steps=*) steps=${word#*=} ;; esac
		done
		exec sleep $((steps / 2))
	SH
	chmod +x job
	gpemu-sched run -t t.csv --speeds speeds.csv --nodes gpus=2,cpus=4,memory=40M \
		--placement tune --time-scale 0.5 --mount 'm/{job}' -o d --json j -- \
		./job 3>&- &
	for want in 40M 20M 40M; do
		eventually grep -q "^cache_size: $want\$" m/0/.gpemu/config
	done
	wait $!
	grep -q '^cache_size: 20M$' m/1/.gpemu/config
	[ "$(python3 -c 'import json; print(json.load(open("j"))["failed"])')" = '[]' ]
	# without a mount there: said, and no reason to end
	fusermount3 -u m/1
	gpemu-sched run -t t.csv --speeds speeds.csv --nodes gpus=2,cpus=4,memory=40M \
		--placement tune --time-scale 0.1 --mount 'm/{job}' -o e -- true 2>err
	grep -q 'job 1: its cache could not be changed: No such file' err
}

# of N KEY: a number of the stats of the mount of a job
of() {
	python3 -c 'import json, sys
print(json.load(open(f"m/{sys.argv[1]}/.gpemu/stats"))[sys.argv[2]])' "$@"
}

# All of the cache is for a, which reads the same in each epoch of 1 s, and then
# needs no bandwidth; b has all of that, half of what it needs. When a is done, b
# gets the cache. 100 s and 100 + (100 - 51.2) / .574 s on the event clock, where
# nothing has to be filled, and no process to start. An epoch of a takes .2 s of wall
# time, so that what begins and ends it is a part of the 12 %. Kind: self.
# bats test_tags=timed,slow
@test "SiloD live: cache and bandwidth go where they save most" {
	local scale=0.2

	[ -z "${GPEMU_SANITIZED-}" ] || scale=0.1
	cat >gpu.yaml <<-'YAML'
		name: tenth
		source: nominal
		memory_mib: 100000
		usable_memory: 1
		sample_bytes: 51200
		pinned: {base_ms: 0, per_sample_ms: 0, source: nominal}
		pin_copy: {base_ms: 0, per_sample_ms: 0, source: nominal}
		models:
		  m:
		    parameters: 1000
		    model_transfer_ms: 0
		    last_batch: 4
		    last_is_limit: false
		    tolerance_pct: 0
		    rows: [[4, 50, 50, 0, 0, 0]]
	YAML
	python3 - <<-'PY'
		import os
		for job, n in (0, 40), (1, 400):
		    os.makedirs(f'data/{job}/c')
		    os.makedirs(f'm/{job}')
		    for i in range(n):
		        open(f'data/{job}/c/{i:03}', 'wb').write(bytes([i % 256]) * 51200)
	PY
	cat >t.csv <<-'CSV'
		name,work_s,dataset_mib,read_mib_s
		a,100,1.953125,1.953125
		b,100,19.53125,1.953125
	CSV
	# other programs can delay processes
	for try in 1 2 3; do
		rm -rf d
		for i in 0 1; do
			gpemu-fs -p minio -c 0 --time-scale $scale data/$i m/$i
		done
		gpemu-sched run -t t.csv --nodes gpus=2,cache=2M,remote=1M -p silod \
			--step 100ms --round 5s --time-scale $scale --mount 'm/{job}' -o d \
			--per-job --json j -- gpemu-train --gpu gpu.yaml --model m -b 4 \
			--data 'm/{job}' --index off --loader threads --workers 4 \
			--prep none --checkpoint-size 4K --pin off --keep-awake off 3>&- &
		# first equal parts, as nothing is cached; then almost all to b
		until [ "$(of 1 bandwidth_limit)" -gt 1030000 ]; do
			kill -0 $!
			sleep .05
		done
		[ "$(of 0 capacity_bytes) $(of 1 capacity_bytes)" = "2048000 49152" ]
		[ "$(of 0 bandwidth_limit)" -lt 20000 ]
		[ $(("$(of 0 bandwidth_limit)" + "$(of 1 bandwidth_limit)")) -le 1048577 ]
		wait $!
		# what a had is given back, and what b had after it
		[ "$(of 0 capacity_bytes) $(of 1 capacity_bytes)" = "0 0" ]
		for i in 0 1; do fusermount3 -u m/$i; done
		python3 - <<-'PY' && return
			import json, os, sys
			r = json.load(open('j'))
			assert r['failed'] == [] and r['storage_changes'] >= 3, r
			ends = [[x['end_s'] for x in r[k][0]['per_job']]
			        for k in ('simulated', 'results')]
			print(ends, r['storage_changes'])
			assert abs(ends[0][0] - 100) < 1e-6 and 185 < ends[0][1] < 186, ends
			for i in range(2):
			    assert ends[1][i] > .98 * ends[0][i]
			far = any(ends[1][i] > 1.12 * ends[0][i] for i in range(2))
			sys.exit(far and not os.environ.get('GPEMU_SANITIZED'))
		PY
	done
	false
}
