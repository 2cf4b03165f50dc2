#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# tools/setup with stand-ins for dpkg-query, apt-cache and apt-get: what is installed
# where packages are named otherwise than in Debian 12.

bats_require_minimum_version 1.5.0

setup() {
	SETUP=$BATS_TEST_DIRNAME/../../tools/setup
	TMP=$BATS_TEST_TMPDIR
	mkdir "$TMP/bin"
	cat >"$TMP/bin/dpkg-query" <<-'SH'
		#!/bin/sh
		for name in $(cat "$TMP/installed"); do printf 'installed %s ' $name; done
	SH
	cat >"$TMP/bin/apt-cache" <<-'SH'
		#!/bin/sh
		shift
		for name; do
			! grep -qx -e "$name" "$TMP/archive" || echo "Package: $name"
		done
	SH
	# lists are there after an update
	cat >"$TMP/bin/apt-get" <<-'SH'
		#!/bin/sh
		case "$*" in
		*update) cp "$TMP/mirror" "$TMP/archive" ;;
		*install*) echo "$@" | tr ' ' '\n' | grep -v '^-' | sed '/^install$/d' \
			>>"$TMP/installed" ;;
		esac
	SH
	# root, whoever runs the test
	printf '#!/bin/sh\necho 0\n' >"$TMP/bin/id"
	chmod 755 "$TMP"/bin/*
	: >"$TMP/installed"
	: >"$TMP/archive"
	export TMP PATH=$TMP/bin:$PATH
	# an archive with all that it names
	sed -n '/^RUN=/,/^case/p' "$SETUP" | sed '/^#/d; /^case/d; s/^[A-Z]*=//; s/"//g' |
		tr '\t |' '\n\n\n' | sed 's/?$//; /^$/d' >"$TMP/mirror"
}

has() {
	grep -qx -e "$1" "$TMP/installed"
}

@test "all that the archive has is installed once, then nothing is missing" {
	run "$SETUP" full
	echo "$output"
	[ "$status" -eq 0 ]
	has libfuse3-dev
	has clang
	has clang-format-14
	has wrk
	# the first alternative is enough
	run ! has clang-14
	run "$SETUP" full
	[ "$status" -eq 0 ]
	[ -z "$output" ]
}

@test "an alternative that is installed is enough" {
	echo clang-14 >"$TMP/installed"
	"$SETUP" test
	run ! has clang
	has libclang-rt-dev
}

@test "an alternative is installed where the archive has only that" {
	sed -i '/^clang$/d' "$TMP/mirror"
	"$SETUP" test
	has clang-14
}

@test "the formatter is left out where there is no such version" {
	sed -i '/^clang-format-14$/d' "$TMP/mirror"
	run "$SETUP" test
	[ "$status" -eq 0 ]
	run "$SETUP" test
	[ "$status" -eq 0 ]
	[ -z "$output" ]
}

@test "what the archive lacks is named, after all else was installed" {
	sed -i '/^chromium$/d' "$TMP/mirror"
	run "$SETUP" full
	[ "$status" -eq 1 ]
	[[ ${lines[-1]} == *": chromium" ]]
	has wrk
	# the programs do not need it
	run "$SETUP" test
	[ "$status" -eq 0 ]
	[ -z "$output" ]
}

@test "advice for one who is not root can be pasted into a shell" {
	printf '#!/bin/sh\necho 1000\n' >"$TMP/bin/id"
	# no sudo
	for tool in sh sed tr cat grep cp echo; do
		ln -sf "$(command -v $tool)" "$TMP/bin/$tool"
	done
	PATH=$TMP/bin run -75 "$SETUP" test
	[[ $output == *"run as root: apt-get install "*" clang "* ]]
	[[ $output != *[\|?]* ]]
}
