/* SPDX-License-Identifier: MIT */
/* The options of gpemu-train (their table: train_table.h), and what they choose
 * (train_resolve.h). */
#ifndef GPEMU_LOADER_OPTIONS_TRAIN_OPTIONS_H
#define GPEMU_LOADER_OPTIONS_TRAIN_OPTIONS_H

#include "common/conf/plugin_choice.h"
#include "common/program/cli.h"
#include "common/program/progress.h"
#include "emu/gpu/gpus.h"
#include "loader/batching/batching.h"
#include "loader/dataset/format_open.h"
#include "loader/engine/engine.h"
#include "loader/order/order.h"
#include "loader/pipeline/sift.h"
#include "loader/prep/prep.h"
#include "loader/staging/coordinate.h"

struct train_options {
	struct cli_common common;
	char *data, *bad_samples, *model, *gpu_server, *server_user, *gpu;
	char *precision; /* NULL: as the model's table, and fp32 */
	char *optimizer;
	uint64_t sequence_length; /* tokens; 0: not given */
	uint64_t pad_multiple;	  /* tokens; 0: to sequence_length */
	char *format, *index;
	uint64_t scan_threads;		   /* 0: a default */
	uint64_t batch, epochs, max_steps; /* max_steps 0: all */
	char *loader;
	uint64_t workers; /* 0: one per CPU */
	uint64_t queue_depth, superbatch;
	uint64_t gpu_memory; /* bytes; 0: the profile's */
	double gpu_rate;     /* samples per s; 0: the profile's */
	char *order, *batching, *prep;
	char *prep_output, *prep_profile; /* profile NULL: the default */
	char *prep_time;		  /* NULL: the profile's */
	uint64_t image_size;
	uint64_t cores; /* 0: as many as workers */
	char *dump_order, *replay_order;
	char *mpi;
	uint64_t nodes; /* ranks to start; 1: as the launcher has */
	uint64_t rank, world_size;
	char *coordinate;		/* NULL: with no other jobs */
	char *dispatcher, *service_key; /* of --loader service; NULL: none */
	char *offload, *offload_cache;	/* the same */
	char *last_step;
	bool together; /* resolved: the ranks run together, under MPI */
	char *dump_samples;
	uint64_t checkpoint_every; /* steps; 0: no checkpoints */
	char *checkpoint_dir, *checkpoint;
	uint64_t checkpoint_size; /* bytes; 0: that of the model's state */
	double checkpoint_scale;  /* the part of it that is written */
	uint64_t checkpoint_keep; /* 0: keep all */
	bool resume;
	int64_t resume_step; /* -1: the newest step */
	uint64_t prefetch;
	uint64_t pin_budget; /* bytes */
	char *pin_mode;
	bool pin;	 /* resolved: the GPU copies from page-locked memory */
	bool pin_auto;	 /* resolved: as far as locking is permitted */
	bool pin_direct; /* resolved: samples are made in that memory */
	bool pin_inline; /* resolved: the consumer copies them into it */
	bool drop_last, extrapolate, analyze, direct, sort_extents, keep_awake;
	bool ceiling;
	uint64_t analyze_steps;
	double time_scale;
	char *progress, *transfer;
	char *node;    /* NULL: none */
	uint64_t gpus; /* 0: as the node */
	char *parallel, *allreduce, *jitter, *step_time, *prep_gpu;
	uint64_t fsdp_units, fsdp_prefetch;
	uint64_t accumulate; /* steps per optimiser step */
	bool inference, model_transfer;
	char *trace, *steps; /* paths; NULL: none */
	char *control;	     /* a FIFO; NULL: none */
	char *stages, *turns;
	uint64_t samples;    /* per epoch, without files */
	bool simulate;	     /* loader/sim/simulate.h, as the next */
	struct conf_list fs; /* of char * */
	char *fs_config, *caches;
	bool shared_storage, approximate;
	uint64_t mtbf, restart; /* ns; mtbf 0: no failures */
};

/* Where the last of the transforms runs (struct prep_last), of batches that
 * others make. */
enum last_step {
	LAST_THERE,
	LAST_HERE,
	LAST_PECAN, /* where fewer bytes are sent: service/decide/pecan.h */
	LAST_AUTO,  /* measured */
};

/* --bad-samples */
struct train_bad {
	double percent; /* of an epoch's samples; < 0: `n` of them */
	uint64_t n;
	enum sift sift;
};

/* The parsed values of named options. */
struct train_choice {
	const struct engine_ops *engine;
	/* Others make batches (--loader service), of an epoch this part;
	 * < 0: to be measured. NULL: they make none. */
	const struct engine_ops *remote;
	double part;
	enum last_step last_step; /* what others make */
	const struct order_ops *order;
	const struct batching_ops *batching;
	const struct prep_ops *prep;
	/* with their own options; empty for an engine outside the table */
	struct plugin_choice loader_choice, order_choice, prep_choice;
	struct plugin_choice batching_choice;
	struct plugin_choice local_choice;  /* of --loader service, here */
	struct plugin_choice format_choice; /* empty: auto */
	struct train_bad bad;
	enum gpu_transfer transfer;
	enum gpus_parallel parallel;
	enum progress_mode progress;
	enum format_index index;
	struct coordinate coordinate;
};

#endif
