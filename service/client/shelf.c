/* SPDX-License-Identifier: MIT */
#include "service/client/shelf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include "common/thread.h"
#include "common/units.h"
#include "common/util.h"

/* Batches of a first estimate. arbitrary: more than wait in front of a GPU */
enum { LEAST_BUSY = 16 };

int shelf_init(struct shelf *s, struct tick *tick, unsigned char **buffer,
	       uint32_t n, size_t bytes)
{
	*s = (struct shelf){ .tick = tick, .bytes = bytes, .n_buffers = n };
	s->ready_end = &s->ready;
	pthread_mutex_init(&s->lock, NULL);
	tick_cond_init(&s->changed);
	s->buffer = calloc(n, sizeof(*s->buffer));
	if (!s->buffer)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		s->buffer[i].bytes = buffer[i];
		s->buffer[i].next = s->free;
		s->free = &s->buffer[i];
	}
	return 0;
}

void shelf_fini(struct shelf *s)
{
	sweep_fini(&s->sweep);
	free(s->buffer);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
}

/* --- under the lock ------------------------------------------------------- */

static void push_free(struct shelf *s, struct shelf_buffer *b)
{
	b->next = s->free;
	s->free = b;
}

/* May the consumer take the first one? */
static bool is_next(const struct shelf *s)
{
	return s->ready && (!s->by_rounds || s->ready->m.c == s->round);
}

static struct shelf_buffer *pop_ready(struct shelf *s)
{
	struct shelf_buffer *b = s->ready;

	if (!is_next(s))
		return NULL;
	s->ready = b->next;
	if (!s->ready)
		s->ready_end = &s->ready;
	s->n_ready--;
	s->round += s->by_rounds;
	return b;
}

static void push_ready(struct shelf *s, struct shelf_buffer *b)
{
	struct shelf_buffer **at = s->ready_end;

	if (s->by_rounds)
		for (at = &s->ready; *at && (*at)->m.c < b->m.c;)
			at = &(*at)->next;
	b->next = *at;
	*at = b;
	if (!b->next)
		s->ready_end = &b->next;
	s->n_ready++;
}

/* --- epochs --------------------------------------------------------------- */

int shelf_begin(struct shelf *s, enum split_mode mode, uint64_t epoch,
		const uint32_t *order, uint64_t n, uint64_t n_samples,
		uint32_t batch, uint32_t per_split)
{
	struct shelf_buffer *b;
	struct sweep sweep;
	int r = sweep_init(&sweep, mode, epoch, order, n, n_samples, batch,
			   per_split);

	if (r < 0) {
		sweep_fini(&sweep);
		return r;
	}
	LOCK_SCOPE(&s->lock);
	while ((b = pop_ready(s)))
		push_free(s, b);
	sweep_fini(&s->sweep);
	s->sweep = sweep;
	s->begun = true;
	s->taken_ns = 0;
	s->turn++;
	return 0;
}

uint64_t shelf_cut(struct shelf *s, uint64_t n)
{
	LOCK_SCOPE(&s->lock);
	n = sweep_cut(&s->sweep, n);
	/* nothing may be left */
	pthread_cond_broadcast(&s->changed);
	return n;
}

void shelf_fail(struct shelf *s, int error, const char *fmt, ...)
{
	va_list ap;

	LOCK_SCOPE(&s->lock);
	if (!s->error) {
		s->error = error;
		va_start(ap, fmt);
		vsnprintf(s->err.text, sizeof(s->err.text), fmt, ap);
		va_end(ap);
	}
	pthread_cond_broadcast(&s->changed);
}

void shelf_stop(struct shelf *s)
{
	LOCK_SCOPE(&s->lock);
	s->stopping = true;
	pthread_cond_broadcast(&s->changed);
}

void shelf_begin_close(struct shelf *s)
{
	LOCK_SCOPE(&s->lock);
	s->closing = true;
}

void shelf_wait_closed(struct shelf *s, uint64_t deadline)
{
	bool late = false;

	LOCK_SCOPE(&s->lock);
	while (!s->closed && !late)
		late = tick_cond_wait(s->tick, &s->changed, &s->lock, deadline);
}

void shelf_closed(struct shelf *s)
{
	LOCK_SCOPE(&s->lock);
	s->closed = true;
	pthread_cond_broadcast(&s->changed);
}

/* --- the loop ------------------------------------------------------------- */

struct shelf_buffer *shelf_reserve(struct shelf *s)
{
	struct shelf_buffer *b;

	LOCK_SCOPE(&s->lock);
	b = s->free;
	if (b)
		s->free = b->next;
	return b;
}

int shelf_put(struct shelf *s, struct shelf_buffer *b)
{
	int r = -ESTALE;

	LOCK_SCOPE(&s->lock);
	if (s->begun && b->m.epoch == s->sweep.epoch)
		r = sweep_batch(&s->sweep, &b->m);
	s->n_twice += r == -EEXIST;
	s->n_late += r == -ESTALE;
	if (r == 0) {
		s->n_batches++;
		push_ready(s, b);
		pthread_cond_signal(&s->changed);
	}
	return r;
}

void shelf_lose(struct shelf *s, uint64_t epoch, uint32_t split,
		uint64_t worker)
{
	uint64_t samples = 0;

	LOCK_SCOPE(&s->lock);
	if (s->begun && epoch == s->sweep.epoch)
		samples = sweep_lose(&s->sweep, split);
	if (samples) {
		if (s->n_lost < SHELF_LOST)
			s->lost[s->n_lost] = (struct shelf_lost){
				.epoch = epoch,
				.samples = samples,
				.worker = worker,
				.split = split,
			};
		s->n_lost++;
		pthread_cond_signal(&s->changed);
	}
}

/* Under the lock. */
static bool is_open(const struct shelf *s)
{
	return s->begun && !s->closing && s->sweep.left > 0;
}

bool shelf_is_open(struct shelf *s)
{
	LOCK_SCOPE(&s->lock);

	return is_open(s);
}

bool shelf_needs(struct shelf *s, uint64_t on_their_way)
{
	const struct splits *p = &s->sweep.splits;
	LOCK_SCOPE(&s->lock);

	return is_open(s) && (p->mode != SPLIT_OFF ||
			      on_their_way * p->batch < s->sweep.left);
}

bool shelf_is_closing(struct shelf *s)
{
	LOCK_SCOPE(&s->lock);

	return s->closing;
}

/* --- the consumer --------------------------------------------------------- */

/*
 * The wait for a batch, from when the GPU fell idle until its last byte:
 *
 *	idle        worker began   complete     first byte     last byte
 *	 |--dispatcher--|--worker------|-----------network----------|
 *
 * The worker reports for how long the batch was complete before it left, and
 * for how long it had no split before; durations, as its clock is another.
 */
static struct shelf_stalls stalls_of(const struct shelf_arrival *a,
				     uint64_t idle)
{
	uint64_t complete = MAX(a->complete_ns, idle);
	struct shelf_stalls s = { 0 };

	if (a->arrived_ns <= idle)
		return s;
	s.network = a->arrived_ns - complete;
	s.dispatcher = MIN(a->starved_ns, complete - idle);
	s.worker = complete - idle - s.dispatcher;
	return s;
}

static double read_share(const struct shelf_stalls *s, double of_worker)
{
	double all = (double)(s->network + s->dispatcher + s->worker);

	return all > 0 ? 1 - (1 - of_worker) * (double)s->worker / all : 1;
}

/* Under the lock: the consumer takes a batch now, of which it waited for
 * `stalls`. */
static void count_busy(struct shelf *s, const struct shelf_stalls *stalls)
{
	uint64_t now = tick_now(s->tick), since = now - s->taken_ns;
	uint64_t wait = stalls->network + stalls->worker + stalls->dispatcher;

	if (s->taken_ns) {
		s->busy_ns += since - MIN(wait, since);
		s->n_busy++;
	}
	s->taken_ns = now;
}

uint64_t shelf_target(struct shelf *s)
{
	LOCK_SCOPE(&s->lock);

	return s->n_busy < LEAST_BUSY ? 0 : s->busy_ns / s->n_busy;
}

struct shelf_arrival shelf_arrival(const struct shelf_buffer *b)
{
	return (struct shelf_arrival){
		.complete_ns = b->begun_ns - MIN(b->m.id, b->begun_ns),
		.starved_ns = b->m.b,
		.arrived_ns = b->arrived_ns,
		.read_share = MIN(b->m.share / 1e6, 1),
	};
}

double shelf_count(struct shelf *s, const struct shelf_arrival *a,
		   uint64_t idle)
{
	struct shelf_stalls stalls = stalls_of(a, idle);

	LOCK_SCOPE(&s->lock);
	s->stalls.network += stalls.network;
	s->stalls.worker += stalls.worker;
	s->stalls.dispatcher += stalls.dispatcher;
	count_busy(s, &stalls);
	return read_share(&stalls, a->read_share);
}

int shelf_take(struct shelf *s, uint64_t until, struct shelf_buffer **ret,
	       struct err *err)
{
	struct shelf_buffer *b = NULL;
	bool late = false;
	int r = 0;

	LOCK_SCOPE(&s->lock);
	while (!s->stopping && !s->error && !(b = pop_ready(s)) &&
	       s->sweep.left > 0 && !late)
		late = tick_cond_wait(s->tick, &s->changed, &s->lock, until);
	if (b)
		*ret = b;
	else if (s->stopping)
		r = -ECANCELED;
	else if (s->error)
		r = err_set(err, s->error, "%s", s->err.text);
	else
		r = s->sweep.left > 0 ? 1 : -ENODATA;
	return r;
}

void shelf_free(struct shelf *s, struct shelf_buffer *b)
{
	LOCK_SCOPE(&s->lock);
	push_free(s, b);
}

uint32_t shelf_n_ready(struct shelf *s)
{
	LOCK_SCOPE(&s->lock);

	return is_next(s) ? s->n_ready : 0;
}

static double seconds(uint64_t ns)
{
	return (double)ns / (double)NS_PER_S;
}

static json_t *lost_json(const struct shelf *s)
{
	json_t *j = json_array();

	for (uint64_t i = 0; j && i < MIN(s->n_lost, SHELF_LOST); i++) {
		const struct shelf_lost *l = &s->lost[i];
		char worker[16 + 1];

		snprintf(worker, sizeof(worker), "%016llx",
			 (unsigned long long)l->worker);
		json_array_append_new(
			j, json_pack("{s:I, s:I, s:I, s:s}", "epoch",
				     (json_int_t)l->epoch, "split",
				     (json_int_t)l->split, "samples",
				     (json_int_t)l->samples, "worker", worker));
	}
	return j;
}

int shelf_json(struct shelf *s, json_t *into)
{
	json_auto_t *j = NULL;

	LOCK_SCOPE(&s->lock);
	j = json_pack("{s:{s:f, s:f, s:f}, s:I, s:I, s:I, s:I, s:I, s:o}",
		      "stall_s", "network", seconds(s->stalls.network),
		      "worker", seconds(s->stalls.worker), "dispatcher",
		      seconds(s->stalls.dispatcher), "batches",
		      (json_int_t)s->n_batches, "batches_twice",
		      (json_int_t)s->n_twice, "batches_late",
		      (json_int_t)s->n_late, "rounds", (json_int_t)s->round,
		      "splits_lost", (json_int_t)s->n_lost, "lost",
		      lost_json(s));
	return j && json_object_update(into, j) == 0 ? 0 : -ENOMEM;
}
