#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-s3 --writable: what clients put, copy and delete.

bats_require_minimum_version 1.5.0
load s3

# a folder beside the source
write() # OPTION...
{
	mkdir -p "$TMP/up"
	s3 --writable "$TMP/up" "$@" "$SRC"
}

boto3_python()
{
	local python

	for python in python3 /usr/bin/python3; do
		$python -c 'import boto3' 2>/dev/null && echo $python && return
	done
	return 1
}

@test "s3 write: put, get, delete; restart" {
	local etag

	write --anonymous
	[ "$(code -T "$SRC/big" "$URL/data/x/y/z")" = '200 ' ]
	cmp "$TMP/up/x/y/z" "$SRC/big"
	etag=\"$(md5sum <"$SRC/big" | cut -c-32)\"
	curl -sI "$URL/data/x/y/z" | tr -d '\r' | grep -qx "ETag: $etag"
	[ "$(code -T "$SRC/empty" -H 'x-amz-meta-k: v' "$URL/data/x/0")" = '200 ' ]
	# an object and a folder of the same name; a name of the mount's own
	[ "$(code -T "$SRC/a.txt" "$URL/data/x/y")" = '200 ' ]
	[ "$(code --path-as-is -T "$SRC/a.txt" "$URL/data/.gpemu/uploads/1")" = '200 ' ]
	kill -9 "$SERVER"
	wait "$SERVER" || true
	write --anonymous
	curl -s "$URL/data/x/y/z" | cmp - "$SRC/big"
	curl -sI "$URL/data/x/y/z" | tr -d '\r' | grep -qx "ETag: $etag"
	curl -sI "$URL/data/x/0" | tr -d '\r' | grep -qx 'x-amz-meta-k: v'
	[ "$(curl -s "$URL/data/x/y")" = hello ]
	[ "$(curl -s "$URL/data" | grep -o '<Key>[^<]*' | cut -c6- | xargs)" = \
		'.gpemu/uploads/1 a.txt a/b/x big empty x/0 x/y x/y/z' ]
	# of the dataset: never
	[ "$(code -T "$SRC/big" "$URL/data/a.txt")" = '403 AccessDenied' ]
	[ "$(code -X DELETE "$URL/data/a.txt")" = '403 AccessDenied' ]
	for key in x/y/z x/0 x/y none .gpemu/uploads/1; do
		[ "$(code -X DELETE "$URL/data/$key")" = '204 ' ]
	done
	[ -z "$(find "$TMP/up" -mindepth 1 -not -path '*/.gpemu*')" ]
	[ -z "$(find "$TMP/up" -type f)" ]
}

@test "s3 write: boto3" {
	local python

	python=$(boto3_python) || skip "python3-boto3 is not installed"
	rm -r "$SRC"/*
	echo old >"$SRC/old"
	write --keys "$TMP/keys"
	cd "$TMP"
	$python "$BATS_TEST_DIRNAME/s3-write-client" "$URL"
	[ "$(find "$TMP/up/.gpemu" -type f | wc -l)" = 0 ]
}

@test "s3 write: the folder is ours alone, and not the source" {
	write --anonymous
	run -75 "$BUILD/gpemu-s3" --anonymous --listen 127.0.0.1:1 --writable "$TMP/up" "$SRC"
	[[ $output == *'another mount uses it'* ]]
	run -1 "$BUILD/gpemu-s3" --anonymous --listen 127.0.0.1:1 --writable "$SRC/a" "$SRC"
	[[ $output == *'must not contain each other'* ]]
	run -1 "$BUILD/gpemu-s3" --anonymous --listen 127.0.0.1:1 --writable "$TMP/none" "$SRC"
	[[ $output == *'--writable '*'none: No such file'* ]]
}

@test "s3 write: a full store" {
	head -c 900000 /dev/urandom >"$TMP/part"
	# the dataset has 759 of 1,024 blocks, the part 220
	write --anonymous --capacity 4M
	[ "$(code -T "$TMP/part" "$URL/data/one")" = '200 ' ]
	[ "$(code -T "$TMP/part" "$URL/data/two")" = '507 XMinioStorageFull' ]
	[ "$(code -T "$TMP/part" "$URL/data/one")" = '507 XMinioStorageFull' ]
	curl -s "$URL/data/one" | cmp - "$TMP/part"
	[ "$(code -H 'x-amz-copy-source: /data/one' -X PUT "$URL/data/copy")" = '507 XMinioStorageFull' ]
	[ -z "$(find "$TMP/up/.gpemu" -type f)" ]
	[ "$(code -X DELETE "$URL/data/one")" = '204 ' ]
	[ "$(code -T "$TMP/part" "$URL/data/two")" = '200 ' ]
	# smaller than the one before it, which is there until then
	[ "$(code -T "$SRC/a/b/x" "$URL/data/two")" = '200 ' ]
	[ "$(code -T "$TMP/part" "$URL/data/three")" = '200 ' ]
	# in parts
	[ "$(code -X DELETE "$URL/data/three")" = '204 ' ]
	id=$(curl -s -X POST "$URL/data/parts?uploads" | grep -o '<UploadId>[^<]*' | cut -c11-)
	[ "$(code -T "$TMP/part" "$URL/data/parts?uploadId=$id&partNumber=1")" = '200 ' ]
	[ "$(code -T "$TMP/part" "$URL/data/parts?uploadId=$id&partNumber=2")" = '507 XMinioStorageFull' ]
	etag=$(md5sum <"$TMP/part" | cut -c-32)
	[ "$(code -X POST "$URL/data/parts?uploadId=$id" -d "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>$etag</ETag></Part></CompleteMultipartUpload>")" = '200 ' ]
	[ "$(code -T "$TMP/part" "$URL/data/three")" = '507 XMinioStorageFull' ]
	kill "$SERVER"
	wait "$SERVER"
	write --anonymous --capacity 4M
	[ "$(code -T "$TMP/part" "$URL/data/three")" = '507 XMinioStorageFull' ]
	[ "$(code -X DELETE "$URL/data/parts")" = '204 ' ]
	[ "$(code -T "$TMP/part" "$URL/data/three")" = '200 ' ]
	run -2 "$BUILD/gpemu-s3" --anonymous --listen 127.0.0.1:1 --capacity 4M "$SRC"
	[[ $output == *'--capacity: nothing can be put; give --writable'* ]]
}

@test "s3 write: the space of files with two names, and of clients that went away" {
	head -c 900000 /dev/urandom >"$TMP/part"
	mkdir "$TMP/up"
	cp "$TMP/part" "$TMP/up/a"
	ln "$TMP/up/a" "$TMP/up/b"
	write --anonymous --capacity 4M
	[ "$(code -X DELETE "$URL/data/a")" = '204 ' ]
	[ "$(code -T "$TMP/part" "$URL/data/c")" = '507 XMinioStorageFull' ]
	[ "$(code -X DELETE "$URL/data/b")" = '204 ' ]
	[ "$(code -T "$TMP/part" "$URL/data/c")" = '200 ' ]
	[ "$(code -X DELETE "$URL/data/c")" = '204 ' ]
	python3 - "$PORT" <<-'END'
		import socket, sys
		s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
		s.sendall(b"PUT /data/cut HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n" + b"x" * 5000)
	END
	# long before --header-timeout, a minute
	for _ in {1..50}; do
		[ "$(code -T "$TMP/part" "$URL/data/c")" != '200 ' ] || break
		sleep .2
	done
	[ -s "$TMP/up/c" ]
}

@test "s3 write: a body that is cut, too long, or not what it says" {
	write --anonymous --header-timeout 2s
	python3 - "$PORT" <<-'END'
		import socket, sys
		def say(head, body):
		    s = socket.create_connection(('127.0.0.1', int(sys.argv[1])), 10)
		    s.settimeout(10)
		    s.sendall(b'PUT /data/bad HTTP/1.1\r\nHost: localhost\r\n' + head + b'\r\n' + body)
		    if body == b'short':
		        s.close() # and no answer
		    return s.recv(4096) if body != b'short' else b''
		def chunked(length, kind=b'STREAMING-UNSIGNED-PAYLOAD-TRAILER'):
		    return (b'Content-Length: %d\r\nx-amz-content-sha256: ' % length + kind +
		            b'\r\nx-amz-decoded-content-length: 5\r\n')
		say(b'Content-Length: 10\r\n', b'short')
		assert b'EntityTooLarge' in say(b'Content-Length: 5368709121\r\n', b'')
		assert b'MissingContentLength' in say(
		    b'Transfer-Encoding: chunked\r\n', b'1\r\nx\r\n0\r\n\r\n')
		assert b' 200 ' not in say(
		    b'Content-Length: 1\r\nTransfer-Encoding: chunked\r\n', b'1\r\nx\r\n0\r\n\r\n')
		assert b'InvalidArgument' in say(
		    b'Content-Length: 0\r\nx-amz-content-sha256: x\r\n', b'')
		assert b'XAmzContentSHA256Mismatch' in say(
		    b'Content-Length: 1\r\nx-amz-content-sha256: ' + b'0' * 64 + b'\r\n', b'x')
		assert b'NotImplemented' in say(chunked(1, b'STREAMING-X'), b'x')
		for body in b'5\r\nhello\r\n0\r\n', b'6\r\nhelloo\r\n0\r\n\r\n', b'4\r\nhell\r\n0\r\n\r\n', \
		        b'z\r\n', b'5\r\nhello0\r\n\r\n':
		    assert b'IncompleteBody' in say(chunked(len(body)), body), body
		body = b'5\r\nhello\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n'
		trailer = b'x-amz-trailer: x-amz-checksum-crc32\r\n'
		assert b'BadDigest' in say(chunked(len(body)) + trailer, body)
		body = body.replace(b'AAAAAA==', b'NhCmhg==')
		assert b' 200 ' in say(chunked(len(body)) + trailer, body)
	END
	[ "$(curl -s "$URL/data/bad")" = hello ]
	for _ in {1..100}; do
		[ -n "$(find "$TMP/up/.gpemu" -type f)" ] || break
		sleep .05
	done
	[ -z "$(find "$TMP/up/.gpemu" -type f)" ]
	# the right answer, although the body came before
	[ "$(code -H 'Expect:' -T "$SRC/a.txt" "$URL/none/x/y")" = '404 NoSuchBucket' ]
	[ "$(code -H 'x-amz-tagging: a=b' -T "$SRC/a/b/x" "$URL/data/t")" = '501 NotImplemented' ]
	[ "$(code -H 'x-amz-acl: public-read' -T "$SRC/a.txt" "$URL/data/t")" = \
		'400 AccessControlListNotSupported' ]
	[ "$(code -X POST -d '<Delete><Object></Delete>' "$URL/data?delete")" = '400 MalformedXML' ]
	[ "$(code -X POST -d '<!DOCTYPE a><Delete/>' "$URL/data?delete")" = '400 MalformedXML' ]
	[ "$(code -X POST -d x "$URL/data/k")" = '501 NotImplemented' ]
	[ "$(code -X PUT "$URL/other")" = '400 TooManyBuckets' ]
	[ "$(code -X PUT "$URL/data")" = '200 ' ]
}

@test "s3 write: a body that is too slow, a server that is killed" {
	local slow

	write --anonymous --header-timeout 1s
	python3 - "$PORT" <<-'END' &
		import socket, sys, time
		s = socket.create_connection(('127.0.0.1', int(sys.argv[1])), 10)
		s.sendall(b'PUT /data/slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n')
		began = time.time()
		try:
		    while time.time() < began + 20:
		        s.sendall(b'x')
		        time.sleep(.3)
		except OSError:
		    sys.exit(0)
		sys.exit('a slow body is read for ever')
	END
	slow=$!
	wait $slow
	[ "$(code "$URL/data/slow")" = '404 NoSuchKey' ]
	# killed in the middle of a body: nothing of it is there
	python3 - "$PORT" "$SERVER" <<-'END'
		import os, signal, socket, sys, time
		s = socket.create_connection(('127.0.0.1', int(sys.argv[1])), 10)
		s.sendall(b'PUT /data/half HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n\r\n')
		s.sendall(b'x' * 1000000)
		time.sleep(.3)
		os.kill(int(sys.argv[2]), signal.SIGKILL)
	END
	wait "$SERVER" || true
	[ -n "$(find "$TMP/up/.gpemu/uploads" -type f)" ]
	write --anonymous
	[ -z "$(find "$TMP/up/.gpemu/uploads" -type f)" ]
	[ "$(code "$URL/data/half")" = '404 NoSuchKey' ]
}

# bats test_tags=slow
@test "s3 write: 10,000 parts, a list of too many, of too much" {
	write --anonymous
	python3 - "$PORT" <<-'END'
		import http.client, re, sys
		c = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]), timeout=30)
		def ask(method, path, body=None, **headers):
		    c.request(method, '/data' + path, body, headers)
		    r = c.getresponse()
		    return r.status, r.headers, r.read().decode()
		def code(answer):
		    return re.search('<Code>(.*)</Code>', answer[2])[1]
		begun = ask('POST', '/many?uploads')[2]
		upload = '/many?uploadId=' + re.search('<UploadId>(.*)</UploadId>', begun)[1]
		tags = [ask('PUT', f'{upload}&partNumber={n + 1}', b'%d' % n)[1]['ETag']
		        for n in range(10000)]
		assert code(ask('PUT', upload + '&partNumber=10001', b'x')) == 'InvalidArgument'
		found, marker = [], 0
		while marker is not None:
		    page = ask('GET', f'{upload}&part-number-marker={marker}')[2]
		    found += [int(n) for n in re.findall('<PartNumber>(\\d+)<', page)]
		    more = re.search('<NextPartNumberMarker>(\\d+)<', page)
		    marker = int(more[1]) if more else None
		assert found == list(range(1, 10001))
		def complete(tags):
		    return code(ask('POST', upload, '<CompleteMultipartUpload>' + ''.join(
		        f'<Part><PartNumber>{i + 1}</PartNumber><ETag>{t}</ETag></Part>'
		        for i, t in enumerate(tags)) + '</CompleteMultipartUpload>'))
		assert complete(tags) == 'EntityTooSmall'
		assert complete(tags + ['x']) == 'MalformedXML'
		def delete(n):
		    return ask('POST', '?delete', '<Delete>' + ''.join(
		        f'<Object><Key>k{i}</Key></Object>' for i in range(n)) + '</Delete>')
		assert delete(1000)[2].count('<Deleted>') == 1000
		assert code(delete(1001)) == 'MalformedXML'
		c.close()
		long = ask('POST', '?delete', None, **{'Content-Length': str(9 << 20), 'Expect': 'x'})
		assert code(long) == 'EntityTooLarge'
		c.close()
		assert ask('DELETE', upload)[0] == 204
		begun = [ask('POST', '/begun?uploads') for n in range(10001)]
		assert code(begun[10000]) == 'SlowDown'
		last = re.search('<UploadId>(.*)</UploadId>', begun[9999][2])[1]
		assert ask('DELETE', f'/begun?uploadId={last}')[0] == 204
		assert ask('POST', '/begun?uploads')[0] == 200
	END
	[ "$(find "$TMP/up/.gpemu" -type f | wc -l)" = 0 ]
}

@test "s3 write: links and pipes in the folder lead nowhere" {
	mkdir -p "$TMP/up/d"
	ln -s /etc "$TMP/up/etc"
	ln -s /etc/passwd "$TMP/up/d/passwd"
	mkfifo "$TMP/up/d/pipe"
	write --anonymous
	for key in etc/passwd d/passwd d/pipe; do
		[ "$(code "$URL/data/$key")" = '404 NoSuchKey' ]
	done
	# beside a link, and in the place of one
	[ "$(code -T "$SRC/a.txt" "$URL/data/etc/gpemu-test")" = '200 ' ]
	[ "$(code -T "$SRC/a.txt" "$URL/data/d/passwd")" = '200 ' ]
	[ "$(curl -s "$URL/data/etc/gpemu-test")" = hello ]
	[ ! -e /etc/gpemu-test ]
	grep -q root /etc/passwd
	[ ! -L "$TMP/up/d/passwd" ]
	# planted while it serves
	[ "$(code -T "$SRC/a.txt" "$URL/data/e/f")" = '200 ' ]
	rm -r "$TMP/up/e"
	ln -s /etc "$TMP/up/e"
	mkfifo "$TMP/pipe"
	[ "$(code -T "$SRC/a.txt" "$URL/data/e/f")" != '200 ' ]
	[ "$(code "$URL/data/e/f" -m 5)" = '500 InternalError' ]
	rm "$TMP/up/d/passwd"
	mkfifo "$TMP/up/d/passwd"
	[ "$(code "$URL/data/d/passwd" -m 5)" = '500 InternalError' ]
	[ "$(code -X DELETE "$URL/data/e/f")" != '204 ' ]
}

# bats test_tags=slow
@test "s3 write: folders in the folder, deeper than a key" {
	mkdir "$TMP/up"
	(cd "$TMP/up" && for _ in {1..600}; do mkdir d && cd -P d || exit; done)
	ulimit -n 580
	write --anonymous
	[ "$(code -T "$SRC/a.txt" "$URL/data/d/x")" = '200 ' ]
}

@test "s3 write: faults, time, rates, requests and their price" {
	cat >"$TMP/store.yaml" <<-'END'
		name: store
		source: test
		channels: {source: t, verified: true, mb_per_s: 10}
		iops: {source: t, verified: true, per_s: 1}
		prefix: {source: t, verified: true, reads_per_s: 20, writes_per_s: 10}
		price: {source: t, verified: true, write_usd_per_1000: 5, read_usd_per_1000: 0.4,
		        sync_usd_per_1000: 5, create_usd_per_1000: 5}
		buffer: {source: t, verified: true, size: 64M, unit: 8M, in_client: true}
		open: {source: t, verified: true}
		lookup: {source: t, verified: true}
		readdir: {source: t, verified: true}
		read: {source: t, verified: true}
		write: {source: t, verified: true, occupancy: {kind: const, value: 100ms}}
		sync: {source: t, verified: true}
	END
	write --anonymous --storage "$TMP/store.yaml" --trace "$TMP/trace" \
		--fault 'op=write,path=busy,errno=EBUSY;op=write,path=reset,errno=ECONNRESET;op=remove,path=keep,errno=EIO'
	# 3 MB: 100 ms, then 300 ms; no buffer of a client, no queue
	curl -s -o /dev/null -w '%{time_total}\n' -T "$SRC/big" "$URL/data/w/big" >"$TMP/time"
	awk '{ exit !($1 >= .4 && $1 < 3) }' "$TMP/time"
	[ "$(code -T "$SRC/a.txt" "$URL/data/busy")" = '503 SlowDown' ]
	run code -T "$SRC/a.txt" "$URL/data/reset" # the code of "Continue", or none
	[[ $output == [01]00\  ]]
	[ "$(code -T "$SRC/a.txt" "$URL/data/keep")" = '200 ' ]
	[ "$(code -X DELETE "$URL/data/keep")" = '500 InternalError' ]
	[ "$(curl -s "$URL/data/keep")" = hello ]
	[ "$(code "$URL/data/busy")" = '404 NoSuchKey' ]
	[ "$(code "$URL/data/reset")" = '404 NoSuchKey' ]
	[ "$(stat_of 's["requests"]["write"], s["writes"], s["bytes_written"]')" = '2 2 3000006' ]
	[ "$(stat_of 'round(s["cost_usd"], 6)')" = 0.0112 ]
	# more than a second's requests at once, of one prefix
	for i in {1..60}; do
		echo "url = \"$URL/data/w/big\""
		echo 'output = "/dev/null"'
		echo head
	done >"$TMP/urls"
	curl -s -Z --parallel-immediate --parallel-max 60 -K "$TMP/urls" || true
	[ "$(stat_of 's["s3"]["throttled"]["read"] > 0')" = True ]
	[ "$(stat_of 's["s3"]["errors"]["SlowDown"] == s["s3"]["throttled"]["read"] + 1')" = True ]
	# one of 5 GiB, of which no byte comes
	python3 - "$PORT" <<-'END'
		import socket, sys
		s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
		s.sendall(b'PUT /data/busy HTTP/1.1\r\nHost: localhost\r\n'
		          b'Content-Length: 5368709120\r\nExpect: 100-continue\r\n\r\n')
		s.recv(100)
	END
	kill "$SERVER"
	wait "$SERVER"
	grep -q w/big "$TMP/trace"
	grep -q '^[^,]*,write,[0-9]*,,0,5368709120,.*,EBUSY,,busy$' "$TMP/trace"
}

@test "s3 write: what was answered is there after a kill" {
	local round

	for round in {1..6}; do
		write --anonymous
		[ -z "$(find "$TMP/up/.gpemu/uploads" -type f)" ]
		python3 "$BATS_TEST_DIRNAME/s3-kill-client" "$PORT" "$SERVER" "$TMP/state"
		wait "$SERVER" || true
	done
	write --anonymous
	python3 "$BATS_TEST_DIRNAME/s3-kill-client" "$PORT" 0 "$TMP/state"
}

# most_files METHOD OPTION: of the server beyond its own while 60 requests are there
most_files()
{
	local before most=0 n requests

	before=$(find "/proc/$SERVER/fd" -type l | wc -l)
	for i in {1..60}; do
		echo "url = \"$URL/data/$1$i\""
		echo "$2"
		echo 'output = "/dev/null"'
		echo next
	done | sed '$d' >"$TMP/urls"
	curl -s -Z --parallel-immediate --parallel-max 60 -K "$TMP/urls" &
	requests=$!
	while kill -0 $requests 2>/dev/null; do
		n=$(find "/proc/$SERVER/fd" -type l | wc -l)
		most=$((n > most ? n : most))
	done
	wait $requests
	echo $((most - before))
}

@test "s3 write: a connection holds one descriptor beside its own" {
	local most

	cat >"$TMP/store.yaml" <<-'END'
		name: store
		source: test
		open: {source: t, verified: true}
		lookup: {source: t, verified: true}
		readdir: {source: t, verified: true}
		read: {source: t, verified: true, latency: {kind: const, value: 2s}}
		write: {source: t, verified: true, latency: {kind: const, value: 2s}}
	END
	write --anonymous --storage "$TMP/store.yaml"
	[ "$(code -T "$SRC/a.txt" "$URL/data/from")" = '200 ' ]
	# a copy holds its source until it is copied, and two for each thread at work
	most=$(most_files copy "request = PUT
		header = \"x-amz-copy-source: /data/from\"")
	echo "$most"
	[ "$most" -ge 60 ]
	[ "$most" -le $((120 + 16)) ]
	[ "$(curl -s "$URL/data/copy60")" = hello ]
	most=$(most_files copy 'request = GET')
	echo "$most"
	[ "$most" -ge 100 ]
	[ "$most" -le 128 ]
}

@test "s3 write: on the disk before it has its name, and that before the answer" {
	local id etag

	command -v strace >/dev/null || skip "strace is not installed"
	[ -z "${GPEMU_SANITIZED-}" ] || skip "not under a sanitizer"
	mkdir "$TMP/bin"
	cat >"$TMP/bin/gpemu-s3" <<-END
		#!/bin/sh
		exec strace -D -f -y -o "$TMP/calls" \
			-e trace=fsync,syncfs,mkdirat,renameat,unlinkat,sendto,sendmsg,write,writev "$BUILD/gpemu-s3" "\$@"
	END
	chmod 755 "$TMP/bin/gpemu-s3"
	BUILD=$TMP/bin write --anonymous
	[ "$(code -T "$SRC/a/b/x" "$URL/data/d/e/put")" = '200 ' ]
	[ "$(code -T "$SRC/a.txt" "$URL/data/d/e/put")" = '200 ' ]
	[ "$(code -H 'x-amz-copy-source: /data/big' -X PUT "$URL/data/d/copy")" = '200 ' ]
	id=$(curl -s -X POST "$URL/data/parts?uploads" | grep -o '<UploadId>[^<]*' | cut -c11-)
	[ "$(code -T "$SRC/big" "$URL/data/parts?uploadId=$id&partNumber=1")" = '200 ' ]
	etag=$(md5sum <"$SRC/big" | cut -c-32)
	[ "$(code -X POST "$URL/data/parts?uploadId=$id" -d "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>$etag</ETag></Part></CompleteMultipartUpload>")" = '200 ' ]
	[ "$(code -X DELETE "$URL/data/d/copy")" = '204 ' ]
	[ "$(code -X POST "$URL/data?delete" -d '<Delete><Object><Key>d/e/put</Key></Object><Object><Key>parts</Key></Object></Delete>')" = '200 ' ]
	kill "$SERVER"
	wait "$SERVER"
	python3 - "$TMP/calls" "$TMP/up" <<-'END'
		import re, sys
		calls, up = open(sys.argv[1]).read(), sys.argv[2]
		# a call that another thread interrupted: at its end
		halves, events = {}, []
		for line in calls.splitlines():
		    pid, text = line.split(None, 1)
		    if text.endswith('<unfinished ...>'):
		        halves[pid] = text[:-len('<unfinished ...>')]
		        continue
		    if text.startswith('<... '):
		        text = halves.pop(pid) + text.split('resumed>', 1)[1]
		    events.append(text)
		def what(text):
		    path = r'\d+<%s(/[^>]*|)>' % re.escape(up)
		    if m := re.match(r'(fsync|syncfs)\(' + path + r'\) += 0', text):
		        return m[1], re.sub(r'uploads/\d+', 'file', m[2][1:])
		    if m := re.match(r'renameat\(.*, ' + path + r', "([^"]*)"\) += 0', text):
		        return 'rename', (m[1] + '/' + m[2])[1:]
		    if m := re.match(r'(mkdirat|unlinkat)\(' + path + r', "([^"]*)".* = 0', text):
		        return m[1], (m[2] + '/' + m[3])[1:]
		    if m := re.match(r'(?:sendto|sendmsg|writev?)\(.*"HTTP/1.1 (20[04])', text):
		        return 'answer', m[1]
		seen = [w for e in events if (w := what(e)) and 'uploads/' not in w[1]]
		first = seen.index(('syncfs', ''))
		seen = seen[first:]
		want = '''
		    syncfs
		    fsync .gpemu/file; mkdirat d; mkdirat d/e; rename d/e/put; fsync d/e; fsync d; fsync; answer 200
		    fsync .gpemu/file; rename d/e/put; fsync d/e; answer 200
		    fsync .gpemu/file; rename d/copy; fsync d; answer 200
		    answer 200; answer 200
		    fsync .gpemu/file; rename parts; fsync; answer 200
		    unlinkat d/copy; fsync d; answer 204
		    unlinkat d/e/put; unlinkat d/e; unlinkat d; unlinkat parts; fsync; fsync; answer 200'''
		want = [tuple((w.split() + [''])[:2]) for w in want.replace('\n', ';').split(';') if w.strip()]
		assert seen == want, '\n'.join(map(str, seen))
	END
}

@test "s3: a bucket that is a number is no part of an address" {
	s3 --anonymous --bucket 127 "$SRC"
	[ "$(curl -s "$URL/127/a.txt")" = hello ]
	[ "$(curl -s -H "Host: 127.localhost:$PORT" "$URL/a.txt")" = hello ]
	run -2 "$BUILD/gpemu-s3" --anonymous --bucket 10.0.0.1 "$SRC"
	[[ $output == *'a bucket has'* ]]
}
