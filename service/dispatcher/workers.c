/* SPDX-License-Identifier: MIT */
#include "service/dispatcher/workers.h"

#include <errno.h>
#include <stdlib.h>

#include "common/log.h"
#include "common/util.h"
#include "service/dispatcher/scaler.h"

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

int workers_remove(struct dispatcher *d, uint64_t id)
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

void workers_let_go(struct dispatcher *d, uint64_t now)
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

int workers_add(struct guest *g, const struct msg *m, const struct msg *welcome,
		uint64_t now)
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

int workers_message(struct guest *g, const struct msg *m, uint64_t now)
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
