/* SPDX-License-Identifier: MIT */
/* The state of a resource of the kubelet (platform/k8s/resource.h). */
#ifndef GPEMU_PLATFORM_K8S_STATE_H
#define GPEMU_PLATFORM_K8S_STATE_H

#include "common/program/events.h"
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

#endif
