#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gpemu-sched run: the memory of a job is the cache of its mount.

load mount

setup() {
	common_setup
	cd "$BATS_TEST_TMPDIR"
}

teardown() {
	common_teardown
}

@test "memory of a job that runs is taken from its cache, and given back" {
	make_files 20 5000
	mkdir m m/0 m/1
	for i in 0 1; do gpemu-fs -p minio -c 1% "$src" m/$i; done
	# all of the node alone, half of it beside another one
	cat >speeds.csv <<-'CSV'
		model,iteration_s,memory_mib,reference_memory_mib,cpus,speed
		large,1,40,20,1,1
	CSV
	printf 'arrival_s,work_s,class\n0,8,large\n2,2,large\n' >t.csv
	cat >job <<-'SH'
		#!/bin/sh
		for word; do
		    case $word in --max-steps=*) steps=${word#*=} ;; esac
		done
		exec sleep $((steps / 2))
	SH
	chmod +x job
	gpemu-sched run -t t.csv --speeds speeds.csv --nodes gpus=2,cpus=4,memory=40M \
		--placement tune --time-scale 0.5 --mount 'm/{job}' -o d --json j -- \
		./job 3>&- &
	for want in 40M 20M 40M; do
		eventually grep -q "^cache_size: $want\$" m/0/.gpemu/config
	done
	wait $!
	grep -q '^cache_size: 20M$' m/1/.gpemu/config
	[ "$(python3 -c 'import json; print(json.load(open("j"))["failed"])')" = '[]' ]
	# without a mount there: said, and no reason to end
	fusermount3 -u m/1
	gpemu-sched run -t t.csv --speeds speeds.csv --nodes gpus=2,cpus=4,memory=40M \
		--placement tune --time-scale 0.1 --mount 'm/{job}' -o e -- true 2>err
	grep -q 'job 1: its cache could not be changed: No such file' err
}
