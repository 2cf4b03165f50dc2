# SPDX-License-Identifier: MIT
# Shared by the mount tests: a private folder, and mounts that are always
# removed.

load ../cli/processes

common_setup()
{
	BUILD=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}
	PATH=$BUILD:$BUILD/tests/mount:$PATH
	[ -e /dev/fuse ] || skip "no /dev/fuse"
	[ -w /dev/fuse ] || skip "no permission to open /dev/fuse"
	[ "$(id -u)" = 0 ] || command -v fusermount3 >/dev/null ||
		skip "not root and no fusermount3"
	src=$BATS_TEST_TMPDIR/src
	mp=$BATS_TEST_TMPDIR/mp
	mkdir "$src" "$mp"
}

common_teardown()
{
	local at mounts

	# all of it first: the list moves under a reader that unmounts
	mapfile -t mounts </proc/mounts
	for at in "${mounts[@]}"; do
		at=${at#* }
		at=${at%% *}
		[[ $at == "$BATS_TEST_TMPDIR"/* ]] && fusermount3 -u -z "$at"
	done
	# not at once with SIGKILL: LeakSanitizer may be looking at a process that
	# lost its mount, and reports that it was killed
	end_processes ${pids-}
}

# make_files N BYTES: N files of about BYTES random bytes in five folders
make_files()
{
	python3 - "$src" "$@" <<-'END'
	import os, random, sys
	src, n, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
	r = random.Random(1)
	for c in range(5):
	    os.makedirs(f"{src}/c{c}", exist_ok=True)
	for i in range(n):
	    with open(f"{src}/c{i % 5}/f{i:05}", "wb") as f:
	        f.write(r.randbytes(r.randint(1, 2 * size)))
	END
}

# tree_sum DIR: one checksum over names and contents
tree_sum()
{
	(cd "$1" && find . -type f -print0 | sort -z |
		xargs -0 -P 8 -n 32 sha256sum | sort | sha256sum)
}

# stat_of FIELD: a number of the mount's stats
stat_of()
{
	python3 -c 'import json, sys
print(eval("s" + sys.argv[2], {"s": json.load(open(sys.argv[1]))}))' \
		"$mp/.gpemu/stats" "$1"
}

# passes_through: the kernel reads hits itself; if it cannot, the test ends here
passes_through()
{
	local why

	if [ "$(stat_of '["hit_path"]')" != passthrough ]; then
		why=$(stat_of '["hit_path_reason"]')
		echo "hits by reply: $why"
		case $why in
		"this kernel has no"* | *CAP_SYS_ADMIN | *"stacked too deep")
			skip "$why"
			;;
		esac
		return 1
	fi
	[ "$(stat_of '["passthrough_opens"]')" -gt 0 ]
}

# eventually COMMAND: within twenty seconds, as a busy machine may stop for a
# few
eventually()
{
	local i

	for i in $(seq 400); do
		"$@" && return 0
		sleep .05
	done
	return 1
}

is_mounted()
{
	grep -q " $mp fuse.gpemu-fs " /proc/mounts
}

is_not_mounted()
{
	! is_mounted
}

# daemon_pid: of the gpemu-fs that serves $mp
daemon_pid()
{
	pgrep -f "gpemu-fs .*$mp"
}

no_daemon()
{
	! daemon_pid >/dev/null
}
