/* SPDX-License-Identifier: MIT */
/*
 * A monitor of GPUs, for nvml.bats. It loads libnvidia-ml.so.1 by that name, as
 * monitors do.
 *
 *	nvml show	what the functions say of each device: INDEX NAME VALUE,
 *			or "error" and its number
 *	nvml rules	errors, sizes, handles, counted inits; needs a device
 *			with a job
 *	nvml lines	at each line of the input the utilisation of device 0,
 *			or the error
 *	nvml threads N	so many threads that ask, open and close, and a fork in
 *			their midst
 *	nvml mean N MS	mean utilisation of device 0, of N samples, MS apart
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "platform/nvml/nvml.h"

#define MUST(what)                                                           \
	do {                                                                 \
		if (!(what)) {                                               \
			fprintf(stderr, "nvml.c:%d: not so: %s\n", __LINE__, \
				#what);                                      \
			exit(1);                                             \
		}                                                            \
	} while (0)

static void *library;

static void *fn(const char *name)
{
	void *f = dlsym(library, name);

	if (!f) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return f;
}

/* A function of the library, by its declaration. */
#define CALL(name, ...) ((__typeof__(&name))fn(#name))(__VA_ARGS__)

static struct nvml_device *device(unsigned i)
{
	struct nvml_device *d;

	MUST(CALL(nvmlDeviceGetHandleByIndex_v2, i, &d) == NVML_SUCCESS);
	return d;
}

/* --- show ---------------------------------------------------------------- */

static const char *const numbers[] = {
	"nvmlDeviceGetIndex",
	"nvmlDeviceGetMinorNumber",
	"nvmlDeviceGetBrand",
	"nvmlDeviceGetArchitecture",
	"nvmlDeviceGetNumGpuCores",
	"nvmlDeviceGetMemoryBusWidth",
	"nvmlDeviceGetDefaultEccMode",
	"nvmlDeviceGetBusType",
	"nvmlDeviceGetMaxPcieLinkGeneration",
	"nvmlDeviceGetCurrPcieLinkWidth",
	"nvmlDeviceGetPowerManagementMode",
	"nvmlDeviceGetPowerManagementLimit",
	"nvmlDeviceGetEnforcedPowerLimit",
	"nvmlDeviceGetPowerUsage",
	"nvmlDeviceGetPersistenceMode",
	"nvmlDeviceGetComputeMode",
	"nvmlDeviceGetDisplayMode",
	"nvmlDeviceGetDisplayActive",
	"nvmlDeviceGetPerformanceState",
	"nvmlDeviceGetVirtualizationMode",
	"nvmlDeviceIsMigDeviceHandle",
	"nvmlDeviceGetMaxMigDeviceCount",
	/* stubs */
	"nvmlDeviceGetFanSpeed",
	"nvmlDeviceGetNumaNodeId",
	"nvmlDeviceGetAccountingMode",
};

static const char *const texts[] = {
	"nvmlDeviceGetName", "nvmlDeviceGetUUID", "nvmlDeviceGetSerial",
	"nvmlDeviceGetVbiosVersion", /* a stub */
};

static void line(unsigned i, const char *name, int r, unsigned long long v)
{
	printf(r == NVML_SUCCESS ? "%u %s %llu\n" : "%u %s error %llu\n", i,
	       name, r == NVML_SUCCESS ? v : (unsigned long long)r);
}

static void show_load(unsigned i, struct nvml_device *d)
{
	struct nvml_memory_v2 m = { .version = NVML_MEMORY_V2 };
	struct nvml_temperature t = { .version = NVML_TEMPERATURE_V1 };
	struct nvml_process p[8];
	struct nvml_utilization u;
	unsigned v = 0, n = ARRAY_SIZE(p);
	int r;

	MUST(CALL(nvmlDeviceGetMemoryInfo_v2, d, &m) == NVML_SUCCESS);
	printf("%u memory %llu %llu %llu %llu\n", i,
	       (unsigned long long)m.total, (unsigned long long)m.reserved,
	       (unsigned long long)m.used, (unsigned long long)m.free);
	MUST(CALL(nvmlDeviceGetUtilizationRates, d, &u) == NVML_SUCCESS);
	printf("%u utilisation %u\n", i, u.gpu);
	MUST(CALL(nvmlDeviceGetComputeRunningProcesses_v3, d, &n, p) ==
	     NVML_SUCCESS);
	for (unsigned k = 0; k < n; k++)
		printf("%u process %u %llu\n", i, p[k].pid,
		       (unsigned long long)p[k].memory_bytes);
	n = 0;
	r = CALL(nvmlDeviceGetMPSComputeRunningProcesses_v3, d, &n, NULL);
	line(i, "mps", r == NVML_INSUFFICIENT_SIZE ? 0 : r, n);
	for (unsigned type = NVML_GRAPHICS; type <= NVML_VIDEO; type++) {
		r = CALL(nvmlDeviceGetClockInfo, d, type, &v);
		printf("%u clock %u ", i, type);
		printf(r ? "error %u\n" : "%u\n", r ? (unsigned)r : v);
	}
	r = CALL(nvmlDeviceGetTemperature, d, 0, &v);
	line(i, "temperature", r, v);
	r = CALL(nvmlDeviceGetTemperatureV, d, &t);
	line(i, "temperature V", r, (unsigned)t.celsius);
}

/* Two answers, or more than 32 bits. */
static void show_pairs(unsigned i, struct nvml_device *d)
{
	static const char *const pairs[] = {
		"nvmlDeviceGetEccMode",
		"nvmlDeviceGetMigMode",
		"nvmlDeviceGetPowerManagementLimitConstraints",
	};
	unsigned long long wide = 0;
	unsigned a = 0, b = 0;
	int r;

	for (size_t k = 0; k < ARRAY_SIZE(pairs); k++) {
		r = ((int (*)(void *, unsigned *, unsigned *))fn(pairs[k]))(
			d, &a, &b);
		line(i, pairs[k], r, 1000000ull * a + b);
	}
	r = CALL(nvmlDeviceGetTotalEccErrors, d, 1, 0, &wide);
	line(i, "errors", r, wide);
	r = CALL(nvmlDeviceGetSupportedClocksEventReasons, d, &wide);
	line(i, "reasons", r, wide);
}

static void show_device(unsigned i)
{
	struct nvml_device *d = device(i);
	struct nvml_pci pci;
	int major = 0, minor = 0, r;
	char text[96];
	unsigned v = 0;

	for (size_t k = 0; k < ARRAY_SIZE(numbers); k++) {
		r = ((int (*)(void *, unsigned *))fn(numbers[k]))(d, &v);
		line(i, numbers[k], r, v);
	}
	for (size_t k = 0; k < ARRAY_SIZE(texts); k++) {
		r = ((int (*)(void *, char *, unsigned))fn(texts[k]))(
			d, text, sizeof(text));
		if (r == NVML_SUCCESS)
			printf("%u %s %s\n", i, texts[k], text);
		else
			line(i, texts[k], r, 0);
	}
	MUST(CALL(nvmlDeviceGetPciInfo_v3, d, &pci) == NVML_SUCCESS);
	printf("%u pci %s %s %x %x\n", i, pci.bus_id, pci.short_bus_id,
	       pci.domain, pci.bus);
	r = CALL(nvmlDeviceGetCudaComputeCapability, d, &major, &minor);
	line(i, "compute", r, (unsigned)(10 * major + minor));
	show_pairs(i, d);
	show_load(i, d);
}

static void show(void)
{
	char text[80];
	unsigned n;
	int r = CALL(nvmlInit_v2), cuda;

	printf("init %d %s\n", r, CALL(nvmlErrorString, r));
	if (r != NVML_SUCCESS)
		return;
	MUST(!CALL(nvmlSystemGetDriverVersion, text, sizeof(text)));
	printf("driver %s\n", text);
	MUST(!CALL(nvmlSystemGetNVMLVersion, text, sizeof(text)));
	printf("nvml %s\n", text);
	MUST(!CALL(nvmlSystemGetCudaDriverVersion_v2, &cuda));
	printf("cuda %d\n", cuda);
	MUST(!CALL(nvmlDeviceGetCount_v2, &n));
	printf("devices %u\n", n);
	for (unsigned i = 0; i < n; i++)
		show_device(i);
	MUST(!CALL(nvmlShutdown));
}

/* --- rules --------------------------------------------------------------- */

static void rules_of_names(struct nvml_device *d)
{
	struct nvml_device *found = NULL;
	struct {
		struct nvml_pci pci;
		char guard[8];
	} v1 = { 0 };
	struct nvml_pci pci;
	char text[96], shorter[8];

	MUST(CALL(nvmlDeviceGetUUID, d, shorter, sizeof(shorter)) ==
	     NVML_INSUFFICIENT_SIZE);
	MUST(CALL(nvmlDeviceGetUUID, d, NULL, 96) == NVML_INVALID_ARGUMENT);
	MUST(!CALL(nvmlDeviceGetUUID, d, text, sizeof(text)));
	MUST(!CALL(nvmlDeviceGetHandleByUUID, text, &found) && found == d);
	text[4] ^= 1;
	MUST(CALL(nvmlDeviceGetHandleByUUID, text, &found) == NVML_NOT_FOUND);
	MUST(!CALL(nvmlDeviceGetSerial, d, text, sizeof(text)));
	found = NULL;
	MUST(!CALL(nvmlDeviceGetHandleBySerial, text, &found) && found == d);
	MUST(!CALL(nvmlDeviceGetPciInfo_v3, d, &pci));
	found = NULL;
	MUST(!CALL(nvmlDeviceGetHandleByPciBusId_v2, pci.bus_id, &found) &&
	     found == d);
	found = NULL;
	MUST(!CALL(nvmlDeviceGetHandleByPciBusId, pci.short_bus_id, &found) &&
	     found == d);
	MUST(CALL(nvmlDeviceGetHandleByPciBusId_v2, "00:1f.0", &found) ==
	     NVML_NOT_FOUND);
	MUST(CALL(nvmlDeviceGetHandleByPciBusId_v2, "here", &found) ==
	     NVML_INVALID_ARGUMENT);
	/* older layouts end earlier */
	memset(&v1, 0x55, sizeof(v1));
	MUST(!CALL(nvmlDeviceGetPciInfo, d, &v1.pci));
	MUST(v1.pci.bus == pci.bus && v1.pci.subsystem_id == 0x55555555);
	MUST(!CALL(nvmlDeviceGetPciInfo_v2, d, &v1.pci));
	MUST(v1.pci.subsystem_id == 0 && v1.pci.bus_id[16] == 0x55);
}

static void rules_of_processes(struct nvml_device *d)
{
	struct nvml_process_v1 old[4];
	struct nvml_process p[4];
	unsigned n = 0;

	MUST(CALL(nvmlDeviceGetComputeRunningProcesses_v3, d, &n, NULL) ==
		     NVML_INSUFFICIENT_SIZE &&
	     n == 1);
	MUST(!CALL(nvmlDeviceGetComputeRunningProcesses_v2, d, &n, p));
	n = 4;
	MUST(!CALL(nvmlDeviceGetComputeRunningProcesses, d, &n, old));
	MUST(n == 1 && old[0].pid == p[0].pid &&
	     old[0].memory_bytes == p[0].memory_bytes);
	MUST(p[0].gpu_instance == NVML_NO_INSTANCE);
	n = 0;
	MUST(!CALL(nvmlDeviceGetGraphicsRunningProcesses_v3, d, &n, NULL));
	n = 4;
	MUST(!CALL(nvmlDeviceGetGraphicsRunningProcesses, d, &n, old) &&
	     n == 0);
	MUST(CALL(nvmlDeviceGetComputeRunningProcesses_v3, d, NULL, p) ==
	     NVML_INVALID_ARGUMENT);
}

static void rules(void)
{
	struct nvml_memory_v2 m = { .version = 1 };
	struct nvml_device *d, *other = (struct nvml_device *)&m;
	unsigned long cpus[2];
	struct nvml_memory old;
	unsigned n;
	char text[96];

	MUST(CALL(nvmlShutdown) == NVML_UNINITIALIZED);
	MUST(CALL(nvmlDeviceGetCount_v2, &n) == NVML_UNINITIALIZED);
	MUST(CALL(nvmlSystemGetDriverVersion, text, 96) == NVML_UNINITIALIZED);
	MUST(!CALL(nvmlInit_v2) && !CALL(nvmlInit) &&
	     !CALL(nvmlInitWithFlags, 1));
	MUST(!CALL(nvmlShutdown) && !CALL(nvmlShutdown));
	d = device(0);
	MUST(CALL(nvmlDeviceGetHandleByIndex_v2, 99, &other) ==
	     NVML_INVALID_ARGUMENT);
	MUST(CALL(nvmlDeviceGetIndex, other, &n) == NVML_INVALID_ARGUMENT);
	MUST(CALL(nvmlDeviceGetIndex, NULL, &n) == NVML_INVALID_ARGUMENT);
	MUST(CALL(nvmlDeviceGetIndex, d, NULL) == NVML_INVALID_ARGUMENT);
	rules_of_names(d);
	rules_of_processes(d);
	MUST(CALL(nvmlDeviceGetMemoryInfo_v2, d, &m) == NVML_VERSION_MISMATCH);
	m.version = NVML_MEMORY_V2;
	MUST(!CALL(nvmlDeviceGetMemoryInfo_v2, d, &m));
	MUST(m.total == m.reserved + m.used + m.free && m.used > 0);
	MUST(!CALL(nvmlDeviceGetMemoryInfo, d, &old));
	MUST(old.total == m.total && old.used == m.used &&
	     old.total == old.used + old.free);
	MUST(CALL(nvmlDeviceGetClockInfo, d, 9, &n) == NVML_INVALID_ARGUMENT);
	MUST(!CALL(nvmlDeviceGetCpuAffinity, d, 2, cpus) && cpus[0] & 1);
	MUST(!CALL(nvmlSystemGetProcessName, (unsigned)getpid(), text, 96) &&
	     strstr(text, "nvml"));
	MUST(!CALL(nvmlUnitGetCount, &n) && n == 0);
	MUST(!CALL(nvmlShutdown));
	MUST(CALL(nvmlDeviceGetIndex, d, &n) == NVML_UNINITIALIZED);
	MUST(CALL(nvmlShutdown) == NVML_UNINITIALIZED);
	puts("ok");
}

/* --- the rest ------------------------------------------------------------ */

static void lines(void)
{
	struct nvml_utilization u;
	struct nvml_device *d;
	char text[16];

	MUST(!CALL(nvmlInit_v2));
	d = device(0);
	while (fgets(text, sizeof(text), stdin)) {
		int r = CALL(nvmlDeviceGetUtilizationRates, d, &u);

		line(0, "utilisation", r, u.gpu);
		fflush(stdout);
	}
	MUST(!CALL(nvmlShutdown));
}

static void *ask(void *arg)
{
	(void)arg;
	for (int i = 0; i < 100; i++) {
		struct nvml_utilization u;

		MUST(!CALL(nvmlInit_v2));
		MUST(!CALL(nvmlDeviceGetUtilizationRates, device(0), &u));
		MUST(!CALL(nvmlShutdown));
	}
	return NULL;
}

/* A child of a program with threads must not wait for a lock that no thread of
 * its own holds. */
static void fork_once(void)
{
	pid_t child = fork();
	int status;

	MUST(child >= 0);
	if (child == 0) {
		alarm(60); /* a sanitizer on a busy machine takes its time */
		ask(NULL);
		_exit(0);
	}
	MUST(waitpid(child, &status, 0) == child && status == 0);
}

static void threads(size_t n)
{
	pthread_t all[64];

	MUST(n <= ARRAY_SIZE(all));
	for (size_t i = 0; i < n; i++)
		MUST(!pthread_create(&all[i], NULL, ask, NULL));
	for (int i = 0; i < 5; i++)
		fork_once();
	for (size_t i = 0; i < n; i++)
		pthread_join(all[i], NULL);
	puts("ok");
}

static void mean(unsigned n, unsigned ms)
{
	struct nvml_utilization u;
	double sum = 0;

	MUST(!CALL(nvmlInit_v2));
	for (unsigned i = 0; i < n; i++) {
		tick_pause(ms * NS_PER_MS);
		MUST(!CALL(nvmlDeviceGetUtilizationRates, device(0), &u));
		sum += u.gpu;
	}
	printf("%.2f\n", sum / n);
	MUST(!CALL(nvmlShutdown));
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	if (!strcmp(what, "show"))
		show();
	else if (!strcmp(what, "rules"))
		rules();
	else if (!strcmp(what, "lines"))
		lines();
	else if (!strcmp(what, "threads") && argc == 3)
		threads((size_t)atoi(argv[2]));
	else if (!strcmp(what, "mean") && argc == 4)
		mean((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]));
	else
		return 2;
	dlclose(library);
	return 0;
}
