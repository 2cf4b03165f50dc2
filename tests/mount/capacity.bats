#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The capacity is hard, under load and with metadata counted.

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
@test "eight readers: no reading of the stats exceeds the capacity" {
	make_files 400 20000
	head -c 9000000 /dev/urandom >"$src/large"
	for policy in lru s3fifo gdsf; do
		gpemu-fs -p $policy -c 20% --cache-metadata on "$src" "$mp"
		python3 - "$mp" <<-'END'
		import json, os, random, sys, threading
		mp = sys.argv[1]
		names = [os.path.join(d, f) for d, _, fs in os.walk(mp) for f in fs]
		n = most = 0
		def reader(seed):
		    r = random.Random(seed)
		    i = 0
		    while i < 400 or n < 10:
		        open(r.choice(names), "rb").read()
		        i += 1
		threads = [threading.Thread(target=reader, args=(i,))
		           for i in range(8)]
		for t in threads:
		    t.start()
		while any(t.is_alive() for t in threads):
		    s = json.load(open(f"{mp}/.gpemu/stats"))
		    assert s["used_bytes"] <= s["capacity_bytes"], s
		    most = max(most, s["used_bytes"] / s["capacity_bytes"])
		    n += 1
		for t in threads:
		    t.join()
		s = json.load(open(f"{mp}/.gpemu/stats"))
		print(n, "samples, at most", most, "of the capacity")
		# it was full while they read, so the limit was tested
		assert most > .9 and s["evictions"] > 100
		assert s["hits"] + s["misses"] >= 8 * 400
		END
		fusermount3 -u "$mp"
		eventually no_daemon
	done
}

@test "with metadata counted, fewer objects fit, as in the simulator" {
	make_files 300 500
	for policy in lru arc sff gdsf; do
		gpemu-fs -p $policy -c 40% --cache-metadata on "$src" "$mp"
		gpemu-train --data "$mp" --loader sync --workers 1 \
			--prep none --pin off --model resnet18 --gpu v100 -b 16 -e 3 \
			--time-scale 0.001 >/dev/null
		real=$(stat_of '["hits"], s["misses"], s["evictions"]')
		objects=$(stat_of '["objects"]')
		[ "$(stat_of '["metadata_bytes"] > 100 * s["objects"]')" = True ]
		fusermount3 -u "$mp"
		eventually no_daemon
		for metadata in --metadata ''; do
			gpemu-cachesim --dir "$src" -p $policy -c 40% -e 3 \
				$metadata --json "$BATS_TEST_TMPDIR/sim" \
				>/dev/null
			sim=$(python3 -c 'import json, sys
e = json.load(open(sys.argv[1]))["results"][0]["epochs"]
print(tuple(sum(x[k] for x in e) for k in ("hits", "misses", "evictions")))' \
				"$BATS_TEST_TMPDIR/sim")
			echo "$policy $metadata: mount $real simulator $sim"
			# without metadata there would be more objects
			[ -z "$metadata" ] || [ "$real" = "$sim" ]
			[ -n "$metadata" ] || [ "$real" != "$sim" ]
		done
		[ "$objects" -lt 100 ]
	done
}
