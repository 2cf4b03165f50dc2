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
