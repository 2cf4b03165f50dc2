# SPDX-License-Identifier: MIT
# A gpemu-gpud for each test, and what it says.

load processes

setup() {
	BUILD=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}
	GPUD=$BUILD/gpemu-gpud
	SMI=$BUILD/gpemu-smi
	TRAIN=$BUILD/gpemu-train
	CLIENT=$BATS_TEST_DIRNAME/gpud-client
	TMP=$(mktemp -d)
	SOCKET=$TMP/gpud.sock
	SCALE=0.1
	PIDS=()
}

teardown() {
	end_processes "${PIDS[@]}"
	rm -rf "$TMP"
}

# gpud OPTION...: one that listens at $SOCKET; its pid is $SERVER
gpud() {
	"$GPUD" --socket "$SOCKET" --time-scale "$SCALE" "$@" 3>&- &
	SERVER=$!
	PIDS+=("$SERVER")
	until_so 'True'
}

gpud_end() {
	kill "$SERVER"
	wait "$SERVER"
}

# train NAME OPTION...: in the background, its record in NAME.json; pid in $JOB
train() {
	local name=$1

	shift
	"$TRAIN" --loader null --gpu-server "$SOCKET" --time-scale "$SCALE" \
		--pin off --json "$TMP/$name.json" "$@" \
		>"$TMP/$name.out" 2>&1 3>&- &
	JOB=$!
	PIDS+=("$JOB")
}

# so EXPRESSION: true of the status `j`, its GPUs `g`, its processes `p`
so() {
	"$SMI" --socket "$SOCKET" --json "$TMP/status.json" >/dev/null 2>&1 &&
		python3 - "$TMP/status.json" "$1" <<-'PY'
			import json, sys
			j = json.load(open(sys.argv[1]))
			g, p = j['gpus'], j['processes']
			sys.exit(not eval(sys.argv[2]))
		PY
}

until_so() {
	local try

	for try in {1..200}; do
		so "$1" && return
		sleep 0.05
	done
	echo "never so: $1"
	cat "$TMP/status.json"
	return 1
}

# of a record `j`
check() {
	python3 - "$TMP/$1.json" "$2" <<-'PY'
		import json, sys
		j = json.load(open(sys.argv[1]))
		if not eval(sys.argv[2]):
		    sys.exit('not so: %s\n%s' % (sys.argv[2], json.dumps(j, indent=1)))
	PY
}
