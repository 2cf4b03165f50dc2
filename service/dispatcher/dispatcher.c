/* SPDX-License-Identifier: MIT */
#include "service/dispatcher/dispatcher.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <utlist.h>

#include "common/json.h"
#include "common/log.h"
#include "common/thread.h"
#include "common/util.h"
#include "net/wire.h"
#include "service/decide/scale.h"
#include "service/dispatcher/state.h"

/*
 * --- workers on demand ----------------------------------------------------
 *
 * Private to the dispatcher: how many workers its jobs need, by the formula of
 * service/decide/scale.h, from what trainers and workers report.
 */

/* Time-outs before a smaller estimate counts. arbitrary: the first batches of
 * an epoch say little, and a worker is soon drained but slowly started */
enum { PATIENCE = 4 };

/* What uses batches that are made for it alone: the consumers of rounds, each
 * as far as it reported, or all trainers as one. Returns how many. */
static size_t targets_of(const struct dispatcher *d, const struct job *j,
			 uint64_t ret[PREPD_CONSUMERS])
{
	size_t n = j->share.how == SHARE_ROUNDS ? j->share.consumers : 1;
	const struct guest *g;

	if (!j->target_ns)
		return 0;
	for (size_t i = 0; i < n; i++)
		ret[i] = j->target_ns;
	DL_FOREACH (d->guests, g) {
		if (n > 1 && g->target_ns && state_is_trainer(g, j->id))
			ret[g->consumer] = g->target_ns;
	}
	return n;
}

/* The workers that this job alone needs; 0: not known. */
static uint64_t estimate(struct dispatcher *d, const struct job *j)
{
	uint64_t ns[REGISTRY_MOST], target[PREPD_CONSUMERS], wanted;
	size_t n = 0, n_targets = targets_of(d, j, target);

	for (int i = 0; i < REGISTRY_MOST; i++)
		if (j->worker[i].ns &&
		    registry_find(&d->registry, j->worker[i].id))
			ns[n++] = j->worker[i].ns;
	if (scale_estimate(ns, n, target, n_targets, &wanted))
		return 0;
	return wanted;
}

static void estimate_all(struct dispatcher *d)
{
	uint64_t wanted = 0, now = tick_now(d->c.tick);
	bool shrinks = now >= d->shrink_at;

	for (uint32_t i = 0; i < d->book.n; i++) {
		uint64_t n = estimate(d, d->book.job[i]);

		wanted = MAX(wanted, n);
		/* these need the workers that they began with */
		shrinks = shrinks && d->book.job[i]->share.how != SHARE_ROUNDS;
	}
	if (!wanted || (wanted < d->wanted && !shrinks))
		return;
	d->shrink_at = now + PATIENCE * d->c.timeout_ns;
	if (wanted == d->wanted)
		return;
	log_info("%" PRIu64 " workers needed, %" PRIu32 " connected", wanted,
		 d->registry.n);
	d->wanted = wanted;
}

/* A worker takes `ns` for a batch of the job, a trainer `ns` to use one; of
 * several the fastest counts. */
static void scaler_cost(struct dispatcher *d, uint64_t job, uint64_t worker,
			uint64_t ns)
{
	struct job *j = book_find(&d->book, job);
	struct job_worker *w = j ? state_job_worker(d, j, worker) : NULL;

	if (!w)
		return;
	w->ns = ns;
	estimate_all(d);
}

static void scaler_target(struct guest *trainer, uint64_t ns)
{
	struct dispatcher *d = trainer->d;
	struct job *j = book_find(&d->book, trainer->id);
	const struct guest *g;

	if (!j)
		return;
	trainer->target_ns = j->target_ns = ns;
	DL_FOREACH (d->guests, g) {
		if (g->target_ns && state_is_trainer(g, j->id))
			j->target_ns = MIN(j->target_ns, g->target_ns);
	}
	estimate_all(d);
}

/* One, to begin with, makes the first batches, from which the others follow. */
static void scaler_round(struct dispatcher *d)
{
	uint64_t n = d->wanted ? scale_next(MAX(d->registry.n, 1), d->wanted)
			       : 1;
	uint32_t target = (uint32_t)MIN(n, d->c.workers_most);

	if (target == __atomic_load_n(&d->target, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&d->target, target, __ATOMIC_RELAXED);
	fleet_wake(&d->fleet);
}

/*
 * --- trainers -------------------------------------------------------------
 *
 * And their jobs.
 */

static void tell_tasks(struct dispatcher *d, struct guest *trainer)
{
	for (uint32_t i = 0; i < d->registry.n; i++) {
		struct msg m;

		if (!d->registry.worker[i].address)
			continue;
		m = state_task_msg(&d->registry.worker[i], true);
		state_tell(trainer, &m);
	}
}

/* Those that had failed before it came. */
static void tell_failures(struct dispatcher *d, struct guest *trainer,
			  const struct job *j)
{
	for (int i = 0; i < REGISTRY_MOST; i++) {
		const struct job_worker *w = &j->worker[i];
		struct msg m = { .type = PREPD_FAILED,
				 .job = j->id,
				 .id = w->id,
				 .rest = w->why };

		if (!w->why || !registry_find(&d->registry, w->id))
			continue;
		m.n_rest = strlen(w->why);
		state_tell(trainer, &m);
	}
}

static void refuse(struct guest *g, const char *why)
{
	log_warn("a trainer was refused: %s", why);
	outbox_refuse(&g->out, g->conn, -EPROTO, why);
}

static int drop_job(struct dispatcher *d, uint64_t job)
{
	struct msg event = { .type = PREPD_DROP, .job = job };
	int r = state_record(d, &event);

	if (r == 0)
		state_tell_all(d, PREPD_WORKER, &event);
	return r;
}

/* Its connection before this one. A job that is not shared has one trainer. */
static bool is_before(const struct guest *g, const struct guest *other,
		      const struct job *j)
{
	return j->share.how == SHARE_NONE || g->trainer == other->trainer;
}

/* NULL, or why not. */
static const char *join(struct guest *g, const struct job *j,
			const struct msg *m)
{
	struct guest *other;

	if (!book_job_equals(j, m))
		return "its job has a trainer with other data, transforms, "
		       "seed, batches or consumers";
	if (j->share.how == SHARE_ROUNDS && g->consumer >= j->share.consumers)
		return "its number is not one of its job's consumers";
	DL_FOREACH (g->d->guests, other) {
		if (other == g || !other->joined || other->id != g->id ||
		    other->conn->why)
			continue;
		if (is_before(g, other, j))
			conn_end(other->conn, -ECONNRESET);
		else if (j->share.how == SHARE_ROUNDS &&
			 other->consumer == g->consumer)
			return "its job has another trainer of this number";
	}
	g->joined = true;
	return NULL;
}

/* The first trainer of a job brings it. One that has it from a dispatcher that
 * was there before goes on with what workers have of it. */
static int begin_job(struct dispatcher *d, const struct msg *m)
{
	struct msg event = *m;
	int r;

	event.id = 0;
	if (!m->c && getrandom(&event.id, sizeof(event.id), 0) < 0)
		return -errno;
	r = state_record_sync(d, &event);
	if (r == 0)
		state_tell_all(d, PREPD_WORKER, &event);
	return r;
}

/* A trainer that is connected again, or shares a job, brings one that is
 * there. */
static int take_job(struct guest *g, const struct msg *m)
{
	struct dispatcher *d = g->d;
	struct job *j = book_find(&d->book, g->id);
	const char *why = NULL;
	int r = 0;

	if (m->job != g->id || !book_job_fits(m))
		return -EPROTO;
	/* its name is used again, by a trainer that it never had */
	if (j && !m->c && !state_has_trainers(d, j->id)) {
		r = drop_job(d, TAKE_PTR(j)->id);
		if (r < 0)
			return r;
	}
	if (!j) {
		r = begin_job(d, m);
		j = book_find(&d->book, g->id);
	}
	if (r < 0 && r != -ENOSPC)
		return r;
	why = r == -ENOSPC ? "the dispatcher has too many jobs" : join(g, j, m);
	if (why) {
		refuse(g, why);
		return 0;
	}
	tell_tasks(d, g);
	tell_failures(d, g, j);
	return 0;
}

/* The workers of SPLIT_STATIC are those that are there now. */
static int begin_epoch(struct guest *g, struct job *j, const struct msg *m)
{
	struct dispatcher *d = g->d;
	unsigned char slots[REGISTRY_MOST * 8], *at = slots;
	struct msg event = { .type = PREPD_EPOCH,
			     .job = j->id,
			     .epoch = m->epoch,
			     .a = m->a,
			     .rest = slots };
	bool fixed = j->mode == SPLIT_STATIC || j->share.how == SHARE_ROUNDS;
	int r;

	for (uint32_t i = 0; fixed && i < d->registry.n; i++)
		if (d->registry.worker[i].address &&
		    !d->registry.worker[i].leaving)
			at = wire_put(at, d->registry.worker[i].id, 8);
	event.n_rest = (size_t)(at - slots);
	if (fixed && !event.n_rest) {
		refuse(g, "static splits and rounds need workers before the "
			  "first epoch begins");
		return 0;
	}
	r = state_record_sync(d, &event);
	if (r < 0)
		return r;
	d->counts.epochs++;
	event = state_epoch_msg(j);
	state_tell_all(d, PREPD_WORKER, &event);
	return 0;
}

/* Whose turn it is in rounds. */
static void tell_turns(struct guest *g, const struct job *j)
{
	unsigned char slots[REGISTRY_MOST * 8], *at = slots;
	struct msg m = state_epoch_msg(j);

	for (uint32_t i = 0; i < j->splits.n_slots; i++)
		at = wire_put(at, j->splits.slot[i], 8);
	m.rest = slots;
	m.n_rest = (size_t)(at - slots);
	state_tell(g, &m);
}

static int take_epoch(struct guest *g, const struct msg *m)
{
	struct job *j = book_find(&g->d->book, g->id);
	int r = 0;

	if (!j || !g->joined || m->n_rest)
		return -EPROTO;
	/* what is shared has no end: each trainer has epochs of its own */
	if (!j->begun || (j->share.how == SHARE_NONE && j->epoch != m->epoch))
		r = begin_epoch(g, j, m);
	else if (j->share.how == SHARE_NONE && j->splits.samples != m->a)
		r = -EPROTO;
	else
		state_tell_lost(g->d, j, 0);
	if (r == 0 && j->begun && j->share.how == SHARE_ROUNDS)
		tell_turns(g, j);
	return r;
}

static int take_done(struct guest *g, const struct msg *m)
{
	struct dispatcher *d = g->d;
	const struct job *j = book_epoch(&d->book, m->job, m->epoch);
	int r;

	if (!j || j->id != g->id || m->split >= j->splits.n)
		return -EPROTO;
	if (j->splits.state[m->split] == SPLIT_DONE)
		return 0;
	r = state_record(d, m);
	d->counts.done += r == 0;
	return r;
}

/* The last one takes the job with it. */
static int leave(struct guest *g)
{
	if (!g->joined)
		return 0;
	g->joined = false;
	return state_has_trainers(g->d, g->id) ? 0 : drop_job(g->d, g->id);
}

static int trainers_message(struct guest *g, const struct msg *m)
{
	switch (m->type) {
	case PREPD_BEAT:
		if (m->b)
			scaler_target(g, m->b);
		state_tell(g, m);
		return 0;
	case PREPD_JOB: return take_job(g, m);
	case PREPD_EPOCH: return take_epoch(g, m);
	case PREPD_DONE: return take_done(g, m);
	case PREPD_DROP: return leave(g);
	default: return -EPROTO;
	}
}

/* Drop the jobs whose trainers did not come back; returns when the next is
 * due. */
static uint64_t trainers_expire(struct dispatcher *d, uint64_t now)
{
	uint64_t due = TICK_NEVER;

	for (uint32_t i = d->book.n; i > 0; i--) {
		const struct job *j = d->book.job[i - 1];
		uint64_t until = j->gone_at + d->c.job_timeout_ns;

		if (state_has_trainers(d, j->id))
			continue;
		if (now >= until) {
			log_warn("job %016" PRIx64
				 ": dropped: its trainer is not connected",
				 j->id);
			drop_job(d, j->id);
		} else {
			due = MIN(due, until);
		}
	}
	return due;
}

/* --- workers -------------------------------------------------------------- */

/* Splits of one request. arbitrary: more than the windows of a worker */
enum { MOST_WANTED = 256 };
/* Bytes of a reason. arbitrary: as long as one is; of all workers they are a
 * tenth of OUTBOX_MOST */
enum { MOST_WHY = 1024 };

static void tell_gone(struct dispatcher *d, const struct registered *w)
{
	struct msg m = state_task_msg(w, false);

	state_tell_all(d, PREPD_TRAINER, &m);
}

/* It is gone. -EIO. */
static int workers_remove(struct dispatcher *d, uint64_t id)
{
	const struct registered *w = registry_find(&d->registry, id);
	struct guest *g = state_find(d, PREPD_WORKER, id);

	d->counts.workers_lost++;
	if (w && w->address)
		log_warn("worker %s is lost", w->address);
	if (w)
		tell_gone(d, w);
	registry_remove(&d->registry, id);
	state_forget_worker(d, id);
	if (g)
		conn_end(g->conn, -ETIMEDOUT);
	return state_lose(d, 0, id);
}

static bool has_splits(const struct dispatcher *d, uint64_t worker)
{
	for (uint32_t i = 0; i < d->book.n; i++)
		if (splits_has(&d->book.job[i]->splits, worker))
			return true;
	return false;
}

/* Workers that leave, and have nothing to finish, may end. */
static void workers_let_go(struct dispatcher *d, uint64_t now)
{
	const struct msg leave = { .type = PREPD_LEAVE };

	for (uint32_t i = d->registry.n; i > 0; i--) {
		const struct registered *w = &d->registry.worker[i - 1];
		struct guest *g = state_find(d, PREPD_WORKER, w->id);

		if (!w->leaving || !g || has_splits(d, w->id))
			continue;
		log_info("worker %s has left", w->address);
		tell_gone(d, w);
		state_tell(g, &leave);
		conn_await(g->conn, true, now); /* its end */
		g->left = true;
		g->role = 0;
		d->counts.workers_left++;
		registry_remove(&d->registry, w->id);
	}
}

/* A HELLO, answered by `welcome` first. -ENOSPC: too many workers, and no
 * answer; others end the connection. */
static int workers_add(struct guest *g, const struct msg *m,
		       const struct msg *welcome, uint64_t now)
{
	struct dispatcher *d = g->d;
	struct guest *same = state_find(d, PREPD_WORKER, m->id);
	_cleanup_free_ char *address = msg_text(m);
	struct msg task;
	uint64_t old;
	int r;

	if (!address || !m->id || addr_check(address, NULL) < 0)
		return address ? -EPROTO : -ENOMEM;
	if (same)
		conn_end(same->conn, -ECONNRESET);
	r = registry_add(&d->registry, m->id, address, now, &old);
	if (r == 0 && old)
		r = workers_remove(d, old);
	if (r < 0)
		return r;
	g->role = PREPD_WORKER;
	g->id = m->id;
	log_info("worker %s", address);
	state_tell(g, welcome);
	for (uint32_t i = 0; i < d->book.n; i++)
		state_tell_job(g, d->book.job[i]);
	task = state_task_msg(registry_find(&d->registry, m->id), true);
	state_tell_all(d, PREPD_TRAINER, &task);
	return 0;
}

/* One that leaves finishes its static share alone. */
static int give_splits(struct guest *g, const struct msg *m, bool leaving)
{
	struct dispatcher *d = g->d;
	struct job *j = book_epoch(&d->book, m->job, m->epoch);
	struct msg given[MOST_WANTED];
	uint32_t n = 0, want = MIN(m->count, MOST_WANTED);
	int r = 0;

	if (!j) /* the epoch is over; the worker has yet to hear it */
		return 0;
	while (r == 0 && n < want) {
		struct msg *e = &given[n];

		*e = (struct msg){ .type = PREPD_SPLIT,
				   .job = j->id,
				   .epoch = j->epoch,
				   .id = g->id };
		r = leaving && j->mode == SPLIT_DYNAMIC
			    ? -ENODATA
			    : splits_next(&j->splits, g->id, &e->split);
		if (r == 0)
			r = state_record(d, e);
		n += r == 0;
	}
	if (r < 0 && r != -ENODATA)
		return r;
	if (n && state_check(d, journal_sync(&d->journal)) < 0)
		return -EIO;
	d->counts.assigned += n;
	for (uint32_t i = 0; i < n; i++)
		state_tell(g, &given[i]);
	if (r == -ENODATA) {
		struct msg none = { .type = PREPD_NONE,
				    .job = j->id,
				    .epoch = j->epoch };

		state_tell(g, &none);
	}
	return 0;
}

/* For the trainers that are there, and those that join later. */
static int take_failure(struct guest *g, const struct msg *m)
{
	struct dispatcher *d = g->d;
	struct job *j = book_find(&d->book, m->job);
	struct job_worker *w = j ? state_job_worker(d, j, g->id) : NULL;
	struct msg why = *m;

	why.id = g->id;
	why.n_rest = MIN(m->n_rest, MOST_WHY);
	if (!w)
		return 0;
	free(w->why);
	w->why = msg_text(&why);
	state_tell_trainers(d, m->job, &why);
	return state_lose(d, m->job, g->id);
}

static int workers_message(struct guest *g, const struct msg *m, uint64_t now)
{
	struct registered *w = registry_find(&g->d->registry, g->id);

	if (!w)
		return -EPROTO;
	registry_beat(&g->d->registry, g->id, now);
	switch (m->type) {
	case PREPD_BEAT:
		w->n_batches = m->a;
		if (m->b)
			scaler_cost(g->d, m->job, g->id, m->b);
		state_tell(g, m);
		return 0;
	case PREPD_WANT: return give_splits(g, m, w->leaving);
	case PREPD_LEAVE: w->leaving = true; return 0;
	case PREPD_FAILED: return take_failure(g, m);
	default: return -EPROTO;
	}
}

/* --- connections ---------------------------------------------------------- */

static int take_hello(struct guest *g, const struct msg *m, uint64_t now)
{
	struct msg welcome = { .type = PREPD_WELCOME, .a = g->d->c.timeout_ns };
	int r = 0;

	if (m->type != PREPD_HELLO)
		return -EPROTO;
	welcome.count = registry_find(&g->d->registry, m->id) != NULL;
	conn_trust(g->conn, PREPD_MOST);
	if (m->role == PREPD_WORKER) {
		r = workers_add(g, m, &welcome, now);
	} else if (m->role == PREPD_TRAINER && m->job && m->id &&
		   m->count < PREPD_CONSUMERS) {
		state_tell(g, &welcome);
		conn_await(g->conn, true, now);
		g->role = PREPD_TRAINER;
		g->id = m->job;
		g->trainer = m->id;
		g->consumer = m->count;
	} else {
		r = -EPROTO;
	}
	if (r != -ENOSPC)
		return r;
	outbox_refuse(&g->out, g->conn, -EPROTO,
		      "the dispatcher has too many workers");
	return 0;
}

static int message(struct conn *c, unsigned char *bytes, size_t n, uint64_t now)
{
	struct guest *g = c->user;
	struct msg m;
	int r = msg_decode(bytes, n, &m);

	if (g->out.closes || g->left)
		return r;
	/* the version of the reply tells it */
	if (r == -EPROTONOSUPPORT && !g->role) {
		outbox_refuse(&g->out, c, r, "it has a different version");
		return 0;
	}
	if (r < 0)
		return r;
	conn_kick(c); /* the next round may be due earlier */
	switch (g->role) {
	case PREPD_WORKER: return workers_message(g, &m, now);
	case PREPD_TRAINER: return trainers_message(g, &m);
	default: return take_hello(g, &m, now);
	}
}

static uint64_t fill_guest(struct conn *c, uint64_t now)
{
	struct guest *g = c->user;

	outbox_fill(&g->out, c, now);
	return TICK_NEVER;
}

static void ended(struct conn *c, int why)
{
	struct guest *g = c->user;
	struct dispatcher *d = g->d;
	struct job *j = g->joined ? book_find(&d->book, g->id) : NULL;

	ends_count(&d->counts.ends, why);
	DL_DELETE(d->guests, g);
	if (j && !state_has_trainers(d, j->id))
		j->gone_at = tick_now(d->c.tick);
	outbox_fini(&g->out);
	free(g);
}

static const struct conn_ops guest_ops = {
	.message = message,
	.fill = fill_guest,
	.ended = ended,
};

static int accepted(struct conn *c, void *ctx)
{
	struct dispatcher *d = ctx;
	struct guest *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	g->d = d;
	g->conn = c;
	outbox_init(&g->out);
	c->ops = &guest_ops;
	c->user = g;
	DL_APPEND(d->guests, g);
	return 0;
}

static void refused(void *ctx)
{
	struct dispatcher *d = ctx;

	d->counts.ends.too_many++;
}

/* --- the thread of the loop ----------------------------------------------- */

static uint64_t go_round(void *ctx, uint64_t now)
{
	struct dispatcher *d = ctx;
	uint64_t id, due;

	while ((id = registry_expired(&d->registry, now)))
		workers_remove(d, id);
	workers_let_go(d, now);
	scaler_round(d);
	due = trainers_expire(d, now);
	state_check(d, journal_shorten(&d->journal, &d->book));
	return MIN(due, registry_due(&d->registry));
}

/* --- life ----------------------------------------------------------------- */

/* Workers that an earlier run knew have the time-out to come back. */
static int expect(struct dispatcher *d, uint64_t now)
{
	int r = 0;

	for (uint32_t i = 0; i < d->book.n; i++) {
		struct job *j = d->book.job[i];
		const struct splits *s = &j->splits;

		j->gone_at = now;
		for (uint32_t k = 0; r == 0 && k < s->n; k++)
			if (s->state[k] == SPLIT_ASSIGNED)
				r = registry_expect(&d->registry, s->owner[k],
						    now);
		for (uint32_t k = 0; r == 0 && k < s->n_slots; k++)
			r = registry_expect(&d->registry, s->slot[k], now);
	}
	return r;
}

static int open_loop(struct dispatcher *d, struct err *err)
{
	struct loop_config c = { .tick = d->c.tick,
				 .secret = &d->c.access->secret,
				 .nic = d->c.access->nic,
				 .timeout_ns = d->c.timeout_ns,
				 .listener = addr_listen(d->c.listen, err),
				 .accepted = accepted,
				 .refused = refused,
				 .round = go_round,
				 .ctx = d };
	int r = c.listener < 0 ? c.listener : loop_new(&c, &d->loop);

	return r < 0 ? err_set(err, r, "%s", strerror(-r)) : 0;
}

int dispatcher_new(const struct dispatcher_config *c, struct dispatcher **ret,
		   struct err *err)
{
	struct dispatcher *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return err_set(err, -ENOMEM, "out of memory");
	d->c = *c;
	d->registry.timeout_ns = c->timeout_ns;
	pthread_mutex_init(&d->lock, NULL);
	r = fleet_init(&d->fleet, c->worker_command);
	if (r < 0)
		err_set(err, r, "%s", strerror(-r));
	d->journal.fd = -1;
	if (r == 0)
		r = journal_open(&d->journal, c->journal, &d->book, err);
	if (r == 0 && expect(d, tick_now(c->tick)) < 0)
		r = err_set(err, -ENOSPC, "%s: more than %d workers",
			    c->journal, REGISTRY_MOST);
	if (r == 0)
		r = open_loop(d, err);
	if (r < 0) {
		dispatcher_free(d);
		return r;
	}
	*ret = d;
	return 0;
}

static bool is_stopping(struct dispatcher *d, int *ret_error)
{
	bool stopping;

	LOCK_SCOPE(&d->lock);
	stopping = d->stopping;
	*ret_error = d->error;
	return stopping;
}

int dispatcher_run(struct dispatcher *d, struct err *err)
{
	int r = loop_start(d->loop);

	if (r < 0)
		return err_set(err, r, "cannot start a thread: %s",
			       strerror(-r));
	while (!is_stopping(d, &r))
		fleet_step(&d->fleet,
			   __atomic_load_n(&d->target, __ATOMIC_RELAXED));
	fleet_end(&d->fleet);
	loop_stop(d->loop);
	return r < 0 ? err_set(err, r, "%s: %s", d->c.journal, strerror(-r))
		     : 0;
}

void dispatcher_stop(struct dispatcher *d)
{
	state_stop(d, 0);
}

void dispatcher_free(struct dispatcher *d)
{
	if (!d)
		return;
	loop_free(d->loop);
	journal_close(&d->journal);
	book_fini(&d->book);
	registry_fini(&d->registry);
	fleet_fini(&d->fleet);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

json_t *dispatcher_json(const struct dispatcher *d)
{
	const struct counts *c = &d->counts;
	json_t *workers = json_array();

	for (uint32_t i = 0; workers && i < d->registry.n; i++) {
		const struct registered *w = &d->registry.worker[i];

		if (w->address)
			json_array_append_new(
				workers,
				json_pack("{s:o, s:I}", "address",
					  json_bytes(w->address), "batches",
					  (json_int_t)w->n_batches));
	}
	return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
			 "s:o, s:{s:o?, "
			 "s:I, s:I}}",
			 "workers", workers, "jobs", (json_int_t)d->book.n,
			 "epochs", (json_int_t)c->epochs, "splits_assigned",
			 (json_int_t)c->assigned, "splits_done",
			 (json_int_t)c->done, "splits_lost",
			 (json_int_t)c->lost, "workers_lost",
			 (json_int_t)c->workers_lost, "workers_left",
			 (json_int_t)c->workers_left, "workers_started",
			 (json_int_t)d->fleet.n_started, "workers_needed",
			 (json_int_t)d->wanted, "connections",
			 ends_json(&c->ends), "journal", "path",
			 json_bytes(d->c.journal), "bytes",
			 (json_int_t)d->journal.bytes, "cut_bytes",
			 (json_int_t)d->journal.cut);
}
