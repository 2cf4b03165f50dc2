/* SPDX-License-Identifier: MIT */
/*
 * Signature version 4 of AWS, in the header Authorization or in a presigned
 * URL. Source: Amazon S3 API reference, "Authenticating Requests". Pure.
 */
#ifndef GPEMU_S3_PROTO_SIGV4_H
#define GPEMU_S3_PROTO_SIGV4_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "s3/proto/failure.h"
#include "s3/proto/keys.h"
#include "s3/proto/target.h"

struct sigv4_header {
	const char *name, *value;
};

struct sigv4_request {
	const char *method;
	const struct target *target;
	const struct sigv4_header *headers;
	size_t n_headers;
};

enum { SIGV4_HEX = 64, SIGV4_SCOPE = 256, SIGV4_KEY = 32 };

/* What the signatures of chunks begin with: those of a request that was
 * checked. */
struct sigv4_seed {
	unsigned char key[SIGV4_KEY];
	char date[17], scope[SIGV4_SCOPE];
	char signature[SIGV4_HEX + 1]; /* that of the chunk before */
};

/* Does the request say who sends it at all? */
bool sigv4_is_signed(const struct sigv4_request *r);
/*
 * FAILURE_NONE: a holder of one of the keys has signed it for this region, and
 * at `now`, s since 1970, it is valid. Else what AWS answers; `err` may have a
 * better text. Signatures are compared in constant time. `ret_seed` NULL: the
 * body has no signatures of its own.
 */
enum failure sigv4_check(const struct sigv4_request *r, const struct keys *keys,
			 const char *region, int64_t now,
			 struct sigv4_seed *ret_seed, struct err *err);

/* Is this the signature of the next chunk, or of the headers behind the last,
 * by the hash of its bytes? Then it is the one before the next. */
bool sigv4_check_chunk(struct sigv4_seed *seed, bool trailer,
		       const unsigned char hash[SIGV4_KEY],
		       const char *signature);

/* The value of the first header of this name, or NULL. */
const char *sigv4_header(const struct sigv4_request *r, const char *name);

#endif
