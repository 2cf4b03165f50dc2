/* SPDX-License-Identifier: MIT */
/*
 * The accesses that a loader has announced, object by object, and which of them
 * came before they were due (fs/layer/ahead.h). The caller's lock covers all
 * calls but announced_new and announced_free.
 *
 * If many accesses in a row are not the announced ones, what was fetched for
 * others is to be dropped, so that the next ones are fetched; then after twice
 * as many; and in the end the announcement is wrong.
 */
#ifndef GPEMU_FS_LAYER_ANNOUNCED_H
#define GPEMU_FS_LAYER_ANNOUNCED_H

#include "fs/cache/policy.h"
#include "fs/source/future.h"

struct announced;

/* Of a rank; takes a reference to the future. NULL: no memory. `tree` is
 * borrowed. */
struct announced *announced_new(struct future *f, uint32_t rank,
				const struct tree *tree);
/* May free much memory. NULL is allowed. */
void announced_free(struct announced *n);

/* The object of the next access. Skips accesses that were missed. Counts *looks
 * down with each access that it looks at. false: there are no more, or *looks
 * is 0, and the next call goes on. */
bool announced_next(struct announced *n, unsigned *looks,
		    struct cache_object *ret);
/* Past the object of announced_next. */
void announced_step(struct announced *n);
/* This object was accessed, and announced_next has not returned that access. */
enum announced_state { ANNOUNCED_FITS, ANNOUNCED_STRAYS, ANNOUNCED_IS_WRONG };
enum announced_state announced_missed(struct announced *n, uint64_t key);
/* An object that announced_next returned was accessed. */
void announced_met(struct announced *n);

/* The number of the next access, of a whole file, from 0. */
uint64_t announced_at(const struct announced *n);
/* How many are left. */
uint64_t announced_left(const struct announced *n);
/* Accesses in an epoch; 0: there is only one epoch. */
uint64_t announced_epoch(const struct announced *n);

#endif
