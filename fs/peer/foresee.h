/* SPDX-License-Identifier: MIT */
/*
 * The placement of NoPFS: who keeps what follows from the accesses to come.
 *
 *	1. Each node sorts the files that it will access by how often it does
 *	   so, the most frequent first; among equals the first accessed is
 *	   first.
 *	2. In that order it fills its tiers, from the fastest. So several nodes
 *	   may keep an object, and some objects nobody.
 *	3. The owner, from which the other nodes get an object, is the one that
 *	   keeps it in the fastest tier; among those the one that accesses it
 *	   first.
 *
 * Every node computes this for all nodes, and gets the same.
 *
 * Source: Dryden et al., "Clairvoyant Prefetching for Distributed Machine
 * Learning I/O", SC 2021; and its code, github.com/spcl/NoPFS: utils/Sampler
 * (the order), utils/DistributedManager (the owner).
 */
#ifndef GPEMU_FS_PEER_FORESEE_H
#define GPEMU_FS_PEER_FORESEE_H

#include "fs/peer/place.h"
#include "fs/source/future.h"

/* The tiers of each node's cache, the fastest first. */
struct foresee_tiers {
	const uint64_t *bytes;
	unsigned n; /* < PLACE_ANYWHERE */
};

/*
 * Who keeps what, of all nodes, for `place_config(p)->n_nodes` ranks. Calls
 * `kept` for each object that a rank keeps, and in which tier. *ret_owner: of
 * each object, malloc'ed, or PLACE_UNOWNED. -ENOMEM.
 */
int foresee_all(const struct place *p, const struct future *f,
		const struct foresee_tiers *tiers,
		void (*kept)(void *ctx, uint32_t rank, uint32_t object,
			     unsigned tier),
		void *ctx, uint16_t **ret_owner);

/* Place by the future. 1: others are kept than before; 0; -EINVAL: the future
 * is that of other nodes; -ENOMEM; with a text. */
int foresee(struct place *p, const struct future *f,
	    const struct foresee_tiers *tiers, struct err *err);

#endif
