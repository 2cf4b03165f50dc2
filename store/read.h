/* SPDX-License-Identifier: MIT */
/* A read of an object in a bucket (store/bucket.h). */
#ifndef GPEMU_STORE_READ_H
#define GPEMU_STORE_READ_H

#include <stddef.h>
#include <stdint.h>

/* An object, as it was listed. */
struct bucket_object {
	const char *key;
	uint64_t bytes;
	uint64_t tag; /* answer_tag; 0: any content */
};

/*
 * A read of `n` > 0 bytes at `offset` of an object; all the caller's until
 * `done`. Errors: -ESTALE (the object is gone, or another one), -EACCES,
 * -EIO and -ETIMEDOUT (the store failed, also when it was tried again),
 * -EPROTO (what it sent is no answer to this), -ECANCELED, -ENOMEM.
 */
struct bucket_read {
	struct bucket_object object;
	uint64_t offset;
	size_t n;
	void *buf;
	void (*done)(struct bucket_read *r,
		     int error);  /* the bucket's thread */
	struct bucket_read *next; /* the bucket's */
	/* Results, of the last try: its status of HTTP, 0: none came; and from
	 * the moment at which the request was sent, without what its
	 * connection took: the first byte, and the last. */
	long status;
	uint64_t first_ns, last_ns;
};

#endif
