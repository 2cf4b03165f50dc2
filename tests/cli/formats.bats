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

@test "shards with other files beside: img2dataset's, and a mark of Spark" {
	make tar-ustar
	for i in 0 1 2; do
		touch "$TMP/data/s-00$i.parquet" "$TMP/data/s-00${i}_stats.json"
	done
	same auto "$TMP/data"
	train --data "$TMP/data"
	[ "$(dataset format) $(dataset samples)" = "tar 21" ]
	[[ "$(note files_aside)" == "6 s-00"* ]]
	# once, for people
	[ "$(grep -c "files that are not samples, skipped: 6 (s-00" <<<"$output")" -eq 1 ]
	rm -rf "$TMP/data" "$TMP/want"
	make tfds
	touch "$TMP/data/_SUCCESS" "$TMP/data/part.crc"
	same auto "$TMP/data"
	train --data "$TMP/data"
	[ "$(dataset format) $(dataset samples)" = "tfrecord 18" ]
	[[ "$(note files_aside)" == "2 "* ]]
	[ "$(note image_feature) $(note label_feature)" = "18 image 18 label" ]
	train --data "$TMP/data" --format tfrecord:image=file_name,label=label
	[ "$(dataset bytes) $(note image_feature)" = "180 18 file_name" ]
}

@test "two formats in a folder, and formats that are not supported, are errors" {
	mkdir "$TMP/data"
	for name in shard.00000.mds a.beton a.parquet a.rec a.tar.gz a.zip data.mdb; do
		touch "$TMP/data/$name" "$TMP/data/index.json"
		train --data "$TMP/data"
		echo "$name: $output"
		[ "$status" -eq 1 ]
		[[ $output == *"not supported"*"($name); --format files"* ]]
		rm "$TMP/data/$name"
	done
	echo x >"$TMP/data/a.mds"
	train --data "$TMP/data" --format files
	[ "$(dataset samples)" = 2 ]
	touch "$TMP/data/b.tar"
	train --data "$TMP/data"
	[[ $output == *"two formats, tar (b.tar) and MDS"*"(a.mds)"*"--format files"* ]]
	mkdir "$TMP/data/c"
	mv "$TMP/data/a.mds" "$TMP/data/c/train-00000-of-00001"
	train --data "$TMP/data"
	[[ $output == *"two formats, tar (b.tar) and tfrecord (train-"*"--format tfrecord"* ]]
}

@test "shards behind a folder of other files are no samples in silence" {
	make tar-ustar
	mkdir -p "$TMP/hub/blobs" "$TMP/hub/snapshots"
	for f in $(find "$TMP/data" -name '*.tar'); do
		blob=$(md5sum <"$f" | cut -c1-32)
		cp "$f" "$TMP/hub/blobs/$blob"
		ln -s "../blobs/$blob" "$TMP/hub/snapshots/${f##*/}"
	done
	for simulate in "" --simulate; do
		run "$TRAIN" $simulate --data "$TMP/hub" --prep none -b 2
		echo "$output"
		[ "$status" -eq 1 ]
		[[ $output == *"snapshots/"*".tar is a shard (tar)"*"--format files"* ]]
	done
	train --data "$TMP/hub" --format files
	[ "$status" -eq 0 ]
	train --data "$TMP/hub/snapshots"
	[ "$(dataset format)" = tar ]
}

@test "files: of a dataset of images only images are samples" {
	make tiny
	same auto "$TMP/data"
	train --data "$TMP/data"
	[ "$(dataset samples) $(dataset classes)" = "5 2" ]
	[[ "$(note files_aside)" == "5 "* ]]
	run "$TRAIN" --simulate --data "$TMP/data" --prep none -b 2 --json "$JSON"
	[[ $output == *"skipped: 5"* ]]
	[ "$(dataset samples)" = 5 ]
	[[ "$(note files_aside)" == "5" ]]
	run "$BUILD/gpemu-data" stat "$TMP/data"
	[[ $output == *"samples "*" 5"* ]]
	run "$BUILD/gpemu-cachesim" --dir "$TMP/data" -p lru -c 50%
	[[ $output == *"skipped: 5"* ]]
	"$BUILD/gpemu-data" pack "$TMP/data" "$TMP/set.pack" >/dev/null
	train --data "$TMP/set.pack"
	[ "$(dataset samples) $(dataset classes) $(dataset groups)" = "5 2 5" ]
	# as many others: no dataset of images, if no transform says so
	touch "$TMP/data/n01/"{1,2}.xml
	train --data "$TMP/data"
	[ "$(dataset samples)" = 10 ]
	train --data "$TMP/data" --prep decode
	[[ $output == *"skipped: 7 ("* ]]
}

@test "files: what a simulation leaves aside is in its record" {
	mkdir -p "$TMP/data/a"
	for i in 1 2 3; do echo x >"$TMP/data/a/$i.jpg"; done
	echo x >"$TMP/data/README"
	ln -s nowhere "$TMP/data/a/4.jpg"
	ln -s . "$TMP/data/a/loop"
	run "$TRAIN" --simulate --data "$TMP/data" --prep none -b 2 --json "$JSON"
	[ "$(grep -c "dangling links and loops of links, skipped: 2 (a/" <<<"$output")" = 1 ]
	[ "$(dataset samples) $(note files_aside)" = "3 1" ]
	[[ "$(note links_not_followed)" == "2 a/"* ]]
	run "$BUILD/gpemu-cachesim" --dir "$TMP/data" -p lru -c 50% --json "$JSON"
	grep -q '"files_aside": 1, "links_not_followed": 2' <<<"$(tr -s ' \n' ' ' <"$JSON")"
	[[ $output == *"dangling links and loops of links, skipped: 2"* ]]
}

@test "files: what a name does not say, the content does" {
	mkdir -p "$TMP/data/a"
	printf '\xff\xd8\xff' >"$TMP/data/a/image"
	for i in 1 2 3; do echo x >"$TMP/data/a/$i.bin"; done
	train --data "$TMP/data" --prep decode --format files
	[[ $output == *"skipped: 3 (a/1.bin, a/2.bin, a/3.bin)"* ]]
	rm "$TMP/data/a/image"
	train --data "$TMP/data" --prep decode
	[ "$status" -eq 1 ]
	[[ $output == *"none of its 3 files is an image, such as a/1.bin"* ]]
	train --data "$TMP/data"
	[ "$(dataset samples)" = 3 ]
}

@test "tar: members that are no sample are counted; labels apart are an error" {
	make tar-dots
	mv "$TMP/data" "$TMP/dots.tar"
	train --data "$TMP/dots.tar"
	[ "$(dataset samples)" = 2 ]
	[ "$(note members_with_dots)" = "3 22.05.jpg 22.10.jpg v1.5-shot.jpg" ]
	[ "$(note samples_without_payload)" = "2 22 v1" ]
	[ "$(note shards_without_labels)" = "1 dots.tar" ]
	rm -rf "$TMP/want"
	make tar-unsorted
	train --data "$TMP/data"
	[ "$status" -eq 1 ]
	[[ $output == *"labels (.cls) are not next to their samples, such as 0000.cls"* ]]
}

# samples of two members, as WebDataset groups them: key, and .cls
@test "tar: the samples that WebDataset finds" {
	python3 -c 'import webdataset' 2>/dev/null ||
		skip "no webdataset (pip install webdataset)"
	for kind in tar-dots tar-gnu; do
		rm -rf "$TMP/data" "$TMP/want"
		make $kind
		[ -d "$TMP/data" ] || mv "$TMP/data" "$TMP/data.tar"
		for shard in "$TMP/data"*/*.tar "$TMP"/data.tar; do
			[ -f "$shard" ] || continue
			rm -rf "$TMP/got"
			mkdir "$TMP/got"
			"$SAMPLES" tar "$shard" sync "$TMP/got"
			python3 - "$shard" "$TMP/got/list" <<-'PY'
				import sys, webdataset
				shard, got = sys.argv[1:]
				want = ["%d %s/%s.jpg\n" % (int(s.get("cls", 0)), shard, s["__key__"])
				        for s in webdataset.WebDataset(shard, shardshuffle=False)
				        if "jpg" in s]
				assert open(got).readlines() == want, want
			PY
		done
		rm -f "$TMP/data.tar"
	done
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
