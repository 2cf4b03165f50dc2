/* SPDX-License-Identifier: MIT */
#include "service/dispatcher/state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/log.h"

/* --- events --------------------------------------------------------------- */

void state_stop(struct dispatcher *d, int error)
{
	pthread_mutex_lock(&d->lock);
	d->stopping = true;
	if (!d->error)
		d->error = error;
	pthread_mutex_unlock(&d->lock);
	fleet_wake(&d->fleet);
}

int state_check(struct dispatcher *d, int r)
{
	if (r < 0)
		state_stop(d, r);
	return r < 0 ? -EIO : 0;
}

int state_record(struct dispatcher *d, const struct msg *event)
{
	int r = book_apply(&d->book, event);

	return r < 0 ? r : state_check(d, journal_put(&d->journal, event));
}

int state_record_sync(struct dispatcher *d, const struct msg *event)
{
	int r = state_record(d, event);

	return r < 0 ? r : state_check(d, journal_sync(&d->journal));
}

/* A slot is used again when its worker is gone. */
struct job_worker *state_job_worker(struct dispatcher *d, struct job *j,
				    uint64_t worker)
{
	struct job_worker *unused = NULL;

	for (int i = 0; i < REGISTRY_MOST; i++) {
		struct job_worker *w = &j->worker[i];

		if (w->id == worker)
			return w;
		if (!unused && !registry_find(&d->registry, w->id))
			unused = w;
	}
	if (unused) {
		free(unused->why);
		*unused = (struct job_worker){ .id = worker };
	}
	return unused;
}

void state_forget_worker(struct dispatcher *d, uint64_t worker)
{
	for (uint32_t i = 0; i < d->book.n; i++)
		for (int k = 0; k < REGISTRY_MOST; k++) {
			struct job_worker *w = &d->book.job[i]->worker[k];

			if (w->id != worker)
				continue;
			free(w->why);
			*w = (struct job_worker){ 0 };
		}
}

/* --- what guests are told ------------------------------------------------- */

void state_tell(struct guest *g, const struct msg *m)
{
	outbox_put(&g->out, g->conn, m);
}

void state_tell_all(struct dispatcher *d, enum msg_role role,
		    const struct msg *m)
{
	struct guest *g;

	DL_FOREACH (d->guests, g) {
		if (g->role == role)
			state_tell(g, m);
	}
}

struct guest *state_find(struct dispatcher *d, enum msg_role role, uint64_t id)
{
	struct guest *g;

	DL_FOREACH (d->guests, g) {
		if (g->role == role && g->id == id && !g->conn->why)
			return g;
	}
	return NULL;
}

bool state_is_trainer(const struct guest *g, uint64_t job)
{
	return g->joined && g->id == job && !g->conn->why;
}

void state_tell_trainers(struct dispatcher *d, uint64_t job,
			 const struct msg *m)
{
	struct guest *g;

	DL_FOREACH (d->guests, g) {
		if (state_is_trainer(g, job))
			state_tell(g, m);
	}
}

bool state_has_trainers(const struct dispatcher *d, uint64_t job)
{
	const struct guest *g;

	DL_FOREACH (d->guests, g) {
		if (state_is_trainer(g, job))
			return true;
	}
	return false;
}

struct msg state_epoch_msg(const struct job *j)
{
	return (struct msg){ .type = PREPD_EPOCH,
			     .job = j->id,
			     .epoch = j->epoch,
			     .a = j->splits.samples };
}

/* A worker that is connected again may have missed its splits. */
void state_tell_job(struct guest *worker, const struct job *j)
{
	const struct splits *s = &j->splits;
	struct msg m = book_job_msg(j);

	state_tell(worker, &m);
	if (!j->begun)
		return;
	m = state_epoch_msg(j);
	state_tell(worker, &m);
	m = (struct msg){ .type = PREPD_SPLIT,
			  .job = j->id,
			  .epoch = j->epoch };
	for (m.split = 0; m.split < s->n; m.split++)
		if (s->state[m.split] == SPLIT_ASSIGNED &&
		    s->owner[m.split] == worker->id)
			state_tell(worker, &m);
}

/* `worker` 0: of all. */
void state_tell_lost(struct dispatcher *d, const struct job *j, uint64_t worker)
{
	const struct splits *s = &j->splits;
	struct msg m = { .type = PREPD_LOST, .job = j->id, .epoch = j->epoch };

	for (m.split = 0; m.split < s->n; m.split++) {
		m.id = s->owner[m.split];
		if (s->state[m.split] == SPLIT_LOST &&
		    (!worker || m.id == worker))
			state_tell_trainers(d, j->id, &m);
	}
}

struct msg state_task_msg(const struct registered *w, bool there)
{
	return (struct msg){ .type = PREPD_TASK,
			     .id = w->id,
			     .count = there,
			     .rest = w->address,
			     .n_rest = w->address ? strlen(w->address) : 0 };
}

/* --- losses --------------------------------------------------------------- */

/* What it has not finished is lost: of one job, or of all (0). */
int state_lose(struct dispatcher *d, uint64_t job, uint64_t worker)
{
	struct msg event = { .type = PREPD_LOST, .job = job, .id = worker };
	uint32_t before = 0, after = 0;
	int r;

	for (uint32_t i = 0; i < d->book.n; i++)
		before += d->book.job[i]->splits.n_lost;
	r = state_record(d, &event);
	for (uint32_t i = 0; r == 0 && i < d->book.n; i++) {
		after += d->book.job[i]->splits.n_lost;
		if (!job || d->book.job[i]->id == job)
			state_tell_lost(d, d->book.job[i], worker);
	}
	if (r == 0 && after > before) {
		d->counts.lost += after - before;
		log_warn("worker %016" PRIx64 ": %" PRIu32
			 " splits are lost with it",
			 worker, after - before);
	}
	return r;
}
