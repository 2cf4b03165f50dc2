/* SPDX-License-Identifier: MIT */
/*
 * One node of a simulation, as states between events: its loader (sim_load.c);
 * its pin stage, training loop and GPUs (sim_step.c). The two meet in batches:
 * the loader completes them, the pin stage or the training loop takes them, and
 * their release makes room for the next.
 *
 * They mirror loader/pipeline and loader/train, whose threads become events:
 *
 *	a worker's read		SIM_READ of its slot
 *	a core that transforms	SIM_READ of its slot, or SIM_BATCH
 *	the pin thread, the consumer	SIM_LOOK
 *	a copy to the GPU ends	SIM_RELEASE
 *	a fetch of the mount, ahead	SIM_AHEAD
 *	the gradients on the network card	SIM_REDUCED
 */
#ifndef GPEMU_LOADER_SIM_SIM_NODE_H
#define GPEMU_LOADER_SIM_SIM_NODE_H

#include "emu/gpu/device.h"
#include "emu/node/cores.h"
#include "loader/account/observe_account.h"
#include "loader/nodes/sync.h"
#include "loader/pipeline/pipeline.h"
#include "loader/sim/sim.h"
#include "loader/sim/sim_events.h"
#include "loader/sim/sim_gather.h"
#include "loader/sim/sim_read.h"
#include "net/nic.h"

/* What an event is about, in the upper 8 bits of `what`; in the others which
 * slot, window, batch or fetch. */
enum sim_what {
	SIM_READ,
	SIM_BATCH,
	SIM_LOOK,
	SIM_RELEASE,
	SIM_AHEAD,
	SIM_REDUCED
};
enum { SIM_WHAT_SHIFT = 24 };
/* SIM_RELEASE of a pinned buffer, not of a window. */
#define SIM_PINNED ((1u << SIM_WHAT_SHIFT) - 1)

struct sim_window;

struct sim_batch {
	struct sim_window *window;
	uint32_t n, pending;
	bool complete;
	uint32_t owner;
	uint64_t bytes, due_ns, complete_ns;
	struct activity spent; /* as struct batch */
	struct sim_batch *next;
};

struct sim_window {
	uint64_t index;
	uint64_t first; /* its first sample, of the node's epoch */
	uint32_t n, n_batches, taken, arrived, released;
	struct sim_batch *batch;
};

/* A read on its way. */
struct sim_slot {
	uint32_t worker;
	struct sim_window *window;
	uint32_t at; /* position in the window */
	uint32_t sample;
	bool preparing; /* on its worker, which is a core */
	uint64_t start_ns;
	struct sim_read read;
};

enum sim_doing { SIM_IDLE, SIM_READING, SIM_PREPARING, SIM_N_DOING };

struct sim_worker {
	struct sim_window *window; /* samples leased, and not taken yet */
	uint32_t at, end;
	uint32_t *unused; /* slots */
	uint32_t n_unused;
	enum sim_doing doing;
	uint64_t since_ns, spent[SIM_N_DOING];
};

struct sim_load {
	uint64_t n, n_left; /* samples of the epoch; not in a window yet */
	struct sim_window *windows, **unused, **open, *current;
	uint32_t n_unused;
	uint64_t n_opened, out_window;
	uint32_t out_batch;
	struct sim_batch *first, *last; /* completed, if in any order */
	struct sim_gather *gather;	/* NULL: the workers' batches */
	uint32_t n_complete;
	struct sim_worker *workers;
	struct sim_slot *slots;
	struct cores *cores; /* virtual; NULL: workers are cores, or none */
	struct activity *since;
};

/* A step that is being assembled, or waits for other nodes. */
struct sim_flight {
	struct delivery batch[GPUS_MAX];
	uint32_t n, samples;
	uint64_t bytes, copy_end[GPUS_MAX];
	bool even, open; /* open: submitted, and not reported */
	uint32_t used;
	uint64_t idle_ns;
};

/* A batch that the pin stage has. */
struct sim_pinned {
	struct delivery d;
	uint64_t visible_ns;
};

struct sim_train {
	struct gpus gpus;
	struct rng rng[GPUS_MAX];
	struct gpu_step step[GPUS_MAX];
	uint64_t idle_ns, free_ns, end_ns;
	uint64_t n_left;      /* samples of the epoch not taken yet */
	uint64_t n_steps;     /* of the epoch */
	uint64_t n_submitted; /* of the run */
	struct sim_flight flight;
	bool blocked; /* until the step has ended */
	bool holding; /* `held` waits for the step before it */
	struct delivery held;
	bool ended;
	/* the pin stage */
	uint64_t *lane;
	uint64_t n_pinned, n_taken; /* batches so far */
	struct sim_pinned *ring;
	uint32_t n_buffers, buffers; /* all, and free ones */
};

/* The network card that the gradients share. */
struct sim_card {
	struct nic *nic;
	bool booked;	    /* the gradients of this step are */
	uint64_t waited_ns; /* for them, longer than without other traffic */
	uint64_t delay_ns;  /* of all steps */
};

struct sim_node {
	struct sim *sim;
	uint32_t node;
	uint64_t look_ns; /* of the next SIM_LOOK; 0: none */
	struct sim_load load;
	struct sim_train train;
	struct sim_card card;
	struct account *account;
	struct observed observed;
	struct observers observers;
};

/* The step that all nodes have computed (sim_reduce.h). */
struct sim_reduce {
	bool on_cards; /* constant: the gradients share the caches' */
	bool open;
	uint32_t n_over; /* nodes whose card has passed their gradients */
	struct gpus_reach all;
	/* the end of the step before; of the all-reduce, without other
	 * traffic; the longest delay by that */
	uint64_t base_ns, reduced_ns, most_ns;
	struct gradients_bucket *bucket;
	size_t n_buckets, room;
};

struct sim {
	struct sim_config c;
	struct sim_events events;
	struct sim_node *nodes;
	uint32_t depth;	     /* slots of a worker */
	bool pinned;	     /* there is a pin stage */
	void *prep;	     /* state of the transforms */
	size_t sample_bytes; /* transformed; 0: raw */
	/* of a window; 1 and 1 where batches are gathered */
	uint32_t batch, superbatch;
	uint32_t n_windows, lease, lanes;
	uint64_t epoch;
	const uint32_t *order;
	uint32_t n_reached, n_ended; /* nodes: in this step, in the epoch */
	uint64_t end_ns;	     /* of the nodes that have ended */
	struct sim_reduce reduce;
	int failed; /* -errno */
};

static inline void sim_at(struct sim_node *n, uint64_t at, enum sim_what what,
			  uint32_t which)
{
	sim_events_add(&n->sim->events, at, n->node,
		       (uint32_t)what << SIM_WHAT_SHIFT | which);
}

/* --- sim_load.c ----------------------------------------------------------- */

/* -ENOMEM. sim_load_fini, failed or not. */
int sim_load_init(struct sim_node *n);
void sim_load_fini(struct sim_node *n);
/* Begin the fetches ahead that are due. */
void sim_load_ahead(struct sim_node *n, uint64_t now);
/* An epoch of `samples` begins. */
void sim_load_begin(struct sim_node *n, uint64_t samples, uint64_t now);
/* An event of a slot, of a fetch, of a batch. */
void sim_load_read(struct sim_node *n, uint32_t slot, uint64_t now);
void sim_load_fetch(struct sim_node *n, uint32_t fetch, uint64_t now);
void sim_load_batch(struct sim_node *n, uint32_t batch, uint64_t now);
/* The next batch, complete; NULL: there is none now. */
struct sim_batch *sim_load_next(struct sim_node *n);
/* It is in nobody's hands: the loader may go on. */
void sim_load_release(struct sim_node *n, uint32_t window, uint64_t now);
uint32_t sim_load_window(const struct sim_node *n, const struct sim_batch *b);

/* --- sim_step.c ----------------------------------------------------------- */

int sim_step_init(struct sim_node *n);
void sim_step_fini(struct sim_node *n);
void sim_step_begin(struct sim_node *n, uint64_t samples, uint64_t now);
/* Take what there is; call after every event of the node. */
void sim_step_look(struct sim_node *n, uint64_t now);
void sim_step_release(struct sim_node *n, uint32_t what, uint64_t now);
/* The step of all nodes is over at `reduced`, or will be. */
void sim_step_settle(struct sim *s, const struct gpus_reach *all,
		     uint64_t reduced, uint64_t now);

#endif
