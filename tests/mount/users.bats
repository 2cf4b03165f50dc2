#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Permissions: other users on a mount of root's and on a user's, mounted by
# gpemu-fs and by mount -t fuse.gpemu-fs. The cases are in users8.

load mount

setup()
{
	common_setup
	[ "$(id -u)" = 0 ] || skip "only root can be several users"
	PATH=$PATH:/sbin:/usr/sbin
	command -v mount.fuse3 >/dev/null || skip "no mount.fuse3"
	command -v fusermount3 >/dev/null || skip "no fusermount3"
	unshare -m mount -t tmpfs none /mnt ||
		skip "no permission to make a mount name space"
	export BUILD PROFILES=$BATS_TEST_DIRNAME/../../profiles
}

teardown()
{
	common_teardown
}

both_ways()
{
	for way in gpemu-fs mount; do
		echo "# $way"
		unshare -m --propagation private \
			bash "$BATS_TEST_DIRNAME/users8" $way "$1" ||
			return $?
	done
}

# with_lists CASE: both ways, where the file system has them
with_lists()
{
	run both_ways "$1"
	[ "$status" -ne 77 ] || skip "no access control lists on a tmpfs"
	echo "$output"
	[ "$status" -eq 0 ]
}

@test "a mount is open to its owner only, even root's" {
	both_ways alone
}

@test "allow_other: others read what they may read in the source" {
	both_ways shared
}

@test "an access control list of the source applies to the mount" {
	with_lists list
}

@test "an access control list added after the scan applies" {
	with_lists late_list
}

@test "the access control list of a pack file applies" {
	with_lists pack_list
}

@test "a folder closed to others stays closed as the root of a mount" {
	both_ways root_folder
}

@test "no setuid, no setgid, no devices, whatever -o says" {
	both_ways privilege
}

@test "control, config and groups are open to the owner only" {
	both_ways control
}

@test "any user may train on a mount that is open to others" {
	both_ways train
}

@test "a folder replaced by a link is not followed" {
	both_ways links
}

@test "allow_other: links are followed below the source and folders of --follow-links" {
	both_ways followed
}

@test "passthrough does not open through a link" {
	both_ways passthrough
}

@test "a file that becomes another user's, or a pipe, is not read" {
	both_ways other_file
}

@test "a file in a directory that is closed later is not read" {
	both_ways other_folder
}

@test "a folder moved above a mount point causes no other mount or unmount" {
	both_ways moved
}

@test "another user's .gpemu next to the dataset is not taken for a mount" {
	both_ways planted_control
}

@test "a setuid program ignores GPEMU_PROFILES" {
	both_ways setuid
}

@test "ranks do not write through links in a shared folder of checkpoints" {
	both_ways planted_ranks
}

@test "logs, traces and dumps are not written through another user's link" {
	both_ways planted_outputs
}

@test "a record replaces another user's link and follows the owner's" {
	both_ways planted_record
}

@test "a .gpemu in the source is hidden, with a warning" {
	run both_ways own_folder
	echo "$output"
	[ "$status" -eq 0 ]
	[ "$(grep -c 'its own .gpemu is hidden' <<<"$output")" = 2 ]
}

@test "an unprivileged mount is open to its owner only" {
	both_ways user
}

@test "an unprivileged mount with allow_other" {
	both_ways user_shared
}
