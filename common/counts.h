/* SPDX-License-Identifier: MIT */
/* Structs of nothing but counts, each a uint64_t. */
#ifndef GPEMU_COMMON_COUNTS_H
#define GPEMU_COMMON_COUNTS_H

#include <stddef.h>
#include <stdint.h>

/* Add those of `from` to those of `into`, structs of so many bytes. */
static inline void counts_add(void *into, const void *from, size_t bytes)
{
	const uint64_t *v = from;
	uint64_t *sum = into;

	for (size_t i = 0; i < bytes / sizeof(*sum); i++)
		sum[i] += v[i];
}

#endif
