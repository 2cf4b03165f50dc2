/* SPDX-License-Identifier: MIT */
/*
 * What live jobs read (sched/core/storage.h): the cache of their mounts, and
 * the bandwidth that they have of the remote storage behind it, are changed
 * while they run.
 *
 * How much of its data a job finds cached, the counters of its mount say: a
 * cache that has just been given fills during an epoch, and saves nothing
 * before the next one.
 */
#ifndef GPEMU_SCHED_LIVE_REMOTE_H
#define GPEMU_SCHED_LIVE_REMOTE_H

#include "sched/live/run.h"

/* Have the gpemu-fs of a job (--mount) carry out commands, a line each, up to
 * one that fails. If it cannot be told, a warning says that the job's `what`
 * could not be changed: that is no reason to end all. -errno. */
int mount_tell(struct live *l, uint32_t job, const char *what,
	       const char *commands);

/* How much of the data of each job its mount has: `look` of a live run. */
void remote_look(struct sched_run *run);
/* The mounts are told what their jobs have of cache and bandwidth. */
void remote_tell(struct live *l);
/* No process of the job runs any more: its mount has no cache. */
void remote_end(struct live *l, uint32_t job);

#endif
