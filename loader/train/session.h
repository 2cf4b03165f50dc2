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
 * One thread calls all of it but session_interrupt.
 * Functions return 0 or -errno with a text unless noted otherwise. With several
 * ranks all of them make these calls, and one that fails ends the run with
 * comm_end. The struct must not move from session_open to session_close.
 */
#ifndef GPEMU_LOADER_TRAIN_SESSION_H
#define GPEMU_LOADER_TRAIN_SESSION_H

#include "loader/train/session_open.h"

/* The default options; nothing is open. */
void session_init(struct session *s);
/* The pipeline that session_start makes, and the samples of the current epoch
 * that are left, limited by the steps: for simulations. */
struct pipeline_config session_pipeline(struct session *s);
uint64_t session_epoch_samples(const struct session *s);
/* At any time after session_init, also after a failure. */
void session_close(struct session *s);

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
/* As pipeline_lend; only if session_can_lend, and not more than one when
 * session_next is called. */
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

/*
 * After comm_end: rank 0 collects the accounts and records of all ranks, and
 * from then on `report` is that of the whole run. Nothing for the only rank.
 */
int session_collect(struct session *s, struct err *err);
/* After session_start: all data for the record. Valid until session_close. */
const struct report *session_report(struct session *s);

#endif
