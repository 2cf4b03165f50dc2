/* SPDX-License-Identifier: MIT */
/*
 * gpemu-train --simulate: a session whose epochs are computed (sim.h), from its
 * options to the report.
 *
 *	m->left_out = json_array();
 *	simulate_options(&s->options, m->left_out, err);
 *	train_options_resolve(&s->options, &s->choice, err);
 *	simulate_open(&m, s, err);
 *	while (session_more(s))
 *		simulate_epoch(&m, err);
 *	simulate_report(&m, err);
 *	report_json(session_report(s));
 *	simulate_close(&m);		then session_close
 *
 * Functions return 0 or -errno with a text.
 */
#ifndef GPEMU_LOADER_SIM_SIMULATE_H
#define GPEMU_LOADER_SIM_SIMULATE_H

#include "loader/sim/sim.h"
#include "loader/sim/sim_data.h"
#include "loader/train/session.h"

/* All zeros before simulate_open. */
struct simulate {
	struct session *session;
	struct comm comm; /* says how many nodes there are */
	struct pipeline_config pipeline;
	struct fs_config fs;
	struct sim_data data;
	struct sim_mounts *mounts;
	uint64_t announced; /* epochs below: to the mounts; 0: none */
	struct train_sim *sim;
	struct resume_simulated saved;
	uint64_t now_ns;
	struct train_account *account, *total, *warm; /* of each node */
	struct sim_counts counts;		      /* of all epochs */
	json_t *epochs;				      /* counts of each epoch */
	json_t *left_out; /* what no simulation knows; or NULL */
};

/* -EINVAL: an option has no meaning without, or with, --simulate; with
 * --approximate it is left out instead, and appended to the array `left_out`.
 * Sets those that follow from the number of nodes. */
int simulate_options(struct train_options *o, json_t *left_out,
		     struct err *err);
/* -EINVAL: a choice, or an option of gpemu-fs, that no simulation knows. Opens
 * nothing but --fs-config. */
int simulate_check(const struct train_options *o, const struct train_choice *c,
		   struct err *err);
/* Close with simulate_close, failed or not. */
int simulate_open(struct simulate *m, struct session *s, struct err *err);
int simulate_epoch(struct simulate *m, struct err *err);
/* Completes the session's report. */
int simulate_report(struct simulate *m, struct err *err);
void simulate_close(struct simulate *m);

#endif
