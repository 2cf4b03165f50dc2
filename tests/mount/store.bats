# SPDX-License-Identifier: MIT
# gpemu-fs on a bucket: of gpemu-s3, and of a server that is not ours.
bats_require_minimum_version 1.5.0
load mount

setup()
{
	common_setup
	export AWS_ACCESS_KEY_ID=me AWS_SECRET_ACCESS_KEY='s/+=ecret' HOME=$BATS_TEST_TMPDIR
	unset AWS_SESSION_TOKEN AWS_PROFILE AWS_REGION AWS_DEFAULT_REGION AWS_ENDPOINT_URL_S3
	make_files 60 2000
	mkdir -p "$src/c d/deep" "$src/c-d"
	echo odd >"$src/c d/deep/x+y &ü"
	echo dash >"$src/c-d/f"
	: >"$src/empty"
	head -c 9000000 /dev/urandom >"$src/big"
}

teardown() { common_teardown; }

# free_port: of 127.0.0.1
free_port()
{
	python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}

# until_answers COMMAND...: the server at $PORT, just started, has a connection
until_answers()
{
	"$@" >"$BATS_TEST_TMPDIR/server.log" 2>&1 3>&- &
	pids="${pids-} $!"
	for _ in {1..300}; do
		(: <"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null && return 0
		kill -0 $!
		sleep .05
	done
	return 1
}

# serve OPTION...: $src as bucket `data` of gpemu-s3
serve()
{
	PORT=$(free_port)
	export AWS_ENDPOINT_URL=http://127.0.0.1:$PORT
	until_answers gpemu-s3 --listen "127.0.0.1:$PORT" "$@" "$src"
}

# refused TEXT OPTION...: gpemu-fs on s3://data says so
refused()
{
	local text=$1

	shift
	run -1 timeout 60 gpemu-fs "${@:-s3://data}" "$mp"
	echo "$output"
	[[ $output == *"$text"* ]]
}

@test "store: a bucket and a part of it have the bytes of their files" {
	serve
	gpemu-fs -s ideal s3://data "$mp"
	[ "$(tree_sum "$mp")" = "$(tree_sum "$src")" ]
	[ "$(stat -c '%s %Y' "$mp/big")" = "9000000 $(stat -c %Y "$src/big")" ]
	cmp <(tail -c +4190001 "$mp/big" | head -c 9000) <(tail -c +4190001 "$src/big" | head -c 9000)
	[ "$(stat_of '["source"]["retries"]')" = 0 ]
	[ "$(stat_of '["source"]["requests"]')" -ge 65 ]
	fusermount3 -u "$mp"
	gpemu-fs -s ideal --cache-policy none "s3://data/c d" "$mp"
	[ "$(cat "$mp/deep/x+y &ü")" = odd ]
	[ "$(ls "$mp")" = deep ]
	fusermount3 -u "$mp"
	refused "no objects below none/" s3://data/none
}

@test "store: what fails for a while is tried again" {
	serve --fault op=read,every=7,errno=EBUSY --fault op=read,every=11,errno=ECONNRESET \
		--fault op=readdir,every=2,errno=EIO
	gpemu-fs -s ideal s3://data "$mp"
	[ "$(tree_sum "$mp")" = "$(tree_sum "$src")" ]
	[ "$(stat_of '["source"]["retries"]')" -ge 8 ]
	[ "$(stat_of '["source"]["errors"]["503"]')" -ge 5 ]
	fusermount3 -u "$mp"
}

@test "store: what stays wrong is an error of the file alone" {
	serve --fault op=read,path='c0/*',errno=EACCES
	gpemu-fs -s ideal s3://data "$mp"
	run ! cat "$mp"/c0/f00000
	[[ $output == *"Permission denied"* ]]
	cmp "$mp/c1/f00001" "$src/c1/f00001"
	fusermount3 -u "$mp"
}

@test "store: an object that changed is stale" {
	serve
	gpemu-fs -s ideal --cache-policy none s3://data "$mp"
	cmp "$mp/c1/f00001" "$src/c1/f00001"
	head -c 5000 /dev/zero >"$src/c1/f00001"
	end_processes $pids
	until_answers gpemu-s3 --listen "127.0.0.1:$PORT" "$src"
	run ! cat "$mp/c1/f00001"
	[[ $output == *"Stale file handle"* ]]
	cmp "$mp/c2/f00002" "$src/c2/f00002"
	rm "$src/c2/f00002"
	end_processes $pids
	until_answers gpemu-s3 --listen "127.0.0.1:$PORT" "$src"
	run ! cat "$mp/c2/f00002"
	[[ $output == *"Stale file handle"* ]]
	fusermount3 -u "$mp"
}

@test "store: keys, endpoint and bucket that are wrong, each with its reason" {
	serve
	refused "no such bucket" s3://other
	refused "s3://X: a bucket has 3 to 63" s3://X
	refused "expected s3://BUCKET" s3:data
	AWS_SECRET_ACCESS_KEY=wrong refused "SignatureDoesNotMatch"
	AWS_ACCESS_KEY_ID=you refused "InvalidAccessKeyId"
	AWS_REGION=eu-west-1 refused "expecting 'us-east-1'"
	AWS_ENDPOINT_URL=http://127.0.0.1:1 refused "Failed to connect"
	AWS_ENDPOINT_URL=127.0.0.1:1 refused "is not http://HOST:PORT"
	AWS_ACCESS_KEY_ID='' refused "AWS_ACCESS_KEY_ID is not set"
	unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
	refused "no keys for the object store"
	AWS_PROFILE=none refused "no profile 'none'"
	mkdir "$HOME/.aws"
	printf '[default]\nrole_arn = arn:x\n[profile ok]\nregion = us-east-1\nendpoint_url = %s\ns3 =\n  a = b\n' \
		"$AWS_ENDPOINT_URL" >"$HOME/.aws/config"
	refused "gets its keys by role_arn, which is not supported"
	printf '[ok]\naws_access_key_id = me\naws_secret_access_key = s/+=ecret\n' >"$HOME/.aws/credentials"
	AWS_PROFILE=ok gpemu-fs -s ideal s3://data "$mp"
	cmp "$mp/c1/f00001" "$src/c1/f00001"
	fusermount3 -u "$mp"
	unset AWS_ENDPOINT_URL
	AWS_PROFILE=ok gpemu-fs -s ideal s3://data "$mp"
	fusermount3 -u "$mp"
	printf '[ok]\nwhat\n' >"$HOME/.aws/credentials"
	AWS_PROFILE=ok refused ".aws/credentials:2:1: expected KEY = VALUE"
}

@test "store: a public bucket needs no keys" {
	unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
	serve --anonymous
	AWS_NO_SIGN_REQUEST=yes gpemu-fs -s ideal s3://data "$mp"
	cmp "$mp/c1/f00001" "$src/c1/f00001"
	fusermount3 -u "$mp"
}

# bats test_tags=slow
@test "store: a bucket of moto" {
	python3 -c 'import boto3, moto.server' 2>/dev/null || skip "needs moto, which is no package of Debian"
	PORT=$(free_port)
	export AWS_ENDPOINT_URL=http://127.0.0.1:$PORT
	until_answers python3 -m moto.server -p "$PORT"
	python3 - "$src" <<-'END'
		import boto3, os, sys
		s3 = boto3.client("s3", region_name="us-east-1")
		s3.create_bucket(Bucket="data")
		for top, _, names in os.walk(sys.argv[1]):
		    for name in names:
		        path = os.path.join(top, name)
		        s3.upload_file(path, "data", os.path.relpath(path, sys.argv[1]))
		for key in "c0/", "c0", "c0//x", "/a", "c1/../x", "c3/.":
		    s3.put_object(Bucket="data", Key=key, Body=b"" if key[-1] == "/" else b"x")
		for i in range(1100):
		    s3.put_object(Bucket="data", Key=f"many/{i}", Body=b"")
	END
	run --separate-stderr gpemu-fs -s ideal --cache-policy none s3://data "$mp"
	[[ $stderr == *"s3://data: 5 keys are left out"* ]]
	[ "$(find "$mp/many" -type f | wc -l)" = 1100 ]
	mkdir "$src/many"
	(cd "$src/many" && touch $(seq 0 1099))
	[ "$(tree_sum "$mp")" = "$(tree_sum "$src")" ]
	python3 -c 'import boto3
boto3.client("s3", region_name="us-east-1").put_object(Bucket="data", Key="c4/f00009", Body=b"x" * 9)'
	run ! cat "$mp/c4/f00009"
	[[ $output == *"Stale file handle"* ]]
	fusermount3 -u "$mp"
}

# lying_server: says what it wants of objects and listings
lying_server()
{
	cat >"$BATS_TEST_TMPDIR/lies.py" <<-'END'
		import http.server, itertools, sys, urllib.parse
		TOKENS = itertools.cycle("abcde")
		KEYS = "whole", "long", "range", "total", "etag", "headers", "moved", "none", "again"
		seen = set()
		class Server(http.server.BaseHTTPRequestHandler):
		    protocol_version = "HTTP/1.1"
		    def log_message(self, *a): pass
		    def answer(self, status, body, **headers):
		        self.send_response(status)
		        for k, v in {"Content-Length": str(len(body)), "ETag": '"e"', **headers}.items():
		            self.send_header(k.replace("_", "-"), v)
		        self.end_headers()
		        self.wfile.write(body)
		    def listing(self, prefix):
		        more = prefix == "loop/"
		        keys = ["elsewhere"] if prefix == "other/" else [prefix + k for k in KEYS]
		        self.answer(200, ("<ListBucketResult><IsTruncated>%s</IsTruncated>" % str(more).lower()
		            + (f"<NextContinuationToken>{next(TOKENS)}</NextContinuationToken>" if more else "")
		            + "".join(f"<Contents><Key>{k}</Key><Size>10</Size><ETag>\"e\"</ETag></Contents>" for k in keys)
		            + ("" if prefix != "cut/" else "<Contents>") + "</ListBucketResult>").encode())
		    def do_GET(self):
		        url = urllib.parse.urlsplit(self.path)
		        if url.query:
		            return self.listing(urllib.parse.parse_qs(url.query).get("prefix", [""])[0])
		        key, right = url.path.split("/")[-1], "bytes 0-9/10"
		        if key == "whole": self.answer(200, b"0123456789")
		        elif key == "long": self.answer(206, b"x" * 100000, Content_Range=right)
		        elif key == "range": self.answer(206, b"0123456789", Content_Range="bytes 10-19/10")
		        elif key == "total": self.answer(206, b"0123456789", Content_Range="bytes 0-9/11")
		        elif key == "etag": self.answer(206, b"0123456789", Content_Range=right, ETag='"f"')
		        elif key == "headers": self.answer(206, b"0123456789", **{f"x-{i}": "y" * 900 for i in range(90)})
		        elif key == "moved": self.answer(302, b"", Location="/data/whole")
		        elif key == "none": self.answer(206, b"0123456789")
		        elif key not in seen: # the connection ends within the body
		            seen.add(key)
		            self.answer(206, b"01234", Content_Range=right, Content_Length="10")
		            self.close_connection = True
		        else: self.answer(206, b"0123456789", Content_Range=right)
		http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Server).serve_forever()
	END
	PORT=$(free_port)
	export AWS_ENDPOINT_URL=http://127.0.0.1:$PORT
	until_answers python3 "$BATS_TEST_TMPDIR/lies.py" "$PORT"
}

@test "store: a server that lies" {
	lying_server
	gpemu-fs -s ideal s3://data "$mp"
	for key in whole again; do [ "$(cat "$mp/$key")" = 0123456789 ]; done
	for key in long range headers none; do
		run ! cat "$mp/$key"
		[[ $output == *"Protocol error"* ]]
	done
	for key in total etag; do
		run ! cat "$mp/$key"
		[[ $output == *"Stale file handle"* ]]
	done
	run ! cat "$mp/moved"
	[[ $output == *"Input/output error"* ]]
	fusermount3 -u "$mp"
	refused "the listing repeats itself" s3://data/loop
	refused "it lists other keys than were asked for" s3://data/other
	refused "the listing of the object store: mismatched tag" s3://data/cut
}
