# SPDX-License-Identifier: MIT
# docs/tutorial.md, own.md and formats.md are correct: their commands run in order
# and print the output shown. Numbers may differ, words may not.
# bats file_tags=timed

bats_require_minimum_version 1.5.0
load mount

setup()
{
	[ -z "${GPEMU_SANITIZED-}" ] || skip "compares times"
	common_setup
	unset GPEMU_BIN
	root=$(realpath "$BATS_TEST_DIRNAME/../..")
	export TMPDIR=$BATS_TEST_TMPDIR XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
	# the state of a clone after the demo
	mkdir "$BATS_TEST_TMPDIR/clone"
	cd "$BATS_TEST_TMPDIR/clone"
	ln -s "$(realpath "$BUILD")" build
	cp -r "$root/workloads" .
}

teardown()
{
	common_teardown
}

# The page's commands as a script that marks the start of each block's output,
# and the output that the page shows.
extract()
{
	python3 - "$root/docs/$1" <<-'PY'
		import re, sys
		blocks = re.findall(r'^```([^\n]*)\n(.*?)^```$', open(sys.argv[1]).read(),
		                    re.M | re.S)
		script, shown, n = ['set -eu', 'exec 2>&1'], [], 0
		for kind, text in blocks:
		    assert kind in ('sh', 'sh setup', 'text', 'yaml'), kind
		    if kind == 'sh': # set-up is not for a test
		        n += 1
		        # other load on this machine decides nothing
		        text = re.sub('^(gpemu run -r .*)', r'\1 noise=100%', text, flags=re.M)
		        # nor do the digits, so half of the time is enough
		        text = text.replace('--time-scale 0.2', '--time-scale 0.1')
		        script += [f'echo "=== {n}"', text]
		    elif kind == 'text':
		        assert n, 'output before any command'
		        shown.append(f'=== {n}\n{text}')
		assert n and shown
		open('../script', 'w').write('\n'.join(script))
		open('../shown', 'w').write(''.join(shown))
	PY
}

# Each line that the page shows is in the output of the commands before it, in
# the page's order; digits and the width of gaps do not count.
compare()
{
	python3 - <<-'PY'
		import re
		def parts(path):
		    found = {}
		    for part in re.split(r'^=== ', open(path).read(), flags=re.M)[1:]:
		        n, lines = part.split('\n', 1)
		        found.setdefault(n, []).extend(
		            re.sub(r' +|-{2,}', ' ', re.sub(r'\d+(\.\d+)?', '0', line)).strip()
		            for line in lines.split('\n'))
		    return found
		output = parts('../output')
		for n, lines in parts('../shown').items():
		    said = iter(output[n])
		    for line in lines:
		        assert line in ('', '...') or any(line in s for s in said), \
		            f'block {n} does not print "{line}":\n' + '\n'.join(output[n])
	PY
}

page()
{
	extract "$1"
	# the tutorial sets it itself
	PATH=$PWD/build:$PATH bash ../script >../output || {
		cat ../output
		return 1
	}
	compare
}

@test "tutorial: its commands run and print what the page shows" {
	page tutorial.md
}

@test "own: its commands run and print what the page shows" {
	page own.md
}

@test "formats: the commands about shards run and print what the page shows" {
	page formats.md
}
