/* SPDX-License-Identifier: MIT */
#include "service/dispatcher/trainers.h"

#include <errno.h>
#include <inttypes.h>

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

static void refuse(struct guest *g, const char *why)
{
	log_warn("a trainer was refused: %s", why);
	outbox_refuse(&g->out, g->conn, why);
}

/* A trainer that is connected again brings a job that is there. */
static int take_job(struct guest *g, const struct msg *m)
{
	struct dispatcher *d = g->d;
	struct job *j = book_find(&d->book, g->id);
	int r = 0;

	if (m->job != g->id)
		return -EPROTO;
	if (!j) {
		r = state_record_sync(d, m);
		if (r == 0)
			state_tell_all(d, PREPD_WORKER, m);
		j = book_find(&d->book, g->id);
	}
	if (r == -ENOSPC) {
		refuse(g, "the dispatcher has too many jobs");
		return 0;
	}
	if (r < 0)
		return r;
	if (j->trainer)
		conn_end(((struct guest *)j->trainer)->conn, -ECONNRESET);
	j->trainer = g;
	tell_tasks(d, g);
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
	int r;

	for (uint32_t i = 0; j->mode == SPLIT_STATIC && i < d->registry.n; i++)
		if (d->registry.worker[i].address &&
		    !d->registry.worker[i].leaving)
			at = wire_put(at, d->registry.worker[i].id, 8);
	event.n_rest = (size_t)(at - slots);
	if (j->mode == SPLIT_STATIC && !event.n_rest) {
		refuse(g, "static splits need workers before the first epoch "
			  "begins");
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

static int take_epoch(struct guest *g, const struct msg *m)
{
	struct job *j = book_find(&g->d->book, g->id);

	if (!j || m->job != g->id || m->n_rest)
		return -EPROTO;
	if (!j->begun || j->epoch != m->epoch)
		return begin_epoch(g, j, m);
	if (j->splits.samples != m->a)
		return -EPROTO;
	state_tell_lost(j, 0);
	return 0;
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

static int drop_job(struct dispatcher *d, uint64_t job)
{
	struct msg event = { .type = PREPD_DROP, .job = job };
	int r = state_record(d, &event);

	if (r == 0)
		state_tell_all(d, PREPD_WORKER, &event);
	return r;
}

int trainers_message(struct guest *g, const struct msg *m)
{
	switch (m->type) {
	case PREPD_BEAT:
		if (m->b)
			scaler_target(g->d, g->id, m->b);
		state_tell(g, m);
		return 0;
	case PREPD_JOB: return take_job(g, m);
	case PREPD_EPOCH: return take_epoch(g, m);
	case PREPD_DONE: return take_done(g, m);
	case PREPD_DROP:
		return book_find(&g->d->book, g->id) ? drop_job(g->d, g->id)
						     : 0;
	default: return -EPROTO;
	}
}

uint64_t trainers_expire(struct dispatcher *d, uint64_t now)
{
	uint64_t due = TICK_NEVER;

	for (uint32_t i = d->book.n; i > 0; i--) {
		const struct job *j = d->book.job[i - 1];
		uint64_t until = j->gone_at + d->c.job_timeout_ns;

		if (j->trainer)
			continue;
		if (now >= until) {
			log_warn("job %016" PRIx64
				 ": dropped: its trainer is gone",
				 j->id);
			drop_job(d, j->id);
		} else {
			due = MIN(due, until);
		}
	}
	return due;
}
