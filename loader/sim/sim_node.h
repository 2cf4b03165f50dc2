/* SPDX-License-Identifier: MIT */
/*
 * One node of a simulation, as states between events: its loader (sim_load.h);
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
 *	a checkpoint	SIM_SAVE
 */
#ifndef GPEMU_LOADER_SIM_SIM_NODE_H
#define GPEMU_LOADER_SIM_SIM_NODE_H

#include "emu/gpu/device.h"
#include "emu/node/cores.h"
#include "loader/account/observe.h"
#include "loader/core/pins.h"
#include "loader/core/windows.h"
#include "loader/nodes/sync.h"
#include "loader/order/schedule.h"
#include "loader/pipeline/pipeline.h"
#include "loader/sim/sim_events.h"
#include "loader/sim/sim_fail.h"
#include "loader/sim/sim_own.h"
#include "net/nic.h"

/* What an event is about, in the upper 8 bits of `what`; in the others which
 * slot, window, batch or fetch. */
enum sim_what {
	SIM_READ,
	SIM_BATCH,
	SIM_LOOK,
	SIM_RELEASE,
	SIM_AHEAD,
	SIM_REDUCED,
	SIM_SAVE
};
enum { SIM_WHAT_SHIFT = 24 };
/* SIM_SAVE: a checkpoint is due; the other numbers are sim.c's. */
enum { SIM_STEP_OVER };
/* SIM_RELEASE of a pinned buffer, not of a window. */
#define SIM_PINNED ((1u << SIM_WHAT_SHIFT) - 1)

struct resume_simulated;

/* Checkpoints of each node, and failures; `every` is 0: none. */
struct sim_save_config {
	uint64_t every; /* steps */
	uint64_t state_bytes, visited_bytes;
	uint64_t file_bytes; /* of a file (--checkpoint-scale) */
	uint64_t copy_ns;    /* of the state from the device */
	uint64_t keep;	     /* files; 0: all */
	bool async;
	/* of the first node */
	struct hist *stalls;
	struct resume_simulated *saved;
	uint64_t mtbf_ns; /* between failures; 0: none */
	uint64_t restart_ns;
};

/* What it points to stays in use. */
struct sim_config {
	const struct pipeline_config *pipeline; /* of each node */
	const struct device_job *job;		/* of each node */
	const struct order_schedule *schedule;	/* `whole`, of all nodes */
	uint32_t nodes;
	/* the nodes reduce gradients: their steps end together; its comm has
	 * their number. NULL: they do not */
	struct sync *sync;
	bool on_cards; /* their gradients share the network cards of the mounts
			*/
	struct sim_mounts *mounts;
	struct sim_save_config save;
	const uint32_t *file; /* of each sample: its node of the tree; with
			       * containers: of each of these */
};

/* A read on its way. */
struct sim_slot {
	uint32_t worker;
	struct window *window;
	uint32_t at; /* position in the window */
	uint32_t sample;
	bool preparing; /* on its worker, which is a core */
	uint64_t start_ns;
	struct train_sim_read read;
};

enum sim_doing { SIM_IDLE, SIM_READING, SIM_PREPARING, SIM_N_DOING };

struct sim_worker {
	struct window *window; /* samples leased, and not taken yet */
	uint32_t at, end;
	uint32_t *unused; /* slots */
	uint32_t n_unused;
	enum sim_doing doing;
	uint64_t since_ns, spent[SIM_N_DOING];
};

struct sim_load {
	struct windows windows;
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
	uint64_t seen_ns; /* by the training loop, not before */
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
	bool saving;  /* until a checkpoint lets it go on */
	bool holding; /* `held` waits for the step before it */
	struct delivery held;
	bool ended;
	/* the pin stage */
	struct pins pins;
	struct sim_pinned *ring; /* by count modulo buffers */
	uint32_t buffers;	 /* free ones */
};

/* The network card that the gradients share. */
struct sim_card {
	struct nic *nic;
	bool booked;	    /* the gradients of this step are */
	uint64_t waited_ns; /* for them, longer than without other traffic */
	uint64_t delay_ns;  /* of all steps */
};

/* The checkpoint that a node writes (sim.c). */
struct sim_save {
	uint64_t n;	    /* so far */
	bool writes, waits; /* a file; the next one, for it */
	uint64_t from_ns;   /* training stands still */
	uint64_t begin_ns;
	size_t op;   /* the next operation of the file */
	uint64_t at; /* bytes written */
};

struct sim_node {
	struct train_sim *sim;
	uint32_t node;
	uint64_t look_ns; /* of the next SIM_LOOK; 0: none */
	struct sim_load load;
	struct sim_train train;
	struct sim_card card;
	struct sim_save save;
	struct train_account *account;
	struct observed observed;
	struct observers observers;
};

/* The step that all nodes have computed (sim.c). */
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

struct train_sim {
	struct sim_config c;
	struct sim_events events;
	struct sim_node *nodes;
	uint32_t depth;	     /* slots of a worker */
	bool pinned;	     /* there is a pin stage */
	void *prep;	     /* state of the transforms */
	size_t sample_bytes; /* transformed; 0: raw */
	struct windows_config windows;
	uint32_t lease, lanes;
	uint64_t epoch;
	const uint32_t *order;
	uint32_t n_reached, n_ended; /* nodes: in this step, in the epoch */
	uint64_t end_ns;	     /* of the nodes that have ended */
	struct sim_reduce reduce;
	struct sim_fail fail;
	uint32_t n_written; /* nodes: of the checkpoint that they write */
	int failed;	    /* -errno */
};

static inline void sim_at(struct sim_node *n, uint64_t at, enum sim_what what,
			  uint32_t which)
{
	sim_events_add(&n->sim->events, at, n->node,
		       (uint32_t)what << SIM_WHAT_SHIFT | which);
}

/* --- sim_step.c ---------------------------------------------------------- */

int sim_step_init(struct sim_node *n);
void sim_step_fini(struct sim_node *n);
void sim_step_begin(struct sim_node *n, uint64_t samples, uint64_t now);
/* Take what there is; call after every event of the node. */
void sim_step_look(struct sim_node *n, uint64_t now);
void sim_step_release(struct sim_node *n, uint32_t what, uint64_t now);
/* The checkpoint lets the training loop go on. */
void sim_step_go_on(struct sim_node *n, uint64_t now);
/* The step of all nodes is over at `reduced`, or will be. */
void sim_step_settle(struct train_sim *s, const struct gpus_reach *all,
		     uint64_t reduced, uint64_t now);

#endif
