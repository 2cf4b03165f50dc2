/* SPDX-License-Identifier: MIT */
/* The state of a training run (session.h), which all parts of it share. */
#ifndef GPEMU_LOADER_TRAIN_SESSION_STATE_H
#define GPEMU_LOADER_TRAIN_SESSION_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/log.h"
#include "loader/dataset/dataset.h"
#include "loader/account/observe.h"
#include "loader/comm/comm.h"
#include "loader/dataset/format_open.h"
#include "loader/dataset/mount.h"
#include "loader/train/bad_samples.h"
#include "loader/train/report.h"
#include "loader/train/resume.h"
#include "loader/order/announce.h"
#include "common/program/commands.h"
#include "loader/train/train.h"
#include "loader/options/train_data.h"
#include "loader/options/train_node.h"
#include "loader/options/train_options.h"
#include "loader/options/train_prep.h"
#include "emu/node/turns.h"

/* How a service makes batches for this run. */
struct session_way {
	enum fastflow_split split;
	struct remote_service service;
	char *job;
};

struct session {
	/* the caller's, between session_init and session_open */
	struct train_options options;
	struct train_choice choice;
	/* Receives notices for the user that are no failures. NULL: drop
	 * them. */
	void (*tell)(void *ctx, enum log_level level, const char *text);
	void *ctx;
	/* The ranks of a run on several nodes, of which this process is one:
	 * `options` have its rank and their number. NULL: the only one. */
	struct comm *comm;
	/* With `options.simulate` the caller's, too: sizes of the samples. It
	 * only opens the session and gets its report. */
	struct dataset data;

	/* read-only for the caller */
	struct tick *tick;
	struct gpu_profile gpu;
	const struct gpu_model *model;
	struct resume resume; /* its `point`: progress so far */
	uint64_t n_steps;     /* steps of the whole run */
	struct report report;

	/* private */
	struct comm alone;
	struct sync sync;      /* several nodes, which train */
	struct device *device; /* lock */
	struct device_job job;
	struct train_prep prep;
	struct train_node node;
	struct format_result how;
	struct dataset_mount mount;
	struct order_schedule schedule;
	uint32_t direct;   /* as struct engine_config */
	uint64_t *address; /* as struct flow_config */
	uint32_t *holder;  /* as struct order_input */
	struct step_timeline timeline;
	FILE *step_log;
	struct session_way way[OFFLOAD_WAYS]; /* of --loader service */
	uint32_t n_ways;
	struct offload offload;
	char *offload_key[3]; /* with --offload-cache: struct fastflow_key */
	struct pipeline_config config;
	struct train train;
	struct bad_samples bad;
	struct train_account *account; /* of the current epoch; NULL: none */
	struct observed observed;      /* fills in `account` */
	struct announcer announcer;
	struct mount_hits hits; /* at the start of the epoch */
	bool hits_known;
	struct checkpoint_stats checkpoints;
	uint64_t cpu_ns;
	uint64_t n_left; /* samples of the epoch not taken yet */
	int ended;	 /* 0; else -errno: no epoch can begin */
	pthread_mutex_t lock;
	struct intake *intake;	 /* lock, for session_interrupt */
	struct staging *staging; /* the same; NULL: no other jobs */
	atomic_bool stop;	 /* interrupted */
	struct turns_stages stages;
	struct turns turns;	   /* members 0: with no other jobs */
	struct commands *commands; /* NULL: none are taken */
	json_t *cores_set;	   /* lock: when, and to what; NULL: never */
	/* of closed pipelines */
	uint64_t pinned_bytes;
	json_t *services; /* as intake_service_json; NULL: none */
};

#endif
