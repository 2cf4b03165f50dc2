#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --writable: what is made in the mount goes to a folder, at the time that the
# profile gives; the dataset stays as it is.

bats_require_minimum_version 1.5.0

load mount

setup()
{
	common_setup
	churn=$BATS_TEST_DIRNAME/churn
	dir=$BATS_TEST_TMPDIR/dir
	mkdir "$dir"
	make_files 10 3000
}

teardown()
{
	common_teardown
}

# serve OPTION...: mount, with the folder
serve()
{
	gpemu-fs --writable "$dir" "$@" "$src" "$mp"
}

unmount()
{
	fusermount3 -u "$mp"
	eventually no_daemon
}

# fails_with TEXT COMMAND...: in the mount
fails_with()
{
	run bash -c "cd '$mp' && ${*:2}"
	[ "$status" -ne 0 ]
	[[ $output == *"$1"* ]] || { echo "${*:2}: $output" && false; }
}

@test "files and folders are made, changed, moved and removed" {
	before=$(tree_sum "$src")
	serve
	cd "$mp"
	echo one >new
	echo two >>new
	[ "$(cat new)" = $'one\ntwo' ]
	truncate -s 3 new
	[ "$(cat new)" = one ]
	mkdir c1/sub c1/sub/deep
	mv new c1/sub/deep/moved
	[ ! -e new ]
	chmod 640 c1/sub/deep/moved
	touch -d '2001-02-03 04:05:06 UTC' c1/sub/deep/moved
	[ "$(stat -c '%a %Y %s' c1/sub/deep/moved)" = '640 981173106 3' ]
	ln -s ../c0/f00000 c1/link
	cmp c1/link "$src/c0/f00000"
	[ "$(ls c1)" = $'f00001\nf00006\nlink\nsub' ]
	[ "$(ls -a)" = $'.\n..\nc0\nc1\nc2\nc3\nc4' ]
	run -1 rmdir c1/sub
	echo x >gone
	rm gone
	mkdir c2/empty
	rmdir c2/empty
	[ ! -e c2/empty ]
	# DIR has them as ordinary files, and a later mount shows them
	cd "$BATS_TEST_TMPDIR"
	unmount
	[ "$(cat "$dir/c1/sub/deep/moved")" = one ]
	[ "$(find "$dir" -type f | wc -l)" = 1 ]
	[ "$(tree_sum "$src")" = "$before" ]
	serve
	[ "$(cat "$mp/c1/sub/deep/moved")" = one ]
	rm -r "$mp/c1/sub"
	[ ! -e "$dir/c1/sub" ]
}

@test "what is of the dataset or the mount cannot be changed" {
	serve
	for command in 'rm c0/f00000' 'mv c0/f00000 x' 'rmdir c0' 'mv c0 d' \
		'touch n; mv n c0/f00000' 'chmod 777 c0/f00000' 'chmod 700 c0' \
		'truncate -s 0 c0/f00000' 'sh -c "echo >>c0/f00000"' \
		'touch .gpemu/x' 'rm .gpemu/stats' 'mv n .gpemu/n'; do
		fails_with 'Read-only file system' "$command"
	done
	fails_with 'cross-device' 'ln c0/f00000 hard'
	fails_with 'Read-only file system' 'python3 -c "import os; os.setxattr(\"c0/f00000\", \"user.x\", b\"1\")"'
	diff -r "$src/c0" "$mp/c0"
	# a name of the dataset hides that of DIR
	unmount
	mkdir "$dir/c0" "$dir/.gpemu"
	echo other >"$dir/c0/f00000"
	echo beside >"$dir/c0/own"
	serve
	cmp "$src/c0/f00000" "$mp/c0/f00000"
	[ "$(cat "$mp/c0/own")" = beside ]
	[ "$(ls "$mp/c0")" = $'f00000\nf00005\nown' ]
	[ "$(stat_of '["policy"]')" = lru ]
}

@test "the same calls have the same results as on the file system of DIR" {
	mkdir "$BATS_TEST_TMPDIR/beside"
	serve
	mkdir "$mp/c3/work"
	for seed in 1 2 3; do
		python3 "$churn" "$mp/c3/work" "$BATS_TEST_TMPDIR/beside" \
			$seed 2000
	done
	[ "$(tree_sum "$dir/c3/work")" = "$(tree_sum "$BATS_TEST_TMPDIR/beside")" ]
	[ "$(stat_of '["inflight"]')" = 0 ]
}

@test "a file that was removed while it is open is still a file" {
	serve
	python3 - "$mp" <<-'END'
	import os, sys
	os.chdir(sys.argv[1])
	with open("f", "w+b") as f:
	    f.write(b"abc")
	    f.flush()
	    os.unlink("f")
	    open("f", "wb").write(b"another")
	    os.ftruncate(f.fileno(), 5)
	    os.fchmod(f.fileno(), 0o600)
	    os.fsync(f.fileno())
	    st = os.fstat(f.fileno())
	    assert (st.st_size, st.st_nlink, st.st_mode & 0o777) == (5, 0, 0o600), st
	    f.seek(0)
	    assert f.read() == b"abc\0\0"
	assert open("f", "rb").read() == b"another"
	END
}

@test "a file has several names" {
	serve
	mkdir "$dir/c1"
	echo in-dir >"$dir/c1/one"
	ln "$dir/c1/one" "$dir/c1/two"
	python3 - "$mp" <<-'END'
	import os, sys
	os.chdir(sys.argv[1])

	def links(name):
	    st = os.stat(name)
	    return st.st_ino, st.st_nlink

	assert links("c1/one") == links("c1/two")
	os.link("c1/two", "three")
	ino, n = links("c1/one")
	assert n == 3 and links("three") == (ino, 3)
	with open("three", "ab") as f:
	    f.write(b"more")
	assert open("c1/one", "rb").read() == b"in-dir\nmore"
	os.mkdir("d")
	os.rename("c1/one", "d/one")
	os.unlink("c1/two")
	assert links("d/one") == links("three") == (ino, 2)
	os.rename("d/one", "three")  # the same file: nothing happens
	assert links("d/one") == links("three") == (ino, 2)
	with open("three", "rb") as f:
	    os.unlink("three")
	    os.unlink("d/one")
	    assert os.fstat(f.fileno()).st_nlink == 0 and f.read() == b"in-dir\nmore"
	END
	[ -z "$(ls "$dir/d" "$dir/c1" | grep -v :)" ]
}

@test "noatime: a read leaves the access time as it is" {
	echo x >"$dir/f"
	for how in '' noatime; do
		touch -a -d '2001-02-03 04:05:06 UTC' "$dir/f"
		serve ${how:+-o "$how"}
		for flag in O_NOATIME O_RDONLY; do
			python3 -c 'import os, sys
assert os.read(os.open(sys.argv[1], getattr(os, sys.argv[2])), 9) == b"x\n"' "$mp/f" $flag
			[ "$(stat -c %X "$dir/f")" != 981173106 ] || echo "$how $flag"
		done
		unmount
	done >"$BATS_TEST_TMPDIR/kept"
	[ "$(cat "$BATS_TEST_TMPDIR/kept")" = $' O_NOATIME\nnoatime O_NOATIME\nnoatime O_RDONLY' ]
}

@test "space is taken and given back, holes are found, attributes kept" {
	serve
	python3 - "$mp" "$dir" <<-'END'
	import ctypes, os, stat, sys
	os.chdir(sys.argv[1])
	libc = ctypes.CDLL(None, use_errno=True)
	KEEP, PUNCH, KIB = 1, 2, 1024

	def allocate(fd, mode, offset, n):
	    if libc.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(n)):
	        raise OSError(ctypes.get_errno(), "fallocate")

	fd = os.open("f", os.O_RDWR | os.O_CREAT)
	os.pwrite(fd, b"x" * 256 * KIB, 0)
	allocate(fd, KEEP | PUNCH, 64 * KIB, 64 * KIB)
	assert os.pread(fd, 1, 64 * KIB) == b"\0" and os.pread(fd, 1, 128 * KIB) == b"x"
	assert os.lseek(fd, 0, os.SEEK_HOLE) == 64 * KIB
	assert os.lseek(fd, 64 * KIB, os.SEEK_DATA) == 128 * KIB
	os.posix_fallocate(fd, 0, 1024 * KIB)
	assert os.fstat(fd).st_size == 1024 * KIB == os.stat(sys.argv[2] + "/f").st_size
	data = os.open("c0/f00000", os.O_RDONLY)
	size = os.fstat(data).st_size
	assert os.lseek(data, 1, os.SEEK_DATA) == 1 and os.lseek(data, 1, os.SEEK_HOLE) == size

	os.setxattr("f", "user.note", b"value")
	assert os.listxattr("f") == ["user.note"] and os.getxattr("f", "user.note") == b"value"
	assert os.getxattr(sys.argv[2] + "/f", "user.note") == b"value"
	os.removexattr("f", "user.note")
	assert os.listxattr("f") == []
	for name in "security.x", "trusted.x":
	    try:
	        os.setxattr("f", name, b"1")
	        assert False, name
	    except OSError:
	        pass

	os.mkdir("d")
	open("d/inside", "w").write("1")
	assert libc.renameat2(-100, b"f", -100, b"d", 2) == 0  # RENAME_EXCHANGE
	assert stat.S_ISREG(os.stat("d").st_mode) and open("f/inside").read() == "1"
	assert sorted(os.listdir(sys.argv[2] + "/f")) == ["inside"]
	os.mkfifo("pipe")
	assert stat.S_ISFIFO(os.stat(sys.argv[2] + "/pipe").st_mode)
	END
}

@test "sqlite3 with a write-ahead log, and a kill -9 of gpemu-fs" {
	command -v sqlite3 >/dev/null || skip "no sqlite3"
	gpemu-fs -f --writable "$dir" "$src" "$mp" &
	pids=$!
	eventually is_mounted
	sqlite3 "$mp/c0/db" 'PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;
		CREATE TABLE t (i INTEGER PRIMARY KEY, x BLOB);'
	for i in $(seq 20); do
		echo "INSERT INTO t (x) VALUES (randomblob(5000)); SELECT 'row $i';"
	done >"$BATS_TEST_TMPDIR/sql"
	sqlite3 "$mp/c0/db" <"$BATS_TEST_TMPDIR/sql" >"$BATS_TEST_TMPDIR/told"
	sqlite3 -init /dev/null "$mp/c0/db" 'BEGIN; DELETE FROM t;' \
		'.shell kill -9 '"$pids" >/dev/null 2>&1 || true
	wait "$pids" || true
	fusermount3 -u -z "$mp"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/told")" = 20 ]
	[ "$(sqlite3 "$dir/c0/db" 'PRAGMA integrity_check; SELECT count(*) FROM t')" = \
		$'ok\n20' ]
}

@test "what was synced is there after each kill -9, and what was renamed is whole" {
	"$BATS_TEST_DIRNAME/crashes" "$BUILD/gpemu-fs" "$BATS_TEST_TMPDIR/dir" 5 7
}

@test "fio verifies what it wrote" {
	command -v fio >/dev/null || skip "no fio"
	serve -s nvme --time-scale 0.01
	for direct in 0 1; do
		fio --name=v --filename="$mp/v" --size=8M --rw=randwrite \
			--bsrange=512-128K --blockalign=512 --direct=$direct \
			--ioengine=psync --verify=crc32c --do_verify=1 \
			--verify_fatal=1 --verify_state_save=0 --fsync=64 --numjobs=1 >/dev/null
	done
	fio --name=v --filename="$mp/w" --size=8M --rw=randwrite --bs=16K \
		--direct=1 --ioengine=libaio --iodepth=16 --verify=crc32c \
		--do_verify=1 --verify_fatal=1 --verify_state_save=0 >/dev/null
}

# 16 pages of 32 KiB in 185 us, for each of 20: profiles/storage/nvme.yaml
# bats test_tags=timed
@test "writes have the bandwidth of the profile: nvme, 2.83 GB/s" {
	[ -z "${GPEMU_SANITIZED-}" ] || skip "a sanitizer takes its own time"
	serve -s nvme --time-scale 100
	for try in 1 2 3 4 5; do
		share=$(python3 - "$mp/big" <<-'END'
		import os, sys, time
		n, mib = 96, os.urandom(1 << 20)
		fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
		for i in range(-4, n):  # the first ones fill the buffer
		    if not i:
		        start = time.monotonic()
		    os.pwrite(fd, mib, (i + 4) << 20)
		form = (n << 20) / (16 * 32768 / 185e-6)
		print((time.monotonic() - start) / 100 / form)
		END
		)
		echo "$share of the closed form's time"
		awk "BEGIN { exit !($share > .99) }"
		awk "BEGIN { exit !($share < 1.05) }" && return 0
	done
	false
}

@test "each operation takes its own time, and is counted and traced" {
	for op in read write sync create remove rename; do
		case $op in read) t=30 ;; write) t=20 ;; sync) t=40 ;; *) t=10 ;; esac
		echo "$op: {source: a test, latency: {kind: const, value: ${t}ms}}"
	done >"$BATS_TEST_TMPDIR/ops.yaml"
	printf 'name: ops\nsource: a test\n' >>"$BATS_TEST_TMPDIR/ops.yaml"
	serve -s "$BATS_TEST_TMPDIR/ops.yaml" --trace "$BATS_TEST_TMPDIR/trace"
	echo reset >"$mp/.gpemu/control"
	python3 - "$mp" <<-'END'
	import os, sys, time
	os.chdir(sys.argv[1])

	def takes(ms, call, *args):
	    start = time.monotonic()
	    result = call(*args)
	    took = (time.monotonic() - start) * 1000
	    assert took > ms - 1, (call, args, took)
	    return result

	fd = takes(10, os.open, "f", os.O_RDWR | os.O_CREAT)
	takes(20, os.write, fd, b"12345")
	takes(40, os.fsync, fd)
	assert takes(30, os.pread, fd, 100, 0) == b"12345"
	assert os.pread(fd, 100, 5) == b""  # an end of file is free
	takes(10, os.ftruncate, fd, 3)
	takes(10, os.mkdir, "d")
	takes(10, os.rename, "f", "d/f")
	takes(10, os.unlink, "d/f")
	takes(10, os.rmdir, "d")
	fd = os.open("s", os.O_WRONLY | os.O_CREAT | os.O_DSYNC)
	takes(60, os.write, fd, b"678")
	END
	[ "$(stat_of '["writes"], s["bytes_written"], s["syncs"], s["backend_reads"], s["backend_bytes"], s["misses"]')" = \
		'(2, 8, 2, 1, 5, 0)' ]
	[ "$(stat_of '["requests"]["create"], s["requests"]["remove"], s["requests"]["rename"]')" = \
		'(4, 2, 1)' ]
	unmount
	[ "$(awk -F, '!/^#/ && NR > 1 && $2 != "op" && $2 != "lookup" && $2 != "reset" {
		print $2, $5 + 0, $6 + 0, $13 }' "$BATS_TEST_TMPDIR/trace")" = \
'create 0 0 f
write 0 5 f
sync 0 0 f
read 0 5 f
create 0 0 f
create 0 0 d
rename 0 0 f
unlink 0 0 d/f
unlink 0 0 d
create 0 0 s
write 0 3 s
sync 0 0 s' ]
	gpemu-cachesim --help >/dev/null
}

@test "a write and a read wait for each other on the device" {
	cat >"$BATS_TEST_TMPDIR/one.yaml" <<-END
	name: one
	source: a test
	channels: {source: a test, count: 1}
	write: {source: a test, occupancy: {kind: const, value: 400ms}}
	read: {source: a test, occupancy: {kind: const, value: 400ms}}
	END
	serve -s "$BATS_TEST_TMPDIR/one.yaml" -p none
	python3 - "$mp" <<-'END'
	import os, sys, threading, time
	os.chdir(sys.argv[1])
	out = os.open("f", os.O_WRONLY | os.O_CREAT)
	fd = os.open("c0/f00000", os.O_RDONLY)
	start = time.monotonic()
	calls = [threading.Thread(target=os.write, args=(out, b"x")),
	         threading.Thread(target=os.pread, args=(fd, 1, 0))]
	for c in calls:
	    c.start()
	for c in calls:
	    c.join()
	assert time.monotonic() - start > .79
	END
}

@test "a checkpoint of gpemu-train goes to the emulated device" {
	serve -s nvme
	gpemu-train --data "$mp" --prep none -b 5 -e 2 --time-scale 0.001 \
		--checkpoint-every 1 --checkpoint-size 3M \
		--checkpoint-dir "$mp/checkpoints" >/dev/null
	[ "$(stat_of '["bytes_written"] >= 2 * 3 << 20, s["syncs"] > 0')" = \
		'(True, True)' ]
	[ -n "$(ls "$dir/checkpoints")" ]
}

@test "faults apply: what fails has changed nothing" {
	serve --fault 'op=write,path=c1/full,errno=ENOSPC;op=sync,errno=EIO' \
		--fault 'op=create,path=no*,errno=EDQUOT;op=remove,errno=EBUSY'
	fails_with 'No space left' 'echo x >c1/full'
	[ "$(stat -c %s "$dir/c1/full")" = 0 ]
	echo x >"$mp/c1/other"
	run -1 sync "$mp/c1/other"
	[[ $output == *"Input/output error"* ]]
	fails_with 'Disk quota' 'touch none'
	[ ! -e "$dir/none" ]
	fails_with 'busy' 'rm c1/other'
	[ "$(cat "$dir/c1/other")" = x ]
	[ "$(stat_of '["writes"]')" = 1 ]
}

@test "links in DIR lead nowhere" {
	mkdir "$BATS_TEST_TMPDIR/outside"
	ln -s "$BATS_TEST_TMPDIR/outside" "$dir/c0"
	serve
	fails_with 'symbolic links' 'touch c0/new'
	fails_with 'symbolic links' 'mkdir c0/new'
	[ "$(ls "$mp/c0")" = $'f00000\nf00005' ]
	[ -z "$(ls "$BATS_TEST_TMPDIR/outside")" ]
	# a folder that becomes a link under way
	mkdir "$mp/d"
	touch "$mp/d/f"
	mv "$dir/d" "$dir/e"
	ln -s "$BATS_TEST_TMPDIR/outside" "$dir/d"
	run -1 touch "$mp/d/new"
	[ -z "$(ls "$BATS_TEST_TMPDIR/outside")" ]
}

@test "a folder that cannot be used is refused" {
	run -2 gpemu-fs --writable "$dir" --read-only on "$src" "$mp"
	[[ $output == *"--writable and --read-only"* ]]
	run -1 gpemu-fs --writable "$src/c0" "$src" "$mp"
	[[ $output == *"must not contain each other"* ]]
	run -1 gpemu-fs --writable "$BATS_TEST_TMPDIR" "$src" "$mp"
	[[ $output == *"must not contain each other"* ]]
	run -1 gpemu-fs --writable "$dir/none" "$src" "$mp"
	[[ $output == *"No such file"* ]]
	mkdir "$dir/packs"
	gpemu-data pack "$src" "$dir/packs/p.pack" >/dev/null
	run -1 gpemu-fs --writable "$dir" "pack:$dir/packs/p.pack" "$mp"
	[[ $output == *"must not contain each other"* ]]
	serve
	mkdir "$BATS_TEST_TMPDIR/mp2"
	run -75 gpemu-fs --writable "$dir" "$src" "$BATS_TEST_TMPDIR/mp2"
	[[ $output == *"another mount uses it"* ]]
}

@test "other users have the rights of the files" {
	[ "$(id -u)" = 0 ] || skip "not root"
	chmod 755 "$BATS_RUN_TMPDIR" "$BATS_TEST_TMPDIR"
	as="setpriv --reuid 65534 --regid 65534 --clear-groups"
	$as test -x "$BATS_TEST_TMPDIR" || skip "others cannot reach $BATS_TEST_TMPDIR"
	chmod 755 "$dir"
	run -1 gpemu-fs --writable "$dir" -o allow_other "$src" "$mp"
	[[ $output == *"must be closed to other users"* ]]
	chmod 700 "$dir"
	serve -o allow_other
	run $as touch "$mp/new"
	[ "$status" -ne 0 ]
	mkdir -m 1777 "$mp/c0/all"
	echo secret >"$mp/c0/all/root"
	chmod 600 "$mp/c0/all/root"
	$as sh -c "umask 027; echo mine >'$mp/c0/all/mine'; mkdir '$mp/c0/all/d'"
	[ "$(stat -c '%u %g %a' "$dir/c0/all/mine" "$dir/c0/all/d" | xargs)" = \
		'65534 65534 640 65534 65534 750' ]
	for command in "cat $mp/c0/all/root" "rm -f $mp/c0/all/root" \
		"chmod 666 $mp/c0/all/root" "chown 65534 $mp/c0/all/root" \
		"touch $mp/c0/new"; do
		run $as $command
		[ "$status" -ne 0 ]
	done
	[ "$(cat "$dir/c0/all/root")" = secret ]
}

@test "a write of another user ends set-user-ID" {
	[ "$(id -u)" = 0 ] || skip "not root"
	chmod 755 "$BATS_RUN_TMPDIR" "$BATS_TEST_TMPDIR"
	as="setpriv --reuid 65534 --regid 65534 --clear-groups"
	$as test -x "$BATS_TEST_TMPDIR" || skip "others cannot reach $BATS_TEST_TMPDIR"
	chmod 700 "$dir"
	serve -o allow_other
	touch "$mp/f"
	for how in "echo >>'$mp/f'" "echo >'$mp/f'" ">'$mp/f'" "truncate -s 9 '$mp/f'" \
		"fallocate -l 9 '$mp/f'"; do
		chmod 6777 "$mp/f"
		[ "$(stat -c %a "$dir/f")" = 6777 ]
		[ "$(stat -c %a "$mp/f")" = 6777 ]
		$as sh -c "$how"
		[ "$(stat -c %a "$dir/f")" = 777 ]
		# the kernel knows it, too
		[ "$(stat -c %a "$mp/f")" = 777 ]
	done
	# set-group-ID stays without the group's execute: it is a mandatory lock
	chmod 6666 "$mp/f"
	$as sh -c "echo >>'$mp/f'"
	[ "$(stat -c %a "$dir/f")" = 2666 ]
}

@test "fallocate ends set-user-ID and set-group-ID as Linux does" {
	[ "$(id -u)" = 0 ] || skip "not root"
	chmod 755 "$BATS_RUN_TMPDIR" "$BATS_TEST_TMPDIR"
	user="setpriv --reuid 65534 --regid 65534"
	$user --clear-groups test -x "$BATS_TEST_TMPDIR" ||
		skip "others cannot reach $BATS_TEST_TMPDIR"
	chmod 700 "$dir"
	serve -o allow_other
	touch "$mp/f"
	# ends WHO MODE AFTER COMMAND...
	ends() {
		chmod "$2" "$mp/f"
		"${@:4}" fallocate -l 9 "$mp/f"
		[ "$(stat -c %a "$dir/f") $(stat -c %a "$mp/f")" = "$3 $3" ] ||
			{ echo "$1: $(stat -c %a "$mp/f")" && false; }
	}
	ends root 6777 6777 env
	ends root 6666 6666 env
	ends outsider 6777 777 $user --clear-groups
	ends outsider 2666 666 $user --clear-groups
	ends outsider 6766 766 $user --clear-groups
	# of its group: there the bit marks a mandatory lock
	chgrp 100 "$mp/f"
	ends member 6666 2666 $user --groups 100
	ends member 6676 676 $user --groups 100
	ends outsider 6666 666 $user --groups 101
	chgrp 65534 "$mp/f"
	ends owner 6666 2666 $user --clear-groups
}

@test "the group of a dataset's folder has not the rights of another group" {
	[ "$(id -u)" = 0 ] || skip "not root"
	chgrp 100 "$src"
	chmod 0750 "$src"
	chmod 0720 "$dir"
	serve -o allow_other
	[ "$(stat -c '%a %g' "$mp")" = '750 100' ]
	unmount
	chgrp 100 "$dir"
	serve -o allow_other
	[ "$(stat -c '%a %g' "$mp")" = '770 100' ]
}

@test "the device is full where the file system of DIR is" {
	[ "$(id -u)" = 0 ] || skip "not root"
	mount -t tmpfs -o size=1M gpemu-test "$dir" || skip "no tmpfs"
	chmod 700 "$dir"
	serve
	[ "$(stat -f -c '%b %S' "$mp")" = "$(stat -f -c '%b %S' "$dir")" ]
	fails_with 'No space left' 'head -c 2000000 /dev/zero >big'
	[ "$(stat -f -c %a "$mp")" = 0 ]
	fails_with 'No space left' 'echo x >small'
	rm "$mp/big"
	echo x >"$mp/small"
	unmount
	umount "$dir"
}

# blocks WORD: of 4 KiB, as statfs(2) has them: b all, f free, a available
blocks()
{
	[ "$(stat -f -c %S "$mp")" = 4096 ]
	stat -f -c "%$1" "$mp"
}

@test "capacity: the device is full to the last block, and what is removed is free" {
	head -c 10000 /dev/urandom >"$dir/before"
	data=$(python3 -c 'import os, sys
print(sum(-(-os.path.getsize(os.path.join(d, f)) // 4096)
          for top in sys.argv[1:] for d, _, files in os.walk(top) for f in files))' "$src" "$dir")
	serve --capacity 1M
	[ "$(blocks b) $(blocks f)" = "256 $((256 - data))" ]
	[ "$(df --output=size,used,avail "$mp" | tail -1 | xargs)" = \
		"1024 $((4 * data)) $((4 * (256 - data)))" ]
	python3 - "$mp" $((256 - data)) <<-'END'
	import errno, os, sys
	os.chdir(sys.argv[1])
	blocks = int(sys.argv[2])
	n = blocks * 4096

	def full(call, *args):
	    try:
	        call(*args)
	    except OSError as error:
	        assert error.errno == errno.ENOSPC, error
	        return
	    raise AssertionError(args)

	def free():
	    return os.statvfs(".").f_bfree

	fd = os.open("f", os.O_RDWR | os.O_CREAT)
	data = os.urandom(n - 4096)
	assert os.write(fd, data) == len(data) and free() == 1
	# a part of it fits, as elsewhere, and then nothing does
	assert os.write(fd, b"x" * 10000) == 4096 and free() == 0
	full(os.write, fd, b"y")
	full(os.open, "g", os.O_WRONLY | os.O_CREAT)
	full(os.mkdir, "d")
	full(os.link, "f", "d")
	full(os.ftruncate, fd, n + 1)
	full(os.posix_fallocate, fd, 0, n + 1)
	full(os.posix_fallocate, fd, n, 1)
	os.fsync(fd)
	assert os.pwrite(fd, b"over", 5000) == 4  # what is there can be changed
	os.fsync(fd)
	have = data[:5000] + b"over" + data[5004:] + b"x" * 4096
	assert os.pread(fd, n + 1, 0) == have
	# open, it keeps its blocks
	os.unlink("f")
	assert free() == 0
	os.close(fd)
	while free() != blocks:  # the kernel does not wait for a release
	    os.sched_yield()
	os.posix_fallocate(os.open("g", os.O_WRONLY | os.O_CREAT), 0, n)
	assert free() == 0
	os.rename("g", "before")
	assert free() == 3
	os.truncate("before", 1)
	assert free() == blocks + 2
	END
	unmount
	serve --capacity 1M
	[ "$(blocks f)" = $((256 - data + 2)) ]
}

@test "capacity: the device takes the time of the bytes that have room" {
	cat >"$BATS_TEST_TMPDIR/slow.yaml" <<-END
		name: slow
		source: a test
		channels: {source: a test, count: 1, mb_per_s: 1}
	END
	serve -s "$BATS_TEST_TMPDIR/slow.yaml" --capacity 256K --trace "$BATS_TEST_TMPDIR/trace"
	head -c $((4096 * ($(blocks f) - 1))) /dev/zero >"$mp/f"
	echo reset >"$mp/.gpemu/control"
	python3 - "$mp/f" <<-'END'
	import errno, os, sys, time
	fd = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
	assert os.write(fd, bytes(1 << 20)) == 4096
	start = time.monotonic()
	for _ in range(8):  # a second each, if they were writes
	    try:
	        os.write(fd, bytes(1 << 20))
	        assert False
	    except OSError as error:
	        assert error.errno == errno.ENOSPC, error
	assert time.monotonic() - start < 4, time.monotonic() - start
	END
	[ "$(stat_of '["writes"], s["bytes_written"], s["inflight"]')" = '(1, 4096, 0)' ]
	unmount
	# each is in the trace, with its error
	[ "$(awk -F, '$2 == "write" && $6 == 0 && $11 == "ENOSPC" { n++ } END { print n }' "$BATS_TEST_TMPDIR/trace")" = 8 ]
}

@test "capacity: names that others have of a file outside of DIR do not count" {
	mkdir "$BATS_TEST_TMPDIR/outside"
	head -c 20000 /dev/zero >"$dir/before"
	ln "$dir/before" "$BATS_TEST_TMPDIR/outside/"
	serve --capacity 1M
	free=$(blocks f)
	rm "$mp/before"
	[ "$(blocks f)" = $((free + 5)) ]
	head -c 5000 /dev/zero >"$mp/late"
	ln "$dir/late" "$BATS_TEST_TMPDIR/outside/"
	ln "$mp/late" "$mp/further"
	rm "$mp/late"
	[ "$(blocks f)" = $((free + 3)) ]
	mv "$mp/further" "$mp/moved"
	echo x >"$mp/x"
	mv "$mp/x" "$mp/moved"
	[ "$(blocks f)" = $((free + 4)) ]
	unmount
	serve --capacity 1M
	[ "$(blocks f)" = $((free + 4)) ]
}

@test "capacity: a write that an injected error ends gives its room back" {
	serve --capacity 1M --fault op=write,errno=EIO
	before=$(blocks f)
	for i in {1..40}; do fails_with 'Input/output' "head -c 100K /dev/zero >f$i"; done
	[ "$(blocks f)" = "$before" ]
}

@test "capacity: what others put into DIR, and is removed here, makes no debt" {
	serve --capacity 1M
	head -c 3M /dev/zero >"$dir/new"
	rm "$mp/new"
	[ "$(blocks f)" -le "$(blocks b)" ] && [ "$(blocks f)" -gt 0 ]
	echo x >"$mp/small"
}

@test "capacity: fsync after ENOSPC loses nothing, over a kill -9 of gpemu-fs" {
	for direct in "" --direct; do
		rm -f "$dir"/*
		gpemu-fs -f --writable "$dir" --capacity 1M "$src" "$mp" &
		pids=$!
		eventually is_mounted
		python3 - "$mp/f" "$BATS_TEST_TMPDIR/written" $direct <<-'END'
		import errno, mmap, os, sys
		fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | (os.O_DIRECT if sys.argv[3:] else 0))
		piece = mmap.mmap(-1, 12288)
		with open(sys.argv[2], "wb") as out:
		    while True:
		        piece[:] = os.urandom(12288)
		        try:
		            out.write(piece[:os.write(fd, piece)])
		        except OSError as error:
		            assert error.errno == errno.ENOSPC
		            break
		os.fsync(fd)
		END
		kill -9 "$pids"
		wait "$pids" || true
		fusermount3 -u -z "$mp"
		[ "$(stat -c %s "$dir/f")" -gt 900000 ]
		cmp "$dir/f" "$BATS_TEST_TMPDIR/written"
	done
}

@test "capacity: a running program is not cut" {
	cp "$(command -v sleep)" "$dir/program"
	serve --capacity 100M
	"$dir/program" 30 &
	pids=$!
	sleep .2
	python3 - "$mp/program" <<-'END'
	import errno, os, sys
	for _ in range(3):
	    try:
	        os.open(sys.argv[1], os.O_RDONLY | os.O_TRUNC)
	        assert False
	    except OSError as error:
	        assert error.errno == errno.ETXTBSY, error
	END
	cmp "$mp/program" "$dir/program"
	kill $pids
}

@test "capacity: writers together never exceed it" {
	serve --capacity 2M
	python3 - "$mp" "$dir" <<-'END'
	import os, random, sys, threading
	os.chdir(sys.argv[1])
	stop, over = threading.Event(), []

	def used():
	    return sum(-(-os.path.getsize(f"{sys.argv[2]}/{n}") // 4096)
	               for n in os.listdir(sys.argv[2]))

	# while nobody writes: a sum takes time
	together = threading.Barrier(6, lambda: over.append(used() > 512 - data), timeout=60)

	def work(i):
	    r = random.Random(i)
	    for k in range(150):
	        if k % 5 == 0:
	            together.wait()
	        try:
	            with open(f"f{i}.{r.randrange(3)}", r.choice(["ab", "wb"])) as f:
	                f.write(bytes(r.randrange(200000)))
	        except OSError as error:
	            assert error.errno == 28, error
	        if r.random() < .4:
	            try:
	                os.unlink(f"f{i}.{r.randrange(3)}")
	            except FileNotFoundError:
	                pass

	def watch():
	    while not stop.is_set():
	        st = os.statvfs(".")
	        over.append(st.f_bfree > st.f_blocks)

	st = os.statvfs(".")
	data = st.f_blocks - st.f_bfree
	threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
	watcher = threading.Thread(target=watch)
	for t in threads + [watcher]:
	    t.start()
	for t in threads:
	    t.join()
	stop.set()
	watcher.join()
	assert len(over) > 30 and not any(over)
	while os.statvfs(".").f_bfree != 512 - data - used():
	    os.sched_yield()
	END
}

@test "capacity: of a profile, and what cannot be" {
	printf 'name: small\nsource: a test\ncapacity: {source: a test, size: 400K}\nread: {source: a test}\n' \
		>"$BATS_TEST_TMPDIR/small.yaml"
	serve -s "$BATS_TEST_TMPDIR/small.yaml"
	[ "$(blocks b)" = 100 ]
	unmount
	serve -s "$BATS_TEST_TMPDIR/small.yaml" --capacity 800K --writable-scale .01
	[ "$(blocks b)" = 200 ]
	before=$(blocks f)
	head -c 50 /dev/zero >"$mp/f" # 5,000 bytes of the device
	[ "$(blocks f)" = $((before - 2)) ]
	fails_with 'No space left' 'head -c 9000 /dev/zero >g'
	[ "$(stat -c %s "$dir/g")" = $(((before - 2) * 4096 / 100)) ]
	unmount
	run -1 gpemu-fs --writable "$dir" --capacity 20K "$src" "$mp"
	[[ $output == *"--writable $dir: the device has a capacity of 20.0 KiB, but the dataset "* ]]
	run -1 gpemu-fs --capacity 1M "$src" "$mp"
	[[ $output == *'--capacity: the mount is read-only; give --writable'* ]]
	run -1 gpemu-fs --writable "$dir" --capacity 100 "$src" "$mp"
	[[ $output == *"capacity of 100 B"* ]]
	gpemu-profile show "$BATS_TEST_TMPDIR/small.yaml" | grep -q '^capacity *400 KiB'
}

@test "a limit of the size of files is an error of the write" {
	command -v prlimit >/dev/null || skip "no prlimit"
	gpemu-fs -f --writable "$dir" "$src" "$mp" &
	pids=$!
	eventually is_mounted
	prlimit --pid "$pids" --fsize=4096
	fails_with 'too large' 'head -c 5000 /dev/zero | dd of=f bs=1 seek=4096 count=1'
	fails_with 'too large' 'truncate -s 9999 f'
	echo more >"$mp/g"
}

@test "as many files may be open as the hard limit allows" {
	(ulimit -S -n 80 && serve)
	python3 - "$mp" <<-'PY'
		import sys
		files = [open(f"{sys.argv[1]}/open{i}", "w") for i in range(200)]
	PY
}

@test "another user's open files leave descriptors to the dataset and the owner" {
	[ "$(id -u)" = 0 ] || skip "not root"
	chmod 755 "$BATS_RUN_TMPDIR" "$BATS_TEST_TMPDIR"
	as="setpriv --reuid 65534 --regid 65534 --clear-groups"
	$as test -x "$BATS_TEST_TMPDIR" || skip "others cannot reach $BATS_TEST_TMPDIR"
	chmod 700 "$dir"
	mkdir -m 777 "$dir/c0"
	(ulimit -n 120 && serve -o allow_other)
	$as /usr/bin/python3 - "$mp/c0" >"$BATS_TEST_TMPDIR/opened" <<-'PY' &
		import os, sys, time
		n = 0
		try:
		    for n in range(200):
		        os.open(f"{sys.argv[1]}/open{n}", os.O_CREAT | os.O_RDWR)
		except OSError as error:
		    print(n, error.strerror, flush=True)
		for i in range(n):  # each file without a name has a second one
		    try:
		        os.unlink(f"{sys.argv[1]}/open{i}")
		    except OSError:
		        pass
		print("full", flush=True)
		time.sleep(60)
	PY
	eventually grep -q full "$BATS_TEST_TMPDIR/opened"
	echo mine >"$mp/mine"
	[ "$(cat "$mp/mine")" = mine ]
	tree_sum "$mp/c1" >/dev/null
	cat "$mp"/c1/* >/dev/null
	kill $!
	wait $! || true
	grep -q 'Too many open files' "$BATS_TEST_TMPDIR/opened"
	eventually $as touch "$mp/c0/again"
}
