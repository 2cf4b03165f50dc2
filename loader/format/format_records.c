/* SPDX-License-Identifier: MIT */
/*
 * Files of records of one size without a header, as the binary files of
 * DeepSpeed and DLIO: record i of a file is at i * bytes. What is left at the
 * end of a file is no sample.
 */
#include "loader/dataset/format.h"

#include <errno.h>
#include <string.h>

#include "common/conf/conf.h"

struct options {
	uint64_t bytes;
};

static const struct conf_field fields[] = {
	{ CONF_KEY(bytes, CONF_SIZE, struct options), .min = 0, .max = 1e15,
	  .arg = "SIZE", .help = "size of a record (required)" },
	{ 0 },
};

static const struct options defaults = { .bytes = 0 };

static int scan(struct peek *p, const void *options, struct dataset_part *ret,
		struct err *err)
{
	const struct options *o = options;
	int r = 0;

	if (!o || !o->bytes)
		return err_set(err, -EINVAL,
			       "format records needs the size of a record: "
			       "records:bytes=SIZE");
	if (p->size < o->bytes)
		return err_set(err, -EINVAL,
			       "smaller than a record of format records");
	for (uint64_t at = 0; r == 0 && p->size - at >= o->bytes;
	     at += o->bytes)
		r = part_add(ret, NULL, 0, at, o->bytes, PART_BY_FOLDER);
	return r < 0 ? err_set(err, r, "%s", strerror(-r)) : 0;
}

static bool named(const char *name)
{
	return name[0] != '.';
}

const struct format_ops format_records = {
	.plugin = { .name = "records",
		    .summary = "records of one size, without a header",
		    .options = fields,
		    .defaults = &defaults,
		    .options_size = sizeof(struct options) },
	.named = named,
	.explicit = true,
	.scan = scan,
};
