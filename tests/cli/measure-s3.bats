#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-profile measure --storage s3://: of a gpemu-s3 with a known profile.
# bats file_tags=long

bats_require_minimum_version 1.5.0
load s3

# bucket OPTION...: a gpemu-s3, found by the variables of AWS
bucket() {
	export AWS_ACCESS_KEY_ID=me AWS_SECRET_ACCESS_KEY='s/+=ecret' HOME=$TMP
	unset AWS_SESSION_TOKEN AWS_PROFILE AWS_REGION AWS_DEFAULT_REGION
	cd "$TMP"
	mkdir "$SRC/deep"
	for i in {1..4}; do head -c 9M /dev/urandom >"$SRC/deep/$i"; done
	s3 --keys "$TMP/keys" "$@" "$SRC"
	export AWS_ENDPOINT_URL=$URL
}

measure() {
	"$BUILD/gpemu-profile" measure --storage "$@"
}

# near FILE KEY=VALUE...: of the profile in the file; a latency is its median, in ms.
# 10 % are what other programs may take; tests/bench/s3 has what is exact.
near() {
	"$BUILD/gpemu-profile" show storage "./$1" --json show.json >/dev/null
	python3 - "${@:2}" <<-'END'
		import json, os, sys
		most = .5 if os.environ.get("GPEMU_SANITIZED") else .1
		p = json.load(open("show.json"))
		bad = 0
		for word in sys.argv[1:]:
		    key, want = word.split("=")
		    if key in ("channels", "link"):
		        got = p[key]["mb_per_s"]
		    else:
		        got = [float(q[1].rstrip("ns")) / 1e6 for q in
		               p[key]["latency"]["quantiles"] if q[0] == .5][0]
		    off = got / float(want) - 1
		    print(f"{key}: {got:.4g}, wanted {want}: {off:+.1%}")
		    bad |= abs(off) > most
		sys.exit(bad)
	END
}

# One in three tries, as other programs may have been in the way.
# bats test_tags=alone
@test "measure-s3: the profile of a store is found again" {
	cat >"$TMP/lab.yaml" <<-END
		name: lab
		source: a test
		channels: {source: a test, mb_per_s: 10}
		link: {source: a test, mb_per_s: 30}
		lookup: {source: a test, latency: {kind: const, value: 1ms}}
		readdir: {source: a test, latency: {kind: const, value: 40ms}}
		read: {source: a test, latency: {kind: const, value: 10ms}}
	END
	bucket -s "$TMP/lab.yaml"
	for try in 1 2 3; do
		run -0 measure s3://data/deep --requests 400 --download 192M \
			--output $try.yaml --json $try.json
		[[ $output == *"at most 400 requests"*"192 MiB from s3://data/deep; nothing"* ]]
		"$BUILD/gpemu-profile" check ./$try.yaml
		# what was announced, what was used, and what the store counted
		python3 - $try.json <<-'END'
			import json, sys
			j = json.load(open(sys.argv[1]))
			assert 200 < j["requests"] <= 400 and j["bytes"] <= 192 << 20, j
		END
		near $try.yaml channels=10 link=30 read=10 readdir=40 lookup=10 && break
		[ $try -lt 3 ]
	done
	[ "$(signed me 's/+=ecret' "$URL/.gpemu/stats" | python3 -c 'import json, sys
o = json.load(sys.stdin)["s3"]["operations"]
print(o["GetObject"] > 200 and o.get("PutObject", 0) == 0)')" = True ]
	# both programs take it
	bash -c "exec '$BUILD/gpemu-s3' -s ./$try.yaml --dump-config '$SRC'" |
		grep -q "storage: ./$try.yaml"
	s3 --anonymous -s ./$try.yaml "$SRC"
	curl -s "$URL/data/a.txt" | grep -q hello
	"$BUILD/gpemu-fs" -s ./$try.yaml --dump-config "$SRC" / | grep -q "$try.yaml"
	# measured points are not measured again, whose requests cost money
	run -0 measure s3://data/deep --requests 400 --download 192M \
		--output again.yaml --state $try.yaml.state
	[[ $output == *"points are taken from $try.yaml.state"* ]]
	[[ $output == *"requests sent: 1, received: "* ]]
	near again.yaml channels=10 read=10
	# a bucket of that name at another address is another
	AWS_ENDPOINT_URL=$URL run -1 measure s3://data/deep --requests 400 --download 192M \
		--output other.yaml --state $try.yaml.state
	[[ $output == *"$try.yaml.state"* ]] && [ ! -e other.yaml ]
}

@test "measure-s3: a store that fails now and then, and one that always does" {
	bucket --fault op=read,every=40,errno=EBUSY
	run -0 measure s3://data --requests 200 --download 64M --output some.yaml
	[ -s some.yaml ]
	bucket2() {
		s3 --keys "$TMP/keys" "$@" "$SRC"
		export AWS_ENDPOINT_URL=$URL
		rm -f x.yaml.state
		run -1 measure s3://data --requests 200 --download 64M --output x.yaml
		echo "$output"
		[ ! -e x.yaml ]
		# the announcement, what was used if anything was, and one line
		[ "${#lines[@]}" -le 3 ]
	}
	bucket2 --fault op=read,errno=EBUSY
	[[ ${lines[-1]} == *"s3://data: "*": the store asks to slow down: HTTP status 503" ]]
	bucket2 --fault op=read,errno=EACCES
	[[ ${lines[-1]} == *"s3://data: "*": access denied: HTTP status 403" ]]
	bucket2 --fault op=readdir,errno=EBUSY
	[[ ${lines[-1]} == *"/data/: HTTP status 503: SlowDown"* ]]
	bucket2 --fault op=readdir,errno=EACCES
	[[ ${lines[-1]} == *"/data/: access denied: AccessDenied"* ]]
}

# refused TEXT COMMAND...: an announcement, what was used if anything was, and one
# line with the text
refused() {
	run -1 "${@:2}"
	echo "$output"
	[[ ${lines[-1]} == *"$1"* ]] && [ "${#lines[@]}" -le 3 ]
	[ "${#lines[@]}" -le 2 ] || [[ ${lines[1]} == *"requests sent: 1, received: "* ]]
	[ ! -e x.yaml ] && [ ! -e x.yaml.state ]
}

@test "measure-s3: no bucket, no keys, no objects, no server" {
	bucket
	refused "no such bucket" measure s3://other --output x.yaml
	refused "no objects below none/" measure s3://data/none --output x.yaml
	refused "the largest of the objects found (1) has less than 128 KiB" measure s3://data/a --output x.yaml
	AWS_SECRET_ACCESS_KEY=wrong refused "SignatureDoesNotMatch" \
		measure s3://data --output x.yaml
	AWS_ACCESS_KEY_ID=you refused "InvalidAccessKeyId" measure s3://data --output x.yaml
	refused "no keys for the object store" env -u AWS_ACCESS_KEY_ID \
		-u AWS_SECRET_ACCESS_KEY "$BUILD/gpemu-profile" measure \
		--storage s3://data --output x.yaml
	refused "expected s3://BUCKET[/PREFIX]" measure s3:data --output x.yaml
	AWS_ENDPOINT_URL=http://127.0.0.1:1 refused "127.0.0.1" \
		measure s3://data --output x.yaml
	run -2 measure s3://data
	[[ $output == *"--output or --against is missing"* ]]
	run -2 measure s3://data --requests 10 --output x.yaml
	run -2 measure s3://data --space 1G --output x.yaml
	run -2 measure "$SRC" --requests 1000 --output x.yaml
	# --storage=VALUE is the same
	run -1 "$BUILD/gpemu-profile" measure --storage=s3://other --output x.yaml
	[[ $output == *"no such bucket"* ]]
	mkdir "$TMP/empty"
	s3 --keys "$TMP/keys" "$TMP/empty"
	AWS_ENDPOINT_URL=$URL refused "no objects" measure s3://data --output x.yaml
}

@test "measure-s3: Ctrl-C, and the same command goes on" {
	sed 's/10ms/200ms/' >"$TMP/slow.yaml" <<-END
		name: slow
		source: a test
		read: {source: a test, latency: {kind: const, value: 10ms}}
	END
	bucket -s "$TMP/slow.yaml"
	"$BUILD/gpemu-profile" measure --storage s3://data --requests 200 --download 64M \
		--output x.yaml 2>err 3>&- &
	pid=$!
	for _ in {1..200}; do
		! grep -qs '"kind"' x.yaml.state || break
		sleep .05
	done
	kill -INT $pid
	wait $pid && false
	grep -q "the same command continues from there" err
	[ ! -e x.yaml ] && [ -s x.yaml.state ]
}

@test "measure-s3: Ctrl-C while a store does not answer" {
	cat >"$TMP/stalls.yaml" <<-END
		name: stalls
		source: a test
		readdir: {source: a test, latency: {kind: const, value: 20s}}
	END
	bucket -s "$TMP/stalls.yaml"
	"$BUILD/gpemu-profile" measure --storage s3://data --output x.yaml 2>err 3>&- &
	pid=$!
	until grep -q "at most" err; do sleep .05; done
	sleep .3 # until it has asked
	start=$SECONDS
	kill -INT $pid
	wait $pid && false
	[ $((SECONDS - start)) -lt 10 ]
	[ ! -e x.yaml ] && [ ! -e x.yaml.state ]
	grep -q "stopped; nothing is measured yet" err
}
