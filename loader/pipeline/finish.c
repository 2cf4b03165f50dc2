/* SPDX-License-Identifier: MIT */
#include "loader/pipeline/finish.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/thread.h"
#include "common/units.h"
#include "common/util.h"

enum { ALIGN = 64 };

enum stage { FREE, FINISHING, READY, TAKEN };

/* A batch in a buffer. */
struct finished {
	enum stage stage;
	unsigned char *data;
	struct place *place;
	uint32_t n;
	uint64_t epoch;
	struct remote_arrival arrival;
	uint64_t ready_ns; /* emulated */
};

struct finish {
	struct finish_config c;
	const struct remote_ops *from;
	void *state;
	void *prep; /* state */
	bool prepared;
	pthread_t *thread;
	uint32_t n_threads;
	struct place *place; /* batch for each buffer */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* All below: lock. A ring: batch i is in slot i modulo their number. */
	struct finished *slot;
	uint64_t n_begun, n_given;
	bool receiving; /* a thread waits for a batch */
	bool begun, over, stopping;
	int error; /* with `over` */
	struct err err;
	uint64_t epoch;
	uint64_t stall_ns; /* of the GPU, for the last step */
};

static size_t stride(size_t sample_bytes)
{
	return (sample_bytes + ALIGN - 1) / ALIGN * ALIGN;
}

size_t finish_buffer_bytes(uint32_t n, size_t sample_bytes)
{
	return n * stride(sample_bytes);
}

static struct finished *slot(const struct finish *f, uint64_t i)
{
	return &f->slot[i % f->c.n_buffers];
}

/* --- the threads ---------------------------------------------------------- */

static void run_batch(const struct finish *f, const struct remote_batch *b,
		      struct finished *o)
{
	const size_t bytes = f->c.sample_bytes;
	unsigned char *out = o->data;

	for (uint32_t i = 0; i < b->n; i++, out += stride(bytes)) {
		const struct place *in = &b->place[i];
		int error = in->error;

		if (error < 0)
			memset(out, 0, bytes);
		else
			error = f->c.prep->last->run(f->prep, in->data, in->n,
						     out);
		o->place[i] = (struct place){ .data = out,
					      .n = bytes,
					      .sample = in->sample,
					      .error = error,
					      .bypassed = in->bypassed };
	}
}

/* Under the lock, which it leaves meanwhile: a batch that was received. */
static void finish_batch(struct finish *f, struct remote_batch *b)
{
	struct finished *o = slot(f, f->n_begun++);

	o->stage = FINISHING;
	o->n = b->n;
	o->epoch = b->epoch;
	o->arrival = b->arrival;
	pthread_cond_broadcast(&f->changed); /* the next may receive */
	pthread_mutex_unlock(&f->lock);
	run_batch(f, b, o);
	f->from->release(f->state, b);
	pthread_mutex_lock(&f->lock);
	o->ready_ns = tick_now(f->c.tick);
	o->stage = READY;
}

/* Under the lock, which it leaves meanwhile. */
static void receive(struct finish *f)
{
	uint64_t epoch = f->epoch;
	struct remote_batch b;
	struct err err = { 0 };
	int r;

	f->receiving = true;
	pthread_mutex_unlock(&f->lock);
	r = f->from->next(f->state, TICK_NEVER, &b, &err);
	pthread_mutex_lock(&f->lock);
	f->receiving = false;
	if (r == 0 && b.epoch == f->epoch) {
		finish_batch(f, &b);
	} else if (r == 0) {
		f->from->release(f->state, &b);
	} else if (r < 0 && epoch == f->epoch) {
		f->over = true;
		f->error = r;
		f->err = err;
	}
	pthread_cond_broadcast(&f->changed);
}

static bool can_receive(const struct finish *f)
{
	return f->begun && !f->over && !f->receiving &&
	       slot(f, f->n_begun)->stage == FREE;
}

static void *work(void *arg)
{
	struct finish *f = arg;

	pthread_mutex_lock(&f->lock);
	while (!f->stopping) {
		if (can_receive(f))
			receive(f);
		else
			pthread_cond_wait(&f->changed, &f->lock);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

/* --- the consumer --------------------------------------------------------- */

static int begin_epoch(void *state, uint64_t epoch, const uint32_t *order,
		       uint64_t n, struct err *err)
{
	struct finish *f = state;
	int r;

	pthread_mutex_lock(&f->lock);
	r = f->from->begin(f->state, epoch, order, n, err);
	f->begun = r == 0;
	f->over = false;
	f->epoch = epoch;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	return r;
}

static uint64_t cut(void *state, uint64_t n)
{
	struct finish *f = state;

	return f->from->cut(f->state, n);
}

/* Under the lock: the next batch that is ready, those of an earlier epoch
 * dropped; NULL: none. */
static struct finished *first_ready(struct finish *f)
{
	struct finished *o = slot(f, f->n_given);

	while (o->stage == READY && o->epoch != f->epoch) {
		o->stage = FREE;
		pthread_cond_broadcast(&f->changed);
		o = slot(f, ++f->n_given);
	}
	return o->stage == READY ? o : NULL;
}

/* Under the lock. */
static bool has_ended(const struct finish *f)
{
	return f->over && f->n_given == f->n_begun;
}

static int next_finished(void *state, uint64_t until, struct remote_batch *ret,
			 struct err *err)
{
	struct finish *f = state;
	struct finished *o = NULL;
	bool late = false;
	int r = 0;

	pthread_mutex_lock(&f->lock);
	while (!f->stopping && !(o = first_ready(f)) && !has_ended(f) && !late)
		late = tick_cond_wait(f->c.tick, &f->changed, &f->lock, until);
	if (f->stopping) {
		r = -ECANCELED;
	} else if (o) {
		o->stage = TAKEN;
		f->n_given++;
		*ret = (struct remote_batch){ .n = o->n,
					      .epoch = o->epoch,
					      .place = o->place,
					      .arrival = o->arrival,
					      .own = o };
		ret->arrival.ready_ns = o->ready_ns;
	} else if (has_ended(f)) {
		r = f->error == -ENODATA
			    ? -ENODATA
			    : err_set(err, f->error, "%s", f->err.text);
	} else {
		r = 1;
	}
	pthread_mutex_unlock(&f->lock);
	return r;
}

/* The GPU waited for the batch first, and then for its last step. */
static double count(void *state, const struct remote_arrival *a, uint64_t idle)
{
	struct finish *f = state;
	double share = f->from->count(f->state, a, idle);
	uint64_t arrived = MAX(a->arrived_ns, idle);

	if (a->ready_ns <= arrived)
		return share;
	pthread_mutex_lock(&f->lock);
	f->stall_ns += a->ready_ns - arrived;
	pthread_mutex_unlock(&f->lock);
	return share * (double)(arrived - idle) / (double)(a->ready_ns - idle);
}

static void release(void *state, struct remote_batch *b)
{
	struct finish *f = state;
	struct finished *o = b->own;

	pthread_mutex_lock(&f->lock);
	o->stage = FREE;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
}

static uint32_t n_ready(void *state)
{
	struct finish *f = state;
	uint32_t n = 0;

	pthread_mutex_lock(&f->lock);
	if (first_ready(f))
		while (n < f->c.n_buffers &&
		       slot(f, f->n_given + n)->stage == READY)
			n++;
	pthread_mutex_unlock(&f->lock);
	return n;
}

static void stop(void *state)
{
	struct finish *f = state;

	pthread_mutex_lock(&f->lock);
	f->stopping = true;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	f->from->stop(f->state);
}

static json_t *json(void *state)
{
	struct finish *f = state;
	json_t *j = f->from->json(f->state), *stall;
	double stall_s;

	pthread_mutex_lock(&f->lock);
	stall_s = (double)f->stall_ns / NS_PER_S;
	pthread_mutex_unlock(&f->lock);
	stall = json_object_get(j, "stall_s");
	json_add_real(stall, "last_step", stall_s);
	json_object_set_new(j, "last_step",
			    json_pack("{s:s, s:I}", "name",
				      f->c.prep->last->name, "threads",
				      (json_int_t)f->n_threads));
	return j;
}

/* --- life ----------------------------------------------------------------- */

static void close_finish(void *state)
{
	struct finish *f = state;

	stop(f);
	for (uint32_t i = 0; i < f->n_threads; i++)
		pthread_join(f->thread[i], NULL);
	f->from->close(f->state);
	if (f->prepared && f->c.prep->fini)
		f->c.prep->fini(f->prep);
	pthread_cond_destroy(&f->changed);
	pthread_mutex_destroy(&f->lock);
	free(f->prep);
	free(f->thread);
	free(f->place);
	free(f->slot);
	free(f);
}

static int set_up(struct finish *f, struct err *err)
{
	const struct finish_config *c = &f->c;
	int r = 0;

	f->prep = calloc(1, c->prep->plugin.state_size + 1);
	f->thread = calloc(c->threads, sizeof(*f->thread));
	f->place = calloc((size_t)c->n_buffers * c->batch, sizeof(*f->place));
	f->slot = calloc(c->n_buffers, sizeof(*f->slot));
	if (!f->prep || !f->thread || !f->place || !f->slot)
		return err_set(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < c->n_buffers; i++) {
		f->slot[i].data = c->buffer[i];
		f->slot[i].place = f->place + (size_t)i * c->batch;
	}
	f->prepared = true;
	if (c->prep->init)
		r = c->prep->init(f->prep, c->prep_config, err);
	while (r == 0 && f->n_threads < c->threads) {
		r = thread_start(&f->thread[f->n_threads], NULL, work, f);
		if (r < 0)
			return err_set(err, r, "cannot start a thread: %s",
				       strerror(-r));
		f->n_threads++;
	}
	return r;
}

int finish_new(const struct finish_config *c, const struct remote_ops *from,
	       void *state, struct finish **ret, struct err *err)
{
	struct finish *f = calloc(1, sizeof(*f));
	int r;

	if (!f) {
		from->close(state);
		return err_set(err, -ENOMEM, "out of memory");
	}
	f->c = *c;
	f->from = from;
	f->state = state;
	pthread_mutex_init(&f->lock, NULL);
	tick_cond_init(&f->changed);
	r = set_up(f, err);
	if (r < 0) {
		close_finish(f);
		return r;
	}
	*ret = f;
	return 0;
}

const struct remote_ops finish_ops = {
	.close = close_finish,
	.begin = begin_epoch,
	.cut = cut,
	.next = next_finished,
	.count = count,
	.release = release,
	.n_ready = n_ready,
	.stop = stop,
	.json = json,
};
