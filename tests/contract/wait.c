/* SPDX-License-Identifier: MIT */
#include "tests/contract/wait.h"

#include <errno.h>
#include <string.h>

#include "common/util.h"

void wait_answer(struct wait *w, int error)
{
	pthread_mutex_lock(&w->lock);
	w->error = error;
	w->is_done = true;
	pthread_cond_signal(&w->done);
	pthread_mutex_unlock(&w->lock);
}

void wait_reply(struct read_request *r, int error, const struct iovec *iov,
		int n_iov)
{
	struct wait *w = container_of(r, struct wait, request);

	for (int i = 0; i < n_iov; i++) {
		memcpy(w->into + w->got, iov[i].iov_base, iov[i].iov_len);
		w->got += iov[i].iov_len;
	}
	wait_answer(w, error);
}

void wait_metadata(struct fetch *f, bool stopping)
{
	wait_answer(container_of(f, struct wait, fetch),
		    stopping ? -ECONNABORTED : f->error);
}

void wait_init(struct wait *w, void *into)
{
	*w = (struct wait){ .lock = PTHREAD_MUTEX_INITIALIZER,
			    .done = PTHREAD_COND_INITIALIZER,
			    .into = into };
}

bool wait_is_done(struct wait *w)
{
	pthread_mutex_lock(&w->lock);
	bool done = w->is_done;

	pthread_mutex_unlock(&w->lock);
	return done;
}

void wait_for(struct wait *w)
{
	pthread_mutex_lock(&w->lock);
	while (!w->is_done)
		pthread_cond_wait(&w->done, &w->lock);
	pthread_mutex_unlock(&w->lock);
}
