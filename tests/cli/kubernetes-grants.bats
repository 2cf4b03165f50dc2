#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The grants of containers: what gpemu-k8s-plugin allows on the servers, and when
# that ends.

load kubelet

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

# bats test_tags=slow
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

# The kubelet's list of pods, with these lines, until descriptor 9 is closed.
serve_pods() {
	pods "$@"
	mkfifo "$TMP/pods.in"
	/usr/bin/python3 "$BATS_TEST_DIRNAME/fake-kubelet" "$TMP/pr" pods "$TMP/pods" \
		<"$TMP/pods.in" 3>&- 8>&- &
	PIDS+=("$!")
	exec 9>"$TMP/pods.in"
	soon test -S "$TMP/pr/kubelet.sock"
}

@test "grants outlive the server and the plugin, and end with their pods" {
	gpud v100 --gpus 2
	serve_pods
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
	[ "$FOLDER" != "$two" ]
	two=$FOLDER
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
	serve_pods 'a gpemu.io/v100 v100-0-0'
	plugin --pods-interval 1h < <(sliced)
	soon grep -q registered "$TMP/plugin.log"
	[ ! -e "$TMP/pods.asked" ] # nobody has anything
	allocate v100-0-0
	soon asked 1
	exec 9>&-
	plugin_end
}

two_gpus() {
	printf 'gpus:\n  v100: {count: 2, server: %s}\n' "$TMP/v100/gpud.sock"
}

# killed PID...: they have ended
killed() {
	kill -KILL "$@"
	wait "$@" || true
}

# bats test_tags=slow
@test "a plugin that starts knows who has which GPU" {
	gpud v100 --gpus 2
	serve_pods 'a gpemu.io/v100 v100-0'
	plugin < <(two_gpus)
	allocate v100-0
	one=$FOLDER
	# with the server, and a list before that is there
	killed "$DAEMON" "$SERVER"
	plugin < <(two_gpus)
	listed
	gpud v100 --gpus 2
	soon "$SMI" --socket "$one/gpud.sock"
	# the same GPU for another pod, before a list has it
	sleep 5
	allocate v100-0
	[ "$FOLDER" != "$one" ]
	soon test ! -e "$one"
	two=$FOLDER
	killed "$DAEMON"
	plugin < <(two_gpus)
	# and with more: the lists, which have both pods, make none of them again
	sleep 5
	allocate v100-0 v100-1
	soon test ! -e "$two"
	pods 'a gpemu.io/v100 v100-0' 'b gpemu.io/v100 v100-0 v100-1'
	listed
	listed
	[ "$(ls -d "$TMP"/v100/gpud.sock.d/*)" = "$FOLDER" ]
	[ "$(ls "$TMP/dp/gpemu-grants")" = "${FOLDER##*/}" ]
	exec 9>&-
	plugin_end
}

@test "the kubelet does not list an init container, which keeps its grant" {
	gpud v100 --gpus 2
	serve_pods 'a gpemu.io/v100 v100-0 v100-1'
	plugin < <(two_gpus)
	allocate v100-0
	init=$FOLDER
	allocate v100-0 v100-1
	listed
	killed "$DAEMON"
	plugin < <(two_gpus)
	listed
	listed
	"$SMI" --socket "$init/gpud.sock" >/dev/null
	"$SMI" --socket "$FOLDER/gpud.sock" >/dev/null
	pods
	soon test ! -e "$init"
	exec 9>&-
	plugin_end
}

@test "lists do not end what an allocation waits for" {
	local call i

	gpud v100 --gpus 2
	serve_pods 'a gpemu.io/v100 v100-0'
	plugin --health-interval 10s < <(two_gpus)
	allocate v100-1
	kill -STOP "$SERVER"
	kubelet call Allocate v100-0 >"$TMP/call" &
	call=$!
	soon eval '[ "$(ls "$TMP/dp/gpemu-grants" | wc -l)" = 2 ]'
	listed
	pods 'b gpemu.io/v100 v100-1'
	for i in 1 2 3; do
		listed
	done
	kill -CONT "$SERVER"
	wait "$call"
	grep -q '^OK' "$TMP/call"
	exec 9>&-
	plugin_end
}

@test "what a server is not told is not forgotten" {
	gpud v100 --gpus 2
	serve_pods
	plugin < <(two_gpus)
	allocate v100-0
	one=$FOLDER
	pods 'a gpemu.io/v100 v100-0'
	listed
	kill -STOP "$SERVER"
	soon grep -q "does not answer" "$TMP/plugin.log"
	# its pod ends; no other is left, for which lists would be asked for
	pods
	soon test ! -e "$TMP/dp/gpemu-grants/${one##*/}"
	[ -e "$one/gpud.sock" ]
	kill -CONT "$SERVER"
	soon test ! -e "$one"
	# nobody waits for an answer any more: no grant
	kill -STOP "$SERVER"
	run kubelet call Allocate v100-1
	[[ $output == *"does not grant v100-1"* ]]
	[ -z "$(ls "$TMP/dp/gpemu-grants")" ]
	kill -CONT "$SERVER"
	exec 9>&-
	plugin_end
}
