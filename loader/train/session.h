/* SPDX-License-Identifier: MIT */
/*
 * A training run without a user interface: from its options to the dataset, the
 * schedule, the pipeline, the GPU, and the record. Prints nothing.
 *
 *	session_init(&s);			and fill in s.options
 *	train_options_resolve(&s.options, &s.choice, err);
 *	session_open(&s, err);
 *	session_start(&s, err);
 *	while (session_more(&s)) {
 *		session_begin(&s, err);
 *		while ((r = session_next(&s, TICK_NEVER, &d, err)) == 0)
 *			session_step(&s, &d, &step, err);
 *		session_end(&s, r, err);
 *	}
 *	session_close_logs(&s, err);
 *	report_json(session_report(&s));
 *	session_close(&s);
 *
 * One thread calls all of it but session_interrupt and session_set_cores.
 * Functions return 0 or -errno with a text unless noted otherwise. With several
 * ranks all of them make these calls, and one that fails ends the run with
 * comm_end. The struct must not move from session_open to session_close.
 */
#ifndef GPEMU_LOADER_TRAIN_SESSION_H
#define GPEMU_LOADER_TRAIN_SESSION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/log.h"
#include "loader/dataset/dataset.h"
#include "loader/account/observe_account.h"
#include "loader/account/observe_timeline.h"
#include "loader/comm/comm.h"
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
	struct mount mount;
	struct schedule schedule;
	uint32_t direct;   /* as struct engine_config */
	uint64_t *address; /* as struct flow_config */
	uint32_t *holder;  /* as struct order_input */
	struct timeline timeline;
	FILE *step_log;
	struct session_way way[OFFLOAD_WAYS]; /* of --loader service */
	uint32_t n_ways;
	struct offload offload;
	char *offload_key[3]; /* with --offload-cache: struct fastflow_key */
	struct pipeline_config config;
	struct train train;
	struct bad_samples bad;
	struct account *account;  /* of the current epoch; NULL: none */
	struct observed observed; /* fills in `account` */
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

/* The default options; nothing is open. */
void session_init(struct session *s);
/* The pipeline that session_start makes, and the samples of the current epoch
 * that are left, limited by the steps: for simulations. */
struct pipeline_config session_pipeline(struct session *s);
uint64_t session_epoch_samples(const struct session *s);
/* Batches of the pipeline in a whole epoch, without a limit of steps. */
uint64_t session_epoch_batches(const struct session *s);
/* At any time after session_init, also after a failure. */
void session_close(struct session *s);

/* Opens the profiles, the dataset, the checkpoints, the logs. Afterwards
 * `options` have the effective values. */
int session_open(struct session *s, struct err *err);
/* Measure the rig's ceiling, half a wall second, unless it is known, or neither
 * --ceiling nor --analyze asks for it. */
int session_ceiling(struct session *s, struct err *err);
/* Starts the clock, runs --analyze, starts the threads, waits for the other
 * jobs of --coordinate. -ECANCELED: interrupted. */
int session_start(struct session *s, struct err *err);

/* Are steps left? */
bool session_more(const struct session *s);
/* Begin the epoch in which the run stands, or the rest of it. */
int session_begin(struct session *s, struct err *err);
/* As pipeline_next_until. */
int session_next(struct session *s, uint64_t until, struct delivery *ret,
		 struct err *err);
/* As train_step; writes a checkpoint when one is due. */
int session_step(struct session *s, struct delivery *d, struct gpu_step *ret,
		 struct err *err);
/* As train_release: the batch makes no step. */
int session_release(struct session *s, struct delivery *d, struct err *err);
/* As pipeline_lend; only if session_can_lend (session_pin.h), and not more than
 * one when session_next is called. */
int session_lend(struct session *s, struct delivery *d, struct loan **ret);
/* As pipeline_loans. */
uint32_t session_loans(const struct session *s);
/*
 * `r`: why the epoch ends, as returned by session_next or session_step; 0: the
 * remaining batches are dropped. Returns `r`, but 0 for -ENODATA, or a later
 * error. The next epoch follows unless the run has ended.
 */
int session_end(struct session *s, int r, struct err *err);

/* From any thread, also before session_start: every wait ends; session_next and
 * later calls return -ECANCELED. */
void session_interrupt(struct session *s);

/* From any thread, after session_start: virtual cores from now on. -ERANGE,
 * -ENOTSUP: the run has none apart from its workers. */
int session_set_cores(struct session *s, uint32_t n, struct err *err);

/*
 * After comm_end: rank 0 collects the accounts and records of all ranks, and
 * from then on `report` is that of the whole run. Nothing for the only rank.
 */
int session_collect(struct session *s, struct err *err);
/* After the last write to the timeline and the log of steps. */
int session_close_logs(struct session *s, struct err *err);
/* After session_start: all data for the record. Valid until session_close. */
const struct report *session_report(struct session *s);

#endif
