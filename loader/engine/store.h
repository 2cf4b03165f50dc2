/* SPDX-License-Identifier: MIT */
/* Reads samples that are objects of a bucket (store/bucket.h). */
#ifndef GPEMU_LOADER_ENGINE_STORE_H
#define GPEMU_LOADER_ENGINE_STORE_H

#include "loader/engine/engine.h"

/* Read one, as readfile does. */
int64_t store_read(struct engine_fetch *f);

/* Many in flight, delivered as they complete: of one worker. */
struct store_reads;
/* -ENOMEM with a text. */
int store_reads_new(struct bucket *b, unsigned depth, struct store_reads **ret,
		    struct err *err);
/* When the last read has ended; NULL is allowed. */
void store_reads_free(struct store_reads *s);
/* As engine_ops.next. */
int store_reads_next(struct store_reads *s, struct feed *feed,
		     struct engine_fetch **ret);

#endif
