/* SPDX-License-Identifier: MIT */
/*
 * The format of .gpemu/future, in which a loader announces the accesses to come
 * to its mount. All numbers are 32 bits, little-endian:
 *
 *	"gpemufut"	8 bytes
 *	version		1
 *	rank, world	of the loader: rank < world
 *	epochs		in the list
 *	first, rest	accesses of a rank in the first epoch, and in each other
 *	flags		1: the list continues an earlier one
 *	list		inode numbers in the mount, epoch by epoch: position i
 *			of an epoch is an access of rank i % world. 0: no file
 *			of the mount
 *
 * So each mount learns the accesses of all ranks, in their order.
 */
#ifndef GPEMU_COMMON_SYSTEM_FUTURE_H
#define GPEMU_COMMON_SYSTEM_FUTURE_H

#define FUTURE_FILE "future"
#define FUTURE_MAGIC "gpemufut"

enum future_field {
	FUTURE_VERSION,
	FUTURE_RANK,
	FUTURE_WORLD,
	FUTURE_EPOCHS,
	FUTURE_FIRST,
	FUTURE_REST,
	FUTURE_FLAGS,
	FUTURE_FIELDS,
};

enum {
	FUTURE_IS_VERSION = 1,
	FUTURE_CONTINUES = 1,
	FUTURE_HEAD = 8 + 4 * FUTURE_FIELDS, /* bytes before the list */
	/* Accesses of all ranks in a list: 64 MiB. arbitrary: 13 epochs of
	 * ImageNet; a loader announces more of them later */
	FUTURE_MOST = 1 << 24,
	FUTURE_MOST_RANKS = 1 << 16,
};

#endif
