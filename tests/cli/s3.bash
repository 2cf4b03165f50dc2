# SPDX-License-Identifier: MIT
# A gpemu-s3 for each test, and a source for it.

load processes

setup() {
	BUILD=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}
	TMP=$(mktemp -d)
	SRC=$TMP/src
	PIDS=()
	command -v curl >/dev/null || skip "curl is not installed"
	mkdir -p "$SRC/a/b" "$SRC/c"
	head -c 3000000 /dev/urandom >"$SRC/big"
	head -c 100000 /dev/urandom >"$SRC/a/b/x"
	echo hello >"$SRC/a.txt"
	: >"$SRC/empty"
	printf '[default]\naws_access_key_id = me\naws_secret_access_key = s/+=ecret\n' >"$TMP/keys"
	chmod 600 "$TMP/keys"
}

teardown() {
	end_processes "${PIDS[@]}"
	rm -rf "$TMP"
}

# s3 OPTION... [SOURCE]: one that serves at $URL; its pid is $SERVER
s3() {
	PORT=$(python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
	URL=http://127.0.0.1:$PORT
	: >"$TMP/log"
	"$BUILD/gpemu-s3" --listen "127.0.0.1:$PORT" "$@" 3>&- 2>"$TMP/log" &
	SERVER=$!
	PIDS+=("$SERVER")
	for _ in {1..200}; do
		! grep -q ': serving ' "$TMP/log" || return 0
		kill -0 "$SERVER" || break
		sleep .05
	done
	cat "$TMP/log"
	return 1
}

# signed KEY SECRET CURL-ARGUMENT...
signed() {
	local key=$1 secret=$2

	shift 2
	curl -s --aws-sigv4 aws:amz:us-east-1:s3 --user "$key:$secret" \
		-H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' "$@"
}

# code CURL-ARGUMENT...: the status, and the code of S3 if there is one
code() {
	curl -s -w '\n%{http_code}\n' "$@" | python3 -c '
import re, sys
text = sys.stdin.buffer.read().decode("latin-1")
code = re.search("<Code>(.*)</Code>", text)
print(text.split()[-1], code[1] if code else "")'
}

# stat EXPRESSION: of Python, with the stats as s
stat_of() {
	curl -s "$URL/.gpemu/stats" | python3 -c "
import json, sys
s = json.load(sys.stdin)
print($1)"
}
