/* SPDX-License-Identifier: MIT */
/*
 * The faults of a server: the rules in force (fs/layer/fault.h), and the
 *operations that wait because of one.
 *
 *	server_read, server_metadata
 *	  -> no rule fires: on to cache and device, at once
 *	  -> errno alone: answered, at once
 *	  -> delay, stuck: a hold. Its end is whatever comes first:
 *	       its time is over	       goes on, or fails with the rule's errno
 *	       the rule is cleared     goes on as if there had been none
 *	       its client is told      EINTR
 *	       the server stops	       ECONNABORTED
 *
 * Nothing sleeps for a hold: its time is a timer of the fetcher's queue.
 * Without rules an operation pays for one load of an integer.
 */
#ifndef GPEMU_FS_SERVER_FAULTS_H
#define GPEMU_FS_SERVER_FAULTS_H

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "fs/device/fetch.h"

struct fault_live;
struct hold;
struct read_request;
struct server;

struct faults {
	/* constant: what has met the faults goes on there */
	void (*read)(struct server *s, struct read_request *r);
	void (*metadata)(struct server *s, struct fetch *f);
	unsigned n_rules; /* atomic */
	/* first, and never by the timing thread: which rules there are, and
	 * their texts; to change that both locks are needed */
	pthread_mutex_t change_lock;
	/* all below; under it only the timer queue's, and libfuse's */
	pthread_mutex_t lock;
	struct fault_live *rules; /* utlist, in the order of their ids */
	uint32_t last_id;
	struct hold *held; /* uthash by client */
	bool stopping;
};

/* `read`, `metadata`: where operations go on. */
void faults_init(struct faults *f,
		 void (*read)(struct server *s, struct read_request *r),
		 void (*metadata)(struct server *s, struct fetch *f));
/* End what is held, with ECONNABORTED, and all that still comes. */
void faults_stop(struct faults *f);
/* Nothing may be held any more. */
void faults_fini(struct faults *f);

/* true: the operation was answered, or is held; false: it goes on. */
bool faults_meet_read(struct server *s, struct read_request *r);
bool faults_meet_metadata(struct server *s, struct fetch *f);

/* All shown counts back to zero; the rules go on where they are. */
void faults_reset(struct faults *f);
/* An array of a record for each rule. */
json_t *faults_json(struct faults *f);

#endif
