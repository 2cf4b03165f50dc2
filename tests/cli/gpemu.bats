# SPDX-License-Identifier: MIT
# gpemu NAME runs gpemu-NAME; help, unknown names.
bats_require_minimum_version 1.5.0

setup()
{
	bin=$(realpath "${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}")
	cd "$BATS_TEST_TMPDIR" || return
	# a gpemu without programs next to it, and stand-ins in PATH
	mkdir alone path
	cp "$bin/gpemu" alone
	PATH=$BATS_TEST_TMPDIR/path:$PATH
}

# script FILE: an executable of the lines on stdin
script()
{
	{ echo '#!/bin/sh' && cat; } >"$1"
	chmod +x "$1"
}

@test "gpemu: the list has every installed program" {
	run --separate-stderr "$bin/gpemu"
	[ "$status" -eq 0 ]
	[ -z "$stderr" ]
	(cd "$bin" && ls -F gpemu-*) | sed -n 's/^gpemu-\([a-z0-9-]*\)\*$/\1/p' |
		sort >programs
	sed -n 's/^  \([a-z0-9-]*\) .*/\1/p' <<<"$output" | grep -vx help | sort >listed
	[ -s programs ]
	diff programs listed
	[ "$output" = "$("$bin/gpemu" --help)" ]
}

@test "gpemu: every program that is listed is in the manual page" {
	page=$BATS_TEST_DIRNAME/../../docs/gpemu.1.scd
	for name in $("$bin/gpemu" | sed -n 's/^  \([a-z0-9-]*\) .*/\1/p'); do
		grep -q "^\*$name\*" "$page"
	done
}

@test "gpemu: passes arguments and exit status through" {
	run --separate-stderr "$bin/gpemu" profile show v100 resnet50 64
	[ "$status" -eq 0 ]
	[ "$output" = "$("$bin/gpemu-profile" show v100 resnet50 64)" ]
	run "$bin/gpemu" train --loader nonsense
	[ "$status" -eq 2 ]
	[[ $output == "gpemu-train: "* ]]
	script path/gpemu-echo <<<'printf "<%s>" "$@"; exit 42'
	run alone/gpemu echo 'a b' '' '*'
	[ "$status" -eq 42 ]
	[ "$output" = '<a b><><*>' ]
}

@test "gpemu: the program replaces the process" {
	script path/gpemu-pid <<<'echo $$; kill -TERM $$'
	alone/gpemu pid >out &
	pid=$!
	status=0
	wait "$pid" || status=$?
	[ "$(cat out)" = "$pid" ]
	[ "$status" -eq $((128 + 15)) ]
}

@test "gpemu: the program next to it precedes the one in PATH" {
	script path/gpemu-smi <<<'echo path'
	[ "$(alone/gpemu smi)" = path ]
	script alone/gpemu-smi <<<'echo beside'
	[ "$(alone/gpemu smi)" = beside ]
	# through a link to gpemu, too
	ln -s alone/gpemu link
	[ "$(./link smi)" = beside ]
}

@test "gpemu: a missing or non-executable program" {
	run alone/gpemu gpud
	[ "$status" -eq 1 ]
	[[ $output == "gpemu: gpemu-gpud: neither in the folder of gpemu nor in PATH"* ]]
	: >alone/gpemu-gpud
	run alone/gpemu gpud
	[ "$status" -eq 1 ]
	[ "$output" = "gpemu: gpemu-gpud: Permission denied" ]
}

@test "gpemu: the error of an unknown name suggests the nearest" {
	run --separate-stderr "$bin/gpemu" trian --help
	[ "$status" -eq 2 ]
	[ -z "$output" ]
	[ "$stderr" = "gpemu: unknown command 'trian'; did you mean 'train'?" ]
	for pair in rn:run tran:train cache:cachesim prof:profile gpu:gpud; do
		run "$bin/gpemu" "${pair%:*}"
		[[ $output == *"did you mean '${pair#*:}'?" ]]
	done
	for word in nonsense x '' ../gpemu-run; do
		run "$bin/gpemu" "$word"
		[ "$status" -eq 2 ]
		[ "$output" = "gpemu: unknown command '$word'; 'gpemu --help' lists all" ]
	done
	# also of the programs that have commands
	run "$bin/gpemu" data mkae
	[ "$status" -eq 2 ]
	[ "$output" = "gpemu-data: unknown command 'mkae'; did you mean 'make'?" ]
}

@test "gpemu: help opens the page next to the programs, or the installed one" {
	script path/man <<<'echo man "$@"'
	script alone/gpemu-fs <<<'echo fs "$@"'
	run --separate-stderr alone/gpemu help fs
	[ "$status" -eq 0 ]
	[ "$output" = "fs --help" ]
	[ "$stderr" = "gpemu: no manual page of gpemu-fs is installed; this is its --help" ]
	mkdir -p share/man/man1 share/man/man3 alone/docs
	: >share/man/man1/gpemu-fs.1.gz
	[ "$(alone/gpemu help fs)" = "man -l $PWD/alone/../share/man/man1/gpemu-fs.1.gz" ]
	: >share/man/man3/libgpemu.3
	[ "$(alone/gpemu help libgpemu)" = "man -l $PWD/alone/../share/man/man3/libgpemu.3" ]
	: >alone/docs/gpemu-fs.1
	: >alone/docs/gpemu.1
	for name in fs gpemu-fs; do
		[ "$(alone/gpemu help $name)" = "man -l $PWD/alone/docs/gpemu-fs.1" ]
	done
	[ "$(alone/gpemu help)" = "man -l $PWD/alone/docs/gpemu.1" ]
	run alone/gpemu help sf
	[ "$status" -eq 2 ]
	[[ $output == *"unknown command 'sf'; did you mean 'fs'?" ]]
	run alone/gpemu help fs train
	[ "$status" -eq 2 ]
}
