/* SPDX-License-Identifier: MIT */
#include "loader/pipeline/feed.h"

#include <errno.h>
#include <stdlib.h>

#include "common/units.h"
#include "common/util.h"

/* A larger buffer is not kept for the next file. ImageNet's largest file is 15
 * MB, its mean 0.1 MB. arbitrary: 10x the mean */
#define KEEP_BYTES MIB

/* Samples before its turn, where a sample is in its container is asked for: of
 * many samples in random order each look is a miss. arbitrary: a miss takes
 * less time than to read so many */
enum { AHEAD = 16 };

int feed_init(struct feed *f)
{
	uint32_t depth = f->c->depth;

	f->fetch = calloc(depth, sizeof(*f->fetch));
	f->buffer = calloc(depth, sizeof(*f->buffer));
	f->unused = calloc(depth, sizeof(struct fetch *));
	f->run = calloc(depth, sizeof(struct fetch *));
	if (!f->fetch || !f->buffer || !f->unused || !f->run)
		return -ENOMEM;
	for (uint32_t i = 0; i < depth; i++) {
		f->fetch[i].slot = i;
		f->fetch[i].dirfd = f->c->data->dirfd;
		f->unused[f->n_unused++] = &f->fetch[i];
	}
	return 0;
}

void feed_fini(struct feed *f)
{
	for (uint32_t i = 0; f->buffer && i < f->c->depth; i++)
		buffer_free(&f->buffer[i]);
	free(f->fetch);
	free(f->buffer);
	free(f->unused);
	free(f->run);
}

void feed_recycle(struct feed *f, struct fetch *x)
{
	struct buffer *b = &f->buffer[x->slot];

	if (b->size > KEEP_BYTES)
		buffer_free(b);
	f->unused[f->n_unused++] = x;
}

/* The sample at a position of the lease. */
static uint32_t sample_at(const struct feed *f, uint32_t pos)
{
	return f->window->order[f->window->turn[pos]];
}

static void ask(const struct feed *f, uint32_t pos)
{
	const struct dataset *d = f->c->data;
	uint32_t sample;

	if (!d->offset || d->stride || pos >= f->end)
		return;
	sample = sample_at(f, pos);
	__builtin_prefetch(&d->offset[sample]);
	if (d->n_containers > 1)
		__builtin_prefetch(&d->container[sample]);
}

static int lease(struct feed *f, bool wait)
{
	uint32_t want = f->c->engine->whole_batches ? UINT32_MAX : f->c->lease;
	int r = flow_lease(f->c->flow, want, false, &f->window, &f->pos,
			   &f->end);

	if (r == -EAGAIN && wait) {
		worker_clock_turn(&f->clock, IDLE);
		f->late_ns = 0;
		r = flow_lease(f->c->flow, want, true, &f->window, &f->pos,
			       &f->end);
		worker_clock_turn(&f->clock, READING);
	}
	for (uint32_t i = 0; r == 0 && i < AHEAD; i++)
		ask(f, f->pos + i);
	return r;
}

/* -1: a file. Where there is one container a look at its number is a miss for
 * nothing. */
static int container_fd(const struct dataset *d, uint32_t i)
{
	if (!d->container)
		return -1;
	return d->container_fd[d->n_containers > 1 ? d->container[i] : 0];
}

/* The next leased sample, into an unused fetch. */
static int take(struct feed *f, uint64_t now, struct fetch **ret)
{
	const struct dataset *d = f->c->data;
	struct fetch *x = f->unused[f->n_unused - 1];

	x->window = f->window;
	x->pos = f->window->turn[f->pos];
	x->sample = f->window->order[x->pos];
	x->path = d->container ? NULL : dataset_path(d, x->sample);
	x->fd = container_fd(d, x->sample);
	x->offset = d->offset ? dataset_offset(d, x->sample) : 0;
	x->size = dataset_size(d, x->sample);
	ask(f, f->pos + AHEAD);
	if (f->c->sample_bytes) {
		struct buffer *b = &f->buffer[x->slot];

		if (buffer_reserve(b, buffer_room(x->size, f->c->direct)) < 0)
			return -ENOMEM;
		x->buf = b->data;
	} else {
		x->buf = f->window->raw + f->window->raw_at[x->pos];
	}
	x->data = x->buf;
	/* elsewhere its slot is known when it has been read */
	x->out = f->c->prep->light && f->c->engine->whole_batches
			 ? feed_slot(f, x)
			 : NULL;
	x->put = 0;
	x->more = false;
	x->start_ns = now;
	f->pos++;
	f->n_unused--;
	*ret = x;
	return 0;
}

static int have_lease(struct feed *f, bool wait)
{
	return !f->n_unused ? -EAGAIN : f->pos == f->end ? lease(f, wait) : 0;
}

int feed_take(struct feed *f, bool wait, struct fetch **ret)
{
	int r = have_lease(f, wait);

	return r < 0 ? r : take(f, tick_now(f->c->tick), ret);
}

int feed_take_run(struct feed *f, uint64_t bytes, struct fetch **ret,
		  unsigned most)
{
	const struct dataset *d = f->c->data;
	int r = have_lease(f, true);
	unsigned n = 0;
	uint64_t now;

	if (r < 0)
		return r;
	now = tick_now(f->c->tick);
	do {
		r = take(f, now, &ret[n]);
		if (r < 0)
			return r;
		bytes -= MIN(bytes, ret[n]->size);
		n++;
	} while (d->offset && n < most && f->pos < f->end && f->n_unused &&
		 dataset_size(d, sample_at(f, f->pos)) <= bytes);
	return (int)n;
}

const char *feed_path(const struct feed *f, const struct fetch *x)
{
	return dataset_path(f->c->data, x->sample);
}

static void finish(struct fetch *x, int64_t result, uint64_t now)
{
	x->n_read = (uint64_t)MAX(result, 0);
	x->error = x->n_read == x->size ? 0 : -ESTALE;
	x->error = result < 0 ? (int)result : x->error;
	x->done_ns = now;
}

void feed_done(struct feed *f, struct fetch *x, int64_t result)
{
	finish(x, result, tick_now(f->c->tick));
}

size_t feed_out_bytes(const struct feed *f)
{
	return f->c->sample_bytes;
}

void feed_put(struct feed *f, struct fetch *x, const void *raw)
{
	int r = f->c->prep->run(f->prep, raw, x->size, NULL, x->out);

	x->put = r < 0 ? r : 1;
}

void feed_done_run(struct feed *f, struct fetch **x, const int64_t *result,
		   unsigned n, bool put)
{
	uint64_t start = x[0]->start_ns;
	uint64_t each = put ? 0 : (tick_now(f->c->tick) - start) / n;

	f->in_prep = put;
	for (unsigned i = 0; i < n; i++) {
		x[i]->start_ns = start + i * each;
		x[i]->more = i + 1 < n;
		finish(x[i], result[i], start + (i + 1) * each);
	}
}
