#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Who may do what: other users on a mount of root's and on a user's, mounted
# by gpemu-fs and by mount -t fuse.gpemu-fs. The cases are in users8.

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

@test "a mount is for who mounted it, also root's" {
	both_ways alone
}

@test "allow_other: others read what they may read in the source" {
	both_ways shared
}

@test "an access control list keeps out whom it keeps out of the source" {
	with_lists list
}

@test "a list that comes after the scan keeps out whom it keeps out" {
	with_lists late_list
}

@test "a list of a pack's file keeps out whom it keeps out" {
	with_lists pack_list
}

@test "a folder that others may not enter stays so as the root" {
	both_ways root_folder
}

@test "no setuid, no setgid, no devices, whatever -o says" {
	both_ways privilege
}

@test "control, config and groups are for who mounted" {
	both_ways control
}

@test "anybody may train on a mount that is open to others" {
	both_ways train
}

@test "a folder that becomes a link leads nowhere" {
	both_ways links
}

@test "passthrough opens nothing through a link" {
	both_ways passthrough
}

@test "a file that becomes somebody else's, or a pipe, is not read" {
	both_ways other_file
}

@test "a file in a directory that becomes a closed one is not read" {
	both_ways other_folder
}

@test "a folder moved above a mount point has no other mounted or unmounted" {
	both_ways moved
}

@test "a .gpemu of somebody else beside the dataset is no mount's" {
	both_ways planted_control
}

@test "a setuid program takes no profiles from the environment" {
	both_ways setuid
}

@test "ranks write through no link in a shared folder of checkpoints" {
	both_ways planted_ranks
}

@test "logs, traces and dumps go through no other user's link" {
	both_ways planted_outputs
}

@test "a record replaces another user's link, and follows one's own" {
	both_ways planted_record
}

@test "a .gpemu in the source is hidden, and said to be" {
	run both_ways own_folder
	echo "$output"
	[ "$status" -eq 0 ]
	[ "$(grep -c 'its own .gpemu is hidden' <<<"$output")" = 2 ]
}

@test "a user's mount is for that user" {
	both_ways user
}

@test "a user's mount with allow_other" {
	both_ways user_shared
}
