/* SPDX-License-Identifier: MIT */
/*
 * libnvidia-ml.so.1, NVIDIA's management library, over emulated GPUs. Programs
 * that monitor GPUs load it and see what gpemu-gpud emulates.
 *
 *	nvml_system.c	the library itself, the system
 *	nvml_find.c	devices by what names them
 *	nvml_card.c	what a device is: the profile says it
 *	nvml_load.c	what it does: the server says it
 *	state.c		the servers behind it
 *	stubs.c.in	each other function of NVML: not supported
 *
 * `symbols` lists all functions. A stub is weak: the function of the same name
 * in these files replaces it.
 */
#include "platform/nvml/nvml.h"

#include <stdio.h>

#include "common/util.h"
#include "common/version.h"
#include "emu/gpu/gpud_query.h"
#include "platform/nvml/answer.h"

int nvmlInit_v2(void)
{
	return state_open();
}

ALIAS(nvmlInit, nvmlInit_v2)

/* The flags are about devices that are missing or that nobody attached to;
 * emulated ones need neither. */
int nvmlInitWithFlags(unsigned flags)
{
	(void)flags;
	return state_open();
}

int nvmlShutdown(void)
{
	return state_close();
}

const char *nvmlErrorString(int r)
{
	static const struct {
		int r;
		const char *text;
	} texts[] = {
		{ NVML_SUCCESS, "Success" },
		{ NVML_UNINITIALIZED, "Uninitialized" },
		{ NVML_INVALID_ARGUMENT, "Invalid Argument" },
		{ NVML_NOT_SUPPORTED, "Not Supported" },
		{ NVML_NO_PERMISSION, "Insufficient Permissions" },
		{ NVML_NOT_FOUND, "Not Found" },
		{ NVML_INSUFFICIENT_SIZE, "Insufficient Size" },
		{ NVML_DRIVER_NOT_LOADED,
		  "Driver Not Loaded: no gpemu-gpud listens" },
		{ NVML_TIMEOUT, "Timeout: gpemu-gpud does not answer" },
		{ NVML_GPU_IS_LOST,
		  "GPU is lost: it has failed, or its gpemu-gpud has ended" },
		{ NVML_MEMORY, "Insufficient Memory" },
		{ NVML_VERSION_MISMATCH, "Argument version mismatch" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (texts[i].r == r)
			return texts[i].text;
	return "Unknown Error";
}

static int system_text(const char *text, char *ret, unsigned n)
{
	int r = state_check();

	return r == NVML_SUCCESS ? answer_text(text, ret, n) : r;
}

int nvmlSystemGetDriverVersion(char *ret, unsigned n)
{
	return system_text(GPUD_DRIVER "." GPEMU_RELEASE, ret, n);
}

int nvmlSystemGetNVMLVersion(char *ret, unsigned n)
{
	return system_text("13." GPUD_DRIVER "." GPEMU_RELEASE, ret, n);
}

/* Works before nvmlInit, too. */
int nvmlSystemGetCudaDriverVersion_v2(int *ret)
{
	if (!ret)
		return NVML_INVALID_ARGUMENT;
	*ret = GPUD_CUDA_NUMBER;
	return NVML_SUCCESS;
}

ALIAS(nvmlSystemGetCudaDriverVersion, nvmlSystemGetCudaDriverVersion_v2)

/* As the kernel has it; truncated, as NVML does it. */
int nvmlSystemGetProcessName(unsigned pid, char *ret, unsigned n)
{
	_cleanup_free_ char *words = NULL;
	char path[32];
	size_t length;
	int r = state_check();

	if (r != NVML_SUCCESS)
		return r;
	if (!ret || !n)
		return NVML_INVALID_ARGUMENT;
	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	if (util_read_file(path, 1 << 20, &words, &length) < 0)
		return NVML_NOT_FOUND;
	snprintf(ret, n, "%s", words); /* the first: they end in a zero */
	return NVML_SUCCESS;
}

int nvmlUnitGetCount(unsigned *ret)
{
	int r = state_check();

	return r == NVML_SUCCESS ? answer_number(0, ret) : r;
}

ALIAS(nvmlGetExcludedDeviceCount, nvmlUnitGetCount)
