#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A disk that fills up: programs fail, and name the file.

bats_require_minimum_version 1.5.0

setup() {
	PATH="$(realpath "${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}"):$PATH"
	unset GPEMU_PROFILES
	unshare -rm mount -t tmpfs none /mnt 2>/dev/null ||
		skip "no mount namespaces"
	cd "$BATS_TEST_TMPDIR"
	mkdir m
}

# on_full_disk: the script of stdin, m full, and a function
# fails WHERE COMMAND...: it fails, as no space is left at WHERE
on_full_disk() {
	{
		cat <<-'SH'
			mount -t tmpfs -o size=64k none m
			fill() { dd if=/dev/zero of=m/fill$RANDOM bs=4k 2>/dev/null || true; }
			fails() {
				local where=$1 status=0
				shift
				fill
				timeout 60 "$@" >/dev/null 2>err </dev/null || status=$?
				grep -q "$where.*: No space left on device" err &&
					[ "$status" -eq 1 ] && return
				echo "$*: $status"
				cat err
				return 1
			}
		SH
		cat
	} >script
	unshare -rm --propagation private bash -e script
}

@test "a full disk: what gpemu-train writes" {
	on_full_disk <<-'SH'
		train="gpemu-train --loader null --max-steps 3 --pin off -b 4"
		fails m/j $train --json m/j
		fails m/s $train --steps m/s
		fails m/t $train --trace m/t
		fails m/o $train --dump-order m/o
		mkdir m/c
		fails m/c $train --checkpoint-dir m/c --checkpoint-size 64K \
			--checkpoint-every 1
	SH
}

@test "a full disk: records, packs, journals and states" {
	mkdir data
	head -c 100000 /dev/urandom >data/a.bin
	printf 'name,work_s\na,4\n' >t.csv
	cat >w.yaml <<-'YAML'
		name: study
		question: Is the disk full?
		dataset: {dir: data}
		base:
		  exec: {command: [sh, -c, 'echo "{{}}" >{record}', '{n}']}
		axes:
		  exec.n: [1, 2]
	YAML
	on_full_disk <<-'SH'
		fails m/p.pack gpemu-data pack data m/p.pack
		fails m/j gpemu-cachesim --dir data -p lru -c 10% --json m/j
		fails m/j gpemu-sched simulate -t t.csv --nodes gpus=1 --json m/j
		fails m/j gpemu-sched simulate -t t.csv --nodes gpus=1 --timeline m/j
		fails m/x.yaml.state gpemu-profile measure --storage data \
			--output m/x.yaml
		fails m/journal gpemu-prepd dispatcher --listen 127.0.0.1:7917 \
			--journal m/journal
		mkdir m/r
		fails m/r/ gpemu-run --no-mount w.yaml -o m/r
	SH
}

@test "a full disk: the state of a measured GPU" {
	[ -z "${GPEMU_SANITIZED-}" ] || skip "a sanitizer does not see Python"
	export PYTHONPATH=$BATS_TEST_DIRNAME/standin-torch
	export GPEMU_PYTHON=/usr/bin/python3 PYTHONDONTWRITEBYTECODE=1
	on_full_disk <<-'SH'
		fails m/x.yaml.state gpemu-profile measure --device cuda \
			--models resnet18 --batches 8 --output m/x.yaml
	SH
}

@test "a full disk: plots" {
	command -v gnuplot || skip "gnuplot is not installed"
	printf 'name,work_s\na,4\n' >t.csv
	head -c 1000 /dev/urandom >a.bin
	on_full_disk <<-'SH'
		for name in g.svg g.png g.pdf; do
			fails m/$name gpemu-sched simulate -t t.csv --nodes gpus=1 \
				--gantt m/$name
		done
		fails m/p.svg gpemu-sched simulate -t t.csv --nodes gpus=1 \
			--plot m/p.svg
		fails m/p.svg gpemu-cachesim --dir . -p lru -c 10%,20% --plot m/p.svg
	SH
}

@test "a full disk: objects that clients put" {
	command -v curl >/dev/null || skip "curl is not installed"
	mkdir src
	echo x >src/x
	head -c 20000 /dev/urandom >body
	python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])' >port
	on_full_disk <<-'SH'
		url=http://127.0.0.1:$(cat port)/data
		status() { curl -s -o answer -w '%{http_code}' "$@"; }
		gpemu-s3 --anonymous --listen "127.0.0.1:$(cat port)" \
			--writable m src 2>log &
		server=$!
		trap 'kill $server' EXIT
		for _ in {1..200}; do ! grep -q ' serving ' log || break; sleep .05; done
		[ "$(status -T body $url/a/one)" = 200 ]
		fill
		[ "$(status -T body $url/b/two)" = 507 ]
		grep -q XMinioStorageFull answer
		[ "$(status -T src/x $url/a/one)" = 507 ]
		[ "$(status -X PUT -H 'x-amz-copy-source: /data/a/one' $url/b/two)" = 507 ]
		[ "$(status $url/b/two)" = 404 ]
		curl -s $url/a/one | cmp - body
		[ ! -e m/b ]
		[ -z "$(find m/.gpemu -type f)" ]
		rm m/fill*
		[ "$(status -T body $url/b/two)" = 200 ]
		cmp m/b/two body
	SH
}
