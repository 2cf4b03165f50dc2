#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# MOUNTPOINT/.gpemu: stats, config and control.

load mount

setup()
{
	common_setup
}

teardown()
{
	common_teardown
}

read_all()
{
	find "$mp" -type f -exec cat {} + >/dev/null
}

@test "the control folder exists but is not listed" {
	make_files 5 100
	gpemu-fs "$src" "$mp"
	[ "$(ls -A "$mp" | tr '\n' ' ')" = "c0 c1 c2 c3 c4 " ]
	[ "$(ls "$mp/.gpemu" | tr '\n' ' ')" = \
		"config control future groups importance nic stats stats.prom " ]
	python3 -m json.tool "$mp/.gpemu/stats" >/dev/null
	grep -q '^gpemu_fs_hits 0$' "$mp/.gpemu/stats.prom"
	grep -q '^cache_policy: lru$' "$mp/.gpemu/config"
}

@test "hits and misses are counted once per open, by epoch" {
	make_files 50 5000
	gpemu-fs -p minio -c 100% "$src" "$mp"
	echo epoch >"$mp/.gpemu/control"
	find "$mp" -type f -exec dd if={} of=/dev/null bs=512 status=none \;
	echo epoch >"$mp/.gpemu/control"
	read_all
	[ "$(stat_of '["misses"]')" = 50 ]
	[ "$(stat_of '["hits"]')" = 50 ]
	[ "$(stat_of '["backend_reads"]')" = 50 ]
	[ "$(stat_of '["epochs"][0]["misses"]')" = 50 ]
	[ "$(stat_of '["epochs"][1]["hits"]')" = 50 ]
	[ "$(stat_of '["epochs"].__len__()')" = 2 ]
	[ "$(stat_of '["read_amplification"]')" = 1.0 ]
}

@test "requests of the device are counted by class, and priced" {
	make_files 50 5000
	cat >"$BATS_TEST_TMPDIR/priced.yaml" <<-END
		name: priced
		source: test
		price: {source: test, read_usd_per_1000: 1, readdir_usd_per_1000: 3,
		        lookup_usd_per_1000: 5, open_usd_per_1000: 7, usd_per_gib: 9}
	END
	gpemu-fs -s "$BATS_TEST_TMPDIR/priced.yaml" -p lru -c 100% "$src" "$mp"
	stat "$mp/c0" >/dev/null # a lookup; those of a listing are free
	read_all
	read_all # hits
	[ "$(stat_of '["requests"]["read"]')" = 50 ]
	grep -q '^gpemu_fs_requests_read 50$' "$mp/.gpemu/stats.prom"
	grep -q '^gpemu_fs_cost_usd ' "$mp/.gpemu/stats.prom"
	bytes=$(find "$src" -type f -exec cat {} + | wc -c)
	python3 - "$mp/.gpemu/stats" "$bytes" <<-'END'
		import json, sys
		j = json.load(open(sys.argv[1]))
		n = j["requests"]
		usd = (n["read"] + 3 * n["readdir"] + 5 * n["lookup"] + 7 * n["open"]) / 1000
		usd += 9 * int(sys.argv[2]) / 2**30
		assert n["readdir"] and n["lookup"] and n["open"], n
		[device] = [l for l in j["layers"] if l["layer"] == "device"]
		assert (device["requests"], device["cost_usd"]) == (n, j["cost_usd"]), device
		assert abs(j["cost_usd"] - usd) < 1e-9, (j["cost_usd"], usd)
	END
	# what was paid stays, also on a device without prices
	echo "set storage ideal" >"$mp/.gpemu/control"
	paid=$(stat_of '["cost_usd"]')
	echo drop-cache >"$mp/.gpemu/control"
	read_all
	[ "$(stat_of '["requests"]["read"]')" = 100 ]
	[ "$(stat_of '["cost_usd"]')" = "$paid" ]
	echo reset >"$mp/.gpemu/control"
	[ "$(stat_of '["requests"]["read"]')" = 0 ]
	[ "$(stat_of '.get("cost_usd")')" = None ]
}

@test "a file that stays open counts its objects in each epoch, and the policy sees them" {
	head -c 12M /dev/zero >"$src/shard"
	gpemu-fs -p lru -c 8M "$src" "$mp"
	python3 - "$mp" <<-'END'
		import json, os, sys
		mp = sys.argv[1]
		fd = os.open(mp + "/shard", os.O_RDONLY)
		def visit(*extents):
		    with open(mp + "/.gpemu/control", "w") as f:
		        f.write("epoch\n")
		    for e in extents:
		        for k in range(4): # counted once
		            os.pread(fd, 4096, (e << 22) + k * 8192)
		    last = json.load(open(mp + "/.gpemu/stats"))["epochs"][-1]
		    return last["hits"], last["misses"]
		assert visit(0, 1) == (0, 2)
		assert visit(0) == (1, 0)
		# 1 is now the least recently used, and 2 takes its place
		assert visit(2, 0, 1) == (1, 2)
		with open(mp + "/.gpemu/control", "w") as f:
		    f.write("drop-cache\n")
		os.pread(fd, 4096, 0)
		assert json.load(open(mp + "/.gpemu/stats"))["epochs"][-1]["misses"] == 3
	END
}

@test "identical misses share one fetch" {
	head -c 2000000 /dev/urandom >"$src/one"
	cat >"$BATS_TEST_TMPDIR/slow.yaml" <<-END
	name: slow
	source: a test
	read: {source: a test, latency: {kind: const, value: 300ms}}
	END
	gpemu-fs -s "$BATS_TEST_TMPDIR/slow.yaml" -p lru -c 100% "$src" "$mp"
	# a machine that stops for a while may begin the second after the fetch
	for try in 1 2 3 4 5; do
		printf 'drop-cache\nreset\n' >"$mp/.gpemu/control"
		readers=
		for i in 1 2 3 4 5 6 7 8; do
			cat "$mp/one" >/dev/null 3>&- &
			readers="$readers $!"
		done
		wait $readers
		[ "$(stat_of '["backend_reads"]')" = 1 ]
		[ "$(stat_of '["coalesced"]')" = 0 ] || return 0
	done
	false
}

@test "commands: reset, drop-cache, set; errors change nothing" {
	make_files 20 5000
	gpemu-fs -p minio -c 100% "$src" "$mp"
	control=$mp/.gpemu/control
	read_all
	echo reset >"$control"
	[ "$(stat_of '["misses"]')" = 0 ]
	[ "$(stat_of '["objects"]')" = 20 ]
	echo drop-cache >"$control"
	[ "$(stat_of '["objects"]')" = 0 ]
	printf 'set cache_policy fifo\nset cache_size 10%%\n' >"$control"
	[ "$(stat_of '["policy"]')" = fifo ]
	grep -q '^cache_size: 10%$' "$mp/.gpemu/config"
	echo 'set storage hdd' >"$control"
	[ "$(stat_of '["storage"]')" = hdd ]
	for bad in 'set cache_policy nope' 'set cache_size 5Q' 'set x y' \
		'set storage nope' bogus 'reset now' 'set'; do
		run sh -c "echo '$bad' >'$control'"
		[ "$status" -ne 0 ]
	done
	[ "$(stat_of '["policy"]')" = fifo ]
	read_all
}

# bats test_tags=slow
@test "resize keeps what fits, with any policy" {
	local policy used

	make_files 40 5000
	for policy in minio lru arc s3fifo tinylfu sff-online 2q shade; do
		gpemu-fs -p "$policy" -c 100% "$src" "$mp"
		control=$mp/.gpemu/control
		tree=$(tree_sum "$mp")
		used=$(stat_of '["used_bytes"]')
		[ "$(stat_of '["objects"]')" = 40 ]
		echo "resize $((used / 2))" >"$control"
		grep -q "^cache_size: " "$mp/.gpemu/config"
		[ "$(stat_of '["capacity_bytes"]')" = $((used / 2)) ]
		[ "$(stat_of '["used_bytes"] * 10 > 4 * s["capacity_bytes"]')" = True ]
		[ "$(stat_of '["used_bytes"] <= s["capacity_bytes"]')" = True ]
		kept=$(stat_of '["objects"]')
		echo 'resize 100%' >"$control"
		[ "$(stat_of '["objects"]')" = "$kept" ]
		echo reset >"$control"
		[ "$(tree_sum "$mp")" = "$tree" ]
		[ "$(stat_of '["hits"]')" = "$kept" ]
		[ "$(stat_of '["epoch"]')" = 0 ]
		run sh -c "echo 'resize' >'$control'"
		[ "$status" -ne 0 ]
		fusermount3 -u "$mp"
	done
	# a replay knows one size
	gpemu-fs -p minio -c 100% --trace "$BATS_TEST_TMPDIR/t" "$src" "$mp"
	run sh -c "echo 'resize 10%' >'$mp/.gpemu/control'"
	[ "$status" -ne 0 ]
}

@test "resize while others read: right bytes, and nothing is lost" {
	make_files 60 20000
	gpemu-fs -p minio -c 100% "$src" "$mp"
	tree=$(tree_sum "$src")
	for i in 1 2 3; do
		(for k in 1 2 3; do [ "$(tree_sum "$mp")" = "$tree" ] || exit 1; done) 3>&- &
		readers="${readers-} $!"
	done
	for i in $(seq 30); do
		echo "resize $((i % 4 * 30))%" >"$mp/.gpemu/control"
	done
	for reader in $readers; do wait "$reader"; done
	[ "$(stat_of '["used_bytes"] <= s["capacity_bytes"]')" = True ]
}

@test "set bandwidth limits the device, and no cache" {
	make_files 20 100000
	gpemu-fs -p minio -c 100% "$src" "$mp"
	control=$mp/.gpemu/control
	echo 'set bandwidth 1M' >"$control"
	[ "$(stat_of '["bandwidth_limit"]')" = 1048576 ]
	mib=$(stat_of '["file_bytes"] / 2**20')
	took() {
		python3 - "$mp" <<-'PY'
			import os, sys, time
			start = time.monotonic()
			for at, _, names in os.walk(sys.argv[1]):
			    for name in names:
			        open(os.path.join(at, name), 'rb').read()
			print(time.monotonic() - start)
		PY
	}
	# about 2 MiB; the machine may be slow, never fast
	seconds=$(took)
	python3 -c "assert $seconds > .97 * $mib, ($seconds, $mib)"
	# all hits
	python3 -c "assert $(took) < .8 * $mib"
	# again without a limit, also of another device
	echo 'set storage ideal' >"$control"
	[ "$(stat_of '["bandwidth_limit"]')" = 1048576 ]
	printf 'set bandwidth 0\ndrop-cache\n' >"$control"
	python3 -c "assert $(took) < .8 * $mib"
	for bad in fast 1 999; do
		run sh -c "echo 'set bandwidth $bad' >'$control'"
		[ "$status" -ne 0 ]
	done
	echo 'set bandwidth 1000' >"$control"
}

@test "a policy keeps its options through set, drop-cache and mount options" {
	make_files 20 5000
	gpemu-fs -o 'cache_policy=s3fifo:small=0.3\,uses=7,cache_size=50%' "$src" "$mp"
	control=$mp/.gpemu/control
	[ "$(stat_of '["policy"]')" = s3fifo:small=0.3,uses=7 ]
	echo 'set cache_size 20%' >"$control"
	[ "$(stat_of '["policy"]')" = s3fifo:small=0.3,uses=7 ]
	echo 'set cache_policy slru:protected=0.25' >"$control"
	echo drop-cache >"$control"
	[ "$(stat_of '["policy"]')" = slru:protected=0.25 ]
	grep -q '^cache_policy: slru:protected=0.25$' "$mp/.gpemu/config"
	for bad in slru:protect=0.5 slru:protected=2 slru:protected lru:x=1; do
		run sh -c "echo 'set cache_policy $bad' >'$control'"
		[ "$status" -ne 0 ]
	done
	[ "$(stat_of '["policy"]')" = slru:protected=0.25 ]
	# defaults are not printed
	echo 'set cache_policy slru:protected=0.8' >"$control"
	[ "$(stat_of '["policy"]')" = slru ]
	read_all
}

# bats test_tags=slow
@test "closed forms hold through the mount" {
	mkdir "$src/c"
	python3 - "$src/c" <<-'END'
	import sys
	for i in range(3000):
	    open(f"{sys.argv[1]}/{i:05}", "wb").write(b"x" * 1000)
	END
	for policy in lru fifo minio; do
		gpemu-fs -p $policy -c 35% "$src" "$mp"
		python3 - "$mp" $policy <<-'END'
		import json, math, random, sys
		mp, policy = sys.argv[1:]
		r, order = random.Random(1), list(range(3000))
		for epoch in range(4):
		    r.shuffle(order)
		    open(f"{mp}/.gpemu/control", "w").write("epoch\n")
		    for i in order:
		        open(f"{mp}/c/{i:05}", "rb").read()
		e = json.load(open(f"{mp}/.gpemu/stats"))["epochs"][2:]
		got = sum(x["hit_ratio"] for x in e) / len(e)
		c = .35
		want = {"minio": c, "lru": c + (1 - c) * math.log(1 - c),
		        "fifo": -c - math.log(1 - c)}[policy]
		print(policy, got, want)
		assert abs(got - want) < .01
		END
		fusermount3 -u "$mp"
		eventually no_daemon
	done
}

@test "names that are not UTF-8: the configuration and the stats" {
	local bad=$'caf\xe9'
	mkdir "$src/$bad"
	echo 1 >"$src/$bad/1"
	cp "$BATS_TEST_DIRNAME"/../../profiles/storage/hdd.yaml "$BATS_TEST_TMPDIR/$bad.yaml"
	gpemu-fs -s "$BATS_TEST_TMPDIR/$bad.yaml" --trace "$BATS_TEST_TMPDIR/$bad" "$src/$bad" "$mp"
	grep -q '^storage: .*/caf\\xe9.yaml$' "$mp/.gpemu/config"
	[ "$(stat_of "['storage'][-11:]")" = "af\\xe9.yaml" ]
}
