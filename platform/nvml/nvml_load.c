/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "common/util.h"
#include "platform/nvml/answer.h"

/* --- memory -------------------------------------------------------------- */

/* `used` is what jobs were admitted to, in both layouts. */
int nvmlDeviceGetMemoryInfo(const struct nvml_device *d,
			    struct nvml_memory *ret)
{
	struct gpu_now g;
	int r = answer_now(d, ret, &g);

	if (r != NVML_SUCCESS)
		return r;
	*ret = (struct nvml_memory){ .total = g.memory_total,
				     .used = g.memory_used,
				     .free = g.memory_total - g.memory_used };
	return NVML_SUCCESS;
}

/* `reserved` is what no job may fill: the context, the allocator's rest. */
int nvmlDeviceGetMemoryInfo_v2(const struct nvml_device *d,
			       struct nvml_memory_v2 *ret)
{
	struct gpu_now g;
	uint64_t used;
	int r = answer_now(d, ret, &g);

	if (r != NVML_SUCCESS)
		return r;
	if (ret->version != NVML_MEMORY_V2)
		return NVML_VERSION_MISMATCH;
	used = MIN(g.memory_used, g.memory_usable);
	*ret = (struct nvml_memory_v2){
		.version = NVML_MEMORY_V2,
		.total = g.memory_total,
		.reserved = g.memory_total - g.memory_usable,
		.used = used,
		.free = g.memory_usable - used,
	};
	return NVML_SUCCESS;
}

/* --- work ---------------------------------------------------------------- */

/* Nothing is known of accesses to device memory. */
int nvmlDeviceGetUtilizationRates(const struct nvml_device *d,
				  struct nvml_utilization *ret)
{
	struct gpu_now g;
	int r = answer_now(d, ret, &g);

	if (r != NVML_SUCCESS)
		return r;
	ret->gpu = (uint32_t)(100 * MIN(MAX(g.utilisation, 0), 1) + .5);
	ret->memory = 0;
	return NVML_SUCCESS;
}

/* In mW. */
FACT(nvmlDeviceGetPowerUsage, "power_w", 1000)

/* In mJ since the server was started, by its emulated clock. */
int nvmlDeviceGetTotalEnergyConsumption(const struct nvml_device *d,
					unsigned long long *ret)
{
	return answer_wide(d, "energy_j", 1000, ret);
}

int nvmlDeviceGetTemperature(const struct nvml_device *d, unsigned sensor,
			     unsigned *ret)
{
	return sensor == NVML_SENSOR_GPU
		       ? answer_fact(d, "temperature_c", 1, ret)
		       : NVML_INVALID_ARGUMENT;
}

/* The driver 580 has this layout, which later programs ask for. */
int nvmlDeviceGetTemperatureV(const struct nvml_device *d,
			      struct nvml_temperature *ret)
{
	unsigned celsius;
	int r;

	if (!ret)
		return NVML_INVALID_ARGUMENT;
	if (ret->version != NVML_TEMPERATURE_V1)
		return NVML_VERSION_MISMATCH;
	r = nvmlDeviceGetTemperature(d, ret->sensor, &celsius);
	if (r == NVML_SUCCESS)
		ret->celsius = (int32_t)celsius;
	return r;
}

/* 0: the fastest, which it never leaves. */
CONSTANT(nvmlDeviceGetPerformanceState, 0)
ALIAS(nvmlDeviceGetPowerState, nvmlDeviceGetPerformanceState)

int nvmlDeviceGetCurrentClocksThrottleReasons(const struct nvml_device *d,
					      unsigned long long *ret)
{
	struct gpu_now g;
	int r = answer_now(d, ret, &g);

	if (r != NVML_SUCCESS)
		return r;
	*ret = g.running ? 0 : NVML_REASON_IDLE;
	return NVML_SUCCESS;
}

ALIAS(nvmlDeviceGetCurrentClocksEventReasons,
      nvmlDeviceGetCurrentClocksThrottleReasons)

int nvmlDeviceGetSupportedClocksThrottleReasons(const struct nvml_device *d,
						unsigned long long *ret)
{
	return answer_wide(d, "clock_reasons", 1, ret);
}

ALIAS(nvmlDeviceGetSupportedClocksEventReasons,
      nvmlDeviceGetSupportedClocksThrottleReasons)

/* --- processes ----------------------------------------------------------- */

enum kind { COMPUTE, GRAPHICS, MPS };

static int processes(const struct nvml_device *d, enum kind kind,
		     unsigned *count, struct nvml_process *ret)
{
	struct gpu_now g;
	int r;

	if (!count || (*count && !ret))
		return NVML_INVALID_ARGUMENT;
	if (kind != GRAPHICS)
		return state_processes(d, kind == MPS, count, ret);
	r = state_gpu(d, &g);
	return r == NVML_SUCCESS ? answer_number(0, count) : r;
}

static int processes_v1(const struct nvml_device *d, enum kind kind,
			unsigned *count, struct nvml_process_v1 *ret)
{
	_cleanup_free_ struct nvml_process *all = NULL;
	int r;

	if (!count || (*count && !ret))
		return NVML_INVALID_ARGUMENT;
	all = calloc(*count + 1ul, sizeof(*all));
	if (!all)
		return NVML_MEMORY;
	r = processes(d, kind, count, all);
	for (unsigned i = 0; r == NVML_SUCCESS && i < *count; i++)
		ret[i] = (struct nvml_process_v1){ all[i].pid,
						   all[i].memory_bytes };
	return r;
}

/* The layouts of three versions of the interface. */
#define PROCESSES(function, kind)                                       \
	int function(const struct nvml_device *d, unsigned *count,      \
		     struct nvml_process_v1 *ret)                       \
	{                                                               \
		return processes_v1(d, kind, count, ret);               \
	}                                                               \
	int function##_v2(const struct nvml_device *d, unsigned *count, \
			  struct nvml_process *ret)                     \
	{                                                               \
		return processes(d, kind, count, ret);                  \
	}                                                               \
	ALIAS(function##_v3, function##_v2)

PROCESSES(nvmlDeviceGetComputeRunningProcesses, COMPUTE)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses, GRAPHICS)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses, MPS)
