/* SPDX-License-Identifier: MIT */
/*
 * A parcel: a frame that is sealed once, under a key that its receivers have in
 * common, and sent over several connections without a copy. It follows a
 * message of each, which says what it is.
 *
 *	message, sealed for the connection | parcel | message | ...
 *
 * For one thread, that of the loop.
 */
#ifndef GPEMU_NET_PARCEL_H
#define GPEMU_NET_PARCEL_H

#include "net/frame.h"

/* Of its body: the length of a frame is a u32. */
#define PARCEL_MOST ((size_t)UINT32_MAX - SEAL_TAG)

struct parcel {
	uint32_t n_refs;
	size_t n;	       /* the whole frame */
	unsigned char bytes[]; /* header, body, tag */
};

/* For a body of 1 to PARCEL_MOST bytes; the caller has the one reference. NULL:
 * no memory. */
struct parcel *parcel_new(size_t n);
/* Its body, to be filled in. */
unsigned char *parcel_body(struct parcel *p);
/* As seal_close_common; once. */
void parcel_seal(struct parcel *p, const struct seal_key *k, uint64_t whose,
		 uint64_t number);
/* One more reference; returns `p`. */
struct parcel *parcel_get(struct parcel *p);
/* The last reference frees it. NULL is allowed. */
void parcel_put(struct parcel *p);

#endif
