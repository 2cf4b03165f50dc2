/* SPDX-License-Identifier: MIT */
#include "loader/pipeline/worker.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "common/thread.h"
#include "common/units.h"
#include "common/util.h"
#include "loader/pipeline/buffer.h"
#include "loader/pipeline/vcores.h"

/* A larger buffer is not kept for the next file. ImageNet's largest file is 15
 * MB, its mean 0.1 MB. arbitrary: 10x the mean */
#define KEEP_BYTES MIB

/* Samples before its turn, where a sample is in its container is asked for: of
 * many samples in random order each look is a miss. arbitrary: a miss takes
 * less time than to read so many */
enum { AHEAD = 16 };

/*
 * One worker; also the host that the engine calls (engine.h): samples that are
 * leased from the flow, taken by its engine, and recycled when they are in
 * their batch.
 */
struct feed {
	const struct worker_config *c;
	struct workers *all;
	uint32_t index;
	pthread_t thread;
	bool started;
	void *engine, *prep; /* states */

	/* samples leased and not yet taken by the engine */
	struct window *window;
	uint32_t pos, end;

	struct engine_fetch *fetch; /* depth */
	struct buffer *buffer; /* depth: raw bytes, if there are transforms */
	struct engine_fetch **unused; /* a stack, most recently used on top */
	uint32_t n_unused;
	/* returned by the engine: they were read together, and are of one
	 * lease, so of one batch */
	struct engine_fetch **run; /* depth */
	uint32_t n_run;

	bool in_prep; /* the time of the last group was feed_put's */
	struct work work;
	/* a worker that is a core: how late its last sample's sleep ended */
	uint64_t late_ns;

	struct worker_clock clock;
};

struct workers {
	struct worker_config c;
	uint32_t n;
	struct feed *feed;
	pthread_mutex_t lock;
	pthread_cond_t ready;
	uint32_t n_ready; /* lock: set up, or failed */
	int error;	  /* lock: the first error */
	struct err err;	  /* lock */
	struct vcores *vcores;
	void *blank; /* the result of emulated transforms, for every sample */
};

/* Where a sample belongs after the transforms. */
static char *slot(const struct feed *f, const struct engine_fetch *x)
{
	return x->window->out + f->c->stride * x->pos;
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
static int take_sample(struct feed *f, uint64_t now, struct engine_fetch **ret)
{
	const struct dataset *d = f->c->data;
	struct engine_fetch *x = f->unused[f->n_unused - 1];

	x->window = f->window;
	x->pos = f->window->turn[f->pos];
	x->sample = f->window->order[x->pos];
	x->path = d->container ? NULL : dataset_path(d, x->sample);
	x->bucket = d->bucket;
	x->tag = d->tag ? d->tag[x->sample] : 0;
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
	x->out = f->c->prep->light && f->c->engine->whole_batches ? slot(f, x)
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

int feed_take(struct feed *f, bool wait, struct engine_fetch **ret)
{
	int r = have_lease(f, wait);

	return r < 0 ? r : take_sample(f, tick_now(f->c->tick), ret);
}

int feed_take_run(struct feed *f, uint64_t bytes, struct engine_fetch **ret,
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
		r = take_sample(f, now, &ret[n]);
		if (r < 0)
			return r;
		bytes -= MIN(bytes, ret[n]->size);
		n++;
	} while (d->offset && n < most && f->pos < f->end && f->n_unused &&
		 dataset_size(d, sample_at(f, f->pos)) <= bytes);
	return (int)n;
}

const char *feed_path(const struct feed *f, const struct engine_fetch *x)
{
	return dataset_path(f->c->data, x->sample);
}

static void finish_fetch(struct engine_fetch *x, int64_t result, uint64_t now)
{
	x->n_read = (uint64_t)MAX(result, 0);
	x->error = x->n_read == x->size ? 0 : -ESTALE;
	x->error = result < 0 ? (int)result : x->error;
	x->done_ns = now;
}

void feed_done(struct feed *f, struct engine_fetch *x, int64_t result)
{
	finish_fetch(x, result, tick_now(f->c->tick));
}

size_t feed_out_bytes(const struct feed *f)
{
	return f->c->sample_bytes;
}

void feed_put(struct feed *f, struct engine_fetch *x, const void *raw)
{
	int r = f->c->prep->run(f->prep, raw, x->size, NULL, x->out);

	x->put = r < 0 ? r : 1;
}

void feed_done_run(struct feed *f, struct engine_fetch **x,
		   const int64_t *result, unsigned n, bool put)
{
	uint64_t start = x[0]->start_ns;
	uint64_t each = put ? 0 : (tick_now(f->c->tick) - start) / n;

	f->in_prep = put;
	for (unsigned i = 0; i < n; i++) {
		x[i]->start_ns = start + i * each;
		x[i]->more = i + 1 < n;
		finish_fetch(x[i], result[i], start + (i + 1) * each);
	}
}

static uint64_t turn_to(struct feed *f, enum doing doing)
{
	return worker_clock_turn(&f->clock, doing);
}

int workers_set_cores(struct workers *w, uint32_t n)
{
	int r = w->vcores ? vcores_resize(w->vcores, n) : -ENOTSUP;

	for (uint32_t i = 0; r == 0 && i < w->n; i++)
		worker_clock_set_cores(&w->feed[i].clock, n);
	return r;
}

struct activity workers_activity(struct workers *w, uint32_t i)
{
	uint64_t core_ns;
	struct activity a = worker_clock_read(&w->feed[i].clock, &core_ns);

	if (w->vcores) {
		/* the cores count as reading while the workers read */
		a.read_ns = core_ns / w->n;
		a.prep_ns = vcores_busy_ns(w->vcores) / w->n;
	}
	return a;
}

/*
 * The worker is a core: it sleeps until the sample is done. After a late
 * wake-up its next read is late by as much; that read is treated as having
 * ended that much earlier, so lateness does not accumulate. Returns the
 * deadline.
 */
static uint64_t own_core(struct feed *f, uint64_t cost_ns)
{
	uint64_t now = turn_to(f, PREPARING);
	uint64_t done = now - f->late_ns + cost_ns;

	if (done > now)
		flow_pause(f->c->flow, done);
	now = turn_to(f, READING);
	f->late_ns = now > done ? now - done : 0;
	return done;
}

/* Run the sample on a virtual core: start it there, or sleep as the core. */
static void emulate(struct feed *f, struct engine_fetch *x, struct batch *b)
{
	const struct worker_config *c = f->c;
	uint64_t id = x->window->epoch * c->data->n + x->sample, cost;
	struct rng rng = rng_stream(c->seed, "prep", id);

	if (x->error < 0)
		return;
	cost = c->prep->cost(f->prep, x->size, &rng);
	hist_add_alone(&f->work.prep, cost, 1);
	if (f->all->vcores)
		vcores_add(f->all->vcores, b, cost);
	else
		b->due_ns = own_core(f, cost);
}

/* Transform the sample into its slot, if it was read and the engine has not. */
static bool transform(struct feed *f, struct engine_fetch *x)
{
	const struct worker_config *c = f->c;
	uint64_t id = x->window->epoch * c->data->n + x->sample;
	bool was_read = x->error == 0;
	struct rng rng;

	if (was_read && !c->prep->light)
		rng = rng_stream(c->seed, "prep", id);
	if (was_read && x->put)
		x->error = MIN(x->put, 0);
	else if (was_read)
		x->error = c->prep->run(f->prep, x->data, x->size,
					c->prep->light ? NULL : &rng,
					slot(f, x));
	if (x->error < 0)
		memset(slot(f, x), 0, c->sample_bytes);
	return was_read;
}

/* When the transforms began: with the reads, if the engine made them; else now,
 * and the clock is read once where one follows another. */
static uint64_t begin_prep(struct feed *f, const struct engine_fetch *x)
{
	if (f->in_prep)
		return MAX(x->done_ns, f->clock.since);
	return f->clock.doing == PREPARING ? f->clock.since
					   : turn_to(f, PREPARING);
}

/* Transform `n` samples that share the time; `more` follow. */
static void prepare(struct feed *f, struct engine_fetch **x, uint32_t n,
		    bool more)
{
	struct trace *t = f->c->trace;
	enum doing then = more ? PREPARING : READING;
	uint64_t start = begin_prep(f, x[0]), end, each;
	uint32_t n_read = 0;

	for (uint32_t i = 0; i < n; i++)
		n_read += transform(f, x[i]);
	end = f->in_prep ? worker_clock_prepared(&f->clock, start, then)
			 : turn_to(f, then);
	each = (end - start) / n;
	hist_add_alone(&f->work.prep, each, n_read);
	for (uint32_t i = 0; t && i < n; i++)
		if (x[i]->n_read == x[i]->size)
			trace_slice(t, TRACE_WORKER + f->index, "prep",
				    start + i * each, start + (i + 1) * each,
				    "\"sample\":%u,\"error\":%d", x[i]->sample,
				    x[i]->error);
}

/* Until now; the caller is at most a wake-up late. */
static struct activity until_now(void *ctx, uint32_t i, uint64_t now)
{
	(void)now;
	return workers_activity(ctx, i);
}

static void stamp(struct workers *w, struct batch *b, uint32_t owner,
		  uint64_t now)
{
	b->owner = owner;
	batch_stamp(b, w->c.engine->whole_batches, w->n, until_now, w, now);
}

static void stamp_due(struct batch *b, uint64_t due, void *ctx)
{
	stamp(ctx, b, 0, due);
}

/* The last slot of the batch is filled. */
static void complete(struct feed *f, struct batch *b)
{
	if (f->all->vcores) {
		vcores_complete(f->all->vcores, b);
		return;
	}
	/* due_ns: the worker woke later than that */
	stamp(f->all, b, f->index,
	      b->due_ns ? b->due_ns : tick_now(f->c->tick));
	flow_complete(f->c->flow, b);
}

/* A link may lead out of the mount. It is looked at again after the read, which
 * an engine may have made without a descriptor of ours; names and attributes of
 * a mount stay in the kernel. */
static bool bypasses(const struct feed *f, const struct engine_fetch *x)
{
	dev_t want = *f->c->mount_dev;
	struct statx st;
	int r;

	if (x->error < 0)
		return false;
	r = x->fd >= 0 ? statx(x->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0,
			       &st)
		       : statx(x->dirfd, x->path, AT_STATX_DONT_SYNC, 0, &st);
	return r == 0 && (st.stx_dev_major != major(want) ||
			  st.stx_dev_minor != minor(want));
}

/* Those that were read together took the same time. */
static void count_reads(struct feed *f, uint32_t n)
{
	struct trace *t = f->c->trace;
	struct engine_fetch **x = f->run;

	hist_add_alone(&f->work.read, x[0]->done_ns - x[0]->start_ns, n);
	for (uint32_t i = 0; i < n; i++)
		f->work.bytes_read += x[i]->n_read;
	for (uint32_t i = 0; f->c->mount_dev && i < n; i++) {
		x[i]->bypassed = bypasses(f, x[i]);
		f->work.bypassed_samples += x[i]->bypassed;
	}
	for (uint32_t i = 0; t && i < n; i++)
		trace_overlap(t, TRACE_WORKER + f->index, "read",
			      x[i]->start_ns, x[i]->done_ns,
			      "\"sample\":%u,\"bytes\":%" PRIu64
			      ",\"error\":%d",
			      x[i]->sample, x[i]->size, x[i]->error);
}

/* The sample is in its batch. */
static void recycle(struct feed *f, struct engine_fetch *x)
{
	struct buffer *b = &f->buffer[x->slot];

	if (b->size > KEEP_BYTES)
		buffer_free(b);
	f->unused[f->n_unused++] = x;
}

static void put_into_batch(struct feed *f, struct engine_fetch *x)
{
	const struct worker_config *c = f->c;
	struct place *p = &x->window->place[x->pos];

	if (c->sample_bytes) {
		p->data = c->prep->cost ? f->all->blank : slot(f, x);
		p->n = c->sample_bytes;
	} else {
		if (x->error < 0)
			memset(x->data, 0, x->size);
		p->data = x->data;
		p->n = x->size;
	}
	p->sample = x->sample;
	p->error = x->error;
	p->bypassed = x->bypassed;
	recycle(f, x);
}

/* What the engine has returned, transformed and in its batch. */
static void put_run(struct feed *f)
{
	const struct worker_config *c = f->c;
	struct window *w = f->run[0]->window;
	uint32_t n = f->n_run, step = c->prep->light ? n : 1;
	struct batch *b;

	assert(n == 1 || c->engine->whole_batches);
	f->n_run = 0;
	count_reads(f, n);
	if (!c->engine->whole_batches)
		f->run[0]->pos = atomic_fetch_add_explicit(
			&w->arrived, 1, memory_order_relaxed);
	b = flow_batch(c->flow, w, f->run[0]->pos);
	for (uint32_t i = 0; i < n; i += step) {
		if (c->prep->cost)
			emulate(f, f->run[i], b);
		else if (c->sample_bytes)
			prepare(f, f->run + i, step, i + step < n);
	}
	for (uint32_t i = 0; i < n; i++)
		put_into_batch(f, f->run[i]);
	if (windows_fill(b, n))
		complete(f, b);
}

/* Room for the fetches; `c` is set, the rest zero. -ENOMEM. */
static int make_room(struct feed *f)
{
	uint32_t depth = f->c->depth;

	f->fetch = calloc(depth, sizeof(*f->fetch));
	f->buffer = calloc(depth, sizeof(*f->buffer));
	f->unused = calloc(depth, sizeof(struct engine_fetch *));
	f->run = calloc(depth, sizeof(struct engine_fetch *));
	if (!f->fetch || !f->buffer || !f->unused || !f->run)
		return -ENOMEM;
	for (uint32_t i = 0; i < depth; i++) {
		f->fetch[i].slot = i;
		f->fetch[i].dirfd = f->c->data->dirfd;
		f->unused[f->n_unused++] = &f->fetch[i];
	}
	return 0;
}

static int set_up(struct feed *f, struct err *err)
{
	const struct worker_config *c = f->c;
	struct engine_config e = { .ops = c->engine,
				   .options = c->engine_options,
				   .depth = c->depth,
				   .bucket = c->data ? c->data->bucket : NULL,
				   .direct = c->direct };
	int r = make_room(f);

	f->prep = calloc(1, c->prep->plugin.state_size + 1);
	if (r < 0 || !f->prep)
		return err_set(err, -ENOMEM, "out of memory for a worker");
	if (c->prep->init)
		r = c->prep->init(f->prep, c->prep_config, err);
	if (r < 0)
		return r;
	f->engine = calloc(1, c->engine->plugin.state_size + 1);
	if (!f->engine)
		return err_set(err, -ENOMEM, "out of memory for a worker");
	return c->engine->init ? c->engine->init(f->engine, &e, err) : 0;
}

static void free_room(struct feed *f)
{
	for (uint32_t i = 0; f->buffer && i < f->c->depth; i++)
		buffer_free(&f->buffer[i]);
	free(f->fetch);
	free(f->buffer);
	free(f->unused);
	free(f->run);
}

/* After set_up, also a failed one. */
static void tear_down(struct feed *f)
{
	const struct worker_config *c = f->c;

	if (f->engine && c->engine->fini)
		c->engine->fini(f->engine);
	if (f->prep && c->prep->fini)
		c->prep->fini(f->prep);
	free_room(f);
	free(f->engine);
	free(f->prep);
}

static void report_ready(struct feed *f, int r, const struct err *err)
{
	struct workers *w = f->all;

	pthread_mutex_lock(&w->lock);
	w->n_ready++;
	if (r < 0 && w->error == 0) {
		w->error = r;
		w->err = *err;
	}
	pthread_cond_signal(&w->ready);
	pthread_mutex_unlock(&w->lock);
}

static void *work(void *arg)
{
	struct feed *f = arg;
	struct engine_fetch *x;
	struct err err = { 0 };
	int r = set_up(f, &err);

	report_ready(f, r, &err);
	turn_to(f, READING);
	while (r == 0) {
		r = f->c->engine->next(f->engine, f, &x, &err);
		if (r < 0)
			break;
		f->run[f->n_run++] = x;
		if (!x->more)
			put_run(f);
	}
	turn_to(f, IDLE);
	/* workers_new reports a failed set-up */
	if (r != -ECANCELED) {
		err_set(&err, r, "worker: %s", strerror(-r));
		flow_stop(f->c->flow, r, &err);
	}
	tear_down(f);
	return NULL;
}

static int start_workers(struct workers *w, struct err *err)
{
	uint32_t n = 0;
	int r = 0;

	for (uint32_t i = 0; i < w->n; i++) {
		struct feed *f = &w->feed[i];

		f->c = &w->c;
		f->all = w;
		f->index = i;
		worker_clock_init(&f->clock, w->c.tick, w->c.cores);
	}
	for (uint32_t i = 0; r == 0 && i < w->n; i++) {
		struct feed *f = &w->feed[i];

		r = thread_start(&f->thread, NULL, work, f);
		f->started = r == 0;
		n += f->started;
	}
	pthread_mutex_lock(&w->lock);
	while (w->n_ready < n)
		pthread_cond_wait(&w->ready, &w->lock);
	if (w->error < 0)
		err_set(err, w->error, "%s", w->err.text);
	else if (r < 0)
		err_set(err, r, "cannot start a worker: %s", strerror(-r));
	r = w->error < 0 ? w->error : r;
	pthread_mutex_unlock(&w->lock);
	return r;
}

bool workers_virtual(const struct worker_config *c)
{
	return c->prep->cost && !c->engine->whole_batches;
}

static int set_up_emulation(struct workers *w, struct err *err)
{
	const struct worker_config *c = &w->c;

	if (!c->prep->cost)
		return 0;
	w->blank = calloc(1, c->sample_bytes);
	if (!w->blank)
		return err_set(err, -ENOMEM, "out of memory");
	if (!workers_virtual(c))
		return 0;
	return vcores_new(c->flow, c->tick, c->cores, stamp_due, w, &w->vcores,
			  err);
}

int workers_new(const struct worker_config *c, uint32_t n, struct workers **ret,
		struct err *err)
{
	struct workers *w = calloc(1, sizeof(*w));
	int r;

	if (!w || !(w->feed = calloc(n, sizeof(*w->feed)))) {
		free(w);
		return err_set(err, -ENOMEM, "out of memory for %u workers", n);
	}
	w->c = *c;
	w->n = n;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->ready, NULL);
	r = set_up_emulation(w, err);
	if (r == 0)
		r = start_workers(w, err);
	if (r < 0) {
		flow_stop(c->flow, 0, NULL);
		workers_free(w);
		return r;
	}
	*ret = w;
	return 0;
}

void workers_join(struct workers *w)
{
	for (uint32_t i = 0; i < w->n; i++) {
		if (w->feed[i].started)
			pthread_join(w->feed[i].thread, NULL);
		w->feed[i].started = false;
	}
}

void workers_free(struct workers *w)
{
	if (!w)
		return;
	workers_join(w);
	vcores_free(w->vcores);
	for (uint32_t i = 0; i < w->n; i++)
		worker_clock_fini(&w->feed[i].clock);
	pthread_cond_destroy(&w->ready);
	pthread_mutex_destroy(&w->lock);
	free(w->blank);
	free(w->feed);
	free(w);
}

void workers_work(struct workers *w, struct work *ret)
{
	for (uint32_t i = 0; i < w->n; i++) {
		struct work *own = &w->feed[i].work;

		hist_merge(&ret->read, &own->read);
		hist_merge(&ret->prep, &own->prep);
		ret->bytes_read += own->bytes_read;
		ret->bypassed_samples += own->bypassed_samples;
		memset(own, 0, sizeof(*own));
	}
}
