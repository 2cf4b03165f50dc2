/* SPDX-License-Identifier: MIT */
#include "loader/engine/store.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/util.h"
#include "store/bucket.h"

static struct bucket_read read_of(const struct engine_fetch *f)
{
	return (struct bucket_read){
		.object = { .key = f->path, .bytes = f->size, .tag = f->tag },
		.n = f->size,
		.buf = f->buf,
	};
}

int64_t store_read(struct engine_fetch *f)
{
	struct bucket_read r = read_of(f);
	int e = f->size ? bucket_wait(f->bucket, &r) : 0;

	f->data = f->buf;
	return e < 0 ? e : (int64_t)f->size;
}

/* --- many in flight ------------------------------------------------------- */

struct slot {
	struct bucket_read read;
	struct store_reads *all;
	struct engine_fetch *fetch;
	int error;
	struct slot *next;
};

struct store_reads {
	struct bucket *bucket;
	struct slot *slot; /* by fetch slot */
	unsigned n_out;	   /* the worker's: taken, not returned */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	/* by lock: ended, the first first */
	struct slot *first, *last;
};

/* Of the bucket's thread, or of the worker's. */
static void end(struct slot *s, int error)
{
	struct store_reads *all = s->all;

	s->error = error;
	s->next = NULL;
	pthread_mutex_lock(&all->lock);
	if (all->first)
		all->last->next = s;
	else
		all->first = s;
	all->last = s;
	pthread_cond_signal(&all->wake);
	pthread_mutex_unlock(&all->lock);
}

static void done(struct bucket_read *r, int error)
{
	end(container_of(r, struct slot, read), error);
}

int store_reads_new(struct bucket *b, unsigned depth, struct store_reads **ret,
		    struct err *err)
{
	struct store_reads *s = calloc(1, sizeof(*s));

	if (s)
		s->slot = calloc(depth, sizeof(*s->slot));
	if (!s || !s->slot) {
		free(s);
		return err_set(err, -ENOMEM, "out of memory");
	}
	s->bucket = b;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->wake, NULL);
	*ret = s;
	return 0;
}

/* Wait for one. */
static struct slot *take_done(struct store_reads *s)
{
	struct slot *one;

	pthread_mutex_lock(&s->lock);
	while (!s->first)
		pthread_cond_wait(&s->wake, &s->lock);
	one = s->first;
	s->first = one->next;
	pthread_mutex_unlock(&s->lock);
	s->n_out--;
	return one;
}

static void start_read(struct store_reads *s, struct engine_fetch *f)
{
	struct slot *one = &s->slot[f->slot];

	*one = (struct slot){ .read = read_of(f), .all = s, .fetch = f };
	one->read.done = done;
	f->data = f->buf;
	s->n_out++;
	if (f->size)
		bucket_start(s->bucket, &one->read);
	else
		end(one, 0);
}

int store_reads_next(struct store_reads *s, struct feed *feed,
		     struct engine_fetch **ret)
{
	struct slot *one;
	struct engine_fetch *f;
	int r;

	while ((r = feed_take(feed, s->n_out == 0, &f)) == 0)
		start_read(s, f);
	if (r != -EAGAIN)
		return r;
	one = take_done(s);
	f = one->fetch;
	feed_done(feed, f, one->error < 0 ? one->error : (int64_t)f->size);
	*ret = f;
	return 0;
}

void store_reads_free(struct store_reads *s)
{
	if (!s)
		return;
	while (s->n_out)
		take_done(s);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	free(s->slot);
	free(s);
}
