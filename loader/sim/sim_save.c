/* SPDX-License-Identifier: MIT */
/*
 * Checkpoints of a node, as loader/checkpoint/checkpoint.c writes them: a step
 * is over, the state leaves the device, a file is written to the node's storage
 * piece by piece, synced and renamed. The device has these operations among its
 * reads. sync: the training loop waits for all of it; async: only for the file
 * before and the copy.
 */
#include "loader/sim/sim_save.h"

#include "common/hist.h"
#include "common/util.h"
#include "fs/device/calibrate.h"
#include "loader/sim/sim_mounts.h"
#include "loader/sim/sim_step.h"
#include "loader/train/resume.h"

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
	struct sim *s = n->sim;

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
	struct account *a = n->account;

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

static void start(struct sim_node *n, uint64_t now)
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

void sim_save_happen(struct sim_node *n, uint32_t which, uint64_t now)
{
	switch (which) {
	case SIM_STEP_OVER:
		n->save.from_ns = now;
		n->save.waits = n->save.writes;
		if (!n->save.writes)
			copy(n, now);
		break;
	case COPIED: start(n, now); break;
	default: write_on(n, now);
	}
}
