#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Parts in files of their own: gpemu part, and the programs that open them.

bats_require_minimum_version 1.5.0

setup_file() {
	export PATH="$(realpath "${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}"):$PATH"
	cd "$BATS_FILE_TMPDIR"
	[ -n "${GPEMU_SANITIZED-}" ] || gpemu part new policy mine
	[ -n "${GPEMU_SANITIZED-}" ] || make -s -C mine
}

setup() {
	[ -z "${GPEMU_SANITIZED-}" ] ||
		skip "a part is built without the sanitizer of the program"
	cd "$BATS_FILE_TMPDIR"
}

teardown() {
	for at in view m; do
		! mountpoint -q "$BATS_FILE_TMPDIR/$at" || fusermount3 -u "$BATS_FILE_TMPDIR/$at"
	done
}

# json FILE EXPRESSION: of the record s
json() {
	python3 -c 'import json, sys
print(eval(sys.argv[2], {"s": json.load(open(sys.argv[1]))}))' "$@"
}

# bats test_tags=slow
@test "a new part of each kind passes its contract as it is" {
	for kind in policy layer order engine schedule scheduler; do
		run -0 gpemu part new $kind of_$kind all/$kind
		[[ $output == *"all/$kind/of_$kind.c"* ]]
		run -0 make -C all/$kind check
		[[ $output == *PASSED* && $output != *FAILED* &&
			$output != *warning* ]]
	done
	# nothing of the user's is written over
	run -1 gpemu part new policy of_policy all/policy
	[[ $output == *"has a part already"* ]]
}

@test "a new part in any folder, and through no link" {
	gpemu part new policy any "-a folder"
	make -s -C "./-a folder"
	cp "./-a folder/any.so" ./-any.so
	run -0 gpemu part check -any.so
	for name in any.c Makefile; do
		mkdir "of_$name"
		ln -s "$PWD/victim" "of_$name/$name"
		run ! gpemu part new policy any "of_$name"
		[ ! -e victim ]
	done
}

@test "a policy in a file decides in the simulator, on a mount and in simulated training" {
	gpemu-cachesim --dataset imagenet --files 2000 -p fifo,lru,mine/mine.so \
		-c 20% --json c >/dev/null
	# as fifo, of which it is a copy, and not as lru
	[ "$(json c '(lambda r: (r["fifo"] == r["mine"], r["lru"] == r["mine"]))(
		{r["policy"]: r["hit_ratio"] for r in s["results"]})')" = "(True, False)" ]
	gpemu-cachesim --dataset imagenet --files 500 --tier mine/mine.so:20% >/dev/null
	gpemu-train --simulate --prep none --data synth:imagenet,files=200 \
		--gpu v100 --model resnet50 --fs storage=nvme --fs cache_size=20% \
		--fs cache_policy=./mine/mine.so --json t >/dev/null
	[ "$(json t 's["config"]["fs"]')" != "" ]
	run -0 gpemu-s3 --dump-config --cache-policy ./mine/mine.so mine
	[[ $output == *"cache_policy: ./mine/mine.so"* ]]
	[ -w /dev/fuse ] || return 0
	mkdir -p data m
	for i in 1 2 3; do head -c 1000 /dev/urandom >data/$i; done
	gpemu-fs data m -s ideal --cache-policy ./mine/mine.so --cache-size 1M
	cat m/[123] m/[123] | cmp - <(cat data/[123] data/[123])
	[ "$(json m/.gpemu/stats 's["policy"]')" = mine ]
	# a remount opens no file of the mount, which keeps the one that it has
	mv mine/mine.so away.so
	run -0 gpemu-fs data m -o remount,storage=hdd
	[ -z "$output" ]
	[ "$(json m/.gpemu/stats '(s["storage"], s["policy"])')" = "('hdd', 'mine')" ]
	mv away.so mine/mine.so
	run -0 gpemu-fs data m -o remount,storage=nvme,cache_policy=./mine/mine.so
	[ "$(json m/.gpemu/stats '(s["storage"], s["policy"])')" = "('nvme', 'mine')" ]
	fusermount3 -u m
	# and of tiers
	gpemu-fs data m -s ideal --tier nvme:./mine/mine.so:50%
	grep -F 'nvme:./mine/mine.so:50%' m/.gpemu/config
	run -0 gpemu-fs data m -o remount,storage=hdd
	[ -z "$output" ]
	[ "$(json m/.gpemu/stats 's["storage"]')" = hdd ]
	fusermount3 -u m
}

@test "a layer in a file sees each read of a mount, and the faults below it" {
	[ -w /dev/fuse ] || skip "no /dev/fuse"
	gpemu part new layer tally && make -s -C tally
	mkdir -p lower view
	echo 1234 >lower/f
	gpemu-fs -s ideal -c 1M -p lru --layers trace,./tally/tally.so,fault,cache,device,source \
		lower view 3>&-
	[ "$(cat view/f view/f view/f)" = $'1234\n1234\n1234' ]
	echo 'fault add op=read,errno=EIO' >view/.gpemu/control
	run ! cat view/f
	[ "$(json view/.gpemu/stats '(lambda l: (l["count_requests"], l["count_failed"]))(
		[l for l in s["layers"] if l["layer"] == "tally"][0])')" = "(4, 1)" ]
	echo reset >view/.gpemu/control
	[ "$(json view/.gpemu/stats 's["layers"][0]["count_requests"]')" = 0 ]
	run -0 gpemu-fs lower view -o remount,storage=hdd
	[ -z "$output" ]
	fusermount3 -u view
	run -2 gpemu-fs --layers trace,cache,./tally/tally.so,device,source lower view
	[[ $output == *"'tally' cannot stand below 'cache'"* ]]
}

# bats test_tags=slow
@test "a policy in Python decides in simulations, and passes the contract" {
	run -0 gpemu part new python-policy script
	[[ $output == *"script/script.py is the policy"* ]]
	run -1 gpemu part new python-policy script
	run -0 make -s -C script check
	[[ $output == *PASSED* && $output != *warning* ]]
	cp -r script recent
	python3 - recent/script.py <<-'PY'
		import sys
		text = open(sys.argv[1]).read()
		text = text.replace("""    # def hit(self, obj): it was read again.
		""", """    def hit(self, obj):
		        self.queue.move_to_end(obj.key)
		""")
		open(sys.argv[1], "w").write(text)
	PY
	# whose script is the one next to it; a part of that name is known already
	for policy in script recent; do
		gpemu-cachesim --dataset imagenet --files 2000 -p fifo,lru,$policy/script.so \
			-c 20% --json $policy.json >/dev/null
	done
	[ "$(json script.json '[r["evictions"] for r in s["results"]]')" != "[0, 0, 0]" ]
	[ "$(json script.json '(lambda r: r[2] == r[0] != r[1])(
		[e["epochs"] for e in s["results"]])')" = True ]
	[ "$(json recent.json '(lambda r: r[2] == r[1] != r[0])(
		[e["epochs"] for e in s["results"]])')" = True ]
}

@test "a policy in Python knows classes, admits, and fails aloud" {
	gpemu part new python-policy class && make -s -C class
	sed -i 's/    # def admit.*/    def admit(self, obj):\n        return obj.label == 2 and obj.bytes == 100/' class/class.py
	mkdir -p d/a d/b
	for i in 1 2 3; do head -c 100 /dev/zero >d/a/$i; head -c 10$((i - 1)) /dev/zero >d/b/$i; done
	gpemu-cachesim --dir d -p class/class.so -c 100% -e 2 --json j >/dev/null
	[ "$(json j '[(e["hits"], e["misses"]) for e in s["results"][0]["epochs"]]')" = "[(0, 6), (1, 5)]" ]
	sed -i 's/return next.*/return 7/; /def admit/,+1d' class/class.py
	run -1 gpemu-cachesim --dir d -p class/class.so -c 40%
	[[ $output == *"victim() returned 7: no cached object"*"policy class: its script has failed" ]]
	rm class/class.py
	run -1 gpemu-cachesim --dir d -p class/class.so -c 40%
	[[ $output == *"class/class.py: No such file or directory" ]]
	[ -w /dev/fuse ] || return 0
	mkdir -p m
	run -1 gpemu-fs d m --cache-policy ./class/class.so --cache-size 1M
	[[ $output == *"a policy in Python is for simulations"* ]]
}

# bats test_tags=slow
@test "an order and an engine in files load real samples" {
	gpemu part new order back && gpemu part new engine plain
	sed -i 's/ret\[i\] = (uint32_t)i/ret[i] = (uint32_t)(in->n - 1 - i)/' back/back.c
	make -s -C back check >/dev/null && make -s -C plain
	gpemu-data make --dataset imagenet --files 8 photos >/dev/null
	run -0 gpemu-train --data photos --prep none --gpu v100 --model resnet50 \
		--batch 2 --epochs 1 --order ./back/back.so \
		--loader ./plain/plain.so --dump-order o --json t
	[ "$(grep -o '^[0-9]\+' o | head -n 8 | xargs)" = "7 6 5 4 3 2 1 0" ]
	[ "$(json t '(s["plugins"]["order"]["name"], s["plugins"]["loader"]["name"])')" = "('back', 'plain')" ]
}

@test "a schedule and a scheduler in files" {
	gpemu part new schedule line && make -s -C line
	run -0 gpemu-sched simulate --list policy:./line/line.so
	run -2 gpemu-gpud --scheduler ./line/line.so --gpus 1
	[[ $output == *"a part of another kind"* || $output == *"undefined symbol"* ]]
}

@test "a policy that breaks the contract fails the check" {
	cp -r mine broken
	# it never has anything to evict
	sed -i 's/return queue->tail;/return queue ? NULL : queue->tail;/' broken/mine.c
	run -2 make -C broken check
	[[ $output == *FAILED* ]]
}

@test "what is no part says why" {
	local cc="cc $(gpemu part flags)"
	run -2 gpemu-cachesim --dataset imagenet --files 100 -p ./none.so
	[[ $output == *"none.so: cannot open"* && ${#lines[@]} -le 2 ]]
	run -2 gpemu-cachesim --dataset imagenet --files 100 -p /etc/passwd
	echo 'int nothing;' | $cc -x c - -o nothing.so
	run -2 gpemu-cachesim --dataset imagenet --files 100 -p ./nothing.so
	[[ $output == *"it lacks PLUGIN_PART"* ]]
	run -1 gpemu part check .
	[ "$output" = "gpemu-part: .: no file that can be read" ]
	run -1 gpemu part check mine/mine.c
	[[ $output == *"mine.c: source: 'make check' beside it"* ]]
	run -1 gpemu part check ./nothing.so
	[[ $output == *"it lacks PLUGIN_PART"* ]]
	run -2 gpemu-train --simulate --data synth:imagenet,files=9 --gpu v100 \
		--model resnet50 --order ./mine/mine.so
	[[ $output == *"another kind"* || $output == *"undefined symbol: policy_table"* ]]
	# the headers of another version
	mkdir -p other/common
	echo '#define PART_HEADERS 1u' >other/common/part_headers.h
	cc -Iother ${cc#cc} mine/mine.c -o old.so
	run -2 gpemu-cachesim --dataset imagenet --files 100 -p ./old.so
	[[ $output == *"headers of another version"* ]]
	# what options, records and memory do not hold
	cat >odd.c <<-'END'
		#include "common/conf/conf.h"
		#include "common/conf/part.h"
		#include "fs/cache/policy.h"
		const struct conf_field fields[] = { { "x", CONF_INT, 0 }, { 0 } };
		const struct policy_ops policy_odd = { .plugin = { .name = "odd", .summary = "-", ODD }, };
		PLUGIN_PART(policy, odd)
	END
	odd() {
		$cc -w "-DODD=$1" -o odd.so odd.c
		run "-$2" gpemu-cachesim --dataset imagenet --files 100 -p ./odd.so -c 20%
		[[ $output == *"$3"* ]]
	}
	for name in '' a,b a:b a/b $'a\\033' -; do
		odd ".name = \"$name\"" 2 "it has no name"
	done
	odd ".options = fields" 2 "its options have no defaults"
	odd ".state_size = -1ul" 75 "Cannot allocate memory"
	odd "}, .entry_size = -1ul, .plugin = { .name = \"odd\", .summary = \"-\"" 75 \
		"Cannot allocate memory"
	gpemu part new policy lru && make -s -C lru
	run -2 gpemu-cachesim --dataset imagenet --files 100 -p ./lru/lru.so
	[[ $output == *"gpemu has a part called 'lru'"* ]]
	run -2 gpemu part new polcy x
	run -2 gpemu part new policy Not-A-Word
	[ ! -e x ] && [ ! -e Not-A-Word ]
}

@test "a function of the part with a name of the program's is its own" {
	cp -r mine same
	sed -i '/^const struct policy_ops/i\
/* also a function of the program */\
int err_set(struct err *err, int code, const char *fmt, ...);\
int err_set(struct err *err, int code, const char *fmt, ...)\
{\
	(void)err, (void)fmt;\
	return code - 1000;\
}\
static int same_init(void *state, const struct policy_params *p, struct err *e)\
{\
	(void)state, (void)p;\
	return err_set(e, 1000, "-") ? -22 : 0;\
}\
' same/mine.c
	sed -i 's/\.inserted = /.init = same_init,\n\t&/' same/mine.c
	make -s -C same check >/dev/null
}
