# SPDX-License-Identifier: MIT
# gpemu-sched run in a folder of its own, and what it left.

setup() {
	PATH="$(realpath "${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}"):$PATH"
	unset GPEMU_PROFILES
	cd "$BATS_TEST_TMPDIR"
	# a step takes 100 ms, and a byte nothing
	cat >gpu.yaml <<-'YAML'
		name: tenth
		source: nominal
		memory_mib: 100000
		usable_memory: 1
		sample_bytes: 100
		pinned: {base_ms: 0, per_sample_ms: 0, source: nominal}
		pin_copy: {base_ms: 0, per_sample_ms: 0, source: nominal}
		models:
		  m:
		    parameters: 1000
		    model_transfer_ms: 0
		    last_batch: 10
		    last_is_limit: false
		    tolerance_pct: 0
		    rows: [[10, 50, 50, 0, 0, 0]]
	YAML
	TRAIN=(gpemu-train --loader null --gpu gpu.yaml --model m -b 10
		--checkpoint-size 4K --pin off --keep-awake off)
	# locks of jobs that run: of all of their processes, of the keeper
	cat >locks.py <<-'PY'
		import fcntl, glob, struct
		def holder(f, byte):
		    lock = struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, byte, 1, 0)
		    kind, _, _, _, pid = struct.unpack('hhqqi4x', fcntl.fcntl(f, fcntl.F_GETLK, lock))
		    return pid if kind != fcntl.F_UNLCK else None
		def held(byte):
		    pids = {}
		    for name in glob.glob('d/jobs/*/lock'):
		        with open(name, 'r+') as f:
		            if holder(f, byte) is not None:
		                pids[name] = holder(f, byte)
		    return pids
	PY
	export PYTHONPATH=$PWD
}

# keepers [SIGNAL]: the number of jobs that run; -1 while some have no keeper.
# Their keepers get the signal.
keepers() {
	python3 - "$@" <<-'PY'
		import locks, os, sys
		kept = locks.held(1)
		for pid in kept.values():
		    if len(sys.argv) > 1 and pid:
		        os.kill(pid, int(sys.argv[1]))
		run = len(locks.held(0))
		print(run if run == len(kept) else -1)
	PY
}

# await_keepers N: until so many jobs run, each with its keeper. A Python for
# each look would take as long as the jobs, on a busy machine.
await_keepers() {
	python3 - "$1" <<-'PY'
		import locks, sys, time
		while len(locks.held(1)) != int(sys.argv[1]):
		    time.sleep(.01)
	PY
}

# what a failed test has left
teardown() {
	keepers 15 >/dev/null
	kill ${SERVERS-} 2>/dev/null || true
}

# json CONDITION...: on the record s of the live run l, and its simulation m
json() {
	python3 - "$@" <<-'PY'
		import json, sys
		s = json.load(open('j'))
		l, m = s['results'][0], s['simulated'][0]
		for condition in sys.argv[1:]:
		    assert eval(f'({condition})'), (condition, s)
	PY
}

# Every job trained all its steps, no step twice: the run is that of the last
# record, which says where it began, and of the ones before.
steps_add_up() {
	python3 - <<-'PY'
		import glob, json
		for f in glob.glob('d/jobs/*/record.json'):
		    r = json.load(open(f))
		    begun = r['resumed']['step'] if r['resumed'] else 0
		    assert begun + r['totals']['steps'] == r['config']['max_steps'], f
	PY
}

# gpud NAME [OPTION...]: a server, which ends with the test
gpud() {
	gpemu-gpud --socket "$PWD/$1" --gpu gpu.yaml --time-scale 0.1 \
		--keep-awake off "${@:2}" 3>&- &
	SERVERS="${SERVERS-} $!"
	until [ -S "$1" ]; do sleep .01; done
}
