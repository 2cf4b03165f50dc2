/* SPDX-License-Identifier: MIT */
/*
 * The command line of a job. In its words, and in that of --mount, stand
 *
 *	{class}	the class of the job
 *	{job}	its number, in order of arrival
 *	{cores}	its CPUs
 *	{gpu}	the model of its GPUs; cpu: it runs without
 *	{node}	the number of their node, the first of several
 *	{stages} stages of an iteration, for --stages of gpemu-train
 */
#ifndef GPEMU_SCHED_LIVE_ARGV_H
#define GPEMU_SCHED_LIVE_ARGV_H

#include "sched/live/run.h"

/* Steps of a job, and whether it can run live with this command: -EINVAL with a
 * text. */
int argv_check(const struct live_config *c, const struct sched_job *job,
	       uint64_t *ret_steps, struct err *err);
/* Has the command the words {cores}, {stages}? */
bool argv_uses_cores(const struct live_config *c);
bool argv_uses_stages(const struct live_config *c);
/* Does the text have the word {job}, and none that depends on its parts? */
bool argv_is_of_job(const char *text);
/* What {cores} is: the CPUs of the parts, rounded, at least 1. */
uint32_t argv_cores(const struct sched_part *parts, size_t n);
/* The folder of a job, malloc'ed. NULL: no memory. */
char *argv_folder(const struct live *l, uint32_t job);
/* A text with its words replaced by what they stand for, malloc'ed. NULL: no
 * memory. */
char *argv_words(const struct live *l, uint32_t job, const char *text);
/*
 * The newest step of which the job has a checkpoint; 0: none. A file is judged
 * by its name.
 */
uint64_t argv_done(const char *folder);
/* What a process is given besides its parts; NULL or "": none of it. */
struct argv_given {
	const char *folder;
	const char *control;	/* its FIFO */
	const char *turns;	/* its seat */
	const char *gpu_server; /* the socket of its GPUs */
};

/*
 * gpemu-train with what the job gets, ended by NULL; free with argv_free.
 * Defaults stand before the options of the user, which may override them; what
 * is the scheduler's decision stands behind. -ENOMEM.
 */
int argv_make(const struct live *l, uint32_t job, const struct argv_given *g,
	      char ***ret);
void argv_free(char **argv);

#endif
