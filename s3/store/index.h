/* SPDX-License-Identifier: MIT */
/* The objects that clients have put, in the order of their keys. Locks are the
 * owner's; an object itself never changes. */
#ifndef GPEMU_S3_STORE_INDEX_H
#define GPEMU_S3_STORE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* With its quotes and the number of parts: "0123…-10000". */
enum { STORED_ETAG = 2 + 32 + 6 + 1 };

struct stored {
	uint64_t bytes;
	int64_t mtime_s;
	uint32_t mtime_ns;
	char etag[STORED_ETAG];
	char *headers; /* of its answers: lines "name: value\n" */
	char *path;    /* in the writable folder */
	unsigned refs; /* atomic */
	char key[];
};

/* A copy of the key, with one reference; NULL: no memory. */
struct stored *stored_new(const char *key);
struct stored *stored_get(struct stored *o);
/* NULL is allowed. */
void stored_put(struct stored *o);

/* An ETag of a file whose MD5 nobody knows: it has the form of one of an upload
 * in parts, which no client takes for the MD5 of the bytes. */
void stored_make_etag(const char *key, uint64_t bytes, int64_t mtime_s,
		      uint32_t mtime_ns, char ret[STORED_ETAG]);

struct index {
	struct stored **v; /* a reference of each */
	size_t n, allocated;
};

void index_fini(struct index *x);
/* The first that is `text` or beyond; with `beyond`, that is beyond it and, of
 * its first `n` bytes, beyond all that begin with them. */
size_t index_bound(const struct index *x, const char *text, size_t n,
		   bool beyond);
/* Borrowed; NULL: there is none. */
struct stored *index_find(const struct index *x, const char *key);
/* Room for one more. -ENOMEM. */
int index_reserve(struct index *x);
/* There must be room. Takes the reference; an object of the same key leaves. */
void index_add(struct index *x, struct stored *o);
void index_remove(struct index *x, const char *key);

#endif
