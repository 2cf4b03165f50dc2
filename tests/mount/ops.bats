#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Operating a mount: signals, logs, service managers, fstab, --replace.

bats_require_minimum_version 1.5.0

load mount

setup()
{
	common_setup
	make_files 5 1000
	log=$BATS_TEST_TMPDIR/log
	config=$BATS_TEST_TMPDIR/c.yaml
}

teardown()
{
	common_teardown
}

# A mount in the foreground whose stderr is in $log; sets pid.
start_in_foreground()
{
	gpemu-fs -f "$@" "$src" "$mp" 2>"$log" 3>&- &
	pid=$!
	pids="${pids-} $pid"
	eventually is_mounted
	cmp "$src/c0/f00000" "$mp/c0/f00000"
}

logged()
{
	grep -qF -- "$1" "$log"
}

@test "SIGHUP rereads the configuration and reports keys that cannot change" {
	printf 'storage: ideal\ncache_policy: lru\ncache_size: 10%%\n' >"$config"
	start_in_foreground --config "$config"
	printf 'storage: hdd\ncache_policy: fifo\ncache_size: 20%%\nseed: 5\n' \
		>"$config"
	kill -HUP $pid
	eventually logged "reload: $config is in force"
	logged 'reload: seed stays 0; to change it to 5, unmount and mount again'
	[ "$(grep -c 'mount again' "$log")" = 1 ]
	[ "$(stat_of '["policy"]')" = fifo ]
	[ "$(stat_of '["storage"]')" = hdd ]
	grep -q '^cache_size: 20%$' "$mp/.gpemu/config"
	grep -q '^seed: 0$' "$mp/.gpemu/config"
}

@test "a reload without changes keeps the cache" {
	echo 'cache_size: 100%' >"$config"
	start_in_foreground --config "$config"
	cat "$mp"/c?/* >/dev/null
	kill -HUP $pid
	eventually logged "is in force"
	[ "$(stat_of '["objects"]')" = 5 ]
	! logged "mount again"
}

@test "SIGHUP: flags still override, and an error changes nothing" {
	echo 'cache_policy: minio' >"$config"
	start_in_foreground --config "$config" -c 7%
	for bad in 'cache_polly: lru' 'cache_policy: nope' 'storage: nope' \
		'log_level: loud' 'cache_size: 900T' '{'; do
		: >"$log"
		printf 'cache_size: 3%%\n%s\n' "$bad" | sort >"$config"
		kill -HUP $pid
		if [ "$bad" = 'cache_size: 900T' ]; then
			eventually logged "cache_size"
		else
			eventually logged "the configuration is unchanged"
		fi
		[ "$(grep -c . "$log")" = 1 ]
		[ "$(stat_of '["policy"]')" = minio ]
	done
	printf 'storage: nvme\ncache_policy: fifo\ncache_size: 3%%\n' >"$config"
	kill -HUP $pid
	eventually logged "is in force"
	[ "$(stat_of '["policy"]')" = fifo ]
	grep -q '^cache_size: 7%$' "$mp/.gpemu/config"
}

@test "a profile's relative path in the configuration starts where the mount was started" {
	cd "$BATS_TEST_TMPDIR"
	for name in a b; do
		printf 'name: %s\nsource: a test\nread: {source: a test, latency: {kind: const, value: 1ms}}\n' \
			$name >$name.yaml
	done
	echo 'storage: a.yaml' >c.yaml
	start_in_foreground --config c.yaml
	echo 'storage: b.yaml' >c.yaml
	kill -HUP $pid
	eventually logged "is in force"
	[ "$(stat_of '["storage"]')" = "$PWD/b.yaml" ]
}

@test "SIGUSR1 logs the stats; a level hides them" {
	start_in_foreground -c 100%
	kill -USR1 $pid
	eventually logged 'stats: latency_us {"requested":{'
	eventually logged 'gpemu-fs: stats: misses 1'
	eventually logged 'stats: epochs[0] {"epoch":0,"hits":0,"misses":1,'
	kill $pid
	wait $pid
	start_in_foreground --log-level warn
	kill -USR1 $pid
	kill -HUP $pid
	kill $pid
	wait $pid
	cat "$log"
	[ ! -s "$log" ]
}

@test "many signals at once lead to one clean shutdown" {
	start_in_foreground --config /dev/null
	for i in $(seq 50); do
		kill -HUP $pid
		kill -USR1 $pid
		kill -USR2 $pid
		cmp "$src/c0/f00000" "$mp/c0/f00000"
	done
	kill $pid
	kill -INT $pid 2>/dev/null || true
	kill -HUP $pid 2>/dev/null || true
	wait $pid
	is_not_mounted
}

@test "SIGTERM at any time during start leaves no mount" {
	for ms in 0 5 10 15 20 30 40 60 80 120; do
		gpemu-fs -f "$src" "$mp" 3>&- &
		pid=$!
		pids="${pids-} $pid"
		sleep "$(printf '0.%03d' $ms)"
		kill $pid
		# ended in order, or before it had begun anything
		status=0
		wait $pid || status=$?
		[ $status -eq 0 ] || [ $status -eq 143 ]
		is_not_mounted
	done
}

@test "--log FILE: times in it, rotated by SIGHUP, errors before it to stderr" {
	log=$BATS_TEST_TMPDIR/daemon.log
	run gpemu-fs --log "$BATS_TEST_TMPDIR/no/where" "$src" "$mp"
	[ "$status" -eq 1 ]
	[[ $output == *"--log $BATS_TEST_TMPDIR/no/where: No such file"* ]]
	run gpemu-fs --log "$log" -p nope "$src" "$mp"
	[ "$status" -eq 2 ]
	[[ $output == *"unknown cache policy 'nope'"* ]]
	cd "$BATS_TEST_TMPDIR"
	run gpemu-fs --log daemon.log "$src" "$mp"
	[ "$status" -eq 0 ]
	[ -z "$output" ]
	pid=$(daemon_pid)
	kill -USR1 "$pid"
	eventually logged "stats: policy \"lru\""
	grep -qE "^20[0-9-]{8}T[0-9:]{8}Z gpemu-fs\[$pid\]: stats: hits 0$" "$log"
	mv daemon.log old.log
	kill -HUP "$pid"
	eventually logged "reload: nothing to read again: mounted without --config"
	run ! grep -q reload: old.log
	run ! sh -c "echo bogus >$mp/.gpemu/control"
	logged "control: unknown command 'bogus'"
}

@test "--log stderr keeps a daemon's stderr" {
	gpemu-fs --log stderr "$src" "$mp" 2>"$log" 3>&-
	kill -USR1 "$(daemon_pid)"
	eventually logged "stats: hits 0"
}

@test "a service manager hears READY, RELOADING and STOPPING" {
	for name in "$BATS_TEST_TMPDIR/notify" "@gpemu-test-$$"; do
		python3 - "$name" "$src" "$mp" "$config" <<-'END'
		import os, re, signal, socket, subprocess, sys
		name, src, mp, config = sys.argv[1:]
		s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
		s.bind("\0" + name[1:] if name[0] == "@" else name)
		s.settimeout(20)
		open(config, "w").write("cache_size: 5%\n")
		p = subprocess.Popen(
		    ["gpemu-fs", "-f", "--config", config, src, mp],
		    env=dict(os.environ, NOTIFY_SOCKET=name),
		    stderr=subprocess.PIPE, text=True)
		def hear():
		    return s.recv(4096).decode()
		try:
		    said = hear()
		    assert said == (f"READY=1\nMAINPID={p.pid}\n"
		                    f"STATUS=serving {mp}"), said
		    os.listdir(mp + "/.gpemu")
		    p.send_signal(signal.SIGHUP)
		    assert re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=\d+",
		                        hear())
		    assert hear() == "READY=1"
		    p.send_signal(signal.SIGTERM)
		    assert hear() == "STOPPING=1"
		    assert p.wait(20) == 0
		finally:
		    p.kill()
		END
		is_not_mounted
	done
}

@test "a mount that a signal ends early does not report READY after STOPPING" {
	# --log is opened to check it and when the mount gets ready; each
	# waits for the reader of a pipe
	mkfifo "$BATS_TEST_TMPDIR/pipe" "$BATS_TEST_TMPDIR/second"
	timeout 60 python3 - "$BATS_TEST_TMPDIR" "$src" "$mp" 3>&- <<-'END'
	import os, signal, socket, subprocess, sys, time
	tmp, src, mp = sys.argv[1:]
	s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
	s.bind(tmp + "/notify")
	s.settimeout(20)
	p = subprocess.Popen(
	    ["gpemu-fs", "-f", "--log", tmp + "/pipe", src, mp],
	    env=dict(os.environ, NOTIFY_SOCKET=tmp + "/notify"))
	def mounted():
	    with open("/proc/mounts") as f:
	        return f" {mp} " in f.read()
	def opens_log():
	    for t in os.listdir(f"/proc/{p.pid}/task"):
	        with open(f"/proc/{p.pid}/task/{t}/wchan") as f:
	            if "wait_for_partner" in f.read():
	                return True
	    return False
	try:
	    while not opens_log():
	        time.sleep(.01)
	    os.rename(tmp + "/pipe", tmp + "/first")
	    os.rename(tmp + "/second", tmp + "/pipe")
	    first = os.open(tmp + "/first", os.O_RDONLY)
	    while not mounted() or not opens_log():
	        time.sleep(.01)
	    p.send_signal(signal.SIGTERM)
	    assert s.recv(4096) == b"STOPPING=1"
	    fd = os.open(tmp + "/pipe", os.O_RDONLY)
	    assert p.wait(20) == 0
	    s.setblocking(False)
	    try:
	        raise AssertionError(s.recv(4096))
	    except BlockingIOError:
	        pass
	finally:
	    p.kill()
	END
	is_not_mounted
}

@test "an invalid notify socket is only a warning" {
	NOTIFY_SOCKET=nonsense gpemu-fs --log "$log" "$src" "$mp"
	is_mounted
	eventually logged "NOTIFY_SOCKET: Invalid argument"
}

@test "--replace replaces a live gpemu-fs" {
	gpemu-fs -p lru "$src" "$mp"
	run gpemu-fs --replace -p fifo "$src" "$mp"
	[ "$status" -eq 0 ]
	[ -z "$output" ]
	[ "$(grep -c " $mp " /proc/mounts)" = 1 ]
	[ "$(stat_of '["policy"]')" = fifo ]
	one_daemon() { [ "$(daemon_pid | wc -l)" = 1 ]; }
	eventually one_daemon
}

@test "--replace: the old mount keeps serving open files" {
	gpemu-fs -p none "$src" "$mp"
	exec 7<"$mp/c0/f00000"
	run gpemu-fs --replace -p fifo "$src" "$mp" 7<&-
	[ "$status" -eq 0 ]
	[[ $output == *"files of the old mount are in use"* ]]
	cmp "$src/c0/f00000" <(cat <&7)
	exec 7<&-
	[ "$(grep -c " $mp " /proc/mounts)" = 1 ]
	[ "$(stat_of '["policy"]')" = fifo ]
}

@test "--replace: a bad command line leaves the old mount alone" {
	gpemu-fs -p lru "$src" "$mp"
	run gpemu-fs --replace -p nope "$src" "$mp"
	[ "$status" -eq 2 ]
	pid=$(daemon_pid)
	# replaces STATUS ARGUMENT...: the mount is not replaced
	replaces()
	{
		local want=$1

		shift
		run gpemu-fs --replace -p fifo "$@"
		echo "$*: $output"
		[ "$status" -eq "$want" ]
		[ "$(daemon_pid)" = "$pid" ]
		[ "$(stat_of '["policy"]')" = lru ]
		cmp "$src/c0/f00000" "$mp/c0/f00000"
	}
	replaces 1 -s ./nope.yaml "$src" "$mp"
	replaces 1 -o nope "$src" "$mp"
	# an option that libfuse passes on and the kernel refuses
	replaces 75 -o blkdev "$src" "$mp"
	replaces 1 -c 900T "$src" "$mp"
	replaces 1 "$src/none" "$mp"
	replaces 1 -g 2 --group-order ./nope "$src" "$mp"
	replaces 2 --fault nope "$src" "$mp"
	replaces 2 --hit-path nope "$src" "$mp"
}

@test "only -o nonempty mounts over files" {
	echo hidden >"$mp/file"
	run gpemu-fs "$src" "$mp"
	[ "$status" -eq 1 ]
	[[ $output == *"use an empty folder or -o nonempty"* ]]
	gpemu-fs -o nonempty -p lru "$src" "$mp"
	cmp "$src/c0/f00000" "$mp/c0/f00000"
	[ ! -e "$mp/file" ]
	# the old mount already hid the files under it
	run gpemu-fs --replace -p fifo "$src" "$mp"
	echo "$output"
	[ "$status" -eq 0 ]
	[ "$(stat_of '["policy"]')" = fifo ]
	fusermount3 -u "$mp"
	[ "$(cat "$mp/file")" = hidden ]
}

@test "--replace clears a dead mount, and works without a mount" {
	gpemu-fs "$src" "$mp"
	kill -9 "$(daemon_pid)"
	eventually no_daemon
	gpemu-fs --replace "$src" "$mp"
	cmp "$src/c0/f00000" "$mp/c0/f00000"
	fusermount3 -u "$mp"
	eventually no_daemon
	gpemu-fs --replace "$src" "$mp"
	cmp "$src/c0/f00000" "$mp/c0/f00000"
}

@test "--replace refuses the mount of something else" {
	[ "$(id -u)" = 0 ] || skip "only root can mount a tmpfs"
	mount -t tmpfs none "$mp" || skip "no permission to mount a tmpfs"
	run gpemu-fs --replace "$src" "$mp"
	umount "$mp"
	[ "$status" -eq 1 ]
	[[ $output == *"already a mount point (tmpfs)"* ]]
}

@test "-o takes gpemu-fs's options and ignores those of fstab" {
	gpemu-fs -o noauto,nofail,user,_netdev,x-systemd.automount,defaults,comment=a,storage=hdd,cache-policy=fifo,cache_size=12%,cache_metadata=on,noatime,group \
		"$src" "$mp" -o time_scale=0.5,ro
	[ "$(stat_of '["storage"]')" = hdd ]
	[ "$(stat_of '["policy"]')" = fifo ]
	grep -q '^cache_size: 12%$' "$mp/.gpemu/config"
	grep -q '^time_scale: 0.5$' "$mp/.gpemu/config"
	grep -q '^cache_metadata: true$' "$mp/.gpemu/config"
	grep -E " $mp fuse.gpemu-fs .*noatime" /proc/mounts
	# ro, as every mount of gpemu-fs; control is writable nevertheless
	run touch "$mp/new"
	[ "$status" -ne 0 ]
	echo 'set cache_policy lru' >"$mp/.gpemu/control"
	[ "$(stat_of '["policy"]')" = lru ]
	cmp "$src/c0/f00000" "$mp/c0/f00000"
}

@test "-o: the same errors as the options; --dump-config shows the result" {
	run -2 gpemu-fs -o cache_size=5Q "$src" "$mp"
	[[ $output == *"--cache-size: '5Q' is not a size"* ]]
	run -1 gpemu-fs -o storrage=hdd "$src" "$mp"
	[[ $output == *"cannot use the mount options 'storrage=hdd'"* ]]
	run -1 gpemu-fs -o dump_config "$src" "$mp"
	run -2 gpemu-fs -o config=/none "$src" "$mp"
	[[ $output == *"/none"* ]]
	printf 'cache_policy: fifo\ncache_size: 3%%\n' >"$config"
	gpemu-fs -o "config=$config,cache_size=9%,ro,storage=a\\,b.yaml" \
		--dump-config "$src" "$mp" >"$log"
	logged 'cache_policy: fifo'
	logged 'cache_size: 9%'
	logged 'storage: a,b.yaml'
	logged 'mount_options: ro'
}

@test "mount.fuse3 starts gpemu-fs" {
	[ "$(id -u)" = 0 ] || skip "only root can mount"
	helper=$(PATH=$PATH:/sbin:/usr/sbin command -v mount.fuse3) ||
		skip "no mount.fuse3"
	PATH=$(realpath "$BUILD"):$PATH "$helper" "$src" "$mp" \
		-t fuse.gpemu-fs \
		-o rw,nofail,storage=hdd,cache_policy=fifo,cache_size=20%
	is_mounted
	[ "$(stat_of '["storage"]')" = hdd ]
	grep -q '^cache_size: 20%$' "$mp/.gpemu/config"
}

# mount(8) looks for programs only in the system's folders: in a mount name
# space, the test replaces one of these.
@test "mount -t fuse.gpemu-fs, and a line of fstab" {
	[ "$(id -u)" = 0 ] || skip "only root can mount"
	PATH=$PATH:/sbin:/usr/sbin command -v mount.fuse3 >/dev/null ||
		skip "no mount.fuse3"
	unshare -m mount -t tmpfs none /usr/local/bin ||
		skip "no permission to make a mount name space"
	cat >"$BATS_TEST_TMPDIR/fstab" <<-END
	$src $mp fuse.gpemu-fs noauto,nofail,_netdev,x-systemd.requires=a,storage=nvme,cache_size=30% 0 0
	END
	export BUILD src mp
	run unshare -m bash -e "$BATS_TEST_DIRNAME/mount8" \
		"$BATS_TEST_TMPDIR/fstab"
	echo "$output"
	[ "$status" -eq 0 ]
	eventually no_daemon
}

@test "--json writes the stats at the end" {
	cd "$BATS_TEST_TMPDIR"
	gpemu-fs --json end.json -c 100% "$src" "$mp"
	cat "$mp"/c?/* >/dev/null
	fusermount3 -u "$mp"
	eventually no_daemon
	[ "$(python3 -c 'import json; print(json.load(open("end.json"))["misses"])')" = 5 ]
	gpemu-fs -f --json - "$src" "$mp" >"$log" 3>&- &
	pid=$!
	pids="${pids-} $pid"
	eventually is_mounted
	cat "$mp/c0/f00000" >/dev/null
	kill $pid
	wait $pid
	python3 -m json.tool "$log" >/dev/null
}

@test "every option is in the manual page" {
	page=$(sed 's/\\//g' "$BATS_TEST_DIRNAME/../../docs/gpemu-fs.1.scd")
	options=$(gpemu-fs --help | grep -oE -- '--[a-z-]+' | sort -u)
	[ "$(wc -l <<<"$options")" -gt 20 ]
	for option in $options; do
		echo "$option"
		grep -qF -- "*$option*" <<<"$page"
	done
}
