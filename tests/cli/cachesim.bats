#!/usr/bin/env bats
# SPDX-License-Identifier: MIT

bats_require_minimum_version 1.5.0

setup() {
	PATH="$(realpath "${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}"):$PATH"
	unset GPEMU_PROFILES
	cd "$BATS_TEST_TMPDIR"
}

# json FILE EXPRESSION: of the record s
json() {
	python3 -c 'import json, sys
print(eval(sys.argv[2], {"s": json.load(open(sys.argv[1]))}))' "$@"
}

one_line() {
	[ "${#lines[@]}" -eq 1 ]
}

# records TIME,ID,SIZE,NEXT...: an oracleGeneral trace on stdout
records() {
	python3 -c 'import struct, sys
for a in sys.argv[1:]:
    sys.stdout.buffer.write(struct.pack("<IQIq", *map(int, a.split(","))))' \
		"$@"
}

@test "closed forms: minio hits the share, lru and fifo their formulas" {
	python3 -c '
import random
r = random.Random(3)
for e in range(6):
    v = list(range(10000))
    r.shuffle(v)
    for k in v:
        print(f"{e},{k},100")' >t.csv
	gpemu-cachesim --trace t.csv -p minio,lru,fifo,random -c 35% --json j \
		>/dev/null
	# one epoch of six passes: the first has no hits
	json j '[abs(r["hit_ratio"] * 6 / 5 - h) < .01 for r, h in
		zip(s["results"], [.35, .070, .081, .140])]' >out
	[ "$(cat out)" = "[True, True, True, True]" ]
}

@test "a csv trace by hand: the header gives the order of columns" {
	printf 'size,time,id\n10,1,a\n10,2,b\n10,3,a\n10,4,c\n10,5,a\n10,6,b\n' \
		>t.csv
	gpemu-cachesim --trace t.csv -p lru,fifo,belady -c 20 --json j
	[ "$(json j '[r["epochs"][0]["hits"] for r in s["results"]]')" = \
		"[2, 1, 3]" ]
	[ "$(json j 's["trace"]["objects"], s["trace"]["bytes"]')" = "(3, 30)" ]
}

@test "the same requests as csv and as oracleGeneral" {
	printf '1,5,10\n\n2,6,20\r\n3,5,10\n4,18446744073709551615,5\n' >t.csv
	records 1,5,10,2 2,6,20,-1 3,5,10,-1 4,18446744073709551615,5,-1 >t.bin
	gpemu-cachesim --trace t.csv -c 100%,15 --epochs 3 >csv
	gpemu-cachesim --trace t.bin -c 100%,15 --epochs 3 >bin
	cp t.bin t
	gpemu-cachesim --trace t --trace-format bin -c 100%,15 -e 3 >any
	[ "$(wc -l <csv)" -gt 20 ]
	cmp <(head -n -1 csv) <(head -n -1 bin)
	cmp <(head -n -1 csv) <(head -n -1 any)
	[ "$(tail -n 1 any)" = "Read t as oracleGeneral: 4 requests of 4 records in 3 s" ]
}

@test "a malformed csv says where" {
	printf 'time,id,size\n1,5,10\n2,6,ten\n' >t.csv
	run -1 gpemu-cachesim --trace t.csv
	one_line
	[[ "$output" == *"t.csv:3:5: 'ten' is not a size in bytes" ]]
	printf '1,5,10\n2,6\n' >t.csv
	run -1 gpemu-cachesim --trace t.csv
	one_line
	[[ "$output" == *"t.csv:2:1: 2 columns, and size is column 3" ]]
	printf 'time,id,bytes\n1,5,10\n' >t.csv
	run -1 gpemu-cachesim --trace t.csv
	[[ "$output" == *"t.csv:1:1: no column 'size' in the header: say"* ]]
	printf '1,,10\n' >t.csv
	run -1 gpemu-cachesim --trace t.csv
	[[ "$output" == *"t.csv:1:3: empty id" ]]
	printf '1,2,-10\n' >t.csv
	run -1 gpemu-cachesim --trace t.csv
	[[ "$output" == *"t.csv:1:5: '-10' is not a size in bytes" ]]
	printf '1,2,99999999999999999999\n' >t.csv
	run -1 gpemu-cachesim --trace t.csv
	[[ "$output" == *"t.csv:1:5: '99999999999999999999' is not a size"* ]]
	: >t.csv
	run -1 gpemu-cachesim --trace t.csv
	[[ "$output" == *"t.csv: empty" ]]
	printf 'time,id,size\n' >t.csv
	run -1 gpemu-cachesim --trace t.csv
	[[ "$output" == *"t.csv: contains no requests: of 0 records "* ]]
}

@test "a malformed binary trace says where" {
	records 1,5,10,1 2,5,10,-1 >t.bin
	gpemu-cachesim --trace t.bin >/dev/null
	printf 'abc' >>t.bin
	run -1 gpemu-cachesim --trace t.bin
	one_line
	[[ "$output" == *"t.bin: offset 48: a record of 3 bytes, not 24" ]]
	records 1,5,10,1 2,5,10,1 >t.bin
	run -1 gpemu-cachesim --trace t.bin
	one_line
	[[ "$output" == *"t.bin: offset 24: 1 as the next request of request 1"* ]]
}

@test "policies with options, next to those without" {
	run gpemu-cachesim --dataset imagenet --files 500 -e 3 -c 35% --json sim.json \
		-p lru,slru:protected=0,slru,s3fifo:small=0.5,uses=7,promote=1,sieve
	[ "$status" -eq 0 ]
	python3 - <<-'PY'
		import json
		r = json.load(open('sim.json'))['results']
		assert [x['policy'] for x in r] == [
		    'lru', 'slru:protected=0', 'slru',
		    's3fifo:small=0.5,uses=7,promote=1', 'sieve'], r
		hits = [x['hit_ratio'] for x in r]
		assert hits[0] == hits[1] != hits[2], hits
	PY
	run -2 gpemu-cachesim --dataset imagenet -p lru,slru:protected=2,sieve
	[[ "$output" == *"cache policy slru: protected: 2 is outside 0..1" ]]
	run -2 gpemu-cachesim --dataset imagenet -p lru:x=1,sieve
	[[ "$output" == *"cache policy lru: unknown option 'x' (it has none)" ]]
	run -1 gpemu-cachesim --dataset imagenet --files 10 -p s3fifo:uses=1
	[[ "$output" == *"s3fifo: promote=2 is never reached with uses=1"* ]]
}

@test "usage errors" {
	run -2 gpemu-cachesim
	one_line
	run -2 gpemu-cachesim --dataset imagenet --dir .
	[[ "$output" == *"give one of --dataset, --dir and --trace"* ]]
	run -2 gpemu-cachesim --dataset imagenet -p lru,belledy
	[[ "$output" == *"unknown cache policy 'belledy'; did you mean 'belady'? (known: none lru"* ]]
	run -2 gpemu-cachesim --dataset imagenet -c 10%,
	[[ "$output" == *"'' is not a cache size"* ]]
	run -2 gpemu-cachesim --dataset imagenet --plot x.jpg
	[[ "$output" == *"a plot file must end in .svg, .png or .pdf" ]]
	run -2 gpemu-cachesim --dir . --files 3
	run -2 gpemu-cachesim --dir . --trace-format csv
	run -1 gpemu-cachesim --trace none.csv
	[[ "$output" == *"none.csv: No such file or directory" ]]
	echo 1,2,3 >none
	run -1 gpemu-cachesim --trace none
	[[ "$output" == *"none: unknown layout"*"--trace-format"* ]]
	run -1 gpemu-cachesim --dataset imagenet --files 9 --order zigzag
	[[ "$output" == *"(known: shuffle sequential replacement)" ]]
	mkdir empty
	run -1 gpemu-cachesim --dir empty
	[[ "$output" == *"empty: contains no files" ]]
}

# reads TRACE=NUMBERS...: requests, objects, bytes and hits of each, with a
# cache for all of it; standard input is that of this function
reads() {
	python3 -c 'import json, os, subprocess, sys
for case in sys.argv[1:]:
    trace, _, numbers = case.rpartition("=")
    if trace[0] == "-":
        os.lseek(0, 0, 0)
    out = subprocess.run(["gpemu-cachesim", "-p", "lru", "-c", "100%", "-j", "1",
                          "--json", "-", "--trace", trace],
                         stdout=subprocess.PIPE, close_fds=False).stdout
    j = json.loads(out)
    t = j["trace"]
    is_ = [t["read"]["requests"], t["objects"], t["bytes"],
           j["results"][0]["epochs"][0]["hits"]]
    assert is_ == [int(x) for x in numbers.split(",")], (case, is_, t)' "$@"
}

# read_as TRACE EXPRESSION...: conditions on what was read, as r
read_as() {
	gpemu-cachesim -p lru -c 100% --json j --trace "$1" >out
	python3 -c 'import json, sys
r = json.load(open("j"))["trace"]["read"]
for x in sys.argv[1:]:
    assert eval(x), (x, r)' "${@:2}"
}

@test "csv as others write it: order mark, CRLF, blanks, quotes, comments" {
	printf '\xef\xbb\xbfid,size\na,10\nb,20\na,10\n' >mark.csv
	printf 'time,id,size\r\n0,a,10\r\n1,b,20\r\n2,a,10\r\n' >crlf.csv
	printf 'time, id, size\n0, a, 10\n1, b , 20\n2, a, 10\n' >blanks.csv
	printf 'time,id,size\n0,"a,b",10\n1,c,"20"\n2,"a,b",10\n' >quotes.csv
	printf '# from\n0,a,10\n\n#\n1,b,20\n2,a,10' >comments.csv
	printf '0.5,a,10\n1.5,b,20\n2.5,a,10\n' >fractions.csv
	printf '0,a,0\n1,b,20\n2,a,0\n' >zero
	printf '0,a,5000000000\n1,b,20\n2,a,5000000000\n' >big
	for f in *.csv; do
		echo $f=3,2,30,1
	done >all
	# shellcheck disable=SC2046 # words
	reads $(cat all) zero:csv=3,2,20,1 big:csv=3,2,5000000020,1
	read_as comments.csv "r['left_out']['comments'] == 2" "r['span_s'] == 2"
	[[ $(tail -n 1 out) == \
		"Read comments.csv as csv (time=1,key=2,size=3): 3 requests of 3 records in 2 s; left out: 2 lines of comment" ]]
	read_as mark.csv "r['columns'] == 'key=1,size=2'" "r['header']" \
		"r['layout'] == 'csv'" "r['file'] == 'mark.csv'"
	printf '0,"a,10\n' >open.csv
	run -1 gpemu-cachesim --trace open.csv
	[[ $output == *"open.csv:1:3: a quote that does not end" ]]
}

@test "csv with other columns: refused with what to write, or as the options say" {
	printf '%s\n' op_time,key,key_size,op,op_count,size,cache_hits,ttl \
		1,9x,5,GET,1,100,0,0 2,8x,5,SET,1,90,0,0 4,9x,5,GET,1,100,0,0 >m.csv
	tail -n +2 m.csv | tee bare.csv | tr , ';' >semicolon
	cp bare.csv "a:b=c"
	reads m.csv:key=key,size=size=3,2,190,1 m.csv:key=2,size=6=3,2,190,1 \
		bare.csv:key=2,size=3+6=3,2,200,1 "a:b=c:key=2,size=6=3,2,190,1" \
		m.csv:key=key,size=size,op=op,ops=get,gets=2,1,100,1 \
		semicolon:key=2,size=6,delimiter=semicolon=3,2,190,1
	read_as m.csv:key=key,size=size,op=op,ops=get,gets,time=op_time,unit=ms \
		"r['left_out'] == {'other_operations': 1, 'unsized': 0, 'comments': 0}" \
		"r['span_s'] == .003" "r['requests'] == 2" "r['records'] == 3"
	while read -r trace why; do
		run -1 gpemu-cachesim --trace "$trace"
		one_line
		echo "expected: $why"
		[[ $output == *"$why"* ]]
	done <<-'END'
		m.csv m.csv:1:1: no column 'id' in the header: say which is which, as in FILE:key=NAME,size=NAME
		bare.csv bare.csv:1:1: 8 columns and no header: say which is which, as in FILE:time=1,key=2,size=4
		m.csv:key=who,size=size m.csv:1:1: no column 'who' in the header
		m.csv:key=2 size=COLUMN is missing
		m.csv:key=2,size=6,op=op op=COLUMN and ops=NAME,... need each other
		m.csv:key=2,size=6,header=off m.csv:1:34: 'size' is not a size
		m.csv:key=2,size=6,unit=h unit: unknown word 'h' (known: s ms us ns 100ns)
		m.csv:key=2,size=99 m.csv:1:1: no column 99: they are 1 to 32
		m.csv:kye=2 unknown option 'kye'; did you mean 'key'? (known: time key size
		m.csv:mrs unknown trace layout 'mrs'; did you mean 'msr'? (known: mount csv
		m.csv:mrs:op=2 unknown trace layout 'mrs'; did you mean 'msr'? (known: mount csv
		m.csv:msr m.csv: contains no requests: of 4 records 4 are of other
	END
	run -1 gpemu-cachesim --trace m.csv:msr --trace-format ibm
	[[ $output == *"its layout is given twice"* ]]
}

@test "layouts: Twitter, MSR Cambridge, IBM's object store" {
	# a get that missed there, and a set
	printf '%s\n' 0,yDqF:3q:1AbCdE,17,27,1,get,0 1,zzq,3,40,2,get,0 \
		2,yDqF:3q:1AbCdE,17,27,1,get,0 | tee t.csv >u.csv
	printf '%s\n' 3,new,3,0,1,get,0 4,new,3,9,1,set,60 5,new,3,9,1,gets,0 >>u.csv
	# 7 blocks, a write, 1 of the 7, and the same offset of another disk
	printf '%s\n' 128166372003061629,usr,0,Read,7014609920,24576,41286 \
		128166372016382155,usr,0,Write,1317441536,8192,1963 \
		128166372026382245,usr,0,Read,7014612000,96,1963 \
		128166372026382245,usr,1,Read,7014612000,96,1963 >m.csv
	printf '%s\n' '1219008 REST.PUT.OBJECT 8d4fcda3d675bac9 1056' \
		'1221974 REST.HEAD.OBJECT 39d177fb735ac5df 528' \
		'1232488 REST.GET.OBJECT 95d363d3fbdc0b03 1168 0 1167' \
		'1234545 REST.GET.OBJECT bfc07f9981aa6a5a 528 0 527' \
		'1234546 REST.GET.OBJECT 95d363d3fbdc0b03' \
		'1256488 REST.GET.OBJECT bfc07f9981aa6a5a 528 0 99' >ibm
	reads t.csv:twitter=3,2,87,1 u.csv:twitter=4,3,99,1 \
		u.csv:twitter:ops=get,gets,set=5,3,99,2 \
		m.csv:msr=9,8,32768,1 m.csv:msr:block=64K=3,2,131072,1 \
		m.csv:msr:ops=Read,Write=11,10,40960,1 ibm:ibm=3,2,1696,1
	read_as u.csv:twitter "r['columns'] == 'time=1,key=2,size=3+4,op=6'" \
		"r['left_out'] == {'other_operations': 1, 'unsized': 1, 'comments': 0}"
	read_as m.csv:msr "abs(r['span_s'] - 2.3321) < .0001" "r['records'] == 4"
	read_as ibm:ibm "r['span_s'] == 24" \
		"r['left_out'] == {'other_operations': 2, 'unsized': 1, 'comments': 0}"
	printf '1,usr,0,Read,0,274877906944,1\n' >huge.csv
	run -1 gpemu-cachesim --trace huge.csv:msr
	[[ $output == *"huge.csv:1:14: more than 65536 blocks at once" ]]
	run -0 gpemu-cachesim --list layout
	[[ $output == *twitter*msr*ibm* ]]
}

@test "prompts of a KV cache, as Mooncake publishes them" {
	printf '%s\n' '{"timestamp": 0, "input_length": 900, "hash_ids": [0, 1]}' \
		'{"timestamp": 2500, "hash_ids": [0, 2]}' >k.jsonl
	reads k.jsonl=4,3,$((3 * 512 * 327680)),1 \
		k.jsonl:mooncake:token_bytes=1,block=16=4,3,48,1
	read_as k.jsonl "r['layout'] == 'mooncake'" "r['span_s'] == 2.5" "r['records'] == 2"
	printf '{"hash_ids": [1]}\n\n{"hash_ids": [-1]}\n' >bad
	run -1 gpemu-cachesim --trace bad
	[[ $output == *"bad:3:1: hash_ids must be non-negative integers" ]]
	printf '{"hash_ids": [1]}\n{"hash_ids": [1]' >cut
	run -1 gpemu-cachesim --trace cut
	[[ $output == *"cut:2:16: "* ]]
}

@test "a trace in a pipe, compressed by zstd, or named as libCacheSim does" {
	command -v zstd >/dev/null || skip "zstd is not installed"
	records 0,1,10,2 1,2,20,-1 2,1,10,-1 >t.oracleGeneral
	cp t.oracleGeneral t.oracleGeneral.bin
	zstd -q t.oracleGeneral.bin
	# two frames, and a name that says nothing
	{ head -c 30 t.oracleGeneral | zstd -c; tail -c +31 t.oracleGeneral |
		zstd -c; } >two
	reads {t.oracleGeneral,t.oracleGeneral.bin,t.oracleGeneral.bin.zst,two:bin}=3,2,30,1 \
		{-:bin,-:oracleGeneral}=3,2,30,1 <t.oracleGeneral
	mkfifo pipe
	cat two >pipe 3>&- &
	pid=$!
	read_as pipe:oracleGeneral "r['compression'] == 'zstd'" "r['requests'] == 3"
	wait $pid
	# lines that the window cuts
	python3 -c '
for i in range(60000):
    print(f"{i},{i % 1000},{i % 1000 + 1},{chr(97 + i % 26) * (i % 60)}")' >long.csv
	zstd -q long.csv
	for f in long.csv long.csv.zst; do
		reads -:time=1,key=2,size=3=60000,1000,500500,59000 <$f
	done
	read_as <(cat long.csv):key=2,size=3 "r['requests'] == 60000" \
		"r['compression'] is None"
	run -1 gpemu-cachesim --trace - <t.oracleGeneral
	[[ $output == *"-: unknown layout: write -:LAYOUT"* ]]
	head -c 40 two >cut
	run -1 gpemu-cachesim --trace cut:bin
	[[ $output == *"cut: zstd: truncated" ]]
	gzip -c t.oracleGeneral >t.gz
	run -1 gpemu-cachesim --trace t.gz:bin
	[[ $output == *"t.gz: gzip is not supported: zcat FILE | "* ]]
}

@test "results do not depend on the number of threads" {
	gpemu-cachesim --dataset imagenet --files 3000 -j 1 --per-epoch >one
	gpemu-cachesim --dataset imagenet --files 3000 -j 7 --per-epoch >seven
	[ "$(wc -l <one)" -gt 500 ]
	cmp one seven
	gpemu-cachesim --dataset imagenet --files 3000 --per-epoch --seed 1 \
		>other
	run ! cmp -s one other
}

@test "a record is written into a pipe or through a link, replacing neither" {
	printf '1,5,10\n' >t.csv
	mkfifo pipe
	timeout 10 cat pipe >record 3>&- &
	reader=$!
	timeout 10 gpemu-cachesim --trace t.csv -p lru -c 10% --json pipe
	wait $reader
	[ -p pipe ]
	grep -q '"policy": "lru"' record
	ln -s record link
	gpemu-cachesim --trace t.csv -p fifo -c 10% --json link
	[ -L link ]
	grep -q '"policy": "fifo"' record
}

@test "ids that are the same number are the same object only if written so" {
	printf '%s\n' 1,7,10 2,07,10 3,007,10 4,0,10 5,00,10 6,7,10 >ids.csv
	gpemu-cachesim --trace ids.csv -p lru -c 100% --json out.json >/dev/null
	[ "$(python3 -c 'import json
t = json.load(open("out.json"))["trace"]
print(t["requests"], t["objects"])')" = '6 5' ]
}

@test "orders: a scan defeats lru and not minio" {
	gpemu-cachesim --dataset imagenet --files 2000 --order sequential \
		-p lru,minio -c 35% --json j >/dev/null
	[ "$(json j 's["results"][0]["hit_ratio"]')" = 0.0 ]
	[ "$(json j 's["results"][1]["byte_hit_ratio"] > .34')" = True ]
	gpemu-cachesim --dataset imagenet --files 2000 --order replacement \
		-p lru -c 35% --json j >/dev/null
	[ "$(json j 'abs(s["results"][0]["byte_hit_ratio"] - .35) < .04')" = \
		True ]
}

@test "warm-up epochs are left out of the mean" {
	gpemu-cachesim --dataset imagenet --files 1000 -p minio -c 50% -e 3 \
		--warmup 0 --json j >/dev/null
	[ "$(json j 's["warmup"], s["trace"]["epochs"]')" = "(0, 3)" ]
	json j 'abs(s["results"][0]["hit_ratio"] -
		s["results"][0]["epochs"][2]["hit_ratio"] * 2 / 3) < 1e-9' >out
	[ "$(cat out)" = True ]
	gpemu-cachesim --dataset imagenet --files 1000 -p minio -c 50% -e 3 \
		--warmup 9 --json j >/dev/null
	[ "$(json j 's["warmup"]')" = 2 ]
}

@test "metadata takes its share of the capacity" {
	gpemu-cachesim --dataset imagenet --files 1000 -p minio -c 100% \
		--json j --metadata >/dev/null
	# all but the bookkeeping of a thousand files
	json j '.97 < s["results"][0]["hit_ratio"] < 1' >out
	[ "$(cat out)" = True ]
	[ "$(json j 's["results"][0]["metadata_bytes"] > 48000')" = True ]
}

@test "a plot" {
	command -v gnuplot || skip "gnuplot is not installed"
	gpemu-cachesim --dataset imagenet --files 500 -p lru,minio \
		-c 20%,50%,80% --plot "it's.svg" >/dev/null
	grep -q '<svg' "it's.svg"
	grep -q minio "it's.svg"
	gpemu-cachesim --dataset imagenet --files 500 -p lru,minio \
		-c 20%,50%,80% --plot p.png >/dev/null
	[ "$(head -c 4 p.png | tail -c 3)" = PNG ]
	run -1 --separate-stderr gpemu-cachesim --dataset imagenet \
		--files 500 -p lru --plot nowhere/p.png
	[[ "$stderr" == *"nowhere/p.png: No such file or directory" ]]
}

# mount_trace ROW...: a trace of gpemu-fs with two files
mount_trace() {
	printf '%s\n' '#gpemu-fs-trace 1' '#sizes 10,20*1' \
		time,op,id,size,offset,bytes,seq,result,requested_us,achieved_us,error,file_size,path \
		"$@" >t.csv
}

# row OP ID SIZE SEQ
row() {
	echo "0.1,$1,$2,$3,0,$3,$4,miss,1.0,2.0,,$3,a"
}

@test "a trace of gpemu-fs: ordered by seq, lines without an access ignored" {
	mount_trace "$(row read 2 20 4)" "$(row lookup 1 10 '')" \
		"$(row read 1 10 1)" "$(row passthrough 1 10 2)" \
		"$(row epoch '' '' 3)" "$(row read 1 10 6)" \
		"$(row drop-cache '' '' 5)"
	run -0 gpemu-cachesim --trace t.csv -p lru,belady -c 100% --json j
	[ "$(json j '[[(e["hits"], e["misses"]) for e in r["epochs"]]
		for r in s["results"]]')" = "[[(1, 1), (0, 2)], [(1, 1), (0, 2)]]" ]
	[ "$(json j 's["trace"]["bytes"]')" = 30 ]
	# repeated: the drop occurs again, and what it left is hit first
	run -0 gpemu-cachesim --trace t.csv -p lru -c 100% -e 2 --json j
	[ "$(json j '[(e["hits"], e["misses"]) for e in
		s["results"][0]["epochs"]]')" = "[(1, 1), (0, 2), (2, 0), (0, 2)]" ]
}

@test "a trace of gpemu-fs with a gap warns; a malformed one says where" {
	mount_trace "$(row read 1 10 1)" "$(row read 1 10 4)"
	run -0 gpemu-cachesim --trace t.csv -p lru -c 100%
	[[ "$output" == *"the trace lacks 2 accesses"* ]]
	mount_trace "$(row read 1 10 1)" "$(row read 2 20 1)"
	run -1 gpemu-cachesim --trace t.csv
	[[ "$output" == *"t.csv: seq 1 occurs twice: does it mix the traces of two mounts?" ]]
	for bad in "$(row read x 10 1)" "$(row read 1 -1 1)" \
		"$(row read 1 10 x)" "$(row jump 1 10 1)" 1,2,3; do
		mount_trace "$(row read 1 10 2)" "$bad"
		run -1 gpemu-cachesim --trace t.csv
		one_line
		[[ "$output" == *"t.csv:5: "* ]]
	done
	mount_trace "$(row lookup 1 10 1)"
	run -1 gpemu-cachesim --trace t.csv
	one_line
	for bad in '#gpemu-fs-trace 2' '#gpemu-fs-trace x'; do
		{ echo "$bad"; tail -n +2 t.csv; } >u.csv
		run -1 gpemu-cachesim --trace u.csv
		[[ "$output" == *"u.csv:1: an unsupported version of the gpemu-fs trace"* ]]
	done
	for bad in '#sizes' '#sizes 1,,2' '#sizes 1*' '#sizes 1 2' \
		'#sizes 20,10' '#sizes 10*4294967295' \
		'#sizes 1125899906842624*8192'; do
		sed "s/^#sizes.*/$bad/" t.csv >u.csv
		run -1 gpemu-cachesim --trace u.csv
		one_line
	done
}

@test "tiers: hits of each add up, one tier is -p and -c, lists make a grid" {
	set -- --dataset imagenet --files 3000
	gpemu-cachesim "$@" -p lru,minio -c 20%,50% --json old >/dev/null
	gpemu-cachesim "$@" --tier lru,minio:20%,50% --json new >/dev/null
	[ "$(json old 's["results"]')" = "$(json new 's["results"]')" ]
	run -0 gpemu-cachesim "$@" --tier dram:minio:10% \
		--tier nvme:lru,minio:50%,20% --json j
	[[ "${lines[0]}" == tier* ]]
	[[ "${lines[1]}" == "1 dram:minio "* ]]
	[[ "${lines[2]}" == "2 nvme:lru "* ]]
	[[ "${lines[3]}" == "all tiers "* ]]
	[ "${#lines[@]}" -eq 13 ]
	json j '[[t["policy"] + t["size"] for t in r["tiers"]]
		for r in s["results"]]' >out
	[ "$(cat out)" = "[['minio10%', 'lru50%'], ['minio10%', 'lru20%'], ['minio10%', 'minio50%'], ['minio10%', 'minio20%']]" ]
	# the next tier sees the misses of the one before
	json j 'all(a["misses"] == b["hits"] + b["misses"] and
		e["hits"] == a["hits"] + b["hits"] and
		e["misses"] == b["misses"] and
		a["hits"] + a["misses"] == s["trace"]["requests"] // 5
		for r in s["results"]
		for e, a, b in zip(r["epochs"], r["tiers"][0]["epochs"],
				   r["tiers"][1]["epochs"]))' >out
	[ "$(cat out)" = True ]
	# the same, in one text
	run -0 gpemu-cachesim "$@" \
		--tier "dram:minio:10% nvme:lru,minio:50%,20%" --json k
	[ "$(json j 's["results"]')" = "$(json k 's["results"]')" ]
}

@test "tiers: a list may contain a policy with options" {
	set -- --dataset imagenet --files 3000
	gpemu-cachesim "$@" -p slru:protected=0.5,lru -c 20% --json old >/dev/null
	run -0 gpemu-cachesim "$@" --tier nvme:slru:protected=0.50,lru:20% \
		--json new
	[[ "${lines[1]}" == "slru:protected=0.5 "* ]]
	for key in policy hit_ratio epochs; do
		[ "$(json old "[r[\"$key\"] for r in s[\"results\"]]")" = \
			"$(json new "[r[\"$key\"] for r in s[\"results\"]]")" ]
	done
	run -0 gpemu-cachesim "$@" \
		--tier "minio:10% nvme:s3fifo:small=0.2,uses=7,lru:20%" --json j
	[[ "${lines[2]}" == "2 nvme:s3fifo:small=0.2,uses=7 "* ]]
	json j '[r["tiers"][1]["policy"] for r in s["results"]]' >out
	[ "$(cat out)" = "['s3fifo:small=0.2,uses=7', 'lru']" ]
	run -2 gpemu-cachesim "$@" --tier nvme:slru:protect=0.5:20%
	one_line
	[[ "$output" == *"--tier: column 6: cache policy slru: unknown option 'protect'"* ]]
}

@test "tiers: minio over minio holds the same files, with first different ones" {
	set -- --dataset imagenet --files 3000 --tier "minio:20% nvme:minio:30%"
	gpemu-cachesim "$@" --json every >/dev/null
	gpemu-cachesim "$@" --tier-admit first --json first >/dev/null
	[ "$(json every '[round(t["byte_hit_share"], 2)
		for t in s["results"][0]["tiers"]]')" = "[0.2, 0.1]" ]
	[ "$(json first '[round(t["byte_hit_share"], 2)
		for t in s["results"][0]["tiers"]]')" = "[0.2, 0.3]" ]
}

@test "tiers: errors name the column, and conflicts are rejected" {
	run -2 gpemu-cachesim --dataset imagenet --tier lru:10% -p lru
	one_line
	[[ "$output" == *"--tier replaces --policies and --sizes"* ]]
	run -2 gpemu-cachesim --dataset imagenet --tier "lru:10% nvme:lur:5%"
	one_line
	[[ "$output" == *"--tier: column 14: unknown cache policy 'lur'"* ]]
	run -2 gpemu-cachesim --dataset imagenet --tier nvm:lru:10%
	[[ "$output" == *"--tier: column 1: "*nvm* ]]
	printf 'dataset: imagenet\ntier:\n  - lru:1G\n  - nvme:lru:5Q\n' >c.yaml
	run -2 gpemu-cachesim --config c.yaml
	[[ "$output" == *"c.yaml:4:5: tier: column 10: '5Q' is not a cache size"* ]]
	printf 'dataset: imagenet\ntier: "lru:1G nvme:lru:5Q"\n' >c.yaml
	run -2 gpemu-cachesim --config c.yaml
	[[ "$output" == *"c.yaml:2:7: tier: column 17: '5Q' is not a cache size"* ]]
	run -2 gpemu-cachesim --dataset imagenet --tier "lru:1G lru:1G" \
		--plot x.svg
	[[ "$output" == *"--plot shows the sizes of one tier, but there are 2"* ]]
	run -2 gpemu-cachesim --dataset imagenet --tier lru:1G --tier-admit all
	[[ "$output" == *"unknown tier admission 'all' (known: every first)"* ]]
	run -0 gpemu-cachesim --dataset imagenet --dump-config
	[[ "$output" == *"policies: all"* && "$output" == *"tier: []"* ]]
}

@test "tiers: a trace of gpemu-fs with offers, warm-up and removal" {
	mount_trace "$(row warm 1 10 1)" "$(row offer 2 20 2)" \
		"$(row read 1 10 3)" "$(row read 2 20 4)" \
		"$(row remove 1 10 5)" "$(row read 1 10 6)" \
		"$(row drop-cache '' '' 7)" "$(row read 2 20 8)"
	run -0 gpemu-cachesim --trace t.csv --tier "minio:10 lru:30" --json j
	# 1 fits tier 1, both fit tier 2; after the drop every read misses
	[ "$(json j '[[(e["hits"], e["misses"]) for e in t["epochs"]]
		for t in s["results"][0]["tiers"]]')" = "[[(1, 3)], [(1, 2)]]" ]
}

@test "importance: shade hits the weight of what it can hold, lru less" {
	run_it() {
		gpemu-cachesim --dataset imagenet --files 2000 -e 6 --importance w \
			-c 20% -p shade,lru,minio --json j "$@" >/dev/null
	}
	seq 2000 | awk '{print 1 / $1}' >w
	run_it --order replacement
	# by harmonic numbers of 400 and 2000; files have different sizes
	[ "$(json j '[abs(s["results"][0]["hit_ratio"] - 6.57 / 8.18) < .02,
		s["results"][1]["hit_ratio"] < s["results"][0]["hit_ratio"] - .05]')" = \
		"[True, True]" ]
	# without any difference it is minio
	yes 3 | head -n 2000 >w
	run_it
	[ "$(json j 's["results"][0]["epochs"] == s["results"][2]["epochs"]')" = True ]
}

@test "balanced: each first folder of --dir is a class" {
	for class in 200:common/a 40:seldom 10:rare; do
		mkdir -p "d/${class#*:}"
		for i in $(seq "${class%:*}"); do head -c 1000 /dev/zero >"d/${class#*:}/$i"; done
	done
	# in the order of gpemu-train: by class; each class is drawn alike
	{ yes 1 | head -n 200; yes 20 | head -n 10; yes 5 | head -n 40; } >w
	gpemu-cachesim --dir d --importance w --order replacement -e 60 -c 90000 \
		-p balanced,lru --json j >/dev/null
	# 40 of 200, all of 40 and of 10; LRU has fewer
	[ "$(json j '[abs(sum(e["hits"] for e in s["results"][0]["epochs"][20:]) / 10000
			- (40 / 200 + 1 + 1) / 3) < .025,
		s["results"][1]["hit_ratio"] < s["results"][0]["hit_ratio"] - .02]')" = \
		"[True, True]" ]
}

@test "importance: files that do not fit the dataset are refused" {
	bad() {
		run ! gpemu-cachesim --dataset imagenet --files 3 --importance w -c 20%
		one_line
		[[ $output == *"$1" ]]
	}
	printf '1\n2\n' >w
	bad "w: 2 weights for 3 files"
	printf '1\n2\n3\n4\n' >w
	bad "w:4:1: more weights than the dataset has of these"
	printf '1\n\n-2\n3\n' >w
	bad "w:3:1: a weight must be a number, 0 or more"
	printf '0\n0\n0\n' >w
	bad "w: the sum of the importance must be more than 0 and less than 1e300"
	rm w
	bad "w: No such file or directory"
	run ! gpemu-cachesim --trace w --importance w
	[[ $output == *"--importance needs --dataset or --dir" ]]
}
