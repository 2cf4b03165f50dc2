#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Cache tiers: hits of each tier, their cost, and changes while mounted.

bats_require_minimum_version 1.5.0

load mount

# device NAME MILLISECONDS: a storage device with this latency of reads
device()
{
	printf 'name: %s\nsource: a test\nread: {source: a test, latency: {kind: const, value: %sms}}\n' \
		"$1" "$2" >"$BATS_TEST_TMPDIR/$1.yaml"
}

setup()
{
	common_setup
	device far 20
	device near 1
}

teardown()
{
	common_teardown
}

# python CODE ARG...: with json, csv, and lines(FILE) of a trace
python()
{
	python3 -c 'import collections, csv, json, sys
def load(path):
    return json.load(open(path))
def lines(path):
    return csv.DictReader(l for l in open(path) if not l.startswith("#"))
'"$1" "${@:2}"
}

# train EPOCHS [ARG...]: over the mount
train()
{
	gpemu-train --data "$mp" --prep none --pin off --model resnet18 \
		--gpu v100 -b 16 -e "$1" --seed 7 --time-scale 0.01 "${@:2}" \
		>/dev/null
}

# by_tier FILE KEY: hits and misses of each tier
by_tier()
{
	python 'print([[t["hits"], t["misses"]] if "hits" in t else
	[sum(e[k] for e in t["epochs"]) for k in ("hits", "misses")]
	for t in eval("s" + sys.argv[2], {"s": load(sys.argv[1])})])' "$@"
}

# bats test_tags=slow
@test "hits of each tier equal those of gpemu-cachesim" {
	make_files 200 50000
	head -c 9000000 /dev/urandom >"$src/c0/large" # three extents
	: >"$src/c1/empty"
	below=0
	for tiers in "minio:10% slru:protected=0.5:50%" "lru:20% minio:40%" \
		"s3fifo:small=0.3,uses=7:10% arc:20% random:30%" "sff:15% gdsf:1M"; do
		for admit in every first; do
			gpemu-fs --tier "$tiers" --tier-admit $admit --seed 7 \
				-s ideal "$src" "$mp"
			train 4 --loader sync --workers 1
			cat "$mp/.gpemu/stats" >"$BATS_TEST_TMPDIR/mount.json"
			fusermount3 -u "$mp"
			gpemu-cachesim --dir "$src" --tier "$tiers" -e 4 \
				--tier-admit $admit --seed 7 \
				--json "$BATS_TEST_TMPDIR/sim.json" >/dev/null
			real=$(by_tier "$BATS_TEST_TMPDIR/mount.json" \
				'["tiers"]')
			sim=$(by_tier "$BATS_TEST_TMPDIR/sim.json" \
				'["results"][0]["tiers"]')
			echo "$tiers, $admit: mount $real simulator $sim"
			[ "$real" = "$sim" ]
			[[ $real == "[[0, "* ]] && return 1
			[[ $real == *", [0, "* ]] || : $((below++))
		done
	done
	[ "$below" -ge 4 ] # the lower tiers have hits, too
}

@test "the trace of several readers replays to the same hits" {
	make_files 300 3000
	gpemu-fs --tier "minio:10% $BATS_TEST_TMPDIR/near.yaml:lru:50%" \
		--cache-bytes source -s ideal --seed 7 --time-scale 0.01 \
		--trace "$BATS_TEST_TMPDIR/t.csv" "$src" "$mp"
	train 3 --loader async --queue-depth 32 --workers 4
	cat "$mp/.gpemu/stats" >"$BATS_TEST_TMPDIR/mount.json"
	fusermount3 -u "$mp"
	for i in {1..50}; do
		gpemu-cachesim --trace "$BATS_TEST_TMPDIR/t.csv" --seed 7 \
			--tier "minio:10% lru:50%" \
			--json "$BATS_TEST_TMPDIR/sim.json" >/dev/null || { sleep .1; continue; }
		real=$(by_tier "$BATS_TEST_TMPDIR/mount.json" '["tiers"]')
		sim=$(by_tier "$BATS_TEST_TMPDIR/sim.json" \
			'["results"][0]["tiers"]')
		[ "$real" != "$sim" ] || break # its last lines may be late
		sleep 0.1
	done
	echo "mount $real simulator $sim"
	[ "$real" = "$sim" ]
}

@test "a hit takes as long as a read of its tier: 0, 1 or 20 ms" {
	make_files 200 5000
	for bytes in memory source; do
		gpemu-fs -s "$BATS_TEST_TMPDIR/far.yaml" --cache-bytes $bytes \
			--tier dram:minio:20% --hit-path reply \
			--tier "$BATS_TEST_TMPDIR/near.yaml:lru:60%" --seed 7 \
			--trace "$BATS_TEST_TMPDIR/t.csv" "$src" "$mp"
		train 4 --loader sync --workers 4
		python '
s = load(sys.argv[1])
a, b = s["tiers"]
print(s["cache_bytes"], a["hits"], b["hits"], b["misses"], b["reads"])
assert s["cache_bytes"] == sys.argv[2]
assert a["hits"] > 50 and b["hits"] > 50 and a["storage"] == "dram"
assert s["hits"] == a["hits"] + b["hits"] and s["misses"] == b["misses"]
assert s["backend_reads"] == s["misses"] and "reads" not in a
assert b["reads"] == b["hits"] and b["read_bytes"] == b["hit_bytes"]
for us, of in ((1000, b), (20000, s)):
    asked, took = (of["latency_us"][k] for k in ("requested", "achieved"))
    assert us <= asked["mean"] < 2 * us <= 2 * took["mean"]' \
			"$mp/.gpemu/stats" $bytes
		cat "$mp/.gpemu/stats" >"$BATS_TEST_TMPDIR/mount.json"
		[ "$(tree_sum "$mp")" = "$(tree_sum "$src")" ]
		fusermount3 -u "$mp"
		for i in {1..50}; do
			python '
s = load(sys.argv[2])
a, b = s["tiers"]
# two concurrent reads may overtake each other on their way to the device
found = collections.Counter(sum(float(r["requested_us"]) >= us
	for us in (1000, 20000)) for r in list(lines(sys.argv[1]))
	if r["op"] == "read" and r["seq"] and
	int(r["seq"]) <= s["hits"] + s["misses"] + 4)
print(found)
sys.exit(found != {0: a["hits"], 1: b["hits"], 2: b["misses"]})' \
				"$BATS_TEST_TMPDIR/t.csv" \
				"$BATS_TEST_TMPDIR/mount.json" && break
			sleep 0.1
		done
		[ "$i" -lt 50 ]
	done
}

@test "an open costs an open of its tier; after a miss, of the device" {
	make_files 20 5000
	cat >"$BATS_TEST_TMPDIR/door.yaml" <<-END
	name: door
	source: a test
	open: {source: a test, latency: {kind: const, value: 3ms}}
	read: {source: a test, latency: {kind: const, value: 1ms}}
	END
	gpemu-fs --tier "minio:0 $BATS_TEST_TMPDIR/door.yaml:minio:100%" \
		-s "$BATS_TEST_TMPDIR/far.yaml" \
		--trace "$BATS_TEST_TMPDIR/t.csv" "$src" "$mp"
	cat "$mp"/c*/* "$mp"/c*/* >/dev/null
	fusermount3 -u "$mp"
	for i in {1..50}; do
		python '
found = collections.Counter((r["op"], r["requested_us"]) for r in
	lines(sys.argv[1]) if r["op"] == "open" or r["seq"])
print(found)
sys.exit(found != {("open", "0.000"): 20, ("read", "20000.000"): 20,
	("open", "3000.000"): 20, ("read", "1000.000"): 20})' \
			"$BATS_TEST_TMPDIR/t.csv" && break
		sleep 0.1
	done
	[ "$i" -lt 50 ]
}

@test "set tier replaces one tier, and all tiers start empty" {
	make_files 20 5000
	gpemu-fs --tier "minio:50% $BATS_TEST_TMPDIR/near.yaml:lru:50%" \
		--time-scale 0.01 "$src" "$mp"
	cat "$mp"/c*/* >/dev/null
	control=$mp/.gpemu/control
	echo "set tier 1 slru:protected=0.5:50%" >"$control"
	[ "$(stat_of '["tiers"][0]["policy"]')" = slru:protected=0.5 ]
	grep -q "dram:slru:protected=0.5:50%" "$mp/.gpemu/config"
	echo "set tier 1 minio:50%" >"$control"
	echo "set tier 2 $BATS_TEST_TMPDIR/near.yaml:fifo:20%" >"$control"
	[ "$(stat_of '["tiers"][0]["policy"]')" = minio ]
	[ "$(stat_of '["tiers"][1]["policy"]')" = fifo ]
	[ "$(stat_of '["objects"]')" = 0 ]
	grep -q "^gpemu_fs_tier_misses{tier=\"1\",storage=\"dram\"} 20\$" \
		"$mp/.gpemu/stats.prom"
	grep -q "near.yaml:fifo:20%" "$mp/.gpemu/config"
	python 'a, b = load(sys.argv[1])["tiers"]
assert a["capacity_bytes"] > 2 * b["capacity_bytes"] > 0' "$mp/.gpemu/stats"
	for bad in "cache_policy lru" "cache_size 1M" "tier 3 lru:1M" \
		"tier 0 lru:1M" "tier 1 nvme:lru:1M" "tier 1 lur:1M" \
		"tier 1 lru:1M lru:1M" "tier lru:1M" "tier 1"; do
		run ! sh -c "echo 'set $bad' >'$control'"
	done
	[ "$(stat_of '["tiers"][0]["policy"]')" = minio ]
	# the written configuration mounts the same again
	cat "$mp/.gpemu/config" >"$BATS_TEST_TMPDIR/c.yaml"
	fusermount3 -u "$mp"
	gpemu-fs --config "$BATS_TEST_TMPDIR/c.yaml" "$src" "$mp"
	[ "$(stat_of '["tiers"][1]["policy"]')" = fifo ]
}

@test "options: conflicts are rejected, and errors name the column" {
	make_files 3 100
	run -2 gpemu-fs --tier lru:1M -c 1M "$src" "$mp"
	[[ $output == *"--tier replaces --cache-policy and --cache-size"* ]]
	run -2 gpemu-fs --tier "lru:1M nvme:lur:1M" "$src" "$mp"
	[[ $output == *"--tier: column 13: unknown cache policy 'lur'"* ]]
	run -2 gpemu-fs --tier nvme:slru:protect=0.5:1M "$src" "$mp"
	[[ $output == *"--tier: column 6: cache policy slru: unknown option 'protect'"* ]]
	run -2 gpemu-fs --tier none:1M "$src" "$mp"
	[[ $output == *"a tier with the policy none caches nothing"* ]]
	run -2 gpemu-fs --tier lru:1M --layers trace,fault,group,device,source \
		"$src" "$mp"
	[[ $output == *"--tier needs the layer 'cache'"* ]]
	run -1 gpemu-fs --tier "lru:1M lru:1M lru:1M" \
		--layers cache,cache,device,source "$src" "$mp"
	[[ $output == *"'cache' occurs 2 times, for 3 tiers"* ]]
	run -1 gpemu-fs --tier "lru:1M belady:1M" "$src" "$mp"
	[[ $output == *"belady needs to know future accesses"* ]]
	run -2 gpemu-fs --cache-bytes disk "$src" "$mp"
	printf 'tier:\n  - lru:1M\n  - nvme:lru:5Q\n' >"$BATS_TEST_TMPDIR/c.yaml"
	run -2 gpemu-fs --config "$BATS_TEST_TMPDIR/c.yaml" "$src" "$mp"
	[[ $output == *"c.yaml:3:5: tier: column 10: '5Q' is not a cache size"* ]]
	run -0 gpemu-fs --dump-config --tier "lru:1M nvme:fifo:5%"
	[[ $output != *cache_policy* && $output != *cache_size* ]]
	run -0 gpemu-fs --dump-config
	[[ $output == *"cache_policy: lru"* && $output == *"cache_size: auto"* ]]
}

# bats test_tags=slow
@test "500 GiB of a dataset of terabytes are cached in little memory" {
	huge=synth:imagenet,files=40000,scale=1000,content=random
	run -1 gpemu-fs --tier nvme:lru:500G "$huge" "$mp"
	[[ $output == *"a cache of 500 GiB does not fit"* ]]
	[[ $output == *"--cache-bytes source"* ]]
	run -1 gpemu-fs -c 500G "$huge" "$mp"
	gpemu-fs --cache-bytes source --tier dram:minio:40G \
		--tier nvme:lru:500G --time-scale 0.01 "$huge" "$mp"
	[ "$(stat_of '["file_bytes"] > 4e12')" = True ]
	files=$(cd "$mp" && find . -type f | head -n 12)
	# more than the memory for bytes, repeatedly
	for pass in 1 2 3; do
		(cd "$mp" && head -q -c 40000000 $files | sha1sum) \
			>"$BATS_TEST_TMPDIR/sum$pass"
	done
	cmp "$BATS_TEST_TMPDIR/sum1" "$BATS_TEST_TMPDIR/sum2"
	cmp "$BATS_TEST_TMPDIR/sum1" "$BATS_TEST_TMPDIR/sum3"
	stat_of '["hits"], s["misses"]'
	[ "$(stat_of '["hits"] == 2 * s["misses"] > 0')" = True ]
	[ "$(stat_of '["capacity_bytes"]')" = $((540 << 30)) ]
	[ "$(stat_of '["used_bytes"] > 5e8')" = True ]
	[ "$(stat_of '["memory_bytes"] < 3e8')" = True ]
	pid=$(daemon_pid)
	kib=$(awk '/^VmHWM/ { print $2 }' "/proc/$pid/status")
	echo "$kib KiB"
	[ "$kib" -lt 700000 ]
}

@test "groups: --tier-admit applies to their members" {
	make_files 60 3000
	for admit in every first; do
		gpemu-fs --tier "minio:20% minio:30%" --tier-admit $admit \
			-g 6 --group-buffer 1 "$src" "$mp"
		(cd "$mp" && find . -type f | sort | xargs cat) >/dev/null
		python 'a, b = load(sys.argv[1])["tiers"]
print(a["objects"], b["objects"], a["used_bytes"], b["used_bytes"])' \
			"$mp/.gpemu/stats"
		before=$(stat_of '["hits"]')
		(cd "$mp" && find . -type f | sort | xargs cat) >/dev/null
		python 'a, b = load(sys.argv[1])["tiers"]
whole = load(sys.argv[1])["file_bytes"]
held = (a["used_bytes"] + b["used_bytes"]) / whole
assert .4 < held <= .5, held' "$mp/.gpemu/stats"
		[ "$(tree_sum "$mp")" = "$(tree_sum "$src")" ]
		fusermount3 -u "$mp"
	done
}

# bats test_tags=slow
@test "warm fills the tiers one after the other" {
	make_files 100 3000
	for bytes in memory source; do
		gpemu-fs --tier "minio:30% $BATS_TEST_TMPDIR/near.yaml:minio:40%" \
			--cache-bytes $bytes --time-scale 0.01 "$src" "$mp"
		echo warm all >"$mp/.gpemu/control"
		for i in {1..100}; do
			[ "$(stat_of '["warm"]["done"]')" = False ] || break
			sleep 0.1
		done
		python 's = load(sys.argv[1])
a, b = s["tiers"]
held = [t["used_bytes"] / s["file_bytes"] for t in (a, b)]
print(held, s["warm"])
assert .27 < held[0] <= .3 and .37 < held[1] <= .4' "$mp/.gpemu/stats"
		cat "$mp"/c*/* >/dev/null
		[ "$(stat_of '["hits"] == s["warm"]["loaded"]')" = True ]
		[ "$(stat_of '["tiers"][1]["reads"] > 0')" = True ]
		[ "$(tree_sum "$mp")" = "$(tree_sum "$src")" ]
		fusermount3 -u "$mp"
	done
}

@test "shutdown answers reads that wait for a tier" {
	make_files 5 1000
	device slow 600000
	for bytes in memory source; do
		gpemu-fs --tier "$BATS_TEST_TMPDIR/slow.yaml:lru:100%" \
			--cache-bytes $bytes "$src" "$mp"
		cat "$mp"/c*/* >/dev/null
		timeout 60 cat "$mp"/c0/f00000 >/dev/null 2>"$BATS_TEST_TMPDIR/said" &
		reader=$!
		for i in {1..100}; do
			[ "$(stat_of '["inflight"]')" = 0 ] || break
			sleep 0.1
		done
		[ "$(stat_of '["inflight"]')" = 1 ]
		[ "$(stat_of '["tiers"][0]["reads"]')" = 1 ]
		# another one waits for the same read
		timeout 60 cat "$mp"/c0/f00000 >/dev/null 2>&1 &
		second=$!
		for i in {1..100}; do
			[ "$(stat_of '["tiers"][0]["hits"]')" = 1 ] || break
			sleep 0.1
		done
		[ "$(stat_of '["tiers"][0]["reads"]')" = 1 ]
		kill -TERM "$(daemon_pid)"
		for pid in $reader $second; do
			status=0
			wait $pid || status=$?
			[ "$status" -eq 1 ] # cat failed, no timeout
		done
		grep -q "Software caused connection abort" \
			"$BATS_TEST_TMPDIR/said"
	done
}

# bats test_tags=slow
@test "hits of a tier that take time are not passed through" {
	make_files 20 5000
	near=$BATS_TEST_TMPDIR/near.yaml
	for tiers in "$near:lru:100%" "$near:lru:100% dram:lru:100%"; do
		gpemu-fs --tier "$tiers" "$src" "$mp"
		cat "$mp"/c*/* >/dev/null
		cat "$mp"/c*/* >/dev/null
		[ "$(stat_of '["hits"]')" = 20 ]
		[ "$(stat_of '["hit_path"]')" = reply ]
		[ "$(stat_of '["passthrough_opens"]')" = 0 ]
		fusermount3 -u "$mp"
		eventually no_daemon
	done
}
