/* SPDX-License-Identifier: MIT */
/* The pool of images behind a made-up dataset of JPEGs. */
#ifndef GPEMU_EMU_IMAGE_SYNTH_JPEG_H
#define GPEMU_EMU_IMAGE_SYNTH_JPEG_H

#include "emu/image/dataset_files.h"

struct synth_jpeg;

/* Make the images for these sizes, on all processors. Keeps a copy of `d`.
 * -ENOMEM, -EAGAIN with a text. */
int synth_jpeg_new(const struct dataset_files *d, const uint64_t *sizes,
		   struct synth_jpeg **ret, struct err *err);
void synth_jpeg_free(struct synth_jpeg *s);
/* Bytes [offset, offset + n) of file `i` of `size` bytes. */
void synth_jpeg_read(const struct synth_jpeg *s, uint64_t i, uint64_t size,
		     uint64_t offset, void *buf, size_t n);

#endif
