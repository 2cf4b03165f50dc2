/* SPDX-License-Identifier: MIT */
#include "fs/source/importance.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/system/importance.h"

int importance_init(struct importance *i, uint32_t n)
{
	float *v = i->v ? i->v : calloc((size_t)n + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	*i = (struct importance){ v, n };
	return 0;
}

void importance_fini(struct importance *i)
{
	free(i->v);
	*i = (struct importance){ 0 };
}

double importance_of(const void *importance, uint64_t key)
{
	const struct importance *i = importance;
	uint64_t node = key >> 32;

	return node < i->n ? (double)i->v[node] : 0;
}

int importance_check(const struct tree *t, const void *bytes, size_t n,
		     struct err *err)
{
	const unsigned char *at = bytes;

	if (n % IMPORTANCE_RECORD)
		return err_set(err, -EINVAL,
			       "a write of %zu bytes: records have %d", n,
			       IMPORTANCE_RECORD);
	for (size_t i = 0; i < n / IMPORTANCE_RECORD; i++) {
		uint32_t inode;
		float v;

		importance_get(at + i * IMPORTANCE_RECORD, &inode, &v);
		if (!inode || inode > t->n_nodes ||
		    !S_ISREG(t->nodes[inode - 1].mode))
			return err_set(err, -EINVAL,
				       "record %zu: no file has the inode "
				       "number %" PRIu32,
				       i, inode);
		if (!isfinite(v) || v < 0)
			return err_set(err, -EINVAL,
				       "record %zu: %g is no importance: it "
				       "must be finite, and 0 or more",
				       i, (double)v);
	}
	return 0;
}
