# SPDX-License-Identifier: MIT
# One release, wherever it is named.

@test "version: programs, header and Python package name the release" {
	bin=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}
	root=$BATS_TEST_DIRNAME/../..
	release=$(sed -n "s/^  version: '\(.*\)',$/\1/p" "$root/meson.build")
	[ -n "$release" ]
	for program in gpemu gpemu-{fs,train,run,data,exec,profile,cachesim,sched,prepd,gpud,smi,slurm,k8s-plugin}; do
		[ "$program" != gpemu-k8s-plugin ] || [ -x "$bin/$program" ] ||
			continue # it needs nghttp2
		[[ $("$bin/$program" --version) == "gpemu $release ("*")" ]]
	done
	grep -qF "\"$release\"" "$root/include/gpemu.h"
	grep -qx "__version__ = \"$release\"" "$root/python/gpemu/__init__.py"
}

@test "version: the changelogs and the citation name it, too" {
	root=$BATS_TEST_DIRNAME/../..
	release=$(sed -n "s/^  version: '\(.*\)',$/\1/p" "$root/meson.build")
	[ "$(grep -m1 '^## ' "$root/CHANGELOG.md")" = "## $release" ]
	grep -qx "version: $release" "$root/CITATION.cff"
	[[ $(head -n 1 "$root/debian/changelog") == "gpemu ($release) "* ]]
}
