/* SPDX-License-Identifier: MIT */
/*
 * The placement of a partitioned cache: which node keeps which object. All
 * nodes compute the same from the dataset, the seed, the number of nodes and
 * the capacity of each, so they exchange no directory.
 *
 *	1. Shuffle all objects by the seed.
 *	2. In that order each goes to the node with the most free space, its
 *	   owner, if it fits there. If all caches together hold the dataset, the
 *	   largest objects go first, which leaves the least without an owner.
 *	3. A node fills its remaining space with objects of other owners, in an
 *	   order shuffled by the seed and its number (surplus).
 *
 * Source: CoorDL (Mohan et al., "Analyzing and Mitigating Data Stalls in DNN
 * Training", VLDB 2021, section 4.2); the shuffle by the seed is that of its
 * code, the balance of bytes is ours.
 *
 * With the future of a run (fs/peer/foresee.h) another placement replaces it.
 *
 * An object is a file, or a 4 MiB extent of a large one, named by its key
 * (fs/server/object.h). Any thread may read a placement, also while one
 * replaces it: then it sees the old or the new place of each object. A request
 * to a node that does not own the object only costs a read of the storage.
 */
#ifndef GPEMU_FS_PEER_PLACE_H
#define GPEMU_FS_PEER_PLACE_H

#include <stdbool.h>

#include "fs/source/tree.h"

/* Of mounts: each has a connection to each other one. */
enum { PLACE_NODES = 64 };
/* Of a placement. arbitrary: owners are numbers of 16 bits */
enum { PLACE_MOST = 65535 };
/* No node owns it. */
#define PLACE_NONE UINT32_MAX

struct place;

struct place_config {
	const struct tree *tree; /* borrowed */
	uint64_t seed;
	uint32_t n_nodes;	 /* <= PLACE_MOST */
	uint32_t self;		 /* PLACE_NONE: all nodes, for simulators */
	uint64_t capacity_bytes; /* of each node */
	uint64_t extent_bytes;	 /* size of a larger file's objects */
};

/* -ENOMEM, -EFBIG: more than 2^32 - 1 objects. */
int place_new(const struct place_config *c, struct place **ret);
/* NULL is allowed. */
void place_free(struct place *p);
/* The size of an object; 0: there is none with this key. Safe on any key. */
uint64_t place_bytes(const struct place *p, uint64_t key);
/* The owner of an object that exists, or PLACE_NONE. */
uint32_t place_owner(const struct place *p, uint64_t key);
/* Does this node, `self`, keep it in that tier of its cache, as the owner or as
 * surplus? At most PLACE_NODES nodes. */
bool place_keeps(const struct place *p, uint64_t key, unsigned tier);
/* A bit for each object, malloc'ed: none is kept. NULL: no memory. */
uint64_t *place_bits(const struct place *p);
void place_add(uint64_t *kept, uint32_t object);
bool place_has(const struct place *p, const uint64_t *kept, uint64_t key);
/* What any node keeps before place_replace and place_reown, as place_bits.
 * `sizes`: from place_sizes. -ENOMEM. */
int place_keep(const struct place *p, const uint32_t *sizes, uint32_t node,
	       uint64_t **ret_kept, uint64_t *ret_surplus);
/* The size of each object, malloc'ed. NULL: no memory. */
uint32_t *place_sizes(const struct place *p);
/* Bytes that this node owns, and has as surplus; bytes without an owner. */
struct place_sums {
	uint64_t owned, surplus, none;
};
struct place_sums place_sums(const struct place *p);

/* --- another placement ---------------------------------------------------- */

/* Where an object is: its owner, and the tier of this node that keeps it. */
enum { PLACE_NOBODY = 0xff, PLACE_NOWHERE = 0xff, PLACE_ANYWHERE = 0xfe };
static inline uint16_t place_code(uint32_t owner, unsigned tier)
{
	return (uint16_t)(owner | tier << 8);
}
static inline uint32_t place_code_owner(uint16_t code)
{
	return code & 0xff;
}
static inline unsigned place_code_tier(uint16_t code)
{
	return code >> 8;
}

const struct place_config *place_config(const struct place *p);
/* The objects are numbered: those of a file follow each other. */
uint32_t place_objects(const struct place *p);
uint32_t place_first(const struct place *p, uint32_t node);
/* Owners of objects, as numbers of 16 bits. */
enum { PLACE_UNOWNED = UINT16_MAX };
/* Without `self`: the owner of each object. Takes it over, malloc'ed. */
void place_reown(struct place *p, uint16_t *owner);
/* Use the codes of all objects, one thread at a time. true: some differ from
 * before. */
bool place_replace(struct place *p, const uint16_t *who,
		   const struct place_sums *sums);

/* The dataset in 16 bytes: names, types, sizes and times of all files, in
 * their order. -ENOMEM. */
enum { PLACE_FINGERPRINT = 16 };
int place_fingerprint(const struct tree *t,
		      unsigned char ret[PLACE_FINGERPRINT]);

#endif
