/* SPDX-License-Identifier: MIT */
/* GetObject and HeadObject. */
#ifndef GPEMU_S3_OBJECT_H
#define GPEMU_S3_OBJECT_H

#include "s3/exchange.h"

/* What answers say of an object. */
struct object_about {
	char etag[STORED_ETAG];
	int64_t mtime_s;
	uint32_t mtime_ns;
	uint64_t bytes;
	const char *headers; /* lines; "" */
};
/* Of the file `node` of the dataset, or of `o`. */
void object_about(const struct tree *t, const char *key, uint32_t node,
		  const struct stored *o, struct object_about *ret);

/* x->key, by x->operation. */
enum MHD_Result object_begin(struct exchange *x);

#endif
