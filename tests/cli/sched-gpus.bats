#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-sched run on the GPUs of gpemu-gpud.

bats_require_minimum_version 1.5.0

load live

@test "jobs on the GPUs of gpemu-gpud, a server for each node" {
	servers=
	for i in 0 1; do
		gpemu-gpud --socket "$PWD/g$i" --gpu gpu.yaml --time-scale 0.1 3>&- &
		servers="$servers $!"
	done
	until [ -S g0 ] && [ -S g1 ]; do sleep .01; done
	printf 'work_s,count\n4,4\n' >t.csv
	gpemu-sched run -t t.csv --nodes '2*gpus=1' --step 100ms --time-scale 0.1 \
		-o d --json j -- gpemu-train --loader null --gpu-server "$PWD/g{node}" \
		--model m -b 10 --checkpoint-size 4K --pin off --keep-awake off || failed=1
	kill $servers
	wait $servers || true
	[ -z "${failed-}" ]
	json "s['failed'] == []"
	steps_add_up
	python3 - <<-'PY'
		import collections, json
		used = [json.load(open(f'd/jobs/{i}/record.json')) for i in range(4)]
		assert all(r['sharing'] for r in used)
		names = collections.Counter(r['config']['gpu_server'][-2:] for r in used)
		assert names == {'g0': 2, 'g1': 2}, names
	PY
}

# step_times LEAST MOST: of all jobs, emulated s
step_times() {
	python3 - "$@" <<-'PY'
		import glob, json, os, sys
		least, most = map(float, sys.argv[1:])
		records = [json.load(open(f)) for f in sorted(glob.glob('d/jobs/*/record.json'))]
		each = [r['totals']['seconds'] / r['totals']['steps'] for r in records]
		print(each)
		assert min(each) > least
		sys.exit(max(each) > most and not os.environ.get('GPEMU_SANITIZED'))
	PY
}

# await_jobs NAME N: until so many run on the GPUs of the server; its status is
# in the file smi
await_jobs() {
	until gpemu-smi -S "$PWD/$1" --json smi >/dev/null && python3 -c '
import json, sys
p = json.load(open("smi"))["processes"]
sys.exit(len([x for x in p if x["gpus"]]) != int(sys.argv[1]))' "$2"; do
		kill -0 $!
	done
}

# Each has half of the rate, also alone. Kind: self, 8 %.
# bats test_tags=timed
@test "two jobs with half of a GPU each, and a third that waits" {
	printf 'name,work_s,gpu_milli\na,10,500\nb,10,500\nc,5,500\n' >t.csv
	gpud g0
	# other programs can delay processes
	for try in 1 2 3; do
		rm -rf d
		gpemu-sched run -t t.csv --nodes gpus=1 --step 100ms --time-scale 0.1 \
			--gpu-server "$PWD/g{node}" -o d --per-job --json j -- \
			gpemu-train --loader null --model m -b 10 --checkpoint-size 4K \
			--pin off --keep-awake off 3>&- &
		await_jobs g0 2
		python3 - <<-'PY'
			import json
			p = json.load(open('smi'))['processes']
			assert {x['grant'].split('-')[-1] for x in p} == {'0', '1'}, p
		PY
		wait $!
		json "s['failed'] == []" \
			"[x['end_s'] for x in m['per_job']] == [10, 10, 15]" \
			"l['per_job'][2]['start_s'] >= min(x['end_s'] for x in l['per_job'][:2])"
		steps_add_up
		[ "$(ls g0.d)" = '' ]
		step_times .196 .216 && kill $SERVERS && return
	done
	kill $SERVERS
	false
}

@test "shares of the GPUs that the placement chooses, on one server for all nodes" {
	printf 'name,work_s,gpu_milli\na,30,700\nb,30,600\nc,30,400\nd,30,300\n' >t.csv
	gpud all --gpus 2
	gpemu-sched run -t t.csv --nodes '2*gpus=1' --placement fgd --step 100ms \
		--time-scale 0.1 --gpu-server "$PWD/all" -o d --json j -- \
		gpemu-train --loader null --model m -b 10 --checkpoint-size 4K \
		--pin off --keep-awake off 3>&- &
	await_jobs all 4
	# killed, and begun again: their grants are there
	kill -9 $!
	wait $! || true
	gpemu-sched run -t t.csv --nodes '2*gpus=1' --placement fgd --step 100ms \
		--time-scale 0.1 --gpu-server "$PWD/all" -o d --json j -- \
		gpemu-train --loader null --model m -b 10 --checkpoint-size 4K \
		--pin off --keep-awake off || failed=1
	left=$(ls all.d)
	kill $SERVERS
	[ -z "${failed-}" ] && [ -z "$left" ]
	json "s['failed'] == [] and s['resumed']"
	python3 - <<-'PY'
		import json
		gpus = {int(x['grant'].split('-')[-1]): x['gpus']
		        for x in json.load(open('smi'))['processes']}
		assert gpus[0] == gpus[3] != gpus[1] == gpus[2], gpus
		jobs = json.load(open('d/state.json'))['jobs']
		assert [j['processes'] for j in jobs] == [1] * 4, jobs
	PY
	steps_add_up
}

# Kind: self, 8 %.
# bats test_tags=timed
@test "jobs that keep a GPU busy share its time, as the server says" {
	printf 'work_s,gpu_busy,gpu_memory_mib\n6,1,1000\n6,1,1000\n' >t.csv
	gpud g0
	for try in 1 2 3; do
		rm -rf d
		gpemu-sched run -t t.csv --nodes gpus=1,gpu_memory=10G -p mps --step 100ms \
			--time-scale 0.1 --gpu-server "$PWD/g{node}" -o d --per-job --json j -- \
			gpemu-train --loader null --model m -b 10 --checkpoint-size 4K \
			--pin off --keep-awake off
		json "s['failed'] == []" \
			"all(abs(x['end_s'] - 12) < 1e-6 for x in m['per_job'])"
		step_times .15 .216 && kill $SERVERS && return
	done
	kill $SERVERS
	false
}

@test "a job on two GPUs of one server, beside one on the third" {
	printf 'name,work_s,gpus\na,6,2\nb,6,1\nc,3,2\n' >t.csv
	gpud g0 --gpus 3
	gpemu-sched run -t t.csv --nodes gpus=3 --step 100ms --time-scale 0.1 \
		--gpu-server "$PWD/g{node}" -o d --json j -- \
		gpemu-train --loader null --model m -b 10 --checkpoint-size 4K \
		--pin off --keep-awake off || failed=1
	kill $SERVERS
	[ -z "${failed-}" ]
	json "s['failed'] == []"
	steps_add_up
	python3 - <<-'PY'
		import json
		r = [json.load(open(f'd/jobs/{i}/record.json')) for i in range(3)]
		gpus = [x['sharing']['gpus'] for x in r]
		assert [len(x) for x in gpus] == [2, 1, 2], gpus
		assert gpus[0] == gpus[2] and not set(gpus[0]) & set(gpus[1]), gpus
		assert r[0]['totals']['samples'] == 2 * r[1]['totals']['samples']
	PY
}

# run_jobs OPTION...: on the servers g0 and g1
run_jobs() {
	gpemu-sched run --step 100ms --time-scale 0.1 --gpu-server "$PWD/g{node}" \
		-o d --json j "$@" -- gpemu-train --loader null --model m -b 10 \
		--checkpoint-size 4K --checkpoint-every 1 --pin off --keep-awake off
}

@test "a server is killed: its jobs go on with the other one" {
	printf 'work_s\n40\n40\n6\n6\n' >t.csv
	gpud g0
	killed=$!
	gpud g1
	run_jobs -t t.csv --nodes '2*gpus=1' --retries 5 3>&- 2>err &
	sched=$!
	await_jobs g0 1
	kill -9 $killed
	wait $sched || failed=1
	kill $SERVERS 2>/dev/null || true
	cat err
	[ -z "${failed-}" ]
	json "s['failed'] == []"
	grep -q 'job .* starts again: .*g0' err
	# while the server is away nobody tries again and again
	[ "$(grep -c 'starts again' err)" -le 6 ]
}

@test "a server is killed, and there is no other: the jobs fail with the reason" {
	printf 'work_s,count\n200,2\n' >t.csv
	gpud g0
	run_jobs -t t.csv --nodes gpus=1 --retries 1 3>&- 2>err &
	sched=$!
	await_jobs g0 1
	kill -9 $SERVERS
	status=0
	wait $sched || status=$?
	cat err
	[ $status -eq 1 ]
	json "s['failed'] == ['0', '1']"
	grep -q 'job 1 starts again: .*g0: no gpemu-gpud listens there' err
	grep -q 'job 1 failed: .*g0: no gpemu-gpud listens there' err
	grep -q '2 of 2 jobs failed' err
}
