#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The demo as an ordinary user: no privileges, and 8 MiB of memory that may be
# locked, which is less than a batch.

bats_require_minimum_version 1.5.0
load mount

setup()
{
	common_setup
	BUILD=$(realpath "$BUILD")
	unset GPEMU_BIN
	home=$BATS_TEST_TMPDIR/home
	mkdir "$home"
	cd "$home"
}

teardown()
{
	common_teardown
}

# ordinary COMMAND...: in $home, as nobody if we are root. In a mount name space
# of its own, /dev/fuse has the mode that udev gives it.
ordinary()
{
	export HOME=$home XDG_CACHE_HOME=$home/cache TMPDIR=$home
	if [ "$(id -u)" -ne 0 ]; then
		(ulimit -l 8192 && "$@")
		return
	fi
	chown 65534 "$home"
	[ -e ../fuse ] || mknod -m 666 ../fuse c 10 229
	unshare -m --propagation private sh -c '
		mount --bind ../fuse /dev/fuse &&
		ulimit -l 8192 &&
		exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"' \
		- "$@"
}

@test "the smallest cell of the demo: on a mount, not pinned" {
	for tool in unshare setpriv fusermount3; do
		command -v $tool >/dev/null || skip "$tool is not installed"
	done
	chmod a+x "$BATS_TEST_TMPDIR" "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
	ordinary test -x "$BUILD/gpemu-run" || skip "nobody may not run the build"
	ordinary test -w /dev/fuse || skip "nobody may not open /dev/fuse"
	sed -e 's/files: 500, classes: 10/files: 64, classes: 4/' \
		-e 's/\[lru, minio\]/[minio]/' -e 's/\[sync, async\]/[sync]/' \
		-e 's/^repetitions: 2/repetitions: 1/' -e '/^plot:/,$d' \
		"$BATS_TEST_DIRNAME/../../workloads/demo.yaml" >demo.yaml
	printf '%s\n' 'time_scale: 0.2' 'noise: 100%' >>demo.yaml
	ordinary "$BUILD/gpemu-run" check demo.yaml >checked
	grep -q "1 points x 1 repetitions = 1" checked
	ordinary "$BUILD/gpemu-run" demo.yaml >table
	python3 - results/demo/records/* <<-'PY'
		import json, sys
		j, = [json.load(open(p)) for p in sys.argv[1:]]
		assert j['cell']['mounted'] and j['mount']['hits'] > 0, j['mount']
		assert j['pin']['mode'] == 'auto' and not j['pin']['on'], j['pin']
		assert '18816 KiB and 8192 KiB may be locked' in j['pin']['notice']
		assert j['totals']['samples'] == 192 and j['totals']['pin_s'] == 0
	PY
	[ "$(cat results/demo/logs/* | grep -c "not pinned: one takes")" -eq 1 ]
	grep -q "copied, not pinned" table
}
