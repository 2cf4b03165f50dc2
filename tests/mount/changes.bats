#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Source files that change under the mount: an errno, never a crash, and the
# other files are unchanged.

load mount

setup()
{
	common_setup
	make_files 40 50000
}

teardown()
{
	common_teardown
}

# Eight ways to change a file, one each for f00000 to f00007.
change_files()
{
	: >"$src/c0/f00000"
	rm "$src/c1/f00001"
	truncate -s 100 "$src/c2/f00002"
	rm "$src/c3/f00003" && mkdir "$src/c3/f00003"
	rm "$src/c4/f00004" && mkfifo "$src/c4/f00004"
	rm "$src/c0/f00005" && ln -s ../c2/f00007 "$src/c0/f00005"
	rm "$src/c1/f00006" && python3 -c 'import socket, sys
socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$src/c1/f00006"
	truncate -s +9999 "$src/c2/f00007"
}

# is_stale I: the read of a changed file fails with ESTALE
is_stale()
{
	run timeout 10 cat "$mp/c$(($1 % 5))/f0000$1"
	echo "f0000$1: $status $output" | head -c 200
	[ "$status" -eq 1 ]
	[[ $output == *"Stale file handle"* ]]
}

others_are_right()
{
	local i

	for i in $(seq 10 39); do
		cmp "$src/c$((i % 5))/f000$i" "$mp/c$((i % 5))/f000$i"
	done
	pgrep -f "gpemu-fs .*$mp" >/dev/null
}

@test "uncached files that changed: ESTALE, in every mode" {
	cp -a "$src" "$BATS_TEST_TMPDIR/copy"
	for options in '-p none' '-p lru --hit-path reply' \
		'-p lru --hit-path auto' '-p lru -g 4' '-p none -g 4' \
		'-p s3fifo -c 5% -g 8 --group-order random'; do
		echo "== $options"
		gpemu-fs $options "$src" "$mp"
		change_files
		for i in 0 1 2 3 4 5 6; do
			is_stale $i
		done
		# the front of a file that grew keeps its length
		cmp "$BATS_TEST_TMPDIR/copy/c2/f00007" "$mp/c2/f00007"
		others_are_right
		fusermount3 -u "$mp"
		eventually no_daemon
		rm -r "$src"
		cp -a "$BATS_TEST_TMPDIR/copy" "$src"
	done
}

@test "unread bytes do not count as delivered" {
	for options in '-p none' '-p lru --hit-path reply'; do
		echo some >"$src/c0/f00000"
		gpemu-fs $options "$src" "$mp"
		: >"$src/c0/f00000"
		is_stale 0
		[ "$(stat_of '["delivered_bytes"]')" = 0 ]
		cat "$mp/c1/f00001" >"$BATS_TEST_TMPDIR/one"
		[ "$(stat_of '["delivered_bytes"]')" = \
			"$(stat -c %s "$src/c1/f00001")" ]
		fusermount3 -u "$mp"
		eventually no_daemon
	done
}

@test "a warm-up fails only for changed files" {
	gpemu-fs -p lru -c 100% "$src" "$mp"
	change_files
	echo 'warm all' >"$mp/.gpemu/control"
	eventually warm_is_done
	[ "$(stat_of '["warm"]["failed"]')" -eq 7 ]
	[ "$(stat_of '["warm"]["loaded"]')" -eq 33 ]
	is_stale 1
	is_stale 4
	others_are_right
}

warm_is_done()
{
	[ "$(stat_of '["warm"]["done"]')" = True ]
}

@test "cached files keep their old bytes, from memory" {
	cp -a "$src" "$BATS_TEST_TMPDIR/copy"
	for options in '--hit-path reply' '-g 4 --hit-path reply'; do
		gpemu-fs -p lru -c 100% $options "$src" "$mp"
		tree_sum "$mp" >/dev/null
		change_files
		[ "$(tree_sum "$mp")" = "$(tree_sum "$BATS_TEST_TMPDIR/copy")" ]
		fusermount3 -u "$mp"
		eventually no_daemon
		rm -r "$src"
		cp -a "$BATS_TEST_TMPDIR/copy" "$src"
	done
}

@test "cached files under passthrough: the new bytes, no crash" {
	gpemu-fs -p lru -c 100% "$src" "$mp"
	tree_sum "$mp" >/dev/null
	cat "$mp"/c?/f0000? >/dev/null # the kernel has these files open
	change_files
	for i in 0 1 2 3 4 5 6 7; do
		timeout 10 cat "$mp/c$((i % 5))/f0000$i" >/dev/null 2>&1 || true
	done
	others_are_right
}

@test "a file truncated while open and mapped" {
	head -c 9000000 /dev/urandom >"$src/large"
	for options in '-p none' '-p lru --hit-path reply' '-p lru'; do
		gpemu-fs $options "$src" "$mp"
		python3 - "$src/large" "$mp/large" <<-'END'
		import errno, mmap, os, sys
		fd = os.open(sys.argv[2], os.O_RDONLY)
		m = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
		first = m[:10]
		os.truncate(sys.argv[1], 1000)
		try:
		    os.pread(fd, 4096, 8 << 20)
		    sys.exit("that can be read")
		except OSError as e:
		    assert e.errno == errno.ESTALE, e
		if os.fork() == 0:
		    m[8 << 20] # SIGBUS, as of any file that became shorter
		    os._exit(0)
		status = os.wait()[1]
		assert os.WIFSIGNALED(status), status
		END
		others_are_right
		fusermount3 -u "$mp"
		eventually no_daemon
		head -c 9000000 /dev/urandom >"$src/large"
	done
}

@test "a pack truncated or deleted" {
	gpemu-data pack --group 4 "$src" "$BATS_TEST_TMPDIR/pack"
	for options in '-p none' '-p lru' '-p lru -g auto'; do
		cp "$BATS_TEST_TMPDIR/pack" "$BATS_TEST_TMPDIR/p"
		gpemu-fs $options "pack:$BATS_TEST_TMPDIR/p" "$mp"
		rm "$BATS_TEST_TMPDIR/p" # the mount has it open
		others_are_right
		fusermount3 -u "$mp"
		eventually no_daemon
		cp "$BATS_TEST_TMPDIR/pack" "$BATS_TEST_TMPDIR/p"
		gpemu-fs $options "pack:$BATS_TEST_TMPDIR/p" "$mp"
		truncate -s 5000 "$BATS_TEST_TMPDIR/p"
		for i in 10 23 39; do
			run cat "$mp/c$((i % 5))/f000$i"
			[ "$status" -eq 1 ]
			[[ $output == *"Stale file handle"* ]]
		done
		fusermount3 -u "$mp"
		eventually no_daemon
	done
}
