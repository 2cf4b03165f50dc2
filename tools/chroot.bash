# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Clean Debians in folders, for tools/package, chroot-test and cross-test, which source it
# as root, with their arguments. Sets $work, which goes when the script ends.

# what is mounted below, and unmounted, is no matter of this machine
[ -n "${GPEMU_OWN_MOUNTS-}" ] || GPEMU_OWN_MOUNTS=1 \
	exec unshare -m --propagation private "$0" "$@"
cd "$(dirname "$0")/.."
work=$(mktemp -d)

release()
{
	local at

	for at in "$work"/*/{dev,proc,sys}; do
		! mountpoint -q "$at" || umount -R -l "$at"
	done
	rm -rf --one-file-system "$work"
}
trap release EXIT
trap 'exit 1' INT TERM

say()
{
	printf '%4d s  %s\n' "$SECONDS" "$*"
}

# clean RELEASE NAME PACKAGE,... [OPTION...]: a Debian with these packages, from the
# archives that this machine uses; options of mmdebstrap
clean()
{
	local release=$1 root=$work/$2 packages=$3 options=("${@:4}")
	local archives=() here file copy

	here=$(. /etc/os-release && echo "$VERSION_CODENAME")
	for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources}; do
		grep -qs "$here" "$file" || continue
		copy=$work/${file##*/}
		sed "s/$here/$release/g" "$file" >"$copy"
		archives+=("$copy")
	done
	mmdebstrap --quiet --variant=minbase --include="$packages" "${options[@]}" \
		--setup-hook='mkdir -p "$1/etc/apt"' \
		--setup-hook='copy-in /etc/apt/apt.conf.d /etc/apt' \
		"$release" "$root" "${archives[@]}" >"$work/log" 2>&1 ||
		{ tail -n 40 "$work/log" >&2; return 1; }
	# else fusermount3 leaves a lock beside it
	[ -e "$root/etc/mtab" ] || ln -s ../proc/self/mounts "$root/etc/mtab"
	mount --rbind /dev "$root/dev"
	mount -t proc proc "$root/proc"
	mount -t sysfs sysfs "$root/sys" # mpirun fails without
	quiet "$2" apt-get -qq update
}

# in_root NAME COMMAND...
in_root()
{
	local root=$work/$1

	shift
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		DEBIAN_FRONTEND=noninteractive \
		DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS-}" chroot "$root" "$@"
}

# quiet NAME COMMAND...: its output only if it fails
quiet()
{
	in_root "$@" >"$work/log" 2>&1 || { tail -n 60 "$work/log" >&2; return 1; }
}

# files NAME: what is installed or was left, but for caches and logs
files()
{
	(cd "$work/$1" && find . \( -path ./proc -o -path ./dev -o -path ./sys -o -path ./tmp \
		-o -path ./var/cache -o -path ./var/log -o -path ./var/lib/apt \
		-o -path ./var/lib/dpkg -o -path ./debs -o -name '*.pyc' \
		-o -path ./etc/ld.so.cache \) -prune -o -print | sort)
}
