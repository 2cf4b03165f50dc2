/* SPDX-License-Identifier: MIT */
/* Results of NVML's functions, checked. */
#ifndef GPEMU_PLATFORM_NVML_ANSWER_H
#define GPEMU_PLATFORM_NVML_ANSWER_H

#include <string.h>

#include "platform/nvml/nvml.h"

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

/* A number that a profile may lack; 0: it does. */
static inline int answer_known(double value, unsigned *ret)
{
	if (!ret)
		return NVML_INVALID_ARGUMENT;
	if (!(value > 0 && value < 0x1p31))
		return NVML_NOT_SUPPORTED;
	*ret = (unsigned)(value + .5);
	return NVML_SUCCESS;
}

#endif
