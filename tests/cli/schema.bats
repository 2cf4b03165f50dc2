# SPDX-License-Identifier: MIT
# docs/workload-schema.md against the program: its keys, types, defaults and
# examples.
bats_require_minimum_version 1.5.0

setup()
{
	bin=$(realpath "${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}")
	page=$(realpath "$BATS_TEST_DIRNAME/../../docs/workload-schema.md")
	cd "$BATS_TEST_TMPDIR" || return
	export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
}

# compare KIND HEADING: keys that --list KIND prints, and the rows of the
# tables of the page whose first column is called HEADING
compare()
{
	"$bin/gpemu-run" --list "$1" >listed
	python3 - "$page" "$2" <<-'PY'
		import re, sys
		rows, ours = {}, False
		for line in open(sys.argv[1]):
		    cells = [c.strip() for c in line.split('|')[1:-1]]
		    if len(cells) != 4:
		        ours = False
		    elif cells[0] == sys.argv[2]:
		        ours = True
		    elif ours and cells[0].startswith('`'):
		        key = cells[0].strip('`')
		        assert key not in rows, f'{key} twice'
		        rows[key] = cells[1:]
		known = {}
		for line in open('listed'):
		    key, kind, default = re.split(r'  +', line.strip())
		    known[key] = (kind, default)
		assert len(known) > 3, known
		assert set(known) == set(rows), set(known) ^ set(rows)
		for key, (kind, default) in known.items():
		    assert rows[key][0] == kind, (key, kind)
		    # "-": the program knows none; the page may use words
		    assert rows[key][1] == default, (key, default)
		    assert rows[key][2], key
	PY
}

@test "schema: the page lists every key of a workload" {
	compare keys key
}

@test "schema: the page lists every key of a list of workloads" {
	compare list-keys 'list key'
}

@test "schema: every key has an example, and every example is accepted" {
	"$bin/gpemu-run" --list keys >listed
	python3 - "$page" <<-'PY'
		import re, sys
		text = open(sys.argv[1]).read()
		blocks = re.findall(r'```yaml\n(.*?)```', text, re.S)
		def parts(block):
		    """{key: its lines} of the outermost keys"""
		    keys = re.split(r'^(?=\w)', block, flags=re.M)[1:]
		    return {k.split(':')[0]: k for k in keys}
		whole = parts(blocks[0])
		for i, block in enumerate(blocks):
		    own = parts(block)
		    if 'extends' in own:
		        open('my-question.yaml', 'w').write(blocks[0])
		        open(f'{i:02}.yaml', 'w').write(block)
		    elif 'workloads' in own:
		        open('list', 'w').write(block)
		    else:
		        open(f'{i:02}.yaml', 'w').write(
		            ''.join({**whole, **own}.values()))
		shown = '\n'.join(blocks)
		for line in open('listed'):
		    key = re.split(r'[.\]]', line.split()[0])[-1]
		    assert re.search(rf'\b{key}:', shown), f'{key} has no example'
	PY
	[ -s list ]
	for file in [0-9]*.yaml; do
		"$bin/gpemu-run" check "$file" >out || {
			cat "$file" out
			return 1
		}
	done
}
