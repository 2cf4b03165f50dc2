# SPDX-License-Identifier: MIT
# A plugin, servers of GPUs, and a kubelet of Python's gRPC (fake-kubelet).

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
