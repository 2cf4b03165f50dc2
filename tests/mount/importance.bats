#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Files that matter more than others, as a loader announces it in
# .gpemu/importance, and the policy that keeps them (tests/contract/
# test_policy_oracles.c has the policy).

bats_require_minimum_version 1.5.0
load mount

setup() { common_setup; }
teardown() { common_teardown; }

# announce EXPRESSION: the importance of the files i of n, in the order of their
# names; prints the error, if there is one
announce()
{
	python3 - "$mp" "$1" <<-'END'
		import os, struct, sys
		mp, value = sys.argv[1], eval("lambda i, n: " + sys.argv[2])
		inodes = [os.stat(os.path.join(d, f)).st_ino
		          for d, _, fs in sorted(os.walk(mp)) for f in sorted(fs)]
		b = b"".join(struct.pack("<If", x, value(i, len(inodes)))
		             for i, x in enumerate(inodes))
		try:
		    open(f"{mp}/.gpemu/importance", "wb", buffering=0).write(b)
		except OSError as e:
		    print(e.strerror)
	END
}

# bad BYTES: of Python; the name of the error
bad()
{
	python3 - "$mp" "$1" <<-'END'
		import errno, os, struct, sys
		mp, b = sys.argv[1], eval(sys.argv[2])
		try:
		    open(f"{mp}/.gpemu/importance", "wb", buffering=0).write(b)
		except OSError as e:
		    print(errno.errorcode[e.errno])
	END
}

# cached: the numbers of the files in the cache, by reading all once more
cached()
{
	echo reset >"$mp/.gpemu/control"
	python3 - "$mp" <<-'END'
		import glob, json, sys
		def hits():
		    return json.load(open(sys.argv[1] + "/.gpemu/stats"))["hits"]
		for f in sorted(glob.glob(sys.argv[1] + "/**/f*", recursive=True)):
		    before = hits()
		    open(f, "rb").read()
		    if hits() > before:
		        print(f.rpartition("/f")[2], end=" ")
	END
}

@test "the cache has the most important files, whatever is read, and follows" {
	for i in $(seq 0 9); do
		head -c 1000 /dev/urandom >"$src/f$i"
	done
	gpemu-fs -p shade -c 3000 "$src" "$mp"
	[ "$(stat_of "['uses_importance']")" = True ]
	# nothing is important: what is read first stays, as with minio
	cat "$mp"/f? >/dev/null
	[ "$(cached)" = "0 1 2 " ]
	announce "float(i)"
	cat "$mp"/f? >/dev/null
	[ "$(cached)" = "7 8 9 " ]
	# what is cached matters less now, and the next read takes its place
	announce "float(n - i)"
	cat "$mp"/f? >/dev/null
	[ "$(cached)" = "0 1 2 " ]
	# it is not the cache's: another one knows it, too
	echo "set cache_policy lru" >"$mp/.gpemu/control"
	[ "$(stat_of ".get('uses_importance')")" = None ]
	announce "float(i)"
	echo "set cache_policy shade" >"$mp/.gpemu/control"
	cat "$mp"/f? "$mp"/f? >/dev/null
	[ "$(cached)" = "7 8 9 " ]
	echo drop-cache >"$mp/.gpemu/control"
	cat "$mp"/f? >/dev/null
	[ "$(cached)" = "7 8 9 " ]
}

@test "a write that is not well-formed is refused, and changes nothing" {
	for i in $(seq 0 9); do
		head -c 2000 /dev/urandom >"$src/f$i"
	done
	gpemu-fs -p shade -c 2000 -f "$src" "$mp" 2>"$BATS_TEST_TMPDIR/log" 3>&- &
	pids=$!
	is_mounted() { mountpoint -q "$mp"; }
	eventually is_mounted
	f3=$(stat -c %i "$mp/f3")
	[ -z "$(announce "float(i == 3)")" ]
	for tail in "b'x'" "struct.pack('<If', 0, 1)" \
		"struct.pack('<If', 1 << 31, 1)" "struct.pack('<If', 1, 1)" \
		"struct.pack('<If', $f3, -1)" \
		"struct.pack('<If', $f3, float('inf'))" \
		"struct.pack('<If', $f3, float('nan'))"; do
		[ "$(bad "struct.pack('<If', $f3, 0) + $tail")" = EINVAL ]
	done
	[ "$(grep -c "importance: " "$BATS_TEST_TMPDIR/log")" = 7 ]
	grep -q "record 1: no file has the inode number 0" "$BATS_TEST_TMPDIR/log"
	grep -q "a write of 9 bytes" "$BATS_TEST_TMPDIR/log"
	cat "$mp"/f? >/dev/null
	[ "$(cached)" = "3 " ]
	# an empty write, and one of a mebibyte
	[ -z "$(bad "b''")" ]
	[ -z "$(bad "struct.pack('<If', $f3, 2) * (1 << 17)")" ]
	[ "$(stat -c %a "$mp/.gpemu/importance")" = 600 ]
}

# hits POLICY: of the last of three epochs of 500 draws from 500 files, of which a
# fifth is drawn 16 times as often as the others
hits()
{
	gpemu-fs -p "$1" -c 20% "$src" "$mp"
	gpemu-train --data "$mp" --loader sync --workers 1 --prep none --pin off \
		-b 10 -e 3 \
		--order "weighted:by=sample,file=$BATS_TEST_TMPDIR/weights" \
		--model resnet50 --time-scale 0.01 --json "$BATS_TEST_TMPDIR/json" \
		>/dev/null
	python3 - "$BATS_TEST_TMPDIR/json" <<-'END'
		import json, sys
		e = json.load(open(sys.argv[1]))["epochs"][-1]
		assert e["hits"] + e["misses"] == 500, e
		print(e["hits"])
	END
	fusermount3 -u "$mp"
}

@test "gpemu-train announces its weights; important samples hit more than lru's" {
	make_files 500 1000
	for i in $(seq 0 499); do
		echo $((i % 5 ? 1 : 16))
	done >"$BATS_TEST_TMPDIR/weights"
	lru=$(hits lru)
	shade=$(hits shade)
	# 16 x 100 of 2000 are 80 % of 500, within five deviations
	echo "lru $lru shade $shade"
	[ "$shade" -ge 355 ]
	[ "$shade" -le 445 ]
	[ "$lru" -lt $((shade - 40)) ]
	# a simulation has the same draws
	gpemu-train --simulate --data "$src" --loader sync --workers 1 --prep none --pin off \
		-b 10 -e 3 \
		--order "weighted:by=sample,file=$BATS_TEST_TMPDIR/weights" \
		--fs cache_policy=shade --fs cache_size=20% --model resnet50 \
		--json "$BATS_TEST_TMPDIR/json" >/dev/null
	[ "$(python3 -c 'import json, sys
print(json.load(open(sys.argv[1]))["epochs"][-1]["hits"])' "$BATS_TEST_TMPDIR/json")" = "$shade" ]
}

# of the last of 30 epochs of 250 draws
class_hits()
{
	gpemu-train "${@:2}" --loader sync --workers 1 --prep none --pin off -b 10 \
		-e 30 --order weighted --model resnet50 --time-scale 0.01 \
		--json "$BATS_TEST_TMPDIR/$1" >/dev/null
	python3 - "$BATS_TEST_TMPDIR/$1" <<-'END'
		import json, sys
		epochs = json.load(open(sys.argv[1]))["epochs"][10:]
		print(*(e["hits"] for e in epochs))
		print(*(e["distinct_samples"] for e in epochs))
	END
}

@test "balanced: classes that are drawn alike share the cache, in a mount as simulated" {
	local class i
	for class in 200:common 40:seldom 10:rare; do
		mkdir -p "$src/${class#*:}"
		for i in $(seq "${class%:*}"); do
			head -c 1000 /dev/zero >"$src/${class#*:}/$i"
		done
	done
	gpemu-fs -p balanced -c 90000 "$src" "$mp"
	class_hits live --data "$mp" >"$BATS_TEST_TMPDIR/hits"
	fusermount3 -u "$mp"
	class_hits simulated --simulate --data "$src" --fs cache_policy=balanced \
		--fs cache_size=90000 >"$BATS_TEST_TMPDIR/same"
	diff "$BATS_TEST_TMPDIR/hits" "$BATS_TEST_TMPDIR/same"
	# 40 of 200, all of 40 and of 10: 73.3 % of 5000 draws, within five deviations
	head -n 1 "$BATS_TEST_TMPDIR/hits" | awk '{ for (i = 1; i <= NF; i++) n += $i
		print n, NF; exit NF != 20 || n < 3511 || n > 3823 }'
}
