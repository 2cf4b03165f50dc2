/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "platform/nvml/answer.h"

/* --- handles ------------------------------------------------------------- */

int nvmlDeviceGetCount_v2(unsigned *ret)
{
	return ret ? state_count(ret) : NVML_INVALID_ARGUMENT;
}

ALIAS(nvmlDeviceGetCount, nvmlDeviceGetCount_v2)

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct nvml_device **ret)
{
	return ret ? state_handle(index, ret) : NVML_INVALID_ARGUMENT;
}

ALIAS(nvmlDeviceGetHandleByIndex, nvmlDeviceGetHandleByIndex_v2)

/* The first device that `is` what `key` names. A lost one is none of them, but
 * the reason if there is no other. */
static int search(bool (*is)(const struct gpu_now *g, const void *key),
		  const void *key, struct nvml_device **ret)
{
	int error = NVML_NOT_FOUND;
	unsigned n;
	int r = state_count(&n);

	if (r != NVML_SUCCESS)
		return r;
	for (unsigned i = 0; i < n; i++) {
		struct nvml_device *d;
		struct gpu_now g;

		r = state_handle(i, &d);
		if (r == NVML_SUCCESS)
			r = state_gpu(d, &g);
		if (r != NVML_SUCCESS) {
			error = r;
		} else if (is(&g, key)) {
			*ret = d;
			return NVML_SUCCESS;
		}
	}
	return error;
}

static bool has_uuid(const struct gpu_now *g, const void *key)
{
	return !strcmp(g->uuid, key);
}

int nvmlDeviceGetHandleByUUID(const char *uuid, struct nvml_device **ret)
{
	return uuid && ret ? search(has_uuid, uuid, ret)
			   : NVML_INVALID_ARGUMENT;
}

static bool has_serial(const struct gpu_now *g, const void *key)
{
	return !strcmp(g->serial, key);
}

int nvmlDeviceGetHandleBySerial(const char *serial, struct nvml_device **ret)
{
	return serial && ret ? search(has_serial, serial, ret)
			     : NVML_INVALID_ARGUMENT;
}

/* --- the PCI address ----------------------------------------------------- */

struct address {
	unsigned domain, bus, device, function;
};

/* domain:bus:device.function; the domain and the function may be missing. */
static bool parse(const char *s, struct address *ret)
{
	struct address a = { 0 };
	char more;

	if (sscanf(s, "%x:%x:%x.%x%c", &a.domain, &a.bus, &a.device,
		   &a.function, &more) != 4 &&
	    sscanf(s, "%x:%x:%x%c", &a.domain, &a.bus, &a.device, &more) != 3) {
		a = (struct address){ 0 };
		if (sscanf(s, "%x:%x.%x%c", &a.bus, &a.device, &a.function,
			   &more) != 3)
			return false;
	}
	*ret = a;
	return true;
}

static bool has_address(const struct gpu_now *g, const void *key)
{
	struct address a;

	return parse(g->pci_bus_id, &a) && !memcmp(&a, key, sizeof(a));
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *id, struct nvml_device **ret)
{
	struct address a;

	if (!id || !ret || !parse(id, &a))
		return NVML_INVALID_ARGUMENT;
	return search(has_address, &a, ret);
}

ALIAS(nvmlDeviceGetHandleByPciBusId, nvmlDeviceGetHandleByPciBusId_v2)

static int pci_info(const struct nvml_device *d, size_t size,
		    struct nvml_pci *ret)
{
	struct nvml_pci pci = { 0 };
	struct address a = { 0 };
	struct gpu_now g;
	int r = answer_now(d, ret, &g);

	if (r != NVML_SUCCESS)
		return r;
	parse(g.pci_bus_id, &a);
	pci.domain = a.domain;
	pci.bus = a.bus;
	pci.device = a.device;
	snprintf(pci.short_bus_id, sizeof(pci.short_bus_id), "%04X:%02X:%02X.0",
		 a.domain & 0xffff, a.bus & 0xff, a.device & 0xff);
	if (size == sizeof(pci))
		snprintf(pci.bus_id, sizeof(pci.bus_id), "%s", g.pci_bus_id);
	memcpy(ret, &pci, size);
	return NVML_SUCCESS;
}

int nvmlDeviceGetPciInfo(const struct nvml_device *d, struct nvml_pci *ret)
{
	return pci_info(d, NVML_PCI_V1, ret);
}

int nvmlDeviceGetPciInfo_v2(const struct nvml_device *d, struct nvml_pci *ret)
{
	return pci_info(d, NVML_PCI_V2, ret);
}

int nvmlDeviceGetPciInfo_v3(const struct nvml_device *d, struct nvml_pci *ret)
{
	return pci_info(d, sizeof(*ret), ret);
}

/* --- names --------------------------------------------------------------- */

int nvmlDeviceGetIndex(const struct nvml_device *d, unsigned *ret)
{
	struct gpu_now g;
	int r = state_gpu(d, &g);

	return r == NVML_SUCCESS ? answer_number(g.index, ret) : r;
}

ALIAS(nvmlDeviceGetMinorNumber, nvmlDeviceGetIndex)

#define TEXT(function, member)                                                \
	int function(const struct nvml_device *d, char *ret, unsigned n)      \
	{                                                                     \
		struct gpu_now g;                                             \
		int r = state_gpu(d, &g);                                     \
                                                                              \
		return r == NVML_SUCCESS ? answer_text(g.member, ret, n) : r; \
	}

TEXT(nvmlDeviceGetName, name)
TEXT(nvmlDeviceGetUUID, uuid)
TEXT(nvmlDeviceGetSerial, serial)
