/* SPDX-License-Identifier: MIT */
#include "emu/gpu/link.h"

#include "common/units.h"
#include "common/util.h"

uint64_t link_ns(double bytes_per_s, uint64_t bytes)
{
	if (bytes_per_s <= 0)
		return 0;
	return util_whole((double)bytes / bytes_per_s * (double)NS_PER_S + .5);
}

uint64_t link_send(struct link *l, uint64_t at, uint64_t bytes)
{
	uint64_t end = MAX(at, l->busy_ns) + link_ns(l->bytes_per_s, bytes);

	if (l->bytes_per_s <= 0)
		return at;
	l->busy_ns = end;
	return end;
}
