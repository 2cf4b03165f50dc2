/* SPDX-License-Identifier: MIT */
#include "service/dispatcher/dispatcher.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/json.h"
#include "common/util.h"
#include "service/dispatcher/scaler.h"
#include "service/dispatcher/trainers.h"
#include "service/dispatcher/workers.h"

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

static uint64_t fill(struct conn *c, uint64_t now)
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
	.fill = fill,
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

	pthread_mutex_lock(&d->lock);
	stopping = d->stopping;
	*ret_error = d->error;
	pthread_mutex_unlock(&d->lock);
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
