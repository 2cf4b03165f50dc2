/* SPDX-License-Identifier: MIT */
/* The nodes of a partitioned cache, as the user gives them. */
#ifndef GPEMU_FS_PEER_PEER_NET_H
#define GPEMU_FS_PEER_PEER_NET_H

#include "common/units.h"
#include "fs/peer/place.h"
#include "net/addr.h"
#include "net/nic.h"
#include "net/seal.h"

/* When a request to another node is given up. arbitrary: longer than a busy
 * disk takes for a queue of reads */
#define PEER_TIMEOUT_NS (5 * NS_PER_S)

struct peer_net {
	struct addr nodes[PLACE_NODES];
	uint32_t n, self; /* this one is nodes[self] */
	struct seal_secret secret;
	struct nic *nic;     /* the node's emulated network card */
	uint64_t timeout_ns; /* wall time */
};

/* In place of a list: gpemu-run replaces it. */
#define PEER_NET_AUTO "auto"
/* Is `list` that, or the addresses of 2 to PLACE_NODES nodes, separated by
 * commas, none twice? -EINVAL with a text, -ENOMEM. */
int peer_net_check(const char *list, struct err *err);
/*
 * Look up the addresses and read the key (NULL: none). The card has no limit;
 * peer_net_fini releases it even after an error. -EINVAL
 * (`self` is no node; an address that other machines reach, without a key), and
 * what addr_find and seal_read_secret fail with; with a text.
 */
int peer_net_init(struct peer_net *net, const char *list, uint64_t self,
		  const char *key, struct err *err);
void peer_net_fini(struct peer_net *net);

#endif
