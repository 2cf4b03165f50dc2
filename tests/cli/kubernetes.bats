#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-k8s-plugin, with a kubelet of Python's gRPC (fake-kubelet).

load processes

setup() {
	BUILD=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}
	PLUGIN=$BUILD/gpemu-k8s-plugin
	SMI=$BUILD/gpemu-smi
	[ -x "$PLUGIN" ] ||
		skip "gpemu-k8s-plugin was not built: no libnghttp2-dev, libprotobuf-c-dev"
	/usr/bin/python3 -c 'import grpc' 2>/dev/null ||
		skip "python3-grpcio is not installed"
	TMP=$(mktemp -d)
	PIDS=()
	mkdir "$TMP/dp" "$TMP/pr"
	# it would look for a proxy for Unix sockets
	unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY
}

teardown() {
	end_processes "${PIDS[@]}"
	rm -rf "$TMP"
}

# gpud NAME OPTION...: at $TMP/NAME/gpud.sock; its pid is $SERVER
gpud() {
	local name=$1

	mkdir -p "$TMP/$name"
	"$BUILD/gpemu-gpud" --socket "$TMP/$name/gpud.sock" "${@:2}" \
		3>&- 8>&- 9>&- &
	SERVER=$!
	PIDS+=("$SERVER")
	soon "$SMI" --socket "$TMP/$name/gpud.sock"
}

# soon COMMAND: it succeeds within ten seconds
soon() {
	local try

	for try in {1..200}; do
		"$@" >/dev/null 2>&1 && return
		sleep 0.05
	done
	echo "never: $*"
	return 1
}

# The node's file from stdin; the plugin's pid is $DAEMON
plugin() {
	cat >"$TMP/node.yaml"
	"$PLUGIN" --kubelet-dir "$TMP/dp" --health-interval 1s \
		--pods-socket "$TMP/pr/kubelet.sock" --pods-interval 50ms \
		--json "$TMP/record.json" "$@" "$TMP/node.yaml" \
		2>"$TMP/plugin.log" 3>&- 8>&- 9>&- &
	DAEMON=$!
	PIDS+=("$DAEMON")
}

plugin_end() {
	kill "$DAEMON"
	wait "$DAEMON"
	cat "$TMP/plugin.log"
}

kubelet() {
	timeout 120 /usr/bin/python3 "$BATS_TEST_DIRNAME/fake-kubelet" "$TMP/dp" \
		"$@" 3>&-
}

# A kubelet that writes its lists to $TMP/lists, until kubelet_end
kubelet_watch() {
	mkfifo "$TMP/in"
	kubelet watch <"$TMP/in" >"$TMP/lists" &
	WATCH=$!
	PIDS+=("$WATCH")
	exec 8>"$TMP/in"
}

kubelet_end() {
	exec 8>&-
	wait "$WATCH"
}

# last TEXT: it is the last list
last() {
	[ "$(tail -n 1 "$TMP/lists")" = "$1" ]
}

v100() {
	cat <<-YAML
		gpus:
		  v100:
		    count: 4
		    server: $TMP/v100/gpud.sock
		    numa: [0, 0, 1, 1]
		    device: /dev/gpemu
		    cdi: gpemu.io/gpu
		    env: STUDY=a=b
		    annotations: lab=x
		    mounts:
		      - {host: /srv/data, container: /data, read_only: on}
	YAML
}

@test "every call, by kubelets of both kinds of :authority" {
	gpud v100 --gpus 4
	plugin < <(v100)
	kubelet calls localhost
	kubelet calls path
	plugin_end
	[ ! -s "$TMP/plugin.log" ] || ! grep -q error "$TMP/plugin.log"
	[ ! -e "$TMP/dp/gpemu-gpemu.io_v100.sock" ]
	python3 - "$TMP/record.json" <<-'PY'
		import json, sys
		r, = json.load(open(sys.argv[1]))['resources']
		assert (r['resource'], r['devices'], r['healthy']) == \
		    ('gpemu.io/v100', 4, 4), r
		assert r['registrations'] == 2 and r['allocations'] == 4, r
	PY
}

@test "a kubelet that starts 100 times finds the devices each time" {
	gpud v100 --gpus 4
	plugin < <(v100)
	kubelet restarts 100
	plugin_end
}

@test "malformed and oversized frames and messages" {
	gpud v100 --gpus 4
	plugin < <(v100)
	kubelet malformed
	plugin_end
}

@test "devices fail and come back, with their GPU and with its server" {
	gpud v100 --gpus 2
	v100=$SERVER
	gpud a100 --gpu a100
	plugin <<-YAML
		gpus:
		  v100: {count: 2, server: $TMP/v100/gpud.sock}
		  a100:
		    count: 2 # one more than there is
		    server: $TMP/a100/gpud.sock
		    resource: gpemu.io/v100
	YAML
	kubelet_watch
	soon last "gpemu.io/v100 v100-0 v100-1 a100-0 a100-1!"
	# the first list was right
	[ "$(wc -l <"$TMP/lists")" -eq 1 ]
	"$SMI" --socket "$TMP/v100/gpud.sock" --fail 1 >/dev/null
	soon last "gpemu.io/v100 v100-0 v100-1! a100-0 a100-1!"
	"$SMI" --socket "$TMP/v100/gpud.sock" --repair 1 >/dev/null
	soon last "gpemu.io/v100 v100-0 v100-1 a100-0 a100-1!"
	# a server that is stopped, is gone, is another one
	kill -STOP "$v100"
	soon last "gpemu.io/v100 v100-0! v100-1! a100-0 a100-1!"
	kill -CONT "$v100"
	soon last "gpemu.io/v100 v100-0 v100-1 a100-0 a100-1!"
	kill -KILL "$v100"
	wait "$v100" || true
	soon last "gpemu.io/v100 v100-0! v100-1! a100-0 a100-1!"
	gpud v100 --gpus 2 --gpu p100
	soon grep -q "serves .*P100.*, not .*V100" "$TMP/plugin.log"
	last "gpemu.io/v100 v100-0! v100-1! a100-0 a100-1!"
	kill "$SERVER"
	wait "$SERVER"
	gpud v100 --gpus 2
	soon last "gpemu.io/v100 v100-0 v100-1 a100-0 a100-1!"
	kubelet_end
	run kubelet call PreStartContainer a100-1
	[ "$output" = "FAILED_PRECONDITION a100-1 is unhealthy" ]
	run kubelet call Allocate a100-1
	[ "$output" = "FAILED_PRECONDITION a100-1 is unhealthy" ]
	run kubelet call Allocate a100-0 v100-1
	[[ $output == OK* ]]
	[[ $output == *GPEMU_DEVICES=v100-1,a100-0* ]]
	[[ $output == *"/run/gpemu/v100=$TMP/v100"* ]]
	[[ $output == *"/run/gpemu/a100=$TMP/a100"* ]]
	# an Allocate does not wait for ever
	kill -STOP "$SERVER"
	run kubelet call Allocate v100-0
	kill -CONT "$SERVER"
	[[ $output == "FAILED_PRECONDITION "* ]]
	plugin_end
}

@test "a folder that comes later, and a plugin that finds a stale socket" {
	gpud v100 --gpus 4
	rmdir "$TMP/dp"
	plugin < <(v100)
	soon grep -q "is not there yet" "$TMP/plugin.log"
	mkdir "$TMP/dp"
	kubelet_watch
	soon last "gpemu.io/v100 v100-0 v100-1 v100-2 v100-3"
	kill -KILL "$DAEMON"
	wait "$DAEMON" || true
	soon last "gpemu.io/v100 gone"
	[ -S "$TMP/dp/gpemu-gpemu.io_v100.sock" ]
	plugin < <(v100)
	soon last "gpemu.io/v100 v100-0 v100-1 v100-2 v100-3"
	# the socket alone is removed: the plugin makes it anew
	rm "$TMP/dp/gpemu-gpemu.io_v100.sock"
	soon test -S "$TMP/dp/gpemu-gpemu.io_v100.sock"
	kubelet_end
	plugin_end
}

# allocate ID...: the folder of the grant on the host
allocate() {
	run kubelet call Allocate "$@"
	[[ $output == OK* ]] || return
	FOLDER=$(sed -n 's,^/run/gpemu/v100=,,p' <<<"$output")
	[ -S "$FOLDER/gpud.sock" ]
}

# gpu SOCKET WHAT...: a client that does not end is left to itself
gpu() {
	"$BATS_TEST_DIRNAME/gpud-client" "$@" 3>&- 8>&-
}

# hold SOCKET GPUS MIB: in the background, until $TMP/in is closed
hold() {
	gpu "$1" hold "$2" "$3" <"$TMP/in" >"$TMP/hold" 2>&1 &
	PIDS+=("$!")
}

# smi EXPRESSION: true of the status `j`, its processes `p`
smi() {
	"$SMI" --socket "$TMP/v100/gpud.sock" --json - | python3 -c '
import json, sys
j = json.load(sys.stdin)
p = j["processes"]
sys.exit(not eval(sys.argv[1]))' "$1"
}

sliced() {
	cat <<-YAML
		gpus:
		  v100:
		    count: 2
		    server: $TMP/v100/gpud.sock
		    slice: 8G # three fit
	YAML
}

@test "a container has the slices that it was allocated, and no more" {
	gpud v100 --gpus 2
	plugin < <(sliced)
	mkfifo "$TMP/in"
	exec 8<>"$TMP/in"
	allocate v100-0-0
	[[ $output == *GPEMU_GPU_MEMORY_MIB=8192* ]]
	one=$FOLDER/gpud.sock
	allocate v100-0-2 v100-0-1
	[[ $output == *GPEMU_GPU_MEMORY_MIB=16384* ]]
	[[ $output == *GPEMU_DEVICES=v100-0-1,v100-0-2* ]]
	two=$FOLDER/gpud.sock

	# the out-of-memory error of the library
	run "$BUILD/gpemu-train" --loader null --gpu-server "$one" --pin off \
		--model resnet50 -b 256 --max-steps 2
	[ "$status" -eq 1 ]
	[[ $output == *"out of GPU memory: a batch of 256 of resnet50 does not fit the 8.00 GiB of "*"; the largest that fits is "* ]]
	largest=${output##* }
	"$BUILD/gpemu-train" --loader null --gpu-server "$one" --pin off \
		--model resnet50 -b "$largest" --max-steps 2
	run "$BUILD/gpemu-train" --loader null --gpu-server "$one" --pin off \
		--model resnet50 -b $((largest + 1)) --max-steps 2
	[ "$status" -eq 1 ]
	run gpu "$one" hold 2 100
	[[ $output == *error* || $status -ne 0 ]]

	# its own jobs wait for each other, another container's do not
	hold "$one" 1 6000
	soon smi 'len(p) == 1 and p[0]["gpus"] == [0] and p[0]["grant"]'
	hold "$one" 1 6000
	soon smi '[x["state"] for x in p] == ["idle", "queued"]'
	hold "$two" 1 16000
	soon smi '[x["state"] for x in p] == ["idle", "queued", "idle"]'

	# a container cannot grant itself more, nor fail a GPU
	run "$SMI" --socket "$one" --fail 0
	[ "$status" -eq 1 ]
	[[ $output == *"only root and the user of the server"* ]]

	# what is allocated was free: who had it before is over, also if it begins later
	sleep 5
	allocate v100-0-0
	[ "$FOLDER" != "${one%/*}" ]
	soon smi '[(x["state"], x["peak_mib"]) for x in p] == [("idle", 16000)]'
	soon test ! -e "$one"
	"$SMI" --socket "$FOLDER/gpud.sock" >/dev/null
	exec 8>&-
	plugin_end
}

# pods LINE...: what the kubelet lists from now on, all at once
pods() {
	printf '%s\n' "$@" >"$TMP/pods.new"
	mv "$TMP/pods.new" "$TMP/pods"
}

asked() {
	[ "$(stat -c %s "$TMP/pods.asked")" -ge "$1" ]
}

# The plugin has the list of now: its next request may have been answered, the
# one after that is made when that answer has been read.
listed() {
	soon asked $(($(stat -c %s "$TMP/pods.asked") + 3))
}

@test "grants outlive the server and the plugin, and end with their pods" {
	gpud v100 --gpus 2
	pods
	mkfifo "$TMP/pods.in"
	/usr/bin/python3 "$BATS_TEST_DIRNAME/fake-kubelet" "$TMP/pr" pods "$TMP/pods" \
		<"$TMP/pods.in" 3>&- 8>&- &
	PIDS+=("$!")
	exec 9>"$TMP/pods.in"
	soon test -S "$TMP/pr/kubelet.sock"
	plugin < <(sliced)
	allocate v100-0-0
	former=$FOLDER
	sleep 5
	allocate v100-0-0
	one=$FOLDER
	[ "$one" != "$former" ]
	allocate v100-1-0 v100-1-1
	two=$FOLDER
	inode=$(stat -c %i "$one")

	# the server comes back: so do the sockets, in the same folders
	kill -KILL "$SERVER"
	wait "$SERVER" || true
	rm "$one/gpud.sock" "$two/gpud.sock"
	gpud v100 --gpus 2
	soon test -S "$one/gpud.sock"
	soon test -S "$two/gpud.sock"
	[ "$(stat -c %i "$one")" = "$inode" ]
	soon "$SMI" --socket "$one/gpud.sock"

	# the plugin comes back, and learns who is still there
	kill -KILL "$DAEMON"
	wait "$DAEMON" || true
	pods 'a gpemu.io/v100 v100-0-0'
	plugin < <(sliced)
	soon test ! -e "$two"
	"$SMI" --socket "$one/gpud.sock" >/dev/null
	# another pod, which is not listed yet, keeps its grant
	allocate v100-1-0 v100-1-1
	# (each call is a new kubelet's, from which all grants are to be heard of)
	listed
	pods 'b gpemu.io/v100 v100-1-0 v100-1-1'
	soon test ! -e "$one"
	[ -S "$two/gpud.sock" ]
	pods
	soon test ! -e "$two"
	exec 9>&-
	plugin_end
}

@test "the list of pods is asked for soon after a grant" {
	# else that of a container which ends before the next list would be kept
	gpud v100 --gpus 2
	pods 'a gpemu.io/v100 v100-0-0'
	mkfifo "$TMP/pods.in"
	/usr/bin/python3 "$BATS_TEST_DIRNAME/fake-kubelet" "$TMP/pr" pods "$TMP/pods" \
		<"$TMP/pods.in" 3>&- 8>&- &
	PIDS+=("$!")
	exec 9>"$TMP/pods.in"
	soon test -S "$TMP/pr/kubelet.sock"
	plugin --pods-interval 1h < <(sliced)
	soon asked 1
	allocate v100-0-0
	soon asked 2
	exec 9>&-
	plugin_end
}

# scheduled POLICY POD...: the order in which the example binds them
scheduled() {
	local policy=$1 server

	mkfifo "$TMP/api"
	timeout 60 /usr/bin/python3 "$BATS_TEST_DIRNAME/fake-apiserver" 2 \
		"${@:2}" >"$TMP/api" 3>&- &
	server=$!
	PIDS+=("$server")
	exec 8<"$TMP/api"
	rm "$TMP/api"
	read -r url <&8
	PATH=$BUILD:$PATH "$BATS_TEST_DIRNAME/../../examples/kubernetes-scheduler" \
		--api "$url" -p "$policy" >"$TMP/scheduler.log" 2>&1 3>&- 8<&- &
	PIDS+=("$!")
	ORDER=$(tr '\n' ' ' <&8)
	exec 8<&-
	wait "$server"
}

@test "a scheduler of one's own binds pods in the order of a policy" {
	scheduled srtf long:1:100 short:1:10 pair:2:20 mid:1:50 unknown:1
	[ "$ORDER" = "short pair mid long unknown " ]
	scheduled fifo long:1:100 short:1:10 pair:2:20 mid:1:50 unknown:1
	[ "$ORDER" = "long short pair mid unknown " ]
}

@test "--dry-run lists the devices; the node's file is checked" {
	cat >"$TMP/node.yaml" <<-YAML
		gpus:
		  v100: {count: 1, server: /run/a, replicas: 2, numa: 3}
		  a100: {count: 1, server: /run/b, slice: 30G}
	YAML
	run "$PLUGIN" --dry-run "$TMP/node.yaml"
	[ "$status" -eq 0 ]
	[[ ${lines[0]} == "gpemu.io/v100 "*" v100-0-0 "*"numa 3" ]]
	[[ ${lines[1]} == "gpemu.io/v100 "*" v100-0-1 "* ]]
	[[ ${lines[2]} == "gpemu.io/a100 "*" a100-0-0 "*" 30.0 GiB  numa -" ]]
	echo 'gpus: {v100: {count: 65, server: /run/a}}' >"$TMP/node.yaml"
	run "$PLUGIN" --dry-run "$TMP/node.yaml"
	[ "$status" -eq 1 ]
	[[ $output == *"node.yaml:1:22: count: "* ]]
	run "$PLUGIN" --dry-run "$TMP/none.yaml"
	[ "$status" -eq 1 ]
	run "$PLUGIN" --dry-run
	[ "$status" -eq 2 ]
}

@test "the manifests agree with each other and with the programs" {
	/usr/bin/python3 -c 'import yaml' 2>/dev/null ||
		skip "python3-yaml is not installed"
	cd "$BATS_TEST_DIRNAME/../../platform/kubernetes"
	GPEMU_GPU_SERVER= /usr/bin/python3 - "$BUILD" "$TMP" <<-'PY'
		import os, subprocess, sys, yaml
		build, tmp = sys.argv[1:]
		docs = {d['kind']: d for d in yaml.safe_load_all(open('gpemu.yaml'))}
		job = yaml.safe_load(open('job.yaml'))
		text = docs['ConfigMap']['data']['node.yaml']
		open(tmp + '/node.yaml', 'w').write(text)
		kinds = yaml.safe_load(text)['gpus']

		# API servers before 1.21 reject a surge
		update = docs['DaemonSet']['spec']['updateStrategy']['rollingUpdate']
		assert update == {'maxUnavailable': 1}, update
		pod = docs['DaemonSet']['spec']['template']['spec']
		volumes = {v['name']: v for v in pod['volumes']}
		servers = {}
		def run(container):
		    program, *args = container['command']
		    done = subprocess.run([f'{build}/{program}', *args, '--dump-config'],
		                          stdout=subprocess.PIPE, check=True, text=True)
		    return yaml.safe_load(done.stdout)
		for c in pod['containers']:
		    mounts = {m['mountPath']: volumes[m['name']] for m in c['volumeMounts']}
		    # the kubelet mounts folders of the server by their path on the host
		    assert mounts['/run/gpemu']['hostPath']['path'] == '/run/gpemu'
		    if c['command'][0] == 'gpemu-gpud':
		        got = run(c)
		        servers[c['name']] = got['gpus'], got['socket'], got['gpu']
		        continue
		    assert c['command'][0] == 'gpemu-k8s-plugin'
		    assert c['command'][-1] == '/etc/gpemu/node.yaml'
		    assert mounts['/etc/gpemu']['configMap']['name'] == \
		        docs['ConfigMap']['metadata']['name']
		    for path in 'device-plugins', 'pod-resources':
		        path = '/var/lib/kubelet/' + path
		        assert mounts[path]['hostPath']['path'] == path
		assert servers == {k: (v['count'], v['server'], v.get('profile', k))
		                   for k, v in kinds.items()}, servers
		folders = pod['initContainers'][0]['command'][2:]
		assert folders == [os.path.dirname(v['server']) for v in kinds.values()]
		c, = job['spec']['template']['spec']['containers']
		run(c)
		assert set(c['resources']['limits']) <= {'gpemu.io/' + k for k in kinds}
		assert {c['image']} == {c['image'] for c in pod['containers']}
	PY
	run "$PLUGIN" --dry-run "$TMP/node.yaml"
	[ "$status" -eq 0 ]
	[ "${#lines[@]}" -eq 6 ]
}

@test "the image has the libraries of the programs" {
	command -v dpkg-query readelf >/dev/null || skip "no dpkg, or no binutils"
	local program name path

	for program in "$BUILD"/gpemu{,-*}; do
		[ -f "$program" ] || continue
		readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
	done | sort -u | grep -vE '^lib(c|m|mpi|asan|ubsan|gcc_s)\.so' >"$TMP/needed"
	[ -s "$TMP/needed" ]
	while read -r name; do
		path=$(/sbin/ldconfig -p | awk -v n="$name" '$1 == n { print $NF; exit }')
		path=$(dpkg-query -S "$(realpath "$path")" "$path" 2>/dev/null |
			head -n 1)
		echo "$name: ${path%%:*}"
		[ -n "$path" ]
		grep -qw -e "${path%%:*}" \
			"$BATS_TEST_DIRNAME/../../platform/kubernetes/Containerfile"
	done <"$TMP/needed"
}
