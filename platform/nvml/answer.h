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

/* What a GPU does now, for an answer into `ret`. */
static inline int answer_now(const struct nvml_device *d, const void *ret,
			     struct gpu_now *g)
{
	int r = state_gpu(d, g);

	return r == NVML_SUCCESS && !ret ? NVML_INVALID_ARGUMENT : r;
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

/* What is the same for all emulated GPUs. */
static inline int answer_constant(const struct nvml_device *d, unsigned value,
				  unsigned *ret)
{
	struct gpu_now g;
	int r = state_gpu(d, &g);

	return r == NVML_SUCCESS ? answer_number(value, ret) : r;
}

/* Functions of one kind. */
#define FACT(function, key, scale)                               \
	int function(const struct nvml_device *d, unsigned *ret) \
	{                                                        \
		return answer_fact(d, key, scale, ret);          \
	}
#define CONSTANT(function, value)                                \
	int function(const struct nvml_device *d, unsigned *ret) \
	{                                                        \
		return answer_constant(d, value, ret);           \
	}
/* A further name of a function of the same file. */
#define ALIAS(name, function) \
	__typeof__(function) name __attribute__((alias(#function)));

#endif
