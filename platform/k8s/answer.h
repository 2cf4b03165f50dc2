/* SPDX-License-Identifier: MIT */
/* What a container gets with its devices. Pure. */
#ifndef GPEMU_PLATFORM_K8S_ANSWER_H
#define GPEMU_PLATFORM_K8S_ANSWER_H

#include "platform/k8s/devices.h"
#include "platform/k8s/kubelet.pb-c.h"

/* Where servers are in a container: a folder of this one for each kind. */
#define K8S_CONTAINER_DIR "/run/gpemu"

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

#endif
