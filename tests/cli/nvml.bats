#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# libnvidia-ml.so.1: what monitors of GPUs see of gpemu-gpud. smi.bats has those
# of Python.

bats_require_minimum_version 1.5.0
load gpus
load processes

setup() {
	BUILD=$(realpath "${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}")
	LIBRARY=$BUILD/platform/nvml
	MONITOR=$BUILD/tests/cli/nvml
	CLIENT=$BATS_TEST_DIRNAME/gpud-client
	TMP=$(mktemp -d)
	SOCKET=$TMP/gpud.sock
	PIDS=()
	board "$TMP/half.yaml"
}

teardown() {
	end_processes "${PIDS[@]}"
	rm -rf "$TMP"
}

# gpud SOCKET OPTION...: its pid is $SERVER
gpud() {
	local try socket=$1

	shift
	"$BUILD/gpemu-gpud" --socket "$socket" "$@" 3>&- &
	SERVER=$!
	PIDS+=("$SERVER")
	for try in {1..200}; do
		! "$BUILD/gpemu-smi" --socket "$socket" >/dev/null 2>&1 || return 0
		sleep 0.05
	done
	return 1
}

# A job that stays until descriptor 9 is closed; its pid is $JOB
hold() {
	local try

	mkfifo "$TMP/in"
	"$CLIENT" "$SOCKET" hold 1 <"$TMP/in" >"$TMP/held" 3>&- &
	JOB=$!
	PIDS+=("$JOB")
	exec 9>"$TMP/in"
	for try in {1..200}; do
		! grep -q '^gpus' "$TMP/held" || return 0
		sleep 0.05
	done
	return 1
}

monitor() {
	LD_LIBRARY_PATH=$LIBRARY GPEMU_GPU_SERVER=${SERVERS:-$SOCKET} \
		timeout 60 "$MONITOR" "$@"
}

# ask: one line of `monitor lines`, the coprocess MON, in $line
ask() {
	echo >&"${MON[1]}"
	read -r -t 20 -u "${MON[0]}" line
}

has() {
	grep -qxF "$1" <<<"$output" || { echo "no: $1"; echo "$output"; false; }
}

@test "exactly the functions of NVML are exported, with the version of NVIDIA's" {
	grep -v '^#' "$BATS_TEST_DIRNAME/../../platform/nvml/symbols" | tr ' ' '\n' |
		sort >"$TMP/listed"
	nm -D --defined-only "$LIBRARY/libnvidia-ml.so.1" >"$TMP/names"
	sed -n 's/.* [TW] \(nvml[A-Za-z_0-9]*\)@@libnvidia-ml\.so\.1$/\1/p' "$TMP/names" |
		sort >"$TMP/exported"
	[ "$(wc -l <"$TMP/exported")" -gt 400 ]
	diff "$TMP/listed" "$TMP/exported"
	[ "$(grep -vc ' [TW] nvml' "$TMP/names")" -eq 1 ]
	readelf -d "$LIBRARY/libnvidia-ml.so.1" | grep -q 'SONAME.*\[libnvidia-ml.so.1\]'
}

@test "without a server the driver is not loaded" {
	run monitor show
	[ "$status" -eq 0 ]
	[[ $output == "init 9 Driver Not Loaded"* ]]
}

@test "a device is what its profile and its server say" {
	gpud "$SOCKET" --gpu "$TMP/half.yaml" --gpus 2
	hold
	run monitor show
	[ "$status" -eq 0 ]
	has 'init 0 Success'
	has 'devices 2'
	has 'cuda 13000'
	[[ $output == *"driver 580."* && $output == *"nvml 13.580."* ]]
	has '0 nvmlDeviceGetName Tesla H50-HALF'
	has '1 nvmlDeviceGetIndex 1'
	has '1 nvmlDeviceGetMinorNumber 1'
	has '0 nvmlDeviceGetBrand 2'
	has '0 nvmlDeviceGetArchitecture 6'
	has '0 nvmlDeviceGetNumGpuCores 2560'
	has '0 nvmlDeviceGetMemoryBusWidth 256'
	has '0 nvmlDeviceGetDefaultEccMode 1'
	has '0 nvmlDeviceGetEccMode 1000001'
	has '0 nvmlDeviceGetMigMode error 3'
	has '0 nvmlDeviceGetPowerManagementLimitConstraints 100000250000'
	has '0 errors 0'
	has '0 reasons 511'
	has '0 compute 75'
	has '0 nvmlDeviceGetMaxPcieLinkGeneration 3'
	has '0 nvmlDeviceGetCurrPcieLinkWidth 16'
	has '0 clock 0 1380'
	has '0 clock 2 877'
	has '0 clock 3 error 3'
	has '0 temperature 36'
	has '0 temperature V 36'
	has '0 nvmlDeviceGetPowerManagementLimit 210000'
	has '0 nvmlDeviceGetPowerUsage 10000'
	has '0 utilisation 0'
	has '0 nvmlDeviceGetFanSpeed error 3'
	has '0 nvmlDeviceGetVbiosVersion error 3'
	# admitted: the peak of its batch
	has "0 process $JOB 104857600"
	has '0 memory 1048576000 104857600 104857600 838860800'
	has '1 memory 1048576000 104857600 0 943718400'
	has '0 mps 0'
	[[ $output != *"1 process"* ]]
	# the names are those of gpemu-smi
	"$BUILD/gpemu-smi" --socket "$SOCKET" --json "$TMP/status.json" >/dev/null
	for key in uuid serial; do
		value=$(python3 -c "import json; print(json.load(open('$TMP/status.json'))['gpus'][1]['$key'])")
		[[ $output == *"1 nvmlDeviceGet"*" $value"* ]]
	done
	exec 9>&-
}

@test "what a profile does not say is not supported" {
	gpud "$SOCKET" --gpu mlperf_a100
	run monitor show
	[ "$status" -eq 0 ]
	for what in nvmlDeviceGetPowerUsage nvmlDeviceGetPowerManagementMode \
		nvmlDeviceGetArchitecture 'clock 0' temperature compute \
		nvmlDeviceGetBrand nvmlDeviceGetNumGpuCores errors reasons \
		nvmlDeviceGetEccMode nvmlDeviceGetMemoryBusWidth \
		nvmlDeviceGetPowerManagementLimitConstraints \
		nvmlDeviceGetMaxPcieLinkGeneration; do
		has "0 $what error 3"
	done
	has '0 nvmlDeviceGetPersistenceMode 1'
}

@test "errors, sizes, handles, counted inits" {
	gpud "$SOCKET" --gpu "$TMP/half.yaml"
	hold
	run monitor rules
	echo "$output"
	[ "$output" = ok ]
	exec 9>&-
}

@test "several servers are one node" {
	gpud "$TMP/a" --gpu v100 --gpus 2
	gpud "$TMP/b" --gpu k80
	SERVERS=$TMP/a:$TMP/missing:$TMP/b
	run monitor show
	has 'devices 3'
	has '1 nvmlDeviceGetName Tesla V100-PCIE-32GB'
	has '2 nvmlDeviceGetName Tesla K80'
	has '2 nvmlDeviceGetIndex 2'
}

@test "a grant is a GPU of its size, with the jobs of its container" {
	gpud "$SOCKET" --gpu "$TMP/half.yaml" --gpus 2
	hold
	"$CLIENT" "$SOCKET" grant a 1 300
	"$CLIENT" "$SOCKET" grant b 0 200
	SERVERS=$SOCKET.d/a/gpud.sock run monitor show
	has 'devices 1'
	has '0 nvmlDeviceGetName Tesla H50-HALF'
	has '0 memory 314572800 0 0 314572800'
	# the job is on the same GPU, but not of this grant
	SERVERS=$SOCKET.d/b/gpud.sock run monitor show
	has 'devices 1'
	has '0 memory 209715200 0 0 209715200'
	[[ $output != *process* ]]
	exec 9>&-
}

@test "jobs under MPS are listed as such" {
	gpud "$SOCKET" --gpu "$TMP/half.yaml" --share mps
	hold
	run monitor show
	has '0 mps 1'
	exec 9>&-
}

@test "a server that ends is a lost GPU; one that starts again brings it back" {
	gpud "$SOCKET" --gpu "$TMP/half.yaml"
	coproc MON { monitor lines 3>&-; }
	ask
	[ "$line" = '0 utilisation 0' ]
	kill -9 "$SERVER"
	wait "$SERVER" || true
	sleep 0.1
	ask
	[ "$line" = '0 utilisation error 15' ]
	gpud "$SOCKET" --gpu "$TMP/half.yaml"
	sleep 0.1
	ask
	[ "$line" = '0 utilisation 0' ]
	kill "$SERVER"
	wait "$SERVER"
	# another kind of GPU at the same place is another GPU
	gpud "$SOCKET" --gpu v100
	sleep 0.1
	ask
	[ "$line" = '0 utilisation error 15' ]
}

@test "a failed GPU is lost until it is repaired" {
	gpud "$SOCKET" --gpu "$TMP/half.yaml" --gpus 2
	coproc MON { monitor lines 3>&-; }
	ask
	[ "$line" = '0 utilisation 0' ]
	"$BUILD/gpemu-smi" --socket "$SOCKET" --fail 0 >/dev/null
	sleep 0.1
	ask
	[ "$line" = '0 utilisation error 15' ]
	"$BUILD/gpemu-smi" --socket "$SOCKET" -q -x | grep -c 'GPU is lost' |
		grep -qx 3
	"$BUILD/gpemu-smi" --socket "$SOCKET" --repair 0 >/dev/null
	sleep 0.1
	ask
	[ "$line" = '0 utilisation 0' ]
	run "$BUILD/gpemu-smi" --socket "$SOCKET" -q -x
	[[ $output != *lost* ]]
}

@test "a stopped server delays a monitor by two seconds, once" {
	gpud "$SOCKET" --gpu "$TMP/half.yaml"
	coproc MON { monitor lines 3>&-; }
	ask
	kill -STOP "$SERVER"
	sleep 0.1
	start=${EPOCHREALTIME/./}
	for i in 1 2 3 4 5 6 7 8 9 10; do
		ask
		[ "$line" = '0 utilisation error 10' ]
	done
	ms=$(((${EPOCHREALTIME/./} - start) / 1000))
	echo "$ms ms"
	((ms >= 1900 && ms < 15000))
}

@test "another user's server needs to be named" {
	[ "$(id -u)" -eq 0 ] || skip "needs root, to be another user"
	chmod 777 "$TMP"
	setpriv --reuid=65534 --regid=65534 --clear-groups \
		test -x "$BUILD/gpemu-gpud" || skip "another user cannot run gpemu-gpud"
	setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$BUILD/gpemu-gpud" --socket "$SOCKET" 3>&- &
	PIDS+=($!)
	for try in {1..200}; do
		[ ! -S "$SOCKET" ] || break
		sleep 0.05
	done
	run monitor show
	[[ $output == "init 4 "* ]]
	GPEMU_SERVER_USER=65534 run monitor show
	[[ $output == "init 0 "* ]]
}

@test "threads and forks" {
	gpud "$SOCKET" --gpu "$TMP/half.yaml"
	run monitor threads 8
	echo "$output"
	[ "$output" = ok ]
}

# bats test_tags=timed
@test "utilisation is that of the record, within two points" {
	[ -z "${GPEMU_SANITIZED-}" ] || skip "times mean nothing with a sanitizer"
	for try in 1 2 3 4 5; do
		gpud "$SOCKET" --gpu "$TMP/half.yaml" --time-scale 0.1
		# 36 emulated seconds
		"$BUILD/gpemu-train" --loader null --gpu-server "$SOCKET" \
			--time-scale 0.1 --pin off --transfer blocking \
			-b 64 --max-steps 450 --json "$TMP/record.json" \
			>"$TMP/train" 2>&1 3>&- &
		job=$!
		PIDS+=("$job")
		# until the last emulated second is of this job
		for n in {1..200}; do
			"$BUILD/gpemu-smi" --socket "$SOCKET" --json - |
				grep -q '"iterations": [1-9][0-9]' && break
			sleep 0.05
		done
		seen=$(monitor mean 20 100)
		wait "$job"
		kill "$SERVER"
		wait "$SERVER"
		python3 - "$TMP/record.json" "$seen" <<-'PY' && return
			import json, sys
			t = json.load(open(sys.argv[1]))['totals']
			busy = 100 * t['compute_s'] / t['seconds']
			print('record', busy, 'NVML', sys.argv[2])
			assert 30 < busy < 90 # neither idle nor full
			sys.exit(abs(busy - float(sys.argv[2])) > 2)
		PY
	done
	false
}

@test "nvtop shows the emulated GPUs" {
	command -v nvtop >/dev/null || skip "no nvtop; Debian has it in contrib"
	[ -z "${GPEMU_SANITIZED-}" ] || skip "nvtop itself is not sanitized"
	gpud "$SOCKET" --gpu "$TMP/half.yaml"
	hold
	LD_LIBRARY_PATH=$LIBRARY GPEMU_GPU_SERVER=$SOCKET TERM=xterm LINES=40 \
		COLUMNS=120 timeout 3 script -qec nvtop /dev/null </dev/null \
		>"$TMP/screen" 2>&1 || true
	grep -aq 'Tesla H50-HALF' "$TMP/screen"
	grep -aq "$JOB" "$TMP/screen"
	exec 9>&-
}

@test "installed into a folder of its own" {
	meson introspect "$BUILD" --installed >"$TMP/installed"
	python3 - "$TMP/installed" <<-'PY'
		import json, sys
		to = [b for a, b in json.load(open(sys.argv[1])).items() if 'libnvidia-ml' in a]
		assert to and all('/gpemu/nvml/libnvidia-ml.so' in x for x in to), to
		to = [b for a, b in json.load(open(sys.argv[1])).items() if 'nvidia-smi' in a]
		assert len(to) == 1 and to[0].endswith('/gpemu/nvml/nvidia-smi'), to
	PY
}
