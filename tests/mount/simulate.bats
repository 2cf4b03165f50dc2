#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Simulated epochs take as long as real ones (tests/contract/test_sim.c has the
# closed forms, tests/bench/simulate the long version).
# bats file_tags=timed

load mount

setup() { common_setup; }
teardown() { common_teardown; }

@test "epochs on mounts take as long as simulated: within 5 % in thirteen ways" {
	[ -z "${GPEMU_SANITIZED-}" ] || skip "times mean nothing with a sanitizer"
	# its mounts below the folder of the test, where they are cleaned up
	export TMPDIR=$BATS_TEST_TMPDIR GPEMU_BUILD=$BUILD
	run timeout 300 "$BATS_TEST_DIRNAME/../bench/simulate" -n 160 -t 6
	echo "$output"
	[ "$status" -ne 77 ] || skip "${lines[-1]}"
	[ "$status" -eq 0 ]
}
