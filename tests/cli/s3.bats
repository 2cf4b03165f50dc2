#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-s3 as clients see it.

bats_require_minimum_version 1.5.0
load s3

@test "s3: whole objects, ranges, conditions" {
	local etag date

	s3 --anonymous "$SRC"
	for key in a.txt big empty a/b/x; do
		curl -s "$URL/data/$key" | cmp - "$SRC/$key"
	done
	curl -s -r 100-2999998 "$URL/data/big" |
		cmp - <(tail -c +101 "$SRC/big" | head -c 2999899)
	[ "$(curl -s -r -3 "$URL/data/a.txt")" = "$(printf 'lo')" ]
	[ "$(code -r 6- "$URL/data/a.txt")" = '416 InvalidRange' ]
	[ "$(code -r 0- "$URL/data/empty")" = '416 InvalidRange' ]
	etag=$(curl -sI "$URL/data/big" | tr -d '\r' | sed -n 's/^ETag: //p')
	date=$(curl -sI "$URL/data/big" | tr -d '\r' | sed -n 's/^Last-Modified: //p')
	curl -sI "$URL/data/big" | grep -q '^Content-Length: 3000000'
	[ "$(code -H "If-None-Match: $etag" "$URL/data/big")" = '304 ' ]
	[ "$(code -H "If-Modified-Since: $date" "$URL/data/big")" = '304 ' ]
	[ "$(code -H 'If-Match: "x"' "$URL/data/big")" = '412 PreconditionFailed' ]
	[ "$(code -H "If-Match: $etag" -r 0-9 -o "$TMP/out" "$URL/data/big")" = '206 ' ]
	cmp "$TMP/out" <(head -c 10 "$SRC/big")
	[ "$(code "$URL/data/none")" = '404 NoSuchKey' ]
	[ "$(code "$URL/data/a")" = '404 NoSuchKey' ]
	[ "$(code "$URL/other/a.txt")" = '404 NoSuchBucket' ]
	[ "$(curl -s -H "Host: data.localhost:$PORT" "$URL/a.txt")" = hello ]
}

# bats test_tags=slow
@test "s3: boto3 reads and lists some hundred objects" {
	local python=python3

	python3 -c 'import boto3' 2>/dev/null || python=/usr/bin/python3
	$python -c 'import boto3' 2>/dev/null || skip "python3-boto3 is not installed"
	for i in {1..300}; do
		head -c $((i * 100)) /dev/urandom >"$SRC/c/$((i % 7)) &<$i>+%ü"
		[ $((i % 50)) -ne 0 ] || mkdir -p "$SRC/c/$((i % 7)) &<$i" "$SRC/c$i"
		[ $((i % 50)) -ne 0 ] || echo $i >"$SRC/c$i/f"
	done
	s3 --keys "$TMP/keys" "$SRC"
	$python "$BATS_TEST_DIRNAME/s3-client" "$URL" "$SRC"
}

@test "s3: who may read" {
	s3 --keys "$TMP/keys" "$SRC"
	[ "$(signed me s/+=ecret "$URL/data/a.txt")" = hello ]
	[ "$(code "$URL/data/a.txt")" = '403 AccessDenied' ]
	[ "$(code "$URL/.gpemu/stats")" = '403 AccessDenied' ]
	signed me wrong "$URL/data/a.txt" | grep -q '<Code>SignatureDoesNotMatch<'
	signed you s/+=ecret "$URL/data/a.txt" | grep -q '<Code>InvalidAccessKeyId<'
	curl -s --aws-sigv4 aws:amz:eu-west-1:s3 --user me:s/+=ecret \
		-H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' "$URL/data/a.txt" |
		grep -q "expecting 'us-east-1'"
	# a header that was added behind the signature
	signed me s/+=ecret -H 'x-amz-security-token: x' "$URL/data/a.txt" |
		grep -q '<Code>InvalidToken<'
	[ "$(code -H 'Authorization: AWS me:abc' "$URL/data/a.txt")" = '400 InvalidRequest' ]
	[ "$(code -H 'Authorization: AWS4-HMAC-SHA256 x' "$URL/data/a.txt")" = \
		'400 AuthorizationHeaderMalformed' ]
	[ "$(code "$URL/data/a.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256")" = \
		'400 AuthorizationQueryParametersError' ]
}

@test "s3: keys of others, no keys, and anonymous only for this machine" {
	chmod 644 "$TMP/keys"
	run -1 "$BUILD/gpemu-s3" --listen 127.0.0.1:1 --keys "$TMP/keys" "$SRC"
	[[ $output == *'other users may access the key'* ]]
	run -1 env -u AWS_ACCESS_KEY_ID "$BUILD/gpemu-s3" --listen 127.0.0.1:1 "$SRC"
	[[ $output == *'no keys of clients'* ]]
	run -1 "$BUILD/gpemu-s3" --listen 0.0.0.0:1 --anonymous "$SRC"
	[[ $output == *'other machines can reach 0.0.0.0:1'* ]]
	run -2 "$BUILD/gpemu-s3" --bucket Data "$SRC"
	AWS_ACCESS_KEY_ID=env AWS_SECRET_ACCESS_KEY=x s3 "$SRC"
	[ "$(signed env x "$URL/data/a.txt")" = hello ]
}

# bats test_tags=slow
@test "s3: without a signature only by a name that is its own" {
	local host

	s3 --anonymous --host store.lan "$SRC"
	for host in 127.0.0.1:1 '[::1]' localhost. LOCALHOST:9 data.localhost x.y.localhost:9 \
		store.lan Store.Lan.:80 data.store.lan; do
		[ "$(code -H "Host: $host" "$URL/.gpemu/config" -o /dev/null)" != '403 ' ]
	done
	for host in example.com localhost.example.com xlocalhost 127.0.0.1.example.com \
		data.example.com store.lan.example.com xstore.lan other.store.lan x; do
		[ "$(code -H "Host: $host" "$URL/data/a.txt")" = '403 AccessDenied' ]
		[ "$(code -H "Host: $host" "$URL/.gpemu/stats")" = '403 AccessDenied' ]
	done
	curl -s -H 'Host: example.com' "$URL/data" | grep -q 'see --host'
	[ "$(curl -s --http1.0 -H Host: "$URL/data/a.txt")" = hello ]
	kill "$SERVER"
	# a name that begins as one of the bucket would
	s3 --anonymous --host data.lan "$SRC"
	[ "$(curl -s -H 'Host: data.lan' "$URL/data/a.txt")" = hello ]
	kill "$SERVER"
	s3 --anonymous --host '*' "$SRC"
	[ "$(curl -s -H 'Host: example.com' "$URL/data/a.txt")" = hello ]
	kill "$SERVER"
	# a signature has the name in it
	s3 --keys "$TMP/keys" "$SRC"
	[ "$(signed me s/+=ecret -H 'Host: example.com' "$URL/data/a.txt")" = hello ]
}

@test "s3: more connections than descriptors are refused, and nobody waits" {
	ulimit -n 400
	s3 --anonymous --connections 10000 "$SRC"
	grep -q -- '--connections 10000: only 208, as this process may have 400 open files' "$TMP/log"
	python3 - "$PORT" "$SERVER" <<-'END'
		import os, socket, sys, time
		port, pid = map(int, sys.argv[1:])
		def cpu():
		    f = open(f'/proc/{pid}/stat').read().rsplit(')')[1].split()
		    return (int(f[11]) + int(f[12])) / os.sysconf('SC_CLK_TCK')
		def get(s):
		    try:
		        s.sendall(b'GET /data/a.txt HTTP/1.1\r\nHost: localhost\r\n\r\n')
		    except ConnectionError:
		        pass # the answer is there
		    return s.recv(9999)
		def connect(n):
		    return [socket.create_connection(('127.0.0.1', port), 20) for _ in range(n)]
		idle = connect(208)
		assert all(b' 200 ' in get(s) for s in idle)
		for s in connect(100):
		    answer = get(s)
		    assert b' 503 ' in answer and b'SlowDown' in answer, answer
		    s.close()
		before = cpu()
		time.sleep(1)
		assert cpu() - before < .3, 'it spins'
		assert all(b' 200 ' in get(s) for s in idle)
		for s in idle[100:]:
		    s.close()
		for _ in range(100): # it sees that they are closed
		    answer = get(connect(1)[0])
		    if b' 200 ' in answer:
		        break
		    time.sleep(.05)
		assert b'hello' in answer, answer
	END
	[ "$(grep -c 'there are 208 connections' "$TMP/log")" = 1 ]
	stat_of 's["s3"]["refused"] >= 100' | grep -q True
}

@test "s3: nothing outside the source" {
	ln -s /etc/passwd "$SRC/out"
	ln -s a.txt "$SRC/in"
	s3 --anonymous "$SRC"
	for path in /data/../../etc/passwd /data/%2e%2e/%2e%2e/etc/passwd \
		/data/..%2f..%2fetc/passwd /data//etc/passwd /data/./a.txt \
		/data/a/../a.txt /data/out /data/a%2f /data/; do
		! curl -s --path-as-is "$URL$path" | grep -q root: || return 1
		[ "$path" = /data/ ] ||
			[ "$(code --path-as-is "$URL$path")" = '404 NoSuchKey' ]
	done
	[ "$(code --path-as-is "$URL/../etc/passwd")" = '404 NoSuchBucket' ]
	[ "$(code "$URL/.gpemu/../a.txt" --path-as-is)" = '404 NoSuchKey' ]
	[ "$(code "$URL/data/a.txt%00")" = '400 InvalidURI' ]
	[ "$(curl -s "$URL/data/in")" = hello ]
	! curl -s "$URL/data" | grep -q '<Key>out<'
}

@test "s3: requests that are none" {
	s3 --anonymous --header-timeout 1s "$SRC"
	[ "$(code -X PUT -T "$SRC/big" "$URL/data/new")" = '405 MethodNotAllowed' ]
	[ "$(code -X DELETE "$URL/data/a.txt")" = '405 MethodNotAllowed' ]
	[ "$(code -X GET -d x "$URL/data/a.txt")" = '405 MethodNotAllowed' ]
	[ "$(code "$URL/data/a.txt?versionId=1")" = '501 NotImplemented' ]
	[ "$(code "$URL/data?acl")" = '501 NotImplemented' ]
	[ "$(code "$URL/data?max-keys=x")" = '400 InvalidArgument' ]
	[ "$(code "$URL/data?list-type=2&continuation-token=%21")" = '400 InvalidArgument' ]
	# headers of 40 KB; two lengths; a space in a name; a slow client
	code -H "x: $(head -c 40000 /dev/zero | tr '\0' x)" "$URL/data/a.txt" | grep '^4'
	# more headers than are looked at; a page in a browser
	printf 'header = "x%d: y"\n' {1..300} >"$TMP/headers"
	[ "$(code -K "$TMP/headers" "$URL/data/a.txt")" = '400 InvalidRequest' ]
	[ "$(code -H 'Origin: http://example.com' "$URL/data/a.txt")" = '403 AccessDenied' ]
	python3 - "$PORT" <<-'END'
		import socket, sys, time
		def say(text, pause=0):
		    s = socket.create_connection(('127.0.0.1', int(sys.argv[1])), 10)
		    s.settimeout(10)
		    for part in text:
		        try:
		            s.sendall(part.encode())
		        except OSError:
		            return b''
		        time.sleep(pause)
		    try:
		        return s.recv(4096)
		    except ConnectionError:
		        return b''
		def answers(text):
		    s = socket.create_connection(('127.0.0.1', int(sys.argv[1])), 10)
		    s.sendall(text.encode())
		    return b''.join(iter(lambda: s.recv(4096), b'')).count(b'HTTP/1.1 ')
		get = 'GET /data/a.txt HTTP/1.1\r\nHost: localhost\r\n'
		# what a proxy may take for a body is no second request
		close = get + 'Connection: close\r\n\r\n'
		assert answers(get + '\r\n' + close) == 2
		for first, second in ('', '0'), ('0\r\n\r\n', f'{len(close) + 5}\r\nTransfer-Encoding: chunked'):
		    assert answers(get + f'Content-Length: {len(first)}\r\nContent-Length: {second}\r\n\r\n'
		                   + first + close) == 1, second
		assert b' 200 ' in say([get + '\r\n'])
		both = 'Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /'
		assert b' 200 ' not in say([get + both])
		assert b' 200 ' not in say(['GET /data/a.txt HTTP/1.1\r\n\r\n'])
		began = time.time()
		assert say(list(get), .2) == b'', 'a slow client is answered'
		assert time.time() - began < 9
	END
	[ "$(curl -s "$URL/data/a.txt")" = hello ]
}

@test "s3: faults are answers of S3" {
	s3 --anonymous --fault 'op=read,path=a.txt,errno=EBUSY;op=lookup,errno=EACCES' \
		--fault 'op=read,path=x,errno=ECONNRESET;op=read,path=empty,errno=EIO' "$SRC"
	[ "$(code "$URL/data/a.txt")" = '503 SlowDown' ]
	[ "$(code -I "$URL/data/big")" = '403 ' ]
	[ "$(code "$URL/data/a/b/x")" = '000 ' ]
	[ "$(code "$URL/data/empty")" = '500 InternalError' ]
	[ "$(stat_of 's["s3"]["errors"]["SlowDown"]')" = 1 ]
}

@test "s3: time, requests and their price" {
	cat >"$TMP/store.yaml" <<-'END'
		name: store
		source: test
		channels: {source: t, verified: true, mb_per_s: 10}
		price: {source: t, verified: true, read_usd_per_1000: 0.4, lookup_usd_per_1000: 0.4}
		open: {source: t, verified: true}
		lookup: {source: t, verified: true, latency: {kind: const, value: 100ms}}
		readdir: {source: t, verified: true, latency: {kind: const, value: 100ms}}
		read: {source: t, verified: true, latency: {kind: const, value: 100ms}}
	END
	s3 --anonymous --storage "$TMP/store.yaml" --trace "$TMP/trace" --json "$TMP/record" "$SRC"
	# 3 MB: 100 ms, then 300 ms
	curl -s -o /dev/null -w '%{time_starttransfer} %{time_total}\n' "$URL/data/big" >"$TMP/times"
	awk '{ exit !($1 >= .1 && $2 >= .4) }' "$TMP/times"
	curl -sI "$URL/data/a.txt" >/dev/null
	curl -s "$URL/data/none" >/dev/null
	[ "$(stat_of 's["requests"]["read"], s["requests"]["lookup"]')" = '2 1' ]
	[ "$(stat_of 'round(s["cost_usd"], 6)')" = 0.0012 ]
	[ "$(stat_of 's["backend_bytes"], s["delivered_bytes"]')" = '3000000 3000000' ]
	[ "$(stat_of 's["hit_path_reason"]')" = 'there is no mount' ]
	kill "$SERVER"
	wait "$SERVER"
	grep -q big "$TMP/trace"
	python3 -c 'import json, sys
assert json.load(open(sys.argv[1]))["s3"]["operations"]["GetObject"] == 2' "$TMP/record"
}

@test "s3: a cache, and the end while a request waits" {
	s3 --anonymous -c 100% --fault 'op=lookup,stuck' "$SRC"
	curl -s "$URL/data/big" | cmp - "$SRC/big"
	curl -s "$URL/data/big" | cmp - "$SRC/big"
	[ "$(stat_of 's["policy"], s["hits"], s["misses"]')" = 'lru 1 1' ]
	curl -sI -o /dev/null -w '%{http_code}' "$URL/data/big" >"$TMP/code" &
	waits=$!
	for _ in {1..100}; do
		[ "$(stat_of 's["s3"]["operations"]["HeadObject"]')" = 0 ] || break
	done
	kill "$SERVER"
	wait "$SERVER"
	wait $waits
	[ "$(cat "$TMP/code")" = 503 ]
}

@test "s3: TLS, with a certificate and a key that only its owner reads" {
	command -v openssl >/dev/null || skip "openssl is not installed"
	cd "$TMP"
	openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 \
		-subj /CN=gpemu -addext 'subjectAltName=IP:127.0.0.1' 2>/dev/null
	s3 -s ideal --keys keys --tls-certificate cert.pem --tls-key key.pem "$SRC"
	URL=https://127.0.0.1:$PORT
	signed me 's/+=ecret' --cacert cert.pem "$URL/data/big" | cmp - "$SRC/big"
	run ! curl -s "$URL/data/a.txt" # who signed it?
	run ! curl -s "http://127.0.0.1:$PORT/data/a.txt"
	# no version before 1.2
	for version in tls1_1 tls1_2; do
		openssl s_client -connect "127.0.0.1:$PORT" -$version -cipher ALL:@SECLEVEL=0 \
			</dev/null >$version 2>&1 || true
	done
	grep -q 'New, TLSv1.2' tls1_2
	run ! grep -q 'New, TLS' tls1_1
	if [ -w /dev/fuse ]; then
		mkdir m
		AWS_SHARED_CREDENTIALS_FILE=keys AWS_CA_BUNDLE=cert.pem AWS_ENDPOINT_URL=$URL \
			"$BUILD/gpemu-fs" s3://data m 3>&-
		cmp m/big "$SRC/big"
		fusermount3 -u m
	fi
	chmod 644 key.pem
	run ! s3 --keys keys --tls-certificate cert.pem --tls-key key.pem "$SRC"
	[[ $output == *"key.pem: other users may access the key"* ]]
	chmod 600 cert.pem
	run ! s3 --keys keys --tls-certificate cert.pem --tls-key cert.pem "$SRC"
	[[ $output == *"no certificate and its key"* ]]
	run ! s3 --keys keys --tls-certificate cert.pem "$SRC"
	[[ $output == *"only both together"* ]]
}
