/* SPDX-License-Identifier: MIT */
/*
 * The format of .gpemu/importance, in which a loader tells its mount how much
 * files matter to the training: records of two little-endian numbers of 32 bits
 *
 *	inode		of a file in the mount
 *	importance	IEEE 754 single precision: finite, 0 or more
 *
 * Each write is whole records, in no particular order, and holds at once.
 */
#ifndef GPEMU_COMMON_SYSTEM_IMPORTANCE_H
#define GPEMU_COMMON_SYSTEM_IMPORTANCE_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define IMPORTANCE_FILE "importance"

enum { IMPORTANCE_RECORD = 8 }; /* bytes */

static inline void importance_put(unsigned char *at, uint32_t inode, float v)
{
	uint32_t x[2] = { htole32(inode) };

	memcpy(&x[1], &v, sizeof(v));
	x[1] = htole32(x[1]);
	memcpy(at, x, sizeof(x));
}

static inline void importance_get(const unsigned char *at, uint32_t *inode,
				  float *v)
{
	uint32_t x[2];

	memcpy(x, at, sizeof(x));
	*inode = le32toh(x[0]);
	x[1] = le32toh(x[1]);
	memcpy(v, &x[1], sizeof(*v));
}

#endif
