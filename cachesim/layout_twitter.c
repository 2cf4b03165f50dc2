/* SPDX-License-Identifier: MIT */
/*
 * Twitter's cache clusters. Columns: time in s, key, bytes of the key, bytes of
 * the value, client, operation, time to live. Source: README of
 * github.com/twitter/cache-trace.
 *
 * Requests are get and gets; the size is that of key and value. The value of a
 * get that missed there is 0 bytes: its size is unknown, and libCacheSim leaves
 * such requests out, too (twrBin.h, ignore_size_zero_req).
 */
#include "cachesim/layout.h"

static const struct layout_csv_options defaults = {
	.time = (char *)"1",
	.unit = (char *)"s",
	.key = (char *)"2",
	.size = (char *)"3+4",
	.op = (char *)"6",
	.ops = (char *)"get,gets",
	.delimiter = (char *)"comma",
	.header = (char *)"off",
	.unsized = (char *)"zero",
};

const struct layout_ops layout_twitter = {
	.plugin = { .name = "twitter",
		    .summary = "Twitter's cache clusters: gets of keys",
		    PLUGIN_OPTIONS(layout_csv_fields, defaults) },
	.read = layout_csv_read,
};
