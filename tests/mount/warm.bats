#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The control command `warm`.

bats_require_minimum_version 1.5.0

load mount

setup()
{
	common_setup
	make_files 50 4000
	# so slow that emulated time would be visible
	cat >"$BATS_TEST_TMPDIR/slow.yaml" <<-END
	name: slow
	source: a test
	read: {source: a test, latency: {kind: const, value: 100s}}
	END
}

teardown()
{
	common_teardown
}

mount_slow()
{
	gpemu-fs -s "$BATS_TEST_TMPDIR/slow.yaml" "$@" "$src" "$mp"
	control=$mp/.gpemu/control
}

warm()
{
	echo "warm $1" >"$control"
	eventually is_warm
}

is_warm()
{
	[ "$(stat_of '["warm"]["done"]')" = True ]
}

# counts REQUESTED LOADED CACHED REJECTED
counts()
{
	local got

	got=$(stat_of '["warm"]' | tr -d "{}':,a-zA-Z")
	echo "counted $got"
	[ "$(echo $got)" = "$* 0" ]
}

@test "warm all: no emulated time, no counts, then every open is a hit" {
	head -c 9000000 /dev/urandom >"$src/large" # three objects
	: >"$src/empty"
	mount_slow -p lru -c 100%
	counts 0 0 0 0
	warm all
	counts 53 53 0 0
	[ "$(stat_of '["objects"]')" = 53 ]
	[ "$(stat_of '["hits"] + s["misses"] + s["backend_reads"]')" = 0 ]
	grep -q '^gpemu_fs_warm_loaded 53$' "$mp/.gpemu/stats.prom"
	grep -q '^gpemu_fs_warm_done 1$' "$mp/.gpemu/stats.prom"
	[ "$(tree_sum "$mp")" = "$(tree_sum "$src")" ]
	[ "$(stat_of '["hits"]')" = 53 ]
	[ "$(stat_of '["misses"]')" = 0 ]
	[ "$(stat_of '["latency_us"]["requested"]["max"]')" = 0.0 ]
	warm all
	counts 53 0 53 0
}

# bats test_tags=slow
@test "warm never evicts and never exceeds the capacity, in any policy" {
	policies=$(gpemu-fs --list policy | grep -v 'cachesim only' |
		cut -d' ' -f1)
	for policy in $policies; do
		mount_slow -p "$policy" -c 40%
		warm all
		stat_of '["warm"]'
		[ "$(stat_of '["used_bytes"] <= s["capacity_bytes"]')" = True ]
		[ "$(stat_of '["evictions"]')" = 0 ]
		[ "$(stat_of '["warm"]["loaded"] + s["warm"]["rejected"]')" = 50 ]
		[ "$(stat_of '["warm"]["loaded"]')" = "$(stat_of '["objects"]')" ]
		[ "$(stat_of '["warm"]["rejected"] > 10')" = True ]
		[ $policy = none ] || [ "$(stat_of '["objects"] > 5')" = True ]
		fusermount3 -u "$mp"
		eventually no_daemon
	done
}

@test "a list, a pattern, several commands: their order decides" {
	mkdir "$src/with blank"
	head -c 3000 /dev/urandom >"$src/with blank/file 1"
	mount_slow -p minio -c 100%
	printf 'with blank/file 1\n\nc0/f00000\n' >"$BATS_TEST_TMPDIR/list"
	warm "$BATS_TEST_TMPDIR/list"
	counts 2 2 0 0
	cmp "$src/with blank/file 1" "$mp/with blank/file 1"
	warm 'c[01]/*'
	counts 20 19 1 0
	warm 'with bl*/*'
	counts 1 0 1 0
	warm 'f0000[0-4]'
	counts 5 3 2 0
	printf 'drop-cache\nwarm c0/*\nwarm c1/*\n' >"$control"
	eventually is_warm
	[ "$(stat_of '["objects"]')" = 20 ]
	[ "$(stat_of '["hits"]')" = 1 ]
}

@test "a list in the mount itself" {
	echo c0/f00000 >"$src/list"
	gpemu-fs -c 100% "$src" "$mp"
	control=$mp/.gpemu/control
	timeout 10 sh -c "echo 'warm $mp/list' >'$control'"
	eventually is_warm
	counts 1 1 0 0
}

@test "an error starts no warm-up" {
	mount_slow -c 100%
	printf 'c0/f00000\nc0/none\n' >"$BATS_TEST_TMPDIR/list"
	mkfifo "$BATS_TEST_TMPDIR/fifo"
	: >"$BATS_TEST_TMPDIR/empty"
	yes c0/f00000 | head -n 1000 >"$BATS_TEST_TMPDIR/long" || true
	for bad in '' 'nothing*' "$BATS_TEST_TMPDIR/list" /none \
		"$BATS_TEST_TMPDIR/long" \
		"$BATS_TEST_TMPDIR/fifo" "$BATS_TEST_TMPDIR/empty" "$src"; do
		run ! sh -c "echo 'warm $bad' >'$control'"
	done
	counts 0 0 0 0
}

# ends_while_it_warms: sets took, in seconds, or none when it was done before
ends_while_it_warms()
{
	local start

	gpemu-fs -c 100% synth:imagenet,files=60000,content=random "$mp"
	echo "warm all" >"$mp/.gpemu/control"
	echo "warm all" >"$mp/.gpemu/control"
	eventually has_begun
	start=$SECONDS
	kill "$(daemon_pid)"
	eventually no_daemon
	took=$((SECONDS - start))
	is_not_mounted
	# too late to tell
	[ "$warm" = "(True, True, False)" ] || took=none
}

has_begun()
{
	# both commands
	warm=$(stat_of '["warm"]["requested"] >= 120000, s["warm"]["loaded"] > 0, s["warm"]["done"]')
	[[ $warm == "(True, True, "* ]]
}

@test "the unmount does not wait for a warm-up" {
	for try in 1 2 3 4 5; do
		ends_while_it_warms
		[ $took = none ] || [ $took -gt 3 ] || return 0
	done
	false
}

@test "readers of objects in flight wait, and get every byte" {
	gpemu-fs -c 50% "$src" "$mp"
	control=$mp/.gpemu/control
	want=$(tree_sum "$src")
	for i in 1 2 3 4 5; do
		printf 'drop-cache\nwarm all\n' >"$control"
		[ "$(tree_sum "$mp")" = "$want" ]
	done
	eventually is_warm
	[ "$(stat_of '["used_bytes"] <= s["capacity_bytes"]')" = True ]
}
