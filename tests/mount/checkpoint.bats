#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Checkpoints of gpemu-train in a writable mount: the time they take on the
# emulated device, alone and beside the reads of the epoch.

bats_require_minimum_version 1.5.0

load mount

setup()
{
	common_setup
	cd "$BATS_TEST_TMPDIR"
	export TMPDIR=$BATS_TEST_TMPDIR/tmp
	mkdir dir "$TMPDIR"
}

teardown()
{
	common_teardown
}

# slow MB/S: a profile of one channel, which reads and writes share
slow()
{
	cat >slow.yaml <<-END
		name: slow
		source: a test
		channels: {source: a test, count: 1, mb_per_s: $1}
		sync: {source: a test, latency: {kind: const, value: 50ms}}
	END
}

timed()
{
	[ -z "${GPEMU_SANITIZED-}" ] || skip "a sanitizer takes its own time"
}

# 4 MB at 20 MB/s, and two syncs, of the file and the folder
@test "a checkpoint takes its bytes over the bandwidth, and the syncs" {
	timed
	make_files 10 3000
	slow 20
	gpemu-fs --writable dir -s slow.yaml "$src" "$mp"
	for try in 1 2 3 4 5; do
		gpemu-train --loader null --model resnet18 -b 64 --max-steps 3 --pin off \
			--checkpoint-every 1 --checkpoint-size 4000000 --checkpoint-keep 0 \
			--checkpoint-dir "$mp/ck$try" --json record.json >out
		grep '^Checkpoints: 3 of 3.815 MiB, each written in 0[.]' out
		python3 - <<-'END' && return 0
			import json, sys
			j = json.load(open("record.json"))
			t, c = j["totals"], j["checkpoints"]
			w, form = c["write_ms"], 4000 / 20 + 2 * 50
			print("write", w, "stall", c["stall_ms"], "closed form", form)
			assert c["written"] == 3 and form < w["p50"]
			assert w["mean"] < c["stall_ms"]["mean"] < w["mean"] + 20
			assert abs(c["mib_per_s"] / (c["bytes"] / 2**20 / t["checkpoint_s"]) - 1) < 1e-6
			sys.exit(w["mean"] > 1.06 * form)
		END
	done
	false
}

# The next checkpoint is due 64 ms after the copy, and waits for the write of 300
# ms: for 236.
@test "in the background, a checkpoint waits for the one before it" {
	timed
	make_files 10 3000
	slow 20
	gpemu-fs --writable dir -s slow.yaml "$src" "$mp"
	for try in 1 2 3 4 5; do
		for every in 1 8; do
			gpemu-train --loader null --model resnet18 --gpu v100 -b 1 --step-time 64ms \
				--max-steps $((4 * every)) --pin off --checkpoint async \
				--checkpoint-every $every --checkpoint-size 4000000 --checkpoint-keep 0 \
				--checkpoint-dir "$mp/ck$try.$every" --json record.json >out
			cp record.json $every
		done
		python3 - <<-'END' && return 0
			import json, sys
			often, rare = json.load(open("1")), json.load(open("8"))
			copy = rare["checkpoints"]["stall_ms"]["mean"]
			first, write = rare["checkpoints"]["stall_ms"]["p50"], often["checkpoints"]["write_ms"]["mean"]
			# the first of the four waits for none
			form = 4 * copy + 3 * (write - 64)
			stall = often["totals"]["checkpoint_stall_s"] * 1e3
			print("copy", copy, "write", write, "stalls", stall, "closed form", form)
			assert rare["checkpoints"]["write_ms"]["mean"] > 300 and stall > 3 * 200
			sys.exit(not (copy < 30 and abs(stall / form - 1) < .05))
		END
	done
	false
}

# One channel of 20 MB/s has 15 MB of samples to read, and beside that seven
# checkpoints of 1 MB to write, each before the next is due. Training waits for
# its data, so the channel rests only while nothing is ahead of it.
@test "a checkpoint and the reads of an epoch share the device" {
	timed
	make_files 300 50000
	slow 20
	sed -i s/50ms/5ms/ slow.yaml
	gpemu-fs --writable dir -s slow.yaml -p none "$src" "$mp"
	for try in 1 2 3 4 5; do
		for how in alone beside; do
			extra=()
			# a hidden folder: what is in it is no sample
			[ $how = alone ] || extra=(--checkpoint-every 4 --checkpoint-size 1000000
				--checkpoint-dir "$mp/.ck$try" --checkpoint async)
			gpemu-train --data "$mp" --prep none --loader async -b 10 --model resnet18 \
				--queue-depth 8 --index off --gpu v100 --pin off "${extra[@]}" \
				--json record.json >out
			cp record.json $how
		done
		python3 - <<-'PY' && return 0
			import json, sys
			alone, beside = json.load(open("alone")), json.load(open("beside"))
			read, c = alone["totals"]["bytes"], beside["checkpoints"]
			assert beside["totals"]["bytes"] == read and c["written"] == 7
			form = (read + c["bytes"]) / read
			took = beside["totals"]["seconds"] / alone["totals"]["seconds"]
			print("beside checkpoints", took, "of the time alone; closed form", form)
			by_hand = 1e6 / 20e3 + 2 * 5
			print("write", c["write_ms"], "alone", by_hand, "stall", c["stall_ms"])
			# a write waits for the reads that are queued before it
			assert c["write_ms"]["p50"] > 1.1 * by_hand
			sys.exit(abs(took / form - 1) > .06)
		PY
	done
	false
}

# Each rank writes its share, half of 8 MB, five times: 40 MB at 20 MB/s in all.
@test "the ranks of a run share the device with their shards" {
	timed
	make_files 10 3000
	slow 20
	sed -i /sync/d slow.yaml
	gpemu-fs --writable dir -s slow.yaml "$src" "$mp"
	for try in 1 2 3 4 5; do
		pids=
		for rank in 0 1; do
			gpemu-train --loader null --model resnet18 --gpu v100 --pin off --ceiling off \
				--parallel fsdp --step-time 1ms --max-steps 5 --rank $rank --world-size 2 \
				--checkpoint-every 1 --checkpoint-size 4000000 --checkpoint-dir "$mp/ck$try" \
				--json "$rank" >out &
			pids+=" $!"
		done
		wait $pids
		pids=
		[ "$(ls "$mp/ck$try")" = $'rank-0\nrank-1\nranks' ]
		python3 - <<-'PY' && return 0
			import json, sys
			took = [json.load(open(r))["checkpoints"]["write_ms"] for r in "01"]
			print(took)
			# one after the other they would take half of it
			sys.exit(not all(400 < t["p50"] < 1.06 * 400 for t in took))
		PY
	done
	false
}

# 40 MB on a device of 100 MB/s, as a hundredth of the bytes
# bats test_tags=slow
@test "a part of a checkpoint takes the time of the whole, written and read back" {
	timed
	make_files 10 3000
	slow 100
	gpemu-fs --writable dir --writable-scale .01 -s slow.yaml "$src" "$mp"
	for try in 1 2 3 4 5; do
		for steps in 3 4; do
			gpemu-train --loader null --model resnet18 -b 64 --pin off --resume \
				--max-steps $steps --checkpoint-every 1 --checkpoint-size 40000000 \
				--checkpoint-scale .01 --checkpoint-dir "$mp/ck$try" --json $steps >out
		done
		[ "$(stat -c %s dir/ck$try/checkpoint-0000000004.gpemu)" -lt 410000 ]
		grep "^Checkpoints: 1 of 38.1" out
		grep '^Resumed from step 3.* It was read in 0[.]' out
		python3 - <<-'PY' && return 0
			import json, sys
			first, then = json.load(open("3")), json.load(open("4"))
			c, read = first["checkpoints"], then["resumed"]["read_s"]
			print("write", c["write_ms"], "read", read, "rate", c["mib_per_s"])
			# the head of the file, 4 KiB, counts a hundredfold, too
			write = (40000 + 409.6) / 100 + 2 * 50
			assert c["state_bytes"] == 40000000 and c["scale"] == .01
			assert c["write_ms"]["p50"] > write and read > .404
			sys.exit(c["write_ms"]["mean"] > 1.06 * write or read > 1.06 * .404)
		PY
	done
	false
}

@test "a part of a checkpoint is refused where it would not take the time of the whole" {
	make_files 10 3000
	train="gpemu-train --loader null --max-steps 1 --checkpoint-every 1 --checkpoint-size 1M"
	run -1 $train --checkpoint-scale .1 --checkpoint-dir ck
	[[ $output == *"ck is no mount of gpemu-fs"*"give --time-scale 0.1 as well"* ]]
	$train --checkpoint-scale .1 --time-scale .1 --checkpoint-dir ck >out
	[ "$(stat -c %s ck/*.gpemu)" -lt 110000 ]
	gpemu-fs --writable dir --writable-scale .5 "$src" "$mp"
	[ "$(stat_of '["writable_scale"]')" = 0.5 ]
	for scale in .1 1; do
		run -1 $train --checkpoint-scale $scale --checkpoint-dir "$mp/ck"
		[[ $output == *"the mount of $mp/ck has --writable-scale 0.5"* ]]
	done
	$train --checkpoint-scale .5 --checkpoint-dir "$mp/ck" >out
}

@test "a checkpoint that a full device has no room for: an error with the path" {
	make_files 10 3000
	gpemu-fs --writable dir --capacity 3M "$src" "$mp"
	for how in sync async; do
		run -1 gpemu-train --loader null --model resnet18 --max-steps 9 --pin off \
			--checkpoint $how --checkpoint-every 1 --checkpoint-size 1M \
			--checkpoint-keep 0 --checkpoint-dir "$mp/ck"
		[[ $output == *"$mp/ck: cannot write a checkpoint: No space left on device"* ]]
		# those before it are whole, and nothing else takes space
		[ "$(ls dir/ck)" = $'checkpoint-0000000001.gpemu\ncheckpoint-0000000002.gpemu' ]
		gpemu-train --loader null --model resnet18 --max-steps 2 --pin off --resume \
			--checkpoint-every 9 --checkpoint-size 1M --checkpoint-dir "$mp/ck" |
			grep 'Resumed from step 2'
		rm "$mp"/ck/*
	done
}

# bats test_tags=slow
@test "run: fs.writable puts the checkpoints of a run on its device" {
	cat >w.yaml <<-'END'
		name: saved
		question: What does the device take?
		dataset: {dir: src}
		base:
		  fs: {storage: nvme, writable: scratch}
		  train: {prep: none, batch: 10, pin: "off", checkpoint_every: 2, checkpoint_size: 1M}
		time_scale: 0.05
		noise: 100%
	END
	make_files 40 1000
	saved() {
		python3 - "$@" <<-'PY'
			import glob, json, sys
			name, = glob.glob("results/saved/records/*.json")
			j = json.load(open(name))
			assert j["totals"]["samples"] == 40 and j["checkpoints"]["written"] == 2
			assert j["mount"].get("bytes_written", 0) == (j["checkpoints"]["bytes"] if sys.argv[1] == "inside" else 0)
		PY
		rm -r results
		[ -z "$(ls "$TMPDIR")" ]
	}
	gpemu-run w.yaml
	saved inside
	run -1 gpemu-run w.yaml base.fs.capacity=1M
	[[ $output == *'No space left on device'* ]]
	rm -r results
	# a folder of the user's keeps what is his
	echo mine >dir/mine
	gpemu-run w.yaml fs.writable="$PWD/dir"
	saved inside
	[ "$(ls -A dir)" = mine ]
	gpemu-run w.yaml 'base.fs.writable=~'
	saved outside
	# simulated, they have the device's time as well
	gpemu-run w.yaml train.simulate=true
	python3 - <<-'PY'
		import glob, json
		name, = glob.glob("results/saved/records/*.json")
		saved = json.load(open(name))["checkpoints"]
		assert saved["written"] == 2 and saved["bytes"] >= 2 << 20, saved
	PY
	rm -r results
	run -1 gpemu-run w.yaml train.nodes=2
	[[ $output == *"w.yaml:5:"*"writable: each node has a mount of its own"* ]]
	[ ! -e results ]
}
