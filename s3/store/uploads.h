/* SPDX-License-Identifier: MIT */
/*
 * Uploads in parts that are neither complete nor aborted. They end with the
 * server. Any thread.
 */
#ifndef GPEMU_S3_STORE_UPLOADS_H
#define GPEMU_S3_STORE_UPLOADS_H

#include <pthread.h>

#include "s3/proto/checksum.h"
#include "s3/store/objects.h"

/* Source: Amazon S3 user guide, "Amazon S3 multipart upload limits". */
enum { UPLOADS_MOST_PARTS = 10000, UPLOADS_LEAST_PART = 5 << 20 };

/* At once. arbitrary: S3 has no limit, but memory has: 10 KiB for each */
enum { UPLOADS_MOST = 10000 };

enum { UPLOAD_ID = 32 + 1, UPLOAD_MD5 = 16 };

struct part {
	unsigned number;
	struct staged file; /* closed */
	uint64_t bytes;
	int64_t time_s; /* since 1970 */
	unsigned char md5[UPLOAD_MD5];
	char checksum[CHECKSUM_TEXT]; /* "": none */
};

struct upload {
	char id[UPLOAD_ID];
	char *key, *headers; /* of the object that it makes */
	int64_t time_s;
	int checksum;	/* the kind that the parts have (s3/proto/checksum.h) */
	struct part *v; /* by number */
	size_t n, allocated;
	struct upload *prev, *next; /* utlist, by key and age */
};

/* One that was completed: a client that has not seen the answer asks again. */
struct upload_done {
	char id[UPLOAD_ID], etag[STORED_ETAG];
	uint64_t key; /* its hash */
};

/* arbitrary: those of the last minutes */
enum { UPLOADS_DONE = 1024 };

struct uploads {
	struct objects *objects;
	pthread_mutex_t lock; /* guards the list, and what is in it */
	struct upload *list;
	size_t n; /* in it */
	uint64_t n_made;
	struct upload_done done[UPLOADS_DONE]; /* a ring */
	size_t n_done;
};

void uploads_init(struct uploads *u, struct objects *o);
void uploads_fini(struct uploads *u);

/* Takes `headers`, in any case. `now`: since 1970. -ENOMEM; -EBUSY: there are
 * too many. */
int uploads_begin(struct uploads *u, const char *key, char *headers,
		  enum checksum_kind checksum, int64_t now_s,
		  char ret_id[UPLOAD_ID]);
/* -ENOENT: there is none of this key. */
int uploads_check(struct uploads *u, const char *id, const char *key);
/* Takes the file, in any case; a part of this number leaves. -ENOENT,
 * -ENOMEM. */
int uploads_add(struct uploads *u, const char *id, const char *key,
		struct part *part);
/* It is no longer there, but the caller's: NULL: it was not. */
struct upload *uploads_take(struct uploads *u, const char *id, const char *key);
/* It is there again. */
void uploads_put_back(struct uploads *u, struct upload *up);
/* It was completed, and is dropped. */
void uploads_complete(struct uploads *u, struct upload *up, const char *etag);
/* Was it, with what ETag? */
bool uploads_was(struct uploads *u, const char *id, const char *key,
		 char ret_etag[STORED_ETAG]);
/* Of one that was taken. NULL is allowed. */
void uploads_drop(struct uploads *u, struct upload *up);

/* Each, while no other call changes one; false: enough. */
void uploads_each(struct uploads *u,
		  bool (*each)(void *ctx, const struct upload *up), void *ctx);

#endif
