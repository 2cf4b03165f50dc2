#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What tests/run says of Python tests.

setup() {
	/usr/bin/python3 -c 'import pytest' || skip "python3-pytest is not installed"
	cd "$BATS_TEST_TMPDIR"
	cat >test_of.py <<-'PY'
		import os
		def test_good():
		    pass
		def test_late():
		    assert os.path.exists("came")
		def test_bad():
		    print("what it printed")
		    assert 1 + 1 == 3
	PY
}

# pytest REPORT [OPTION...]
pytest() {
	/usr/bin/python3 -B -m pytest -o cache_dir="$PWD/cache" -o junit_logging=all \
		-o junit_log_passing_tests=false --junitxml="$@" test_of.py >log || true
}

tally() {
	python3 "$BATS_TEST_DIRNAME/../tally.py" "$@"
}

@test "a failed Python test is printed with what was wrong and where" {
	touch came
	pytest report
	tally junit results python report log >out
	grep -qx 'FAILED python test_of: test_bad' out
	grep -qx '    E  *assert (1 + 1) == 3' out
	grep -qx '    test_of.py:8: AssertionError' out
	grep -qx '    what it printed' out
	! grep -q -e 'session starts' -e test_good out || false
	! tally summary results >out || false
	grep -qx 'failed: python: test_of: test_bad: assert (1 + 1) == 3' out
	[ "$(tail -n 1 out)" = '2 passed, 1 failed, 0 skipped' ]
}

@test "a Python test that passes when run once more has passed, and is listed" {
	pytest report
	touch came
	pytest report.second --last-failed
	tally junit results python report log >out
	grep -qx 'SECOND TRY python test_of: test_late' out
	grep -qx 'FAILED python test_of: test_bad' out
	! tally summary results >out || false
	grep -qx ' *1 passed at their second try' out
	[ "$(tail -n 1 out)" = '2 passed, 1 failed, 0 skipped' ]
}

@test "no report of pytest is a failure, with its log" {
	echo 'could not begin' >log
	tally junit results python report log >out
	grep -qx '    could not begin' out
	! tally summary results
}
