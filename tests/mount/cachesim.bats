#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The simulator and the mount count the same hits for the same order.

bats_require_minimum_version 1.5.0

load mount

setup()
{
	common_setup
}

teardown()
{
	common_teardown
}

# hits FILE PATH: [hits, misses] of each epoch in a JSON file
hits()
{
	python3 -c 'import json, sys
print([[e["hits"], e["misses"]] for e in
       eval("s" + sys.argv[2], {"s": json.load(open(sys.argv[1]))})])' "$@"
}

@test "gpemu-cachesim predicts the hits of gpemu-train on a mount, exactly" {
	make_files 200 5000
	head -c 9000000 /dev/urandom >"$src/c0/large" # three extents
	: >"$src/c1/empty"
	for policy in lru random sff sff_online 2q arc gdsf s3fifo tinylfu \
		2q:ratio=3 s3fifo:small=0.5,uses=1,promote=1 tinylfu:window=0.3; do
		gpemu-fs -p $policy -c 35% --seed 7 "$src" "$mp"
		gpemu-train --data "$mp" --loader sync --workers 1 \
			--prep none --pin off --model resnet18 --gpu v100 -b 16 -e 4 \
			--seed 7 --time-scale 0.001 >/dev/null
		cat "$mp/.gpemu/stats" >"$BATS_TEST_TMPDIR/mount.json"
		grep -q "\"policy\": \"$policy\"" "$BATS_TEST_TMPDIR/mount.json"
		fusermount3 -u "$mp"
		gpemu-cachesim --dir "$src" -p $policy -c 35% -e 4 --seed 7 \
			--json "$BATS_TEST_TMPDIR/sim.json" >/dev/null
		real=$(hits "$BATS_TEST_TMPDIR/mount.json" '["epochs"]')
		sim=$(hits "$BATS_TEST_TMPDIR/sim.json" \
			'["results"][0]["epochs"]')
		echo "$policy: mount $real simulator $sim"
		[ "$real" = "$sim" ]
		[[ $real == "[[0, 203], "* && $real != *"[0, 203]]" ]]
	done
}

@test "a policy that needs future accesses cannot be mounted" {
	make_files 5 100
	run -1 gpemu-fs -p belady "$src" "$mp"
	[[ $output == *"policy belady needs to know future accesses: use it with gpemu-cachesim"* ]]
}
