/* SPDX-License-Identifier: MIT */
/*
 * Threads of one job exclude each other by a mutex, jobs by a lock on the file.
 * A lock in the area itself would be at the mercy of whatever writes there.
 * Waiting is on futexes in the area, read under the lock and bumped after each
 * change, so no change is missed. A member that is killed between a change and
 * its wake-up is missed too, but then its death wakes the others.
 *
 * So it is with the lock: who does not get it waits on a futex, too. A job that
 * is stopped while it holds the lock holds up the others, as it does when they
 * wait for it to use a batch. But they can end.
 */
#include "loader/staging/staging.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/types.h>

#include "common/thread.h"
#include "common/units.h"
#include "common/util.h"

/*
 * --- jobs that end --------------------------------------------------------
 *
 * Detects the death of other processes of this machine, by their pidfds.
 */

struct deaths {
	void (*died)(void *ctx, uint32_t number);
	void *ctx;
	pthread_t thread;
	bool started;
	struct pollfd *fd; /* [0]: to stop */
	uint32_t *number;
	nfds_t n;
};

/* Joins the thread. NULL is allowed. */
static void deaths_free(struct deaths *d)
{
	if (!d)
		return;
	if (d->started) {
		eventfd_write(d->fd[0].fd, 1);
		pthread_join(d->thread, NULL);
	}
	for (nfds_t i = 0; i < d->n; i++)
		if (d->fd[i].fd >= 0)
			close(d->fd[i].fd);
	free(d->fd);
	free(d->number);
	free(d);
}

/* `died` is called on a thread of its own, once per process, with the number
 * that deaths_watch was given. -ENOMEM, -EMFILE. */
static int deaths_new(uint32_t most, void (*died)(void *ctx, uint32_t number),
		      void *ctx, struct deaths **ret)
{
	struct deaths *d = calloc(1, sizeof(*d));
	int stop = eventfd(0, EFD_CLOEXEC), r = stop < 0 ? -errno : 0;

	if (d) {
		d->fd = calloc(most + 1, sizeof(*d->fd));
		d->number = calloc(most + 1, sizeof(*d->number));
	}
	if (r == 0 && (!d || !d->fd || !d->number))
		r = -ENOMEM;
	if (d && d->fd && stop >= 0)
		d->fd[d->n++] = (struct pollfd){ .fd = stop, .events = POLLIN };
	else if (stop >= 0)
		close(stop);
	if (r < 0) {
		deaths_free(d);
		return r;
	}
	d->died = died;
	d->ctx = ctx;
	*ret = d;
	return 0;
}

/* Before deaths_start. -ESRCH: there is no such process. */
static int deaths_watch(struct deaths *d, pid_t pid, uint32_t number)
{
	int fd = pidfd_open(pid, 0);

	if (fd < 0)
		return -errno;
	d->number[d->n] = number;
	d->fd[d->n++] = (struct pollfd){ .fd = fd, .events = POLLIN };
	return 0;
}

static void *watch(void *arg)
{
	struct deaths *d = arg;

	while (!d->fd[0].revents) {
		if (poll(d->fd, d->n, -1) < 0)
			continue; /* EINTR */
		for (nfds_t i = 1; i < d->n; i++) {
			if (!d->fd[i].revents)
				continue;
			d->died(d->ctx, d->number[i]);
			close(d->fd[i].fd);
			/* poll ignores it */
			d->fd[i] = (struct pollfd){ .fd = -1 };
		}
	}
	return NULL;
}

static int deaths_start(struct deaths *d)
{
	int r = thread_start(&d->thread, NULL, watch, d);

	d->started = r == 0;
	return r;
}

/* Wall time after which one that waits for the lock looks again: who held it
 * may have been killed before it woke others. arbitrary: rare */
#define LOOK_AGAIN_NS (100 * NS_PER_MS)
/* Wall time that staging_stop leaves to those that wait for the lock.
 * arbitrary: it is held for microseconds */
#define PATIENCE_NS (200 * NS_PER_MS)

struct staging {
	struct staging_area area;
	struct tick *tick;
	uint64_t wait_ns;
	char name[AREA_NAME + 1];
	struct deaths *deaths; /* of the other members */
	atomic_bool stopped;
	pthread_mutex_t lock;
	/* lock guards all fields below */
	bool left;
	uint64_t dead; /* members, a bit each: not yet left in the area */
	uint64_t taken, done; /* batches below them are taken, used */
	uint64_t limit;	      /* of the epoch */
	plan_size_fn size;
	void *ctx;
	struct staging_stats stats; /* from the area once this job has left */
};

/* --- the lock ------------------------------------------------------------- */

static void bump(_Atomic uint32_t *word)
{
	atomic_fetch_add(word, 1);
	tick_futex_wake((const uint32_t *)word);
}

static void bump_all(struct staging *s)
{
	bump(&s->area.plan->published);
	bump(&s->area.plan->changed);
}

/* Wait for a change of a word with this value. True: too late. */
static bool wait_for(struct staging *s, const _Atomic uint32_t *word,
		     uint32_t value, uint64_t deadline)
{
	return tick_futex_wait(s->tick, (const uint32_t *)word, value,
			       deadline);
}

/* Of a wait of `wall_ns`. */
static uint64_t deadline_in(const struct staging *s, uint64_t wall_ns)
{
	return tick_now(s->tick) +
	       util_whole((double)wall_ns / tick_scale(s->tick));
}

/* -ETIMEDOUT: not until the deadline; -ECANCELED: nor after staging_stop. */
static int await_area(struct staging *s, uint64_t deadline)
{
	struct staging_plan *p = s->area.plan;
	uint64_t stopped = 0; /* since then */

	for (;;) {
		uint32_t value = atomic_load(&p->unlocked);
		int r = area_file_lock(&s->area.file);

		if (r != -EAGAIN)
			return r;
		if (tick_now(s->tick) >= deadline)
			return -ETIMEDOUT;
		if (atomic_load(&s->stopped) && !stopped)
			stopped = tick_wall();
		if (stopped && tick_wall() - stopped >= PATIENCE_NS)
			return -ECANCELED;
		atomic_fetch_add(&p->n_waiting, 1);
		wait_for(s, &p->unlocked, value,
			 MIN(deadline, deadline_in(s, LOOK_AGAIN_NS)));
		atomic_fetch_sub(&p->n_waiting, 1);
	}
}

/* Has nobody else written what this member writes? */
static bool is_sound(struct staging *s)
{
	struct staging_plan *p = s->area.plan;
	const struct plan_member *me = &p->member[s->area.me];

	return plan_valid(p) && PLAN_GET(me->life) == PLAN_ALIVE &&
	       PLAN_GET(me->done) == s->done &&
	       (!s->area.ring || PLAN_GET(p->bytes) == s->area.ring_bytes);
}

static void bury(struct staging *s)
{
	for (uint32_t i = 0; i < PLAN_MEMBERS; i++)
		if (s->dead >> i & 1)
			plan_leave(s->area.plan, i, PLAN_DIED);
	plan_free(s->area.plan);
	s->dead = 0;
}

static int lock_area_by(struct staging *s, uint64_t deadline)
{
	int r = 0;

	pthread_mutex_lock(&s->lock);
	if (s->left)
		r = -ECANCELED;
	if (r == 0)
		r = await_area(s, deadline);
	if (r == 0 && !is_sound(s)) {
		area_unlock(&s->area);
		r = -EPROTO;
	}
	if (r == 0 && s->dead)
		bury(s);
	if (r < 0)
		pthread_mutex_unlock(&s->lock);
	return r;
}

static int lock_area(struct staging *s)
{
	return lock_area_by(s, TICK_NEVER);
}

static void unlock_area(struct staging *s)
{
	area_unlock(&s->area);
	pthread_mutex_unlock(&s->lock);
}

/* --- membership ----------------------------------------------------------- */

int staging_join(const struct staging_config *c, struct staging **ret,
		 struct err *err)
{
	struct staging *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_set(err, -ENOMEM, "out of memory");
	s->tick = c->tick;
	s->wait_ns = c->wait_ns;
	snprintf(s->name, sizeof(s->name), "%s", c->name);
	s->stats.jobs = c->jobs;
	pthread_mutex_init(&s->lock, NULL);
	r = area_join(c, &s->area, err);
	if (r < 0) {
		s->left = true;
		staging_free(s);
		return r;
	}
	bump_all(s);
	*ret = s;
	return 0;
}

static int too_few(const struct staging *s, uint32_t n, struct err *err)
{
	char wait[UNITS_TEXT];

	return err_set(err, -EAGAIN,
		       "%s: %" PRIu32 " of %" PRIu32 " jobs have joined within "
		       "%s: start the others, or give a longer wait=TIME (0s: "
		       "no limit)",
		       s->name, n, s->stats.jobs,
		       units_exact_duration(s->wait_ns, wait));
}

static int wait_for_all(struct staging *s, struct err *err)
{
	struct staging_plan *p = s->area.plan;
	uint64_t deadline = s->wait_ns ? deadline_in(s, s->wait_ns)
				       : TICK_NEVER;
	bool late = false;

	for (;;) {
		uint32_t n, phase, value;
		int r = lock_area_by(s, deadline), error;

		if (r == -ETIMEDOUT)
			return err_set(err, -EAGAIN,
				       "another job of %s holds its lock; is "
				       "it stopped?",
				       s->name);
		if (r < 0)
			return r;
		n = area_n_living(&s->area);
		phase = p->phase;
		error = p->error;
		value = atomic_load(&p->published);
		unlock_area(s);
		if (phase == PLAN_RUNNING)
			return 0;
		if (phase == PLAN_FAILED)
			return area_no_memory(&s->area, error, err);
		if (atomic_load(&s->stopped))
			return -ECANCELED;
		if (late)
			return too_few(s, n, err);
		late = wait_for(s, &p->published, value, deadline);
	}
}

static void member_died(void *ctx, uint32_t i)
{
	struct staging *s = ctx;

	pthread_mutex_lock(&s->lock);
	s->dead |= (uint64_t)1 << i;
	pthread_mutex_unlock(&s->lock);
	if (lock_area(s) == 0)
		unlock_area(s);
	/* else that is what they are to find */
	bump_all(s);
}

static int watch_others(struct staging *s, struct err *err)
{
	const struct staging_plan *p = s->area.plan;
	int r = deaths_new(PLAN_MEMBERS, member_died, s, &s->deaths);

	for (uint32_t i = 0; r == 0 && i < PLAN_MEMBERS; i++) {
		if (i == s->area.me || p->member[i].life != PLAN_ALIVE)
			continue;
		r = deaths_watch(s->deaths, p->member[i].pid, i);
		/* the process that has this pid now may be another one */
		if (r == -ESRCH || !area_file_lives(&s->area.file, i)) {
			member_died(s, i);
			r = 0;
		}
	}
	if (r == 0)
		r = deaths_start(s->deaths);
	return r < 0 ? err_set(err, r, "cannot watch the other jobs: %s",
			       strerror(-r))
		     : 0;
}

int staging_begin(struct staging *s, struct err *err)
{
	uint64_t start = tick_wall();
	int r = wait_for_all(s, err);

	s->stats.join_ns = tick_wall() - start;
	if (r == 0)
		r = area_map(&s->area, err);
	if (r == 0)
		r = watch_others(s, err);
	return r == -EPROTO ? err_set(err, r, "%s: the staging area is damaged",
				      s->name)
			    : r;
}

/* Under the lock. */
static struct staging_stats stats_of(const struct staging *s)
{
	const struct staging_plan *p = s->area.plan;
	struct staging_stats ret = s->stats;

	ret.died = plan_n_members(p, PLAN_DIED);
	ret.bytes = PLAN_GET(p->bytes);
	ret.most_bytes = PLAN_GET(p->most_bytes);
	ret.made = PLAN_GET(p->member[s->area.me].made);
	ret.taken_over = PLAN_GET(p->member[s->area.me].taken_over);
	return ret;
}

struct staging_stats staging_stats(struct staging *s)
{
	struct staging_stats ret;

	if (lock_area(s) < 0)
		return s->stats;
	ret = stats_of(s);
	unlock_area(s);
	return ret;
}

/* False: it has left before. */
static bool leave(struct staging *s)
{
	bool left;

	if (lock_area(s) == 0) {
		s->stats = stats_of(s);
		plan_leave(s->area.plan, s->area.me, PLAN_LEFT);
		plan_free(s->area.plan);
		area_leave(&s->area);
		s->left = true;
		unlock_area(s);
		return true;
	}
	pthread_mutex_lock(&s->lock);
	left = s->left;
	s->left = true;
	pthread_mutex_unlock(&s->lock);
	return !left;
}

void staging_leave(struct staging *s)
{
	if (!s || !leave(s))
		return;
	atomic_store(&s->stopped, true);
	bump_all(s);
}

void staging_free(struct staging *s)
{
	if (!s)
		return;
	staging_leave(s);
	deaths_free(s->deaths);
	area_close(&s->area);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

void staging_stop(struct staging *s)
{
	atomic_store(&s->stopped, true);
	bump_all(s);
	bump(&s->area.plan->unlocked);
}

void staging_resume(struct staging *s)
{
	atomic_store(&s->stopped, false);
}

/* --- making batches ------------------------------------------------------- */

int staging_enter(struct staging *s, uint64_t from, uint64_t limit,
		  plan_size_fn size, void *ctx)
{
	struct staging_plan *p = s->area.plan;
	int r = lock_area(s);

	if (r < 0)
		return r;
	s->size = size;
	s->ctx = ctx;
	s->taken = s->done = from;
	s->limit = limit;
	plan_give_back(p, s->area.me);
	plan_use(p, s->area.me, from);
	plan_free(p);
	unlock_area(s);
	bump_all(s);
	return 0;
}

int staging_claim(struct staging *s, uint32_t most, uint64_t *ret)
{
	struct staging_plan *p = s->area.plan;

	for (;;) {
		uint32_t value;
		int r = lock_area(s);

		if (r < 0)
			return r;
		plan_free(p);
		plan_grow(p, s->limit, s->size, s->ctx);
		r = plan_claim(p, s->area.me, most, s->limit, ret);
		value = atomic_load(&p->changed);
		unlock_area(s);
		if (r == 0)
			bump(&p->changed); /* others may claim one more, too */
		if (r != -EAGAIN)
			return r;
		if (atomic_load(&s->stopped))
			return -ECANCELED;
		wait_for(s, &p->changed, value, TICK_NEVER);
	}
}

void *staging_memory(struct staging *s, uint64_t index, uint64_t bytes)
{
	const struct plan_batch *b;
	void *data = NULL;

	if (lock_area(s) < 0)
		return NULL;
	b = plan_find(s->area.plan, index);
	if (b && PLAN_GET(b->state) == PLAN_HELD &&
	    PLAN_GET(b->maker) == s->area.me && bytes <= PLAN_GET(b->bytes))
		data = area_at(&s->area, PLAN_GET(b->offset), bytes);
	unlock_area(s);
	return data;
}

int staging_publish(struct staging *s, uint64_t index, uint32_t n,
		    double read_share)
{
	int r = lock_area(s);

	if (r < 0)
		return r;
	r = plan_publish(s->area.plan, s->area.me, index, n, tick_wall(),
			 read_share);
	unlock_area(s);
	bump_all(s);
	return r;
}

void staging_give_back(struct staging *s)
{
	/* `size` is not to be called, whether the area can be locked or not */
	pthread_mutex_lock(&s->lock);
	s->limit = 0;
	pthread_mutex_unlock(&s->lock);
	if (lock_area(s) < 0)
		return; /* staging_enter or staging_leave will */
	plan_give_back(s->area.plan, s->area.me);
	unlock_area(s);
	bump(&s->area.plan->changed);
}

/* --- using batches -------------------------------------------------------- */

/* -EAGAIN: it is not made yet. */
static int find_ready(struct staging *s, struct staged_batch *ret)
{
	const struct plan_batch *b = plan_find(s->area.plan, s->taken);

	if (s->taken >= s->limit)
		return -EAGAIN; /* of the next epoch */
	if (!b)
		return s->taken < PLAN_GET(s->area.plan->first) ? -EPROTO
								: -EAGAIN;
	if (PLAN_GET(b->state) != PLAN_READY)
		return -EAGAIN;
	*ret = (struct staged_batch){ .index = s->taken,
				      .bytes = PLAN_GET(b->bytes),
				      .n = PLAN_GET(b->n),
				      .made_ns = PLAN_GET(b->made_ns),
				      .read_share = b->read_share };
	ret->data = area_at(&s->area, PLAN_GET(b->offset), ret->bytes);
	if (!ret->data)
		return -EPROTO;
	s->taken++;
	return 0;
}

int staging_take(struct staging *s, uint64_t deadline, struct staged_batch *ret)
{
	struct staging_plan *p = s->area.plan;
	bool late = false;

	for (;;) {
		uint32_t value;
		int r = lock_area_by(s, deadline);

		if (r < 0)
			return r;
		r = find_ready(s, ret);
		value = atomic_load(&p->published);
		unlock_area(s);
		if (r != -EAGAIN)
			return r;
		if (atomic_load(&s->stopped))
			return -ECANCELED;
		if (late)
			return -ETIMEDOUT;
		late = wait_for(s, &p->published, value, deadline);
	}
}

void staging_use(struct staging *s)
{
	bool freed;

	if (lock_area(s) < 0)
		return;
	plan_use(s->area.plan, s->area.me, ++s->done);
	freed = plan_free(s->area.plan);
	s->stats.used++;
	unlock_area(s);
	if (freed)
		bump(&s->area.plan->changed);
}

uint32_t staging_n_ready(struct staging *s)
{
	uint32_t n;

	if (lock_area(s) < 0)
		return 0;
	n = plan_n_ready(s->area.plan, s->taken);
	n = (uint32_t)MIN(n, s->limit - MIN(s->limit, s->taken));
	unlock_area(s);
	return n;
}
