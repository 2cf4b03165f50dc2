#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-data make and stat

bats_require_minimum_version 1.5.0

# The textures of a set cost 1.5 s of CPU, however few its images.
setup_file() {
	"${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}"/gpemu-data make --files 60 \
		--scale-bytes 0.25 "$BATS_FILE_TMPDIR/small"
}

setup() {
	BUILD=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}
	DATA=$BUILD/gpemu-data
	D=$BATS_TEST_TMPDIR/set
}

# All file names and bytes, as one sum; the record is not a file of the set.
sum() {
	(cd "$1" && find . -type f ! -name '.*' -print0 | sort -z |
		xargs -0 sha256sum | sha256sum)
}

# field FILE JQ-LIKE.PATH: a value of a record, without jq
field() {
	python3 -c 'import json, sys
v = json.load(open(sys.argv[1]))
for k in sys.argv[2].split("."):
    v = v[k]
print(v)' "$1" "$2"
}

# As make_small makes it.
copy_small() {
	cp -a "$BATS_FILE_TMPDIR/small" "$D"
}

make_small() {
	"$DATA" make --files 60 --scale-bytes 0.25 "$@"
}

# bats test_tags=slow
@test "sizes are within 2 % of the profile at every decile" {
	"$DATA" make --files 60 "$D"
	"$DATA" stat -d imagenet --json "$BATS_TEST_TMPDIR/s.json" "$D"
	[ "$(field "$BATS_TEST_TMPDIR/s.json" files)" = 60 ]
	# a file beside the classes is in none
	touch "$D/README"
	"$DATA" stat -d imagenet --json "$BATS_TEST_TMPDIR/r.json" "$D"
	[ "$(field "$BATS_TEST_TMPDIR/s.json" classes)" = 6 ]
	[ "$(field "$BATS_TEST_TMPDIR/r.json" classes)" = 6 ]
	python3 - "$BATS_TEST_TMPDIR/s.json" <<-'EOF'
		import json, sys
		s = json.load(open(sys.argv[1]))
		assert len(s["deciles_bytes"]) == 9
		want = s["profile"]["deciles_bytes"]
		for have, there in zip(s["deciles_bytes"], want):
		    assert abs(have / there - 1) <= .02, (have, there)
	EOF
}

@test "every file decodes and at most 5 % of it is padding" {
	copy_small
	run -0 "$DATA" stat --decode --json "$BATS_TEST_TMPDIR/s.json" "$D"
	[ "$(field "$BATS_TEST_TMPDIR/s.json" decode.images)" = 60 ]
	[ "$(field "$BATS_TEST_TMPDIR/s.json" decode.broken)" = 0 ]
	python3 - "$BATS_TEST_TMPDIR/s.json" <<-'EOF'
		import json, sys
		d = json.load(open(sys.argv[1]))["decode"]
		assert 0 < d["padding_max"] <= .05, d
		assert d["pixels"] > 60 * 100 * 100, d
	EOF
}

@test "the smallest files of ImageNet are images too" {
	printf '%s\n' 'name: tiny' 'source: test' 'verified: true' \
		'format: jpeg' 'files: 50' 'sizes: [[0, 900], [1, 2000]]' \
		>"$BATS_TEST_TMPDIR/tiny.yaml"
	"$DATA" make --files 50 -d "$BATS_TEST_TMPDIR/tiny.yaml" "$D"
	run -0 "$DATA" stat --decode "$D"
	[[ "$output" =~ "broken"\ +0 ]]
}

# bats test_tags=slow
@test "a seed makes the same bytes whatever the number of threads" {
	make_small --seed 7 --jobs 1 "$D"
	make_small --seed 7 --jobs 3 "$D.2"
	make_small --seed 8 --jobs 3 "$D.3"
	[ "$(sum "$D")" = "$(sum "$D.2")" ]
	[ "$(sum "$D")" != "$(sum "$D.3")" ]
}

@test "images differ from each other" {
	copy_small
	n=$(find "$D" -type f -name '*.JPEG' -exec sha256sum {} + |
		cut -c-64 | sort -u | wc -l)
	[ "$n" = 60 ]
}

@test "content random: sizes hold, bytes are not images" {
	"$DATA" make --files 40 --content random --scale-bytes 0.1 "$D"
	[ "$(find "$D" -name '*.bin' | wc -l)" = 40 ]
	run -1 "$DATA" stat --decode "$D"
	[[ "$output" =~ "broken"\ +40 ]]
}

@test "the same options again: nothing is written" {
	copy_small
	before=$(find "$D" -printf '%p %T@\n' | sort)
	run -0 make_small "$D"
	[[ "$output" =~ "complete already" ]]
	[ "$before" = "$(find "$D" -printf '%p %T@\n' | sort)" ]
}

@test "files made with other options are kept, and replaced with --force" {
	copy_small
	run -1 "$DATA" make --files 20 --scale-bytes 0.25 "$D"
	[[ "$output" =~ "other options" ]]
	echo mine >"$D/class_0000/notes.txt"
	"$DATA" make --files 20 --scale-bytes 0.25 --force "$D"
	[ "$(find "$D" -name '*.JPEG' | wc -l)" = 20 ]
	[ "$(cat "$D/class_0000/notes.txt")" = mine ]
	"$DATA" make --files 20 --scale-bytes 0.25 "$D.2"
	rm "$D/class_0000/notes.txt"
	[ "$(sum "$D")" = "$(sum "$D.2")" ]
}

@test "a folder with other files is refused" {
	mkdir "$D"
	echo mine >"$D/file"
	run -1 make_small "$D"
	[[ "$output" =~ "--force" ]]
	[ "$(ls "$D")" = file ]
}

@test "an incomplete set is completed" {
	copy_small
	want=$(sum "$D")
	sed -i 's/"complete": true/"complete": false/' "$D/.gpemu-data.json"
	rm "$D"/class_0002/*.JPEG
	: >"$D/class_0003/img_00000030.JPEG"
	run -0 make_small "$D"
	[[ "$output" =~ "(49 existed)" ]]
	[ "$(sum "$D")" = "$want" ]
	grep -q '"complete": true' "$D/.gpemu-data.json"
}

# bats test_tags=slow
@test "SIGINT: reported, leaves whole files, can be continued" {
	"$DATA" make --files 2000 "$D" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	pid=$!
	until compgen -G "$D/class_*/*.JPEG" >/dev/null; do
		kill -0 $pid
		sleep 0.05
	done
	kill -INT $pid
	status=0
	wait $pid || status=$?
	[ $status = 1 ]
	grep -q "interrupted: .* of 2000 files" "$BATS_TEST_TMPDIR/err"
	grep -q '"complete": false' "$D/.gpemu-data.json"
	run ! compgen -G "$D/class_*/.*.tmp"
	"$DATA" stat --decode "$D"
}

@test "--from: images cut out of the user's own" {
	copy_small
	make_small --from "$D" "$D.2"
	make_small --from "$D" --jobs 1 "$D.3"
	"$DATA" stat --decode "$D.2"
	[ "$(sum "$D.2")" = "$(sum "$D.3")" ]
	[ "$(sum "$D.2")" != "$(sum "$D")" ]
	mkdir "$D.empty"
	run -1 make_small --from "$D.empty" "$D.4"
	[[ "$output" =~ "no .jpg or .jpeg" ]]
}

@test "a broken image is counted and named" {
	copy_small
	truncate -s 500 "$D/class_0001/img_00000012.JPEG"
	run -1 "$DATA" stat --decode "$D"
	[[ "$output" =~ "broken"\ +1\ +"first: class_0001/img_00000012.JPEG" ]]
}

@test "a full disk is reported before anything is written" {
	run -1 "$DATA" make --files 2000000 --scale-bytes 100000 \
		--content random "$D"
	[[ "$output" =~ "are free" ]]
	[ -z "$(ls "$D")" ]
}

@test "sizes too small for a JPEG are refused" {
	run -1 "$DATA" make --files 10 --scale-bytes 0.001 "$D"
	[[ "$output" =~ "--content random" ]]
	"$DATA" make --files 10 --scale-bytes 0.001 --content random "$D"
}

@test "usage errors exit 2 with one line" {
	for args in "make" "make --files 0 $D" "make --files x $D" \
		"make --content png $D" "make --progress maybe $D" \
		"make --classes 5 --files 4 $D" "make $D $D" "stat" \
		"make --from $D --content random $D" "make --nope $D" "nope"; do
		# shellcheck disable=SC2086
		run -2 "$DATA" $args
		[ -n "$output" ]
	done
	[ ! -e "$D" ]
}

@test "a missing file exits 1 and is named" {
	run -1 "$DATA" stat "$D"
	[[ "$output" =~ "$D: No such file" ]]
	mkdir "$D"
	run -1 "$DATA" stat "$D"
	[[ "$output" =~ "no files" ]]
	run -2 "$DATA" make -d nope "$D.2"
	[[ "$output" =~ "imagenet" ]]
	run -1 "$DATA" stat -d nope "$BATS_TEST_DIRNAME"
	[[ "$output" =~ "imagenet" ]]
}

@test "make makes the folders above its own" {
	make_small --content random "$D.new/a/b/"
	[ "$(find "$D.new/a/b" -type f ! -name '.*' | wc -l)" = 60 ]
	touch "$D.file"
	run -1 make_small "$D.file/a/b"
	[[ "$output" == *"$D.file/a"*"Not a directory"* ]]
	run -1 make_small "$D.file"
	[[ "$output" == *"$D.file"* ]]
}

@test "the record describes the dataset" {
	make_small --json - "$D" >"$BATS_TEST_TMPDIR/m.json"
	[ "$(field "$BATS_TEST_TMPDIR/m.json" result.files_written)" = 60 ]
	[ "$(field "$BATS_TEST_TMPDIR/m.json" config.files)" = 60 ]
	[ "$(field "$BATS_TEST_TMPDIR/m.json" seed)" = 1 ]
	bytes=$(find "$D" -name '*.JPEG' -printf "%s\n" |
		awk "{ n += \$1 } END { print n }")
	[ "$(field "$BATS_TEST_TMPDIR/m.json" result.bytes_written)" = "$bytes" ]
}
