/* SPDX-License-Identifier: MIT */
/*
 * Why a sample cannot be used: -errno of its read, or the negative of one of
 * these. They lie between the errnos of Linux and MAX_ERRNO, so whatever
 * carries an -errno, as a message of the preparation service, carries them.
 */
#ifndef GPEMU_LOADER_PREP_UNUSABLE_H
#define GPEMU_LOADER_PREP_UNUSABLE_H

#include <stddef.h>
#include <stdint.h>

enum unusable {
	UNUSABLE_EMPTY = 4000, /* arbitrary: the last errno is 133 */
	UNUSABLE_TRUNCATED,
	UNUSABLE_LARGE, /* more than PLANES_MAX_PIXELS */
	UNUSABLE_KIND,	/* a JPEG of a kind that is not decoded */
	UNUSABLE_UNKNOWN,
	UNUSABLE_FORMAT, /* this and more: an image of another format */
};

/* Of a file that is neither JPEG nor PNG. */
enum unusable unusable_format(const uint8_t *raw, size_t n);
/* In words; -EBADMSG: broken. Of any negative number. */
const char *unusable_text(int error);

#endif
