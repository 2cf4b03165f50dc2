#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# libgpemu as others see it: installed, found by pkg-config, linked.

setup_file() {
	export BUILD=${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}
	export EXAMPLES=$BATS_TEST_DIRNAME/../../examples
	export INTO=$(mktemp -d)

	meson install -C "$BUILD" --no-rebuild --quiet --destdir "$INTO" >"$INTO/log" 2>&1 ||
		{ cat "$INTO/log" >&2; return 1; }
	export PKG_CONFIG_PATH=$(dirname "$(find "$INTO" -name gpemu.pc)")
	export PKG_CONFIG_SYSROOT_DIR=$INTO
	export LIBDIR=$(dirname "$PKG_CONFIG_PATH")
	# a program linked with a sanitized library needs the sanitizer, too
	if [ -n "${GPEMU_SANITIZED-}" ]; then
		export SANITIZE=-fsanitize=address,undefined
	fi
}

teardown_file() {
	rm -rf "$INTO"
}

setup() {
	TMP=$(mktemp -d)
	unset GPEMU_PROFILES # found beside the library
}

teardown() {
	rm -rf "$TMP"
}

@test "the examples compile against the installed library" {
	for word in train engine; do
		cc $SANITIZE -std=gnu99 -Wall -Wextra -Werror -o "$TMP/example-$word" \
			"$EXAMPLES/$word.c" $(pkg-config --cflags --libs gpemu)
		LD_LIBRARY_PATH=$LIBDIR "$EXAMPLES/run" "$TMP/example-$word"
	done
}

@test "linked with the archive, a program needs no library at run time" {
	# where gpemu itself is installed, the installed folder of this test is
	# empty
	export GPEMU_PROFILES=$(find "$INTO" -path '*/share/gpemu/profiles')
	mkdir "$TMP/lib"
	cp "$LIBDIR/libgpemu.a" "$TMP/lib/"
	libs=$(pkg-config --libs --static gpemu)
	cc $SANITIZE -o "$TMP/example-train" "$EXAMPLES/train.c" \
		$(pkg-config --cflags gpemu) "-L$TMP/lib" \
		$(printf '%s\n' $libs | grep -v '^-L')
	run ldd "$TMP/example-train"
	[[ "$output" != *libgpemu* ]]
	"$EXAMPLES/run" "$TMP/example-train"
	# no symbol but the interface's can clash with the user's names
	run sh -c "nm --defined-only --extern-only '$LIBDIR/libgpemu.a' |
		awk 'NF == 3 && \$3 !~ /^(gpemu_|__odr_asan)/'"
	[ -z "$output" ]
}

@test "the library exports only the interface, with version and soname" {
	nm -D --defined-only "$LIBDIR/libgpemu.so" >"$TMP/names"
	grep -q ' T gpemu_open@@GPEMU_1$' "$TMP/names"
	grep -q ' T gpemu_keep@@GPEMU_2$' "$TMP/names"
	grep -q ' T gpemu_start@@GPEMU_3$' "$TMP/names"
	grep -q ' T gpemu_gpu_start@@GPEMU_4$' "$TMP/names"
	grep -q ' T gpemu_card_open@@GPEMU_5$' "$TMP/names"
	run grep -vE ' (T gpemu_[a-z_]+@@GPEMU_[12345]|A GPEMU_[12345])$' "$TMP/names"
	[ -z "$output" ]
	readelf -d "$LIBDIR/libgpemu.so" | grep -q 'SONAME.*\[libgpemu.so.1\]'
	# exactly the functions of the header are exported
	grep -oE '\bgpemu_[a-z_]+\(' "$(find "$INTO" -name gpemu.h)" |
		tr -d '(' | sort -u >"$TMP/header"
	sed -n 's/.* T \(.*\)@@.*/\1/p' "$TMP/names" | sort -u >"$TMP/library"
	diff "$TMP/header" "$TMP/library"
}

@test "the header compiles alone, as C99 and as C++" {
	header=$(find "$INTO" -name gpemu.h)
	cxx=$(command -v c++ || command -v clang++-14)
	for language in "cc -x c -std=c99" "cc -x c -std=c17" \
		"$cxx -x c++ -std=c++98" "$cxx -x c++ -std=c++17"; do
		$language -Wall -Wextra -Wpedantic -Wno-long-long -Werror \
			-fsyntax-only "$header"
	done
	cat >"$TMP/main.cc" <<-'CC'
		#include <gpemu.h>
		#include <cstdio>
		int main()
		{
			struct gpemu_gpu *gpu;
			struct gpemu_step step;
			const char *options[] = { "gpu=a100", "time_scale=0.01", NULL };
			char error[256];
			if (gpemu_gpu_open(options, &gpu, error, sizeof(error)) < 0)
				return std::puts(error), 1;
			int r = gpemu_gpu_submit(gpu, 64, &step);
			gpemu_gpu_close(gpu);
			return r < 0 || step.compute_end_ns <= step.compute_start_ns;
		}
	CC
	"$cxx" $SANITIZE -o "$TMP/main" "$TMP/main.cc" $(pkg-config --cflags --libs gpemu)
	LD_LIBRARY_PATH=$LIBDIR "$TMP/main"
}

@test "an interrupted run resumes from its checkpoint" {
	mkdir "$TMP/data"
	for i in $(seq 40); do echo $i >"$TMP/data/$i"; done
	cat >"$TMP/options.yaml" <<-YAML
		prep: none
		batch: 8
		index: "off"
		time_scale: 0.001
		checkpoint_every: 3
		checkpoint_size: 4K
		checkpoint_dir: $TMP/checkpoints
	YAML
	run "$BUILD/examples/example-train" "$TMP/data" "config=$TMP/options.yaml" max_steps=4
	[[ "$output" == "epoch 0: 4 steps, 32 samples,"* ]]
	# of another run
	run "$BUILD/examples/example-train" "$TMP/data" "config=$TMP/options.yaml"
	[ "$status" -eq 1 ]
	[[ "$output" == "train: $TMP/checkpoints has checkpoints"* ]]
	run "$BUILD/examples/example-train" "$TMP/data" "config=$TMP/options.yaml" resume=on
	[[ "$output" == "epoch 0: 2 steps, 16 samples,"* ]]
}

@test "from Python, through ctypes" {
	[ -z "${GPEMU_SANITIZED-}" ] || skip "Python itself is not sanitized"
	mkdir -p "$TMP/data"
	for i in 1 2 3 4 5; do head -c $((i * 100)) /dev/zero >"$TMP/data/$i"; done
	cat >"$TMP/main.py" <<-'PY'
		import ctypes, json, sys
		from ctypes import byref, c_char_p, c_void_p, c_size_t, c_int, c_uint32, c_uint64

		class Sample(ctypes.Structure):
		    _fields_ = [('data', c_void_p), ('size_bytes', c_size_t), ('path', c_char_p),
		                ('index', c_uint64), ('label', c_uint32), ('error', c_int),
		                ('reserved', c_uint64 * 3)]

		class Batch(ctypes.Structure):
		    _fields_ = [('n', c_uint32), ('samples', ctypes.POINTER(Sample)),
		                ('ready_ns', c_uint64)]

		lib = ctypes.CDLL(sys.argv[1])
		lib.gpemu_error.restype = c_char_p
		options = [b'data=' + sys.argv[2].encode(), b'prep=none', b'batch=2',
		           b'time_scale=0.001', b'index=off', None]
		g, batch, error = c_void_p(), ctypes.POINTER(Batch)(), ctypes.create_string_buffer(256)
		r = lib.gpemu_open((c_char_p * len(options))(*options), None, byref(g), error, c_size_t(256))
		assert r == 0, error.value
		seen = {}
		assert lib.gpemu_begin_epoch(g, None) == 1
		while (r := lib.gpemu_next(g, byref(batch))) > 0:
		    for i in range(batch.contents.n):
		        s = batch.contents.samples[i]
		        seen[s.path] = len(ctypes.string_at(s.data, s.size_bytes))
		    assert lib.gpemu_submit(g, batch, None) == 0
		assert r == 0, lib.gpemu_error(g)
		assert lib.gpemu_end_epoch(g, None) == 0
		assert seen == {b'%d' % i: 100 * i for i in range(1, 6)}, seen
		text = c_char_p()
		assert lib.gpemu_record(g, byref(text)) == 0
		record = json.loads(text.value)
		assert record['totals']['samples'] == 5 and record['ceiling']['au'] > 0
		assert record['command'][0] == 'libgpemu'
		assert lib.gpemu_close(g) == 0
	PY
	python3 "$TMP/main.py" "$LIBDIR/libgpemu.so" "$TMP/data"
}

@test "an epoch that is cut short waits for the step on a server's GPU" {
	[ -z "${GPEMU_SANITIZED-}" ] || skip "Python itself is not sanitized"
	mkdir -p "$TMP/data"
	for i in $(seq 40); do echo $i >"$TMP/data/$i"; done
	"$BUILD/gpemu-gpud" --socket "$TMP/socket" --time-scale 0.01 3>&- &
	server=$!
	for try in {1..200}; do
		! "$BUILD/gpemu-smi" --socket "$TMP/socket" >/dev/null 2>&1 || break
		sleep 0.05
	done
	cat >"$TMP/main.py" <<-'PY'
		import ctypes, json, sys
		from ctypes import byref, c_char_p, c_size_t, c_void_p

		lib = ctypes.CDLL(sys.argv[1])
		options = [b'data=' + sys.argv[2].encode(), b'gpu_server=' + sys.argv[3].encode(),
		           b'prep=none', b'batch=4', b'epochs=3', b'pin=off', b'time_scale=0.01',
		           b'index=off', None]
		g, batch, error = c_void_p(), c_void_p(), ctypes.create_string_buffer(256)
		r = lib.gpemu_open((c_char_p * len(options))(*options), None, byref(g), error, c_size_t(256))
		assert r == 0, error.value
		for steps in 3, 4, 5:
		    assert lib.gpemu_begin_epoch(g, None) == 1
		    for i in range(steps):
		        assert lib.gpemu_next(g, byref(batch)) == 1
		        assert lib.gpemu_submit(g, batch, None) == 0
		    assert lib.gpemu_end_epoch(g, None) == 0
		text = c_char_p()
		assert lib.gpemu_record(g, byref(text)) == 0
		done = [e['steps'] for e in json.loads(text.value)['epochs']]
		assert done == [3, 4, 5], done
		assert lib.gpemu_close(g) == 0
	PY
	run timeout 30 python3 "$TMP/main.py" "$LIBDIR/libgpemu.so" "$TMP/data" "$TMP/socket"
	kill "$server"
	wait "$server"
	echo "$output"
	[ "$status" -eq 0 ]
}
