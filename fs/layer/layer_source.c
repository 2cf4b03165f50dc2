/* SPDX-License-Identifier: MIT */
/* The source of the bytes: an object that no layer above has is put in flight
 * here, and is read from the source while the device takes its time. */
#include "fs/server/flight.h"
#include "fs/server/stack.h"

static int source_ask(struct layer *l, struct ask *a)
{
	if (a->bypass)
		return 0;
	a->object = flight_join(l->server, a);
	return a->object || a->paid ? 0 : -ENOMEM;
}

const struct layer_ops layer_source = {
	.plugin = { .name = "source", .summary = "provide the bytes" },
	.rank = LAYER_SOURCE,
	.needed = true,
	.ask = source_ask,
};
