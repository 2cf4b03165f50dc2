/* SPDX-License-Identifier: MIT */
/*
 * The grants of containers: a container has one for its devices of a resource,
 * on the gpemu-gpud of each of their kinds (share/grant.c). The name of a grant
 * follows from its devices and a turn, so that all plugins that ever run on the
 * node call it the same.
 *
 * To the kubelet a device that it allocates is free. A container that had it
 * may run, though, or begin later: a kubelet that starts can hand out what the
 * last one gave to another pod (seen of 1.20.2). Then the former grant is
 * revoked, and the new one has another name, so that no device has two
 * containers.
 *
 * The kubelet tells nobody when a container has ended: what it lists as
 * allocated is asked for now and then (pods.h), and grants that are not in that
 * list are revoked.
 */
#ifndef GPEMU_PLATFORM_K8S_GRANTS_H
#define GPEMU_PLATFORM_K8S_GRANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/k8s/devices.h"
#include "platform/k8s/health.h"

/* Begins the names of grants that are ours to revoke. */
#define GRANT_PREFIX "k8s-"
enum { GRANT_NAME = sizeof(GRANT_PREFIX) + 16 };

struct k8s_grant {
	char name[GRANT_NAME];
	const struct k8s_device **devices; /* in the order of the resource */
	size_t n;
	bool listed;	    /* by the kubelet, since `since_ns` */
	unsigned turn;	    /* of grants of the same devices */
	uint64_t since_ns;  /* wall: the last allocation, or doubt */
	uint64_t added_ns;  /* wall: the last allocation; 0: of an earlier
			     * plugin */
	unsigned n_missed;  /* lists in a row that have it not */
	unsigned n_pending; /* answers of servers */
	int error;	    /* errno of one of them; 0: none */
	struct k8s_grant *next;
};

struct grants {
	struct health *health; /* of each kind */
	size_t n_health;
	struct k8s_grant *first;
};

/*
 * The grant for these devices, in any order, each once: a new one, or the one
 * that there is; its servers are told. It is done when n_pending is 0. -ENOMEM.
 */
int grants_add(struct grants *g, const char *resource,
	       const struct k8s_device *const *devices, size_t n,
	       struct k8s_grant **ret);
/* The same of devices that the kubelet lists: where there is one, nothing. */
int grants_adopt(struct grants *g, const char *resource,
		 const struct k8s_device *const *devices, size_t n);
/* The kubelet is new and does not know all its pods yet: a grant that it does
 * not list may have a container. */
void grants_doubt(struct grants *g);
/* A server has answered. True: of a grant that is not known to be listed. */
bool grants_ack(struct grants *g, const char *name, int error);
/* A server is new: tell it what is granted. */
void grants_connected(struct grants *g, const struct node_kind *kind);
/* Its answers will not come. */
void grants_lost(struct grants *g, const struct node_kind *kind);

/* Is each device of the grant among these? */
bool grants_within(const struct k8s_grant *grant,
		   const struct k8s_device *const *devices, size_t n);
/* By a list of the kubelet: revoke all that it listed and does not for the
 * second time now (`live` is false), and all that it did not list within
 * `patience_ns`. */
void grants_prune(struct grants *g,
		  bool (*live)(void *ctx, const struct k8s_grant *grant),
		  void *ctx, uint64_t patience_ns);
/* Revoke what an earlier plugin left and nobody has. Returns whether there is
 * nothing left of it. */
bool grants_sweep(struct grants *g);
void grants_fini(struct grants *g);

#endif
