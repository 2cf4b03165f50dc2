#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-gpud and gpemu-smi: who may connect, and what each gets.

load gpud

@test "--help, --list, --dump-config" {
	for program in "$GPUD" "$SMI"; do
		run "$program" --help
		[ "$status" -eq 0 ]
		[[ $output == *--socket=PATH* ]]
	done
	run "$GPUD" --list scheduler
	[ "$status" -eq 0 ]
	[ "${#lines[@]}" -ge 5 ]
	[[ $output == *"fair "*"[anew=on]"* ]]
	run "$GPUD" --list speedup
	[[ $output == *mps-nominal*timeslice-h100* ]]
	run "$GPUD" --dump-config --gpus 3 --allow daemon --allow 7
	[ "$status" -eq 0 ]
	[[ $output == *"gpus: 3"*"allow: [daemon, 7]"* ]]
}

@test "a table that a full disk did not take fails" {
	for program in "$GPUD --help" "$BUILD/gpemu-data --help" \
		"$BUILD/gpemu-fs --version" "$TRAIN --list engine" \
		"$BUILD/gpemu-cachesim --dataset imagenet --files 9999 -p lru -c 10%"; do
		$program >/dev/null
		run sh -c "exec $program >/dev/full"
		[ "$status" -eq 1 ]
		[[ $output == *"stdout: No space left on device"* ]]
	done
}

@test "a client does not wait forever for a stopped server" {
	gpud
	kill -STOP "$SERVER"
	run "$SMI" --socket "$SOCKET"
	kill -CONT "$SERVER"
	[ "$status" -eq 75 ]
	[[ $output == *"$SOCKET: gpemu-gpud has not answered for 10 s"* ]]
	until_so 'True'
	gpud_end
}

@test "invalid options are rejected before the socket is made" {
	for option in '--scheduler best' '--share much' '--mode 888' \
		'--mode 01777' '--gpus 0' '--gpus 65' '--speedup mps-nominal' \
		'--time-scale 0' '--gpu no-such-gpu' '--slicing much'; do
		run "$GPUD" --socket "$SOCKET" $option
		[ "$status" -eq 2 ]
		[ ! -e "$SOCKET" ]
	done
	run "$GPUD" --socket "$SOCKET" --allow no-such-user
	[ "$status" -eq 1 ]
	[[ $output == *"unknown user 'no-such-user'"* ]]
	run "$SMI" 5
	[ "$status" -eq 2 ]
	run "$SMI" --watch never
	[ "$status" -eq 2 ]
}

# slicing REASON OPTION...: the server of these options says this reason
slicing() {
	local reason=$1

	shift
	gpud -v "$@" 2>"$TMP/log"
	so "j['server']['slicing']['reason'] == '$reason'"
	grep -q "time slicing: .* ($reason)" "$TMP/log"
}

@test "time slicing: the cost of the GPU, another one, or none, and why" {
	slicing 'the default of the GPU' --gpu h100
	so "j['server']['slicing']['profile'] == 'timeslice-h100' and j['server']['slicing']['rows'] == [[1, 1], [2, .9271]]"
	run "$SMI" --socket "$SOCKET"
	[[ $output == *"Time slicing: timeslice-h100 (the default of the GPU): 2 jobs have 0.927 of the GPU"* ]]
	train one --model resnet50:tf32 -b 64 --max-steps 2
	wait "$JOB"
	check one "j['sharing']['slicing'] == 'timeslice-h100'"
	grep -q 'time slicing: timeslice-h100' "$TMP/one.out"
	gpud_end
	slicing '--slicing none' --gpu h100 --slicing none
	train one --model resnet50:tf32 -b 64 --max-steps 2
	wait "$JOB"
	check one "j['sharing']['slicing'] == 'no cost'"
	gpud_end
	slicing 'no profile has this GPU' --gpu v100
	so "j['server']['slicing']['profile'] is None"
	run "$SMI" --socket "$SOCKET"
	[[ $output == *"Time slicing costs nothing: no profile has this GPU"* ]]
	gpud_end
	slicing '--slicing' --gpu v100 --slicing timeslice-h100
	gpud_end
	slicing 'jobs do not take turns by time slicing' --gpu h100 --scheduler fifo
	gpud_end
	run "$GPUD" --socket "$SOCKET" --share lanes --slicing timeslice-h100
	[ "$status" -eq 2 ]
	[[ $output == *"with --share lanes --scheduler fair, jobs do not take turns by time slicing"* ]]
}

@test "no server: exit status 75, and the way out" {
	run "$SMI" --socket "$SOCKET"
	[ "$status" -eq 75 ]
	[[ $output == *"start one with --socket $SOCKET"* ]]
	run "$TRAIN" --loader null --gpu-server "$SOCKET"
	[ "$status" -eq 75 ]
}

@test "the path of the socket: in use, stale, another file" {
	gpud
	[ "$(stat -c %a "$SOCKET")" = 600 ]
	run "$GPUD" --socket "$SOCKET"
	[ "$status" -eq 1 ]
	[[ $output == *"another server listens on it"* ]]
	so 'True'
	kill -9 "$SERVER"
	wait "$SERVER" || true
	[ -S "$SOCKET" ]
	gpud --mode 0666
	[ "$(stat -c %a "$SOCKET")" = 666 ]
	gpud_end
	[ ! -e "$SOCKET" ]
	echo precious >"$SOCKET"
	run "$GPUD" --socket "$SOCKET"
	[ "$status" -eq 1 ]
	[ "$(cat "$SOCKET")" = precious ]
}

@test "READY=1 is sent when clients can connect" {
	python3 - "$GPUD" "$SOCKET" "$TMP/notify" <<-'PY'
		import os, socket, subprocess, sys
		gpud, path, name = sys.argv[1:]
		s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
		s.bind(name)
		s.settimeout(20)
		p = subprocess.Popen([gpud, "--socket", path],
		                     env=dict(os.environ, NOTIFY_SOCKET=name))
		try:
		    assert s.recv(4096).decode() == f"READY=1\nMAINPID={p.pid}"
		    socket.socket(socket.AF_UNIX).connect(path)
		finally:
		    p.terminate()
		    p.wait(20)
	PY
}

@test "a GPU keeps its identity over a restart; another socket has others" {
	gpud --gpus 2
	cp "$TMP/status.json" "$TMP/first.json"
	gpud_end
	gpud --gpus 2
	cp "$TMP/status.json" "$TMP/second.json"
	SOCKET=$TMP/other.sock
	gpud --gpus 2
	python3 - "$TMP" <<-'PY'
		import json, re, sys
		def ids(name):
		    gpus = json.load(open('%s/%s.json' % (sys.argv[1], name)))['gpus']
		    return [(g['uuid'], g['serial'], g['pci_bus_id']) for g in gpus]
		first, other = ids('first'), ids('status')
		assert first == ids('second'), first
		for i in range(2):
		    assert len({x[i] for x in first + other}) == 4, (first, other)
		for uuid, serial, pci in first:
		    assert re.fullmatch('GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}', uuid)
		    assert re.fullmatch('[0-9]{13}', serial)
		    assert re.fullmatch('0000[89A-F][0-9A-F]{3}:0[12]:00.0', pci)
	PY
}

@test "the status has the board of the profile, and its power" {
	gpud --gpu v100
	so 'g[0]["board"]["power_limit_w"] == 250 and g[0]["board"]["power_w"] == 25'
	so 'g[0]["board"]["compute_capability"] == 7 and "temperature_c" not in g[0]["board"]'
	gpud_end
	gpud --gpu mlperf_a100
	so 'g[0]["board"] == {}'
}

@test "-q -x writes the XML of nvidia-smi" {
	cat >"$TMP/odd.yaml" <<-'YAML'
		name: "a <b> & \"c\" \x01 \uFFFE é"
		source: nominal
		memory_mib: 1000
		usable_memory: 0.9
		sample_bytes: 1048576
		pinned: {base_ms: 0, per_sample_ms: 1, source: nominal}
		pin_copy: {base_ms: 0, per_sample_ms: 0, source: nominal}
		board: {power_limit_w: 210, power_idle_w: 10, clock_mhz: 1380, pcie_width: 8, source: s}
		models:
		  resnet50:
		    parameters: 1000
		    model_transfer_ms: 0
		    last_batch: 64
		    last_is_limit: false
		    tolerance_pct: 0
		    rows: [[64, 10, 33, 1, 100, 50]]
	YAML
	gpud --gpu "$TMP/odd.yaml" --gpus 2
	mkfifo "$TMP/in"
	"$CLIENT" "$SOCKET" hold 1 <"$TMP/in" >"$TMP/held" 3>&- &
	PIDS+=($!)
	exec 8>"$TMP/in"
	until_so 'len(p) == 1'
	"$SMI" --socket "$SOCKET" -q -x >"$TMP/log.xml"
	"$SMI" --socket "$SOCKET" --json "$TMP/status.json" >/dev/null
	exec 8>&-
	python3 - "$TMP" <<-'PY'
		import json, sys
		import xml.etree.ElementTree as ET
		root = ET.parse(sys.argv[1] + '/log.xml').getroot()
		j = json.load(open(sys.argv[1] + '/status.json'))
		assert root.tag == 'nvidia_smi_log' and root.findtext('attached_gpus') == '2'
		a, b = root.findall('gpu')
		want = {
		    'product_name': 'a <b> & "c" ? ? é',
		    'uuid': j['gpus'][0]['uuid'],
		    'serial': j['gpus'][0]['serial'],
		    'pci/pci_bus_id': a.get('id'),
		    'pci/pci_bus': '01',
		    'pci/pci_gpu_link_info/link_widths/max_link_width': '8x',
		    'pci/pci_gpu_link_info/pcie_gen/max_link_gen': 'N/A',
		    'fb_memory_usage/total': '1000 MiB',
		    'fb_memory_usage/reserved': '100 MiB',
		    'fb_memory_usage/used': '100 MiB',
		    'fb_memory_usage/free': '800 MiB',
		    'utilization/gpu_util': '0 %',
		    'temperature/gpu_temp': 'N/A',
		    'gpu_power_readings/power_draw': None,
		    'gpu_power_readings/average_power_draw': '10.00 W',
		    'gpu_power_readings/current_power_limit': '210.00 W',
		    'gpu_power_readings/max_power_limit': 'N/A',
		    'ecc_mode/current_ecc': 'N/A',
		    'clocks/sm_clock': '1380 MHz',
		    'processes/process_info/pid': str(j['processes'][0]['pid']),
		    'processes/process_info/process_name': 'test',
		    'processes/process_info/used_memory': '100 MiB',
		}
		seen = {k: a.findtext(k) for k in want}
		assert seen == want, seen
		assert a.get('id') == j['gpus'][0]['pci_bus_id']
		assert b.findtext('minor_number') == '1' and not b.findall('processes/process_info')
	PY
	run "$SMI" --socket "$SOCKET" -x
	[ "$status" -eq 2 ]
	[[ $output == *"-x and -d are for -q"* ]]
}

@test "malformed messages: an error and a closed connection" {
	gpud
	run timeout 100 "$CLIENT" "$SOCKET" malformed
	echo "$output"
	[ "$status" -eq 0 ]
	# and they leave nothing behind
	until_so 'not p and g[0]["memory_used_mib"] == 0 and j["server"]["clients"] == 1'
	so 'j["server"]["malformed"] > 10'
}

@test "more clients than allowed, and one that never reads" {
	gpud --max-clients 5
	run "$CLIENT" "$SOCKET" many 9
	[ "$output" = 5 ]
	until_so 'j["server"]["clients"] == 1 and j["server"]["refused"] >= 4'
	run timeout 60 "$CLIENT" "$SOCKET" deaf
	[ "$output" = closed ]
	so 'True'
}

@test "a client that queries and disconnects does not delay the others" {
	local peak

	[ -z "$GPEMU_SANITIZED" ] || skip "a sanitizer keeps what was freed"
	gpud --max-clients 400
	run timeout 100 "$CLIENT" "$SOCKET" leavers 300 2000
	echo "$output"
	[ "$output" = "welcome status" ]
	# one status at a time: each is 360 KiB of jobs
	peak=$(awk '/VmHWM/ { print $2 }' "/proc/$SERVER/status")
	echo "$peak KiB"
	[ "$peak" -lt $((40 << 10)) ]
}

@test "the status has room for the jobs of all clients" {
	[ "$(ulimit -Hn)" = unlimited ] || [ "$(ulimit -Hn)" -gt 5000 ] ||
		skip "no more than $(ulimit -Hn) descriptors"
	ulimit -Sn "$(ulimit -Hn)"
	gpud --gpus 1 --max-clients 4096
	run timeout 100 "$CLIENT" "$SOCKET" leavers 4095 0
	echo "$output"
	[ "$output" = "welcome status" ]
}

@test "the limit of descriptors allows all clients" {
	(
		ulimit -Sn 20
		exec "$GPUD" --socket "$SOCKET" --max-clients 30 2>/dev/null 3>&-
	) &
	SERVER=$!
	PIDS+=("$SERVER")
	until_so 'True'
	run "$CLIENT" "$SOCKET" many 25
	[ "$output" = 25 ]
}

@test "an invalid errno from a server is an error" {
	codes=(0xffffffff 0x80000000 0 61 125 4096)
	"$CLIENT" "$SOCKET" liar "${codes[@]}" "${codes[@]}" 3>&- &
	PIDS+=("$!")
	for try in {1..200}; do
		[ ! -S "$SOCKET" ] || break
		sleep 0.05
	done
	for code in "${codes[@]}"; do
		run timeout 20 "$SMI" --socket "$SOCKET"
		[ "$status" -eq 1 ]
		[[ $output == *"a lie"* ]]
		run timeout 20 "$TRAIN" --loader null --gpu-server "$SOCKET" --max-steps 2
		[ "$status" -eq 1 ]
		[[ $output == *"a lie"* ]]
	done
}

@test "other users are refused, unless allowed" {
	[ "$(id -u)" -eq 0 ] || skip "needs root, to be another user"
	chmod 711 "$TMP"
	as_nobody() {
		setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
	}
	as_nobody test -x "$SMI" || skip "another user cannot run $SMI"
	as_nobody test -x "$TMP" || skip "another user cannot enter $TMP"
	gpud
	run as_nobody "$SMI" --socket "$SOCKET"
	[ "$status" -ne 0 ]
	[[ $output == *"Permission denied"* ]]
	gpud_end
	gpud --mode 0666
	run as_nobody "$SMI" --socket "$SOCKET"
	[ "$status" -ne 0 ]
	[[ $output == *"user 65534 may not use this GPU"* ]]
	so 'j["server"]["refused"] == 1'
	gpud_end
	gpud --mode 0666 --allow 65534 --max-clients-per-user 2
	run as_nobody "$SMI" --socket "$SOCKET"
	[ "$status" -eq 0 ]
	# and a part of the connections
	run as_nobody "$CLIENT" "$SOCKET" many 5
	[ "$output" = 2 ]
	run "$CLIENT" "$SOCKET" many 5
	[ "$output" = 5 ]
	gpud_end
	# of which root finds some in any case
	gpud --mode 0666 --allow 65534 --max-clients 8 \
		--max-clients-per-user 8 --idle-limit 300ms
	run as_nobody "$CLIENT" "$SOCKET" many 9
	[ "$output" = 4 ] # as many are free
	run "$CLIENT" "$SOCKET" many 9
	[ "$output" = 8 ]
	# who watches does not keep one for ever
	as_nobody timeout 20 "$CLIENT" "$SOCKET" watch
}

@test "grants: a folder of another, and what a dead server left" {
	[ "$(id -u)" -eq 0 ] || skip "needs root, to be another user"
	local parent=$TMP/gpud.sock.d

	gpud
	mkdir "$TMP/victim"
	ln -s victim "$parent"
	run "$CLIENT" "$SOCKET" grant a 0 100
	[ "$output" = 13 ] # EACCES
	[ -z "$(ls "$TMP/victim")" ]
	rm "$parent"
	mkdir "$parent"
	chown 65534 "$parent"
	run "$CLIENT" "$SOCKET" grant a 0 100
	[ "$output" = 13 ]
	rmdir "$parent"
	gpud_end
	umask 077
	gpud
	run "$CLIENT" "$SOCKET" grant a 0 100
	[ "$output" = 0 ]
	[ "$(stat -c %a "$parent" "$parent/a" "$parent/a/gpud.sock")" = \
		"700"$'\n'"755"$'\n'"666" ]
	kill -KILL "$SERVER"
	wait "$SERVER" || true
	gpud
	[ -S "$parent/a/gpud.sock" ]
	run "$CLIENT" "$SOCKET" revoke a
	[ "$output" = 0 ]
	[ ! -e "$parent/a" ]
}

@test "a tenant has the time, the link and the memory of its grant" {
	local a=$TMP/gpud.sock.d/a/gpud.sock

	# no memory in this profile limits a batch
	SCALE=1 gpud --gpu mlperf-checkpoint
	"$CLIENT" "$SOCKET" grant a 0 1000
	run "$CLIENT" "$a" ask llama3_8b 1048576 0 0
	[[ $output == *"would hold the GPU for 5.24e+06 s"*"--idle-limit: 60 s"* ]]
	run "$CLIENT" "$a" ask llama3_8b 1 0 1000
	[[ $output == *accepted* ]]
	run "$CLIENT" "$a" ask llama3_8b 1 0 1001
	[[ $output == *"larger than the GPU's memory that was granted"* ]]
	gpud_end
	# the profile knows what a step needs, whatever a client says
	gpud
	"$CLIENT" "$SOCKET" grant a 0 4000
	run "$CLIENT" "$a" ask resnet50 64 1 0
	[[ $output == *"does not fit the 3.91 GiB"* ]]
	# also for a batch that no such GPU can hold; the one it names fits
	run "$CLIENT" "$a" ask resnet50 100000 0 0
	[[ $output =~ 'does not fit the 3.91 GiB of '.*'the largest that fits is '([0-9]+) ]]
	largest=${BASH_REMATCH[1]}
	run "$CLIENT" "$a" ask resnet50 "$largest" 0 0
	[[ $output == *admitted* ]]
	run "$CLIENT" "$a" ask resnet50 $((largest + 1)) 0 0
	[[ $output == *"the largest that fits is $largest" ]]
	gpud_end
	# four cannot keep the fifth out
	gpud --max-clients 32 --max-clients-per-user 8
	for i in 0 1 2 3 4; do "$CLIENT" "$SOCKET" grant "g$i" 0 100; done
	mkfifo "$TMP/in"
	exec 8<>"$TMP/in"
	for i in 0 1 2 3; do
		"$CLIENT" "$TMP/gpud.sock.d/g$i/gpud.sock" many 8 wait <"$TMP/in" \
			>"$TMP/n$i" 3>&- 8>&- &
		PIDS+=("$!")
		until [ -s "$TMP/n$i" ]; do sleep .02; done
	done
	run "$CLIENT" "$TMP/gpud.sock.d/g4/gpud.sock" many 1
	[ "$output" = 1 ]
	exec 8>&-
}

@test "grants of a GPU's time: no more than there is, no change under a job" {
	local a=$TMP/gpud.sock.d/a/gpud.sock

	grant() {
		run "$CLIENT" "$SOCKET" grant "$@"
	}
	gpud --gpus 2
	grant a 0 8000 600
	[ "$output" = 0 ]
	grant b 0 4000 500
	[ "$output" = 28 ] # ENOSPC
	[ ! -e "$TMP/gpud.sock.d/b" ]
	so '[x["part_milli"] for x in g] == [600, 0]'
	run "$SMI" --socket "$a"
	[[ $output == *"Granted of its time:  60.0 %"* ]]
	grant b 1 4000 500
	[ "$output" = 0 ]
	mkfifo "$TMP/in"
	exec 8<>"$TMP/in"
	"$CLIENT" "$a" hold 1 3000 <"$TMP/in" >"$TMP/held.a" 3>&- 8>&- &
	PIDS+=("$!")
	until_so 'len(p) == 1 and p[0]["gpus"] == [0]'
	grant a 0 8000 500
	[ "$output" = 16 ] # EBUSY
	grant a 0 6000 600
	[ "$output" = 0 ]
	grant a 1 8000 400
	[ "$output" = 0 ]
	for bad in "c 0 10 1001" "c 0 0 100"; do
		grant $bad
		[ "$output" = 22 ] # EINVAL
	done
	"$CLIENT" "$SOCKET" revoke a
	until_so 'len(p) == 0'
	for gpu in 0 1; do
		grant "c$gpu" $gpu 4000 $((1000 - 500 * gpu))
		[ "$output" = 0 ]
	done
	exec 8>&-
}

@test "who has a grant sees its GPUs, as far as granted, and its jobs" {
	local a=$TMP/gpud.sock.d/a/gpud.sock b=$TMP/gpud.sock.d/b/gpud.sock
	local whole

	gpud --gpus 3
	so 'len(g) == 3 and j["server"]["jobs_ever"] == 0'
	whole=$(python3 -c "import json; print(
		json.load(open('$TMP/status.json'))['gpus'][0]['memory_total_mib'])")
	"$CLIENT" "$SOCKET" grant a 1 8000
	"$CLIENT" "$SOCKET" grant a 2 1000000 # all of it
	"$CLIENT" "$SOCKET" grant b 1 4000
	mkfifo "$TMP/in"
	exec 8<>"$TMP/in"
	"$CLIENT" "$a" hold 2 3000 <"$TMP/in" >"$TMP/held.a" 3>&- 8>&- &
	PIDS+=("$!")
	pid=$!
	"$CLIENT" "$b" hold 1 2000 <"$TMP/in" >"$TMP/held.b" 3>&- 8>&- &
	PIDS+=("$!")
	until_so 'len(p) == 2 and all(x["gpus"] for x in p)'
	so 'g[1]["jobs"] == 2 and g[1]["memory_total_mib"] == '"$whole"
	so '"timer_error_us" in j'

	(
		SOCKET=$a
		so '[x["index"] for x in g] == [1, 2]'
		so '[x["memory_total_mib"] for x in g] == [8000, '"$whole"']'
		so '[x["memory_used_mib"] for x in g] == [3000, 3000]'
		so '[(x["jobs"], x["lanes"], x["running"]) for x in g] == [(1, 1, 0)] * 2'
		so '[(x["pid"], x["gpus"]) for x in p] == [('"$pid"', [1, 2])]'
		so 'j["server"]["clients"] == 2' # the job, and the question
		so '"jobs_ever" not in j["server"]'
		so '"timer_error_us" not in j' # of all jobs
	)
	(
		SOCKET=$b
		so '[x["memory_total_mib"] for x in g] == [4000]'
		so 'g[0]["memory_used_mib"] == 2000'
		so '[x["gpus"] for x in p] == [[1]]'
	)
	exec 8>&-
}

@test "questions for the server and its grants at once: each has its own answer" {
	local i n

	gpud --gpus 4
	for n in 0 1 2 3; do
		"$CLIENT" "$SOCKET" grant "g$n" "$n" 1000
	done
	for i in {1..10}; do
		for n in 0 1 2 3; do
			"$SMI" --socket "$TMP/gpud.sock.d/g$n/gpud.sock" \
				--json "$TMP/$i.$n.json" >/dev/null 3>&- &
			PIDS+=("$!")
		done
		"$SMI" --socket "$SOCKET" --json "$TMP/$i.all.json" \
			>/dev/null 3>&- &
		PIDS+=("$!")
	done
	wait "${PIDS[@]:1}"
	python3 - "$TMP" <<-'PY'
		import json, sys
		for i in range(1, 11):
		    for n in '0', '1', '2', '3', 'all':
		        j = json.load(open(f'{sys.argv[1]}/{i}.{n}.json'))
		        seen = [g['index'] for g in j['gpus']]
		        assert seen == (list(range(4)) if n == 'all' else
		                        [int(n)]), (n, seen)
	PY
}

@test "another user's server is trusted only when that user is named" {
	[ "$(id -u)" -eq 0 ] || skip "needs root, to be another user"
	chmod 777 "$TMP"
	setpriv --reuid=65534 --regid=65534 --clear-groups \
		test -x "$GPUD" || skip "another user cannot run $GPUD"
	setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$GPUD" --socket "$SOCKET" --time-scale "$SCALE" 3>&- &
	PIDS+=("$!")
	for try in {1..200}; do
		[ ! -S "$SOCKET" ] || break
		sleep 0.05
	done
	run "$SMI" --socket "$SOCKET"
	[ "$status" -eq 1 ]
	[[ $output == *"$SOCKET: the server belongs to user 65534"* ]]
	run "$TRAIN" --loader null --gpu-server "$SOCKET" --max-steps 2 \
		--time-scale "$SCALE"
	[ "$status" -eq 1 ]
	[[ $output == *"the server belongs to user 65534"* ]]
	run "$SMI" --socket "$SOCKET" --server-user no-such-user
	[ "$status" -eq 1 ]
	[[ $output == *"unknown user 'no-such-user'"* ]]
	"$SMI" --socket "$SOCKET" --server-user 65534
	"$TRAIN" --loader null --gpu-server "$SOCKET" --server-user 65534 \
		--max-steps 2 --pin off --time-scale "$SCALE"
}

@test "the default socket is in a private folder" {
	[ "$(id -u)" -eq 0 ] || skip "needs root, to be another user"
	local id=61234 folder=/tmp/gpemu-61234

	as_user() {
		env -u XDG_RUNTIME_DIR setpriv --reuid=$id --regid=$id \
			--clear-groups "$@"
	}
	as_user test -x "$GPUD" || skip "another user cannot run $GPUD"
	[ ! -e "$folder" ] || skip "$folder is there"
	mkdir -m 777 "$folder"
	run as_user "$GPUD"
	rmdir "$folder"
	[ "$status" -eq 1 ]
	[[ $output == *"$folder: not a private folder of this user"* ]]
	ln -s "$TMP" "$folder"
	run as_user "$GPUD"
	rm "$folder"
	[ "$status" -eq 1 ]
	env -u XDG_RUNTIME_DIR setpriv --reuid=$id --regid=$id --clear-groups \
		"$GPUD" 3>&- &
	PIDS+=("$!")
	for try in {1..200}; do
		! as_user "$SMI" >"$TMP/smi" 2>&1 || break
		sleep 0.05
	done
	mode=$(stat -c %a "$folder")
	kill "${PIDS[0]}"
	wait "${PIDS[0]}"
	rmdir "$folder"
	grep -q 'No running processes' "$TMP/smi"
	[ "$mode" = 700 ]
}

@test "an idle connection is closed" {
	gpud --idle-limit 300ms
	run timeout 20 "$CLIENT" "$SOCKET" mute
	[ "$output" = "connected without requesting a GPU" ]
	so 'j["server"]["expired"] == 1 and j["server"]["clients"] == 1'
}

@test "a stopped job releases what others wait for, and nothing else" {
	gpud --scheduler fifo --idle-limit 500ms
	train a --model resnet50 -b 32 --max-steps 100000
	first=$JOB
	until_so 'len(p) == 1 and p[0]["iterations"] > 3'
	kill -STOP "$first"
	until_so 'p[0]["state"] == "idle"'
	sleep 1 # twice the limit, and nobody waits
	so 'len(p) == 1 and j["server"]["expired"] == 0'
	train b --model resnet50 -b 32 --max-steps 5
	wait "$JOB"
	check b "j['totals']['steps'] == 5"
	so 'not p and j["server"]["expired"] == 1'
	kill -CONT "$first"
	status=0
	wait "$first" || status=$?
	[ "$status" -eq 1 ]
	grep -q 'no iteration for .* s while other jobs wait' "$TMP/a.out"
}

@test "a job that talks and does not iterate is idle" {
	gpud --scheduler fifo --idle-limit 500ms
	timeout 20 "$CLIENT" "$SOCKET" chatty >"$TMP/chatty" 3>&- &
	PIDS+=($!)
	until_so 'len(p) == 1'
	train b --model resnet50 -b 32 --max-steps 5
	wait "$JOB"
	check b "j['totals']['steps'] == 5"
	wait "${PIDS[-1]}"
	[[ $(<"$TMP/chatty") == admitted*"no iteration for"*"while other jobs wait"* ]]
	so 'j["server"]["expired"] == 1'
}

@test "without free descriptors the server waits and does not spin" {
	local before after

	gpud
	so 'True'
	prlimit --pid "$SERVER" --nofile="$(find "/proc/$SERVER/fd" -type l | wc -l):"
	before=$(awk '{ print $14 + $15 }' "/proc/$SERVER/stat")
	timeout 2 "$SMI" --socket "$SOCKET" || true
	after=$(awk '{ print $14 + $15 }' "/proc/$SERVER/stat")
	echo "$((after - before)) ticks in 2 s"
	((after - before < 50))
	prlimit --pid "$SERVER" --nofile=1024:
	until_so 'True'
}

@test "gpemu-smi: a table, --watch, --json -" {
	gpud --gpus 2
	run "$SMI" --socket "$SOCKET"
	[ "$status" -eq 0 ]
	[[ $output == *"GPU-Util"*"No running processes found"* ]]
	# no line is wider than the frame
	[ "$(echo "$output" | awk '{ print length }' | sort -n | tail -n 1)" -eq 91 ]
	"$SMI" --socket "$SOCKET" --watch 0.1 >"$TMP/watch" 3>&- &
	watch=$!
	PIDS+=("$watch")
	for try in {1..200}; do
		[ "$(grep -c 'Processes:' "$TMP/watch")" -lt 3 ] || break
		sleep 0.05
	done
	[ "$(grep -c 'Processes:' "$TMP/watch")" -ge 3 ]
	kill "$watch" # it goes on until then
	"$SMI" --socket "$SOCKET" --json - | python3 -c 'import json, sys; assert len(json.load(sys.stdin)["gpus"]) == 2'
	XDG_RUNTIME_DIR=$TMP/none run "$SMI"
	[ "$status" -eq 75 ]
	[[ $output == *"$TMP/none/gpemu-gpud.sock"* ]]
}

@test "--json: the record of the server, written at its end" {
	gpud --json "$TMP/server.json"
	train a --model resnet50 -b 32 --max-steps 7
	wait "$JOB"
	gpud_end
	check server "j['server']['iterations'] == 7 and j['server']['jobs_ever'] == 1"
	check server "j['config']['scheduler'] == 'fair' and j['timer_error_us']['mean'] >= 0"
}
