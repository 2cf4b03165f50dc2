#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-prepd and gpemu-train --loader service: batches that other processes
# prepare.
bats_require_minimum_version 1.5.0
load service

@test "service: every sample once in each epoch, from two workers" {
	dispatcher --timeout 60s
	worker 1
	worker 2
	train -e 3
	check "len(times) == 3 * 301" "set(times.values()) == {1}" \
		"r['totals']['samples'] == 903" "s['batches'] == 3 * 38" \
		"s['splits_lost'] == 0 and s['batches_twice'] == 0" \
		"len(s['workers']) == 2" \
		"max(e['first_batch_s'] for e in r['epochs'][1:]) < 2" \
		"abs(sum(s['stall_s'].values()) - r['totals']['data_wait_s']) < .05"
	kill -TERM "$d" "${w[@]}"
	wait "${pids[@]}"
	python3 - <<-'PY'
		import json
		d, w = json.load(open('d.json')), [json.load(open('w%d.json' % i)) for i in (1, 2)]
		assert d['splits_assigned'] == d['splits_done'] == 57 and d['jobs'] == 0, d
		assert sum(x['batches'] for x in w) == 114, w
		assert all(x['jobs'] == 1 and x['jobs_failed'] == 0 for x in w), w
	PY
}

@test "service: the bytes are those of a run without it" {
	dispatcher
	worker 1 --loader sync
	worker 2 --loader async
	for prep in none emulated; do
		train --prep "$prep" --image-size 8 --pin off
		check "len(times) == 301" "r['totals']['failed_samples'] == 0"
		mv r.json service.json
		"$TRAIN" --data data --index off --model alexnet --gpu a100 -b 8 \
			--image-size 8 --pin off --prep "$prep" --json r.json >/dev/null
		python3 - <<-'PY'
			import json
			a, b = json.load(open('service.json')), json.load(open('r.json'))
			for key in 'samples', 'bytes', 'batch_bytes':
			    assert a['totals'][key] == b['totals'][key], key
		PY
	done
}

@test "service: a worker is ready when the dispatcher knows it" {
	python3 - <<-'PY' 3>&- &
		import socket
		s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
		s.bind('ready')
		open('bound', 'w')
		said = s.recv(99).decode()
		open('got', 'w').write(said + '\n')
	PY
	pids+=($!)
	until [ -e bound ]; do kill -0 $!; sleep .02; done
	NOTIFY_SOCKET=$PWD/ready worker 1
	until grep -q "not connected" w1.out; do kill -0 "${w[1]}"; sleep .02; done
	[ ! -e got ]
	# one that it starts itself is not what is waited for
	NOTIFY_SOCKET=$PWD/nobody dispatcher --worker-command \
		'sh -c "env >worker.env; exec sleep 100"'
	until [ -s got ] && [ -s worker.env ]; do
		kill -0 "$d" "${w[1]}"
		sleep .02
	done
	grep -x READY=1 got
	run ! grep NOTIFY_SOCKET worker.env
}

@test "service: static splits, and off: each worker all of it" {
	dispatcher -v
	worker 1
	worker 2
	until [ "$(grep -c "worker 127" d.out)" = 2 ]; do kill -0 "$d"; sleep .02; done
	train --loader service:sharding=static,split=2
	check "len(times) == 301" "set(times.values()) == {1}" \
		"sorted(x['batches'] for x in s['workers']) == [18, 20]"
	train --loader service:sharding=off
	check "r['totals']['samples'] == 301" "sum(times.values()) == 301"
}

@test "service: kill -9 of a worker: none twice, its splits are named" {
	dispatcher
	worker 1
	worker 2
	start -e 2
	kill -9 "${w[2]}"
	ended
	check "set(times.values()) == {1}" "s['workers_gone'] == 1" \
		"s['splits_lost'] == len(s['lost'])" \
		"len(times) == 602 - sum(x['samples'] for x in s['lost'])" \
		"sum(x['samples'] for x in s['lost']) <= 16 * 8"
	grep "worker ${at[2]} is no longer available" out
}

@test "service: kill -9 and restart of the dispatcher: the epochs end" {
	dispatcher --journal journal
	worker 1
	worker 2
	start -e 2
	kill -9 "$d"
	wait "$d" || true
	dispatcher --journal journal
	ended
	check "set(times.values()) == {1}" "len(times) == 602" \
		"s['splits_lost'] == 0" "s['dispatcher_lost'] == 1"
	[ "$(stat -c %a journal)" = 600 ] # though it was written anew
	# and without what it had written
	rm journal
	start
	kill -9 "$d"
	wait "$d" || true
	dispatcher
	ended
	check "set(times.values()) == {1}" "len(times) == 301"
}

@test "service: a worker killed together with the dispatcher is named" {
	dispatcher --journal journal
	worker 1
	worker 2
	start -e 2
	kill -9 "$d" "${w[2]}"
	wait "$d" || true
	dispatcher --journal journal
	ended
	check "set(times.values()) == {1}" "s['workers_gone'] == 1" \
		"s['splits_lost'] == len(s['lost']) > 0"
	grep "worker ${at[2]} is no longer available" out
}

@test "service: a worker that comes is used" {
	dispatcher
	worker 1
	start -e 2
	worker 2
	ended
	check "set(times.values()) == {1}" "len(times) == 602" \
		"all(x['batches'] > 0 for x in s['workers'])" \
		"s['workers_added'] == 2"
}

@test "service: a worker that stops, and goes on, is one that was lost" {
	dispatcher
	worker 1
	worker 2
	start -e 2
	kill -STOP "${w[2]}"
	until grep -q "worker ${at[2]} is no longer available" out; do kill -0 $t; sleep .02; done
	kill -CONT "${w[2]}"
	ended
	check "set(times.values()) == {1}" \
		"len(times) == 602 - sum(x['samples'] for x in s['lost'])"
}

@test "service: SIGTERM drains a worker: nothing is lost" {
	for sharding in dynamic static; do
		dispatcher -v
		worker 1
		worker 2
		until [ "$(grep -c "worker 127" d.out)" = 2 ]; do kill -0 "$d"; sleep .02; done
		start -e 2 --loader "service:sharding=$sharding,split=2,wait=20s"
		kill -TERM "${w[2]}"
		wait "${w[2]}"
		ended
		check "set(times.values()) == {1}" "len(times) == 602" \
			"s['splits_lost'] == 0" "s['workers_gone'] == 1"
		# and the last one, whom nobody waits for
		kill -TERM "${w[1]}"
		wait "${w[1]}"
		kill -TERM "$d"
		wait "$d"
		python3 - <<-'PY'
			import json
			d = json.load(open('d.json'))
			assert d['workers_left'] == 2 and d['workers_lost'] == 0, d
			assert d['splits_lost'] == 0, d
			assert json.load(open('w2.json'))['batches'] > 0
		PY
		rm d.out
	done
	# a trainer that does not read: at most --drain
	dispatcher
	worker 1 --drain 300ms
	start -e 20
	kill -STOP "$t"
	kill -TERM "${w[1]}"
	wait "${w[1]}"
	grep "undelivered batches" w1.out
	kill -9 "$t"
}

# bats test_tags=timed
@test "service: the GPU waits for the network or for the workers, by cause" {
	[ -z "${GPEMU_SANITIZED-}" ] || skip "a sanitizer changes the rates"
	cat >node.yaml <<-'YAML'
		{name: n, source: test, verified: false, gpus: 1, gpu: v100, cores: 1, memory: 1G,
		 pcie: {source: test},
		 nic: {gb_per_s: 0.002, latency: 10us, source: test}}
	YAML
	dispatcher
	worker 1 --nic node.yaml
	train
	# 1.67 MB through a card of 2 MB/s
	check "r['totals']['seconds'] > .8 * r['totals']['bytes'] / 2e6" \
		"s['stall_s']['network'] > 4 * s['stall_s']['worker']"
	kill -9 "${w[1]}"
	worker 2
	train --prep emulated --image-size 8
	check "s['stall_s']['worker'] > 4 * s['stall_s']['network']" \
		"r['totals']['prep_stall_s'] > .5 * r['totals']['data_wait_s']"
}

# needed OPTION...: what the dispatcher says of a job, with the workers there
needed()
{
	train --prep emulated --image-size 8 "$@"
	kill -TERM "$d"
	wait "$d"
	needed=$(python3 -c 'import json; print(json.load(open("d.json"))["workers_needed"])')
}

# bats test_tags=timed,slow
@test "service: the workers that a job needs, however many are there" {
	[ -z "${GPEMU_SANITIZED-}" ] || skip "a sanitizer changes the rates"
	# a batch takes one core 52 ms, and the GPU 15 ms
	for n in 1 3; do
		dispatcher --timeout 600ms
		for ((i = 1; i <= n; i++)); do worker $i --cores 1; done
		needed --model resnet18 --gpu v100
		echo "$n workers: $needed"
		((needed >= 2 && needed <= 4))
		kill "${w[@]}"
		wait "${w[@]}"
	done
	# the GPU is slower than one core
	dispatcher --timeout 600ms
	worker 1 --cores 1
	needed --model resnet50 --gpu k80
	[ "$needed" = 1 ]
}

# bats test_tags=timed
@test "service: the dispatcher starts the workers that are needed, and drains them" {
	[ -z "${GPEMU_SANITIZED-}" ] || skip "a sanitizer changes the rates"
	printf '%s\n' "${at[@]:1}" >ports
	# shellcheck disable=SC2016 # the worker's shell has it
	dispatcher --timeout 1s -v --workers-most 3 --worker-command "$PREPD"' worker \
		--dispatcher '"${at[0]}"' --listen $(sed -n ${GPEMU_WORKER}p ports) \
		--workers 1 --cores 1'
	start --model alexnet --gpu v100 -e 999
	until [ "$(grep -c "worker 127" d.out)" = 3 ]; do kill -0 "$t"; sleep .05; done
	kill -TERM "$t"
	wait "$t" || true
	# one core is faster than this GPU
	start --model resnet50 --gpu k80 -e 99
	until [ "$(grep -c "has left" d.out)" = 2 ]; do kill -0 "$t"; sleep .05; done
	# the last one is killed, and another takes its place
	pkill -9 -f "worker --dispatcher ${at[0]}"
	until grep -q "worker process 1 ended with status 137" d.out; do sleep .05; done
	until [ "$(grep -c "worker process 1: started" d.out)" = 2 ]; do sleep .05; done
	kill -TERM "$t"
	wait "$t" || true
	kill -TERM "$d"
	wait "$d"
	run ! pgrep -f "worker --dispatcher ${at[0]}"
	grep '"workers_started": 4' d.json
}

# In a network of its own, where its ports are free.
@test "service: the example of --worker-command works as it is printed" {
	local page=$BUILD/docs/gpemu-prepd.1
	[ -e "$page" ] || skip "no manual pages were built"
	man -l "$page" >/dev/null 2>&1 || skip "man is not installed"
	unshare -n ip link set lo up 2>/dev/null || skip "no network namespaces"
	MANWIDTH=80 man -l "$page" | col -bx >page
	sed -n '/^ *gpemu-prepd dispatcher --worker-command/,/[^\\]$/p' page >example
	[ -s example ]
	cat >both <<-'SH'
		ip link set lo up
		bash -c "exec $(cat example)" &
		dispatcher=$!
		at=127.0.0.1:7070
		train
		status=$?
		kill "$dispatcher"
		wait "$dispatcher" && exit $status
	SH
	export -f train
	export TRAIN
	PATH=$(realpath "$BUILD"):$PATH timeout 100 unshare -n bash ./both \
		>out 2>&1 3>&- || {
		cat example out
		false
	}
	check "len(times) == 301" "len(s['workers']) == 1" \
		"s['workers'][0]['address'] == '127.0.0.1:7071'"
}

@test "service: strangers are refused, and counted" {
	dispatcher
	worker 1
	head -c 32 /dev/urandom >key
	chmod 600 key
	# garbage, a frame that is too long, a byte now and then, another key
	python3 - "${at[@]}" <<-'PY'
		import os, socket, struct, sys, time
		def dial(at):
		    host, port = at.rsplit(':', 1)
		    for i in range(100):
		        try:
		            return socket.create_connection((host, int(port)))
		        except ConnectionRefusedError:
		            time.sleep(.05)
		for at in sys.argv[1:3]:
		    s = dial(at)
		    s.sendall(os.urandom(100))
		    assert s.recv(1) in (b'',), at
		    s = dial(at)
		    s.sendall(b'gpemunet' + struct.pack('<I', 1) + os.urandom(32))
		    while len(s.recv(44, socket.MSG_WAITALL)) < 44: pass
		    s.sendall(struct.pack('<I', 1 << 30))
		    assert s.recv(1) == b'', at
		s = dial(sys.argv[1])
		try:
		    for i in range(100):
		        s.sendall(b'g')
		        time.sleep(.05)
		except (BrokenPipeError, ConnectionResetError):
		    pass
		else:
		    sys.exit('a slow stranger is kept')
	PY
	run -1 train --loader service:wait=500ms --service-key key
	[[ $output == *"dispatcher ${at[0]} is unreachable:"* ]]
	train
	check "len(times) == 301"
	kill -TERM "$d"
	wait "$d"
	python3 - <<-'PY'
		import json
		c = json.load(open('d.json'))['connections']
		assert c['garbage'] >= 2 and c['too_long'] == 1 and c['slow'] == 1, c
	PY
}

@test "service: another user of this machine has no part in it" {
	[ "$(id -u)" = 0 ] || skip "needs another user: not root"
	as_nobody() {
		setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
	}
	as_nobody test -x "$TRAIN" || skip "another user cannot run $TRAIN"
	TMP=$(mktemp -d) # those of bats are this user's alone
	cp -r data "$TMP"
	chmod 755 "$TMP"
	cd "$TMP"
	export XDG_CONFIG_HOME=$TMP/config
	# whoever is first makes it, and the others find it
	dispatcher
	worker 1
	train
	check "len(times) == 301"
	[ "$(stat -c %a config/gpemu config/gpemu/key)" = $'700\n600' ]
	run ! as_nobody cat config/gpemu/key
	mkdir -m 777 theirs
	# as a trainer, which reads as the worker's user
	run -1 as_nobody env XDG_CONFIG_HOME="$PWD/theirs" "$TRAIN" --data data \
		--model alexnet --gpu a100 -b 8 --index off --prep none \
		--loader service:wait=500ms --dispatcher "${at[0]}"
	[[ $output == *"is unreachable:"*"each user has one"* ]]
	# as a worker, which trainers would read from
	# no function: its process would be that of the shell
	XDG_CONFIG_HOME=$PWD/theirs setpriv --reuid=65534 --regid=65534 \
		--clear-groups "$PREPD" worker --dispatcher "${at[0]}" \
		--listen "${at[2]}" >theirs.out 2>&1 3>&- &
	pids+=($!)
	until grep -q "each user has one" theirs.out; do kill -0 $!; sleep .02; done
	# a journal of another user: its pipe has no end, its link leads elsewhere
	as_nobody mkfifo theirs/pipe
	as_nobody touch theirs/file
	as_nobody ln -s "$PWD/made" theirs/link
	for name in pipe file link; do
		run ! timeout -s KILL 10 "$PREPD" dispatcher \
			--listen "${at[3]}" --journal "theirs/$name"
		[[ $output == *"theirs/$name: "* ]]
	done
	[ ! -e made ]
	# a key that someone else has made is no secret
	as_nobody install -D -m 600 theirs/gpemu/key theirs/key
	run -1 "$PREPD" dispatcher --listen "${at[3]}" --key theirs/key
	[[ $output == *"theirs/key: owned by user 65534, who knows the key"* ]]
}

@test "service: a worker reads only what is below --data" {
	mkdir -m 700 private data/other
	head -c 4000 /dev/zero | tr '\0' s >private/secret
	chmod 600 private/secret
	cp data/class/300 data/other/sample
	head -c 32 /dev/urandom >key
	chmod 600 key
	run -1 "$PREPD" worker --key key
	[[ $output == *"--key needs --data"* ]]
	dispatcher --key key
	worker 1 --key key --data data
	local theirs=(--data data/other --service-key key)
	train "${theirs[@]}"
	check "len(times) == 1"
	# elsewhere: it has --data itself, which is another dataset
	run -1 train --data private --service-key key
	[[ $output == *"different samples here (302) and at the trainer (1)"* ]]
	[[ $(cat w1.out) != *ssss* ]]
	if grep -q Landlock w1.out; then return; fi
	ln -s ../../private/secret data/other/link
	train "${theirs[@]}" --format files
	check "r['totals']['samples'] == 1" "r['totals']['failed_samples'] == 1" \
		"'ermission denied' in r['bad_samples'][0]['reason']"
	mv data/other/link data/other/link.bin
	rm data/other/sample
	run -1 train "${theirs[@]}" --format tokens:sequence_length=15,token_bytes=1
	[[ $output == *"Permission denied"* ]]
}

@test "service: a dispatcher with few descriptors sleeps" {
	ulimit -n 60 # fewer than the workers that it may start
	dispatcher --worker-command 'sh -c "echo >>started; exec sleep 100"'
	until [ -s started ]; do kill -0 "$d"; sleep .02; done
	sleep .5
	# clock ticks of user and system
	[ "$(awk '{ print $14 + $15 < 20 }' "/proc/$d/stat")" = 1 ]
}

@test "service: a trainer names profiles, not files" {
	run -2 train --prep emulated --prep-profile /etc/shadow
	[[ $output == *"must be the name of a profile"* ]]
}

@test "service: what cannot be done ends with a reason" {
	run -2 train --workers 2
	[[ $output == *"--loader service: the workers of the service have --workers"* ]]
	run -2 "$TRAIN" --data data --dispatcher "${at[0]}"
	[[ $output == *"need --loader service"* ]]
	run -2 "$TRAIN" --data data --loader service
	[[ $output == *"--dispatcher HOST:PORT is required"* ]]
	run -1 train --loader service:wait=300ms
	[[ $output == *"dispatcher ${at[0]} is unreachable"* ]]
	dispatcher
	run -1 train --loader service:wait=300ms
	[[ $output == *"no worker is connected"* ]]
	# a worker with other data
	mkdir other
	head -c 9 /dev/zero >other/x
	worker 1 --data other
	run -1 train
	[[ $output == *"no worker can do this job; ${at[1]}:"*"different samples here (1) and at the trainer (301)"* ]]
	kill "${w[1]}"
	worker 2 --time-scale 0.5
	run -1 train
	[[ $output == *"no worker can do this job; ${at[2]}: its --time-scale is 0.5, that of the trainer 1"* ]]
	run -1 "$PREPD" worker --dispatcher 192.0.2.1:7070
	[[ $output == *"the service needs a key file"* ]]
}

# --- trainers that share a job -------------------------------------------------

slow=(--prep emulated --image-size 8)

# another I OPTION...: one more trainer, in the background, with its own record
another()
{
	local i=$1
	shift
	rm -f "s$i.txt"
	via="exec" train --json "r$i.json" --dump-samples "s$i.txt" "$@" \
		>"out$i" 2>&1 3>&- &
	t=$!
	trainers[i]=$t
	pids+=("$t")
}

# wait for them
all_ended()
{
	local i
	for i in "${!trainers[@]}"; do
		wait "${trainers[$i]}" || { cat "out$i"; false; }
	done
}

# the records r[i] of trainers, their part s[i], samples times[i], and w[i] of
# workers, which end
shared()
{
	kill -TERM "${w[@]}"
	wait "${w[@]}"
	python3 - "$@" <<-'PY'
		import collections, glob, json, sys
		r = {f[1:-5]: json.load(open(f)) for f in glob.glob('r?.json')}
		s = {i: r[i]['service'] for i in r}
		w = {f[1:-5]: json.load(open(f)) for f in glob.glob('w?.json')}
		times = {i: collections.Counter(tuple(line.split()[::2])
		    for line in open('s%s.txt' % i) if line[0] != '#') for i in r}
		for what in sys.argv[1:]:
		    if not eval(what):
		        sys.exit('not so: %s\n%s\n%s' % (what, s, w))
	PY
}

@test "service: four trainers share one sweep: each batch is made once" {
	dispatcher
	worker 1 --cores 2
	for i in 1 2 3 4; do another $i "${slow[@]}" --loader service:job=search,wait=20s; done
	all_ended
	# 38 batches, and those that the stages have ahead
	shared "all(x['totals']['samples'] == 301 for x in r.values())" \
		"all(len(x) == 301 for x in times.values())" \
		"all(x['batches'] == 38 and not x['batches_skipped'] for x in s.values())" \
		"w['1']['batches'] == 4 * 38" \
		"38 <= w['1']['batches_made'] <= 38 + 10" \
		"w['1']['jobs'] == 1 and w['1']['made_s'] > 0"
	# the last one has taken the job with it
	kill -TERM "$d"
	wait "$d"
	grep '"jobs": 0' d.json
}

@test "service: a trainer that does not read skips batches, and holds nobody" {
	dispatcher --timeout 60s
	worker 1 --cores 4 --share-window 64K
	another 1 "${slow[@]}" -e 2 --loader service:job=search,wait=20s
	until [ -s s1.txt ]; do kill -0 "$t"; sleep .02; done
	kill -STOP "$t"
	train "${slow[@]}" -e 4 --json r2.json --dump-samples s2.txt \
		--loader service:job=search
	kill -CONT "$t"
	all_ended
	shared "r['1']['totals']['samples'] == 602" \
		"r['2']['totals']['samples'] == 4 * 301" \
		"s['1']['batches_skipped'] > 38 and not s['2']['batches_skipped']" \
		"w['1']['batches_skipped'] == s['1']['batches_skipped']"
	grep "had left the workers' windows" out1
}

@test "service: a shared job outlives its dispatcher, and one of its trainers" {
	dispatcher --journal journal
	worker 1 --cores 2
	for i in 1 2 3; do another $i "${slow[@]}" -e 2 --loader service:job=search,wait=20s; done
	until [ -s s1.txt ] && [ -s s2.txt ]; do kill -0 "$t"; sleep .02; done
	kill -9 "${trainers[3]}" "$d"
	wait "${trainers[3]}" "$d" || true
	unset 'trainers[3]'
	rm -f r3.json
	dispatcher --journal journal
	all_ended
	shared "all(len(x) == 602 for x in times.values())" \
		"all(x['dispatcher_lost'] == 1 and not x['batches_skipped'] for x in s.values())"
}

@test "service: a job has one definition" {
	dispatcher
	worker 1
	another 1 "${slow[@]}" -e 20 --loader service:job=search,wait=20s
	until [ -s s1.txt ]; do kill -0 "$t"; sleep .02; done
	run -1 train "${slow[@]}" --seed 3 --loader service:job=search
	[[ $output == *"its job has a trainer with other data, transforms, seed, batches or consumers"* ]]
	# who joins later is told of a worker that cannot
	mkdir other
	head -c 9 /dev/zero >other/x
	worker 3 --data other
	until grep "${at[3]} cannot do this job" "out1"; do kill -0 "$t"; sleep .02; done
	train "${slow[@]}" --loader service:job=search >joined 2>&1
	grep "${at[3]} cannot do this job: .*different samples here" joined
	kill -9 "${w[3]}"
	kill -0 "$t"
	kill -9 "$t"
	wait "$t" || true
	# without trainers its name is free
	train "${slow[@]}" --seed 3 --loader service:job=search
	run train --loader service:job=search,sharding=dynamic
	[[ $status != 0 && $output == *"leave out sharding="* ]]
	run train --loader service:bucket=9
	[[ $status != 0 && $output == *"need consumers="* ]]
	run train --loader service:consumers=2
	[[ $status != 0 && $output == *"need a job in common"* ]]
	run train --loader service:job=a,consumers=2,consumer=2
	[[ $status != 0 && $output == *"must be less than consumers="* ]]
	worker 2 --share-window 64
	kill "${w[1]}"
	wait "${w[1]}"
	run -1 train --loader service:job=small
	[[ $output == *"a batch is larger than --share-window"* ]]
}

# documents of 2 to 513 tokens, most of them short
documents()
{
	mkdir text
	python3 - <<-'PY'
		import random, struct
		random.seed(7)
		lengths = [2 + int(512 * random.random() ** 3) for i in range(2000)]
		n = sum(lengths)
		open('text/train.bin', 'wb').write(bytes(2 * n))
		starts = [2 * sum(lengths[:i]) for i in range(len(lengths))]
		open('text/train.idx', 'wb').write(
		    b'MMIDIDX\0\0' + struct.pack('<QBQQ', 1, 8, len(lengths), len(lengths) + 1) +
		    struct.pack('<%di' % len(lengths), *lengths) +
		    struct.pack('<%dq' % len(lengths), *starts) +
		    struct.pack('<%dq' % (len(lengths) + 1), *range(len(lengths) + 1)))
	PY
}

# consumer I OPTIONS OPTION...: one of four on these, by rounds
consumer()
{
	local i=$1 options=$2
	shift 2
	another "$i" --data text --gpu h100 --model bert_large --sequence-length 512 \
		--format tokens:documents=on --prep none --pad-multiple 64 -b 2 \
		--max-steps 60 --steps "steps$i.csv" \
		--loader "service:job=lm,consumers=4,consumer=$i${options:-,wait=20s}" "$@"
}

# spreads: for each step the computations of the consumers, in ms
spreads()
{
	python3 - "$@" <<-'PY'
		import csv, sys
		rows = [list(csv.DictReader(open('steps%d.csv' % i))) for i in range(4)]
		steps = [[1e3 * (float(x['compute_end_s']) - float(x['compute_start_s']))
		          for x in step] for step in zip(*rows)]
		spread = [max(x) - min(x) for x in steps]
		assert len(steps) == 60, len(steps)
		for what in sys.argv[1:]:
		    if not eval(what):
		        sys.exit('not so: %s\n%s' % (what, steps))
	PY
}

@test "service: coordinated reads: no spread within a round" {
	documents
	dispatcher -v
	worker 1 --time-scale .1
	worker 2 --time-scale .1
	until [ "$(grep -c "worker 127" d.out)" = 2 ]; do kill -0 "$d"; sleep .02; done
	for i in 0 1 2 3; do consumer $i ,wait=20s,bucket=64 --time-scale .1; done
	all_ended
	# lengths differ from round to round, not within one
	spreads "max(spread) < 1e-3" "max(map(max, steps)) > 4 * min(map(min, steps))"
	shared "all(x['rounds'] == 60 and not x['splits_lost'] for x in s.values())" \
		"all(len(x['workers']) == 2 and all(y['batches'] == 30 for y in x['workers']) for x in s.values())" \
		"all(x['batches'] == 120 for x in w.values())" \
		"all(30 <= x['rounds'] <= 60 and x['round_spread'] < 64 for x in w.values())"
	# the same without buckets
	worker 3 --time-scale .1
	until grep "worker ${at[3]}" d.out; do kill -0 "$d"; sleep .02; done
	for i in 0 1 2 3; do consumer $i "" --time-scale .1; done
	all_ended
	spreads "sum(x > 1e-3 for x in spread) > 50"
	unset 'w[1]' 'w[2]'
	shared "w['3']['round_spread'] > 64"
}

@test "service: coordinated reads need all of their consumers and workers" {
	documents
	dispatcher -v
	worker 1
	until grep "worker 127" d.out; do kill -0 "$d"; sleep .02; done
	# one of four
	consumer 0 ,wait=500ms
	if wait "$t"; then false; fi
	grep "no round arrived: are all 4 consumers and all workers running?" out0
	# the same one twice
	for i in 0 1 2 3; do consumer $i "" --max-steps 9999 -e 99; done
	until [ "$(cat s[0-3].txt | wc -l)" -gt 40 ]; do kill -0 "$t"; sleep .02; done
	run -1 train --data text --gpu h100 --model bert_large --sequence-length 512 \
		--format tokens:documents=on --prep none -b 2 \
		--loader service:job=lm,consumers=4,consumer=1
	[[ $output == *"its job has another trainer of this number"* ]]
	# one that comes again
	kill -9 "${trainers[2]}"
	wait "${trainers[2]}" || true
	consumer 2 "" --max-steps 9999 -e 99
	if wait "$t"; then false; fi
	grep "consumer 2 has joined again after the first rounds of its job" out2
	unset 'trainers[2]'
	kill -9 "${w[1]}"
	for i in 0 1 3; do
		if wait "${trainers[$i]}"; then false; fi
		grep "worker ${at[1]}, which makes rounds, is no longer available" "out$i"
	done
}

@test "service: samples that the order repeats, as without the service" {
	dispatcher
	worker 1
	worker 2
	train -e 3 --order weighted
	cut -d' ' -f1,3 s.txt | sort >service
	"$TRAIN" --data data --index off --model alexnet --gpu a100 -b 8 -e 3 \
		--prep none --order weighted --dump-samples s.txt >/dev/null
	cut -d' ' -f1,3 s.txt | sort >alone
	cmp service alone
	[ "$(uniq -d alone | wc -l)" -gt 100 ]
}
