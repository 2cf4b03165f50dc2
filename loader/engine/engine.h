/* SPDX-License-Identifier: MIT */
/*
 * Plug-in kind `engine`: how the bytes of samples are read. One instance
 * belongs to one worker thread, which calls everything here but feed_done.
 *
 *	worker: while (engine->next(state, feed, &fetch) == 0)
 *			transform the sample, collate it into its batch
 *	engine: next() takes as many samples as should be in flight
 *		(feed_take), reports each completed read (feed_done), and
 *		returns one of those
 *
 * Every worker reads for itself and passes nothing to another thread.
 */
#ifndef GPEMU_LOADER_ENGINE_ENGINE_H
#define GPEMU_LOADER_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/plugin.h"

struct bucket;

/*
 * One sample in flight. The host owns it; the engine uses it from take to next.
 *
 * A sample is a whole file, which the engine opens (fd < 0), or `size` bytes at
 * `offset` of a container that is open already (fd >= 0, and path NULL; offset
 * 0 otherwise).
 */
struct engine_fetch {
	int dirfd;
	const char *path; /* of the file, relative to dirfd */
	/* the file is an object of it, with the key `path`, as it was listed
	 * (loader/engine/store.h); NULL: a file */
	struct bucket *bucket;
	uint64_t tag;
	int fd; /* of the container; borrowed */
	uint64_t offset;
	void *buf;     /* buffer_room(size, direct) bytes (buffer.h): a file
			* that has grown is detected and cannot overflow it */
	void *data;    /* where in buf the sample begins: buf, unless the engine
			* reads more than the sample and sets this */
	uint64_t size; /* bytes, as scanned */
	unsigned slot; /* 0..depth-1, unique among fetches in flight */
	/* where the transformed sample belongs, if the engine may put it there
	 * out of memory of its own, with feed_put; NULL: it may not */
	void *out;
	/* By the engine: it was read with others, and its next call of next()
	 * returns another of them without reading. */
	bool more;

	/* set by feed_done */
	int error; /* 0 or -errno */
	int put;   /* by feed_put: 1, or -errno of the transforms; 0: not yet */
	uint64_t n_read;
	uint64_t start_ns, done_ns; /* emulated: taken, seen complete */

	/* for the host only */
	struct window *window;
	uint32_t pos; /* in the window, in the epoch's order */
	uint32_t sample;
	bool bypassed; /* not read from the mount */
};

/* What the host offers an engine; one per worker. */
struct feed;

/*
 * The next sample to read. At most `depth` are in flight. -EAGAIN: no more may
 * be, or, without `wait`, there is no work now. With `wait` it blocks for work;
 * use it only when none is in flight. -ECANCELED: the host is stopping. Other:
 * the host has failed.
 */
int feed_take(struct feed *f, bool wait, struct engine_fetch **ret);
/*
 * For short parts of containers: wait for a sample as feed_take does, and take
 * those after it of the same lease, too, up to `most` and while all of them
 * have at most `bytes`. Returns how many, at least 1, or an error of feed_take.
 */
int feed_take_run(struct feed *f, uint64_t bytes, struct engine_fetch **ret,
		  unsigned most);
/* The name of a sample that was taken: its file's, or in a container its own,
 * or else the container's. */
const char *feed_path(const struct feed *f, const struct engine_fetch *fetch);
/*
 * The read of a sample is complete: `result` is the number of bytes, size + 1
 * if the file is longer than size, or -errno. Any length but `size` becomes
 * -ESTALE: the sample changed since the dataset was scanned. From any thread,
 * also one of the engine's own.
 */
void feed_done(struct feed *f, struct engine_fetch *fetch, int64_t result);
/* The same of `n` samples that feed_take_run returned, and that were read one
 * after the other: each took its share of the time since then. `put`: that time
 * was feed_put's, and reading took none. */
void feed_done_run(struct feed *f, struct engine_fetch **fetch,
		   const int64_t *result, unsigned n, bool put);
/* Bytes of a transformed sample; 0: there are no transforms. */
size_t feed_out_bytes(const struct feed *f);
/*
 * Transform a sample, whose bytes are at `raw`, into fetch->out, so that they
 * are not copied first. Before feed_done, which may still report that the read
 * failed. It may be left by a jump out of a signal handler.
 */
void feed_put(struct feed *f, struct engine_fetch *fetch, const void *raw);

struct engine_ops;
struct remote_ops;

struct engine_config {
	const struct engine_ops *ops; /* itself, for engines made at run time */
	const void *options;	      /* the engine's own; NULL: the defaults */
	unsigned depth;		      /* most fetches in flight */
	struct bucket *bucket;	      /* of all samples; or NULL */
	/*
	 * 0: read through the page cache. Else around it (O_DIRECT): offsets,
	 * lengths and addresses of reads are multiples of this power of two,
	 * and the containers are open for it. A file that refuses O_DIRECT is
	 * read through the page cache.
	 */
	uint32_t direct;
};

struct engine_ops {
	struct plugin plugin; /* state_size: per worker, zeroed by the host */
	/*
	 * A worker owns a batch: it reads all samples of the batch, and they
	 * have the slots of the order. Otherwise samples go one by one to any
	 * worker that is free, and fill the batches of a window in the order of
	 * completion.
	 */
	bool whole_batches;
	/* Batches leave on completion, not in the order of the epoch. */
	bool any_order;
	bool can_direct; /* supports engine_config.direct */
	/* NULL: nothing to set up. -EPERM, -ENOMEM: not available now. */
	int (*init)(void *state, const struct engine_config *c,
		    struct err *err);
	/* After init, also a failed one; afterwards no fetch's buffer is
	 * written. NULL: nothing to release. */
	void (*fini)(void *state);
	/*
	 * Wait for a completed read and return its sample. -ECANCELED as from
	 * feed_take; any other error ends the engine. NULL: batches are made
	 * out of nothing, no worker is started.
	 */
	int (*next)(void *state, struct feed *feed, struct engine_fetch **ret,
		    struct err *err);
	/* Other processes make the batches (loader/engine/remote.h); the hooks
	 * above are NULL then. NULL: this one does. */
	const struct remote_ops *remote;
};

/* Are its batches the samples of a dataset? */
static inline bool engine_has_samples(const struct engine_ops *e)
{
	return e->next || e->remote;
}

extern const struct plugin *const engine_table[];

#endif
