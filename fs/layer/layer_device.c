/* SPDX-License-Identifier: MIT */
/* The emulated storage device: fetches and metadata operations take the time of
 * the profile (fs/device/fetch.h). */
#include "common/json.h"
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

static void device_json(struct layer *l, json_t *stats, json_t *part)
{
	struct fetch_bill bill;
	json_t *requests = json_object();

	fetcher_bill(l->server->fetcher, &bill);
	for (int op = 0; op < STORAGE_N_OPS; op++)
		json_add_integer(requests, storage_op_name(op),
				 bill.requests[op]);
	json_object_set(part, "requests", requests);
	json_object_set_new(stats, "requests", requests);
	if (!bill.priced)
		return;
	json_add_real(part, "cost_usd", bill.usd);
	json_add_real(stats, "cost_usd", bill.usd);
}

const struct layer_ops layer_device = {
	.plugin = { .name = "device",
		    .summary = "take the time that the storage profile gives" },
	.rank = LAYER_DEVICE,
	.needed = true,
	.start = device_start,
	.metadata = device_start,
	.stats = device_stats,
	.json = device_json,
};
