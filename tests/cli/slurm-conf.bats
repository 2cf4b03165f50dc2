#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-slurm: the files of Slurm, and the scripts among them.

setup() {
	BUILD=$(realpath "${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}")
	TMP=$(mktemp -d)
	OUT="$TMP/it's here"
	cat >"$TMP/node.yaml" <<-YAML
		gpus:
		  v100: {count: 3, server: $TMP/v100/gpud.sock}
		  old:
		    count: 1
		    profile: k80
		    server: $TMP/old/gpud.sock
		    device: /dev/old
	YAML
}

teardown() {
	local file

	for file in "$TMP"/run/*.pid; do
		[ ! -e "$file" ] || kill "$(cat "$file")" || true
	done
	rm -rf "$TMP"
}

write() {
	"$BUILD/gpemu-slurm" --nodes 'n[0-1]' -o "$OUT" --run-dir "$TMP/run" "$@" \
		"$TMP/node.yaml" >"$TMP/written"
}

# in_job ID SCRIPT: as slurmd runs it, without a search path
in_job() {
	env -i SLURM_JOB_ID="$1" "$OUT/$2" 3>&-
}

serves() {
	"$BUILD/gpemu-smi" --socket "$TMP/$1/gpud.sock" >/dev/null 2>&1
}

@test "slurm: gres.conf, the line of the nodes, the rule of udev" {
	write --cpus 4
	[ "$(wc -l <"$TMP/written")" -eq 6 ]
	diff "$OUT/gres.conf" - <<-END
		# Written by gpemu-slurm from $TMP/node.yaml
		AutoDetect=off
		NodeName=n[0-1] Name=gpu Type=v100 File=/dev/gpemu-v100-[0-2] Flags=nvidia_gpu_env
		NodeName=n[0-1] Name=gpu Type=old File=/dev/old0 Flags=nvidia_gpu_env
	END
	grep -qxF 'NodeName=n[0-1] CPUs=4 Gres=gpu:v100:3,gpu:old:1' "$OUT/nodes.conf"
	grep -qxF "Prolog=$OUT/prolog" "$OUT/nodes.conf"
	[ "$(tail -n 1 "$OUT/70-gpemu.rules")" = 'KERNEL=="null", SUBSYSTEM=="mem", SYMLINK+="gpemu-v100-0 gpemu-v100-1 gpemu-v100-2"' ]
	write
	grep -q '^NodeName=n\[0-1\] Gres=' "$OUT/nodes.conf"
}

@test "slurm: the servers run from the first job to the last" {
	write
	in_job 7 prolog
	serves v100
	serves old
	first=$(cat "$TMP/run/v100.pid")
	in_job 8 prolog
	[ "$(cat "$TMP/run/v100.pid")" = "$first" ]
	in_job 7 epilog
	serves v100
	in_job 8 epilog
	! serves v100 || false
	! serves old || false
	[ ! -e "/proc/$first" ]
	# and again
	in_job 9 prolog
	serves old
	in_job 9 epilog
	[ -z "$(ls "$TMP/run/jobs")" ]
}

@test "slurm: a server that does not start fails the prolog" {
	: >"$TMP/old" # where its folder belongs
	write
	run in_job 7 prolog
	[ "$status" -ne 0 ]
	in_job 7 epilog
	! serves v100 || false
}

@test "slurm: tasks know the server of their GPUs" {
	write
	for index in 0 1,2 2,3; do
		run env -i CUDA_VISIBLE_DEVICES=$index "$OUT/task_prolog"
		[ "${lines[0]}" = "export GPEMU_GPU_SERVER=$TMP/v100/gpud.sock" ]
		[ "${lines[1]}" = "export GPEMU_GPU_PROFILE=v100" ]
		[ $index != 1,2 ] && gpus=1 || gpus=2
		[ "${lines[2]}" = "export GPEMU_GPUS=$gpus" ]
	done
	run env -i CUDA_VISIBLE_DEVICES=3 "$OUT/task_prolog"
	[ "${lines[0]}" = "export GPEMU_GPU_SERVER=$TMP/old/gpud.sock" ]
	[ "${lines[1]}" = "export GPEMU_GPU_PROFILE=k80" ]
	run env -i "$OUT/task_prolog"
	[ "$status" -eq 0 ]
	[ -z "$output" ]
}

@test "slurm: an invalid file of a node" {
	sed -i 's/count: 3/count: 0/' "$TMP/node.yaml"
	run write
	[ "$status" -eq 1 ]
	[[ $output == *"$TMP/node.yaml:2:"*"count: 0 is outside 1..64"* ]]
	[ ! -e "$OUT" ]
	run "$BUILD/gpemu-slurm" -o here "$TMP/node.yaml"
	[ "$status" -eq 2 ]
}
