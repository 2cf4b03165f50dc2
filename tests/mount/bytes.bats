#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The bytes of the mount equal those of the source.

load mount

setup()
{
	common_setup
}

teardown()
{
	common_teardown
}

# bats test_tags=slow
@test "every policy delivers every byte to 8 concurrent readers" {
	make_files 300 60000
	head -c 9000001 /dev/urandom >"$src/large"
	: >"$src/empty"
	want=$(tree_sum "$src")
	policies=$(gpemu-fs --list policy | grep -v 'cachesim only' |
		cut -d' ' -f1)
	[ "$(wc -w <<<"$policies")" -ge 5 ]
	for policy in $policies; do
		gpemu-fs -p "$policy" -c 35% "$src" "$mp"
		for pass in 1 2; do
			[ "$(tree_sum "$mp")" = "$want" ]
		done
		[ "$(stat_of '["used_bytes"]')" -le \
			"$(stat_of '["capacity_bytes"]')" ]
		fusermount3 -u "$mp"
		eventually no_daemon
	done
}

@test "random reads of a large file match the source" {
	head -c 20000003 /dev/urandom >"$src/large"
	for policy in none lru; do
		gpemu-fs -p $policy -c 50% "$src" "$mp"
		python3 - "$src/large" "$mp/large" <<-'END'
		import os, random, sys
		a, b = (os.open(p, os.O_RDONLY) for p in sys.argv[1:])
		size = os.fstat(a).st_size
		assert os.fstat(b).st_size == size
		r = random.Random(1)
		for i in range(2000):
		    n = r.choice([1, 511, 4096, 70000] * 4 + [1 << 20, 5 << 20])
		    at = r.randint(0, size + 5000)
		    assert os.pread(a, n, at) == os.pread(b, n, at), (n, at)
		END
		fusermount3 -u "$mp"
		eventually no_daemon
	done
}

# bats test_tags=slow
@test "a PyTorch DataLoader, or plain Python, reads the mount" {
	make_files 100 30000
	gpemu-fs -p lru "$src" "$mp"
	python=python3
	/usr/bin/python3 -c 'import torch' 2>/dev/null && python=/usr/bin/python3
	$python - "$src" "$mp" <<-'END'
	import hashlib, os, sys
	src, mp = sys.argv[1:]
	names = sorted(os.path.relpath(os.path.join(d, f), mp)
	               for d, _, fs in os.walk(mp) for f in fs)
	assert len(names) == 100, names
	class Files:
	    def __len__(self):
	        return len(names)
	    def __getitem__(self, i):
	        data = open(os.path.join(mp, names[i]), "rb").read()
	        return i, hashlib.sha256(data).hexdigest()
	try:
	    from torch.utils.data import DataLoader
	    batches = DataLoader(Files(), batch_size=8, shuffle=True,
	                         num_workers=2)
	    got = [(int(i), h) for idx, hs in batches for i, h in zip(idx, hs)]
	except ImportError:
	    from multiprocessing import Pool
	    with Pool(4) as pool:
	        got = pool.map(Files().__getitem__, range(len(names)))
	assert sorted(i for i, _ in got) == list(range(100))
	for i, h in got:
	    data = open(os.path.join(src, names[i]), "rb").read()
	    assert hashlib.sha256(data).hexdigest() == h
	END
}

@test "names, sizes and times equal the source's, and links what they lead to" {
	make_files 20 1000
	ln -s c0/f00000 "$src/link"
	ln -s none "$src/dangling"
	touch -d '2001-02-03 04:05:06' "$src/c0/f00000"
	list="-mindepth 1 -printf '%P %y %l %T@\n'"
	for follow in / none; do
		gpemu-fs --follow-links $follow "$src" "$mp"
		how=$([ $follow = none ] || echo -L)
		[ "$(cd "$src" && eval "find $how . $list" | sort)" = \
			"$(cd "$mp" && eval "find . $list" | sort)" ]
		[ $follow = none ] || fusermount3 -u "$mp"
	done
	[ "$(cat "$mp/link" | sha256sum)" = "$(sha256sum <"$src/c0/f00000")" ]
	[ "$(stat -c %s "$mp/c1/f00001")" = "$(stat -c %s "$src/c1/f00001")" ]
}

@test "the mount is read-only" {
	make_files 5 100
	gpemu-fs "$src" "$mp"
	for command in 'touch new' 'rm c0/f00000' 'mkdir d' 'mv c0/f00000 x' \
		'ln -s a b' 'ln c0/f00000 hard' 'chmod 777 c0/f00000' \
		'truncate -s 0 c0/f00000' 'sh -c "echo >>c0/f00000"'; do
		run bash -c "cd '$mp' && $command"
		[ "$status" -ne 0 ]
		# for an ordinary user the check of permissions comes first
		[[ $output == *"Read-only file system"* ||
			$output == *"Permission denied"* ]]
	done
}

# may FILE: what access(2) says to read, write and execute it
may()
{
	python3 -c 'import os, sys
print(*(int(os.access(sys.argv[1], m)) for m in (os.R_OK, os.W_OK, os.X_OK)))' "$1"
}

@test "access says that nothing can be written, also to root; --read-only on" {
	make_files 5 100
	chmod 755 "$src/c1/f00001"
	gpemu-fs "$src" "$mp"
	[ "$(may "$mp")" = '1 0 1' ]
	[ "$(may "$mp/c0/f00000")" = '1 0 0' ]
	[ "$(may "$mp/c1/f00001")" = '1 0 1' ]
	[ "$(may "$mp/.gpemu/control")" = '1 1 0' ]
	[ "$(may "$mp/.gpemu/stats")" = '1 0 0' ]
	python3 -c 'import os, sys
try: os.access(sys.argv[1], os.W_OK) or open(sys.argv[1], "r+")
except OSError as e: assert e.errno == 30, e
else: raise SystemExit(1)' "$mp/c0/f00000"
	fusermount3 -u "$mp"
	gpemu-fs --read-only on "$src" "$mp"
	python3 -c 'import os, sys
assert os.statvfs(sys.argv[1]).f_flag & os.ST_RDONLY' "$mp"
	[ "$(may "$mp/c0/f00000")" = '1 0 0' ]
	run sh -c "echo reset >'$mp/.gpemu/control'"
	[[ $output == *"Read-only file system"* ]]
	# a loader that cannot mark its epochs trains nevertheless
	gpemu-train --data "$mp" --prep none -b 5 --time-scale 0.001 >/dev/null
	[ "$(stat_of '["misses"]')" = 5 ]
}

@test "a file of several names is one inode, cached once" {
	make_files 20 1000
	ln "$src/c0/f00000" "$src/c4/first"
	ln "$src/c0/f00000" "$BATS_TEST_TMPDIR/outside"
	ln -s ../c0/f00000 "$src/c3/also"
	ln -s "$BATS_TEST_TMPDIR/outside" "$src/c3/outside"
	ln -s c0 "$src/c9"
	gpemu-fs -c 100% "$src" "$mp"
	cd "$mp"
	names="c0/f00000 c4/first c3/also c3/outside c9/f00000"
	[ "$(stat -c '%i %h' $names | sort -u | wc -l)" = 1 ]
	[ "$(stat -c %h c0/f00000)" = 5 ]
	[ "$(stat -c %i c0)" != "$(stat -c %i c9)" ]
	[ "$(find . -type f -links +1 -printf '%i\n' | sort -u | wc -l)" = 4 ]
	for name in $names; do cmp "$name" "$src/c0/f00000"; done
	[ "$(stat_of '["misses"]')" = 1 ]
	[ "$(stat_of '["hits"]')" = 4 ]
	[ "$(stat_of '["files"]')" = 20 ]
	[ "$(stat_of '["further_names"]')" = 7 ]
	[ "$(stat_of '["file_bytes"]')" = \
		"$(find "$src" -type f -printf '%i %s\n' | sort -u |
			awk '{ n += $2 } END { print n }')" ]
	cd /
}

@test "a truncated or removed source file gives an error, not a crash" {
	make_files 10 50000
	gpemu-fs -p none "$src" "$mp"
	: >"$src/c0/f00000"
	rm "$src/c1/f00001"
	run cat "$mp/c0/f00000"
	[ "$status" -ne 0 ]
	run cat "$mp/c1/f00001"
	[ "$status" -ne 0 ]
	cmp "$mp/c2/f00002" "$src/c2/f00002"
}

@test "mmap, shared and private, works" {
	make_files 5 100000
	for options in '-p none' '-p lru --hit-path reply' \
		'-p lru --hit-path passthrough'; do
		gpemu-fs $options -c 100% "$src" "$mp"
		cmp "$src/c0/f00000" "$mp/c0/f00000" # a hit, from here on
		python3 - "$src/c0/f00000" "$mp/c0/f00000" <<-'END'
		import mmap, sys
		want = open(sys.argv[1], "rb").read()
		for flags in (mmap.MAP_SHARED, mmap.MAP_PRIVATE):
		    with open(sys.argv[2], "rb") as f:
		        m = mmap.mmap(f.fileno(), 0, flags=flags,
		                      prot=mmap.PROT_READ)
		        assert m[:] == want
		END
		[[ $options != *passthrough ]] || passes_through
		fusermount3 -u "$mp"
		eventually no_daemon
	done
}

@test "both hit paths deliver every byte while files stay open" {
	make_files 60 60000
	want=$(tree_sum "$src")
	for path in reply passthrough; do
		gpemu-fs -p lru -c 60% --hit-path $path "$src" "$mp"
		python3 - "$src" "$mp" <<-'END'
		import os, random, sys, threading
		src, mp = sys.argv[1:]
		names = [f"c{i % 5}/f{i:05}" for i in range(60)]
		want = {n: open(f"{src}/{n}", "rb").read() for n in names}
		bad = []
		def reader(seed):
		    # overlapping opens of the same files, held for a while, so
		    # that hits, misses and evictions occur on open inodes
		    r, held = random.Random(seed), []
		    for _ in range(400):
		        n = r.choice(names)
		        f = open(f"{mp}/{n}", "rb", buffering=0)
		        if f.readall() != want[n]:
		            bad.append(n)
		        held.append(f)
		        if len(held) > 8:
		            held.pop(r.randrange(8)).close()
		threads = [threading.Thread(target=reader, args=(i,))
		           for i in range(6)]
		for t in threads:
		    t.start()
		for t in threads:
		    t.join()
		assert not bad, bad
		END
		[ "$(tree_sum "$mp")" = "$want" ]
		hits=$(stat_of '["hits"]')
		[ "$hits" -gt 500 ]
		if [ $path = passthrough ]; then
			passes_through
		else
			[ "$(stat_of '["hit_path_reason"]')" = "--hit-path reply" ]
			[ "$(stat_of '["passthrough_opens"]')" = 0 ]
		fi
		[ "$(stat_of '["used_bytes"]')" -le \
			"$(stat_of '["capacity_bytes"]')" ]
		fusermount3 -u "$mp"
		eventually no_daemon
	done
}

# times DIR: of what is in it, to the nanosecond
times()
{
	(cd "$1" && TZ=UTC stat -c '%n %.9Y' . early late files files/early)
}

@test "times before 1970 and after 2262" {
	mkdir "$src/files"
	echo 1 >"$src/early"
	echo 2 >"$src/late"
	echo 3 >"$src/files/early"
	touch -d '1960-05-04 03:02:01.5 UTC' "$src/early" "$src/files/early"
	touch -d '2300-05-04 03:02:01.5 UTC' "$src/late"
	stat -c %y "$src/late" | grep -q ^2300 ||
		skip "this file system has no such time"
	touch -d '1900-01-01 00:00:00.25 UTC' "$src/files"
	touch -d '2400-01-01 00:00:00.25 UTC' "$src"
	gpemu-fs "$src" "$mp"
	diff <(times "$src") <(times "$mp")
	fusermount3 -u "$mp"
	eventually no_daemon
	# a pack has 64 bits for it: 2262-04-11 is its last day
	gpemu-data pack "$src" "$BATS_TEST_TMPDIR/pack"
	gpemu-fs "pack:$BATS_TEST_TMPDIR/pack" "$mp"
	[ "$(stat -c %.9Y "$mp/files/early")" = \
		"$(stat -c %.9Y "$src/files/early")" ]
	TZ=UTC stat -c %y "$mp/late" | grep -q ^2262-04-11
}
