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

#include "common/err.h"
#include "platform/k8s/state.h"

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
