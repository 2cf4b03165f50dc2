/* SPDX-License-Identifier: MIT */
/*
 * The content encoding aws-chunked: a body in chunks that may be signed, with
 * headers behind it. Source: Amazon S3 API reference, "Signature Calculations:
 * Transferring Payload in Multiple Chunks", and its page on trailing headers.
 *
 *	5;chunk-signature=64 digits		without a signature: 5
 *	hello
 *	0;chunk-signature=64 digits
 *	x-amz-checksum-crc32:NhCmhg==
 *	x-amz-trailer-signature:64 digits
 *	(an empty line)
 *
 * It is read as it comes, whatever pieces it comes in. Pure.
 */
#ifndef GPEMU_S3_PROTO_CHUNKED_H
#define GPEMU_S3_PROTO_CHUNKED_H

#include <nettle/sha2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "s3/proto/failure.h"
#include "s3/proto/sigv4.h"

enum { CHUNKED_LINE = 512 };

struct chunked {
	/* what the headers of the request say */
	bool is_signed, has_trailer;
	struct sigv4_seed seed; /* if signed; that of the last chunk */
	/* Gets the bytes, which are checked later. */
	void (*take)(void *ctx, const char *bytes, size_t n);
	void *ctx;
	/* Gets the headers behind the body; NULL: they do not matter. */
	void (*trailer)(void *ctx, const char *name, const char *value);
	/* private */
	enum {
		CHUNKED_SIZE,	 /* the line of a size */
		CHUNKED_BYTES,	 /* `left` bytes of a chunk */
		CHUNKED_NEWLINE, /* behind them */
		CHUNKED_TRAILER, /* a line of a header */
		CHUNKED_LAST,	 /* the empty line */
		CHUNKED_END,
	} state;
	uint64_t left;
	char line[CHUNKED_LINE];
	size_t n_line;
	char signature[SIGV4_HEX + 1]; /* that the chunk claims */
	struct sha256_ctx hash;	       /* of the chunk, of the trailer */
};

void chunked_init(struct chunked *c);
/* FAILURE_NONE, FAILURE_INCOMPLETE (no such encoding), FAILURE_SIGNATURE,
 * FAILURE_MALFORMED_TRAILER; no call may follow an error. */
enum failure chunked_add(struct chunked *c, const char *bytes, size_t n);
/* Has all of it come? */
bool chunked_is_whole(const struct chunked *c);

#endif
