/* SPDX-License-Identifier: MIT */
#include "s3/receive.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/util.h"

/* --- bytes -------------------------------------------------------------- */

static void take_bytes(void *ctx, const char *bytes, size_t n)
{
	struct receive *r = ctx;

	if (n > r->bytes - r->got) {
		r->failure = FAILURE_INCOMPLETE;
		return;
	}
	md5_update(&r->hash_md5, n, (const uint8_t *)bytes);
	checksum_add(&r->sum, bytes, n);
	if (!r->to_file)
		memcpy(r->text + r->got, bytes, n);
	else if (!r->error)
		r->error = util_write_all(r->file.fd, bytes, n);
	r->got += n;
}

void receive_add(struct receive *r, const char *bytes, size_t n)
{
	if (r->failure || r->error)
		return;
	if (r->has_sha256)
		sha256_update(&r->hash_sha256, n, (const uint8_t *)bytes);
	if (!r->is_chunked) {
		take_bytes(r, bytes, n);
	} else {
		enum failure f = chunked_add(&r->chunked, bytes, n);

		r->failure = r->failure ? r->failure : f;
	}
}

static void take_trailer(void *ctx, const char *name, const char *value)
{
	struct receive *r = ctx;

	if (r->checksum && !strcmp(name, checksum_header(r->checksum)))
		snprintf(r->want_checksum, sizeof(r->want_checksum), "%s",
			 value);
}

/* --- what the headers say ----------------------------------------------- */

static enum failure read_payload(struct receive *r, const struct exchange *x)
{
	static const char streaming[] = "STREAMING-";
	const char *what = exchange_header(x, "x-amz-content-sha256");
	struct chunked *c = &r->chunked;

	if (!what || !strcmp(what, "UNSIGNED-PAYLOAD"))
		return FAILURE_NONE;
	if (strncmp(what, streaming, sizeof(streaming) - 1) != 0) {
		if (strlen(what) != SIGV4_HEX)
			return FAILURE_INVALID_ARGUMENT;
		/* presigned: the body is not */
		r->has_sha256 = !target_arg(&x->target, "X-Amz-Signature");
		strcpy(r->want_sha256, what);
		sha256_init(&r->hash_sha256);
		return FAILURE_NONE;
	}
	what += sizeof(streaming) - 1;
	c->is_signed = x->is_signed;
	if (!strcmp(what, "AWS4-HMAC-SHA256-PAYLOAD-TRAILER")) {
		c->has_trailer = true;
	} else if (!strcmp(what, "UNSIGNED-PAYLOAD-TRAILER")) {
		c->has_trailer = true;
		c->is_signed = false;
	} else if (strcmp(what, "AWS4-HMAC-SHA256-PAYLOAD")) {
		return FAILURE_NOT_IMPLEMENTED;
	}
	r->is_chunked = true;
	c->seed = x->seed;
	c->take = take_bytes;
	c->trailer = take_trailer;
	c->ctx = r;
	chunked_init(c);
	return FAILURE_NONE;
}

static enum failure read_bytes(struct receive *r, const struct exchange *x,
			       uint64_t most)
{
	const char *length = exchange_header(
		x, r->is_chunked ? "x-amz-decoded-content-length"
				 : "Content-Length");

	if (!length)
		return FAILURE_MISSING_LENGTH;
	if (!target_decimal(length, UINT64_MAX, &r->bytes))
		return FAILURE_INVALID_ARGUMENT;
	return r->bytes > most ? FAILURE_TOO_LARGE : FAILURE_NONE;
}

static enum failure read_checksums(struct receive *r, const struct exchange *x)
{
	const char *md5 = exchange_header(x, "Content-MD5"), *value;
	const char *trailer = exchange_header(x, "x-amz-trailer");

	r->has_md5 = md5;
	if (md5 && !checksum_read_md5(md5, r->want_md5))
		return FAILURE_INVALID_DIGEST;
	if (x->operation == OPERATION_COMPLETE)
		return FAILURE_NONE; /* its checksum is that of the object */
	for (int i = CHECKSUM_NONE + 1; i < CHECKSUM_N; i++) {
		enum checksum_kind kind = (enum checksum_kind)i;

		value = exchange_header(x, checksum_header(kind));
		if (!value && (!trailer ||
			       strcasecmp(trailer, checksum_header(kind)) != 0))
			continue;
		if (r->checksum || (value && strlen(value) >= CHECKSUM_TEXT))
			return FAILURE_INVALID_REQUEST;
		r->checksum = kind;
		strcpy(r->want_checksum, value ? value : "");
	}
	/* one that is announced must be there */
	if (!r->checksum &&
	    (trailer || exchange_header(x, "x-amz-sdk-checksum-algorithm")))
		return FAILURE_INVALID_REQUEST;
	return FAILURE_NONE;
}

static enum failure prepare(struct receive *r, struct exchange *x,
			    uint64_t most)
{
	enum failure f = read_payload(r, x);

	if (f == FAILURE_NONE)
		f = read_bytes(r, x, most);
	if (f == FAILURE_NONE)
		f = read_checksums(r, x);
	if (f != FAILURE_NONE)
		return f;
	md5_init(&r->hash_md5);
	checksum_init(&r->sum, r->checksum);
	if (r->to_file)
		return failure_of(
			objects_stage(r->objects, r->bytes, &r->file));
	r->text = malloc(r->bytes + 1);
	return r->text ? FAILURE_NONE : FAILURE_UNAVAILABLE;
}

enum failure receive_new(struct exchange *x, bool to_file, uint64_t most)
{
	struct receive *r = calloc(1, sizeof(*r));
	enum failure f;

	if (!r)
		return FAILURE_UNAVAILABLE;
	r->objects = x->service->objects;
	r->to_file = to_file;
	r->file.fd = -1;
	f = prepare(r, x, most);
	if (f == FAILURE_NONE)
		x->receive = r;
	else
		receive_free(r);
	return f;
}

/* --- its end ------------------------------------------------------------ */

static bool sha256_matches(struct receive *r)
{
	unsigned char hash[SHA256_DIGEST_SIZE];
	char hex[SIGV4_HEX + 1];

	sha256_digest(&r->hash_sha256, sizeof(hash), hash);
	sodium_bin2hex(hex, sizeof(hex), hash, sizeof(hash));
	return !strcasecmp(hex, r->want_sha256);
}

static enum failure check_body(struct receive *r)
{
	if (r->error)
		return failure_of(r->error);
	if (r->failure)
		return r->failure;
	if (r->got != r->bytes ||
	    (r->is_chunked && !chunked_is_whole(&r->chunked)))
		return FAILURE_INCOMPLETE;
	if (r->has_sha256 && !sha256_matches(r))
		return FAILURE_BAD_DIGEST;
	md5_digest(&r->hash_md5, sizeof(r->md5), r->md5);
	if (r->has_md5 && memcmp(r->md5, r->want_md5, sizeof(r->md5)) != 0)
		return FAILURE_CONTENT_MD5;
	checksum_end(&r->sum, r->checksum_text);
	if (r->checksum && strcmp(r->checksum_text, r->want_checksum) != 0)
		return FAILURE_CONTENT_MD5;
	if (r->text)
		r->text[r->got] = 0;
	return FAILURE_NONE;
}

static enum MHD_Result end(struct exchange *x)
{
	enum failure f = check_body(x->receive);

	return f ? exchange_fail(x, f, NULL) : x->after_body(x);
}

enum MHD_Result receive_then(struct exchange *x, exchange_step *step)
{
	x->after_body = step;
	x->step = end;
	return x->receiving ? MHD_YES : end(x);
}

void receive_free(struct receive *r)
{
	if (!r)
		return;
	objects_drop(r->objects, &r->file);
	sodium_memzero(&r->chunked.seed, sizeof(r->chunked.seed));
	free(r->text);
	free(r);
}
