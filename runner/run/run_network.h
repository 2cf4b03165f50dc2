/* SPDX-License-Identifier: MIT */
/*
 * The network between the nodes of a cell, all on this machine.
 *
 *	namespaces	each node's mount runs in a network namespace of its
 *			own, with a veth pair to a bridge in a namespace
 *			between them:
 *
 *			  node 0 [eth0]----[n0 bridge n1]----[eth0] node 1
 *
 *	loopback	each has an address of its own in 127.0.0.0/8, and a
 *			port that was free there
 *
 * The namespaces have no names: only this process and the mounts hold them, and
 * the kernel removes them, with all links in them, when the last of these has
 * ended, however it ended. The ranks stay where gpemu-run is, so that MPI works
 * as elsewhere; they exchange records of a few bytes.
 */
#ifndef GPEMU_RUNNER_RUN_RUN_NETWORK_H
#define GPEMU_RUNNER_RUN_RUN_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/program/child.h"

enum network_mode { NETWORK_AUTO, NETWORK_NAMESPACES, NETWORK_LOOPBACK };

enum { NETWORK_NODES = 250, NETWORK_ADDRESS = 32 };

struct network {
	uint32_t n;  /* nodes; 0: no network */
	bool spaces; /* namespaces, else loopback */
	/* descriptors of namespaces: this process's own, the bridge's (only
	 * this keeps it), the nodes'; on loopback of sockets that keep the
	 * nodes' ports */
	int own, hub, *node;
	char *key; /* path of the key of its nodes */
};

/* "auto", "namespaces", "loopback"; -EINVAL with a text. */
int network_parse(const char *s, enum network_mode *ret, struct err *err);
/*
 * A network of `n` nodes, whose key is a file in `folder`; NULL, with loopback:
 * no key. NETWORK_AUTO: namespaces where permitted and possible. -EPERM,
 * -ENOENT (no ip(8)), -EIO, -E2BIG, ...; with a text. Close it, failed or not.
 */
int network_open(struct network *net, uint32_t n, enum network_mode mode,
		 const char *folder, struct stop *stop, struct err *err);
void network_close(struct network *net);

/* "namespaces" or "loopback"; NULL: no network. */
const char *network_name(const struct network *net);
/* HOST:PORT of a node. */
void network_address(const struct network *net, uint32_t node,
		     char ret[NETWORK_ADDRESS]);
/* Children of this process start at that node, until network_leave. -errno with
 * a text. */
int network_enter(const struct network *net, uint32_t node, struct err *err);
int network_leave(const struct network *net, struct err *err);

#endif
