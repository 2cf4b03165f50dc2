/* SPDX-License-Identifier: MIT */
/* Results of NVML's functions, checked. */
#ifndef GPEMU_PLATFORM_NVML_ANSWER_H
#define GPEMU_PLATFORM_NVML_ANSWER_H

#include <string.h>

#include "platform/nvml/state.h"

static inline int answer_text(const char *text, char *ret, unsigned n)
{
	size_t length = strlen(text) + 1;

	if (!ret)
		return NVML_INVALID_ARGUMENT;
	if (length > n)
		return NVML_INSUFFICIENT_SIZE;
	memcpy(ret, text, length);
	return NVML_SUCCESS;
}

static inline int answer_number(unsigned value, unsigned *ret)
{
	if (!ret)
		return NVML_INVALID_ARGUMENT;
	*ret = value;
	return NVML_SUCCESS;
}

/* A fact of the board of `d`, times `scale`. */
static inline int answer_fact(const struct nvml_device *d, const char *key,
			      double scale, unsigned *ret)
{
	double value;
	int r = state_fact(d, key, &value);

	if (r != NVML_SUCCESS)
		return r;
	if (!ret)
		return NVML_INVALID_ARGUMENT;
	if (value * scale >= 0x1p31)
		return NVML_NOT_SUPPORTED;
	*ret = (unsigned)(value * scale + .5);
	return NVML_SUCCESS;
}

/* The same in 64 bits, rounded down: a counter does not run ahead. */
static inline int answer_wide(const struct nvml_device *d, const char *key,
			      double scale, unsigned long long *ret)
{
	double value;
	int r = state_fact(d, key, &value);

	if (r != NVML_SUCCESS)
		return r;
	if (!ret)
		return NVML_INVALID_ARGUMENT;
	if (value * scale >= 1e18)
		return NVML_NOT_SUPPORTED;
	*ret = (unsigned long long)(value * scale);
	return NVML_SUCCESS;
}

#endif
