/* SPDX-License-Identifier: MIT */
/*
 * The HTTP server, on libmicrohttpd: connections, their limits, their threads.
 *
 *	client ── MHD thread ── dispatch ── object, bucket ── server_read()
 *	             ^  suspended                                  │
 *	             └────────── resumed by its answer ────────────┘
 */
#ifndef GPEMU_S3_ENDPOINT_H
#define GPEMU_S3_ENDPOINT_H

#include "s3/exchange.h"

/* Connections that are being refused, 8 of each thread. arbitrary: it takes
 * microseconds */
enum { ENDPOINT_SPARE = 64 };

struct endpoint_config {
	struct service *service; /* borrowed */
	int listener;		 /* which endpoint_free closes */
	unsigned connections;	 /* at once, at most; others are refused */
	uint64_t header_ns;	 /* for the next request of a connection */
	/* texts of PEM, which libmicrohttpd parses at the start; NULL: HTTP
	 * without TLS */
	const char *certificate, *key;
};

struct endpoint;

/* Serve, on threads of its own. -EIO, -ENOMEM, -EINVAL (no certificate and its
 * key) with a text. */
int endpoint_new(const struct endpoint_config *config, struct endpoint **ret,
		 struct err *err);
/* Close the connections that have been without a complete request for too long;
 * call it about every second. */
void endpoint_sweep(struct endpoint *e);
/* Accept no more. */
void endpoint_quiesce(struct endpoint *e);
/* All answers of the device must have come (server_stop). NULL is allowed. */
void endpoint_free(struct endpoint *e);

#endif
