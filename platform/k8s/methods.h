/* SPDX-License-Identifier: MIT */
/* The calls of v1beta1.DevicePlugin; the server's `ctx` is the resource. */
#ifndef GPEMU_PLATFORM_K8S_METHODS_H
#define GPEMU_PLATFORM_K8S_METHODS_H

#include "platform/k8s/kubelet.pb-c.h"
#include "platform/k8s/state.h"

/*
 * Fill `ret`, an initialised message, for a container with these devices, in
 * the order of the resource, and this grant:
 *
 *	env		GPEMU_DEVICES (all identifiers), GPEMU_GPU_SERVER (the
 *			socket of each kind, ':' between them); of the first
 *			kind CUDA_VISIBLE_DEVICES (its GPUs), GPEMU_GPU_PROFILE,
 *			GPEMU_GPU_MEMORY_MIB (on each of its GPUs, at least),
 *			GPEMU_SERVER_USER (a number, if the file names one);
 *			those of the node's file
 *	mounts		the folder of the grant on each server, and the file's
 *	devices		of each GPU, if its kind has device files
 *	annotations	gpemu.io/devices, and the file's
 *	CDI names	KIND-GPU of each GPU, if its kind has them
 *
 * -ENOMEM; the caller frees the message in any case.
 */
int k8s_answer(const struct k8s_device *const *devices, size_t n,
	       const char *grant, Kubelet__ContainerAnswer *ret);

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
