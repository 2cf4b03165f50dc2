#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A file's name is bytes, JSON is UTF-8: records escape the one, and lose none.

bats_require_minimum_version 1.5.0
load standins

BAD=$'caf\xe9'

setup() {
	standins_setup
	PATH="$(realpath "$bin"):$PATH"
	mkdir "$BAD"
	for i in 1 2 3 4; do head -c 1000 /dev/zero >"$BAD/$i"; done
}

# record FILE CONDITION...: on the record j and its text
record() {
	python3 - "$@" <<-'PY'
		import json, os, sys
		text = open(os.fsencode(sys.argv[1]), 'rb').read().decode()
		j = json.loads(text)
		for condition in sys.argv[2:]:
		    assert eval(condition), (condition, text)
	PY
}

@test "train: --data, checkpoints, trace and log of steps" {
	set -- --data "$BAD" --prep none -b 2 --model alexnet --time-scale 0.01 \
		--checkpoint-dir "$BAD.ck" --checkpoint-every 1 --checkpoint-size 4K \
		--trace "$BAD.trace" --steps "$BAD.steps" --dump-samples "$BAD.samples"
	gpemu-train "$@" -e 1 --json "$BAD.json"
	record "$BAD.json" "j['config']['data'] == 'caf\\\\xe9'" \
		"'caf\\\\xe9' in j['command']" "j['checkpoints']['dir'] == 'caf\\\\xe9.ck'" \
		"j['totals']['samples'] == 4"
	python3 -m json.tool "$BAD.trace" >/dev/null
	gpemu-train "$@" -e 2 --resume --json "$BAD.json"
	record "$BAD.json" "j['resumed']['step'] == 2"
	# from a list that is kept
	gpemu-train --data "$BAD" --prep none -b 2 --time-scale 0.01 --index rebuild --json j
	record j "j['dataset']['index'].startswith('caf\\\\xe9/')"
}

# served GPU COMMAND...: with a server of that GPU at $BAD.sock
served() {
	gpemu-gpud --socket "$BAD.sock" --gpu "$1" --time-scale 0.1 --json "$BAD.json" 3>&- &
	local server=$! status=0
	for try in $(seq 100); do [ -S "$BAD.sock" ] && break; sleep .1; done
	"${@:2}" >out 2>&1 || status=$?
	kill "$server"
	wait "$server" || true
	return "$status"
}

@test "names: a GPU server, gpemu-smi and a client" {
	cp "$BATS_TEST_DIRNAME"/../../profiles/gpu/tesla-v100-pcie-32gb.yaml "$BAD.yaml"
	served "$BAD.yaml" gpemu-smi --socket "$BAD.sock" --json s
	for file in s "$BAD.json"; do
		record "$file" "j['server']['profile'].endswith('caf\\\\xe9.yaml')"
	done
	served v100 gpemu-train --loader null --gpu-server "$BAD.sock" --max-steps 2 \
		--time-scale 0.1 --pin off --json j
	record j "j['sharing']['server'] == 'caf\\\\xe9.sock'"
}

@test "data: make, stat, pack" {
	gpemu-data make --files 3 --content random --scale-bytes 0.01 --json j "$BAD.made"
	record j "j['directory'].endswith('caf\\\\xe9.made')"
	gpemu-data stat --json j "$BAD.made"
	record j "j['directory'].endswith('caf\\\\xe9.made')"
	gpemu-data pack --json j "$BAD.made" "$BAD.pack"
	record j "j['pack'].endswith('caf\\\\xe9.pack')" "j['files'] == 3"
	gpemu-data stat --json j "$BAD.pack"
	record j "j['pack'].endswith('caf\\\\xe9.pack')"
}

@test "cachesim" {
	printf '0,1,100\n1,2,100\n' >"$BAD.csv"
	gpemu-cachesim --trace "$BAD.csv" --json j >/dev/null
	record j "j['config']['trace'] == 'caf\\\\xe9.csv'"
}

@test "profile: check of a file that is not a profile" {
	echo nonsense >"$BAD.yaml"
	run gpemu-profile check --json j "$BAD.yaml"
	[ "$status" -eq 1 ]
	record j "'caf\\\\\\\\xe9.yaml' in text"
}

@test "run: the folder of results and the workload" {
	cat >"$BAD.yaml" <<-'END'
		name: small
		question: Is it there?
		dataset: {dataset: imagenette, files: 5}
		base:
		  train: {epochs: 2, loader: sync}
	END
	gpemu_run -o "$BAD.out" --json j "$BAD.yaml"
	record j "j['file'].endswith('caf\\\\xe9.yaml')"
	record "$(echo "$BAD.out"/records/*.json)" "j['status'] == 'ok'"
}
