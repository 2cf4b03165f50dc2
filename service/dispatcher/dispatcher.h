/* SPDX-License-Identifier: MIT */
/*
 * The dispatcher of a preparation service: trainers bring their jobs to it,
 * workers take splits from it. It has metadata alone; batches go from workers
 * to trainers.
 *
 *	trainer --JOB, EPOCH, DONE--> dispatcher --JOB, EPOCH, SPLIT--> worker
 *	        <----TASK, LOST------            <--------WANT---------
 *
 * One thread does all of it. It writes to the journal, and waits for the disk,
 * before a split leaves: the splits of one request are one write.
 */
#ifndef GPEMU_SERVICE_DISPATCHER_DISPATCHER_H
#define GPEMU_SERVICE_DISPATCHER_DISPATCHER_H

#include <jansson.h>

#include "service/dispatcher/config.h"

struct dispatcher;

/* Reads the journal and listens. As journal_open and addr_listen, with a
 * text. */
int dispatcher_new(const struct dispatcher_config *c, struct dispatcher **ret,
		   struct err *err);
/* Serve until dispatcher_stop. -errno with a text: the journal cannot be
 * written. */
int dispatcher_run(struct dispatcher *d, struct err *err);
/* Any thread. */
void dispatcher_stop(struct dispatcher *d);
void dispatcher_free(struct dispatcher *d);
/* After dispatcher_run. {"workers":[...],"jobs","epochs","splits_assigned",
 * "splits_done","splits_lost","workers_lost","connections":{},"journal":{}}. */
json_t *dispatcher_json(const struct dispatcher *d);

#endif
