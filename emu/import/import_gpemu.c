/* SPDX-License-Identifier: MIT */
/* GPEmu's own tables: every batch size, with copies and memory. */
#include "emu/import/import.h"

static bool knows(const struct import_file *f)
{
	return import_contains(f, "batch_size") &&
	       import_contains(f, "forward_s") &&
	       import_contains(f, "peak_mib");
}

static int read_table(const struct import_file *f)
{
	return table_parse(f->bytes, f->n, f->path, f->table, f->err);
}

const struct import_ops import_gpemu = {
	.plugin = {
		.name = "gpemu",
		.summary = "CSV model,batch_size,forward_s,backward_s,"
			   "transfer_s,peak_mib,persistent_mib",
	},
	.knows = knows,
	.read = read_table,
};
