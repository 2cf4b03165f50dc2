/* SPDX-License-Identifier: MIT */
/*
 * The devices that pods have, by the kubelet's own list
 * (v1.PodResourcesLister): the one way to learn that a container has ended. It
 * can only be asked for, so it is, now and then while there are grants.
 */
#ifndef GPEMU_PLATFORM_K8S_PODS_H
#define GPEMU_PLATFORM_K8S_PODS_H

#include "common/program/events.h"
#include "platform/grpc/grpc.h"
#include "platform/k8s/grants.h"
#include "platform/k8s/resource.h"

#define PODS_SOCKET "/var/lib/kubelet/pod-resources/kubelet.sock"

struct pods {
	struct events *events; /* set by the owner, as the next five */
	const char *path;      /* of the kubelet's socket for that */
	uint64_t interval_ns;
	struct grants *grants;
	struct resource *resources;
	size_t n_resources;

	struct event_timer timer;
	struct grpc_client *client;
	char trouble[1024]; /* that was logged; "": none */
};

void pods_begin(struct pods *p);
/* A container has a new grant: the list is asked for soon, so that it has the
 * container even if that ends before the interval does. */
void pods_granted(struct pods *p);
void pods_end(struct pods *p);

#endif
