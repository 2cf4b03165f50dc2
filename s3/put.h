/* SPDX-License-Identifier: MIT */
/* PutObject, and what all have in common that make an object. */
#ifndef GPEMU_S3_PUT_H
#define GPEMU_S3_PUT_H

#include "s3/exchange.h"
#include "s3/receive.h"

/* Source: Amazon S3 API reference, PutObject: 5 GiB. */
#define PUT_MOST (5ull << 30)
/* arbitrary: a list of 1000 keys, or 10,000 parts, with all escaped */
#define PUT_MOST_TEXT (8u << 20)

/* What a request writes; see each operation. */
struct put {
	struct objects *objects;
	char *headers; /* of the object */
	char etag[STORED_ETAG];
	/* a copy: of a file of the dataset, or of `from` */
	uint32_t from_node;
	struct stored *from;
	int from_fd;
	uint64_t at, end, copied;
	struct staged file;
	unsigned char md5[MD5_DIGEST_SIZE];
	/* an upload in parts */
	const char *upload_id; /* in the target */
	unsigned number;       /* of the part */
	struct upload *upload; /* that is being completed */
	enum checksum_kind checksum_kind;
	char checksum[CHECKSUM_TEXT + 8]; /* "": none */
	struct uploads *uploads;
};

/* x->put, empty. false: no memory. */
bool put_new(struct exchange *x);
void put_free(struct exchange *x);

/* FAILURE_NONE: clients may write the object x->key. Else why not; a better
 * text in *ret_why, or NULL. */
enum failure put_check_key(const struct exchange *x, const char **ret_why);
/* "md5" with quotes. */
void put_etag(const unsigned char md5[MD5_DIGEST_SIZE], char ret[STORED_ETAG]);
/* The conditions of the request, for objects_commit() and objects_remove():
 * -ECANCELED, and x->failure says why. `ctx` is x. */
int put_may(void *ctx, const struct stored *now);
/* The file is the object x->key from now on, with x->put->etag and headers. */
enum failure put_store(struct exchange *x, struct staged *file);
/* An answer without a body, with the ETag and the checksum of what came. */
enum MHD_Result put_answer(struct exchange *x, const char *etag);

enum MHD_Result put_begin(struct exchange *x);

#endif
