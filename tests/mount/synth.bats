#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Datasets generated on read.

load mount

setup()
{
	common_setup
}

teardown()
{
	common_teardown
}

peak_kib()
{
	awk '/^VmHWM:/ { print $2 }' "/proc/$(daemon_pid)/status"
}

# Under a sanitizer, time and memory mean nothing.
sanitized()
{
	grep -q __asan_init "$BUILD/gpemu-fs"
}

# ready_in_time SPEC: mounted within 3 s; one of five tries, the last stays
ready_in_time()
{
	local start took try

	for try in 1 2 3 4 5; do
		start=$(date +%s%N)
		gpemu-fs -c 64M "$1" "$mp" || return
		took=$((($(date +%s%N) - start) / 1000000))
		echo "$1: ready in $took ms"
		sanitized || [ "$took" -le 3000 ] && return 0
		fusermount3 -u "$mp"
		eventually no_daemon
	done
	return 1
}

# bats test_tags=alone
@test "ImageNet-1k: complete within 3 s, in at most 300 MB" {
	for content in jpeg random; do
		ready_in_time synth:imagenet,content=$content
		[ "$(find "$mp" -type f | wc -l)" = 1281167 ]
		[ "$(find "$mp" -mindepth 1 -type d | wc -l)" = 1000 ]
		peak=$(peak_kib)
		echo "peak $peak KiB"
		sanitized || [ "$peak" -le 300000 ]
		fusermount3 -u "$mp"
		eventually no_daemon
	done
}

# bats test_tags=slow
@test "8 concurrent readers get the bytes of the generator" {
	for content in jpeg random; do
		spec=synth:imagenet,files=400,seed=3,content=$content
		gpemu-fs -p lru -c 35% "$spec" "$mp"
		gpemu-data sum "$spec" >"$BATS_TEST_TMPDIR/want"
		for i in 1 2 3 4 5 6 7 8; do
			gpemu-data sum "$mp" >"$BATS_TEST_TMPDIR/got.$i" 3>&- &
			readers="${readers-} $!"
		done
		wait $readers
		readers=
		for i in 1 2 3 4 5 6 7 8; do
			cmp "$BATS_TEST_TMPDIR/want" "$BATS_TEST_TMPDIR/got.$i"
		done
		[ "$(wc -l <"$BATS_TEST_TMPDIR/want")" = 400 ]
		fusermount3 -u "$mp"
		eventually no_daemon
	done
}

@test "content random: the bytes that gpemu-data make writes" {
	gpemu-data make --files 300 --seed 4 --content random "$src"
	gpemu-fs synth:imagenet,files=300,seed=4,content=random "$mp"
	diff -r -x .gpemu-data.json "$src" "$mp"
}

# bats test_tags=slow
@test "mounts with one seed are equal, with two seeds different" {
	mkdir "$BATS_TEST_TMPDIR/mp2" "$BATS_TEST_TMPDIR/mp3"
	gpemu-fs synth:imagenet,files=300,seed=4 "$mp"
	gpemu-fs -p none synth:imagenet,files=300,seed=4 "$BATS_TEST_TMPDIR/mp2"
	gpemu-fs synth:imagenet,files=300,seed=5 "$BATS_TEST_TMPDIR/mp3"
	[ "$(tree_sum "$mp")" = "$(tree_sum "$BATS_TEST_TMPDIR/mp2")" ]
	[ "$(tree_sum "$mp")" != "$(tree_sum "$BATS_TEST_TMPDIR/mp3")" ]
}

@test "every file is a JPEG with little padding and a size of the profile" {
	gpemu-fs synth:imagenet,files=500 "$mp"
	gpemu-data stat --decode -d imagenet --json "$BATS_TEST_TMPDIR/s" "$mp"
	python3 - "$BATS_TEST_TMPDIR/s" <<-'END'
	import json, sys
	s = json.load(open(sys.argv[1]))
	d = s["decode"]
	assert d["images"] == 500 and d["broken"] == 0, d
	assert d["padding_bytes"] < .1 * s["bytes"] + 40e6, d
	assert d["pixels"] > 500 * 200 * 200, d
	for have, want in zip(s["deciles_bytes"],
	                      s["profile"]["deciles_bytes"]):
	    assert abs(have / want - 1) < .02, (have, want)
	END
}

@test "a dataset of 14 TB without a disk" {
	gpemu-fs -c 100M synth:unet3d,files=100000 "$mp"
	bytes=$(stat_of '["file_bytes"]')
	[ "$bytes" -gt 14000000000000 ]
	[ "$(find "$mp" -type f | wc -l)" = 100000 ]
	# a part far inside the dataset, read in two ways
	file=$mp/class_0000/img_00099999.bin
	whole=$(tail -c +5000001 "$file" | head -c 4000000 | sha256sum)
	[ "$whole" = "$(dd if="$file" bs=777777 iflag=fullblock,skip_bytes,count_bytes \
		skip=5000000 count=4000000 status=none | sha256sum)" ]
}

@test "an error in SPEC is one line that lists the known words" {
	check()
	{
		run gpemu-fs "$1" "$mp"
		echo "$output"
		[ "$status" -eq 1 ]
		[ "${#lines[@]}" -eq 1 ]
		[[ $output == *"$2"* ]]
		is_not_mounted
	}
	check synth:nope "known: bert"
	check synth:imagenet,seeds=1 "known: files classes seed content scale"
	check synth:imagenet,files=-1 "files: "
	check synth:imagenet,content=png "known: random jpeg"
	check nothing:x "unknown source 'nothing'"
}
