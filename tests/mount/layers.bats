#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The stack of layers: shown, reordered, refused, and with a new layer.

bats_require_minimum_version 1.5.0
load mount

setup() { common_setup; }
teardown() { common_teardown; }

# layers EXPRESSION: of the stats' parts, as a list l of dicts
layers()
{
	python3 - "$mp/.gpemu/stats" "$1" <<-'END'
		import json, sys
		s = json.load(open(sys.argv[1]))
		l = s['layers']
		print(eval(sys.argv[2]))
	END
}

@test "the stats show the stack: names, order, a part for each layer" {
	make_files 20 3000
	gpemu-fs --list layer | grep '^cache '
	gpemu-fs --dump-config | grep '^layers: trace,fault,prefetch,cache,group,peer,device,source$'
	gpemu-fs "$src" "$mp" -c 100% --group 4
	cat "$mp"/c*/* "$mp"/c*/* >/dev/null
	[ "$(layers '[x["layer"] for x in l]')" = \
		"['fault', 'cache', 'group', 'device', 'source']" ]
	[ "$(layers 'l[1]["policy"], l[1]["objects"], l[2]["groups"]')" = "('lru', 20, 5)" ]
	[ "$(layers 'l[2]["group_hits"] == s["group_hits"] == 15')" = True ]
	[ "$(layers 'l[3]["backend_reads"] == s["backend_reads"] == 5')" = True ]
	[ "$(layers 's["hits"], s["misses"]')" = "(35, 5)" ]
}

@test "an omitted layer is absent, and its options are refused" {
	make_files 20 3000
	gpemu-fs "$src" "$mp" --layers device,source
	cat "$mp"/c*/* "$mp"/c*/* >/dev/null
	[ "$(layers 's["hits"], s["misses"], s["policy"], "faults" in s')" = \
		"(0, 40, 'none', False)" ]
	run -1 bash -c "echo 'fault add stuck' >'$mp/.gpemu/control'"
	fusermount3 -u "$mp"
	run -2 gpemu-fs "$src" "$mp" --layers cache,device,source --fault stuck
	[[ $output == *"--fault needs the layer 'fault'"* ]]
	run -2 gpemu-fs "$src" "$mp" --layers cache,device,source --group 4
	[[ $output == *"--group needs the layer 'group'"* ]]
	run -2 gpemu-fs "$src" "$mp" --layers cache,device,source --trace x
	[[ $output == *"--trace needs the layer 'trace'"* ]]
	run -2 gpemu-fs "$src" "$mp" --layers device,cache,source
	[[ $output == *"'cache' cannot stand below 'device'"* ]]
	run -2 gpemu-fs "$src" "$mp" --layers cache,nonsense,source
	[[ $output == *"nonsense"*trace*fault*cache*group*device*source* ]]
}

# A read that a fault refuses is traced if the trace is above the fault.
@test "trace and fault may be swapped" {
	local order lines want=10

	make_files 10 3000
	for order in trace,fault fault,trace; do
		gpemu-fs "$src" "$mp" --layers "$order,cache,device,source" \
			--trace "$BATS_TEST_TMPDIR/$order" \
			--fault op=read,every=2,errno=EIO
		for f in "$mp"/c*/*; do cat "$f" 2>/dev/null || true; done >/dev/null
		fusermount3 -u "$mp"
		eventually no_daemon
		lines=$(grep -c ',read,' "$BATS_TEST_TMPDIR/$order")
		[ "$lines" = "$want" ]
		want=5
	done
}

@test "the kernel asks for names again after the time that a profile says" {
	local kept storage="{name: k, source: s, lookup: {source: s, latency:
		{kind: const, value: 1ms}}"

	make_files 1 3000
	for kept in "" ", names: {source: s, kept: 0s}"; do
		echo "$storage$kept}" >"$BATS_TEST_TMPDIR/k.yaml"
		gpemu-fs "$src" "$mp" -s "$BATS_TEST_TMPDIR/k.yaml" \
			--trace "$BATS_TEST_TMPDIR/k.csv"
		for i in 1 2 3; do stat "$mp/c0/f00000" >/dev/null; done
		python3 -c 'import os, sys
f = os.open(sys.argv[1], os.O_RDONLY)
os.fstat(f), os.fstat(f)' "$mp/c0/f00000"
		fusermount3 -u "$mp"
		eventually no_daemon
		# c0 and its file; with 0s each time, and for each fstat
		grep -c ',lookup,' "$BATS_TEST_TMPDIR/k.csv" >>"$BATS_TEST_TMPDIR/n"
	done
	[ "$(sed -n 1p "$BATS_TEST_TMPDIR/n")" -eq 2 ]
	[ "$(sed -n 2p "$BATS_TEST_TMPDIR/n")" -ge 10 ]
	# in emulated time: an hour is 36 s, 10 s are .1; a name that is not
	# there is not kept
	for kept in 1h 10s; do
		echo "$storage, names: {source: s, kept: $kept}}" \
			>"$BATS_TEST_TMPDIR/k.yaml"
		gpemu-fs "$src" "$mp" -s "$BATS_TEST_TMPDIR/k.yaml" \
			--time-scale .01 --trace "$BATS_TEST_TMPDIR/$kept.csv"
		stat "$mp/c0/f00000" "$mp/c0/none" >/dev/null || true
		sleep .3
		stat "$mp/c0/f00000" "$mp/c0/none" >/dev/null || true
		fusermount3 -u "$mp"
		eventually no_daemon
	done
	[ "$(grep -c ',lookup,' "$BATS_TEST_TMPDIR/1h.csv")" -eq 4 ]
	[ "$(grep -c ',lookup,' "$BATS_TEST_TMPDIR/10s.csv")" -ge 6 ]
}

@test "a new layer is one file and one word" {
	local root new=$BATS_TEST_TMPDIR/new

	[ -n "${GPEMU_FULL-}" ] || skip "builds a tree of its own: tests/run --full"
	[ -z "${GPEMU_SANITIZED-}" ] || skip "builds a tree of its own"
	root=$(realpath "$BATS_TEST_DIRNAME/../..")
	command -v meson ninja >/dev/null || skip "meson or ninja is not installed"
	mkdir "$new"
	tar -C "$root" -c --exclude=./build* --exclude=./.git . | tar -C "$new" -x
	cat >"$new/fs/layer/layer_tally.c" <<-'END'
		/* SPDX-License-Identifier: MIT */
		/* Count the bytes that leave a mount. */
		#include "fs/server/layer.h"

		static void tally_answer(struct layer *l, struct read_request *r,
					 const struct answer *a)
		{
			uint64_t *bytes = l->state;

			for (int i = 0; i < a->n_iov; i++)
				__atomic_fetch_add(bytes, a->iov[i].iov_len,
						   __ATOMIC_RELAXED);
			layer_answer(l, r, a);
		}

		static size_t tally_stats(struct layer *l,
					  struct layer_stat ret[LAYER_STATS])
		{
			uint64_t *bytes = l->state;

			ret[0].name = "bytes";
			ret[0].value = __atomic_load_n(bytes, __ATOMIC_RELAXED);
			return 1;
		}

		const struct layer_ops layer_tally = {
			.plugin = { .name = "tally",
				    .summary = "count bytes",
				    .state_size = sizeof(uint64_t) },
			.rank = LAYER_REQUEST,
			.answer = tally_answer,
			.stats = tally_stats,
		};
	END
	sed -i "s/^layer_words = \[/&'tally', /" "$new/fs/meson.build"
	# the files touched: a new one, and a line of another
	run diff -rq --exclude='build*' --exclude=.git "$root" "$new"
	[ "${#lines[@]}" = 2 ]
	[[ ${lines[0]} == "Only in $new/fs/layer: layer_tally.c" ]]
	[[ ${lines[1]} == *"fs/meson.build differ" ]]
	run diff "$root/fs/meson.build" "$new/fs/meson.build"
	[ "$(grep -c '^>' <<<"$output")" = 1 ]

	cd "$new"
	meson setup build -Dtests=disabled -Dman=disabled -Doptimization=0 >/dev/null
	ninja -C build gpemu-fs >/dev/null
	PATH=$new/build:$PATH
	gpemu-fs --list layer | grep '^tally .*count bytes'
	make_files 10 3000
	gpemu-fs "$src" "$mp" --layers fault,tally,cache,device,source
	cat "$mp"/c*/* >/dev/null
	[ "$(layers 'l[1]["layer"], l[1]["bytes"] == s["file_bytes"]')" = \
		"('tally', True)" ]
}
