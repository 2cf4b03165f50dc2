/* SPDX-License-Identifier: MIT */
/*
 * IBM's object store. Columns, with blanks between them: time in ms, operation
 * (REST.GET.OBJECT, REST.PUT.OBJECT, ...), object, and maybe its bytes, and the
 * first and last byte of a range. Source: SNIA IOTTA, trace set 36305; Eytan et
 * al., It's Time to Revisit LRU vs. FIFO, HotStorage 2020.
 *
 * Requests are gets; one of a range counts as one of the whole object. Those
 * without a size are left out, as Caffeine's simulator does
 * (ObjectStoreTraceReader).
 */
#include "cachesim/layout.h"

static const struct layout_csv_options defaults = {
	.time = (char *)"1",
	.unit = (char *)"ms",
	.op = (char *)"2",
	.ops = (char *)"REST.GET.OBJECT",
	.key = (char *)"3",
	.size = (char *)"4",
	.delimiter = (char *)"space",
	.header = (char *)"off",
	.unsized = (char *)"skip",
};

const struct layout_ops layout_ibm = {
	.plugin = { .name = "ibm",
		    .summary = "IBM's object store: gets of objects",
		    PLUGIN_OPTIONS(layout_csv_fields, defaults) },
	.read = layout_csv_read,
};
