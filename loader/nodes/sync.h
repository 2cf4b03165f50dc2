/* SPDX-License-Identifier: MIT */
/*
 * The step of a run on several nodes: an all-reduce over all of them, which no
 * node leaves before the last one has its gradients.
 *
 *	node 0	|--batch--|-----compute-----|----wait----|reduce|optimiser|
 *	node 1	|-------batch------|-----compute----|wait|reduce|optimiser|
 *	node 2	|----------batch-----------|---compute---|reduce|optimiser|
 *		base						     base
 *
 * As soon as a node has its batch it knows when its backward pass will end.
 * It sends that to all others, relative to the end of the previous step,
 * `base`. From these records each node computes the same end of the step. So
 * clocks are never compared: the nodes agree on the length of a step, and
 * each counts on its own clock from the common begin of the epoch. The
 * records travel while the GPUs compute, and do not make the step longer.
 *
 * Where the gradients share a node's card with its caches (struct card), a step
 * ends as late as on the node whose card delays it most. The nodes exchange
 * these delays at the end of the step, while the next one has begun.
 *
 * The last node keeps the others waiting: it is the straggler of that step.
 * Its delay against another node is attributed to what it waited for longer
 * than that one, in this order and as far as each reaches: its batch (by
 * cause, account.h), the copy to its GPU, its checkpoint. The rest is
 * computation.
 */
#ifndef GPEMU_LOADER_NODES_SYNC_H
#define GPEMU_LOADER_NODES_SYNC_H

#include <jansson.h>
#include <stdint.h>

#include "common/err.h"
#include "emu/gpu/gpus.h"
#include "loader/account/account.h"
#include "loader/comm/comm.h"
#include "common/tick.h"
#include "emu/gpu/collective.h"
#include "loader/dataset/mount.h"

/*
 * The network card of a node, which its gradients share with the traffic of its
 * caches. The card belongs to the mount under the dataset (--peers, --nic).
 *
 * The rank books the buckets of a step (`reduce` in .gpemu/control) as soon as
 * it knows when they can pass. At the time at which they would be reduced
 * without other traffic it reads by how much they are late (.gpemu/nic), and
 * waits for that, again and again, as more may come meanwhile. Without other
 * traffic the delay is 0, and the step ends as modelled, to the ns.
 */
struct card {
	const struct dataset_mount *mount; /* NULL: no card */
	struct tick *tick;		   /* set before card_reduce */
	uint64_t id;
	uint64_t delay_ns; /* of all steps so far */
};

/*
 * Find the card of a mount, which stays in use. 0: *ret is it, or there is
 * none. -EINVAL: another time scale, or not a card of `gb_per_s` (10^9 bytes)
 * as this node's; -EACCES: the mount of another user; as json_read; with a
 * text. No card then.
 */
int card_find(const struct dataset_mount *m, double time_scale, double gb_per_s,
	      struct card *ret, struct err *err);

/* A node's part of a step. In ns; those of the pass since the begin of
 * the step. */
struct sync_record {
	uint64_t start_ns, end_ns; /* its backward pass, as gpus_reach */
	uint64_t optimizer_ns;
	/* before the computation of its slowest GPU */
	struct stalls data;
	uint64_t transfer_ns;
	uint64_t held_ns; /* for a checkpoint */
};

/* Sums over the steps in which a node was last: how long the others waited, by
 * cause; and its own wait for others. */
struct straggler {
	uint64_t n_last;
	struct stalls data;
	uint64_t transfer_ns, held_ns, compute_ns;
	uint64_t waited_ns;
};

struct sync {
	struct comm *comm;
	struct collective reduce;
	/* This step's gradients are kept, on all nodes: nothing is reduced. */
	bool accumulates;
	uint64_t base_ns;
	uint32_t last; /* the node that was last in the last step */
	/* comm->size: of that step, and of all */
	struct sync_record *node;
	struct collective_pass *pass;
	struct straggler *straggler;
	/* some node has a card that it shares; this one: card.mount */
	bool cards;
	struct card card;
	uint64_t *delay; /* comm->size: of the last step */
};

/* `reduce`: over all nodes. -ENOMEM. Close with sync_fini, failed or not. */
int sync_init(struct sync *s, struct comm *comm,
	      const struct collective *reduce);
void sync_fini(struct sync *s);

/* An epoch begins at `now` on all nodes. */
void sync_begin(struct sync *s, uint64_t now);
/* This node's GPUs fell idle at `idle` and compute until `reach`. */
void sync_start(struct sync *s, uint64_t idle, const struct gpus_reach *reach,
		const struct stalls *data, uint64_t transfer_ns);
/* The all-reduce of this step. */
struct collective sync_reduce(const struct sync *s);
/* What it sends: a node's part of a step that began at `base`. */
struct sync_record sync_record(uint64_t base, uint64_t idle,
			       const struct gpus_reach *reach,
			       const struct stalls *data, uint64_t transfer_ns);
/* Wait for the other nodes. *ret_all, of all nodes, and *ret_reduced, when the
 * gradients are reduced, are on this node's clock. As comm_finish. */
int sync_finish(struct sync *s, struct gpus_reach *ret_all,
		uint64_t *ret_reduced, struct err *err);
/* The same once `node` has the records of all. Waits for nothing. */
void sync_settle(struct sync *s, struct gpus_reach *ret_all,
		 uint64_t *ret_reduced);
/* The gradients of the last step were reduced `ns` later than that: network
 * cards had other traffic. */
void sync_delay(struct sync *s, uint64_t ns);
/* What the node that was last waited for; NULL: it was this one. */
const struct stalls *sync_other(const struct sync *s);

/* The node that kept the others waiting for longest; that time, mean of the
 * others. */
uint32_t sync_slowest(const struct sync *s, uint64_t *ret_ns);
/* The main cause of its delays, as a noun. */
const char *sync_cause(const struct sync *s, uint32_t node);
/* The record's part about the steps of this node, `node`. */
json_t *sync_json(const struct sync *s, uint32_t node);

#endif
