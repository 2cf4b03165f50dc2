# SPDX-License-Identifier: MIT

@test "pages: links between them resolve" {
	python3 - "$BATS_TEST_DIRNAME/../.." <<-'PY'
		import os, re, sys
		root, bad = sys.argv[1], []
		pages = [os.path.join(root, p) for p in ('README.md', 'CHANGELOG.md',
		    'CONTRIBUTING.md', 'workloads/README.md')]
		pages += [os.path.join(root, 'docs', p) for p in
		    os.listdir(os.path.join(root, 'docs')) if p.endswith('.md')]
		for page in pages:
		    for to in re.findall(r'\]\(([^)]+)\)', open(page).read()):
		        to = to.split('#')[0]
		        path = os.path.join(os.path.dirname(page), to)
		        if to and '://' not in to and not os.path.exists(path):
		            bad.append(f'{page}: {to}')
		assert not bad, bad
	PY
}

@test "pages: those that a manual page names are installed" {
	cd "$BATS_TEST_DIRNAME/../../docs"
	for page in $(grep -ohE '[a-z-]+\.md' ./*.scd | sort -u); do
		grep -q "'$page'" meson.build || { echo "$page"; false; }
	done
}

@test "the defects of tests/bench/mutations can be put into the sources" {
	"$BATS_TEST_DIRNAME/../bench/mutations" --list
}

# scdoc reads one backslash as an escape of the next character
@test "commands of several lines keep their backslash in a page" {
	! grep -nE '(^|[^\\])\\$' "$BATS_TEST_DIRNAME"/../../docs/*.scd
}

# docs/security.md lists what others send
@test "pages: checks and tests of what others send are where the table says" {
	python3 - "$BATS_TEST_DIRNAME/../.." <<-'PY'
		import glob, re, sys
		root, bad = sys.argv[1], []
		def found(name):
		    if name.startswith('fuzz-'):
		        name = f'tests/fuzz/{name[5:]}.c'
		    elif name.startswith('test_') and '.' not in name:
		        name += '.c'
		    rooms = '{fs,service,net,share,common,loader,lib,emu,s3,store,platform,python,tests}'
		    return [f for room in rooms[1:-1].split(',')
		            for f in glob.glob(f'{root}/{room}/**/{name.split("/")[-1]}',
		                               recursive=True) if f.endswith('/' + name)]
		for row in open(root + '/docs/security.md'):
		    if not row.startswith('|'):
		        continue
		    text, words = '', []
		    for name in re.findall('`([^`*]+)`', row):
		        if re.fullmatch(r'[\w/.-]+\.(c|h|py|bats)|(fuzz-|test_)\w+', name):
		            files = found(name)
		            bad += [] if files else [name]
		            text += ''.join(open(f).read() for f in files)
		        elif re.fullmatch('[a-z]+(_[a-z]+)+', name):
		            words.append(name)
		    test = row.split('|')[-2]
		    bad += [w for w in words if w not in text]
		    bad += [q for q in re.findall('"([^"]+)"', test)
		            if q not in text and re.sub('[ -]', '_', q) not in text]
		assert not bad, bad
	PY
}

@test "pages: the policies that a mount has are counted" {
	local n

	n=$("${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}/gpemu-fs" --list policy |
		grep -vcE '^none|gpemu-cachesim only')
	grep -q "| cache under study | $n policies, " "$BATS_TEST_DIRNAME/../../docs/comparison.md"
}
