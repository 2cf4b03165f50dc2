#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Mounts that share a partitioned cache (tests/contract/test_peers.c has the
# protocol and the errors).

bats_require_minimum_version 1.5.0
load mount

setup() { common_setup; }
teardown() { common_teardown; }

# find_ports N: $peers, addresses of N free ports
find_ports()
{
	peers=$(python3 - "$1" <<-'END'
		import socket, sys
		s = [socket.socket() for i in range(int(sys.argv[1]))]
		for x in s: x.bind(("127.0.0.1", 0))
		print(",".join("127.0.0.1:%d" % x.getsockname()[1] for x in s))
	END
	)
}

# node I OPTION...: mount node I at $mp.I
node()
{
	mkdir -p "$mp.$1"
	gpemu-fs --peers "$peers" --node "$1" "${@:2}" "$src" "$mp.$1"
}

# peer I FIELD: of its stats
peer()
{
	mp=$mp.$1 stat_of "$2"
}

# connected I N: node I has N others
connected()
{
	[ "$(peer "$1" '["peer"]["connected"]')" = "$2" ]
}

# epoch FIRST: each of the two nodes reads one half of the files, node FIRST the
# even ones; all are compared with the source
epoch()
{
	python3 - "$src" "$mp" "$1" <<-'END'
		import os, sys, threading
		src, mp, first = sys.argv[1], sys.argv[2], int(sys.argv[3])
		names = sorted(os.path.join(d, f)[len(src) + 1:]
		               for d, _, fs in os.walk(src) for f in fs)
		wrong = []
		def work(k):
		    for name in names[k::2]:
		        at = f"{mp}.{(k + first) % 2}/{name}"
		        if open(at, "rb").read() != open(f"{src}/{name}", "rb").read():
		            wrong.append(name)
		t = [threading.Thread(target=work, args=(k,)) for k in range(2)]
		for x in t: x.start()
		for x in t: x.join()
		sys.exit(f"wrong: {wrong}" if wrong else 0)
	END
}

storage_reads()
{
	echo $(($(peer 0 '["backend_reads"]') + $(peer 1 '["backend_reads"]')))
}

@test "two caches of 65 % read the storage once, then never" {
	make_files 200 20000
	head -c 9000000 /dev/urandom >"$src/c0/large"
	find_ports 2
	head -c 32 /dev/urandom >"$BATS_TEST_TMPDIR/key"
	chmod 600 "$BATS_TEST_TMPDIR/key"
	for i in 0 1; do node $i -c 65% --peer-timeout 1m \
		--peer-key "$BATS_TEST_TMPDIR/key" --nic config-ssd-v100 \
		--trace "$BATS_TEST_TMPDIR/trace.$i"; done
	eventually connected 0 1
	eventually connected 1 1
	epoch 0
	reads=$(storage_reads)
	[ "$reads" = 203 ]
	for k in 1 0 1; do epoch $k; done
	[ "$(storage_reads)" = "$reads" ]
	[ "$(peer 0 '["policy"]')" = minio ]
	# each request of the other node has a line
	serves() { [ "$(grep -c ',serve,.*,\(hit\|miss\),' "$BATS_TEST_TMPDIR/trace.0")" = "$(peer 0 '["peer"]["served"]')" ]; }
	eventually serves
	[ "$(peer 0 '["peer"]["served"]')" -gt 20 ]
	# both name the same owner of each file, and each owns about one half
	python3 - "$mp" <<-'END'
		import os, sys
		mp = sys.argv[1]
		names = [os.path.join(d, f)[len(mp) + 3:] for d, _, fs in os.walk(mp + ".0") for f in fs]
		owner = [[os.getxattr(f"{mp}.{k}/{n}", "user.gpemu.owner") for n in names] for k in (0, 1)]
		assert owner[0] == owner[1] and set(owner[0]) == {b"0", b"1"}, owner
		assert "user.gpemu.owner" in os.listxattr(f"{mp}.0/{names[0]}")
	END
	[ "$(peer 0 '["peer"]["hits"]')" -gt 20 ]
	# LADL needs the node of its rank
	run gpemu-train --data "$mp.0" --prep none --order locality --rank 1 --world-size 2
	[ "$status" != 0 ]
	[[ $output == *"the mount is node 0 of 2, and this is rank 1 of 2"* ]]
	grep -q '^gpemu_fs_peer_hits [1-9]' "$mp.0/.gpemu/stats.prom"
	grep -q 'key' "$mp.0/.gpemu/config"
	run -1 bash -c "echo 'set cache_size 10%' >'$mp.0/.gpemu/control'"
}

@test "a node is killed in the middle of an epoch" {
	make_files 200 20000
	find_ports 2
	node 0 -c 65%
	mkdir "$mp.1"
	gpemu-fs --peers "$peers" --node 1 -c 65% -f "$src" "$mp.1" 3>&- &
	pids=$!
	mp=$mp.1 eventually is_mounted
	eventually connected 0 1
	epoch 0
	before=$(peer 0 '["backend_reads"]')
	( sleep .2; kill -9 "$pids" ) &
	# node 0 alone reads all, again and again, through the loss
	for k in $(seq 40); do
		[ "$(tree_sum "$mp.0")" = "$(tree_sum "$src")" ]
		[ "$(peer 0 '["peer"]["lost"]')" = 0 ] || break
	done
	[ "$(tree_sum "$mp.0")" = "$(tree_sum "$src")" ]
	[ "$(peer 0 '["backend_reads"]')" -gt "$before" ]
	[ "$(peer 0 '["peer"]["peers"][0]["lost"]')" = 1 ]
	[ "$(peer 0 '["peer"]["peers"][0]["address"]')" = "${peers#*,}" ]
	[ "$(peer 0 '["peer"]["peers"][0]["connected"]')" = False ]
}

@test "what is not safe or makes no sense is refused" {
	make_files 5 100
	find_ports 2
	run -2 gpemu-fs --peers nonsense "$src" "$mp"
	run -2 gpemu-fs --peers 127.0.0.1:7000 "$src" "$mp"
	[[ $output == *"one node has no peers"* ]]
	run -2 gpemu-fs --peers "$peers" --group 4 "$src" "$mp"
	run -2 gpemu-fs --peers "$peers" --layers cache,device,source "$src" "$mp"
	[[ $output == *"needs the layer 'peer'"* ]]
	run gpemu-fs --peers "$peers" --node 2 "$src" "$mp"
	[ "$status" != 0 ]
	[[ $output == *"the nodes of --peers are 0 to 1"* ]]
	run gpemu-fs --peers "$peers,0.0.0.0:7000" "$src" "$mp"
	[ "$status" != 0 ]
	[[ $output == *"need the same --peer-key"* ]]
	head -c 32 /dev/urandom >"$BATS_TEST_TMPDIR/key"
	chmod 644 "$BATS_TEST_TMPDIR/key"
	run gpemu-fs --peers "$peers" --peer-key "$BATS_TEST_TMPDIR/key" "$src" "$mp"
	[ "$status" != 0 ]
	[[ $output == *"chmod 600"* ]]
	# two nodes at one address
	node 0
	run gpemu-fs --peers "$peers" --node 0 "$src" "$mp"
	[ "$status" != 0 ]
	[[ $output == *"in use"* ]]
	is_not_mounted
}

@test "gradients and the traffic of the caches share the card of the node" {
	make_files 100 20000
	find_ports 2
	cat >"$BATS_TEST_TMPDIR/node.yaml" <<-'END'
		{name: node, source: test, verified: false, gpus: 1, gpu: v100, cores: 1, memory: 1G,
		 pcie: {source: test}, nic: {gb_per_s: 0.01, latency: 10us, source: test}}
	END
	for i in 0 1; do node $i -c 65% --peer-timeout 1m --nic "$BATS_TEST_TMPDIR/node.yaml"; done
	eventually connected 0 1
	eventually connected 1 1
	python3 - "$mp" <<-'END'
		import json, os, sys, time
		mp = sys.argv[1] + ".0"
		def nic(): return json.load(open(mp + "/.gpemu/nic"))
		def reduce(mb):
		    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
		    with open(mp + "/.gpemu/control", "w") as f:
		        f.write(f"reduce 5 {now} {mb * 1000000} 1e7 1000\n")
		def late(): return nic()["delay_ns"]["5"]
		files = [os.path.join(d, f) for d, _, fs in os.walk(mp) for f in fs]
		# alone: as modelled
		reduce(1)
		assert late() == 0, late()
		time.sleep(.11)
		# 3 s of gradients; what the other node sends meanwhile delays them by
		# its time on the card, 100 ns a byte, and takes twice as long itself
		reduce(30)
		begin, before = time.monotonic(), nic()["received_bytes"]
		for f in files: open(f, "rb").read()
		took, n = time.monotonic() - begin, nic()["received_bytes"] - before
		assert n > 30 * 20000, n
		assert abs(late() - 100 * n) < 5 * n + 7e6, (late(), n)
		assert took > 1.8 * n * 1e-7, (took, n)
	END
	run -1 bash -c "echo 'reduce 1 2 3' >'$mp.0/.gpemu/control'"
}
