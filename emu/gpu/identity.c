/* SPDX-License-Identifier: MIT */
#include "emu/gpu/identity.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "common/util.h"

/* Source: machine-id(5) */
enum { MACHINE_ID = 32 };
/* The digits of an NVIDIA serial number. */
#define SERIALS UINT64_C(10000000000000)
/* Domains that no bus of this machine has: a tool that looks for the device
 * in /sys finds nothing, rather than another one. arbitrary: firmware counts
 * from 0 */
enum { DOMAINS = 0x8000 };

/* The host's name where there is no machine-id(5), as in a container. */
static uint64_t machine(void)
{
	_cleanup_free_ char *id = NULL;
	char host[HOST_NAME_MAX + 1] = "";
	size_t n = 0;

	if (util_read_file("/etc/machine-id", 4096, &id, &n) == 0 &&
	    n >= MACHINE_ID)
		return XXH3_64bits(id, MACHINE_ID);
	gethostname(host, sizeof(host) - 1);
	return XXH3_64bits(host, strlen(host));
}

uint64_t identity_seed(const char *socket, const char *gpu)
{
	_cleanup_free_ char *real = realpath(socket, NULL);
	const char *path = real ? real : socket;
	uint64_t h = XXH3_64bits_withSeed(path, strlen(path), machine());

	return XXH3_64bits_withSeed(gpu, strlen(gpu), h);
}

void identity_of(uint64_t seed, uint32_t index, struct identity *ret)
{
	XXH128_hash_t h = XXH3_128bits_withSeed(&index, sizeof(index), seed);

	snprintf(ret->uuid, sizeof(ret->uuid),
		 "GPU-%08x-%04x-%04x-%04x-%04x%08x", (unsigned)(h.high64 >> 32),
		 (unsigned)(h.high64 >> 16 & 0xffff),
		 (unsigned)(h.high64 & 0xffff), (unsigned)(h.low64 >> 48),
		 (unsigned)(h.low64 >> 32 & 0xffff),
		 (unsigned)(h.low64 & 0xffffffff));
	snprintf(ret->serial, sizeof(ret->serial), "%013" PRIu64,
		 h.low64 % SERIALS);
	snprintf(ret->pci_bus_id, sizeof(ret->pci_bus_id), "%08X:%02X:00.0",
		 (unsigned)(DOMAINS | seed % DOMAINS), (index + 1) & 0xff);
}
