# SPDX-License-Identifier: MIT
# What tests of gpemu-run on stand-ins for its programs share.

# In the test's own folder; what the stand-ins did is in standin.log.
standins_setup()
{
	bin=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}
	cd "$BATS_TEST_TMPDIR" || return
	export GPEMU_BIN=$BATS_TEST_DIRNAME/run-standins
	export STANDIN_LOG=$BATS_TEST_TMPDIR/standin.log
	export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
	export TMPDIR=$BATS_TEST_TMPDIR/tmp
	mkdir "$TMPDIR"
	: >"$STANDIN_LOG"
}

gpemu_run()
{
	"$bin/gpemu-run" --no-mount "$@"
}
