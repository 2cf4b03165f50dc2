#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Datasets as other programs write them, read byte for byte; the index of a
# dataset.

setup() {
	BUILD=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}
	TRAIN=$BUILD/gpemu-train
	SAMPLES=$BUILD/tests/cli/samples
	TMP=$BATS_TEST_TMPDIR
	JSON=$TMP/record.json
	export XDG_CACHE_HOME=$TMP/cache
}

teardown() {
	chmod -R u+w "$TMP"
}

make() {
	/usr/bin/python3 "$BATS_TEST_DIRNAME/make-formats" "$1" "$TMP"
}

numpy() {
	/usr/bin/python3 -c 'import numpy' 2>/dev/null ||
		skip "python3-numpy is not installed"
}

# same FORMAT PATH: every engine delivers the expected samples
same() {
	local engine

	for engine in sync async; do
		rm -rf "$TMP/got"
		mkdir "$TMP/got"
		run "$SAMPLES" "$1" "$2" "$engine" "$TMP/got"
		[ "$status" -eq 75 ] && continue # io_uring is forbidden here
		echo "$engine: $output"
		[ "$status" -eq 0 ]
		diff -r "$TMP/want" "$TMP/got"
	done
}

train() {
	run "$TRAIN" --loader sync --prep none -b 2 --time-scale 0.001 \
		--json "$JSON" "$@"
}

# of the record's dataset
dataset() {
	python3 -c 'import json, sys
print(json.load(open(sys.argv[1]))["dataset"][sys.argv[2]])' "$JSON" "$1"
}

# N NAMES of a note of the record's dataset
note() {
	python3 -c 'import json, sys
for n in json.load(open(sys.argv[1]))["dataset"]["notes"]:
    if n["what"] == sys.argv[2]:
        print(n["n"], *n["names"])' "$JSON" "$1"
}

# long ago, so that an index may be kept
age() {
	find "$@" -exec touch -h -d '2020-01-01 00:00:00.5' {} +
}

@test "tar: ustar, GNU and pax, with labels" {
	for kind in tar-ustar tar-gnu tar-pax; do
		rm -rf "$TMP/data" "$TMP/want"
		make $kind
		same auto "$TMP/data"
		same tar "$TMP/data"
	done
}

@test "tar: without labels, the folders of the members are the classes" {
	make tar-folders
	# as they are named without the leading dot
	sed -i 's|tar/\./|tar/|' "$TMP/want/list"
	same auto "$TMP/data"
}

@test "tar: one shard" {
	make tar-ustar
	train --data "$TMP/data/s-001.tar"
	[ "$status" -eq 0 ]
	[ "$(dataset format) $(dataset samples)" = "tar 7" ]
}

@test "TFRecord: payloads, and the images of Examples" {
	for kind in tfrecord tfrecord-images; do
		rm -rf "$TMP/data" "$TMP/want"
		make $kind
		same auto "$TMP/data"
		train --data "$TMP/data" --format tfrecord:verify=on
		[ "$status" -eq 0 ]
		[ "$(dataset format) $(dataset shards)" = "tfrecord 2" ]
	done
}

@test "TFRecord: an error of a damaged shard names the file and the byte" {
	make tfrecord
	shard=$TMP/data/train-00001-of-00002
	n=$(($(stat -c %s "$shard") - 1))
	printf '\xff' | dd of="$shard" bs=1 seek=$n conv=notrunc status=none
	train --data "$TMP/data"
	[ "$status" -eq 0 ]
	train --data "$TMP/data" --format tfrecord:verify=on
	[ "$status" -eq 1 ]
	[[ $output == *"$TMP/data: train-00001-of-00002: the record at byte "*"checksum of its data"* ]]
	truncate -s "$n" "$shard"
	train --data "$TMP/data"
	[ "$status" -eq 1 ]
	[[ $output == *"train-00001-of-00002: the record at byte "*"truncated"* ]]
	# of no bytes: no records
	truncate -s 0 "$shard"
	train --data "$TMP/data"
	[ "$status" -eq 0 ]
	[ "$(dataset samples)" = 9 ]
	truncate -s 0 "$TMP/data/train-00000-of-00002"
	train --data "$TMP/data"
	[ "$status" -eq 1 ]
	[[ $output == *"no samples"* ]]
}

@test "npy: records of arrays" {
	numpy
	make npy
	same auto "$TMP/data"
	same npy "$TMP/data"
}

@test "npz: the array of each file; compressed ones are refused" {
	numpy
	make npz
	same auto "$TMP/data"
	rm -rf "$TMP/data" "$TMP/want"
	make npz-compressed
	train --data "$TMP/data"
	[ "$status" -eq 1 ]
	[[ $output == *"a/img_0000_of_0006.npz: "*"savez_compressed"* ]]
}

@test "npz: sizes and offsets of 64 bits" {
	numpy
	/usr/bin/python3 - "$TMP/big.npz" <<-'PY'
		import sys, zipfile
		# so small that nothing fits into 32 bits
		zipfile.ZIP64_LIMIT = 1
		zipfile.ZIP_FILECOUNT_LIMIT = 0
		import numpy
		numpy.savez(sys.argv[1], y=numpy.zeros(3), x=numpy.arange(1000))
		assert b'PK\x06\x06' in open(sys.argv[1], 'rb').read()
	PY
	train --data "$TMP/big.npz" -b 1
	[ "$status" -eq 0 ]
	[ "$(dataset samples) $(dataset bytes)" = "1 8000" ]
}

@test "files: class folders, in the order of their names" {
	make files
	same auto "$TMP/data"
	same files "$TMP/data"
}

@test "pack: the samples of the packed tree, in groups" {
	make files
	"$BUILD/gpemu-data" pack --group 4 --group-order sequential "$TMP/data" \
		"$TMP/set.pack" >/dev/null
	sed -i "s|$TMP/data|$TMP/set.pack|" "$TMP/want/list"
	# its order is that of whole paths
	mkdir "$TMP/got"
	"$SAMPLES" auto "$TMP/set.pack" sync "$TMP/got"
	diff <(sort "$TMP/want/list") <(sort "$TMP/got/list")
	python3 - "$TMP" <<-'PY'
		import sys
		def read(d):
		    d = sys.argv[1] + '/' + d + '/'
		    return {line: open(d + str(i), 'rb').read()
		            for i, line in enumerate(open(d + 'list'))}
		assert read('want') == read('got')
	PY
	train --data "$TMP/set.pack"
	[ "$status" -eq 0 ]
	[ "$(dataset format) $(dataset groups) $(dataset classes)" = "pack 3 3" ]
	mkdir "$TMP/packs"
	cp "$TMP/set.pack" "$TMP/packs/1.pack"
	cp "$TMP/set.pack" "$TMP/packs/2.pack"
	train --data "$TMP/packs"
	[ "$status" -eq 0 ]
	[ "$(dataset samples) $(dataset groups) $(dataset classes)" = "24 6 3" ]
}

@test "auto: the format of a folder or a file" {
	make files
	train --data "$TMP/data"
	[ "$(dataset format)" = files ]
	mv "$TMP/data" "$TMP/files"
	rm -rf "$TMP/want"
	make tar-ustar
	echo '{}' >"$TMP/data/sizes.json"
	train --data "$TMP/data"
	[ "$(dataset format)" = tar ]
	# shards and images: which?
	echo x >"$TMP/data/x.jpg"
	train --data "$TMP/data"
	[ "$status" -eq 1 ]
	[[ $output == *"two formats, tar (s-00"*".tar) and files (x.jpg)"*"--format tar or --format files"* ]]
	train --data "$TMP/data" --format files
	[ "$(dataset format)" = files ]
	train --data "$TMP/data/x.jpg"
	[ "$status" -eq 1 ]
	[[ $output == *"does not look like a file of any format"*tfrecord* ]]
	train --data "$TMP/files" --format tar
	[ "$status" -eq 1 ]
	[[ $output == *"no samples: no file name matches"* ]]
	train --data "$TMP/data/s-000.tar" --format files
	[ "$status" -eq 1 ]
	[[ $output == *"needs a folder"* ]]
	train --data "$TMP/data/s-000.tar" --format npz
	[ "$status" -eq 1 ]
	[[ $output == *"s-000.tar"*"npz"* ]]
}

@test "unknown words are rejected" {
	run "$TRAIN" --loader sync --data "$TMP" --format zip
	[ "$status" -eq 2 ]
	[[ $output == *"unknown format 'zip'"*files*npz* ]]
	run "$TRAIN" --loader sync --data "$TMP" --index maybe
	[ "$status" -eq 2 ]
	[[ $output == *"auto off rebuild"* ]]
	run "$TRAIN" --loader sync --data "$TMP" --format tar:payload=.jpg
	[ "$status" -eq 2 ]
	[[ $output == *"such as jpg,png"* ]]
	run "$TRAIN" --list format
	[[ $output == *WebDataset* ]]
}

@test "payload: another member than the default" {
	make tar-ustar
	train --data "$TMP/data" --format tar:payload=json,jpg
	[ "$status" -eq 0 ]
	[ "$(dataset bytes)" = $((3 * 7 * 2)) ]
	train --data "$TMP/data" --format tar:payload=seg.png
	[ "$status" -eq 1 ]
	[[ $output == *"s-000.tar: no member has an extension of payload=seg.png"* ]]
}

@test "an unreadable sample is named with its shard" {
	make tar-ustar
	age "$TMP/data"
	train --data "$TMP/data" --index rebuild
	[ "$status" -eq 0 ]
	# truncated while it is read: the index, and so the size, is the old one
	python3 - "$TMP" "$TRAIN" "$JSON" <<-'PY'
		import os, subprocess, sys
		tmp, train, json = sys.argv[1:]
		shard = tmp + '/data/s-002.tar'
		times = os.stat(shard)
		good = open(shard, 'rb').read()
		# the same size and time, and nothing in it
		with open(shard, 'r+b') as f:
		    f.truncate(0)
		    f.truncate(len(good))
		os.utime(shard, ns=(times.st_atime_ns, times.st_mtime_ns))
		p = subprocess.run([train, '--data', tmp + '/data', '--loader', 'sync',
		                    '--prep', 'decode', '-b', '2', '--time-scale', '.001'],
		                   capture_output=True, text=True)
		assert p.returncode == 1, p
		assert '/data/s-00' in p.stderr and '.jpg, from byte ' in p.stderr, p.stderr
	PY
}

@test "more shards than descriptors" {
	mkdir "$TMP/data"
	/usr/bin/python3 - "$TMP/data" <<-'PY'
		import io, sys, tarfile
		for i in range(300):
		    with tarfile.open('%s/%03d.tar' % (sys.argv[1], i), 'w') as t:
		        m = tarfile.TarInfo('a.bin')
		        m.size = 5
		        t.addfile(m, io.BytesIO(b'12345'))
	PY
	# the soft limit is raised
	(ulimit -Sn 100 && "$TRAIN" --loader sync --prep none -b 2 --data "$TMP/data" \
		--time-scale 0.001 --json "$JSON")
	[ "$(dataset shards)" = 300 ]
	limited() {
		ulimit -Sn 100 && ulimit -Hn 200 || return
		if [ "$(id -u)" -eq 0 ]; then
			setpriv --bounding-set -sys_resource \
				--inh-caps -sys_resource "$@"
		else
			"$@"
		fi
	}
	run limited "$TRAIN" --loader sync --prep none --data "$TMP/data"
	echo "$output"
	[ "$status" -ne 0 ]
	[[ $output == *"300 shards"*"ulimit -Hn"* ]]
}

# --- the index --------------------------------------------------------------

# index FROM: the last run's dataset was from the index, or not; and is same
from_index() {
	[ "$status" -eq 0 ]
	[ "$(dataset from_index)" = "$1" ]
}

@test "index: kept next to the dataset, used, and equal" {
	for kind in tar-ustar tfrecord-images files; do
		rm -rf "$TMP/data" "$TMP/want"
		make $kind
		age "$TMP/data"
		train --data "$TMP/data" --index rebuild
		from_index False
		cp "$JSON" "$TMP/first.json"
		[ "$(dataset index)" = "$TMP/data/.gpemu-index" ]
		train --data "$TMP/data"
		from_index True
		python3 - "$TMP/first.json" "$JSON" <<-'PY'
			import json, sys
			a, b = (json.load(open(f))['dataset'] for f in sys.argv[1:])
			for x in a, b:
			    del x['list_s'], x['from_index']
			assert a == b, (a, b)
		PY
		train --data "$TMP/data" --index off
		from_index False
		# another format, or other options, are another list
		case $kind in
		tar-ustar) train --data "$TMP/data" --format tar:payload=png,jpg ;;
		tfrecord-images) train --data "$TMP/data" --format tfrecord:verify=on ;;
		files) continue ;;
		esac
		from_index False
	done
}

@test "index: of one shard" {
	make tar-ustar
	age "$TMP/data"
	train --data "$TMP/data/s-000.tar" --index rebuild
	[ "$(dataset index)" = "$TMP/data/.s-000.tar.gpemu-index" ]
	train --data "$TMP/data/s-000.tar"
	from_index True
	[ "$(dataset samples)" = 7 ]
}

@test "index: not used after a shard has changed" {
	make tar-ustar
	age "$TMP/data"
	change() {
		train --data "$TMP/data" --index rebuild
		from_index False
		train --data "$TMP/data"
		from_index True
		"$@"
		train --data "$TMP/data"
		from_index False
		age "$TMP/data"
	}
	change touch "$TMP/data/s-001.tar"
	change cp "$TMP/data/s-001.tar" "$TMP/data/s-009.tar"
	[ "$(dataset samples)" = 28 ]
	change rm "$TMP/data/s-001.tar"
	[ "$(dataset samples)" = 21 ]
	change mv "$TMP/data/s-000.tar" "$TMP/data/a.tar"
	# another file of the same size and time
	same_but() {
		cp -p "$1" "$TMP/other" && mv "$TMP/other" "$1"
	}
	change same_but "$TMP/data/s-002.tar"
	grow() {
		head -c 10240 /dev/zero >>"$1" && age "$1"
	}
	change grow "$TMP/data/s-002.tar"
}

@test "index: not used after a tree has changed" {
	make files
	age "$TMP/data"
	change() {
		train --data "$TMP/data" --index rebuild
		from_index False
		train --data "$TMP/data"
		from_index True
		"$@"
		train --data "$TMP/data"
		from_index False
		age "$TMP/data"
	}
	change cp "$TMP/data/a/0.bin" "$TMP/data/a/9.bin"
	[ "$(dataset samples)" = 13 ]
	change rm "$TMP/data/b/c/0.bin"
	[ "$(dataset samples)" = 12 ]
	change mv "$TMP/data/a/1.bin" "$TMP/data/a/one.bin"
	change mkdir "$TMP/data/z"
	# a class is a folder with a sample
	[ "$(dataset classes)" = 3 ]
	[ "$(note empty_folders)" = "1 z" ]
	change rmdir "$TMP/data/z"
	# a few files are checked: here all of them
	rewrite() {
		head -c 77 /dev/zero >"$1" && age "$1"
	}
	change rewrite "$TMP/data/a/0.bin"
}

@test "index: of a folder of files without classes" {
	mkdir "$TMP/data"
	for i in 1 2 3 4; do echo "file $i" >"$TMP/data/$i.bin"; done
	age "$TMP/data"
	train --data "$TMP/data" --index rebuild
	train --data "$TMP/data"
	from_index True
	mv "$TMP/data/1.bin" "$TMP/data/5.bin"
	age "$TMP/data"
	train --data "$TMP/data"
	from_index False
}

@test "index: rebuilt if damaged" {
	make tar-ustar
	age "$TMP/data"
	train --data "$TMP/data" --index rebuild
	index=$TMP/data/.gpemu-index
	for damage in "truncate -s -1" "truncate -s 0" "truncate -s 1G" \
		"sed -i s/s-001/s-00x/" "rm" "cp /bin/sh"; do
		$damage "$index"
		train --data "$TMP/data"
		from_index False
		[ "$(dataset samples)" = 21 ]
		age "$TMP/data"
		train --data "$TMP/data" --index rebuild
		train --data "$TMP/data"
		from_index True
	done
}

@test "index: not kept if the dataset changed just now" {
	make tar-ustar
	train --data "$TMP/data" --index rebuild -v
	[ "$status" -eq 0 ]
	[ ! -e "$TMP/data/.gpemu-index" ]
	[[ $output == *"the index is not kept: the dataset changed within the last 2 s"* ]]
}

@test "index: in the cache where the dataset cannot be written to" {
	make tar-ustar
	age "$TMP/data"
	run_as=
	if [ "$(id -u)" -eq 0 ]; then
		run_as="setpriv --reuid 65534 --clear-groups --bounding-set -all"
		mkdir "$XDG_CACHE_HOME"
		chown 65534 "$XDG_CACHE_HOME"
		chmod a+rx "$TMP" "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR" \
			"$(dirname "$TMP")"
		$run_as test -x "$TRAIN" || skip "nobody may not run the build"
		$run_as test -r "$TMP/data" || skip "nobody may not read $TMP"
	fi
	chmod a-w "$TMP/data"
	as_user() {
		$run_as "$TRAIN" --loader sync --prep none -b 2 --pin off \
			--time-scale 0.001 --json - "$@" >"$JSON" 2>"$TMP/err"
	}
	as_user --data "$TMP/data" --index rebuild
	[[ $(dataset index) == "$XDG_CACHE_HOME"/gpemu/*.index ]]
	[ ! -e "$TMP/data/.gpemu-index" ]
	as_user --data "$TMP/data"
	[ "$(dataset from_index)" = True ]
	# nowhere to write: it works without
	XDG_CACHE_HOME=/proc as_user --data "$TMP/data" --index rebuild -v
	[ "$(dataset index)" = None ]
	grep -q "the index is not kept: $TMP/data/.gpemu-index" "$TMP/err"
}
