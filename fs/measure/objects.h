/* SPDX-License-Identifier: MIT */
/*
 * What is measured of an object store: objects of a bucket below a prefix,
 * parts of which are read. Requests cost money: each is sent once.
 */
#ifndef GPEMU_FS_MEASURE_OBJECTS_H
#define GPEMU_FS_MEASURE_OBJECTS_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/program/child.h"
#include "fs/measure/points.h"
#include "store/bucket.h"

/* Smaller ones say nothing of a connection's rate. Arbitrary: two windows of a
 * new connection (RFC 6928: 14 KiB, doubled for each round trip). */
enum { OBJECTS_LEAST = 128 << 10 };

struct objects {
	struct bucket *bucket;
	const char *url;	      /* the caller's */
	struct bucket_object *object; /* the largest first */
	size_t n;
	uint64_t page; /* bytes of a page of the listing */
};

/*
 * List what is below `url`, "//BUCKET[/PREFIX]": one page for each 100 of
 * `requests`, at most 10. As bucket_open and bucket_list; -EINTR: `stop` came;
 * -ENODATA: no object has OBJECTS_LEAST bytes; with a text.
 */
int objects_open(const char *url, uint64_t requests, struct stop *stop,
		 struct objects *ret, struct err *err);
/* Safe on a failed objects_open. */
void objects_close(struct objects *o);

/*
 * Fill in the results of a POINT_GET, or of a POINT_READDIR: `want` requests,
 * `depth` of them at once. Those that fail are not sent again; of GETs one may,
 * and one in 20. -EINTR: `stop` came. Else -errno with a text.
 */
int objects_probe(struct objects *o, struct point *p, struct stop *stop,
		  struct err *err);

/* What was sent and received so far. */
void objects_used(const struct objects *o, uint64_t *ret_requests,
		  uint64_t *ret_bytes);

#endif
