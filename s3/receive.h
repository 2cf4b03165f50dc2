/* SPDX-License-Identifier: MIT */
/*
 * The body of a request, as it comes: decoded, counted, hashed, and written to
 * a file or kept as text. What is wrong with it is reported when all of it is
 * there.
 */
#ifndef GPEMU_S3_RECEIVE_H
#define GPEMU_S3_RECEIVE_H

#include "s3/exchange.h"
#include "s3/proto/checksum.h"
#include "s3/proto/chunked.h"

struct receive {
	struct objects *objects;
	uint64_t bytes; /* announced; decoded */
	bool to_file;
	struct staged file;
	char *text; /* with a NUL */
	unsigned char md5[MD5_DIGEST_SIZE];
	enum checksum_kind checksum;	   /* that the client sends */
	char checksum_text[CHECKSUM_TEXT]; /* that of the body */
	/* private */
	uint64_t got;
	bool is_chunked, has_sha256, has_md5;
	struct chunked chunked;
	struct md5_ctx hash_md5;
	struct sha256_ctx hash_sha256; /* with has_sha256 */
	struct checksum sum;
	char want_sha256[SIGV4_HEX + 1], want_checksum[CHECKSUM_TEXT];
	unsigned char want_md5[MD5_DIGEST_SIZE];
	enum failure failure; /* the first */
	int error;	      /* of the file */
};

/* Of at most so many bytes. FAILURE_NONE: x->receive; or why not. */
enum failure receive_new(struct exchange *x, bool to_file, uint64_t most);
void receive_add(struct receive *r, const char *bytes, size_t n);
/* Go on with `step` when all has come, if it is right. */
enum MHD_Result receive_then(struct exchange *x, exchange_step *step);
/* With its file. NULL is allowed. */
void receive_free(struct receive *r);

#endif
