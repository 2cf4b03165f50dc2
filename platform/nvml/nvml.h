/* SPDX-License-Identifier: MIT */
/*
 * The binary interface of libnvidia-ml.so.1, as far as it is served: names,
 * numbers and layouts that programs compiled against NVIDIA's header rely on.
 * Every function returns an enum nvml_return. Strings are written with their
 * terminator into `n` bytes; too few are NVML_INSUFFICIENT_SIZE, and a NULL
 * where a result belongs is NVML_INVALID_ARGUMENT.
 *
 * A suffix _v2, _v3 is a later layout of the same question; programs compiled
 * against older headers call the names without it.
 */
#ifndef GPEMU_PLATFORM_NVML_NVML_H
#define GPEMU_PLATFORM_NVML_NVML_H

#include <stdint.h>

enum nvml_return {
	NVML_SUCCESS = 0,
	NVML_UNINITIALIZED = 1,
	NVML_INVALID_ARGUMENT = 2,
	NVML_NOT_SUPPORTED = 3,
	NVML_NO_PERMISSION = 4,
	NVML_NOT_FOUND = 6,
	NVML_INSUFFICIENT_SIZE = 7,
	NVML_DRIVER_NOT_LOADED = 9,
	NVML_TIMEOUT = 10,
	NVML_GPU_IS_LOST = 15,
	NVML_MEMORY = 20,
	NVML_VERSION_MISMATCH = 25, /* of a struct's `version` */
	NVML_UNKNOWN = 999,
};

enum nvml_clock { NVML_GRAPHICS, NVML_SM, NVML_MEM, NVML_VIDEO };
/* nvmlDeviceGetClock(): now, the target, the default, the highest. */
enum { NVML_CLOCK_IDS = 4 };
enum { NVML_SENSOR_GPU = 0 };
enum { NVML_DISABLED = 0, NVML_ENABLED = 1 };
enum { NVML_BUS_PCIE = 2 };
/* Why the clocks are as they are. */
enum { NVML_REASON_IDLE = 1 };
/* An instance of a GPU that is not divided. */
#define NVML_NO_INSTANCE UINT32_MAX

struct nvml_device;

struct nvml_pci {
	char short_bus_id[16]; /* a domain of four digits */
	uint32_t domain, bus, device;
	uint32_t device_id, subsystem_id; /* 0: not known */
	char bus_id[32];		  /* a domain of eight digits */
};
_Static_assert(sizeof(struct nvml_pci) == 68, "the interface");
/* Bytes of it in older layouts, the first of which ends before subsystem_id;
 * in the second four reserved words stand for the long bus id. */
enum { NVML_PCI_V1 = 32, NVML_PCI_V2 = 52 };

struct nvml_memory {
	uint64_t total, free, used;
};

struct nvml_memory_v2 {
	uint32_t version; /* given by the caller: NVML_MEMORY_V2 */
	uint64_t total, reserved, free, used;
};
_Static_assert(sizeof(struct nvml_memory_v2) == 40, "the interface");
enum { NVML_MEMORY_V2 = 2 << 24 | 40 };

struct nvml_temperature {
	uint32_t version; /* given by the caller: NVML_TEMPERATURE_V1 */
	uint32_t sensor;  /* likewise */
	int32_t celsius;
};
_Static_assert(sizeof(struct nvml_temperature) == 12, "the interface");
enum { NVML_TEMPERATURE_V1 = 1 << 24 | 12 };

struct nvml_utilization {
	uint32_t gpu, memory; /* percent */
};

struct nvml_process_v1 {
	uint32_t pid;
	uint64_t memory_bytes;
};
_Static_assert(sizeof(struct nvml_process_v1) == 16, "the interface");

struct nvml_process { /* v2 and v3 */
	uint32_t pid;
	uint64_t memory_bytes;
	uint32_t gpu_instance, compute_instance;
};
_Static_assert(sizeof(struct nvml_process) == 24, "the interface");

/* Functions of one shape: of a device, `d`, if it has one. */
typedef int nvml_number_fn(const struct nvml_device *d, unsigned *ret);
typedef int nvml_wide_fn(const struct nvml_device *d, unsigned long long *ret);
typedef int nvml_text_fn(const struct nvml_device *d, char *ret, unsigned n);
typedef int nvml_typed_fn(const struct nvml_device *d, unsigned type,
			  unsigned *ret);
typedef int nvml_pci_fn(const struct nvml_device *d, struct nvml_pci *ret);
typedef int nvml_processes_fn(const struct nvml_device *d, unsigned *count,
			      struct nvml_process *ret);
typedef int nvml_processes_v1_fn(const struct nvml_device *d, unsigned *count,
				 struct nvml_process_v1 *ret);
typedef int nvml_count_fn(unsigned *ret);
typedef int nvml_system_text_fn(char *ret, unsigned n);

/* --- nvml_system.c: the library, the system ------------------------------ */

int nvmlInit(void);
int nvmlInit_v2(void);
int nvmlInitWithFlags(unsigned flags);
int nvmlShutdown(void);
const char *nvmlErrorString(int r);
int nvmlSystemGetCudaDriverVersion(int *ret);
int nvmlSystemGetCudaDriverVersion_v2(int *ret);
int nvmlSystemGetProcessName(unsigned pid, char *ret, unsigned n);
nvml_system_text_fn nvmlSystemGetDriverVersion, nvmlSystemGetNVMLVersion;
nvml_count_fn nvmlUnitGetCount, nvmlGetExcludedDeviceCount;

/* --- nvml_find.c: devices by what names them ----------------------------- */

int nvmlDeviceGetHandleByIndex(unsigned index, struct nvml_device **ret);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct nvml_device **ret);
int nvmlDeviceGetHandleByUUID(const char *uuid, struct nvml_device **ret);
int nvmlDeviceGetHandleBySerial(const char *serial, struct nvml_device **ret);
int nvmlDeviceGetHandleByPciBusId(const char *id, struct nvml_device **ret);
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, struct nvml_device **ret);
nvml_count_fn nvmlDeviceGetCount, nvmlDeviceGetCount_v2;
nvml_number_fn nvmlDeviceGetIndex, nvmlDeviceGetMinorNumber;
nvml_text_fn nvmlDeviceGetName, nvmlDeviceGetUUID, nvmlDeviceGetSerial;
nvml_pci_fn nvmlDeviceGetPciInfo, nvmlDeviceGetPciInfo_v2,
	nvmlDeviceGetPciInfo_v3;

/* --- nvml_card.c: the card ----------------------------------------------- */

int nvmlDeviceGetCudaComputeCapability(const struct nvml_device *d,
				       int *ret_major, int *ret_minor);
int nvmlDeviceGetEccMode(const struct nvml_device *d, unsigned *ret_current,
			 unsigned *ret_pending);
int nvmlDeviceGetMigMode(const struct nvml_device *d, unsigned *ret_current,
			 unsigned *ret_pending);
int nvmlDeviceGetTotalEccErrors(const struct nvml_device *d, unsigned kind,
				unsigned counter, unsigned long long *ret);
int nvmlDeviceGetClock(const struct nvml_device *d, unsigned type, unsigned id,
		       unsigned *ret);
int nvmlDeviceGetPowerManagementLimitConstraints(const struct nvml_device *d,
						 unsigned *ret_min,
						 unsigned *ret_max);
int nvmlDeviceGetCpuAffinity(const struct nvml_device *d, unsigned n,
			     unsigned long *ret);
nvml_number_fn nvmlDeviceGetBrand, nvmlDeviceGetArchitecture,
	nvmlDeviceGetNumGpuCores, nvmlDeviceGetMemoryBusWidth,
	nvmlDeviceGetDefaultEccMode, nvmlDeviceGetMultiGpuBoard,
	nvmlDeviceGetPcieReplayCounter, nvmlDeviceGetBusType,
	nvmlDeviceGetMaxPcieLinkGeneration,
	nvmlDeviceGetGpuMaxPcieLinkGeneration,
	nvmlDeviceGetCurrPcieLinkGeneration, nvmlDeviceGetMaxPcieLinkWidth,
	nvmlDeviceGetCurrPcieLinkWidth, nvmlDeviceGetPowerManagementMode,
	nvmlDeviceGetPowerManagementLimit,
	nvmlDeviceGetPowerManagementDefaultLimit,
	nvmlDeviceGetEnforcedPowerLimit, nvmlDeviceGetPersistenceMode,
	nvmlDeviceGetComputeMode, nvmlDeviceGetDisplayMode,
	nvmlDeviceGetDisplayActive, nvmlDeviceGetVirtualizationMode,
	nvmlDeviceIsMigDeviceHandle, nvmlDeviceGetMaxMigDeviceCount;
nvml_typed_fn nvmlDeviceGetClockInfo, nvmlDeviceGetMaxClockInfo,
	nvmlDeviceGetApplicationsClock, nvmlDeviceGetDefaultApplicationsClock,
	nvmlDeviceGetMaxCustomerBoostClock;

/* --- nvml_load.c: what it does now --------------------------------------- */

int nvmlDeviceGetMemoryInfo(const struct nvml_device *d,
			    struct nvml_memory *ret);
int nvmlDeviceGetMemoryInfo_v2(const struct nvml_device *d,
			       struct nvml_memory_v2 *ret);
int nvmlDeviceGetUtilizationRates(const struct nvml_device *d,
				  struct nvml_utilization *ret);
int nvmlDeviceGetTemperature(const struct nvml_device *d, unsigned sensor,
			     unsigned *ret);
int nvmlDeviceGetTemperatureV(const struct nvml_device *d,
			      struct nvml_temperature *ret);
nvml_number_fn nvmlDeviceGetPowerUsage, nvmlDeviceGetPerformanceState,
	nvmlDeviceGetPowerState;
nvml_wide_fn nvmlDeviceGetTotalEnergyConsumption,
	nvmlDeviceGetCurrentClocksThrottleReasons,
	nvmlDeviceGetCurrentClocksEventReasons,
	nvmlDeviceGetSupportedClocksThrottleReasons,
	nvmlDeviceGetSupportedClocksEventReasons;
nvml_processes_v1_fn nvmlDeviceGetComputeRunningProcesses,
	nvmlDeviceGetGraphicsRunningProcesses,
	nvmlDeviceGetMPSComputeRunningProcesses;
nvml_processes_fn nvmlDeviceGetComputeRunningProcesses_v2,
	nvmlDeviceGetComputeRunningProcesses_v3,
	nvmlDeviceGetGraphicsRunningProcesses_v2,
	nvmlDeviceGetGraphicsRunningProcesses_v3,
	nvmlDeviceGetMPSComputeRunningProcesses_v2,
	nvmlDeviceGetMPSComputeRunningProcesses_v3;

#endif
