/* SPDX-License-Identifier: MIT */
/* Which GPUs a run has: its own, or those of a gpemu-gpud. */
#ifndef GPEMU_LOADER_OPTIONS_TRAIN_GPU_H
#define GPEMU_LOADER_OPTIONS_TRAIN_GPU_H

#include "emu/gpu/device.h"
#include "emu/profile/profile_gpu.h"
#include "loader/options/train_options.h"

/*
 * Without gpu_server, gpu and node, and in a run of its own: the server that
 * came with the job's GPUs ($GPEMU_GPU_SERVER, $GPEMU_SERVER_USER), and as
 * many of its GPUs ($GPEMU_GPUS). -EINVAL, -ENOMEM with a text.
 */
int train_gpu_given(struct train_options *o, struct err *err);

/* The profile of `gpu`, with `gpu_memory`. As gpu_profile_load. */
int train_gpu_load(const struct train_options *o, struct gpu_profile *ret,
		   struct err *err);

/*
 * The device that is not started yet. With a server `gpu` becomes the path of
 * its profile; -EINVAL: it was another GPU. Else as device_server_open, with a
 * text.
 */
int train_gpu_open(struct train_options *o, struct device **ret,
		   struct err *err);

#endif
