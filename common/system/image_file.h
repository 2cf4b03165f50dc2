/* SPDX-License-Identifier: MIT */
/* Which files are images, as loaders of image datasets decide. */
#ifndef GPEMU_COMMON_SYSTEM_IMAGE_FILE_H
#define GPEMU_COMMON_SYSTEM_IMAGE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum image_file {
	IMAGE_FILE_NO,
	IMAGE_FILE_YES,
	IMAGE_FILE_UNKNOWN, /* its name does not say */
};

/*
 * By the name, with or without folders. Yes: an extension of torchvision's
 * IMG_EXTENSIONS, in any case. No: an extension of texts, tables, checksums,
 * archives or arrays, or a name such as _SUCCESS or README.
 */
enum image_file image_file_named(const char *name);

/* Bytes that image_file_looks needs at most. Source: RIFF, size, "WEBP" */
enum { IMAGE_FILE_HEAD = 12 };

/* By its first bytes: JPEG, PNG, GIF, BMP, TIFF, WebP or PNM. */
bool image_file_looks(const uint8_t *head, size_t n);

#endif
