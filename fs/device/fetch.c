/* SPDX-License-Identifier: MIT */
#include "fs/device/fetch.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/thread.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "fs/device/device.h"

/* arbitrary: for reads that would block the receiving thread, unless the source
 * says how many are worth it; more helps only if it is on a slow disk */
enum { N_READERS = 4, MAX_READERS = 64 };

struct fetcher {
	struct fetcher_config c;
	struct fetcher *lead; /* the first of the mount, or itself */
	struct timerq *timers;
	pthread_mutex_t device_lock; /* guards the next four */
	struct device *device;
	double limit_mb_per_s; /* of the device; 0: none */
	uint64_t last_arrival;
	struct fetch_bill bill;
	pthread_mutex_t job_lock; /* guards all down to n_queued */
	pthread_cond_t job_wake;
	struct fetch *first, *last;
	bool stopping; /* atomic too */
	pthread_t readers[MAX_READERS];
	unsigned most_readers;	      /* constant */
	unsigned n_readers;	      /* started so far */
	unsigned n_idle;	      /* of these: waiting for a job */
	unsigned n_queued;	      /* jobs, from `first` on */
	unsigned n_here;	      /* atomic: callers at `work` */
	struct round_trip round_trip; /* emulated ns; atomic, set once */
	struct fetch_stats stats;     /* relaxed atomics */
};

static void count(uint64_t *counter, uint64_t n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

/* Is this the only request in flight? */
static bool alone(const struct fetcher *f)
{
	return __atomic_load_n(&f->lead->stats.inflight, __ATOMIC_RELAXED) <= 1;
}

/* How long the kernel takes to copy a MiB of an answer after so long a wait,
 * all in emulated ns. */
static double copy_ns(const struct fetcher *f, uint64_t wait_ns)
{
	const struct round_trip *trip = &f->lead->round_trip;
	double wall = (double)wait_ns * tick_scale(f->c.tick);
	double part = (wall - CALIBRATE_ALONE_NS) /
		      (CALIBRATE_SLOW_NS - CALIBRATE_ALONE_NS);
	double brief =
		(double)__atomic_load_n(&trip->alone_mib_ns, __ATOMIC_RELAXED);
	double slow =
		(double)__atomic_load_n(&trip->slow_mib_ns, __ATOMIC_RELAXED);

	return brief + (slow - brief) * fmin(fmax(part, 0), 1);
}

/* When to answer, so that the answer reaches the reader at the deadline. */
static uint64_t reply_at(const struct fetcher *fetcher, struct fetch *f)
{
	const struct round_trip *trip = &fetcher->lead->round_trip;
	uint64_t ns;

	if (alone(fetcher)) {
		ns = __atomic_load_n(&trip->alone_ns[f->op], __ATOMIC_RELAXED);
		ns += (uint64_t)((double)f->answered / MIB *
				 copy_ns(fetcher, f->deadline - f->arrival));
	} else {
		ns = __atomic_load_n(&trip->busy_ns, __ATOMIC_RELAXED);
	}
	f->ahead = MIN(f->deadline - f->arrival, ns);
	return f->deadline - f->ahead;
}

static void count_latency(struct fetcher *fetcher, const struct fetch *f)
{
	struct fetch_stats *s = &fetcher->stats;
	uint64_t late = tick_now(fetcher->c.tick) - (f->deadline - f->ahead);
	uint64_t requested = f->deadline - f->arrival;

	hist_add(&s->requested, requested);
	hist_add(&s->achieved, requested + late);
	hist_add(&s->error,
		 (uint64_t)((double)late * tick_scale(fetcher->c.tick)));
}

static void finish_op(struct fetcher *fetcher, struct fetch *f, bool stopping)
{
	if (f->op == STORAGE_READ && !stopping && !f->before)
		count_latency(fetcher, f);
	if (f->op != STORAGE_N_OPS) /* else it only waited */
		__atomic_fetch_sub(&fetcher->lead->stats.inflight, 1,
				   __ATOMIC_RELAXED);
	f->done(f, stopping);
}

static void fire(struct timer *timer, bool stopping, void *ctx)
{
	struct fetch *f = container_of(timer, struct fetch, timer);
	struct fetcher *fetcher = ctx;
	uint64_t fired = timer->deadline;

	/* it was alone on arrival, and others have come since; a pure wait has
	 * no class and so no round trip */
	if (!stopping && f->op != STORAGE_N_OPS && !alone(fetcher) &&
	    fired < reply_at(fetcher, f)) {
		int r = timerq_add(fetcher->timers, timer,
				   f->deadline - f->ahead);

		if (r == 0)
			return;
		stopping = r == -ECANCELED;
	}
	finish_op(fetcher, f, stopping);
}

/* The bytes were read (or failed); wait for the deadline. */
static void wait_for_deadline(struct fetcher *fetcher, struct fetch *f)
{
	uint64_t at;
	int r = 0;

	if (f->op == STORAGE_N_OPS) { /* it has no deadline */
		finish_op(fetcher, f, false);
		return;
	}
	at = reply_at(fetcher, f);
	if (tick_now(fetcher->c.tick) < at) {
		r = timerq_add(fetcher->timers, &f->timer, at);
		if (r == 0)
			return;
	}
	finish_op(fetcher, f, r == -ECANCELED);
}

static int read_source(struct fetcher *fetcher, uint32_t node, void *buf,
		       size_t n, uint64_t offset, bool nowait)
{
	return fetcher->c.source->read(fetcher->c.source_state, fetcher->c.tree,
				       node, buf, n, offset, nowait);
}

static int real_read(struct fetcher *fetcher, struct fetch *f, bool nowait)
{
	return read_source(fetcher, f->node, f->buf, f->bytes, f->offset,
			   nowait);
}

static void read_pieces(struct fetcher *fetcher, struct fetch *f)
{
	for (size_t i = 0; i < f->n_pieces; i++) {
		struct fetch_piece *p = &f->pieces[i];

		if (p->buf)
			p->error = read_source(fetcher, p->node, p->buf,
					       p->bytes, 0, false);
	}
}

static void read_now(struct fetcher *fetcher, struct fetch *f)
{
	if (f->work)
		f->error = f->work(f);
	else if (f->n_pieces)
		read_pieces(fetcher, f);
	else if (f->buf)
		f->error = real_read(fetcher, f, false);
	wait_for_deadline(fetcher, f);
}

static void *reader(void *arg)
{
	struct fetcher *fetcher = arg;
	struct fetch *f;
	bool stopping;

	pthread_mutex_lock(&fetcher->job_lock);
	for (;;) {
		fetcher->n_idle++;
		while (!fetcher->first && !fetcher->stopping)
			pthread_cond_wait(&fetcher->job_wake,
					  &fetcher->job_lock);
		fetcher->n_idle--;
		f = fetcher->first;
		if (!f)
			break;
		fetcher->first = f->next;
		fetcher->n_queued--;
		stopping = fetcher->stopping;
		pthread_mutex_unlock(&fetcher->job_lock);
		if (stopping)
			finish_op(fetcher, f, true);
		else
			read_now(fetcher, f);
		pthread_mutex_lock(&fetcher->job_lock);
	}
	pthread_mutex_unlock(&fetcher->job_lock);
	return NULL;
}

/* Under job_lock, or before there is another thread. -EAGAIN: no thread. */
static int start_reader(struct fetcher *f)
{
	int r = -pthread_create(&f->readers[f->n_readers], NULL, reader, f);

	if (r == 0)
		f->n_readers++;
	return r;
}

static void enqueue(struct fetcher *fetcher, struct fetch *f)
{
	f->next = NULL;
	pthread_mutex_lock(&fetcher->job_lock);
	if (fetcher->stopping) { /* a wait that ended just before the stop */
		pthread_mutex_unlock(&fetcher->job_lock);
		finish_op(fetcher, f, true);
		return;
	}
	if (fetcher->first)
		fetcher->last->next = f;
	else
		fetcher->first = f;
	fetcher->last = f;
	/* most sources never block; if no further thread can be had, the first
	 * does all reads. An idle one is for one of those queued before, to
	 * which it may not have woken up yet */
	if (++fetcher->n_queued > fetcher->n_idle &&
	    fetcher->n_readers < fetcher->most_readers)
		start_reader(fetcher);
	pthread_mutex_unlock(&fetcher->job_lock);
	pthread_cond_signal(&fetcher->job_wake);
}

/* Under device_lock. */
static void add_to_bill(struct fetcher *fetcher, const struct fetch *f)
{
	const struct storage_profile *p = device_profile(fetcher->device);

	fetcher->bill.requests[f->op] += !f->before;
	fetcher->bill.usd += storage_cost_usd(p, f->op, f->bytes);
	if (f->before)
		fetcher->bill.usd -= storage_cost_usd(p, f->op, 0);
	fetcher->bill.priced |= p->price.source != NULL;
}

static void count_op(struct fetch_stats *s, const struct fetch *f)
{
	if (f->op == STORAGE_READ) {
		count(&s->backend_reads, !f->before);
		count(&s->backend_bytes, f->bytes);
	} else if (f->op == STORAGE_WRITE) {
		count(&s->writes, 1);
		count(&s->bytes_written, f->bytes);
	} else if (f->op == STORAGE_SYNC) {
		count(&s->syncs, 1);
	}
}

static void charge(struct fetcher *fetcher, struct fetch *f)
{
	uint64_t now;

	f->error = 0;
	f->deadline = f->arrival + f->takes;
	if (f->op == STORAGE_N_OPS)
		return;
	count(&fetcher->lead->stats.inflight, 1);
	count_op(&fetcher->stats, f);
	if (f->takes)
		return;
	LOCK_SCOPE(&fetcher->device_lock);
	/* requests of several threads may overtake each other before this
	 * point */
	now = MAX(f->arrival, fetcher->last_arrival);
	fetcher->last_arrival = now;
	device_alone(fetcher->device, alone(fetcher));
	f->deadline = f->before
			      ? device_go_on(fetcher->device, f->before,
					     f->bytes, f->arrival)
			      : device_schedule(fetcher->device, f->op, f->node,
						f->offset, f->bytes, now);
	add_to_bill(fetcher, f);
}

static bool work_here(struct fetcher *fetcher, struct fetch *f)
{
	unsigned n = __atomic_fetch_add(&fetcher->n_here, 1, __ATOMIC_RELAXED);

	if (n < FETCH_HERE)
		f->error = f->work(f);
	__atomic_fetch_sub(&fetcher->n_here, 1, __ATOMIC_RELAXED);
	return n < FETCH_HERE;
}

void fetch_read(struct fetcher *fetcher, struct fetch *f)
{
	if (__atomic_load_n(&fetcher->stopping, __ATOMIC_RELAXED)) {
		f->deadline = f->arrival;
		finish_op(fetcher, f, true);
		return;
	}
	if (f->work && f->here && work_here(fetcher, f)) {
		wait_for_deadline(fetcher, f);
		return;
	}
	if (f->work || f->n_pieces || f->later) {
		enqueue(fetcher, f);
		return;
	}
	if (f->buf) {
		f->error = real_read(fetcher, f, true);
		if (f->error == -EAGAIN) {
			enqueue(fetcher, f);
			return;
		}
	}
	wait_for_deadline(fetcher, f);
}

void fetch_start(struct fetcher *fetcher, struct fetch *f)
{
	charge(fetcher, f);
	if (!f->apart)
		fetch_read(fetcher, f);
}

void fetch_end(struct fetcher *fetcher, struct fetch *f)
{
	finish_op(fetcher, f, true);
}

int fetch_wait(struct fetcher *fetcher, struct fetch *f, uint64_t at)
{
	f->op = STORAGE_N_OPS;
	f->error = 0;
	f->deadline = at;
	return timerq_add(fetcher->timers, &f->timer, at);
}

static void stop_readers(struct fetcher *f)
{
	pthread_mutex_lock(&f->job_lock);
	__atomic_store_n(&f->stopping, true, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&f->job_lock);
	pthread_cond_broadcast(&f->job_wake);
	/* no further reader is started */
	for (; f->n_readers; f->n_readers--)
		pthread_join(f->readers[f->n_readers - 1], NULL);
}

int fetcher_new(const struct fetcher_config *config, struct fetcher **ret)
{
	struct fetcher *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	f->c = *config;
	f->lead = config->lead ? config->lead : f;
	tick_mutex_init(&f->device_lock);
	tick_mutex_init(&f->job_lock);
	pthread_cond_init(&f->job_wake, NULL);
	r = device_new(config->storage, config->seed, &f->device);
	if (r == 0)
		r = timerq_new(config->tick, fire, f, &f->timers);
	f->most_readers = config->source->readers;
	f->most_readers = f->most_readers ? MIN(f->most_readers, MAX_READERS)
					  : N_READERS;
	if (r == 0)
		r = start_reader(f);
	if (r < 0) {
		fetcher_free(f);
		return r;
	}
	*ret = f;
	return 0;
}

void fetcher_stop(struct fetcher *f)
{
	stop_readers(f);
	if (f->timers)
		timerq_stop(f->timers);
}

void fetcher_free(struct fetcher *f)
{
	if (!f)
		return;
	fetcher_stop(f);
	timerq_free(f->timers);
	device_free(f->device);
	pthread_cond_destroy(&f->job_wake);
	pthread_mutex_destroy(&f->job_lock);
	pthread_mutex_destroy(&f->device_lock);
	free(f);
}

struct device *fetcher_swap_device(struct fetcher *f, struct device *fresh)
{
	struct device *old;

	LOCK_SCOPE(&f->device_lock);
	old = f->device;
	f->device = fresh;
	device_limit(fresh, f->limit_mb_per_s, 0);
	return old;
}

void fetcher_limit_device(struct fetcher *f, double mb_per_s)
{
	LOCK_SCOPE(&f->device_lock);
	f->limit_mb_per_s = mb_per_s;
	device_limit(f->device, mb_per_s, tick_now(f->c.tick));
}

void fetcher_set_round_trip(struct fetcher *f, const struct round_trip *trip)
{
	double scale = tick_scale(f->c.tick);

	__atomic_store_n(&f->round_trip.busy_ns,
			 (uint64_t)((double)trip->busy_ns / scale),
			 __ATOMIC_RELAXED);
	/* the answer to what changes a file is as short as that to an open */
	for (int op = 0; op < STORAGE_N_OPS; op++)
		__atomic_store_n(
			&f->round_trip.alone_ns[op],
			(uint64_t)((double)trip
					   ->alone_ns[op < STORAGE_N_READING
							      ? op
							      : STORAGE_OPEN] /
				   scale),
			__ATOMIC_RELAXED);
	__atomic_store_n(&f->round_trip.alone_mib_ns,
			 (uint64_t)((double)trip->alone_mib_ns / scale),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&f->round_trip.slow_mib_ns,
			 (uint64_t)((double)trip->slow_mib_ns / scale),
			 __ATOMIC_RELAXED);
}

void fetcher_counts(const struct fetcher *f, uint64_t *ret_reads,
		    uint64_t *ret_bytes)
{
	*ret_reads = __atomic_load_n(&f->stats.backend_reads, __ATOMIC_RELAXED);
	*ret_bytes = __atomic_load_n(&f->stats.backend_bytes, __ATOMIC_RELAXED);
}

void fetcher_bill(struct fetcher *f, struct fetch_bill *ret)
{
	LOCK_SCOPE(&f->device_lock);
	*ret = f->bill;
}

void fetcher_stats(struct fetcher *f, struct fetch_stats *ret)
{
	memset(ret, 0, sizeof(*ret));
	fetcher_counts(f, &ret->backend_reads, &ret->backend_bytes);
	ret->writes = __atomic_load_n(&f->stats.writes, __ATOMIC_RELAXED);
	ret->bytes_written =
		__atomic_load_n(&f->stats.bytes_written, __ATOMIC_RELAXED);
	ret->syncs = __atomic_load_n(&f->stats.syncs, __ATOMIC_RELAXED);
	ret->inflight = __atomic_load_n(&f->stats.inflight, __ATOMIC_RELAXED);
	hist_merge(&ret->requested, &f->stats.requested);
	hist_merge(&ret->achieved, &f->stats.achieved);
	hist_merge(&ret->error, &f->stats.error);
	ret->round_trip.busy_ns =
		__atomic_load_n(&f->round_trip.busy_ns, __ATOMIC_RELAXED);
	for (int op = 0; op < STORAGE_N_OPS; op++)
		ret->round_trip.alone_ns[op] = __atomic_load_n(
			&f->round_trip.alone_ns[op], __ATOMIC_RELAXED);
	ret->round_trip.alone_mib_ns =
		__atomic_load_n(&f->round_trip.alone_mib_ns, __ATOMIC_RELAXED);
	ret->round_trip.slow_mib_ns =
		__atomic_load_n(&f->round_trip.slow_mib_ns, __ATOMIC_RELAXED);
}

void fetcher_reset_stats(struct fetcher *f)
{
	__atomic_store_n(&f->stats.backend_reads, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&f->stats.backend_bytes, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&f->stats.writes, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&f->stats.bytes_written, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&f->stats.syncs, 0, __ATOMIC_RELAXED);
	hist_reset(&f->stats.requested);
	hist_reset(&f->stats.achieved);
	hist_reset(&f->stats.error);
	LOCK_SCOPE(&f->device_lock);
	f->bill = (struct fetch_bill){ 0 };
}
