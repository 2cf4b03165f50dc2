/* SPDX-License-Identifier: MIT */
/*
 * A NumPy array file as fixed records: each index of axis 0 is a sample. In
 * Fortran order the bytes of a record are not contiguous; such a file is
 * refused, unless it has only one record.
 */
#include "loader/dataset/format.h"

#include <errno.h>
#include <string.h>

#include "common/util.h"
#include "loader/format/npy.h"

static int scan(struct peek *p, const void *options, struct dataset_part *ret,
		struct err *err)
{
	struct npy a;
	uint64_t n, bytes;
	int r = npy_parse(p, 0, p->size, &a, err);

	(void)options;
	if (r < 0)
		return r;
	n = a.n_dimensions ? a.shape[0] : 1;
	bytes = n ? a.bytes / n : 0;
	if (a.fortran && a.n_dimensions > 1 && n > 1)
		return err_set(err, -EINVAL,
			       "an array in Fortran order has no records; save "
			       "numpy.ascontiguousarray() of it");
	if (n > 1 && !bytes)
		return err_set(err, -EINVAL, "records of no bytes");
	for (uint64_t i = 0; r == 0 && i < n; i++)
		r = part_add(ret, NULL, 0, a.offset + i * bytes, bytes,
			     PART_BY_FOLDER);
	return r < 0 ? err_set(err, r, "%s", strerror(-r)) : 0;
}

static bool named(const char *name)
{
	return util_ends_in(name, ".npy");
}

const struct format_ops format_npy = {
	.plugin = { .name = "npy",
		    .summary =
			    "NumPy arrays: each index of axis 0 is a sample" },
	.named = named,
	.looks = npy_looks,
	.scan = scan,
};
