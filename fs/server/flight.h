/* SPDX-License-Identifier: MIT */
/*
 * Objects in flight: from the miss that creates one until its bytes arrive. An
 * object has at most one flight at a time, whichever read or layer requests it.
 * All but flight_land under the server's lock.
 */
#ifndef GPEMU_FS_SERVER_FLIGHT_H
#define GPEMU_FS_SERVER_FLIGHT_H

#include "fs/server/layer.h"
#include "fs/server/object.h"

struct object *flight_find(const struct server *s, uint64_t key);
/* A new object in flight: FETCHING, with the flight's reference, no bytes, and
 * its fetch filled in except `done`. NULL: no memory. */
struct object *flight_new(struct server *s, uint64_t key, uint64_t arrival);
/* The same with memory for its bytes, if there is any, and a fetch whose
 * completion lands it. */
struct object *flight_begin(struct server *s, uint64_t key, uint64_t arrival);
/* The same with the bytes of `o`, which is READY and has some: a hit that takes
 * time. */
struct object *flight_again(struct server *s, struct object *o,
			    uint64_t arrival);
/* The object of a->what, with a reference for the caller. It is in flight
 * already or from now on (a->fresh, a->start). No new flight if it was paid
 * for. */
struct object *flight_join(struct server *s, struct ask *a);
/* Cancel the fetch: the flight's reference is put. */
void flight_cancel(struct server *s, struct object *o);
/*
 * Without the lock: the fetch of these objects ended at `deadline`, each with
 * its o->error (0 or -errno, set by the caller). They become READY or FAILED in
 * one step; then their waiters are woken and the flights' references are put.
 */
void flight_land(struct server *s, struct object *const *objects, size_t n,
		 uint64_t deadline);

#endif
