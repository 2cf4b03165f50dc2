#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A new part is one new file and one word: the examples of examples/parts are
# added to a copy of the tree, which is built and run.

bats_require_minimum_version 1.5.0

setup() {
	[ -n "${GPEMU_FULL-}" ] || skip "builds a tree of its own: tests/run --full"
	[ -z "${GPEMU_SANITIZED-}" ] || skip "builds a tree of its own"
	root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd -P)
	git() { command git -c safe.directory='*' -c user.name=t -c user.email=t@t "$@"; }
	git -C "$root" rev-parse --is-inside-work-tree >/dev/null ||
		skip "not a git checkout"
	tree=$BATS_TEST_TMPDIR/tree
	mkdir "$tree"
	# the tree as it is, committed or not
	(cd "$root" && git ls-files -z -co --exclude-standard |
		while IFS= read -rd '' f; do [ -e "$f" ] && printf '%s\0' "$f"; done |
		tar -c --null -T -) | tar -x -C "$tree"
	cd "$tree"
	git init -q .
	keep
}

# everything that is there
keep() {
	git add -A
	git commit -q --allow-empty -m x
}

# part FILE ROOM MESON AFTER: the file goes into the room, its word behind the
# word AFTER of the list in MESON; no other file is touched
part() {
	local word=${1#*_}
	word=${word%.c}
	cp "examples/parts/$1" "$2"
	sed -i "s/'$4',/& '$word',/" "$3"
	git add -A
	[ "$(git diff --cached --name-status)" = "A	$2/$1
M	$3" ] || [ "$(git diff --cached --name-status)" = "M	$3
A	$2/$1" ]
	[ "$(git diff --cached --word-diff=porcelain "$3" | grep '^[-+][^-+]')" = "+'$word'," ]
	git commit -q -m "$1"
}

@test "a policy, an engine with an option, a format: one file and one word each" {
	part policy_mru.c fs/cache/policy fs/cache/policy/meson.build lru
	part engine_blocks.c loader/engine loader/meson.build sync
	part format_jsonl.c loader/format loader/meson.build tar
	tests/rooms # no room became too large, no arrow is new

	meson setup build --buildtype=plain -Dwerror=true -Dman=disabled >log || cat log
	ninja -C build gpemu-train gpemu-cachesim gpemu-data tests/unit/test_plugin \
		tests/contract/test_policies tests/contract/test_engines >log || { cat log; false; }

	# a reader that repeats one order needs the latest objects last
	build/gpemu-cachesim --dataset imagenet --files 400 -p lru,mru -c 50% \
		--order sequential --json sim.json
	python3 - <<-'PY'
		import json
		lru, mru = json.load(open('sim.json'))['results']
		assert lru['hit_ratio'] == 0 and mru['hit_ratio'] > .4, (lru, mru)
	PY

	mkdir data
	python3 - <<-'PY'
		for k in range(2):
		    with open('data/%d.jsonl' % k, 'w') as f:
		        f.write('\n'.join('{"text": "%s"}' % ('x' * 1000 * i)
		                          for i in range(100)) + '\n' * k)
	PY
	run build/gpemu-train --data data --loader blocks:block=1K --prep none -b 10 \
		--time-scale 0.001 --json record.json
	echo "$output"
	[ "$status" -eq 0 ]
	python3 - <<-'PY'
		import json
		j = json.load(open('record.json'))
		assert j['dataset']['format'] == 'jsonl', j['dataset']
		assert j['totals']['samples'] == 200 and j['totals']['steps'] == 20
		assert j['totals']['bytes'] == 200 * 12 + 2000 * 99 * 50, j['totals']
		assert j['plugins']['loader'] == {
		    'name': 'blocks', 'options': {'block': '1K'}}, j['plugins']
	PY
	run build/gpemu-train --loader blocks:blocks=1K --data data
	[ "$status" -eq 2 ]
	[[ $output == *"engine blocks: unknown option 'blocks' (known: block)" ]]
	[[ $(build/gpemu-train --list engine) == *"blocks "*"[block=8K]"* ]]

	# the contract tests run what is registered
	export GPEMU_PROFILES=$tree/profiles
	for test in unit/test_plugin contract/test_policies contract/test_engines; do
		build/tests/$test >log 2>&1 || { cat log; false; }
	done
}
