/* SPDX-License-Identifier: MIT */
/*
 * One operation of the emulated device: the bytes of a read come from the
 * source, the time from the device model. The device fixes the deadline at
 * once. The real read runs meanwhile; it is a lower bound of the duration and
 * does not add to it.
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

/* arbitrary: threads that `work` may hold up (struct fetch); a program that
 * allows it has so many more */
enum { FETCH_HERE = 2 };

/* One of several files in one read of the device. */
struct fetch_piece {
	uint32_t node;
	size_t bytes; /* all of it */
	void *buf;    /* NULL: not needed */
	int error;    /* 0 or -errno of the real read */
};

struct fetch {
	/* filled in by the caller of fetch_start */
	enum storage_op op;
	uint32_t node;
	uint64_t offset;
	size_t bytes;	 /* charged; a read reads them into buf */
	size_t answered; /* of these: bytes for the first requester */
	void *buf;	 /* NULL: no bytes needed (a metadata operation) */
	/* Instead of buf: several files, each with its own error. Always read
	 * on a reader thread: together they are megabytes. */
	struct fetch_piece *pieces;
	size_t n_pieces;
	/* Instead of both: the real operation on a file that is not one of the
	 * tree. 0 or -errno. On a reader thread, and only if no fault ended the
	 * operation before. With `here` on the caller's thread, which it seldom
	 * makes wait, unless FETCH_HERE others are there: the wake-up of a
	 * reader takes longer than to copy a few pages. */
	int (*work)(struct fetch *f);
	bool here;
	/* Of that file, below the root of the mount; NULL: `node` is one of the
	 * tree. */
	const char *path;
	/* Of a read: so many bytes before its own came with the same request,
	 * which goes on. 0: it is a request. */
	uint64_t before;
	uint64_t arrival;
	void *client;	/* of a metadata operation: see struct read_request */
	uint64_t takes; /* not 0: the duration, without the device */
	/* may be called at once, on the caller's thread, if the operation costs
	 * no time; `stopping`: the mount is being torn down */
	void (*done)(struct fetch *f, bool stopping);
	bool later; /* read by a reader thread, even if it would not block; the
		     * call that reads does not call done */
	bool apart; /* its starter reads its bytes, by fetch_read */
	/* results */
	bool remote;	   /* another node had the bytes */
	int error;	   /* 0 or -errno of the real read */
	uint64_t deadline; /* when the device completes it */
	uint64_t ahead;	   /* its answer leaves this much earlier */
	/* private */
	struct timer timer;
	struct fetch *next;
};

/* Does it open a file of the tree, which a layer may have? */
static inline bool fetch_opens(const struct fetch *f)
{
	return f->op == STORAGE_OPEN && !f->path;
}

/* Requests that the device has served, and what they cost. */
struct fetch_bill {
	uint64_t requests[STORAGE_N_OPS];
	double usd;
	bool priced; /* by a profile with prices; else usd is 0 */
};

struct fetch_stats {
	uint64_t backend_reads, backend_bytes;
	uint64_t writes, bytes_written, syncs;
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
	/* The mount's first fetcher: it counts the requests in flight of all,
	 * and its round trip applies to all. NULL: this is the first. It must
	 * outlive this one. */
	struct fetcher *lead;
};

int fetcher_new(const struct fetcher_config *config, struct fetcher **ret);
/*
 * End every pending fetch with `stopping`: on return all were done, and the
 * fetcher's threads have ended. A fetch started later is done at once, with
 * `stopping`.
 */
void fetcher_stop(struct fetcher *f);
/* Stops first; no fetch may start any more. NULL is allowed. */
void fetcher_free(struct fetcher *f);

/* The device's part: count it and set f->deadline; then, unless `apart`,
 * fetch_read. Charges nothing for the op STORAGE_N_OPS, whose bytes were paid
 * for before. */
void fetch_start(struct fetcher *fetcher, struct fetch *f);
/* Read the bytes, and wait for the deadline. */
void fetch_read(struct fetcher *fetcher, struct fetch *f);
/* End a charged fetch without its bytes: the mount is torn down. */
void fetch_end(struct fetcher *fetcher, struct fetch *f);
/*
 * Only wait: done is called at `at` (emulated ns), never by this call; the
 * device is not involved. Set f->done. -ENOMEM, -ECANCELED (stopped).
 */
int fetch_wait(struct fetcher *fetcher, struct fetch *f, uint64_t at);
/* Answer this much before the device's deadline, for the way to the reader;
 * stats count the time at which the reader has it. Call once, before there is
 * more than one reader. */
void fetcher_set_round_trip(struct fetcher *f, const struct round_trip *trip);
/* Replace the device (fs/device/device.h), live. The caller gets the old
 * one. */
struct device *fetcher_swap_device(struct fetcher *f, struct device *fresh);
/* device_limit() of this device, and of those that replace it. */
void fetcher_limit_device(struct fetcher *f, double mb_per_s);
/* The numbers of device reads and their bytes. */
void fetcher_counts(const struct fetcher *f, uint64_t *ret_reads,
		    uint64_t *ret_bytes);
void fetcher_bill(struct fetcher *f, struct fetch_bill *ret);
/* A copy; its counters may be slightly out of step. */
void fetcher_stats(struct fetcher *f, struct fetch_stats *ret);
void fetcher_reset_stats(struct fetcher *f);

#endif
