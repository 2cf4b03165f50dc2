#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The Debian packages, as far as it can be said without building them;
# tools/package builds and tries them.

setup() {
	BUILD=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}
	cd "$BATS_TEST_DIRNAME/../.."
}

@test "debian: each installed file belongs to one package" {
	[ -x "$BUILD/gpemu-k8s-plugin" ] ||
		skip "the packages have gpemu-k8s-plugin, which was not built"
	meson introspect "$BUILD" --installed >"$BATS_TEST_TMPDIR/installed"
	meson introspect "$BUILD" --buildoptions >"$BATS_TEST_TMPDIR/options"
	python3 - "$BATS_TEST_TMPDIR" <<-'PY'
		import fnmatch, glob, json, os, sys
		tmp = sys.argv[1]
		options = {o['name']: o['value'] for o in json.load(open(tmp + '/options'))}
		# a build without dpkg-dev has another folder than debhelper's
		def place(path):
		    path = os.path.relpath(path, options['prefix'])
		    if path.startswith(options['libdir'] + '/'):
		        path = 'lib/TRIPLET' + path[len(options['libdir']):]
		    return 'usr/' + path
		files = {place(path)
		         for path in json.load(open(tmp + '/installed')).values()}
		lists = {}
		for name in glob.glob('debian/*.install') + ['debian/not-installed']:
		    lines = [l.split() for l in open(name) if l.strip() and l[0] != '#']
		    lists[name] = [l[0] for l in lines]
		    # what is taken from the tree is there
		    for pattern in lists[name]:
		        assert pattern.startswith('usr/') or glob.glob(pattern), pattern
		def holds(pattern, path):
		    parts = path.split('/')
		    return any(fnmatch.fnmatch('/'.join(parts[:n]), pattern)
		               for n in range(1, len(parts) + 1))
		built = {place(path): source for source, path
		         in json.load(open(tmp + '/installed')).items()}
		for path in sorted(files):
		    at = [n for n, patterns in lists.items()
		          if any(holds(p, path) for p in patterns)]
		    assert len(at) == 1, (path, at)
		    # a program has a page; one in Python is where that is a dependency
		    if path.startswith('usr/bin/'):
		        page = 'usr/share/man/man1/%s.1' % os.path.basename(path)
		        assert page in files, page
		        if os.path.exists(built[path]):
		            line = open(built[path], 'rb').readline()
		            wanted = b'python' in line if line.startswith(b'#!') else False
		            assert wanted == (at[0] == 'debian/python3-gpemu.install'), (path, at)
		# and no list names what is no longer installed
		for name, patterns in lists.items():
		    for p in patterns:
		        assert not p.startswith('usr/') or any(holds(p, f) or f.startswith(p)
		                                               for f in files), (name, p)
	PY
}

@test "debian: packages are those of the control file" {
	sed -n 's/^Package: //p' debian/control | sort >"$BATS_TEST_TMPDIR/control"
	(cd debian && ls *.install) | sed 's/\.install$//' | sort |
		diff "$BATS_TEST_TMPDIR/control" -
}

@test "units of systemd are valid, and installed by the packages" {
	command -v systemd-analyze >/dev/null || skip "systemd is not installed"
	for unit in docs/*.service; do
		name=${unit##*/}
		[[ $name != gpemu-k8s-plugin* ]] ||
			[ -x "$BUILD/gpemu-k8s-plugin" ] || continue
		grep -qhx "$unit lib/systemd/system" debian/*.install
		# the programs are elsewhere here
		sed "s|/usr/bin/gpemu|$(realpath "$BUILD")/gpemu|" "$unit" \
			>"$BATS_TEST_TMPDIR/$name"
		run systemd-analyze verify --man=no "$BATS_TEST_TMPDIR/$name"
		echo "$output"
		[ "$status" -eq 0 ]
		[[ $output != *"${name%.service}"* ]]
	done
}

@test "a wheel has its libraries, and runs in an empty virtual environment" {
	[ -n "${GPEMU_FULL-}" ] || skip "builds a tree of its own: tests/run --full"
	run tools/wheel "$BATS_TEST_TMPDIR"
	echo "$output"
	[ "$status" -ne 75 ] || skip "no registry has auditwheel, or no python3-venv"
	[ "$status" -eq 0 ]
	ls "$BATS_TEST_TMPDIR"/gpemu-*-py3-none-manylinux_*.whl
}
