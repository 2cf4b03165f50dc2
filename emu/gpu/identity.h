/* SPDX-License-Identifier: MIT */
/*
 * What monitoring and cluster managers know an emulated GPU by: the same after
 * a restart of the server, and another one on each machine, at each socket and
 * for each kind of GPU.
 */
#ifndef GPEMU_EMU_GPU_IDENTITY_H
#define GPEMU_EMU_GPU_IDENTITY_H

#include <stdint.h>

struct identity {
	char uuid[44];	     /* GPU-8-4-4-4-12 digits, as NVIDIA writes it */
	char serial[16];     /* 13 digits */
	char pci_bus_id[20]; /* domain:bus:device.function, %08X:%02X:%02X.0 */
};

/* Of a server: the machine, the path of its socket, which exists, and the name
 * of its GPUs. */
uint64_t identity_seed(const char *socket, const char *gpu);
/* Of its GPU `index`, below 255. */
void identity_of(uint64_t seed, uint32_t index, struct identity *ret);

#endif
