# SPDX-License-Identifier: MIT
# gpemu-train on a bucket.
bats_require_minimum_version 1.5.0
load s3

# train NAME OPTION...: its record in $TMP/NAME.json
train() {
	local name=$1

	shift
	timeout 60 "$BUILD/gpemu-train" --model alexnet --gpu v100 -b 8 -e 1 --prep none \
		--ceiling off --progress off --index off --json "$TMP/$name.json" "$@"
}

# of NAME EXPRESSION: of Python, with the record as r
of() {
	python3 -c "import json
r = json.load(open('$TMP/$1.json'))
print($2)"
}

bucket() {
	export AWS_ACCESS_KEY_ID=me AWS_SECRET_ACCESS_KEY='s/+=ecret' HOME=$TMP
	unset AWS_SESSION_TOKEN AWS_PROFILE AWS_REGION AWS_DEFAULT_REGION
	for c in 'cat x' cat-y dog; do
		mkdir -p "$SRC/$c/deep"
		for i in {1..15}; do head -c $((i * 300)) /dev/urandom >"$SRC/$c/f$i"; done
		echo odd >"$SRC/$c/deep/a+b &ü"
	done
	s3 "$@" "$SRC"
	export AWS_ENDPOINT_URL=$URL
}

@test "train-s3: the samples, classes and order of a folder" {
	bucket
	for loader in async threads sync; do
		train $loader --data s3://data --loader $loader --workers 2 --dump-order "$TMP/$loader"
		[ "$(of $loader "r['totals']['samples'], r.get('bad_samples')")" = '49 None' ]
		[ "$(of $loader "r['dataset']['format'], r['store']['retries']")" = 's3 0' ]
	done
	train folder --data "$SRC" --loader async --workers 2 --dump-order "$TMP/folder"
	for what in "r['totals']['bytes']" "r['dataset']['classes']"; do
		[ "$(of async "$what")" = "$(of folder "$what")" ]
	done
	cmp "$TMP/async" "$TMP/folder"
	train part --data "s3://data/cat x" --loader async
	[ "$(of part "r['totals']['samples'], r['dataset']['classes']")" = '1 1' ]
}

@test "train-s3: requests that fail for a while are sent again" {
	bucket --fault op=read,every=5,errno=EBUSY --fault op=readdir,count=1,errno=EIO
	train throttled --data s3://data --loader async
	[ "$(of throttled "r['totals']['samples'], r.get('bad_samples')")" = '49 None' ]
	[ "$(of throttled "r['store']['errors']['503'] >= 10")" = True ]
}

@test "train-s3: an object that may not be read is a bad sample" {
	bucket --fault op=read,path='dog/f3',errno=EACCES
	run train bad --data s3://data --loader async
	[ "$status" -eq 0 ]
	echo "$output"
	[[ $output == *"dog/f3: Permission denied"* ]]
	[ "$(of bad "len(r['bad_samples'])")" = 1 ]
	run -1 train stop --data s3://data --loader async --bad-samples 0
	[[ $output == *"dog/f3"*"Permission denied"* ]]
}

@test "train-s3: sizes that a store may make up" {
	cat >"$TMP/lies.py" <<-'END'
		import http.server
		class Server(http.server.BaseHTTPRequestHandler):
		    def log_message(self, *a): pass
		    def do_GET(self):
		        self.send_response(200)
		        self.end_headers()
		        self.wfile.write(("<ListBucketResult>" + "".join(
		            f"<Contents><Key>{k}</Key><Size>{n}</Size></Contents>"
		            for k, n in (("a", 2**63 - 1), ("b", 2**63 - 1), ("c", 100)))
		            + "</ListBucketResult>").encode())
		server = http.server.HTTPServer(("127.0.0.1", 0), Server)
		print(server.server_port, flush=True)
		server.serve_forever()
	END
	python3 "$TMP/lies.py" >"$TMP/port" 3>&- &
	PIDS+=($!)
	until [ -s "$TMP/port" ]; do sleep .05; done
	export AWS_ENDPOINT_URL=http://127.0.0.1:$(<"$TMP/port") AWS_NO_SIGN_REQUEST=1
	run -1 train lies --data s3://data --loader async
	[[ $output == *"b: the samples have more than 8 EiB"* ]]
}

@test "train-s3: what needs files is refused" {
	bucket
	run -1 train no --data s3://data --loader mmap
	[[ $output == *"a bucket cannot be mapped"* ]]
	run -1 train no --data s3://data --format tar
	[[ $output == *"format tar is not read from a bucket"* ]]
	run -1 train no --data s3://data --direct on
	[[ $output == *"a bucket has no page cache"* ]]
	run -1 train no --data s3://data/none
	[[ $output == *"no objects below none/"* ]]
	run -1 train no --data s3://X
	[[ $output == "gpemu-train: s3://X: a bucket has 3 to 63"* ]]
	run -1 train no --data "$SRC" --format s3
	[[ $output == *"format s3 is that of s3://BUCKET"* ]]
}
