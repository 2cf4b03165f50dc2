/* SPDX-License-Identifier: MIT */
#include "loader/sim/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/hist.h"
#include "common/util.h"
#include "fs/device/calibrate.h"
#include "loader/sim/sim_load.h"
#include "loader/sim/sim_mounts.h"
#include "loader/train/resume.h"

/*
 * --- checkpoints ----------------------------------------------------------
 *
 * Checkpoints of a node: their events.
 *
 * Checkpoints of a node, as loader/checkpoint/checkpoint.c writes them: a step
 * is over, the state leaves the device, a file is written to the node's storage
 * piece by piece, synced and renamed. The device has these operations among its
 * reads. sync: the training loop waits for all of it; async: only for the file
 * before and the copy.
 */

enum { COPIED = SIM_STEP_OVER + 1, NEXT };

struct piece {
	uint64_t offset, bytes;
};

/* What one is to the storage. The kernel looks up names that do not exist, to
 * remove what a killed run has left, to create, and to rename. */
static const enum storage_op ops[] = { STORAGE_LOOKUP, STORAGE_LOOKUP,
				       STORAGE_CREATE, STORAGE_WRITE,
				       STORAGE_SYNC,   STORAGE_LOOKUP,
				       STORAGE_RENAME, STORAGE_SYNC,
				       STORAGE_REMOVE };

static const struct sim_save_config *config(const struct sim_node *n)
{
	return &n->sim->c.save;
}

static void copy(struct sim_node *n, uint64_t now)
{
	sim_at(n, now + config(n)->copy_ns, SIM_SAVE, COPIED);
}

static void go_on(struct sim_node *n, uint64_t now)
{
	struct sim_save *s = &n->save;

	observers_held(&n->observers, "checkpoint", s->from_ns,
		       now - s->from_ns);
	if (n->node == 0)
		hist_add(config(n)->stalls, now - s->from_ns);
	sim_step_go_on(n, now);
}

/* A checkpoint is one when the files of all nodes are. */
static void complete(struct sim_node *n, uint64_t now)
{
	struct train_sim *s = n->sim;

	if (++s->n_written < s->c.nodes)
		return;
	s->n_written = 0;
	sim_fail_saved(&s->fail, config(n)->async ? n->save.begin_ns : now,
		       now);
}

/* The file is complete. */
static void written(struct sim_node *n, uint64_t now)
{
	const struct sim_save_config *c = config(n);
	struct sim_save *s = &n->save;
	uint64_t took = now - s->begin_ns;
	struct train_account *a = n->account;

	s->writes = false;
	a->checkpoints++;
	a->checkpoint_bytes += c->file_bytes;
	a->checkpoint_ns += took;
	if (n->node == 0) {
		c->saved->stats.n++;
		c->saved->stats.bytes += c->file_bytes;
		c->saved->stats.write_ns += took;
		hist_add(&c->saved->times, took);
	}
	complete(n, now);
	if (!c->async)
		go_on(n, now);
	else if (s->waits)
		copy(n, now);
}

/* What the next write has: the set of visited samples, the state, in pieces as
 * large as the kernel's reads, and last the head. No bytes: all is written. */
static struct piece next_piece(const struct sim_node *n)
{
	const struct sim_save_config *c = config(n);
	uint64_t at = n->save.at, body = c->visited_bytes + c->state_bytes;

	if (at < c->visited_bytes)
		return (struct piece){ CHECKPOINT_HEAD + at,
				       c->visited_bytes - at };
	if (at < body)
		return (struct piece){ CHECKPOINT_HEAD + at,
				       MIN(body - at, CALIBRATE_BYTES) };
	return (struct piece){ 0, body + CHECKPOINT_HEAD - at };
}

/* Does the next operation have anything to do? */
static bool is_needed(const struct sim_node *n)
{
	switch (ops[n->save.op]) {
	case STORAGE_WRITE: return next_piece(n).bytes;
	case STORAGE_REMOVE:
		return config(n)->keep && n->save.n > config(n)->keep;
	default: return true;
	}
}

static void write_on(struct sim_node *n, uint64_t now)
{
	struct sim_save *s = &n->save;
	/* a file of this node's: no other object has this number */
	uint64_t object = 1ull << 63 | (uint64_t)n->node << 32 | s->n;
	struct piece piece = { 0 };

	while (s->op < ARRAY_SIZE(ops) && !is_needed(n))
		s->op++;
	if (s->op == ARRAY_SIZE(ops)) {
		written(n, now);
		return;
	}
	if (ops[s->op] == STORAGE_WRITE)
		piece = next_piece(n);
	sim_at(n,
	       sim_mounts_change(n->sim->c.mounts, n->node, ops[s->op], object,
				 piece.offset, piece.bytes, now),
	       SIM_SAVE, NEXT);
	s->at += piece.bytes;
	s->op += ops[s->op] != STORAGE_WRITE;
}

static void start_save(struct sim_node *n, uint64_t now)
{
	struct sim_save *s = &n->save;

	s->writes = true;
	s->waits = false;
	s->begin_ns = now;
	s->op = 0;
	s->at = 0;
	s->n++;
	write_on(n, now);
	if (config(n)->async)
		go_on(n, now);
}

/* An event of SIM_SAVE. */
static void sim_save_happen(struct sim_node *n, uint32_t which, uint64_t now)
{
	switch (which) {
	case SIM_STEP_OVER:
		n->save.from_ns = now;
		n->save.waits = n->save.writes;
		if (!n->save.writes)
			copy(n, now);
		break;
	case COPIED: start_save(n, now); break;
	default: write_on(n, now);
	}
}

/* No event: the begin of an epoch. */
#define NOTHING UINT32_MAX

static int init_prep(struct train_sim *s, struct err *err)
{
	const struct pipeline_config *c = s->c.pipeline;
	const struct prep_ops *prep = c->prep;
	int r = pipeline_sample_bytes(c, &s->sample_bytes, err);

	s->prep = calloc(1, prep->plugin.state_size + 1);
	if (!s->prep)
		return -ENOMEM;
	return r == 0 && prep->init ? prep->init(s->prep, c->prep_config, err)
				    : r;
}

static int init_nodes(struct train_sim *s)
{
	int r = 0;

	s->nodes = calloc(s->c.nodes, sizeof(*s->nodes));
	if (!s->nodes)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->c.nodes; i++) {
		s->nodes[i].sim = s;
		s->nodes[i].node = i;
		if (s->reduce.on_cards)
			s->nodes[i].card.nic = sim_mounts_nic(s->c.mounts, i);
	}
	for (uint32_t i = 0; r == 0 && i < s->c.nodes; i++) {
		if (s->c.pipeline->engine->next)
			r = sim_load_init(&s->nodes[i]);
		if (r == 0)
			r = sim_step_init(&s->nodes[i]);
	}
	return r;
}

/* Failures cost a restart, and reading the last checkpoint. */
static int init_failures(struct train_sim *s)
{
	const struct sim_save_config *c = &s->c.save;
	uint64_t read_ns = 0;
	int r = 0;

	if (c->mtbf_ns && c->every)
		r = sim_mounts_read_back(s->c.mounts, c->state_bytes, &read_ns);
	sim_fail_init(&s->fail, c->mtbf_ns, c->restart_ns + read_ns,
		      s->c.schedule->c.in.seed);
	return r;
}

static int set_windows(struct train_sim *s, const struct pipeline_config *p)
{
	int r = pipeline_shape(p, &s->windows);

	/* an event has the number of a window */
	return r == 0 && s->windows.n >= SIM_PINNED ? -ENOMEM : r;
}

int sim_new(const struct sim_config *c, struct train_sim **ret, struct err *err)
{
	const struct pipeline_config *p = c->pipeline;
	struct train_sim *s = calloc(1, sizeof(*s));
	int r = 0;

	if (!s)
		return err_set(err, -ENOMEM, "out of memory");
	s->c = *c;
	s->pinned = p->pin && !p->pin_direct && p->engine->next;
	s->lanes = MAX(p->gpus, 1);
	s->reduce.on_cards = c->on_cards;
	if (p->engine->next) {
		s->depth = p->engine->whole_batches
				   ? 1
				   : MAX(p->queue_depth / p->workers, 1);
		r = set_windows(s, p);
		s->lease = pipeline_lease(p, 0);
	}
	if (r == 0)
		r = init_prep(s, err);
	if (r == 0)
		r = init_nodes(s);
	if (r == 0)
		r = init_failures(s);
	if (r < 0) {
		sim_free(s);
		return err_set(err, r, "%s", strerror(-r));
	}
	*ret = s;
	return 0;
}

void sim_free(struct train_sim *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; s->nodes && i < s->c.nodes; i++) {
		sim_load_fini(&s->nodes[i]);
		sim_step_fini(&s->nodes[i]);
	}
	if (s->prep && s->c.pipeline->prep->fini)
		s->c.pipeline->prep->fini(s->prep);
	sim_events_fini(&s->events);
	free(s->reduce.bucket);
	free(s->prep);
	free(s->nodes);
	free(s);
}

/*
 * --- the all-reduce of a step of all nodes (loader/nodes/sync.h) ------------
 *
 * Where the gradients share the network cards of the caches, each node books
 * them on its card once it has its next batch, as loader/nodes/sync.h does on a
 * mount's; the step ends as late as on the node whose card delays it most.
 */

/* A card has the gradients of one rank. */
enum { CHAIN = 1 };

static void add_bucket(void *ctx, const struct collective_bucket *b)
{
	struct train_sim *s = ctx;
	struct sim_reduce *a = &s->reduce;

	if (util_reserve(&a->bucket, &a->room, a->n_buckets + 1,
			 sizeof(*a->bucket)) < 0) {
		s->failed = -ENOMEM;
		return;
	}
	a->bucket[a->n_buckets++] = (struct gradients_bucket){
		.ready_ns = a->base_ns + b->ready_ns,
		.bytes = b->bytes,
		.bytes_per_s = s->c.sync->reduce.bytes_per_s,
		.latency_ns = b->latency_ns,
	};
}

/* A real node gets its next batch before it looks for the other nodes, unless
 * there is none, or no room for it. */
static bool is_ready(const struct sim_train *t)
{
	return t->holding || t->blocked || !t->n_left;
}

/* After every event of the node. */
static void reduce_look(struct sim_node *n, uint64_t now)
{
	struct sim_reduce *a = &n->sim->reduce;
	int r = 0;

	if (!a->open || !a->on_cards || n->card.booked || !is_ready(&n->train))
		return;
	n->card.booked = true;
	n->card.waited_ns = 0;
	for (size_t i = 0; r == 0 && i < a->n_buckets; i++)
		r = nic_reduce(n->card.nic, CHAIN, &a->bucket[i], now);
	if (r < 0)
		n->sim->failed = r;
	sim_at(n, MAX(now, a->reduced_ns), SIM_REDUCED, 0);
}

/* All nodes have computed their part. */
static void reduce_begin(struct train_sim *s, uint64_t now)
{
	struct sim_reduce *a = &s->reduce;
	struct sync *sync = s->c.sync;
	const struct collective reduce = sync_reduce(sync);

	s->n_reached = 0;
	a->open = true;
	a->base_ns = sync->base_ns;
	a->most_ns = 0;
	a->n_over = a->on_cards ? 0 : s->c.nodes;
	sync_settle(sync, &a->all, &a->reduced_ns);
	if (!a->on_cards)
		return;
	a->n_buckets = 0;
	collective_each(&reduce, sync->pass, s->c.nodes, add_bucket, s);
	for (uint32_t i = 0; i < s->c.nodes; i++) {
		s->nodes[i].card.booked = false;
		reduce_look(&s->nodes[i], now);
	}
}

/* SIM_REDUCED: its gradients are reduced, or later. */
static void reduce_wait(struct sim_node *n, uint64_t now)
{
	struct nic_delay delay[GRADIENTS_CHAINS];
	struct sim_reduce *a = &n->sim->reduce;

	/* more traffic may have come meanwhile */
	if (nic_delays(n->card.nic, delay) && delay->ns > n->card.waited_ns) {
		n->card.waited_ns = delay->ns;
		sim_at(n, MAX(now, a->reduced_ns + delay->ns), SIM_REDUCED, 0);
		return;
	}
	n->card.delay_ns += n->card.waited_ns;
	a->most_ns = MAX(a->most_ns, n->card.waited_ns);
	a->n_over++;
}

/* False: it goes on. Else what sim_step_settle needs. */
static bool reduce_end(struct train_sim *s, struct gpus_reach *ret_all,
		       uint64_t *ret_reduced)
{
	struct sim_reduce *a = &s->reduce;

	if (!a->open || a->n_over < s->c.nodes)
		return false;
	a->open = false;
	sync_delay(s->c.sync, a->most_ns);
	*ret_all = a->all;
	*ret_reduced = a->reduced_ns + a->most_ns;
	return true;
}

/* --- an epoch ------------------------------------------------------------- */

static void begin_epoch(struct train_sim *s, uint64_t samples, uint64_t now,
			struct train_account *accounts)
{
	bool reads = s->c.pipeline->engine->next;

	s->n_ended = s->n_reached = 0;
	s->end_ns = now;
	if (s->c.sync)
		sync_begin(s->c.sync, now);
	for (uint32_t i = 0; i < s->c.nodes; i++) {
		struct sim_node *n = &s->nodes[i];

		n->account = n->observed.account = &accounts[i];
		observers_begin(&n->observers, s->epoch, now);
		sim_step_begin(n, samples, now);
		/* the mount has its future before the loader begins */
		if (reads)
			sim_load_ahead(n, now);
		if (reads)
			sim_load_begin(n, samples, now);
	}
	for (uint32_t i = 0; i < s->c.nodes; i++)
		sim_step_look(&s->nodes[i], now);
}

static void happen(struct train_sim *s, const struct train_sim_event *e)
{
	struct sim_node *n = &s->nodes[e->node];
	uint32_t which = e->what & ((1u << SIM_WHAT_SHIFT) - 1);

	switch ((enum sim_what)(e->what >> SIM_WHAT_SHIFT)) {
	case SIM_READ: sim_load_read(n, which, e->at); break;
	case SIM_BATCH: sim_load_batch(n, which, e->at); break;
	case SIM_RELEASE: sim_step_release(n, which, e->at); break;
	case SIM_AHEAD: sim_load_fetch(n, which, e->at); break;
	case SIM_REDUCED: reduce_wait(n, e->at); break;
	case SIM_SAVE: sim_save_happen(n, which, e->at); break;
	case SIM_LOOK: break;
	}
	sim_step_look(n, e->at);
	reduce_look(n, e->at);
}

/* End the steps that all nodes have computed. */
static void settle_steps(struct train_sim *s, uint64_t now)
{
	struct gpus_reach all;
	uint64_t reduced;

	do {
		if (s->n_reached == s->c.nodes)
			reduce_begin(s, now);
		if (!reduce_end(s, &all, &reduced))
			return;
		sim_step_settle(s, &all, reduced, now);
	} while (true);
}

uint64_t sim_card_ns(const struct train_sim *s, uint32_t node)
{
	return s->nodes[node].card.delay_ns;
}

/* Samples of this rank that no other visits; the order may wrap around. */
static uint64_t distinct(const struct train_sim *s, uint32_t rank,
			 uint64_t samples)
{
	const struct schedule_config *c = &s->c.schedule->c;
	uint64_t last = rank + (samples - 1) * c->world;

	return samples - (last >= c->in.n);
}

/* The same of an order that repeats samples: those new to this rank. -ENOMEM.
 */
static int count_drawn(const struct train_sim *s, uint32_t rank,
		       uint64_t samples, uint64_t *ret)
{
	const struct schedule_config *c = &s->c.schedule->c;
	_cleanup_free_ uint64_t *seen = calloc(c->in.n / 64 + 1, sizeof(*seen));

	if (!seen)
		return -ENOMEM;
	*ret = 0;
	for (uint64_t i = 0; i < samples; i++) {
		uint32_t at = s->order[schedule_position(c, rank, i)];
		uint64_t bit = 1ull << at % 64;

		*ret += !(seen[at / 64] & bit);
		seen[at / 64] |= bit;
	}
	return 0;
}

static int end(struct train_sim *s, uint64_t samples)
{
	bool repeats = schedule_repeats(s->c.schedule);
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < s->c.nodes; i++) {
		struct sim_node *n = &s->nodes[i];

		observers_end(&n->observers, n->train.end_ns);
		n->account->distinct_samples = distinct(s, i, samples);
		if (repeats)
			r = count_drawn(s, i, samples,
					&n->account->distinct_samples);
	}
	return r;
}

/* Fetches ahead that end after the epoch are left to the next one. */
static bool next_event(struct train_sim *s, struct train_sim_event *e)
{
	const struct sim_events *all = &s->events;

	if (s->n_ended == s->c.nodes && all->n && all->heap[0].at > s->end_ns)
		return false;
	return sim_events_next(&s->events, e);
}

int sim_epoch(struct train_sim *s, uint64_t epoch, uint64_t samples,
	      uint64_t now, struct train_account *accounts, uint64_t *ret_end,
	      struct err *err)
{
	struct train_sim_event e = { .at = now, .what = NOTHING };

	s->epoch = epoch;
	s->order = s->c.schedule->order;
	begin_epoch(s, samples, now, accounts);
	do {
		if (e.what != NOTHING)
			happen(s, &e);
		settle_steps(s, e.at);
	} while (next_event(s, &e));
	if (s->events.failed)
		s->failed = -ENOMEM;
	if (!s->failed && s->n_ended < s->c.nodes)
		return err_set(err, -EDEADLK,
			       "the simulation makes no progress at %.9f s",
			       (double)e.at / 1e9);
	if (!s->failed)
		s->failed = end(s, samples);
	if (s->failed == -ETIMEDOUT)
		return err_set(err, s->failed,
			       "--mtbf: failures come too often for the work "
			       "since the last checkpoint to end: write "
			       "checkpoints more often (--checkpoint-every), "
			       "or let the mean between failures be longer");
	if (s->failed)
		return err_set(err, s->failed, "%s", strerror(-s->failed));
	*ret_end = s->end_ns;
	return 0;
}

json_t *sim_failures(const struct train_sim *s)
{
	return sim_fail_json(&s->fail);
}

uint64_t sim_drain(struct train_sim *s, uint64_t now)
{
	struct train_sim_event e;
	bool writes;

	do {
		writes = false;
		for (uint32_t i = 0; i < s->c.nodes; i++)
			writes |= s->nodes[i].save.writes;
		if (!writes || !sim_events_next(&s->events, &e))
			return now;
		now = MAX(now, e.at);
		happen(s, &e);
	} while (true);
}
