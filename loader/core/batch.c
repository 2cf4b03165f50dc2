/* SPDX-License-Identifier: MIT */
#include "loader/core/batch.h"

#include "common/util.h"

double activity_read_share(const struct activity *since,
			   const struct activity *now, bool virtual_cores)
{
	uint64_t read = now->read_ns - MIN(since->read_ns, now->read_ns);
	uint64_t prep = now->prep_ns - MIN(since->prep_ns, now->prep_ns);

	if (virtual_cores)
		read -= MIN(prep, read);
	return prep ? (double)read / (double)(read + prep) : 1;
}

void batch_stamp(struct batch *b, bool owned, uint32_t workers,
		 activity_fn activity, void *ctx, uint64_t now)
{
	uint32_t first = owned ? b->owner : 0;

	b->spent = (struct activity){ 0 };
	for (uint32_t i = first; i < (owned ? first + 1 : workers); i++) {
		struct activity a = activity(ctx, i, now);

		b->spent.read_ns += a.read_ns;
		b->spent.prep_ns += a.prep_ns;
	}
	b->complete_ns = now;
}
