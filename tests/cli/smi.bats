#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-smi as nvidia-smi: its queries, lists and monitors, and the programs that
# use it or NVML.

bats_require_minimum_version 1.5.0
load gpus
load processes

# GPUtil, nvidia-ml-py and nvitop, once for this user
MONITORS=${TMPDIR:-/tmp}/gpemu-monitors-$(id -u)-1

install_monitors() {
	local new

	[ ! -e "$MONITORS" ] && [ -z "${GPEMU_SANITIZED-}" ] || return 0
	new=$(mktemp -d "$MONITORS.XXXXXX")
	python3 -m venv "$new" &&
		timeout 100 "$new/bin/python" -m pip install -q --no-input \
			--disable-pip-version-check --retries 0 --timeout 10 \
			GPUtil==1.4.0 setuptools nvidia-ml-py==13.580.65 nvitop==1.5.3 &&
		mv -T "$new" "$MONITORS" || rm -rf "$new"
}

# One server for all tests: two GPUs of a profile with a board, and on the first
# one a job of 100 MiB, whose pid is $JOB
setup_file() {
	local try

	export BUILD SOCKET=$BATS_FILE_TMPDIR/gpud.sock JOB SERVER
	BUILD=$(realpath "${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}")
	install_monitors >"$BATS_FILE_TMPDIR/pip" 2>&1
	cd "$BATS_FILE_TMPDIR"
	mkdir bin
	ln -s "$BUILD/gpemu-smi" bin/nvidia-smi
	board half.yaml
	sed -i 's/memory_bus_bits: 256, //' half.yaml # what is missing is N/A
	"$BUILD/gpemu-gpud" --gpu half.yaml --gpus 2 --socket "$SOCKET" 3>&- &
	SERVER=$!
	for try in {1..200}; do
		! nvidia -L >/dev/null 2>&1 || break
		sleep 0.05
	done
	mkfifo in
	"$BATS_TEST_DIRNAME/gpud-client" "$SOCKET" hold 1 <in >held 3>&- &
	JOB=$!
	exec 8>in
	for try in {1..200}; do
		! grep -q '^gpus' held || return 0
		sleep 0.05
	done
	return 1
}

teardown_file() {
	end_processes "$JOB" "$SERVER"
}

setup() {
	TMP=$BATS_TEST_TMPDIR
}

# Python with these packages; nvidia-smi is the emulated one
monitors() {
	[ -z "${GPEMU_SANITIZED-}" ] || skip "Python itself is not sanitized"
	[ -O "$MONITORS" ] || skip "pip cannot get GPUtil, nvidia-ml-py, nvitop"
	GPEMU_GPU_SERVER=$SOCKET LD_LIBRARY_PATH=$BUILD/platform/nvml \
		PATH=$BATS_FILE_TMPDIR/bin:$PATH run "$MONITORS/bin/python" "$@"
	echo "$output"
	[ "$status" -eq 0 ]
}

# nvidia OPTION...: gpemu-smi under the name of nvidia-smi
nvidia() {
	GPEMU_GPU_SERVER=${SERVERS:-$SOCKET} "$BATS_FILE_TMPDIR/bin/nvidia-smi" "$@"
}

@test "--query-gpu: names, units, headers" {
	run nvidia --query-gpu=index,memory.used,utilization.gpu --format=csv,noheader,nounits
	[ "$status" -eq 0 ]
	[ "$output" = $'0, 100, 0\n1, 0, 0' ]
	run nvidia -i 0 --format=csv --query-gpu="gpu_name, memory.total,power.draw,clocks.sm,temperature.gpu,pcie.link.width.max,fan.speed,ecc.mode.current,mig.mode.current,power.max_limit,clocks_throttle_reasons.supported,compute_cap,count"
	[ "${lines[0]}" = "name, memory.total [MiB], power.draw [W], clocks.current.sm [MHz], temperature.gpu, pcie.link.width.max, fan.speed [%], ecc.mode.current, mig.mode.current, power.max_limit [W], clocks_event_reasons.supported, compute_cap, count" ]
	[ "${lines[1]}" = "Tesla H50-HALF, 1000 MiB, 10.00 W, 1380 MHz, 36, 16, [N/A], Enabled, [N/A], 250.00 W, 0x00000000000001FF, 7.5, 2" ]
	run nvidia --query-gpu=timestamp,display_mode --format=csv,noheader --id=1
	[[ $output =~ ^20[0-9]{2}/[0-9]{2}/[0-9]{2}\ [0-9:]{8}\.[0-9]{3},\ \[Requested\ functionality\ has\ been\ deprecated\]$ ]]
	# the program and its links are the same
	[ "$("$BUILD/gpemu-smi" -S "$SOCKET" --query-gpu=uuid --format=csv)" = "$(nvidia --query-gpu=gpu_uuid --format=csv)" ]
	# every field that is listed can be queried
	fields=$(nvidia --help-query-gpu | sed -n 's/^"\([^"]*\)".*/\1/p' | paste -sd,)
	[ "$(tr , '\n' <<<"$fields" | wc -l)" -gt 120 ]
	run nvidia --query-gpu="$fields" --format=csv,noheader
	[ "$status" -eq 0 ]
	[ "${#lines[@]}" -eq 2 ]
}

@test "--query-compute-apps, -L, dmon, pmon" {
	uuids=($(nvidia --query-gpu=uuid --format=csv,noheader))
	run nvidia --query-compute-apps=pid,used_memory,gpu_uuid,name --format=csv
	[ "$output" = $'pid, used_gpu_memory [MiB], gpu_uuid, process_name\n'"$JOB, 100 MiB, ${uuids[0]}, test" ]
	run nvidia -L
	[ "${lines[1]}" = "GPU 1: Tesla H50-HALF (UUID: ${uuids[1]})" ]
	run nvidia dmon -c 2 -d 0.05 -s pm -i 0
	[ "$status" -eq 0 ]
	[[ ${lines[0]} == "# gpu    pwr  gtemp  mtemp     fb   bar1   ccpm"* ]]
	[[ ${lines[2]} == "    0     10     36      -    100      -      -"* ]]
	[ "${#lines[@]}" -eq 4 ]
	run nvidia pmon -c 1 -s m
	[[ ${lines[0]} == "# gpu         pid   type     fb   ccpm    command"* ]]
	[[ $(xargs <<<"${lines[2]}") == "0 $JOB C 100 - test" ]]
	[[ $(xargs <<<"${lines[3]}") == "1 - - - - -" ]]
	run nvidia dmon -s x
	[ "$status" -eq 2 ]
}

@test "-i: index, UUID, serial number, bus id, lists" {
	IFS=, read -r uuid serial bus < <(nvidia -i 1 --query-gpu=uuid,serial,pci.bus_id --format=csv,noheader | tr -d ' ')
	for id in 1 "$uuid" "$serial" "$bus" "${bus,,}" "${bus#0000}"; do
		run nvidia --query-gpu=index --format=csv,noheader -i "$id"
		[ "$output" = 1 ]
	done
	[ "$(nvidia -L -i "1,0" | wc -l)" -eq 2 ]
	for id in 2 GPU- 0,7 01:00.0; do
		run nvidia -L -i "$id"
		[ "$status" -eq 6 ]
		[ "$output" = "No devices were found" ]
	done
}

@test "-l, -lms, -f; a header once" {
	GPEMU_GPU_SERVER=$SOCKET "$BATS_FILE_TMPDIR/bin/nvidia-smi" -lms 20 -i 0 \
		--query-gpu=index --format=csv -f "$TMP/out" 3>&- &
	ms=$!
	# every 5 s: only one is seen
	GPEMU_GPU_SERVER=$SOCKET "$BATS_FILE_TMPDIR/bin/nvidia-smi" -L -i 0 -l \
		>"$TMP/list" 3>&- &
	s=$!
	for try in {1..200}; do
		[ -s "$TMP/list" ] && [ "$(grep -c . "$TMP/out")" -ge 4 ] && break
		sleep 0.05
	done
	kill "$ms" "$s" # both run on
	wait "$ms" "$s" || true
	[ "$(grep -c index "$TMP/out")" -eq 1 ]
	[ "$(grep -cx 0 "$TMP/out")" -ge 3 ]
	[ "$(cut -d: -f1 "$TMP/list")" = "GPU 0" ]
	if [ "$(id -u)" -eq 0 ]; then # through the link of another user
		ln -s victim "$TMP/theirs"
		chown -h 65534 "$TMP/theirs"
		run ! nvidia -L -f "$TMP/theirs"
		[ ! -e "$TMP/victim" ]
	fi
	run nvidia -L -f "$TMP/missing/out"
	[ "$status" -eq 1 ]
}

@test "errors are those of nvidia-smi" {
	run nvidia --query-gpu=index,foo --format=csv
	[ "$status" -eq 2 ]
	[ "$output" = 'Field "foo" is not a valid field to query.' ]
	run nvidia --query-gpu= --format=csv
	[ "$status" -eq 2 ]
	run nvidia --query-gpu=index
	[ "$status" -eq 2 ]
	[[ $output == '"--format=" switch is missing.'* ]]
	run nvidia --query-gpu=index --format=csv,nohead
	[ "$status" -eq 2 ]
	run nvidia --query-gpu=index --query-compute-apps=pid --format=csv
	[ "$status" -eq 2 ]
	run nvidia -h
	[ "$status" -eq 0 ]
	[[ $output == *--query-gpu=FIELD* ]]
	nvidia --fail 1 >/dev/null
	run nvidia --query-gpu=index,utilization.gpu,pstate --format=csv,noheader
	[ "${lines[0]}" = "0, 0 %, P0" ]
	[ "${lines[1]}" = "1, [GPU is lost], [GPU is lost]" ]
	nvidia --repair 1 >/dev/null
	SERVERS=$TMP/nobody run nvidia -L
	[ "$status" -eq 75 ]
}

@test "several servers are one node; one that is missing is reported" {
	SERVERS=$SOCKET:$TMP/nobody:$SOCKET run --separate-stderr nvidia --query-gpu=index,count --format=csv,noheader
	[ "$status" -eq 0 ]
	[ "$output" = $'0, 4\n1, 4\n2, 4\n3, 4' ]
	[[ $stderr == *"$TMP/nobody"* ]]
}

@test "-q: text and XML are one table, in the order of driver 580" {
	run nvidia -q -d MEMORY,power -i 0
	[ "$status" -eq 0 ]
	[[ $output == *"FB Memory Usage"*"Used"*": 100 MiB"*"Max Power Limit"*": 250.00 W"* ]]
	[[ $output != *Temp* ]]
	run nvidia -q -d MEMORY,NOTHING
	[ "$status" -eq 2 ]
	[[ $output == *"-d 'NOTHING': no such group"* ]]
	nvidia -q -x >"$TMP/log.xml"
	nvidia -q | sed -n 's/^ *[^ ].* : //p' >"$TMP/text"
	python3 - "$TMP" "$BATS_TEST_DIRNAME/../assets/nvidia-smi-580" <<-'PY'
		import sys
		import xml.etree.ElementTree as ET
		root = ET.parse(sys.argv[1] + '/log.xml').getroot()
		def walk(e, path=''):
		    for c in e:
		        yield path + c.tag
		        yield from walk(c, path + c.tag + '/')
		g = [p for p in walk(root.findall('gpu')[1])]
		want = open(sys.argv[2]).read().split()
		assert g == want, set(g) ^ set(want)
		# the same values, but for the time
		xml = [e.text.strip() for e in root.iter() if len(e) == 0 and (e.text or '').strip()]
		text = [l.rstrip('\n') for l in open(sys.argv[1] + '/text')]
		assert len(xml) == len(text) and xml[1:] == text[1:], (xml, text)
	PY
}

@test "GPUtil" {
	monitors - <<-'PY'
		import GPUtil
		for g in GPUtil.getGPUs():
		    print(g.id, g.load, g.memoryTotal, g.memoryUsed, g.memoryFree, g.name, g.temperature)
		print(GPUtil.getAvailable(order='memory', limit=2))
		# what scripts do themselves
		import subprocess
		q = 'index,uuid,utilization.gpu,memory.total,memory.used,memory.free,driver_version,name,gpu_serial,display_active,display_mode,temperature.gpu'
		p = subprocess.run(['nvidia-smi', '--query-gpu=' + q, '--format=csv,noheader,nounits'], capture_output=True, text=True)
		assert p.returncode == 0 and not p.stderr and len(p.stdout.splitlines()) == 2, p
	PY
	[ "${lines[0]}" = "0 0.0 1000.0 100.0 800.0 Tesla H50-HALF 36.0" ]
	[ "${lines[1]}" = "1 0.0 1000.0 0.0 900.0 Tesla H50-HALF 36.0" ]
	[ "${lines[2]}" = "[1, 0]" ]
}

@test "nvidia-ml-py" {
	monitors - "$JOB" <<-'PY'
		import sys
		from pynvml import *
		nvmlInit()
		assert nvmlDeviceGetCount() == 2 and nvmlSystemGetDriverVersion().startswith('580.')
		h = nvmlDeviceGetHandleByIndex(0)
		assert nvmlDeviceGetName(h) == 'Tesla H50-HALF'
		assert nvmlDeviceGetBrand(h) == NVML_BRAND_TESLA
		assert nvmlDeviceGetNumGpuCores(h) == 2560
		assert nvmlDeviceGetEccMode(h) == [1, 1]
		assert nvmlDeviceGetTotalEccErrors(h, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC) == 0
		assert nvmlDeviceGetPowerManagementLimitConstraints(h) == [100000, 250000]
		assert nvmlDeviceGetPowerUsage(h) == 10000
		assert nvmlDeviceGetTemperature(h, NVML_TEMPERATURE_GPU) == 36
		assert nvmlDeviceGetTemperatureV(h, NVML_TEMPERATURE_GPU) == 36
		assert nvmlDeviceGetMemoryInfo(h).used == 100 << 20
		assert nvmlDeviceGetMemoryInfo(h, nvmlMemory_v2).reserved == 100 << 20
		assert nvmlDeviceGetUtilizationRates(h).gpu == 0
		assert nvmlDeviceGetSupportedClocksEventReasons(h) == 511
		p = nvmlDeviceGetComputeRunningProcesses(h)
		assert [(x.pid, x.usedGpuMemory) for x in p] == [(int(sys.argv[1]), 100 << 20)]
		assert nvmlDeviceGetPciInfo(h).busId.endswith(':01:00.0')
		for f in nvmlDeviceGetFanSpeed, nvmlDeviceGetMemoryBusWidth, nvmlDeviceGetMigMode:
		    try:
		        f(h)
		        assert False, f
		    except NVMLError_NotSupported:
		        pass
		nvmlShutdown()
	PY
}

@test "nvitop" {
	monitors - "$JOB" <<-'PY'
		import sys
		from nvitop import Device
		a, b = Device.all()
		assert a.name() == 'Tesla H50-HALF' and a.memory_used() == 100 << 20, a
		assert (a.temperature(), a.gpu_utilization(), a.power_limit()) == (36, 0, 210000)
		assert a.total_volatile_uncorrected_ecc_errors() == 0
		assert a.fan_speed() == 'N/A' and a.cuda_compute_capability() == (7, 5)
		assert list(a.processes()) == [int(sys.argv[1])] and not b.processes()
	PY
	monitors -m nvitop -1 --no-unicode
	[[ $output == *H50-HALF*" 36C "*"$JOB"* ]]
}
