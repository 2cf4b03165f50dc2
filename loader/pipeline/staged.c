/* SPDX-License-Identifier: MIT */
#include "loader/pipeline/staged.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "common/thread.h"
#include "common/util.h"

/* A batch in the area: n of these, then the samples one after the other. */
struct staged_sample {
	uint32_t sample;
	int32_t error;
	uint64_t bytes;
};

/* Alignment of the samples. arbitrary: a cache line */
enum { ALIGN = 64 };

struct staged {
	struct staged_config c;
	pthread_t claimer, publisher;
	bool claims, publishes; /* the threads run */
	/* of the epoch; the area's lock orders it before its first claim */
	uint64_t epoch, first, n;
	const uint32_t *order;
	atomic_uint n_made; /* batches being made */
	/* the publisher's: the workers' clocks at their last batch */
	struct activity *last;
	/* the consumer's: batches taken and not released, by `next` */
	struct batch *oldest, *newest;
};

/* --- making --------------------------------------------------------------- */

static size_t samples_at(uint64_t n)
{
	return (n * sizeof(struct staged_sample) + ALIGN - 1) / ALIGN * ALIGN;
}

uint64_t staged_bytes(uint64_t n, uint64_t bytes)
{
	return samples_at(n) + bytes;
}

/* Of the epoch. */
static uint64_t n_batches(const struct staged *s)
{
	return (s->n + s->c.batch - 1) / s->c.batch;
}

/* Where batch `index` of the epoch begins in its order. */
static uint64_t start_of(const struct staged *s, uint64_t index)
{
	return (index - s->first) * s->c.batch;
}

static uint64_t samples_of(const struct staged *s, uint64_t index)
{
	return MIN(s->c.batch, s->n - start_of(s, index));
}

/* Bytes of a batch; 0: it is not of this epoch. */
static uint64_t size_of(void *ctx, uint64_t index)
{
	const struct staged *s = ctx;
	uint64_t n, bytes = 0;

	if (index - s->first >= n_batches(s))
		return 0;
	n = samples_of(s, index);
	if (s->c.sample_bytes)
		return staged_bytes(n, n * s->c.sample_bytes);
	for (uint64_t i = 0; i < n; i++)
		bytes += s->c.data->size[s->order[start_of(s, index) + i]];
	return staged_bytes(n, bytes);
}

/* Stop this job with the cause. */
static void fail_staged(struct staged *s, int r)
{
	struct err err = { 0 };

	if (r != -ECANCELED)
		err_set(&err, r, "the staging area: %s",
			r == -EPROTO ? "it is damaged" : strerror(-r));
	flow_stop(s->c.flow, r == -ECANCELED ? 0 : r, &err);
}

static void *claim(void *arg)
{
	struct staged *s = arg;
	uint64_t index;
	int r;

	while ((r = staging_claim(s->c.area, s->c.most, &index)) == 0) {
		if (size_of(s, index) == 0 ||
		    atomic_fetch_add(&s->n_made, 1) >= s->c.most) {
			r = -EPROTO;
			break;
		}
		flow_begin(s->c.flow, s->epoch, s->order + start_of(s, index),
			   samples_of(s, index));
	}
	fail_staged(s, r);
	return NULL;
}

static double read_share(struct staged *s, const struct batch *b)
{
	double share = activity_read_share(&s->last[b->owner], &b->spent,
					   s->c.virtual);

	s->last[b->owner] = b->spent;
	return share;
}

/* Copy into the area. */
static int put_batch(const struct batch *b, char *to, uint64_t room)
{
	struct staged_sample *sample = (struct staged_sample *)to;
	uint64_t at = samples_at(b->n);

	for (uint32_t i = 0; i < b->n; i++) {
		const struct place *p = &b->place[i];

		if (p->n > room - at)
			return -EPROTO;
		sample[i] = (struct staged_sample){ p->sample, p->error, p->n };
		memcpy(to + at, p->data, p->n);
		at += p->n;
	}
	return 0;
}

static int publish_one(struct staged *s, struct batch *b)
{
	double share = read_share(s, b);
	uint64_t index, room;
	uint32_t n = b->n;
	char *to;
	int r;

	assert(!b->single);
	index = s->first + (uint64_t)(b->window->order - s->order) / s->c.batch;
	room = size_of(s, index);
	to = staging_memory(s->c.area, index, room);
	r = to ? put_batch(b, to, room) : -EPROTO;
	flow_release(s->c.flow, b);
	atomic_fetch_sub(&s->n_made, 1);
	return r == 0 ? staging_publish(s->c.area, index, n, share) : r;
}

static void *publish(void *arg)
{
	struct staged *s = arg;
	struct batch *b;
	int r;

	while ((r = flow_next(s->c.flow, TICK_NEVER, &b)) == 0 &&
	       (r = publish_one(s, b)) == 0)
		;
	fail_staged(s, r);
	/* the claimer, and who waits for batches */
	staging_stop(s->c.area);
	return NULL;
}

/* --- using ---------------------------------------------------------------- */

/* When it was made, on the clock of this job. */
static uint64_t own_time(const struct staged *s, uint64_t wall)
{
	uint64_t now = tick_now(s->c.tick), now_wall = tick_wall();
	double ago = now_wall > wall
			     ? (double)(now_wall - wall) / tick_scale(s->c.tick)
			     : 0;

	return ago < (double)now ? now - (uint64_t)ago : 0;
}

/* Another process may write anything there: check a copy. */
static int get_places(const struct staged *s, const struct staged_batch *from,
		      struct batch *b)
{
	const struct staged_sample *sample = from->data;
	uint64_t at = samples_at(b->n);

	if (at > from->bytes)
		return -EPROTO;
	for (uint32_t i = 0; i < b->n; i++) {
		struct staged_sample one;

		memcpy(&one, &sample[i], sizeof(one));
		__asm__ volatile("" ::: "memory");
		if (one.sample >= s->c.data->n || one.error > 0 ||
		    one.error < -MAX_ERRNO || one.bytes > from->bytes - at)
			return -EPROTO;
		b->place[i] = (struct place){
			.data = (const char *)from->data + at,
			.n = one.bytes,
			.sample = one.sample,
			.error = one.error,
		};
		at += one.bytes;
	}
	return 0;
}

static int make_batch(struct staged *s, const struct staged_batch *from,
		      struct batch **ret)
{
	uint32_t n = (uint32_t)samples_of(s, from->index);
	_cleanup_free_ struct batch *b =
		calloc(1, sizeof(*b) + n * sizeof(*b->place));
	int r;

	if (!b)
		return -ENOMEM;
	b->place = (struct place *)(b + 1);
	b->n = n;
	b->complete_ns = own_time(s, from->made_ns);
	b->read_share = from->read_share >= 0 && from->read_share <= 1
				? from->read_share
				: 1;
	r = from->n == n ? get_places(s, from, b) : -EPROTO;
	if (r < 0)
		return r;
	if (s->oldest)
		s->newest->next = b;
	else
		s->oldest = b;
	*ret = s->newest = TAKE_PTR(b);
	return 0;
}

static int next_staged(void *state, uint64_t deadline, struct batch **ret)
{
	struct staged *s = state;
	struct staged_batch from;
	int r = staging_take(s->c.area, deadline, &from);

	if (r == 0)
		r = make_batch(s, &from, ret);
	if (r == 0 || r == -ETIMEDOUT)
		return r;
	fail_staged(s, r);
	return -ECANCELED;
}

static void release(void *state, struct batch *b)
{
	struct staged *s = state;

	staging_use(s->c.area);
	s->oldest = b->next;
	free(b);
}

static uint32_t n_complete(void *state)
{
	const struct staged *s = state;

	return staging_n_ready(s->c.area);
}

static void begin_staged(void *state, uint64_t epoch, const uint32_t *order,
			 uint64_t n)
{
	struct staged *s = state;
	int r;

	s->epoch = epoch;
	s->order = order;
	s->n = n;
	s->first = epoch * s->c.per_epoch;
	r = staging_enter(s->c.area, s->first, s->first + n_batches(s), size_of,
			  s);
	if (r < 0)
		fail_staged(s, r);
}

const struct supply_ops supply_staged = {
	.shared = true,
	.begin = begin_staged,
	.next = next_staged,
	.release = release,
	.n_complete = n_complete,
};

/* --- the whole ------------------------------------------------------------ */

int staged_new(const struct staged_config *c, struct staged **ret,
	       struct err *err)
{
	struct staged *s = calloc(1, sizeof(*s));
	int r = -ENOMEM;

	if (!s)
		return err_set(err, -ENOMEM, "out of memory");
	s->c = *c;
	staging_resume(c->area);
	s->last = calloc(c->workers, sizeof(*s->last));
	if (s->last)
		r = thread_start(&s->claimer, NULL, claim, s);
	s->claims = r == 0;
	if (r == 0)
		r = thread_start(&s->publisher, NULL, publish, s);
	s->publishes = r == 0;
	if (r < 0) {
		staging_stop(c->area);
		staged_free(s);
		return err_set(err, r, "cannot share batches: %s",
			       strerror(-r));
	}
	*ret = s;
	return 0;
}

void staged_free(struct staged *s)
{
	if (!s)
		return;
	if (s->publishes)
		pthread_join(s->publisher, NULL);
	if (s->claims)
		pthread_join(s->claimer, NULL);
	staging_give_back(s->c.area);
	while (s->oldest) {
		struct batch *b = s->oldest;

		s->oldest = b->next;
		free(b);
	}
	free(s->last);
	free(s);
}
