/* SPDX-License-Identifier: MIT */
#include "service/dispatcher/trainers.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <utlist.h>

#include "common/log.h"
#include "common/util.h"
#include "net/wire.h"
#include "service/dispatcher/scaler.h"

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

int trainers_message(struct guest *g, const struct msg *m)
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

uint64_t trainers_expire(struct dispatcher *d, uint64_t now)
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
