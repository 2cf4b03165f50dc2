/* SPDX-License-Identifier: MIT */
/* The emulated storage device: fetches and metadata operations take the time of
 * the profile (fs/device/fetch.h). */
#include "fs/server/stack.h"

static void device_start(struct layer *l, struct fetch *f)
{
	fetch_start(l->server->fetcher, f);
}

static size_t device_stats(struct layer *l, struct layer_stat ret[LAYER_STATS])
{
	ret[0].name = "backend_reads";
	ret[1].name = "backend_bytes";
	fetcher_counts(l->server->fetcher, &ret[0].value, &ret[1].value);
	return 2;
}

const struct layer_ops layer_device = {
	.plugin = { .name = "device",
		    .summary = "take the time that the storage profile gives" },
	.rank = LAYER_DEVICE,
	.needed = true,
	.start = device_start,
	.metadata = device_start,
	.stats = device_stats,
};
