/* SPDX-License-Identifier: MIT */
/*
 * One request of a bucket on its way: a handle of libcurl, what was asked for,
 * and what the server has said so far. Nothing that a server sends is kept
 * beyond the sizes here. One thread at a time.
 */
#ifndef GPEMU_STORE_TRANSFER_H
#define GPEMU_STORE_TRANSFER_H

#include <curl/curl.h>
#include <stdio.h>

#include "store/account.h"
#include "store/answer.h"
#include "store/read.h"

/* A page of a listing, or an error: its answer is of any length up to n. */
struct transfer_page {
	struct bucket_read read; /* object.key is NULL */
	const char *query;	 /* encoded, its names in order */
	size_t got;		 /* of read.buf */
	long status;		 /* 0: no answer */
	struct answer_error error;
	char text[CURL_ERROR_SIZE]; /* of libcurl */
	char region[32];	    /* of the bucket; or "" */
};

/* arbitrary: errors have some hundred bytes, headers some kilobytes */
enum { TRANSFER_ERROR = 8192, TRANSFER_HEADERS = 64 * 1024 };

struct transfer {
	CURL *easy;
	struct curl_slist *headers;
	char text[CURL_ERROR_SIZE];
	struct bucket_read *read; /* NULL: none */
	unsigned tries;
	uint64_t due; /* when it is tried again, tick_wall; 0: it runs */
	/* the answer to this try */
	bool checked;
	int error;  /* -errno: the answer is not the one that is wanted */
	size_t got; /* of read->buf */
	uint64_t tag;
	bool has_range;
	uint64_t from, to, total;
	char region[32];
	size_t n_headers;
	char body[TRANSFER_ERROR]; /* of an error */
	size_t n_body;
};

/* The headers of all requests. -ENOMEM. Call transfer_fini even then. */
int transfer_init(struct transfer *t, const struct account *a);
void transfer_fini(struct transfer *t);
/* Get ready to send t->read, whose URL begins with `base`. -ENOMEM. */
int transfer_prepare(struct transfer *t, const struct account *a,
		     const char *base);
/* The outcome: 0 or -errno as of bucket_read, and whether to try again. */
int transfer_outcome(struct transfer *t, CURLcode code, bool *ret_again);

#endif
