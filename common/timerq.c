/* SPDX-License-Identifier: MIT */
/*
 * A heap under one mutex. Adding a timer that becomes the earliest
 * wakes the thread; other adds do not, so a burst of requests with growing
 * deadlines costs one wake-up.
 *
 *	thread:  [heap empty] wait for signal
 *	         [earliest > now + spin] cond wait until then, or a signal
 *	         [earliest <= now + spin] pop, drop the lock, spin, fire
 *
 * With many timers pending the next deadline may always be less than a spin
 * away, and spinning would take a whole core from producers and consumers. Then
 * the thread wakes up earlier only by its observed wake-up lateness, and may
 * spin for a share of all time. When this credit is spent it sleeps until the
 * deadline itself, and fires all timers that are due by then.
 *
 * A client woken by a reply may be on a sleeping processor too. With
 * tick_keep_awake processors stay awake until a spin after the last reply, for
 * the next request of the client; not while many timers are pending.
 */
#include "common/timerq.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/heap.h"
#include "common/thread.h"
#include "common/util.h"

/* arbitrary: a reader or two with some readahead spin, a crowd does not */
enum { SPIN_UP_TO = 8 };
/* Many timers are many until so long after the last time that they were, in
 * spins: a burst of requests comes and goes within less. arbitrary */
enum { CROWD_SPINS = 16 };
/* The spin budget with more timers, as a share of a core; and the maximum
 * credit, in spins. arbitrary: 64 GPUs with steps of 100 ms use a third of it
 */
enum { SPIN_PERCENT = 5, SPINS_SAVED = 64 };
/* Tracks the 90th percentile of wake-up lateness: the lead grows nine times as
 * much on a longer wait as it shrinks on a shorter one. arbitrary: of 120 us
 * 0.5 us, so that it settles within some 200 waits */
enum { LEAD_STEPS = 256, LEAD_UP = 9 };

struct timerq {
	struct tick *tick;
	timerq_fire_fn fire;
	void *ctx;
	pthread_t thread;
	bool awake;	/* the thread's: it holds processors awake */
	uint64_t fired; /* the thread's: when it last did */
	/* the thread's, for many timers, all in emulated ns */
	uint64_t lead;	 /* how much earlier it wakes up */
	uint64_t credit; /* time it may spin */
	uint64_t earned; /* when credit was last added to */
	uint64_t crowd_until;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	/* below: under lock */
	struct timer **heap;
	size_t n, capacity;
	uint64_t next_seq;
	bool stopping;
	bool moved; /* a timer was, while the thread waited */
};

static bool before(struct timer *const *a, struct timer *const *b)
{
	return (*a)->deadline != (*b)->deadline
		       ? (*a)->deadline < (*b)->deadline
		       : (*a)->seq < (*b)->seq;
}

DEFINE_HEAP(timers, struct timer *, before, heap_unplaced)

static struct timer *pop(struct timerq *q)
{
	struct timer *top = q->heap[0];

	q->heap[0] = q->heap[--q->n];
	timers_fix(q->heap, q->n, 0);
	return top;
}

/* May it spin before each timer? */
static bool are_few(struct timerq *q)
{
	if (q->n > SPIN_UP_TO)
		q->crowd_until = q->fired + CROWD_SPINS * tick_spin(q->tick);
	return q->fired >= q->crowd_until;
}

static void earn(struct timerq *q, uint64_t now)
{
	q->credit = MIN(q->credit + (now - q->earned) * SPIN_PERCENT / 100,
			SPINS_SAVED * tick_spin(q->tick));
	q->earned = now;
}

/* A wait until `asked` has timed out. */
static void learn(struct timerq *q, uint64_t asked)
{
	uint64_t step = tick_spin(q->tick) / LEAD_STEPS;

	if (tick_now(q->tick) - asked > q->lead)
		q->lead = MIN(q->lead + LEAD_UP * step, tick_spin(q->tick));
	else
		q->lead -= MIN(step, q->lead);
}

static bool wait_among_many(struct timerq *q, uint64_t deadline)
{
	uint64_t now = tick_now(q->tick), lead;

	earn(q, now);
	lead = q->credit >= q->lead ? q->lead : 0;
	if (deadline <= now + lead)
		return true;
	if (!tick_cond_wait_coarse(q->tick, &q->wake, &q->lock,
				   deadline - lead))
		return false;
	learn(q, deadline - lead);
	return true;
}

/* Spin for the rest. */
static void finish_wait(struct timerq *q, uint64_t deadline, bool few)
{
	uint64_t now = few ? deadline : tick_now(q->tick);

	tick_finish(q->tick, deadline);
	if (now < deadline)
		q->credit -= MIN(deadline - now, q->credit);
}

static void set_awake(struct timerq *q, bool awake)
{
	if (awake == q->awake)
		return;
	q->awake = awake;
	if (awake)
		tick_hold_awake(q->tick);
	else
		tick_let_sleep(q->tick);
}

/* Keep processors awake when needed. True: it had to wait, so the state may
 * have changed. */
static bool mind_processors(struct timerq *q)
{
	uint64_t now = tick_now(q->tick), from = TICK_NEVER;
	uint64_t until = q->fired + tick_spin(q->tick);

	if (q->n)
		from = q->heap[0]->deadline -
		       MIN(q->heap[0]->deadline, tick_early(q->tick));
	if (now >= from || q->n > SPIN_UP_TO) {
		set_awake(q, q->n <= SPIN_UP_TO);
		return false;
	}
	if (now >= until)
		set_awake(q, false);
	if (q->awake || from != TICK_NEVER) {
		tick_cond_wait_coarse(q->tick, &q->wake, &q->lock,
				      q->awake ? MIN(until, from) : from);
		return true;
	}
	return false;
}

/* Wait until the earliest timer may be popped (true), or the state has changed.
 */
static bool wait_earliest(struct timerq *q)
{
	uint64_t deadline = q->n ? q->heap[0]->deadline : TICK_NEVER;

	if (tick_keeps_awake(q->tick) && mind_processors(q))
		return false;
	if (deadline <= tick_now(q->tick))
		return true;
	if (!are_few(q))
		return wait_among_many(q, deadline);
	return tick_cond_wait(q->tick, &q->wake, &q->lock, deadline);
}

static void *run_timers(void *arg)
{
	struct timerq *q = arg;

	tick_urgent(q->tick);
	pthread_mutex_lock(&q->lock);
	while (!q->stopping) {
		q->moved = false;
		/* timed out: still the earliest, or one that came before it */
		if (!wait_earliest(q) || q->stopping || q->moved)
			continue;
		bool few = are_few(q);
		struct timer *t = pop(q);

		pthread_mutex_unlock(&q->lock);
		finish_wait(q, t->deadline, few);
		q->fire(t, false, q->ctx);
		q->fired = tick_now(q->tick);
		pthread_mutex_lock(&q->lock);
	}
	pthread_mutex_unlock(&q->lock);
	return NULL;
}

int timerq_new(struct tick *tick, timerq_fire_fn fire, void *ctx,
	       struct timerq **ret)
{
	struct timerq *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	q->tick = tick;
	q->fire = fire;
	q->ctx = ctx;
	q->lead = tick_spin(tick);
	tick_mutex_init(&q->lock);
	tick_cond_init(&q->wake);
	int r = thread_start(&q->thread, NULL, run_timers, q);

	if (r < 0) {
		free(q);
		return r;
	}
	*ret = q;
	return 0;
}

void timerq_stop(struct timerq *q)
{
	bool stopped;

	pthread_mutex_lock(&q->lock);
	stopped = q->stopping;
	q->stopping = true;
	pthread_cond_signal(&q->wake);
	pthread_mutex_unlock(&q->lock);
	if (stopped)
		return;
	pthread_join(q->thread, NULL);
	set_awake(q, false);
	/* no timer is added any more */
	while (q->n)
		q->fire(pop(q), true, q->ctx);
}

void timerq_free(struct timerq *q)
{
	if (!q)
		return;
	timerq_stop(q);
	pthread_cond_destroy(&q->wake);
	pthread_mutex_destroy(&q->lock);
	free(q->heap);
	free(q);
}

int timerq_add(struct timerq *q, struct timer *timer, uint64_t deadline)
{
	bool wake;

	pthread_mutex_lock(&q->lock);
	if (q->stopping) {
		pthread_mutex_unlock(&q->lock);
		return -ECANCELED;
	}
	if (q->n == q->capacity) {
		size_t capacity = q->capacity ? 2 * q->capacity : 256;
		struct timer **heap =
			realloc(q->heap, capacity * sizeof(*heap));

		if (!heap) {
			pthread_mutex_unlock(&q->lock);
			return -ENOMEM;
		}
		q->heap = heap;
		q->capacity = capacity;
	}
	timer->deadline = deadline;
	timer->seq = q->next_seq++;
	q->heap[q->n++] = timer;
	timers_up(q->heap, q->n - 1);
	wake = q->heap[0] == timer;
	pthread_mutex_unlock(&q->lock);
	if (wake)
		pthread_cond_signal(&q->wake);
	return 0;
}

bool timerq_move(struct timerq *q, struct timer *timer, uint64_t deadline)
{
	size_t i = 0;
	bool found;

	pthread_mutex_lock(&q->lock);
	while (i < q->n && q->heap[i] != timer)
		i++;
	found = i < q->n;
	if (found) {
		timer->deadline = deadline;
		timers_fix(q->heap, q->n, i);
		q->moved = true;
		pthread_cond_signal(&q->wake);
	}
	pthread_mutex_unlock(&q->lock);
	return found;
}
