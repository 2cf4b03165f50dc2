#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Completions of the shells.

setup() {
	BUILD=$(realpath "${GPEMU_BUILD:-$BATS_TEST_DIRNAME/../../build}")
	PATH=$BUILD:$PATH
	SCRIPTS=$BATS_TEST_DIRNAME/../../command/completions
}

# complete WORD...: what bash offers for the last of the words, which it divides
# at each =
complete_words() {
	bash -c '
		. "$1"
		shift
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_gpemu
		printf "%s\n" "${COMPREPLY[@]}"
	' bash "$SCRIPTS/gpemu.bash" "$@"
}

# offers "WORD ..." WORD...: these are among what is offered
offers() {
	local want=$1 word

	shift
	run complete_words "$@"
	echo "$*: $output"
	for word in $want; do
		grep -qxFe "$word" <<<"$output"
	done
}

@test "bash: commands" {
	offers 'train fs run help' gpemu ''
	offers train gpemu tr
	[ "$output" = train ]
	offers 'list show check' gpemu-profile ''
	offers 'make pack stat' gpemu data ''
	offers make gpemu data ma
	[ "$output" = make ]
	offers 'dispatcher worker' gpemu prepd ''
	offers import gpemu record im
	offers '--strace --dftracer' gpemu record import --
	[ -x "$BUILD/gpemu-k8s-plugin" ] || return 0
	offers k8s-plugin gpemu k8
	offers --kubelet-dir= gpemu k8s-plugin --kube
}

@test "bash: options, with = where they take an argument" {
	offers '--cache-policy= --verbose --help' gpemu-fs --
	offers '--gpu-server= --epochs=' gpemu train --
	offers --epochs= gpemu train --epo
	[ "$output" = --epochs= ]
	offers --query gpemu-smi --q
	offers --dataset= gpemu data make --data
}

@test "bash: values, with = and without" {
	offers 'lru minio' gpemu-fs --cache-policy ''
	offers 'lru minio' gpemu-fs --cache-policy = ''
	offers 'lru' gpemu-fs --cache-policy =
	offers 'lru minio' gpemu-fs -p ''
	offers minio gpemu fs --cache-policy = mi
	[ "$output" = minio ]
	offers 'sync async' gpemu-train --loader ''
	offers fair gpemu-gpud --scheduler f
	offers 'policy storage' gpemu-fs --list ''
	# a file: bash's own
	offers '' gpemu-train --json ''
	[ -z "$output" ]
}

@test "every program has its completion" {
	DESTDIR=$BATS_TEST_TMPDIR/root meson install -C "$BUILD" --no-rebuild \
		--quiet >"$BATS_TEST_TMPDIR/install" 2>&1
	installed=$(find "$BATS_TEST_TMPDIR/root" -type d -name completions)
	for program in "$BUILD"/gpemu "$BUILD"/gpemu-*; do
		[ -f "$program" ] && [ -x "$program" ] || continue
		[[ $program != *.so ]] || continue # a module of gpemu-train
		bash -c '. "$1"; complete -p "$2"' bash "$SCRIPTS/gpemu.bash" \
			"${program##*/}"
		head -n1 "$SCRIPTS/_gpemu" | grep -qw -- "${program##*/}"
		[ -f "$installed/${program##*/}" ] # through its link
	done
}

@test "zsh: commands, options, values" {
	command -v zsh >/dev/null || skip "zsh is not installed"
	zsh -f -n "$SCRIPTS/_gpemu"
	cat >"$BATS_TEST_TMPDIR/offer" <<-'ZSH'
		_describe() {
			local n=$argv[-1]
			local -a v=("${(@P)n}")
			print -l -- ${v%%:*}
		}
		compadd() {
			local n=$argv[-1]
			print -l -- "${(@P)n}"
		}
		compset() { }
		_files() { print files }
		script=$1
		shift
		words=("$@") CURRENT=$#
		complete_them() { . $script }
		complete_them
	ZSH
	offer() { zsh -f "$BATS_TEST_TMPDIR/offer" "$SCRIPTS/_gpemu" "$@"; }
	offer gpemu '' | grep -qx train
	offer gpemu data '' | grep -qx make
	offer gpemu prepd '' | grep -qx worker
	[ ! -x "$BUILD/gpemu-k8s-plugin" ] ||
		offer gpemu k8s-plugin -- | grep -qxe --kubelet-dir=
	offer gpemu train -- | grep -qxe --gpu-server=
	offer gpemu-fs --cache-policy '' | grep -qx minio
	offer gpemu-fs --cache-policy=mi | grep -qx minio
	offer gpemu-fs --list '' | grep -qx storage
	[ "$(offer gpemu-train --json '')" = files ]
	# a command, or a workload's file
	offer gpemu-run '' | grep -qx compare
	offer gpemu-run '' | grep -qx files
	[ "$(offer gpemu-run w.yaml '')" = files ]
	[ -z "$(offer gpemu-data '' | grep -x files)" ]
}
