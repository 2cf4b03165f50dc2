#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The memory of the process: defaults that fit the machine, and bounds that
# hold.

load mount

setup()
{
	common_setup
}

teardown()
{
	common_teardown
	[ -z "${group-}" ] || rmdir "$group"
}

unmount()
{
	fusermount3 -u "$mp"
	eventually no_daemon
}

# limited BYTES: a memory control group for this test, in $group
limited()
{
	local files="memory.max memory.limit_in_bytes" at file

	for at in /sys/fs/cgroup /sys/fs/cgroup/memory; do
		group=$at/gpemu-test-$$
		mkdir "$group" 2>/dev/null || continue
		for file in $files; do
			[ -e "$group/$file" ] || continue
			echo "$1" >"$group/$file" && return
		done
		rmdir "$group"
	done
	group=
	skip "no memory control group can be made here"
}

# bats test_tags=slow
@test "synth:imagenet fits any machine, with and without a cache" {
	memory=$(($(getconf _PHYS_PAGES) * $(getconf PAGESIZE)))
	gpemu-fs synth:imagenet "$mp" 2>"$BATS_TEST_TMPDIR/said"
	capacity=$(stat_of '["capacity_bytes"]')
	wanted=$(stat_of '["file_bytes"] * 35 // 100')
	echo "memory $memory, wanted $wanted, has $capacity"
	[ "$capacity" -le $((memory / 2)) ]
	if [ "$capacity" -lt $((wanted - 1)) ]; then
		grep -q "half of the memory" "$BATS_TEST_TMPDIR/said"
	else
		[ ! -s "$BATS_TEST_TMPDIR/said" ]
	fi
	grep -q '^cache_size: auto$' "$mp/.gpemu/config"
	unmount
	gpemu-fs -p none synth:imagenet "$mp"
	[ "$(stat_of '["capacity_bytes"]')" = 0 ]
	unmount
	gpemu-fs -p none -c 900T synth:imagenet,files=10 "$mp"
	unmount
	run gpemu-fs -c 900T synth:imagenet,files=10 "$mp"
	[ "$status" -eq 1 ]
	[[ $output == *"choose a smaller --cache-size"* ]]
	is_not_mounted
}

# bats test_tags=slow
@test "a control group's limit counts as the machine's" {
	limited 600M
	in_group()
	{
		sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"
	}
	in_group gpemu-fs synth:imagenet,files=100000 "$mp" \
		2>"$BATS_TEST_TMPDIR/said"
	[ "$(stat_of '["capacity_bytes"]')" = $((300 << 20)) ]
	grep -q "the cache has 300 MiB, half of the memory" \
		"$BATS_TEST_TMPDIR/said"
	unmount
	# two caches of a quarter each, less than the 35 % that each wants
	in_group gpemu-fs --layers 'trace,fault,cache,cache,group,device,source' \
		synth:imagenet,files=5000 "$mp" 2>"$BATS_TEST_TMPDIR/said"
	grep -q "the caches have 300 MiB, half of the memory" \
		"$BATS_TEST_TMPDIR/said"
	unmount
	run in_group gpemu-fs -c 700M synth:imagenet,files=10 "$mp"
	[ "$status" -eq 1 ]
	[[ $output == *"does not fit the 600 MiB"* ]]
	is_not_mounted
}

measured()
{
	[ -z "${GPEMU_SANITIZED-}" ] ||
		skip "the sanitizer keeps memory that was freed"
}

# rss: resident MiB of the mount's process
rss()
{
	awk '/^VmRSS/ { print int($2 / 1024) }' "/proc/$(daemon_pid)/status"
}

# rss_below MIB: the stats' own counts are below it, too
rss_below()
{
	local now

	now=$(rss)
	echo "RSS $now MiB, wanted below $1"
	stat_of '["memory_bytes"], s["memory_limit_bytes"], s["held_bytes"]'
	[ "$(stat_of '["memory_bytes"] <= s["memory_limit_bytes"]')" = True ]
	[ "$now" -lt "$1" ]
}

# bats test_tags=slow
@test "open files in the middle of an extent: no more than the bound" {
	measured
	for i in $(seq 100); do
		head -c 6M /dev/urandom >"$src/large$i"
	done
	gpemu-fs -c 8M --memory 32M "$src" "$mp"
	before=$(rss)
	python3 - "$mp" "$src" "$before" "$(daemon_pid)" <<-'END'
	import json, os, sys
	mp, src = sys.argv[1:3]
	fds = [os.open(f"{mp}/large{i}", os.O_RDONLY) for i in range(1, 101)]
	for at in 0, 1 << 20, 3 << 20, 5 << 20:
	    for i, fd in enumerate(fds):
	        got = os.pread(fd, 1 << 16, at)
	        with open(f"{src}/large{i + 1}", "rb") as f:
	            f.seek(at)
	            assert f.read(1 << 16) == got, (i, at)
	before, pid = int(sys.argv[3]), sys.argv[4]
	for line in open(f"/proc/{pid}/status"):
	    if line.startswith("VmRSS"):
	        now = int(line.split()[1]) // 1024
	print(f"RSS {before} MiB, with 100 open files {now} MiB")
	# capacity and --memory, and as much again that the allocator keeps:
	# mapping each extent anew costs twice the time
	assert now - before < 120
	s = json.load(open(f"{mp}/.gpemu/stats"))
	assert s["memory_bytes"] <= s["memory_limit_bytes"] == 40 << 20, s
	assert s["held_bytes"] <= s["memory_bytes"], s
	assert s["reread_bytes"] > 0, s
	# the device read each extent once, although readers held it
	assert s["backend_reads"] == s["misses"] == 200, s
	END
}

@test "a group larger than the memory is one read, delivered in pieces" {
	measured
	gpemu-fs -g 20000 -c 1M --memory 64M \
		synth:imagenet,files=20000,content=random "$mp"
	before=$(rss)
	file=$(find "$mp" -type f | head -1)
	other=$(find "$mp" -type f | tail -1)
	cksum "$file" "$other" >"$BATS_TEST_TMPDIR/sums"
	rss_below $((before + 110))
	[ "$(stat_of '["backend_reads"]')" = 1 ]
	[ "$(stat_of '["backend_bytes"] > 2 << 30')" = True ]
	[ "$(stat_of '["misses"], s["group_hits"]')" = "(1, 1)" ]
	unmount
	gpemu-fs -p none synth:imagenet,files=20000,content=random "$mp"
	cksum "$file" "$other" | diff - "$BATS_TEST_TMPDIR/sums"
}

# bats test_tags=slow
@test "without any memory besides the cache, bytes and counts are the same" {
	make_files 40 40000
	head -c 9000001 /dev/urandom >"$src/large"
	chunks()
	{
		(cd "$1" && find . -type f | sort | xargs -I{} \
			dd bs=$((16 * $2))K status=none if={} | sha256sum)
	}
	want=$(chunks "$src" 1)
	for mode in "-p lru -c 10%" "-p lru -c 100%" "-p minio -c 30% -g 8" \
		"-p none" "-p none -g 16" "-p s3fifo -c 20% -g 7"; do
		for memory in 1 256M; do
			gpemu-fs $mode --memory $memory "$src" "$mp"
			for pass in 1 2; do
				[ "$(chunks "$mp" $pass)" = "$want" ]
			done
			stat_of '["hits"], s["misses"], s["evictions"], s["backend_reads"], s["backend_bytes"], s["group_hits"], s["rejected"]' \
				>"$BATS_TEST_TMPDIR/counts-$memory"
			rereads=$(stat_of '["reread_bytes"]')
			echo "$mode $memory: reread $rereads"
			[ $memory = 1 ] || [ "$rereads" = 0 ]
			unmount
		done
		diff "$BATS_TEST_TMPDIR"/counts-*
	done
}

@test "many opens of groups, by any user, take no memory" {
	measured
	gpemu-fs -p none -g 64 synth:imagenet,files=200000 "$mp"
	cp "$mp/.gpemu/groups" "$BATS_TEST_TMPDIR/groups"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/groups")" = "$(stat_of '["groups"]')" ]
	before=$(rss)
	python3 - "$mp" "$BATS_TEST_TMPDIR/groups" "$before" "$(daemon_pid)" <<-'END'
	import json, os, random, sys
	mp, copy, before, pid = sys.argv[1:]
	want = open(copy, "rb").read()
	names = [p for l in want.splitlines() for p in json.loads(l)]
	assert len(names) == len(set(names)) == 200000
	fds = [os.open(f"{mp}/.gpemu/groups", os.O_RDONLY) for _ in range(100)]
	r = random.Random(1)
	for fd in fds:
	    at = r.randrange(len(want))
	    n = r.choice((1, 100, 5000, 100000))
	    assert os.pread(fd, n, at) == want[at:at + n], (at, n)
	    assert os.pread(fd, 10, len(want)) == b""
	for line in open(f"/proc/{pid}/status"):
	    if line.startswith("VmRSS"):
	        now = int(line.split()[1]) // 1024
	print(f"{len(want) >> 20} MiB of text, RSS {before} MiB, then {now} MiB")
	assert len(want) > 5 << 20 and now - int(before) < 50
	END
}

@test "too many opens of the stats are refused, a single one never" {
	make_files 1 100
	gpemu-fs "$src" "$mp"
	python3 - "$mp" <<-'END'
	import errno, json, os, resource, sys
	mp = sys.argv[1]
	hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
	resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
	# rules make the stats large
	for i in range(40):
	    with open(f"{mp}/.gpemu/control", "w") as f:
	        f.write(f"fault add op=read,path={'x' * 3000}{i},errno=EIO")
	size = len(open(f"{mp}/.gpemu/stats").read())
	fds = []
	while len(fds) * size < 100 << 20:
	    try:
	        fds.append(os.open(f"{mp}/.gpemu/stats", os.O_RDONLY))
	    except OSError as e:
	        assert e.errno == errno.ENFILE, e
	        break
	print(size, len(fds))
	assert (50 << 20) < len(fds) * size <= 64 << 20, len(fds) * size
	for fd in fds:
	    os.close(fd)
	for i in range(400):
	    try:
	        s = json.load(open(f"{mp}/.gpemu/stats"))
	        break
	    except OSError:  # the last releases are still on their way
	        os.sched_yield()
	assert s["control_bytes"] < 64 << 20
	END
}

@test "reads and writes of the writable folder in flight: no more than the bound" {
	measured
	mkdir "$BATS_TEST_TMPDIR/dir"
	gpemu-fs --memory 32M --writable "$BATS_TEST_TMPDIR/dir" \
		--storage hdd "$src" "$mp"
	before=$(rss)
	python3 - "$mp" <<-'END'
	import os, sys
	from concurrent.futures import ThreadPoolExecutor
	bytes = b"7" * (1 << 20)
	def move(i):
	    fd = os.open(f"{sys.argv[1]}/f{i}", os.O_CREAT | os.O_RDWR)
	    assert os.pwrite(fd, bytes, 0) == len(bytes)
	    assert os.pread(fd, len(bytes) + 1, 0) == bytes
	    os.close(fd)
	with ThreadPoolExecutor(400) as pool:
	    list(pool.map(move, range(400)))
	END
	[ "$(stat_of '["memory_bytes"]')" -lt $((1 << 20)) ]
	peak=$(awk '/^VmHWM/ { print int($2 / 1024) }' "/proc/$(daemon_pid)/status")
	echo "RSS $before MiB, at most $peak MiB"
	[ $((peak - before)) -lt 100 ]
}
