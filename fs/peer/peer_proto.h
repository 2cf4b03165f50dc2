/* SPDX-License-Identifier: MIT */
/*
 * The messages between the caches of a partitioned cache, each a frame of
 * net/frame.h. Numbers are little-endian; all but DATA have a fixed length.
 *
 *	dialer			owner
 *	HELLO ->		WELCOME		or REFUSE, and closed
 *	GET ->			DATA		in any order
 *				NOTFOUND	it does not own this object
 *
 *	1 HELLO, 2 WELCOME	u8 type, u32 PEER_VERSION, u32 node, u32 nodes,
 *				u64 seed, u64 capacity in bytes, 16 fingerprint
 *	3 REFUSE		u8 type, u8 reason
 *	4 GET			u8 type, u64 id, u64 key, u32 bytes
 *	5 DATA			u8 type, u64 id, the bytes of the object
 *	6 NOTFOUND		u8 type, u64 id
 *
 * docs/peers.md describes the protocol and its limits.
 */
#ifndef GPEMU_FS_PEER_PEER_PROTO_H
#define GPEMU_FS_PEER_PEER_PROTO_H

#include <stddef.h>
#include <stdint.h>

#include "fs/peer/place.h"

enum {
	PEER_VERSION = 1,
	PEER_HELLO_BYTES = 1 + 4 + 4 + 4 + 8 + 8 + PLACE_FINGERPRINT,
	PEER_DATA_HEAD = 1 + 8,
	PEER_HEAD = PEER_HELLO_BYTES, /* the longest message, without data */
	/* outstanding GETs of a connection. arbitrary: more than the requests
	 * that a kernel has in flight for a mount */
	PEER_MOST_GETS = 1024,
};

enum peer_type {
	PEER_HELLO = 1,
	PEER_WELCOME,
	PEER_REFUSE,
	PEER_GET,
	PEER_DATA,
	PEER_NOTFOUND,
};

/* Why two nodes cannot share a cache. */
enum peer_reason {
	PEER_FITS,
	PEER_OTHER_VERSION,
	PEER_OTHER_DATASET,
	PEER_OTHER_SEED,
	PEER_OTHER_NODES,    /* the number of them */
	PEER_OTHER_CAPACITY, /* of the cache */
	PEER_OTHER_NODE,     /* not the node expected, or itself */
	PEER_REASONS,
};

struct peer_hello {
	uint32_t version, node, nodes;
	uint64_t seed, capacity_bytes;
	unsigned char fingerprint[PLACE_FINGERPRINT];
};

struct peer_msg {
	enum peer_type type;
	struct peer_hello hello;   /* HELLO, WELCOME */
	enum peer_reason reason;   /* REFUSE */
	uint64_t id, key;	   /* GET; id also DATA, NOTFOUND */
	uint32_t bytes;		   /* GET */
	const unsigned char *data; /* DATA: in the decoded bytes */
	size_t n_data;
};

/* -EPROTO: no message, or one that is too short or too long. */
int peer_decode(const unsigned char *m, size_t n, struct peer_msg *ret);
/* All but the data; returns the length. */
size_t peer_encode(const struct peer_msg *m, unsigned char ret[PEER_HEAD]);
/* May the node `theirs` be node `node` of the cache of `mine`? */
enum peer_reason peer_compare(const struct peer_hello *mine,
			      const struct peer_hello *theirs, uint32_t node);
/* "it has a different --seed", static. */
const char *peer_reason_text(enum peer_reason r);

#endif
