/* SPDX-License-Identifier: MIT */
/* The calls of v1beta1.DevicePlugin; the server's `ctx` is the resource. */
#ifndef GPEMU_PLATFORM_K8S_METHODS_H
#define GPEMU_PLATFORM_K8S_METHODS_H

#include "platform/k8s/kubelet.pb-c.h"
#include "platform/k8s/state.h"

extern const struct grpc_method device_plugin_methods[];

/* For Register and GetDevicePluginOptions. */
Kubelet__Options methods_options(void);
/* Send the devices to all watchers. */
void methods_send_lists(struct resource *r);
/* A call has gone. */
void methods_gone(struct grpc_call *c);
/* All calls have gone, with the server. */
void methods_forget(struct resource *r);
/* Grants are done, or will not be: answer the calls of Allocate that waited. */
void methods_granted(struct resource *r);

/* A message as it is sent; malloc'ed, NULL: no memory. */
void *methods_pack(const ProtobufCMessage *m, size_t *ret_n);

#endif
