/* SPDX-License-Identifier: MIT */
/*
 * The trainer's end of a preparation service: batches of an epoch, from all
 * workers that the dispatcher knows, into buffers of the caller.
 *
 *	dispatcher --workers, losses--> desk
 *	workers --batches--> links --> shelf --client_next--> consumer
 *
 * A thread of its own serves the connections. The consumer's functions are for
 * one thread, but client_next, which may be another, and client_release and
 * client_stop, which may be any.
 */
#ifndef GPEMU_SERVICE_CLIENT_CLIENT_H
#define GPEMU_SERVICE_CLIENT_CLIENT_H

#include <jansson.h>

#include "common/tick.h"
#include "service/client/shelf.h"

struct client_config {
	struct tick *tick;	/* borrowed, as are the buffers */
	const char *dispatcher; /* HOST:PORT */
	const char *key;	/* a file; NULL: none */
	double nic_bytes_per_s; /* the emulated card; 0: no limit */
	uint64_t nic_latency_ns;
	const char *definition; /* for the workers */
	/* the job's name, where trainers share it; NULL: they do not */
	const char *job;
	struct share share;
	uint32_t consumer;    /* of rounds: its number */
	enum split_mode mode; /* of a job that is shared: off */
	uint32_t batch, per_split;
	uint64_t n_samples; /* of the dataset */
	uint64_t wait_ns;   /* wall: no longer without dispatcher or workers */
	/* n_buffers of buffer_bytes, each 4096-aligned */
	unsigned char **buffer;
	uint32_t n_buffers;
	size_t buffer_bytes;
};

struct client;

/* Bytes of a buffer for a batch of `n` samples of `bytes` in all. */
size_t client_buffer_bytes(uint32_t n, uint64_t bytes);
/* As access_init and access_find, with a text. The dispatcher need not be there
 * yet. */
int client_new(const struct client_config *c, struct client **ret,
	       struct err *err);
/* The job is over. NULL is allowed. */
void client_free(struct client *c);
/* Begin an epoch, in this order; the one before need not be complete. -EINVAL,
 * -ENOMEM; with a text. `order` stays in use until the next. */
int client_begin(struct client *c, uint64_t epoch, const uint32_t *order,
		 uint64_t n, struct err *err);
/* As sweep_cut, of the epoch that has begun. */
uint64_t client_cut(struct client *c, uint64_t n);
/* As shelf_take; the samples are in b->m (msg_batch_sample, msg_batch_data)
 * until client_release. */
int client_next(struct client *c, uint64_t until, struct shelf_buffer **ret,
		struct err *err);
/* As shelf_count. */
double client_count(struct client *c, const struct shelf_arrival *a,
		    uint64_t idle);
void client_release(struct client *c, struct shelf_buffer *b);
uint32_t client_n_ready(struct client *c);
/* Any thread: client_next returns -ECANCELED, now and later. */
void client_stop(struct client *c);
/* For the record; NULL: no memory. */
json_t *client_json(struct client *c);

#endif
