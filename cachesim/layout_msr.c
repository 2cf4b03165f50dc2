/* SPDX-License-Identifier: MIT */
/*
 * Block traces of Microsoft Research Cambridge. Columns: time in units of 100
 * ns (Windows filetime), host, disk, Read or Write, offset and bytes on the
 * disk, response time. Source: README of the traces (SNIA IOTTA, trace set
 * 388); Narayanan et al., Write Off-Loading, FAST 2008.
 *
 * An object is a block of a disk, and a line as many requests as it touches
 * blocks. Requests are reads: the caches simulated here hold what was read.
 */
#include "cachesim/layout.h"

static const struct layout_csv_options defaults = {
	.time = (char *)"1",
	.unit = (char *)"100ns",
	.key = (char *)"2+3",
	.op = (char *)"4",
	.ops = (char *)"Read",
	.offset = (char *)"5",
	.size = (char *)"6",
	.block = 4096, /* arbitrary: a page */
	.delimiter = (char *)"comma",
	.header = (char *)"off",
	.unsized = (char *)"error",
};

const struct layout_ops layout_msr = {
	.plugin = { .name = "msr",
		    .summary = "block traces of MSR Cambridge: blocks read",
		    PLUGIN_OPTIONS(layout_csv_fields, defaults) },
	.read = layout_csv_read,
};
