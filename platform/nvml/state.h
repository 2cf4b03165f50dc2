/* SPDX-License-Identifier: MIT */
/*
 * The servers behind the library, and what they said last. From any thread.
 *
 * Devices are numbered over all servers, in the order of $GPEMU_GPU_SERVER. A
 * handle stays valid until the last nvmlShutdown; it is the device with the
 * UUID that it had at nvmlInit, and is lost while no server has that, or while
 * the server says that it has failed. A server that is started again brings its
 * devices back, and so does a repair.
 *
 * Each function returns an enum nvml_return; NVML_UNINITIALIZED before
 * state_open, NVML_INVALID_ARGUMENT for what is no handle, NVML_GPU_IS_LOST,
 * NVML_TIMEOUT, NVML_NO_PERMISSION and NVML_MEMORY of a server that does not
 * answer. A call waits for some seconds at most.
 */
#ifndef GPEMU_PLATFORM_NVML_STATE_H
#define GPEMU_PLATFORM_NVML_STATE_H

#include <stdbool.h>

#include "platform/nvml/nvml.h"

/* A copy of what a server said of a GPU. */
struct gpu_now {
	uint32_t index;
	char name[96], uuid[48], serial[32], pci_bus_id[32];
	char brand[32]; /* of its board; "": not known */
	/* bytes; usable: what jobs may fill, used: what they were admitted to
	 */
	uint64_t memory_total, memory_usable, memory_used;
	double utilisation; /* 0..1, over the last emulated second */
	bool running;	    /* an iteration */
};

/* NVML_DRIVER_NOT_LOADED: no server answers. */
int state_open(void);
int state_close(void);
/* NVML_SUCCESS between these. */
int state_check(void);
int state_count(unsigned *ret);
/* NVML_INVALID_ARGUMENT: there are not so many. */
int state_handle(unsigned index, struct nvml_device **ret);
int state_gpu(const struct nvml_device *d, struct gpu_now *ret);
/* A number of its board (emu/profile/profile_gpu.h), power_w, energy_j; 1 of
 * what is true. NVML_NOT_SUPPORTED: it is not known. */
int state_fact(const struct nvml_device *d, const char *key, double *ret);
/*
 * The jobs on a device, into `ret` of *count, which becomes their number. With
 * more than *count: NVML_INSUFFICIENT_SIZE. `mps`: only if the server emulates
 * NVIDIA's Multi-Process Service.
 */
int state_processes(const struct nvml_device *d, bool mps, unsigned *count,
		    struct nvml_process *ret);

#endif
