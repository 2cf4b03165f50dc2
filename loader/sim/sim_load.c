/* SPDX-License-Identifier: MIT */
#include "loader/sim/sim_load.h"

#include <errno.h>
#include <stdlib.h>

#include "common/util.h"
#include "loader/sim/sim_read.h"

static const struct pipeline_config *config(const struct sim_node *n)
{
	return n->sim->c.pipeline;
}

static bool whole(const struct sim_node *n)
{
	return config(n)->engine->whole_batches;
}

/* --- life ----------------------------------------------------------------- */

static int init_workers(struct sim_node *n)
{
	const struct pipeline_config *c = config(n);
	uint32_t depth = n->sim->depth;
	struct sim_load *l = &n->load;

	l->workers = calloc(c->workers, sizeof(*l->workers));
	l->slots = calloc((size_t)c->workers * depth, sizeof(*l->slots));
	l->since = calloc(c->workers, sizeof(*l->since));
	if (!l->workers || !l->slots || !l->since)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->workers; i++) {
		struct sim_worker *w = &l->workers[i];

		w->unused = calloc(depth, sizeof(*w->unused));
		if (!w->unused)
			return -ENOMEM;
		for (uint32_t k = 0; k < depth; k++) {
			w->unused[w->n_unused++] = i * depth + k;
			l->slots[i * depth + k].worker = i;
		}
	}
	return c->prep->cost && !whole(n) ? cores_new(c->cores, &l->cores) : 0;
}

int sim_load_init(struct sim_node *n)
{
	int r = windows_init(&n->load.windows, &n->sim->windows);

	return r < 0 ? r : init_workers(n);
}

void sim_load_fini(struct sim_node *n)
{
	struct sim_load *l = &n->load;

	windows_fini(&l->windows);
	for (uint32_t i = 0; l->workers && i < config(n)->workers; i++)
		free(l->workers[i].unused);
	cores_free(l->cores);
	free(l->workers);
	free(l->slots);
	free(l->since);
}

/* --- windows -------------------------------------------------------------- */

static bool lease(struct sim_node *n, struct sim_worker *to)
{
	struct windows *ws = &n->load.windows;
	uint32_t want = whole(n) ? UINT32_MAX : n->sim->lease;

	while (!windows_lease(ws, want, &to->window, &to->at, &to->end)) {
		if (!windows_room(ws))
			return false;
		windows_open(ws, ws->n_free - 1);
	}
	return true;
}

/* --- the clocks of workers ------------------------------------------------ */

static void turn_to(struct sim_worker *w, enum sim_doing doing, uint64_t now)
{
	w->spent[w->doing] += now - w->since_ns;
	w->since_ns = now;
	w->doing = doing;
}

static struct activity activity(void *ctx, uint32_t i, uint64_t now)
{
	struct sim_node *n = ctx;
	const struct pipeline_config *c = config(n);
	struct sim_worker *w = &n->load.workers[i];
	struct activity a;

	turn_to(w, w->doing, now);
	a.read_ns = w->spent[SIM_READING];
	a.prep_ns = w->spent[SIM_PREPARING];
	if (n->load.cores) {
		a.read_ns = a.read_ns * c->cores / c->workers;
		a.prep_ns = cores_busy_ns(n->load.cores, now) / c->workers;
	}
	return a;
}

/* --- batches -------------------------------------------------------------- */

static void complete(struct sim_node *n, struct batch *b, uint64_t now)
{
	batch_stamp(b, whole(n), config(n)->workers, activity, n, now);
	windows_complete(&n->load.windows, b);
}

static uint32_t index_of(const struct sim_node *n, const struct window *w)
{
	return (uint32_t)(w - n->load.windows.all);
}

uint32_t sim_load_index(const struct sim_node *n, const struct batch *b)
{
	return b->single ? (uint32_t)(b - n->load.windows.singles.made)
			 : index_of(n, b->window);
}

void sim_load_batch(struct sim_node *n, uint32_t batch, uint64_t now)
{
	uint32_t per = n->sim->windows.superbatch;

	complete(n, &n->load.windows.all[batch / per].batch[batch % per], now);
}

/* --- samples -------------------------------------------------------------- */

/* A sample is in its batch; its slot is free. */
static void arrive(struct sim_node *n, struct sim_slot *s, uint64_t due,
		   uint64_t now)
{
	struct sim_worker *w = &n->load.workers[s->worker];
	struct window *in = s->window;
	uint32_t at = whole(n) ? s->at : in->arrived++;
	uint32_t i = at / n->sim->windows.batch;
	struct batch *b = &in->batch[i];

	b->bytes += config(n)->data->size[s->sample];
	b->owner = s->worker;
	b->due_ns = MAX(b->due_ns, due);
	w->unused[w->n_unused++] = (uint32_t)(s - n->load.slots);
	if (!windows_fill(b, 1))
		return;
	if (b->due_ns <= now)
		complete(n, b, now);
	else
		sim_at(n, b->due_ns, SIM_BATCH,
		       index_of(n, in) * n->sim->windows.superbatch + i);
}

/* Transform a sample that was read. False: the slot is busy until an event. */
static bool prepare(struct sim_node *n, struct sim_slot *s, uint64_t now)
{
	const struct pipeline_config *c = config(n);
	uint64_t id = n->sim->epoch * c->data->n + s->sample, cost, due = now;
	struct train_account *a = n->account;

	hist_add(&a->work.read, now - s->start_ns);
	a->work.bytes_read += c->data->size[s->sample];
	if (c->prep->cost) {
		struct rng rng = rng_stream(c->seed, "prep", id);

		cost = c->prep->cost(n->sim->prep, c->data->size[s->sample],
				     &rng);
		hist_add(&a->work.prep, cost);
		if (n->load.cores) {
			due = cores_schedule(n->load.cores, now, cost);
		} else if (cost) {
			s->preparing = true;
			turn_to(&n->load.workers[s->worker], SIM_PREPARING,
				now);
			sim_at(n, now + cost, SIM_READ,
			       (uint32_t)(s - n->load.slots));
			return false;
		}
	}
	arrive(n, s, due, now);
	return true;
}

/* Returns the slot that waited for the fetch, or SIM_NOBODY. */
static uint32_t fetch_on(struct sim_node *n, uint32_t fetch, uint64_t now)
{
	uint32_t reader;
	uint64_t at =
		sim_ahead_fetch(n->sim->c.mounts, n->node, fetch, now, &reader);

	if (at != SIM_READ_DONE)
		sim_at(n, at, SIM_AHEAD, fetch);
	return reader;
}

void sim_load_ahead(struct sim_node *n, uint64_t now)
{
	uint32_t fetch;
	int r;

	/* nobody waits for one that has just begun */
	while ((r = sim_ahead_next(n->sim->c.mounts, n->node, &fetch)) > 0)
		fetch_on(n, fetch, now);
	if (r < 0)
		n->sim->events.failed = true;
}

/* False: the slot is busy until an event. */
static bool advance(struct sim_node *n, struct sim_slot *s, uint64_t now)
{
	uint64_t at = sim_read_go(n->sim->c.mounts, n->node, &s->read, now);

	sim_load_ahead(n, now);
	if (at == SIM_READ_DONE)
		return prepare(n, s, now);
	if (at != SIM_READ_WAITS)
		sim_at(n, at, SIM_READ, (uint32_t)(s - n->load.slots));
	return false;
}

static void open_sample(struct sim_node *n, struct sim_slot *s)
{
	const struct dataset *d = config(n)->data;
	const uint32_t *file = n->sim->c.file;
	uint32_t reader = (uint32_t)(s - n->load.slots), shard;
	uint64_t at;

	if (!d->n_containers) {
		sim_read_open(&s->read, file[s->sample], reader);
		return;
	}
	shard = d->container[s->sample];
	at = dataset_offset(d, s->sample);
	sim_read_part(&s->read, file[shard], shard, at,
		      at + dataset_size(d, s->sample), reader);
}

static void take_slot(struct sim_node *n, struct sim_worker *w, uint64_t now)
{
	const struct schedule_config *c = &n->sim->c.schedule->c;
	struct sim_slot *s = &n->load.slots[w->unused[--w->n_unused]];
	uint64_t at;

	s->window = w->window;
	s->at = w->at++;
	at = schedule_position(c, n->node, s->window->first + s->at);
	s->sample = n->sim->order[at];
	s->start_ns = now;
	s->preparing = false;
	open_sample(n, s);
	advance(n, s, now);
}

/* The worker takes samples as long as it has slots for them. */
static void go_on(struct sim_node *n, uint32_t i, uint64_t now)
{
	struct sim_worker *w = &n->load.workers[i];

	while (w->n_unused && (w->at < w->end || lease(n, w)))
		take_slot(n, w, now);
	if (w->n_unused == n->sim->depth)
		turn_to(w, SIM_IDLE, now);
	else if (w->doing == SIM_IDLE)
		turn_to(w, SIM_READING, now);
}

void sim_load_read(struct sim_node *n, uint32_t slot, uint64_t now)
{
	struct sim_slot *s = &n->load.slots[slot];

	if (s->preparing) {
		turn_to(&n->load.workers[s->worker], SIM_READING, now);
		arrive(n, s, now, now);
	} else if (!advance(n, s, now)) {
		return;
	}
	go_on(n, s->worker, now);
}

void sim_load_fetch(struct sim_node *n, uint32_t fetch, uint64_t now)
{
	uint32_t reader = fetch_on(n, fetch, now);

	if (reader != SIM_NOBODY)
		sim_load_read(n, reader, now);
	sim_load_ahead(n, now);
}

static void wake(struct sim_node *n, uint64_t now)
{
	for (uint32_t i = 0; i < config(n)->workers; i++)
		go_on(n, i, now);
}

void sim_load_begin(struct sim_node *n, uint64_t samples, uint64_t now)
{
	struct sim_load *l = &n->load;

	windows_begin(&l->windows, n->sim->epoch, n->sim->order, samples);
	for (uint32_t i = 0; i < config(n)->workers; i++)
		turn_to(&l->workers[i], SIM_IDLE, now);
	wake(n, now);
}

void sim_load_release(struct sim_node *n, uint32_t index, uint64_t now)
{
	struct windows *ws = &n->load.windows;

	if (windows_release(ws, ws->c.singles.batching
					? &ws->singles.made[index]
					: ws->all[index].batch))
		wake(n, now);
}
