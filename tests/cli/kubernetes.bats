#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-k8s-plugin, with a kubelet of Python's gRPC (fake-kubelet).

load kubelet

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
	soon grep -q "does not exist yet" "$TMP/plugin.log"
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

# bats test_tags=slow
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
		torch = yaml.safe_load(open('job-pytorch.yaml'))['spec']['template']['spec']
		example, = torch['containers']
		python, path, data, record, *keys = example['command']
		docs = '/usr/share/doc/gpemu/'
		assert path.startswith(docs) and os.path.exists('../../' + path[len(docs):])
		make, = torch['initContainers']
		subprocess.run([f"{build}/{make['command'][0]}", *make['command'][1:-1],
		                '--files', '8', tmp + '/photos'], check=True)
		assert data == make['command'][-1]
		for one in c, example:
		    assert set(one['resources']['limits']) <= {'gpemu.io/' + k for k in kinds}
		assert {x['image'] for x in (c, example, make)} == \
		    {c['image'] for c in pod['containers']}
		# Python itself is not sanitized, and loads no library that is
		if os.environ.get('GPEMU_SANITIZED') or subprocess.run(
		        ['/usr/bin/python3', '-c', 'import torch'],
		        stderr=subprocess.DEVNULL).returncode:
		    sys.exit()
		record = tmp + '/pytorch.json'
		import json
		times = {}
		for gpu in 'v100', 'k80':
		    subprocess.run(['/usr/bin/python3', '../../examples/pytorch.py',
		                    tmp + '/photos', record, *keys, 'batch=4'], check=True,
		                   env={**os.environ, 'GPEMU_LIBRARY': build + '/libgpemu.so',
		                        'PYTHONPATH': '../../python',
		                        'GPEMU_GPU_PROFILE': gpu})
		    times[gpu] = json.load(open(record))['epochs'][0]['compute_s']
		assert times['k80'] > 2 * times['v100'], times
	PY
	run "$PLUGIN" --dry-run "$TMP/node.yaml"
	[ "$status" -eq 0 ]
	[ "${#lines[@]}" -eq 6 ]
}

# bats test_tags=slow
@test "the image has the libraries of the programs" {
	command -v dpkg-query readelf >/dev/null || skip "no dpkg, or no binutils"
	local program name path

	for program in "$BUILD"/gpemu{,-*}; do
		[ -f "$program" ] || continue
		readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
	done | sort -u | grep -vE '^(lib(c|m|mpi|asan|ubsan|gcc_s)\.so|ld-linux)' >"$TMP/needed"
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
	# and what Python needs: gpemu, and the examples that are installed
	cd "$BATS_TEST_DIRNAME/../.."
	meson introspect "$BUILD" --installed >"$TMP/installed"
	for path in python/gpemu examples; do
		grep -q "\"$PWD/$path\": " "$TMP/installed"
	done
	sed '1,/^FROM.*slim$/d' platform/kubernetes/Containerfile >"$TMP/image"
	for name in python3 python3-numpy TORCH=python3-torch '\${TORCH}'; do
		grep -qE -e "(^| )$name( |\$)" "$TMP/image"
	done
}
