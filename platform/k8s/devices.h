/* SPDX-License-Identifier: MIT */
/* The devices of a resource, and which of them belong together. Pure. */
#ifndef GPEMU_PLATFORM_K8S_DEVICES_H
#define GPEMU_PLATFORM_K8S_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/node.h"

/* Of an identifier, terminator included. Source: Kubernetes allows 63
 * characters */
enum { K8S_ID = 64 };

/* Devices that have something in common, from near to far. */
enum k8s_level {
	K8S_CARD,  /* slices of one GPU */
	K8S_GROUP, /* a kind, on one NUMA node */
	K8S_KIND,
	K8S_ALL,
	K8S_LEVELS
};

struct k8s_device {
	char id[K8S_ID]; /* KIND-GPU or KIND-GPU-SLICE */
	const struct node_kind *kind;
	uint32_t gpu; /* of its gpemu-gpud */
	int64_t numa; /* -1: unknown */
	bool healthy;
	uint32_t at[K8S_LEVELS]; /* which of n_at it belongs to */
};

struct k8s_devices {
	const char *resource;	  /* borrowed */
	struct k8s_device *items; /* by kind, GPU, slice */
	size_t n;
	struct k8s_device **by_id; /* sorted */
	uint32_t n_at[K8S_LEVELS];
	bool packed; /* slices of memory: those of one GPU belong together */
	bool spread; /* replicas: those of one GPU share its time */
};

/* The devices of all kinds with this resource, unhealthy. -ENOMEM;
 * k8s_devices_fini in any case. `node` and `resource` must stay. */
int k8s_devices_init(struct k8s_devices *d, const struct node *node,
		     const char *resource);
void k8s_devices_fini(struct k8s_devices *d);
/* NULL: there is none. */
const struct k8s_device *k8s_devices_find(const struct k8s_devices *d,
					  const char *id);
/* The GPUs of `kind` in the mask are healthy, and no others. Returns whether
 * that changes anything. */
bool k8s_devices_mark(struct k8s_devices *d, const struct node_kind *kind,
		      uint64_t healthy);

/*
 * Choose `size` devices of `available`, among them all of `must`:
 *
 *	1. of as few kinds, then NUMA nodes, as possible; slices of memory of
 *	   one GPU
 *	2. from the smallest such set that is large enough, so that large ones
 *	   stay whole for those who need them
 *	3. replicas from the GPUs with the most free ones
 *	4. the first ones
 *
 * -EINVAL: there are not so many, or `must` has more; -ENOMEM. `ret` has room
 * for `size`.
 */
int k8s_prefer(const struct k8s_devices *d,
	       const struct k8s_device *const *available, size_t n_available,
	       const struct k8s_device *const *must, size_t n_must, size_t size,
	       const struct k8s_device **ret);

#endif
