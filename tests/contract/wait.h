/* SPDX-License-Identifier: MIT */
/* An operation on a file server that a test starts, inspects and waits for. */
#ifndef GPEMU_TESTS_WAIT_H
#define GPEMU_TESTS_WAIT_H

#include <pthread.h>
#include <stdbool.h>

#include "fs/server/server.h"

/* The struct itself identifies the client of the operation. */
struct wait {
	struct read_request request;
	struct fetch fetch;
	pthread_mutex_t lock;
	pthread_cond_t done;
	bool is_done;
	int error;
	size_t got;
	unsigned char *into;
};

/* Before an operation, which reads into `into`. */
void wait_init(struct wait *w, void *into);
/* The operation's callbacks. */
void wait_reply(struct read_request *r, int error, const struct iovec *iov,
		int n_iov);
void wait_metadata(struct fetch *f, bool stopping);
/* It is done: 0 or -errno. */
void wait_answer(struct wait *w, int error);
bool wait_is_done(struct wait *w);
void wait_for(struct wait *w);

#endif
