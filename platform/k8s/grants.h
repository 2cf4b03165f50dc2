/* SPDX-License-Identifier: MIT */
/*
 * The grants of containers: each that is allocated devices of a resource has
 * one, on the gpemu-gpud of each of their kinds (share/grant.c). Its name is
 * its own, and is never given again: a container finds its grant by that name
 * whenever it begins, and no other's.
 *
 * To the kubelet a device that it allocates is free. A container that had it
 * may run, though, or begin later: a kubelet that starts can hand out what the
 * last one gave to another pod (seen of 1.20.2). So the grants of containers
 * that had a device are revoked when it is allocated again, and no device has
 * two containers.
 *
 * The kubelet tells nobody when a container has ended: what it lists as
 * allocated is asked for now and then (k8s.c), and grants that are not in that
 * list are revoked. All are on disk (grant_files.h): what a server has besides
 * is left over, and is revoked when the server is connected.
 */
#ifndef GPEMU_PLATFORM_K8S_GRANTS_H
#define GPEMU_PLATFORM_K8S_GRANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "platform/k8s/devices.h"
#include "platform/k8s/health.h"

/* Begins the names of grants that are ours to revoke. */
#define GRANT_PREFIX "k8s-"
enum { GRANT_NAME = sizeof(GRANT_PREFIX) + 16 };

struct k8s_grant {
	char name[GRANT_NAME];
	const struct k8s_device **devices; /* in the order of the resource */
	size_t n;
	bool held;	    /* an allocation waits for it */
	bool listed;	    /* by the kubelet, since `since_ns` */
	bool loaded;	    /* of an earlier plugin, and neither of these yet:
			     * listed, in doubt */
	uint64_t since_ns;  /* wall: allocated, or in doubt */
	uint64_t added_ns;  /* wall: allocated; 0: by an earlier plugin */
	unsigned n_missed;  /* lists in a row that have it not, */
	uint64_t missed_ns; /* wall: the last of them */
	int error;	    /* errno of a server, while it is held; 0: none */
	struct k8s_grant *next;
	unsigned pending[]; /* answers of the server of each kind */
};

struct grants {
	const char *folder;    /* of its files */
	uint64_t interval_ns;  /* of lists: sooner ones do not count as more */
	struct health *health; /* of each kind */
	size_t n_health;
	struct k8s_grant *first;
};

/*
 * A new grant for these devices, in any order, each once; its servers are told.
 * It is held until grants_settle. -ENOMEM, or of its file.
 */
int grants_add(struct grants *g, const char *resource,
	       const struct k8s_device *const *devices, size_t n,
	       struct k8s_grant **ret);
/* All servers of a held one have answered, or one has failed. */
bool grants_done(const struct grants *g, const struct k8s_grant *grant);
/* It is held no more: the container has it, or nobody (it is revoked). */
void grants_settle(struct grants *g, struct k8s_grant *grant, bool has_it);
/* Those of an earlier plugin. `device` gives the device of a resource; NULL:
 * there is none, and the grant is left out. -errno with a text. */
int grants_load(struct grants *g,
		const struct k8s_device *(*device)(void *ctx,
						   const char *resource,
						   const char *id),
		void *ctx, struct err *err);
/* The kubelet is new and does not know all its pods yet: a grant that it does
 * not list may have a container. */
void grants_doubt(struct grants *g);
/* A server has answered. True: of a grant that is not known to be listed. */
bool grants_ack(struct grants *g, const struct node_kind *kind,
		const char *name, int error);
/* A server is new: tell it what is granted, and revoke what else it has. */
void grants_connected(struct grants *g, const struct node_kind *kind);
/* Its answers will not come. */
void grants_lost(struct grants *g, const struct node_kind *kind);

/* Is each device of the grant among these? One without devices has none. */
bool grants_within(const struct k8s_grant *grant,
		   const struct k8s_device *const *devices, size_t n);
/*
 * By a list of the kubelet: revoke all that it listed and does not for the
 * second time now, an interval later (`live` is false), and all that it did not
 * list within `patience_ns`. Those of an earlier plugin count as listed, if the
 * list has `any` pods: else the kubelet may just have started.
 */
void grants_prune(struct grants *g,
		  bool (*live)(void *ctx, const struct k8s_grant *grant),
		  void *ctx, bool any, uint64_t patience_ns);
void grants_fini(struct grants *g);

#endif
