/* SPDX-License-Identifier: MIT */
/*
 * The buffers of a trainer, and what of the epoch is in them. A buffer is
 * reserved for a worker before that one may send a batch, the batch is received
 * into it, and it is free again when the GPU has copied it. There is no other
 * memory for batches.
 *
 *	free --shelf_reserve--> a worker's --shelf_put--> ready --shelf_take-->
 *	with the consumer --shelf_free--> free
 *
 * Any thread, under one lock, unless noted.
 */
#ifndef GPEMU_SERVICE_CLIENT_SHELF_H
#define GPEMU_SERVICE_CLIENT_SHELF_H

#include <jansson.h>
#include <pthread.h>

#include "common/err.h"
#include "common/tick.h"
#include "service/client/sweep.h"

struct shelf_buffer {
	unsigned char *bytes;
	struct shelf_buffer *next;
	/* of the batch in it */
	struct msg m;
	uint64_t begun_ns, arrived_ns; /* its first byte, its last */
};

/* Of the consumer's waits, by cause; emulated ns. */
struct shelf_stalls {
	uint64_t network, worker, dispatcher;
};

/* Splits that were lost. arbitrary: more is no longer read by people */
enum { SHELF_LOST = 256 };

struct shelf_lost {
	uint64_t epoch, samples, worker;
	uint32_t split;
};

struct shelf {
	struct tick *tick;
	size_t bytes; /* of a buffer */
	pthread_mutex_t lock;
	pthread_cond_t changed; /* ready, complete, failed, stopping */
	/* lock guards all below */
	struct shelf_buffer *buffer, *free, *ready, **ready_end;
	uint32_t n_buffers, n_ready;
	bool begun, stopping, closing, closed;
	uint64_t turn; /* counts epochs */
	struct sweep sweep;
	int error;
	struct err err;
	struct shelf_stalls stalls;
	/* the consumer's time between batches, without its waits */
	uint64_t taken_ns, busy_ns, n_busy; /* taken_ns 0: none in this epoch */
	uint64_t n_batches, n_twice, n_late;
	/* coordinated reads: batches are taken by m.c, their round; the next */
	bool by_rounds;
	uint64_t round;
	struct shelf_lost lost[SHELF_LOST];
	uint64_t n_lost; /* splits */
};

/* `bytes` each, `buffer` of them, at 4096-aligned addresses. -ENOMEM. Free with
 * shelf_fini, failed or not. */
int shelf_init(struct shelf *s, struct tick *tick, unsigned char **buffer,
	       uint32_t n, size_t bytes);
void shelf_fini(struct shelf *s);

/* Begin an epoch: as sweep_init. Batches of the one before are dropped. */
int shelf_begin(struct shelf *s, enum split_mode mode, uint64_t epoch,
		const uint32_t *order, uint64_t n, uint64_t n_samples,
		uint32_t batch, uint32_t per_split);
/* As sweep_cut, of the epoch that has begun. */
uint64_t shelf_cut(struct shelf *s, uint64_t n);
/* Everything that waits gets the error, now and later; the first counts. */
void shelf_fail(struct shelf *s, int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void shelf_stop(struct shelf *s);

/* The job is over: shelf_is_closing; then wait for shelf_closed, at most until
 * `deadline`. */
void shelf_begin_close(struct shelf *s);
void shelf_wait_closed(struct shelf *s, uint64_t deadline);

/* --- the loop ------------------------------------------------------------- */

/* NULL: none is free. */
struct shelf_buffer *shelf_reserve(struct shelf *s);
/*
 * The batch of b->m is there. 0: the consumer gets it; else as sweep_batch,
 * and -ESTALE also: of another epoch; the buffer is then the caller's.
 */
int shelf_put(struct shelf *s, struct shelf_buffer *b);
/* The worker of a split is lost. */
void shelf_lose(struct shelf *s, uint64_t epoch, uint32_t split,
		uint64_t worker);
/* Is there anything left of the epoch? */
bool shelf_is_open(struct shelf *s);
/* Does it need more than the batches that are on their way? Without splits it
 * is complete with any; what comes later would be for nobody. */
bool shelf_needs(struct shelf *s, uint64_t on_their_way);
bool shelf_is_closing(struct shelf *s);
void shelf_closed(struct shelf *s);

/* --- the consumer --------------------------------------------------------- */

/*
 * The next batch; waits, until `until` (emulated ns, TICK_NEVER) at most: 1: no
 * batch yet, call again. -ENODATA: the epoch has no more. -ECANCELED after
 * shelf_stop; the error of shelf_fail, with its text. From one thread at a
 * time.
 */
int shelf_take(struct shelf *s, uint64_t until, struct shelf_buffer **ret,
	       struct err *err);

/* How a batch came; emulated ns. */
struct shelf_arrival {
	uint64_t complete_ns; /* its worker had completed it */
	uint64_t starved_ns;  /* and had waited for a split before */
	uint64_t arrived_ns;  /* its last byte was here */
	double read_share;    /* of the worker's time: 0..1 */
};
struct shelf_arrival shelf_arrival(const struct shelf_buffer *b);
/* The consumer uses a batch, from now on: counts the wait for it. `idle`: the
 * GPU is without work since then. Returns the share of reads in the wait, 0..1:
 * all but the transforms. Once for each, in any order. */
double shelf_count(struct shelf *s, const struct shelf_arrival *a,
		   uint64_t idle);
void shelf_free(struct shelf *s, struct shelf_buffer *b);
uint32_t shelf_n_ready(struct shelf *s);
/* Emulated ns that the consumer takes for a batch if it never waits; 0: not
 * known yet. */
uint64_t shelf_target(struct shelf *s);
/* Into a record: "stall_s", "batches", "batches_twice", "batches_late",
 * "rounds", "splits_lost", "lost". -ENOMEM. */
int shelf_json(struct shelf *s, json_t *into);

#endif
