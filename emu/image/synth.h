/* SPDX-License-Identifier: MIT */
/*
 * A dataset that is made up on read: no disk, any part of any file at memory
 * speed, the same bytes for the same words. Two of its two contents:
 *
 *	random  byte for byte the files of `gpemu-data make --content random`
 *	jpeg    every file is a JPEG that decodes, of exactly its size: one of
 *	        a pool of some hundred images, made by synth_prepare, of at most
 *	        64 MB together. The step between their sizes is made up by a
 *	        comment of random bytes, by which two files with one picture
 *	        still differ. Files larger than 1 MiB carry a picture of 1 MiB.
 *
 * Reading is safe from all threads.
 */
#ifndef GPEMU_EMU_IMAGE_SYNTH_H
#define GPEMU_EMU_IMAGE_SYNTH_H

#include "emu/image/dataset_files.h"

struct synth;

/*
 * By "DATASET[,files=N][,classes=N][,seed=N][,content=random|jpeg][,scale=X]",
 * or, without a profile, "records,files=N,size=BYTES[,size_sd=BYTES]...": sizes
 * of a normal distribution, at least 1;
 * what is left out is the profile's, the seed is 1 as with gpemu-data make.
 * -EINVAL (with the known options or datasets), -ENOENT, -ENOMEM.
 */
int synth_open(const char *spec, struct synth **ret, struct err *err);
/* Make the images of a dataset of JPEGs, on all processors: sizes are known
 * without them. -ENOMEM, -EAGAIN with a text. */
int synth_prepare(struct synth *s, struct err *err);
void synth_close(struct synth *s);

const struct dataset_files *synth_files(const struct synth *s);
/* Size of file `i` in bytes. */
uint64_t synth_size(const struct synth *s, uint64_t i);
/* Bytes [offset, offset + n) of file `i`, within its size. After
 * synth_prepare. */
void synth_read(const struct synth *s, uint64_t i, uint64_t offset, void *buf,
		size_t n);

#endif
