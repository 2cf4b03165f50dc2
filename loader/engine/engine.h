/* SPDX-License-Identifier: MIT */
/*
 * Plug-in kind `engine`: how the bytes of samples are read. One instance
 * belongs to one worker thread, which calls everything here but feed_done.
 *
 *	worker: while (engine->next(state, feed, &fetch) == 0)
 *			prepare the sample, put it into its batch
 *	engine: in next(), takes as many samples as it likes to have on the way
 *		(feed_take), reports each that was read (feed_done), and
 *		returns one of those
 *
 * So every worker reads for itself and hands nothing to another thread.
 */
#ifndef GPEMU_LOADER_ENGINE_ENGINE_H
#define GPEMU_LOADER_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/plugin.h"

/*
 * One sample on its way. The host's; the engine's from take to next.
 *
 * A sample is a whole file, to be opened (fd < 0), or `size` bytes at
 * `offset` of a container that is open already (fd >= 0; offset 0 and path
 * unused otherwise).
 */
struct fetch {
	int dirfd;
	const char *path; /* of the file, relative to dirfd */
	int fd;		  /* of the container; borrowed */
	uint64_t offset;
	void *buf;     /* buffer_room(size, direct) bytes (buffer.h): a file
			* that has grown shows, and cannot overflow */
	void *data;    /* where in buf the sample begins: buf, unless the
			* engine reads more than the sample and says so */
	uint64_t size; /* bytes, as the dataset was scanned */
	unsigned slot; /* 0..depth-1, no other fetch on its way has it */

	/* set by feed_done */
	int error; /* 0 or -errno */
	uint64_t n_read;
	uint64_t start_ns, done_ns; /* emulated: taken, seen to be done */

	/* the host's alone */
	struct window *window;
	uint32_t pos; /* in the window, in the epoch's order */
	uint32_t sample;
};

/* What the host offers an engine; one per worker. */
struct feed;

/*
 * The next sample to read. At most `depth` are on their way; -EAGAIN when no
 * more may be, or, without `wait`, when there is no work now. With `wait` it
 * blocks for work, and must only be asked so when none is on its way.
 * -ECANCELED: the host is stopping. Other: the host has failed.
 */
int feed_take(struct feed *f, bool wait, struct fetch **ret);
/*
 * The read of a sample has ended: `result` is how many bytes there were, size
 * + 1 when its file is longer than size, or -errno. Any length but `size`
 * becomes -ESTALE: a sample is what it was when the dataset was scanned. From
 * any thread, also one of the engine's own.
 */
void feed_done(struct feed *f, struct fetch *fetch, int64_t result);

struct engine_ops;

struct engine_config {
	const struct engine_ops *ops; /* the engine itself, for those that are
				       * made at run time */
	const void *options;	      /* the engine's own; NULL: the defaults */
	unsigned depth; /* fetches that may be on their way at once */
	/*
	 * 0: read through the page cache. Else around it (O_DIRECT): where
	 * reads begin, how long they are and where they go to are multiples of
	 * this power of two, and the containers are open for it. A file that
	 * refuses that is read through the page cache.
	 */
	uint32_t direct;
};

struct engine_ops {
	struct plugin plugin; /* state_size: per worker, zeroed by the host */
	/*
	 * A worker owns a batch: it reads all of its samples, and their places
	 * in it are those of the order. Otherwise samples go one by one to
	 * whichever worker asks, and fill the batches of a window in the order
	 * in which they have been read.
	 */
	bool whole_batches;
	/* Batches leave as they become complete, not in the order's order. */
	bool any_order;
	bool can_direct; /* knows what to do with engine_config.direct */
	/* NULL: nothing to set up. -EPERM, -ENOMEM: not available now. */
	int (*init)(void *state, const struct engine_config *c,
		    struct err *err);
	/* After init, also a failed one; afterwards nothing writes to any
	 * fetch's buffer. NULL: nothing to release. */
	void (*fini)(void *state);
	/*
	 * Wait for a sample that was read and return it. -ECANCELED as from
	 * feed_take; another error is the engine's end. NULL: batches are made
	 * out of nothing, no worker is started.
	 */
	int (*next)(void *state, struct feed *feed, struct fetch **ret,
		    struct err *err);
};

extern const struct plugin *const engine_table[];

#endif
