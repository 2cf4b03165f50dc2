# SPDX-License-Identifier: MIT
# One release, wherever it is named.

@test "version: programs and header name the release" {
	bin=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}
	root=$BATS_TEST_DIRNAME/../..
	release=$(sed -n "s/^  version: '\(.*\)',$/\1/p" "$root/meson.build")
	[ -n "$release" ]
	for program in gpemu gpemu-{fs,train,run,data,profile,cachesim,sched,gpud,smi}; do
		[[ $("$bin/$program" --version) == "gpemu $release ("*")" ]]
	done
	grep -qF "\"$release\"" "$root/include/gpemu.h"
}

@test "version: the changelog and the citation name it, too" {
	root=$BATS_TEST_DIRNAME/../..
	release=$(sed -n "s/^  version: '\(.*\)',$/\1/p" "$root/meson.build")
	[ "$(grep -m1 '^## ' "$root/CHANGELOG.md")" = "## $release" ]
	grep -qx "version: $release" "$root/CITATION.cff"
}
