#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The table, the sentence below it, the record, the timeline and the log of
# steps account for the time in the same way.

setup() {
	GPEMU_BUILD=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}
	TRAIN=$GPEMU_BUILD/gpemu-train
	TMP=$BATS_TEST_TMPDIR
	mkdir "$TMP/raw"
	for i in $(seq 64); do head -c 2000 /dev/zero >"$TMP/raw/$i"; done
}

# told OPTION...: run, and compare all five
told() {
	timeout 120 "$TRAIN" --data "$TMP/raw" --model alexnet --json "$TMP/record" \
		--trace "$TMP/trace" --steps "$TMP/steps" "$@" 2>"$TMP/out" >&2 ||
		{ cat "$TMP/out"; return 1; }
	python3 - "$TMP" <<-'PY' || { cat "$TMP/out"; return 1; }
		import collections, csv, json, re, sys
		tmp = sys.argv[1]
		j = json.load(open(tmp + '/record'))
		text = open(tmp + '/out').read()
		total, kinds = j['totals'], ('fetch', 'prep', 'pin')

		def near(a, b, what, by=1e-6):
		    assert abs(a - b) <= by, (what, a, b)

		# the record: for the mean of all GPUs, and for each of them
		for e in j['epochs'] + [total]:
		    for part in [e] + e['gpus']:
		        near(sum(part[k + '_stall_s'] for k in kinds),
		             part["data_wait_s"], "the sum")
		    for key in ('fetch_stall_s', 'prep_stall_s', 'pin_stall_s',
		                'data_wait_s', 'transfer_stall_s', 'compute_s',
		                'prep_gpu_s', 'barrier_wait_s', 'allreduce_s',
		                'optimizer_s'):
		        near(sum(g[key] for g in e['gpus']) / len(e['gpus']), e[key], key)

		# the log of steps, and the timeline's slices by GPU
		log = collections.Counter()
		for row in csv.DictReader(open(tmp + '/steps')):
		    for key, value in row.items():
		        if key.endswith('_s'):
		            log[int(row['gpu']), key] += float(value)
		events = json.load(open(tmp + '/trace'))
		track = {}
		for e in events:
		    if e['name'] == 'thread_name':
		        m = re.match(r'GPU (\d+ )?idle', e['args']['name'])
		        if m:
		            track[e['tid']] = int(m[1] or 0)
		slices = collections.Counter()
		for e in events:
		    if e['ph'] == 'X' and e['tid'] in track:
		        slices[track[e['tid']], e['name']] += e['dur'] / 1e6
		names = {'fetch_stall_s': 'fetch', 'prep_stall_s': 'prep',
		         'pin_stall_s': 'pin', 'transfer_stall_s': 'transfer',
		         'barrier_wait_s': 'barrier', 'allreduce_s': 'all-reduce'}
		for i, g in enumerate(total['gpus']):
		    for key, name in names.items():
		        near(slices[i, name], g[key], ('timeline', i, name))
		        near(log[i, key], g[key], ('log of steps', i, key))
		    near(slices[i, 'checkpoint'], total['checkpoint_stall_s'], (i, 'checkpoint'))

		# the table's last row, in percent of the time
		row = re.findall(r'^ *(?:\d+|all) +\d+\.\d\d .*', text, re.M)[-1].split()
		percent = {k: 100 * total[v] / total['seconds'] for k, v in (
		    ('wait', 'data_wait_s'), ('fetch', 'fetch_stall_s'),
		    ('prep', 'prep_stall_s'), ('pin', 'pin_stall_s'),
		    ('copy', 'transfer_stall_s'))}
		head = re.search(r'^ *epoch .*', text, re.M)[0].split()
		for name, value in percent.items():
		    near(float(row[head.index(name)]), value, ('table', name), .0501)

		# the sentence: the longest of them, and by how much, without
		# the first epoch if there are more
		total = j['warm'] or total
		percent = {k: 100 * total[v] / total['seconds'] for k, v in (
		    ('wait', 'data_wait_s'), ('fetch', 'fetch_stall_s'),
		    ('prep', 'prep_stall_s'), ('pin', 'pin_stall_s'),
		    ('copy', 'transfer_stall_s'))}
		percent['GPUs'] = 100 * (total['allreduce_s'] + total['barrier_wait_s']) / total['seconds']
		percent['checkpoints'] = 100 * total['checkpoint_stall_s'] / total['seconds']
		longest = max(('fetch', 'prep', 'pin', 'copy', 'GPUs', 'checkpoints'), key=percent.get)
		said = re.search(r'Bottleneck: (.*?)\. (.*)', text)
		who = {'storage': 'fetch', 'preprocessing': 'prep', 'the pin stage': 'pin',
		       'the copy to the GPU': 'copy', 'between the GPUs': 'GPUs',
		       'checkpoints': 'checkpoints', 'the GPU': None}[said[1]]
		if percent[longest] < 5:
		    assert who is None, (said[0], percent)
		    near(float(re.search(r'waited (\S+) %', said[2])[1]),
		         percent['wait'], said[0], .0501)
		else:
		    assert who == longest, (said[0], percent)
		    n = [float(x) for x in re.findall(r'(\S+) %', said[2])]
		    if who == 'GPUs':
		        near(n[0], 100 * total['allreduce_s'] / total['seconds'], said[0], .501)
		        near(n[1], 100 * total['barrier_wait_s'] / total['seconds'], said[0], .501)
		        n = [n[0] + n[1]]
		    elif who not in ('copy', 'checkpoints'):
		        near(n.pop(0), percent['wait'], said[0], .501)
		    near(n[0], percent[who], said[0], 1.01 if who == 'GPUs' else .501)
	PY
}

# of TOTAL's stalls
total() {
	python3 -c "
import json, sys
t = json.load(open('$TMP/record'))['totals']
fetch, prep, pin, wait = (t[k] for k in ('fetch_stall_s', 'prep_stall_s', 'pin_stall_s', 'data_wait_s'))
assert eval(sys.argv[1]), (fetch, prep, pin, wait)" "$1"
}

@test "without transforms eight GPUs wait for reads and the pin stages" {
	told --prep none -b 2 --gpus 8 --time-scale 0.2 -e 3
	total "prep == 0 and pin > 0 and wait > 0"
	told --prep none -b 2 --gpus 8 --time-scale 0.2 -e 3 --pin off
	total "prep == 0 and pin == 0"
}

@test "one core for four GPUs: they wait for transforms, and the pin stage separately" {
	# real copies weigh as much as they take
	told --prep emulated --cores 1 -b 4 --gpus 4 --time-scale 1
	total "prep > .5 * wait and pin > 0"
}

@test "a pin stage in the consumer" {
	told --prep none -b 8 --gpus 1 --pin inline
	# the rest is the first batch, which is read while nothing is copied
	total "pin > .2 * wait and prep == 0"
}

@test "engines whose workers own batches, and those whose do not" {
	for engine in sync threads; do
		told --prep none -b 4 --loader $engine --time-scale 0.05 --gpus 2
		total "prep == 0"
	done
}

@test "DataParallel: scatter and replicate count as all-reduce" {
	told --prep emulated --cores 2 -b 4 --gpus 2 --parallel dp --time-scale 0.2
	total "prep > 0"
}

@test "the bottleneck of GPUs that wait for each other" {
	told --loader null --prep none -b 8 --gpus 4 --max-steps 20 --time-scale 0.1
	grep -q "Bottleneck: between the GPUs" "$TMP/out"
	told --loader null --prep none -b 8 --gpus 4 --parallel dp --max-steps 20 --time-scale 0.1
	grep -q "Bottleneck: between the GPUs" "$TMP/out"
}

@test "all GPUs wait for a checkpoint" {
	told --prep none -b 4 --gpus 4 --checkpoint-every 1 --checkpoint-size 64M --checkpoint-dir "$TMP/checkpoints"
	grep -q "Bottleneck: checkpoints" "$TMP/out"
}

# bats test_tags=timed
@test "synthetic batches have no prep stall" {
	for try in 1 2 3; do
		told --loader null --prep none -b 1 --max-steps 200 --time-scale 0.01
		total "prep == 0 and pin == 0"
	done
}
