/* SPDX-License-Identifier: MIT */
/*
 * A bucket of an object store, read over libcurl: many requests at once, on
 * connections that are kept, by one thread. What fails for a while is tried
 * again after a random part of a time that doubles (full jitter: Brooker,
 * "Exponential Backoff And Jitter", AWS Architecture Blog, 2015).
 */
#ifndef GPEMU_STORE_BUCKET_H
#define GPEMU_STORE_BUCKET_H

#include <jansson.h>
#include <stdint.h>

#include "store/answer.h"
#include "store/read.h"

struct bucket;

/* Split "//BUCKET[/PREFIX]", which follows "s3:". *ret_prefix is malloc'ed, and
 * empty or ends in a slash. -EINVAL with a text, -ENOMEM. */
int bucket_split(const char *url, char **ret_name, char **ret_prefix,
		 struct err *err);

/*
 * The part of a bucket that "//BUCKET[/PREFIX]" names, with the account that
 * account_find finds, and at most `connections` requests at once; others wait.
 * Keys are those behind the prefix. Nothing is sent. As bucket_split and
 * account_find; -EAGAIN (no thread); with a text.
 */
int bucket_open(const char *url, unsigned connections, struct bucket **ret,
		struct err *err);
/* What is pending ends with -ECANCELED; NULL is allowed. */
void bucket_free(struct bucket *b);
/* Send each request at most so often, >= 1; before the first one. Without it:
 * as long as a store may be slow, half a minute. */
void bucket_tries(struct bucket *b, unsigned most);
/* Cancel all requests, also later ones, as soon as `fd` is readable; before the
 * first one. It stays the caller's, and is not read. */
void bucket_cancel_on(struct bucket *b, int fd);
/* The same, at once; from any thread. */
void bucket_cancel(struct bucket *b);
/* The URL of the bucket, with the store's address. */
const char *bucket_base(const struct bucket *b);

/* Start it, from any thread, also from `done`. */
void bucket_start(struct bucket *b, struct bucket_read *r);
/* The same, until it is done; done and next are not the caller's. */
int bucket_wait(struct bucket *b, struct bucket_read *r);

/* List all keys, in the order of the store, or those of the first `pages`; 0:
 * all. -errno with a text that says what is wrong: no such bucket, nothing
 * below the prefix, a wrong key, no server; or as `found`, whose 1 ends it
 * well. */
int bucket_list(struct bucket *b, uint64_t pages,
		int (*found)(void *ctx, const struct answer_object *o),
		void *ctx, struct err *err);

/* How long its last page took, ns, as last_ns of a read. */
uint64_t bucket_page_ns(const struct bucket *b);

/* {"requests", "retries", "bytes", "first_byte_us"{}, "errors"{NAME: number}}:
 * what it has sent so far. NULL: no memory. */
json_t *bucket_stats(struct bucket *b);

#endif
