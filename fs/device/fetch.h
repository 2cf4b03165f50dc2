/* SPDX-License-Identifier: MIT */
/*
 * One read of the emulated device: the bytes come from the source, the time
 * from the device model. The device decides at once when it will be done; the
 * real read runs meanwhile, and is a floor under that time, never an addition.
 *
 *	fetch_start --- device_schedule --> deadline
 *	     |                                 |
 *	     +-- read, without waiting ------> timer queue --> done()
 *	     |       (would block)                ^
 *	     +-- job queue -> reader thread ------+
 *
 * No thread sleeps for a fetch. `done` runs on the timer thread.
 */
#ifndef GPEMU_FS_DEVICE_FETCH_H
#define GPEMU_FS_DEVICE_FETCH_H

#include "common/hist.h"
#include "common/timerq.h"
#include "emu/profile/profile_storage.h"
#include "fs/device/calibrate.h"
#include "fs/source/source.h"

struct device;
struct fetcher;

/* A file among several that one read of the device brings. */
struct fetch_piece {
	uint32_t node;
	size_t bytes; /* all of it */
	void *buf;    /* NULL: not wanted */
	int error;    /* 0 or -errno of the real read */
};

struct fetch {
	/* filled in by the caller of fetch_start */
	enum storage_op op;
	uint32_t node;
	uint64_t offset;
	size_t bytes;	 /* charged; for a read also what is read into buf */
	size_t answered; /* of them: bytes for who asked first */
	void *buf;	 /* NULL: no bytes wanted (a metadata operation) */
	/* Instead of buf: several files, each with its own error. Always read
	 * on a reader thread: together they are megabytes. */
	struct fetch_piece *pieces;
	size_t n_pieces;
	uint64_t arrival;
	void *client;	/* of a metadata operation: see struct read_request */
	uint64_t takes; /* not 0: so long, and the device is not asked */
	/* may be called at once, on the caller's thread, when the operation
	 * costs no time; `stopping`: the mount is being torn down */
	void (*done)(struct fetch *f, bool stopping);
	bool later; /* read by a reader thread, even where it would not block;
		     * done is not called by the call that reads */
	bool apart; /* whoever starts it reads its bytes, by fetch_read */
	/* results */
	int error;	   /* 0 or -errno of the real read */
	uint64_t deadline; /* when the device is done */
	uint64_t ahead;	   /* so much earlier it is answered */
	/* private */
	struct timer timer;
	struct fetch *next;
};

struct fetch_stats {
	uint64_t backend_reads, backend_bytes;
	uint64_t inflight;
	struct round_trip round_trip;	 /* taken off deadlines */
	struct hist requested, achieved; /* emulated ns, read operations */
	struct hist error;		 /* wall ns beyond the request */
};

struct fetcher_config {
	struct tick *tick;
	const struct source_ops *source;
	void *source_state;
	const struct tree *tree;
	const struct storage_profile *storage;
	uint64_t seed;
	unsigned n_readers; /* at most: threads for reads that would block */
	/* The first one of the mount: counts the requests in flight of all, and
	 * its round trip applies to all. NULL: this is the first. It must
	 * outlive this one. */
	struct fetcher *lead;
};

int fetcher_new(const struct fetcher_config *config, struct fetcher **ret);
/*
 * End every pending fetch with `stopping`: when this returns all were done,
 * and the fetcher's threads have ended. One that is started later is done at
 * once, with `stopping`.
 */
void fetcher_stop(struct fetcher *f);
/* Stops first; nobody may start any more. NULL is allowed. */
void fetcher_free(struct fetcher *f);

/* Both of what follows; of one that is `apart` the first alone. */
void fetch_start(struct fetcher *fetcher, struct fetch *f);
/* The device's part: counted, and f->deadline is known. Nothing with the op
 * STORAGE_N_OPS, whose bytes were paid for before. */
void fetch_charge(struct fetcher *fetcher, struct fetch *f);
/* The bytes, and the wait for the deadline. */
void fetch_read(struct fetcher *fetcher, struct fetch *f);
/* It was charged, and is done without its bytes: the mount is torn down. */
void fetch_end(struct fetcher *fetcher, struct fetch *f);
/*
 * Only wait: done is called at `at` (emulated ns), never by this call; nothing
 * is asked of the device. Set f->done. -ENOMEM, -ECANCELED (stopped).
 */
int fetch_wait(struct fetcher *fetcher, struct fetch *f, uint64_t at);
/* Answer so much earlier than the device is done, for the way to the reader;
 * counts as if the reader had been asked. Once, before there is more than one
 * reader. */
void fetcher_set_round_trip(struct fetcher *f, const struct round_trip *trip);
/* Exchange the device (fs/device/device.h), live. The one before is the
 * caller's. */
struct device *fetcher_swap_device(struct fetcher *f, struct device *fresh);
/* Two numbers of its stats. */
void fetcher_counts(const struct fetcher *f, uint64_t *ret_reads,
		    uint64_t *ret_bytes);
/* A consistent enough copy. */
void fetcher_stats(struct fetcher *f, struct fetch_stats *ret);
void fetcher_reset_stats(struct fetcher *f);

#endif
