/* SPDX-License-Identifier: MIT */
/*
 * GETs: `depth` of them in flight, each replaced when it completes, by the
 * bucket's thread. The rate is that while all are in flight: it begins with the
 * completion of the `depth`th, and ends with the one after which none was left
 * to send.
 *
 * A first byte is what libcurl has of it: from the moment at which the request
 * was sent. So new connections count for nothing.
 */
#include "fs/measure/objects.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/rng.h"
#include "common/thread.h"
#include "common/tick.h"
#include "common/util.h"

enum { MOST_PAGES = 10, MOST_DEPTH = 64 };

/* --- objects ------------------------------------------------------------ */

static int found(void *ctx, const struct answer_object *a)
{
	struct objects *o = ctx;
	struct bucket_object *more;

	if (!a->bytes)
		return 0;
	/* doubled at each power of two */
	if (!(o->n & (o->n - 1))) {
		more = reallocarray(o->object, o->n ? 2 * o->n : 1,
				    sizeof(*more));
		if (!more)
			return -ENOMEM;
		o->object = more;
	}
	o->object[o->n] = (struct bucket_object){ .key = strdup(a->key),
						  .bytes = a->bytes,
						  .tag = a->tag };
	return o->object[o->n].key ? (o->n++, 0) : -ENOMEM;
}

static int larger(const void *a, const void *b)
{
	return util_compare_u64(&((const struct bucket_object *)b)->bytes,
				&((const struct bucket_object *)a)->bytes);
}

static int choose(struct objects *o, struct err *err)
{
	if (!o->n)
		return err_set(err, -ENOENT, "s3:%s: no objects", o->url);
	qsort(o->object, o->n, sizeof(*o->object), larger);
	if (o->object[0].bytes < OBJECTS_LEAST)
		return err_set(err, -ENODATA,
			       "s3:%s: the largest of the objects found (%zu) "
			       "has less than 128 KiB: too small to measure a "
			       "rate",
			       o->url, o->n);
	return 0;
}

int objects_open(const char *url, uint64_t requests, struct stop *stop,
		 struct objects *ret, struct err *err)
{
	uint64_t pages =
		MIN(MAX(requests / 100, (uint64_t)1), (uint64_t)MOST_PAGES);
	uint64_t sent, bytes;
	int r;

	*ret = (struct objects){ .url = url };
	r = bucket_open(url, MOST_DEPTH, &ret->bucket, err);
	if (r < 0)
		return r;
	bucket_tries(ret->bucket, 1);
	bucket_cancel_on(ret->bucket, stop->fd);
	r = bucket_list(ret->bucket, pages, found, ret, err);
	if (r == 0)
		r = choose(ret, err);
	if (r < 0)
		return stop_came(stop) ? -EINTR : r;
	objects_used(ret, &sent, &bytes);
	ret->page = sent ? bytes / sent : 0;
	return 0;
}

void objects_close(struct objects *o)
{
	bucket_free(o->bucket);
	for (size_t i = 0; i < o->n; i++)
		free((char *)o->object[i].key);
	free(o->object);
	*o = (struct objects){ 0 };
}

void objects_used(const struct objects *o, uint64_t *ret_requests,
		  uint64_t *ret_bytes)
{
	json_auto_t *j = bucket_stats(o->bucket);

	*ret_requests =
		(uint64_t)json_integer_value(json_object_get(j, "requests"));
	*ret_bytes = (uint64_t)json_integer_value(json_object_get(j, "bytes"));
}

/* --- GETs --------------------------------------------------------------- */

struct gets {
	struct objects *objects;
	struct point *point;
	size_t n_objects; /* that are large enough */
	struct slot *slots;
	struct rng rng;
	int finished;	      /* an eventfd: none is in flight */
	pthread_mutex_t lock; /* guards all below */
	bool stopping;
	uint64_t sent, done, failed, in_flight;
	uint64_t full_ns, last_ns; /* all were in flight from, until */
	struct hist *first, *rest;
	int error;
	char why[256];
};

struct slot {
	struct gets *gets;
	struct bucket_read read;
};

static void explain(struct gets *g, const struct bucket_read *r, int error)
{
	const char *why = r->status == 403   ? "access denied: "
			  : r->status == 404 ? "it is gone: "
			  : r->status == 503 ? "the store asks to slow down: "
					     : "";

	g->error = error;
	if (r->status >= 300)
		snprintf(g->why, sizeof(g->why), "%.150s: %sHTTP status %ld",
			 r->object.key, why, r->status);
	else
		snprintf(g->why, sizeof(g->why), "%.150s: %s", r->object.key,
			 error == -ESTALE ? "it has changed"
					  : strerror(-error));
}

/* It goes on with some that the store could not answer. */
static void count_failure(struct gets *g, const struct bucket_read *r,
			  int error)
{
	bool passing = error == -EIO || error == -ETIMEDOUT;

	g->failed++;
	if (!g->error &&
	    (!passing || g->failed > MAX(g->point->want / 20, (uint64_t)1)))
		explain(g, r, error);
}

/* The next one, under the lock. */
static void choose_next(struct slot *s)
{
	struct gets *g = s->gets;
	const struct bucket_object *o =
		&g->objects->object[rng_below(&g->rng, g->n_objects)];
	uint64_t bytes = g->point->bytes;

	s->read.object = *o;
	s->read.offset = rng_below(&g->rng, o->bytes - bytes + 1);
	s->read.n = bytes;
	g->sent++;
}

static void got(struct bucket_read *r, int error)
{
	struct slot *s = container_of(r, struct slot, read);
	struct gets *g = s->gets;
	uint64_t now = tick_wall();

	LOCK_SCOPE(&g->lock);
	if (error < 0) {
		count_failure(g, r, error);
	} else {
		hist_add_alone(g->first, r->first_ns, 1);
		hist_add_alone(g->rest, r->last_ns - r->first_ns, 1);
	}
	g->done++;
	if (g->done == g->point->depth)
		g->full_ns = now;
	if (g->done + g->point->depth == g->point->want)
		g->last_ns = now;
	if (!g->error && g->sent < g->point->want && !g->stopping) {
		choose_next(s);
		bucket_start(g->objects->bucket, &s->read);
	} else if (--g->in_flight == 0) {
		eventfd_write(g->finished, 1);
	}
}

static void start_all(struct gets *g, uint64_t depth)
{
	g->in_flight = depth; /* none is yet */
	for (uint64_t i = 0; i < depth; i++) {
		pthread_mutex_lock(&g->lock);
		choose_next(&g->slots[i]);
		pthread_mutex_unlock(&g->lock);
		/* a bucket that was cancelled calls got() from here */
		bucket_start(g->objects->bucket, &g->slots[i].read);
	}
}

static int wait_for(struct gets *g, struct stop *stop)
{
	struct pollfd fds[] = { { .fd = g->finished, .events = POLLIN },
				{ .fd = stop->fd, .events = POLLIN } };
	int r = 0;

	while (!(fds[0].revents & POLLIN)) {
		poll(fds, r == 0 ? 2 : 1, -1);
		if (r < 0 || !stop_came(stop))
			continue;
		r = -EINTR;
		pthread_mutex_lock(&g->lock);
		g->stopping = true;
		pthread_mutex_unlock(&g->lock);
		/* whose thread may have missed the signal that was read here */
		bucket_cancel(g->objects->bucket);
	}
	/* until got() of the last one has let go of it */
	LOCK_SCOPE(&g->lock);
	return r;
}

static int run_gets(struct gets *g, struct stop *stop)
{
	uint64_t depth = g->point->depth;
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < depth; i++) {
		struct slot *s = &g->slots[i];

		*s = (struct slot){ .gets = g, .read = { .done = got } };
		s->read.buf = malloc(g->point->bytes);
		r = s->read.buf ? 0 : -ENOMEM;
	}
	if (r == 0) {
		start_all(g, depth);
		r = wait_for(g, stop);
	}
	for (uint64_t i = 0; i < depth; i++)
		free(g->slots[i].read.buf);
	return r;
}

static void fill_point(const struct gets *g)
{
	struct point *p = g->point;

	uint64_t n = p->want - 2 * p->depth;

	/* those that failed may have been of this time: rather too slow */
	point_fill(p, g->first, n > g->failed ? n - g->failed : 1,
		   g->last_ns - g->full_ns);
	p->n = g->done - g->failed;
	p->rest_ns = hist_quantile(g->rest, .5);
}

static int probe_gets(struct objects *o, struct point *p, struct stop *stop,
		      struct err *err)
{
	_cleanup_close_ int finished = eventfd(0, EFD_CLOEXEC);
	_cleanup_free_ struct slot *slots = calloc(p->depth, sizeof(*slots));
	_cleanup_free_ struct hist *first = calloc(1, sizeof(*first));
	_cleanup_free_ struct hist *rest = calloc(1, sizeof(*rest));
	struct gets g = { .objects = o,
			  .point = p,
			  .slots = slots,
			  .rng = rng_stream(0, "objects", p->depth),
			  .finished = finished,
			  .lock = PTHREAD_MUTEX_INITIALIZER,
			  .first = first,
			  .rest = rest };
	int r;

	if (finished < 0 || !slots || !first || !rest)
		return err_set(err, -ENOMEM, "out of memory");
	while (g.n_objects < o->n && o->object[g.n_objects].bytes >= p->bytes)
		g.n_objects++;
	r = run_gets(&g, stop);
	pthread_mutex_destroy(&g.lock);
	if (r == 0 && g.error)
		r = err_set(err, g.error, "s3:%s: %s", o->url, g.why);
	if (r == 0)
		fill_point(&g);
	return r;
}

/* --- listings ----------------------------------------------------------- */

static int enough(void *ctx, const struct answer_object *o)
{
	(void)ctx;
	(void)o;
	return 1;
}

static int probe_lists(struct objects *o, struct point *p, struct stop *stop,
		       struct err *err)
{
	_cleanup_free_ struct hist *h = calloc(1, sizeof(*h));
	uint64_t ns = 0;
	int r = h ? 0 : -ENOMEM;

	for (uint64_t i = 0; r == 0 && i < p->want; i++) {
		r = bucket_list(o->bucket, 1, enough, NULL, err);
		hist_add_alone(h, bucket_page_ns(o->bucket), 1);
		ns += bucket_page_ns(o->bucket);
		if (stop_came(stop))
			r = -EINTR;
	}
	if (r == 0)
		point_fill(p, h, p->want, ns);
	return r;
}

int objects_probe(struct objects *o, struct point *p, struct stop *stop,
		  struct err *err)
{
	return p->kind == POINT_READDIR ? probe_lists(o, p, stop, err)
					: probe_gets(o, p, stop, err);
}
