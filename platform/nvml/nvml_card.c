/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <unistd.h>

#include "common/util.h"
#include "platform/nvml/answer.h"
#include "platform/nvml/state.h"

/* --- what it is ---------------------------------------------------------- */

/* Numbers of the interface, nvmlBrandType_t. */
int nvmlDeviceGetBrand(const struct nvml_device *d, unsigned *ret)
{
	static const struct {
		const char *start; /* of a name */
		unsigned brand;
	} brands[] = {
		{ "Tesla", 2 },	  { "Quadro RTX", 12 }, { "Quadro", 1 },
		{ "GeForce", 5 }, { "NVIDIA RTX", 13 }, { "NVIDIA", 14 },
		{ "", 0 }, /* unknown */
	};
	struct gpu_now g;
	int r = state_gpu(d, &g);
	size_t i = 0;

	if (r != NVML_SUCCESS)
		return r;
	while (strncmp(g.name, brands[i].start, strlen(brands[i].start)))
		i++;
	return answer_number(brands[i].brand, ret);
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
	struct gpu_now g;
	int r = state_gpu(d, &g);

	if (r != NVML_SUCCESS)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (g.compute_capability >= all[i].from)
			return answer_number(all[i].architecture, ret);
	return NVML_NOT_SUPPORTED;
}

int nvmlDeviceGetCudaComputeCapability(const struct nvml_device *d,
				       int *ret_major, int *ret_minor)
{
	struct gpu_now g;
	int tenths, r = state_gpu(d, &g);

	if (r != NVML_SUCCESS)
		return r;
	if (!ret_major || !ret_minor)
		return NVML_INVALID_ARGUMENT;
	if (!(g.compute_capability > 0 && g.compute_capability < 1000))
		return NVML_NOT_SUPPORTED;
	tenths = (int)(g.compute_capability * 10 + .5);
	*ret_major = tenths / 10;
	*ret_minor = tenths % 10;
	return NVML_SUCCESS;
}

/* --- a number of its profile --------------------------------------------- */

#define FACT(member) offsetof(struct gpu_now, member)

/* `fact`: the offset of a double in struct gpu_now. */
static int known(const struct nvml_device *d, size_t fact, double scale,
		 unsigned *ret)
{
	struct gpu_now g;
	double value;
	int r = state_gpu(d, &g);

	if (r != NVML_SUCCESS)
		return r;
	memcpy(&value, (const char *)&g + fact, sizeof(value));
	return answer_known(value * scale, ret);
}

int nvmlDeviceGetMaxPcieLinkGeneration(const struct nvml_device *d,
				       unsigned *ret)
{
	return known(d, FACT(pcie_generation), 1, ret);
}

int nvmlDeviceGetGpuMaxPcieLinkGeneration(const struct nvml_device *d,
					  unsigned *ret)
{
	return known(d, FACT(pcie_generation), 1, ret);
}

int nvmlDeviceGetCurrPcieLinkGeneration(const struct nvml_device *d,
					unsigned *ret)
{
	return known(d, FACT(pcie_generation), 1, ret);
}

int nvmlDeviceGetMaxPcieLinkWidth(const struct nvml_device *d, unsigned *ret)
{
	return known(d, FACT(pcie_width), 1, ret);
}

int nvmlDeviceGetCurrPcieLinkWidth(const struct nvml_device *d, unsigned *ret)
{
	return known(d, FACT(pcie_width), 1, ret);
}

/* --- clocks: always the highest ------------------------------------------ */

int nvmlDeviceGetMaxClockInfo(const struct nvml_device *d, unsigned type,
			      unsigned *ret)
{
	switch (type) {
	case NVML_GRAPHICS:
	case NVML_SM: return known(d, FACT(clock_mhz), 1, ret);
	case NVML_MEM: return known(d, FACT(memory_clock_mhz), 1, ret);
	case NVML_VIDEO: return NVML_NOT_SUPPORTED;
	default: return NVML_INVALID_ARGUMENT;
	}
}

int nvmlDeviceGetClockInfo(const struct nvml_device *d, unsigned type,
			   unsigned *ret)
{
	return nvmlDeviceGetMaxClockInfo(d, type, ret);
}

int nvmlDeviceGetApplicationsClock(const struct nvml_device *d, unsigned type,
				   unsigned *ret)
{
	return nvmlDeviceGetMaxClockInfo(d, type, ret);
}

int nvmlDeviceGetDefaultApplicationsClock(const struct nvml_device *d,
					  unsigned type, unsigned *ret)
{
	return nvmlDeviceGetMaxClockInfo(d, type, ret);
}

int nvmlDeviceGetMaxCustomerBoostClock(const struct nvml_device *d,
				       unsigned type, unsigned *ret)
{
	return nvmlDeviceGetMaxClockInfo(d, type, ret);
}

int nvmlDeviceGetClock(const struct nvml_device *d, unsigned type, unsigned id,
		       unsigned *ret)
{
	return id < NVML_CLOCK_IDS ? nvmlDeviceGetMaxClockInfo(d, type, ret)
				   : NVML_INVALID_ARGUMENT;
}

/* --- the power limit, in mW ---------------------------------------------- */

int nvmlDeviceGetPowerManagementLimit(const struct nvml_device *d,
				      unsigned *ret)
{
	return known(d, FACT(power_limit_w), 1000, ret);
}

int nvmlDeviceGetPowerManagementDefaultLimit(const struct nvml_device *d,
					     unsigned *ret)
{
	return known(d, FACT(power_limit_w), 1000, ret);
}

int nvmlDeviceGetEnforcedPowerLimit(const struct nvml_device *d, unsigned *ret)
{
	return known(d, FACT(power_limit_w), 1000, ret);
}

/* It cannot be set. */
int nvmlDeviceGetPowerManagementLimitConstraints(const struct nvml_device *d,
						 unsigned *ret_min,
						 unsigned *ret_max)
{
	int r = known(d, FACT(power_limit_w), 1000, ret_min);

	return r == NVML_SUCCESS ? answer_number(*ret_min, ret_max) : r;
}

int nvmlDeviceGetPowerManagementMode(const struct nvml_device *d, unsigned *ret)
{
	unsigned limit;
	int r = nvmlDeviceGetPowerManagementLimit(d, &limit);

	return r == NVML_SUCCESS ? answer_number(NVML_ENABLED, ret) : r;
}

/* --- the same for all emulated GPUs -------------------------------------- */

static int constant(const struct nvml_device *d, unsigned value, unsigned *ret)
{
	struct gpu_now g;
	int r = state_gpu(d, &g);

	return r == NVML_SUCCESS ? answer_number(value, ret) : r;
}

int nvmlDeviceGetBusType(const struct nvml_device *d, unsigned *ret)
{
	return constant(d, NVML_BUS_PCIE, ret);
}

/* The server holds the GPU, with and without clients. */
int nvmlDeviceGetPersistenceMode(const struct nvml_device *d, unsigned *ret)
{
	return constant(d, NVML_ENABLED, ret);
}

/* 0: several processes may use it. */
int nvmlDeviceGetComputeMode(const struct nvml_device *d, unsigned *ret)
{
	return constant(d, 0, ret);
}

int nvmlDeviceGetDisplayMode(const struct nvml_device *d, unsigned *ret)
{
	return constant(d, NVML_DISABLED, ret);
}

int nvmlDeviceGetDisplayActive(const struct nvml_device *d, unsigned *ret)
{
	return constant(d, NVML_DISABLED, ret);
}

/* 0: none. */
int nvmlDeviceGetVirtualizationMode(const struct nvml_device *d, unsigned *ret)
{
	return constant(d, 0, ret);
}

int nvmlDeviceIsMigDeviceHandle(const struct nvml_device *d, unsigned *ret)
{
	return constant(d, 0, ret);
}

int nvmlDeviceGetMaxMigDeviceCount(const struct nvml_device *d, unsigned *ret)
{
	return constant(d, 0, ret);
}

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
