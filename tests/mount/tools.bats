#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Common programs, and unusual accesses, on the mount.

load mount

setup()
{
	common_setup
}

teardown()
{
	common_teardown
}

# need COMMAND: skip without it
need()
{
	command -v "$1" >/dev/null || skip "$1 is not installed"
}

# bats test_tags=slow
@test "random accesses of every kind match the source, in every mode" {
	make_files 60 60000
	head -c 9000001 /dev/urandom >"$src/large"
	: >"$src/empty"
	seed=1
	for options in '-p none' '-p lru -c 35% --hit-path reply' \
		'-p lru -c 100%' '-p s3fifo -c 20% -g 8' '-p sieve -c 1%'; do
		gpemu-fs $options "$src" "$mp"
		fsx "$src" "$mp" $((seed++)) "${GPEMU_FSX_OPS:-4000}"
		fusermount3 -u "$mp"
		eventually no_daemon
	done
}

@test "the same for a pack, against what was packed" {
	make_files 60 60000
	gpemu-data pack --group 8 "$src" "$BATS_TEST_TMPDIR/pack"
	gpemu-fs -p lru -c 35% "pack:$BATS_TEST_TMPDIR/pack" "$mp"
	fsx "$src" "$mp" 7 "${GPEMU_FSX_OPS:-4000}"
}

@test "two synth mounts with one seed are equal" {
	mkdir "$BATS_TEST_TMPDIR/other"
	gpemu-fs -p none synth:imagenet,files=200,seed=3 "$mp"
	gpemu-fs -p lru -c 35% synth:imagenet,files=200,seed=3 "$BATS_TEST_TMPDIR/other"
	fsx "$mp" "$BATS_TEST_TMPDIR/other" 9 "${GPEMU_FSX_OPS:-4000}"
}

@test "tar, cp -r and md5sum match the source" {
	make_files 200 20000
	gpemu-fs -s ideal -p lru -c 35% "$src" "$mp"
	sums=$(cd "$src" && find . -type f | sort | xargs md5sum)
	[ "$(cd "$mp" && find . -type f | sort | xargs md5sum)" = "$sums" ]
	mkdir "$BATS_TEST_TMPDIR/tar"
	tar -C "$mp" -cf - . | tar -C "$BATS_TEST_TMPDIR/tar" -xf -
	diff -r "$src" "$BATS_TEST_TMPDIR/tar"
	cp -r "$mp" "$BATS_TEST_TMPDIR/cp"
	diff -r "$src" "$BATS_TEST_TMPDIR/cp"
	# without the mount's own files
	[ ! -e "$BATS_TEST_TMPDIR/cp/.gpemu" ]
}

@test "rsync copies it, and finds nothing to do the second time" {
	need rsync
	make_files 100 20000
	gpemu-fs -p none "$src" "$mp"
	rsync -a "$mp/" "$BATS_TEST_TMPDIR/rsync/"
	diff -r "$src" "$BATS_TEST_TMPDIR/rsync"
	run rsync -ai "$mp/" "$BATS_TEST_TMPDIR/rsync/"
	[ "$status" -eq 0 ]
	[[ $output != *'>f'* ]]
}

@test "a scan like ripgrep's finds every match" {
	make_files 100 20000
	for i in 3 40 77; do
		echo needle >>"$src/c$((i % 5))/f$(printf %05d $i)"
	done
	gpemu-fs -p lru "$src" "$mp"
	[ "$(grep -rlaF needle "$mp" | wc -l)" = 3 ]
	need rg
	[ "$(rg -laF --no-ignore needle "$mp" | wc -l)" = 3 ]
	[ "$(rg -laF --no-ignore --mmap needle "$mp" | wc -l)" = 3 ]
}

# bats test_tags=slow
@test "numpy.memmap reads arrays in every mode" {
	python=
	for p in python3 /usr/bin/python3; do
		"$p" -c 'import numpy' 2>/dev/null && python=$p && break
	done
	[ -n "$python" ] || skip "python3-numpy is not installed"
	"$python" -c '
import numpy, sys
numpy.save(sys.argv[1], numpy.arange(2_000_000, dtype=numpy.float32))' "$src/a.npy"
	for options in '-p none' '-p lru -c 100% --hit-path reply' '-p lru -c 100%'; do
		gpemu-fs $options "$src" "$mp"
		# the second pass is cached
		for pass in 1 2; do
			"$python" - "$mp/a.npy" <<-'END'
			import numpy, sys
			a = numpy.load(sys.argv[1], mmap_mode="r")
			assert isinstance(a, numpy.memmap)
			assert (a == numpy.arange(2_000_000, dtype=numpy.float32)).all()
			assert a[1_234_567] == 1_234_567
			END
		done
		fusermount3 -u "$mp"
		eventually no_daemon
	done
}
