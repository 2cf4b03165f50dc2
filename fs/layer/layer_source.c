/* SPDX-License-Identifier: MIT */
/* Where the bytes are: what no layer above has is in flight from here on, and
 * is read from the source while the device takes its time. */
#include "fs/server/flight.h"
#include "fs/server/stack.h"

static int source_ask(struct layer *l, struct ask *a)
{
	struct server *s = l->server;
	struct object *o;

	if (a->bypass)
		return 0;
	o = flight_find(s, a->what.key);
	if (!o && a->paid)
		return 0;
	if (!o) {
		o = flight_begin(s, a->what.key, a->arrival);
		if (!o)
			return -ENOMEM;
		o->fetch.later = a->later;
		a->fresh = true;
		a->start = &o->fetch;
	}
	a->object = object_get(o);
	return 0;
}

const struct layer_ops layer_source = {
	.plugin = { .name = "source", .summary = "have the bytes" },
	.rank = LAYER_SOURCE,
	.needed = true,
	.ask = source_ask,
};
