/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <unistd.h>

#include "common/util.h"
#include "platform/nvml/answer.h"

/* --- what it is ---------------------------------------------------------- */

/* Numbers of the interface, nvmlBrandType_t; 0: another one. */
int nvmlDeviceGetBrand(const struct nvml_device *d, unsigned *ret)
{
	static const char *const brands[] = {
		[1] = "Quadro",	      [2] = "Tesla",	   [3] = "NVS",
		[4] = "GRID",	      [5] = "GeForce",	   [6] = "Titan",
		[12] = "Quadro RTX",  [13] = "NVIDIA RTX", [14] = "NVIDIA",
		[15] = "GeForce RTX", [16] = "Titan RTX",
	};
	struct gpu_now g;
	unsigned brand = ARRAY_SIZE(brands);
	int r = state_gpu(d, &g);

	if (r != NVML_SUCCESS)
		return r;
	if (!g.brand[0])
		return NVML_NOT_SUPPORTED;
	while (--brand)
		if (brands[brand] && !strcmp(brands[brand], g.brand))
			break;
	return answer_number(brand, ret);
}

/* Numbers of the interface, nvmlDeviceArchitecture_t. Source of the compute
 * capabilities: CUDA C++ Programming Guide. */
int nvmlDeviceGetArchitecture(const struct nvml_device *d, unsigned *ret)
{
	static const struct {
		double from; /* compute capability */
		unsigned architecture;
	} all[] = {
		{ 9.95, 10 }, /* Blackwell */
		{ 8.95, 9 },  /* Hopper */
		{ 8.85, 8 },  /* Ada */
		{ 7.95, 7 },  /* Ampere */
		{ 7.45, 6 },  /* Turing */
		{ 6.95, 5 },  /* Volta */
		{ 5.95, 4 },  /* Pascal */
		{ 4.95, 3 },  /* Maxwell */
		{ 2.95, 2 },  /* Kepler */
	};
	double capability;
	int r = state_fact(d, "compute_capability", &capability);

	if (r != NVML_SUCCESS)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (capability >= all[i].from)
			return answer_number(all[i].architecture, ret);
	return NVML_NOT_SUPPORTED;
}

int nvmlDeviceGetCudaComputeCapability(const struct nvml_device *d,
				       int *ret_major, int *ret_minor)
{
	unsigned tenths = 0;
	int r = answer_fact(d, "compute_capability", 10, &tenths);

	if (r != NVML_SUCCESS)
		return r;
	if (!ret_major || !ret_minor)
		return NVML_INVALID_ARGUMENT;
	*ret_major = (int)tenths / 10;
	*ret_minor = (int)tenths % 10;
	return NVML_SUCCESS;
}

/* --- a number of its profile --------------------------------------------- */

FACT(nvmlDeviceGetNumGpuCores, "cores", 1)
FACT(nvmlDeviceGetMemoryBusWidth, "memory_bus_bits", 1)
FACT(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_generation", 1)
FACT(nvmlDeviceGetGpuMaxPcieLinkGeneration, "pcie_generation", 1)
FACT(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_generation", 1)
FACT(nvmlDeviceGetMaxPcieLinkWidth, "pcie_width", 1)
FACT(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width", 1)

/* --- clocks: always the highest ------------------------------------------ */

int nvmlDeviceGetMaxClockInfo(const struct nvml_device *d, unsigned type,
			      unsigned *ret)
{
	switch (type) {
	case NVML_GRAPHICS:
	case NVML_SM: return answer_fact(d, "clock_mhz", 1, ret);
	case NVML_MEM: return answer_fact(d, "memory_clock_mhz", 1, ret);
	case NVML_VIDEO: return answer_fact(d, "video_clock_mhz", 1, ret);
	default: return NVML_INVALID_ARGUMENT;
	}
}

ALIAS(nvmlDeviceGetClockInfo, nvmlDeviceGetMaxClockInfo)
ALIAS(nvmlDeviceGetApplicationsClock, nvmlDeviceGetMaxClockInfo)
ALIAS(nvmlDeviceGetDefaultApplicationsClock, nvmlDeviceGetMaxClockInfo)
ALIAS(nvmlDeviceGetMaxCustomerBoostClock, nvmlDeviceGetMaxClockInfo)

int nvmlDeviceGetClock(const struct nvml_device *d, unsigned type, unsigned id,
		       unsigned *ret)
{
	return id < NVML_CLOCK_IDS ? nvmlDeviceGetMaxClockInfo(d, type, ret)
				   : NVML_INVALID_ARGUMENT;
}

/* --- the power limit, in mW ---------------------------------------------- */

FACT(nvmlDeviceGetPowerManagementLimit, "power_limit_w", 1000)
FACT(nvmlDeviceGetPowerManagementDefaultLimit, "power_limit_w", 1000)
FACT(nvmlDeviceGetEnforcedPowerLimit, "power_limit_w", 1000)

int nvmlDeviceGetPowerManagementLimitConstraints(const struct nvml_device *d,
						 unsigned *ret_min,
						 unsigned *ret_max)
{
	int r = answer_fact(d, "power_min_w", 1000, ret_min);

	return r == NVML_SUCCESS ? answer_fact(d, "power_max_w", 1000, ret_max)
				 : r;
}

int nvmlDeviceGetPowerManagementMode(const struct nvml_device *d, unsigned *ret)
{
	unsigned limit;
	int r = nvmlDeviceGetPowerManagementLimit(d, &limit);

	return r == NVML_SUCCESS ? answer_number(NVML_ENABLED, ret) : r;
}

/* --- modes that never change --------------------------------------------- */

/* `key`: a fact without which there is no such mode. */
static int mode(const struct nvml_device *d, const char *key, unsigned value,
		unsigned *ret_current, unsigned *ret_pending)
{
	unsigned has;
	int r = answer_fact(d, key, 1, &has);

	if (r == NVML_SUCCESS)
		r = answer_number(value, ret_current);
	return r == NVML_SUCCESS ? answer_number(value, ret_pending) : r;
}

int nvmlDeviceGetEccMode(const struct nvml_device *d, unsigned *ret_current,
			 unsigned *ret_pending)
{
	return mode(d, "ecc", NVML_ENABLED, ret_current, ret_pending);
}

int nvmlDeviceGetDefaultEccMode(const struct nvml_device *d, unsigned *ret)
{
	return mode(d, "ecc", NVML_ENABLED, ret, ret);
}

int nvmlDeviceGetMigMode(const struct nvml_device *d, unsigned *ret_current,
			 unsigned *ret_pending)
{
	return mode(d, "mig", NVML_DISABLED, ret_current, ret_pending);
}

/* Emulated memory has no errors: of either kind, since the start and ever. */
int nvmlDeviceGetTotalEccErrors(const struct nvml_device *d, unsigned kind,
				unsigned counter, unsigned long long *ret)
{
	unsigned has;
	int r = answer_fact(d, "ecc", 1, &has);

	if (r != NVML_SUCCESS)
		return r;
	if (!ret || kind > 1 || counter > 1)
		return NVML_INVALID_ARGUMENT;
	*ret = 0;
	return NVML_SUCCESS;
}

/* --- the same for all emulated GPUs -------------------------------------- */

CONSTANT(nvmlDeviceGetBusType, NVML_BUS_PCIE)
CONSTANT(nvmlDeviceGetMultiGpuBoard, 0)
/* Its link loses nothing. */
CONSTANT(nvmlDeviceGetPcieReplayCounter, 0)
/* The server holds the GPU, with and without clients. */
CONSTANT(nvmlDeviceGetPersistenceMode, NVML_ENABLED)
/* 0: several processes may use it. */
CONSTANT(nvmlDeviceGetComputeMode, 0)
CONSTANT(nvmlDeviceGetDisplayMode, NVML_DISABLED)
CONSTANT(nvmlDeviceGetDisplayActive, NVML_DISABLED)
/* 0: none. */
CONSTANT(nvmlDeviceGetVirtualizationMode, 0)
CONSTANT(nvmlDeviceIsMigDeviceHandle, 0)
CONSTANT(nvmlDeviceGetMaxMigDeviceCount, 0)

/* All processors are equally near. `n`: words of *ret. */
int nvmlDeviceGetCpuAffinity(const struct nvml_device *d, unsigned n,
			     unsigned long *ret)
{
	const size_t bits = 8 * sizeof(*ret);
	long processors = sysconf(_SC_NPROCESSORS_CONF);
	struct gpu_now g;
	int r = state_gpu(d, &g);

	if (r != NVML_SUCCESS)
		return r;
	if (!ret || !n)
		return NVML_INVALID_ARGUMENT;
	memset(ret, 0, n * sizeof(*ret));
	for (size_t i = 0; i < MIN((size_t)MAX(processors, 1), n * bits); i++)
		ret[i / bits] |= 1ul << i % bits;
	return NVML_SUCCESS;
}
