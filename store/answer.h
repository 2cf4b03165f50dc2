/* SPDX-License-Identifier: MIT */
/*
 * The XML of an object store: pages of listings, and errors. What a server
 * sends is not trusted: these are safe on any input, and take no more memory
 * than some times its length. Document types are refused, so there are no
 * entities to expand.
 */
#ifndef GPEMU_STORE_ANSWER_H
#define GPEMU_STORE_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* Longer keys are no keys, longer tokens no tokens. Sources: Amazon S3 user
 * guide, "Naming objects"; arbitrary: AWS's have some hundred bytes. */
enum { ANSWER_KEY = 1024, ANSWER_TOKEN = 4096 };

struct answer_object {
	const char *key; /* decoded; ends with its NUL, and contains none */
	uint64_t bytes;
	uint64_t tag;	 /* answer_tag of its ETag; 0: it has none */
	int64_t mtime_s; /* since 1970 */
};

struct answer_page {
	/* Called for each object; not 0: the page ends with this code. */
	int (*found)(void *ctx, const struct answer_object *o);
	void *ctx;
	/* of the next page; "": this is the last */
	char token[ANSWER_TOKEN + 1];
};

/* A page of ListObjectsV2, with encoding-type=url or not. -EBADMSG with a text:
 * it is none. */
int answer_page(const char *bytes, size_t n, struct answer_page *page,
		struct err *err);

struct answer_error {
	char code[64], message[256];
};
/* <Error>; what is none has an empty code. Both are printable ASCII. */
void answer_error(const char *bytes, size_t n, struct answer_error *ret);

/* A number that stands for an ETag, with quotes or not; not 0. */
uint64_t answer_tag(const char *etag, size_t n);
/* "bytes 0-9/100": false if it is no such text. */
bool answer_range(const char *text, uint64_t *ret_from, uint64_t *ret_to,
		  uint64_t *ret_bytes);

#endif
