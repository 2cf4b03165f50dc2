/* SPDX-License-Identifier: MIT */
#include "loader/train/stage.h"

#include <string.h>

#include "common/tick.h"
#include "common/util.h"

/* Size of the staging buffer. arbitrary: stays in the second-level cache, which
 * is why drivers stage piece by piece */
enum { STAGE_BYTES = 64 * 1024 };

uint64_t stage_batch(const struct tick *tick, const struct delivery *d)
{
	uint64_t start = tick_now(tick);
	char piece[STAGE_BYTES];

	for (uint32_t i = 0; i < d->n; i++)
		for (size_t at = 0; at < d->place[i].n; at += STAGE_BYTES) {
			size_t n = MIN(STAGE_BYTES, d->place[i].n - at);

			memcpy(piece, (const char *)d->place[i].data + at, n);
			/* keeps the compiler from dropping the copy */
			__asm__ volatile("" ::"r"(piece) : "memory");
		}
	return tick_now(tick) - start;
}
