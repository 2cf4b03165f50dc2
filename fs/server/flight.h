/* SPDX-License-Identifier: MIT */
/*
 * Objects in flight: from the miss that makes one until its bytes arrive. There
 * is one flight of an object at a time, whoever asks for it, by whatever layer.
 * All but flight_land under the server's lock.
 */
#ifndef GPEMU_FS_SERVER_FLIGHT_H
#define GPEMU_FS_SERVER_FLIGHT_H

#include "fs/server/layer.h"

struct object *flight_find(const struct server *s, uint64_t key);
/* A new object, in flight, with the flight's reference, FETCHING, and no bytes;
 * its fetch is filled in but for `done`. NULL: no memory. */
struct object *flight_new(struct server *s, uint64_t key, uint64_t arrival);
/* The same with memory for its bytes, if there is any, and a fetch that makes
 * it arrive. */
struct object *flight_begin(struct server *s, uint64_t key, uint64_t arrival);
/* The same with the bytes of `o`, which has some and is READY: a hit that takes
 * time. */
struct object *flight_again(struct server *s, struct object *o,
			    uint64_t arrival);
/* The object that a->what asks for, with a reference for who asks: in flight
 * already, or from now on (a->fresh, a->start); not where it was paid for. */
struct object *flight_join(struct server *s, struct ask *a);
/* It is not fetched after all: its reference is put. */
void flight_cancel(struct server *s, struct object *o);
/*
 * Without the lock: the fetch of these objects ended at `deadline`, each with
 * its o->error (0 or -errno, set by the caller). They arrive together; then who
 * waits for them is woken, and the flights' references are put.
 */
void flight_land(struct server *s, struct object *const *objects, size_t n,
		 uint64_t deadline);

/* One of the things that a request waits for has happened. */
static inline void read_settle(struct read_request *r)
{
	if (__atomic_sub_fetch(&r->pending, 1, __ATOMIC_ACQ_REL) == 0)
		r->ready(r);
}

#endif
