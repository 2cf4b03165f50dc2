/* SPDX-License-Identifier: MIT */
/*
 * Muri: jobs that ask for the same GPUs take turns on them, in groups of up to
 * four, so that one computes while another reads or synchronises. Source: Zhao
 * et al., "Multi-resource interleaving for deep learning training", SIGCOMM
 * 2022, sections 4 and 5. Its two policies differ in the order of jobs alone,
 * their `key`.
 */
#ifndef GPEMU_SCHED_POLICY_MURI_H
#define GPEMU_SCHED_POLICY_MURI_H

#include "common/conf/conf.h"
#include "sched/core/schedule.h"

struct muri_options {
	uint64_t group; /* jobs of one at most */
	bool matching;
};

extern const struct conf_field muri_fields[];
extern const struct muri_options muri_defaults;

struct muri_team;
struct muri_pair;

struct muri {
	struct muri_team *teams; /* jobs, and groups of them */
	size_t n_teams;
	struct muri_pair *pairs;
	size_t n_pairs;
	/* by place in the queue: the bucket, the next place of that bucket,
	 * whether it is in a team */
	uint32_t *bucket, *next;
	bool *admitted;
	uint32_t *head;	   /* of each bucket, the first place */
	uint32_t *weights; /* of a matching, and its result */
	uint32_t *partners;
	uint32_t *rank; /* by job: its place in the queue */
	bool *placed;	/* by job */
};

/* Hooks of both. */
int muri_begin(struct sched_schedule *s, const struct view *v, struct err *err);
int muri_decide(struct sched_schedule *s, const struct view *v,
		struct sched_plan *ret);

/* Both: `order` is their key. */
#define MURI_SCHEDULE(word, text, order)                                   \
	const struct schedule_ops schedule_##word = {                      \
		.plugin = { .name = #word,                                 \
			    .summary = text,                               \
			    .state_size = sizeof(struct muri),             \
			    .options = muri_fields,                        \
			    .defaults = &muri_defaults,                    \
			    .options_size = sizeof(struct muri_options) }, \
		.preempts = true,                                          \
		.groups = true,                                            \
		.places = true,                                            \
		.key = order,                                              \
		.decide = muri_decide,                                     \
		.begin = muri_begin,                                       \
	}

#endif
