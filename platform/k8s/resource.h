/* SPDX-License-Identifier: MIT */
/*
 * A resource: a socket of its own, on which it serves v1beta1.DevicePlugin, and
 * its registration with the kubelet.
 *
 * A kubelet connects to the socket while it answers Register (since 1.26) or
 * after that, and then holds a ListAndWatch call. Without such a call it does
 * not know the devices: the resource registers until it has one.
 */
#ifndef GPEMU_PLATFORM_K8S_RESOURCE_H
#define GPEMU_PLATFORM_K8S_RESOURCE_H

#include <jansson.h>
#include <stdbool.h>

#include "common/err.h"
#include "platform/events.h"
#include "platform/grpc/grpc.h"
#include "platform/k8s/devices.h"
#include "platform/k8s/grants.h"

/* A call of Allocate whose grants are on their way. */
struct allocation;

struct resource {
	struct events *events;
	struct grants *grants;
	const char *dir; /* of sockets */
	struct k8s_devices devices;
	char *endpoint; /* the name of its socket, in `dir` */
	char *path, *kubelet;
	struct grpc_server *server;
	struct grpc_client *registering;
	struct event_timer timer; /* check, and register again if needed */
	uint64_t pause_ns;	  /* before the next attempt */
	char trouble[1024];	  /* that was logged; "": none */
	/* calls of ListAndWatch */
	struct grpc_call *watchers[GRPC_CONNS * GRPC_CALLS];
	size_t n_watchers;
	struct allocation *allocations;
	uint64_t n_registered, n_lists, n_allocated; /* since the start */
};

/* `node`, `name`, `dir` and `grants` must stay. -ENOMEM, -ENAMETOOLONG, with a
 * text; resource_fini in any case. */
int resource_init(struct resource *r, struct events *events,
		  const struct node *node, const char *name, const char *dir,
		  struct grants *grants, struct err *err);
void resource_fini(struct resource *r);

/* Listen, if nobody can reach the socket, and register. */
void resource_register(struct resource *r);
/* Register if the socket has gone. */
void resource_check(struct resource *r);
/* The health of the kind's GPUs: tell the kubelet what has changed. */
void resource_mark(struct resource *r, const struct node_kind *kind,
		   uint64_t healthy);
json_t *resource_json(const struct resource *r);

#endif
