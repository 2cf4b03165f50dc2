/* SPDX-License-Identifier: MIT */
/*
 * The accesses that a loader has announced, object by object, and which of them
 * came before they were due (fs/layer/layer_prefetch.c). The caller's lock
 * covers all calls but plan_new and plan_free.
 *
 * If many accesses in a row are not the announced ones, what was fetched for
 * others is to be dropped, so that the next ones are fetched; then after twice
 * as many; and in the end the plan is wrong.
 */
#ifndef GPEMU_FS_LAYER_PLAN_H
#define GPEMU_FS_LAYER_PLAN_H

#include "fs/server/layer.h"
#include "fs/source/future.h"

struct plan;

/* Of the rank whose future it is; takes a reference. NULL: no memory. `tree` is
 * borrowed. */
struct plan *plan_new(struct future *f, const struct tree *tree);
/* May free much memory. NULL is allowed. */
void plan_free(struct plan *n);

/* The object of the next access. Skips accesses that were missed. Counts *looks
 * down with each access that it looks at. false: there are no more, or *looks
 * is 0, and the next call goes on. */
bool plan_next(struct plan *n, unsigned *looks, struct cache_object *ret);
/* Past the object of plan_next. */
void plan_step(struct plan *n);
/* This object was accessed, and plan_next has not returned that access. */
enum plan_state { PLAN_FITS, PLAN_STRAYS, PLAN_IS_WRONG };
enum plan_state plan_missed(struct plan *n, uint64_t key);
/* An object that plan_next returned was accessed. */
void plan_met(struct plan *n);

/* The number of the next access, of a whole file, from 0. */
uint64_t plan_at(const struct plan *n);
/* How many are left. */
uint64_t plan_left(const struct plan *n);
/* Accesses in an epoch; 0: there is only one epoch. */
uint64_t plan_epoch(const struct plan *n);

#endif
