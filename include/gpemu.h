/* SPDX-License-Identifier: MIT */
/*
 * libgpemu: the data loader of gpemu-train and its emulated GPU, for training
 * loops and loader engines of your own. C99, C++; link with pkg-config gpemu.
 *
 * Errors: functions return 0, or 1 where they say so, or a negative errno.
 * The text of an error goes to `error`, a buffer of n bytes, or is kept for
 * gpemu_error; it is one line.
 *
 * Times are emulated ns (their names end in _ns) since the run or the GPU was
 * opened: wall time over the option time_scale. Sizes end in _bytes.
 *
 * Threads: a struct gpemu, and a struct gpemu_gpu, is used by one thread at a
 * time; only gpemu_interrupt may be called from any thread. Different ones
 * are independent. The thread that opens one gets a timer slack of 1 ns
 * (prctl(2), PR_SET_TIMERSLACK). The library's own threads block all signals
 * but those of a fault of their own, such as SIGSEGV.
 *
 * Pointers are not NULL unless the function says that they may be.
 *
 * Memory that a function hands out is the library's, and valid for as long as
 * the function says, unless it says that the caller frees it. `reserved`
 * members are zero. Structs that the library allocates may grow at their end
 * in later versions; those that the caller allocates do not grow.
 */
#ifndef GPEMU_H
#define GPEMU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __GNUC__
#define GPEMU_API __attribute__((visibility("default")))
#else
#define GPEMU_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* "0.2.0". */
GPEMU_API const char *gpemu_version(void);

/* --- a step of the GPU ---------------------------------------------------- */

struct gpemu_step {
	uint64_t copy_start_ns, copy_end_ns;	   /* to the device */
	uint64_t compute_start_ns, compute_end_ns; /* forward, backward */
	/* The GPU was idle before the step: for want of the batch, of which
	 * for reads, as pin_stall_ns for the pin stage, the rest for
	 * preparation; and while the batch was copied. */
	uint64_t data_wait_ns, fetch_stall_ns;
	uint64_t transfer_stall_ns;
	/* Of several GPUs this is the first one: until the slowest of them had
	 * computed, and what then was left of adding up gradients; then the
	 * optimiser, where its time is known apart from the backward pass; the
	 * next computation may begin at step_end_ns. */
	uint64_t barrier_wait_ns, allreduce_ns, step_end_ns;
	uint64_t pin_stall_ns; /* of data_wait_ns */
	uint64_t optimizer_ns;
};

/* --- a training run ------------------------------------------------------- */

struct gpemu;
struct gpemu_engine;

/*
 * A dataset, its loader and a GPU. `options` is an array of "key=value",
 * ended by NULL: the keys of gpemu-train's configuration (its long options,
 * '-' or '_' between words), what is not given has its default;
 * "config=FILE" reads such a file first, wherever it stands. The option
 * `progress` is gpemu-train's alone.
 *
 *	{ "data=/data/train", "gpu=a100", "batch=256", "epochs=3", NULL }
 *
 * `engine`: one of your own, instead of the option `loader`; or NULL.
 *
 * Lists the dataset and starts the threads. `error` may be NULL. -EINVAL: an
 * option, or some that exclude each other: pin=inline with several GPUs under
 * parallel=ddp, which have a process and a pin stage each; pin=direct with
 * prep=emulated, which makes no samples. -ENODATA: the dataset has no samples;
 * -ENOENT and others as open(2); -E2BIG: the batch does not fit the GPU's
 * memory, or pin_budget; -ENOMEM, -EPERM: not available now (memory,
 * io_uring). *ret is NULL then; else it is closed with gpemu_close.
 */
GPEMU_API int gpemu_open(const char *const options[],
			 const struct gpemu_engine *engine, struct gpemu **ret,
			 char *error, size_t n);
/* At any time, also within an epoch, which is then interrupted. NULL is
 * allowed. -errno: a file that an option names could not be written (trace,
 * steps, dump_samples). `g` is gone in any case. */
GPEMU_API int gpemu_close(struct gpemu *g);

/* The text of the last call on `g` that failed, until the next one fails. */
GPEMU_API const char *gpemu_error(const struct gpemu *g);
/* What is done otherwise than was asked for (O_DIRECT was refused, a
 * checkpoint was damaged), a line each; "" when there is nothing to say.
 * Valid until gpemu_close. */
GPEMU_API const char *gpemu_notes(const struct gpemu *g);

/*
 * One sample of a batch: as the prep stage left it; with prep=none the bytes
 * of its file. A sample that could not be used has an `error` and zeros for
 * data: -ESTALE, its size changed since the dataset was listed; -EBADMSG, not
 * a whole image; others as open(2) and read(2).
 */
struct gpemu_sample {
	const void *data;
	size_t size_bytes;
	const char *path; /* in the dataset, or in its shard */
	uint64_t index;	  /* in the dataset, which is sorted by path */
	uint32_t label;	  /* its class, counted from 0 */
	int error;	  /* 0 or -errno */
	uint64_t reserved[3];
};

struct gpemu_batch {
	uint32_t n;			    /* samples, at least 1 */
	const struct gpemu_sample *samples; /* n; NULL with loader=null */
	uint64_t ready_ns;		    /* it could be copied */
};

/*
 * Begin the next epoch: 1, and its number in *ret (which may be NULL); 0: the
 * run is complete, as the options epochs and max_steps say. A run that
 * resumes begins where its checkpoint was taken. -EBUSY: an epoch is on its
 * way; -ECANCELED: interrupted; an error that ended the epoch before, which
 * ended the run.
 */
GPEMU_API int gpemu_begin_epoch(struct gpemu *g, uint64_t *ret);

/*
 * The next batch, waiting for it: 1; 0: the epoch has no more. The batch and
 * its samples are valid until gpemu_submit or gpemu_release, one of which
 * must come before the next batch: -EBUSY. -EINVAL: no epoch was begun.
 * -ECANCELED: interrupted. Other errors are the loader's end, and what is
 * returned from then on.
 */
GPEMU_API int gpemu_next(struct gpemu *g, const struct gpemu_batch **ret);

/*
 * Train on the batch: hand it to the GPU, and wait until that has room for
 * the next one. Writes a checkpoint when one is due. `ret` may be NULL.
 * Several GPUs under parallel=ddp take a batch each, in turn: before the last
 * one has its batch no more is known than that batch's copy, and step_end_ns
 * is 0.
 * -EINVAL: not the batch that gpemu_next gave. Errors of the checkpoint.
 */
GPEMU_API int gpemu_submit(struct gpemu *g, const struct gpemu_batch *batch,
			   struct gpemu_step *ret);
/* Do not train on the batch: it is no step. -EINVAL as above. */
GPEMU_API int gpemu_release(struct gpemu *g, const struct gpemu_batch *batch);

/* Where the time of an epoch went; see gpemu-train(1). Of several GPUs it is
 * the mean of one. */
struct gpemu_epoch {
	uint64_t epoch;
	uint64_t steps, samples, failed_samples;
	uint64_t data_bytes; /* of the samples' files */
	uint64_t elapsed_ns, compute_ns;
	/* the wait is the sum of the two and pin_stall_ns */
	uint64_t data_wait_ns, fetch_stall_ns, prep_stall_ns;
	uint64_t transfer_stall_ns, checkpoint_stall_ns;
	/* Compute time over elapsed time, without the first step; < 0: there
	 * was but one. */
	double utilisation;
	uint64_t pin_stall_ns;
	uint64_t reserved[6];
};

/*
 * End the epoch: wait until the GPU has computed all steps. A batch that is
 * held is released; those that nobody has taken are left out, which costs the
 * start of new threads. After an error it waits for the reads that are on
 * their way. `ret` may be NULL. -EINVAL: no epoch was begun; -ECANCELED: it was
 * interrupted; the error that ended it (*ret holds what was done).
 */
GPEMU_API int gpemu_end_epoch(struct gpemu *g, struct gpemu_epoch *ret);

/* From any thread, but not from a signal handler: gpemu_next and
 * gpemu_begin_epoch return -ECANCELED, now and later. `g` must be open. */
GPEMU_API void gpemu_interrupt(struct gpemu *g);

/*
 * The record of the run so far, as gpemu-train --json writes it, as text that
 * the caller releases with free(3). The first time it measures the rig's
 * ceiling, for half a wall second. -EBUSY: within an epoch.
 */
GPEMU_API int gpemu_record(struct gpemu *g, char **ret);

/* Emulated time. */
GPEMU_API uint64_t gpemu_now_ns(const struct gpemu *g);

/* --- the GPUs alone ------------------------------------------------------- */

struct gpemu_gpu;

/*
 * A GPU, or those of a node, for a loop that has its data from elsewhere.
 * Options as gpemu_open, of which there are gpu, model, batch (the largest
 * there will be, for each GPU), transfer, pin (do batches come from
 * page-locked memory?), extrapolate, time_scale, keep_awake; gpus, node,
 * parallel, allreduce. -E2BIG: the batch does not fit a GPU's memory; -ERANGE:
 * it was not measured, and extrapolate is off.
 */
GPEMU_API int gpemu_gpu_open(const char *const options[],
			     struct gpemu_gpu **ret, char *error, size_t n);
GPEMU_API void gpemu_gpu_close(struct gpemu_gpu *gpu);
GPEMU_API const char *gpemu_gpu_error(const struct gpemu_gpu *gpu);

/*
 * A batch of n_samples >= 1 is in host memory now: let the GPU copy and
 * compute it, and wait until it has room for the next one. Several GPUs share
 * it, ceil(n_samples / GPUs) each; the last have less, or nothing. `ret` may
 * be NULL; its fetch_stall_ns and pin_stall_ns are 0, nobody knows. -EINVAL: 0
 * samples; -E2BIG, -ERANGE.
 */
GPEMU_API int gpemu_gpu_submit(struct gpemu_gpu *gpu, uint64_t n_samples,
			       struct gpemu_step *ret);
/* Wait until all is computed. Returns the emulated time at which it was. */
GPEMU_API uint64_t gpemu_gpu_wait(struct gpemu_gpu *gpu);
GPEMU_API uint64_t gpemu_gpu_now_ns(const struct gpemu_gpu *gpu);

/* --- an engine of your own ------------------------------------------------ */

/*
 * An engine reads the bytes of samples. Each of the loader's worker threads
 * has an instance of its own, and calls everything here but gpemu_feed_done:
 *
 *	worker: while (engine->next(state, feed, &fetch) == 0)
 *			prepare the sample, put it into its batch
 *	engine: in next(), takes as many samples as it likes to have on the way
 *		(gpemu_feed_take), reports each that was read
 *		(gpemu_feed_done), and returns one of those
 */

/*
 * One sample on its way. The engine's from gpemu_feed_take until next()
 * returns it. A whole file, to be opened (fd < 0), or size_bytes at
 * offset_bytes of a shard that is open already.
 */
struct gpemu_fetch {
	int dirfd;
	const char *path; /* of the file, relative to dirfd */
	int fd;		  /* of the shard; not to be closed */
	uint64_t offset_bytes;
	uint64_t size_bytes; /* as the dataset was listed */
	/* Room for buffer_bytes, at least one more than the sample has: a file
	 * that has grown shows, and cannot overflow. */
	void *buffer;
	size_t buffer_bytes;
	/* Where in the buffer the sample begins: its start, unless the engine
	 * reads more than the sample, and changes this. */
	void *data;
	unsigned slot; /* 0..depth-1, no other fetch on its way has it */
	void *user;    /* NULL at first, the engine's, kept with the slot */
};

/* What the loader offers an engine. */
struct gpemu_feed;

/*
 * The next sample to read: 0. At most `depth` are on their way; -EAGAIN when
 * no more may be, or, without `wait`, when there is no work now. With `wait`
 * it blocks for work; -EINVAL when it is asked so while samples are on their
 * way. -ECANCELED: the loader is stopping. Other errors: it has failed. next()
 * returns all of these but -EAGAIN.
 */
GPEMU_API int gpemu_feed_take(struct gpemu_feed *feed, int wait,
			      struct gpemu_fetch **ret);
/*
 * The read of a sample has ended: `result` is how many bytes there were,
 * size_bytes + 1 when its file is longer than size_bytes, or -errno. Any
 * length but size_bytes becomes -ESTALE. From any thread, also one of the
 * engine's own, before next() returns the sample.
 */
GPEMU_API void gpemu_feed_done(struct gpemu_feed *feed,
			       struct gpemu_fetch *fetch, int64_t result);

struct gpemu_engine_config {
	unsigned depth; /* samples that may be on their way at once */
	/*
	 * 0: read through the page cache. Else (only with
	 * GPEMU_ENGINE_DIRECT) around it: where reads begin, how long they are
	 * and where they go to are multiples of this power of two, `buffer`
	 * is one and buffer_bytes holds the whole pieces; shards are open for
	 * it. A file that refuses that is to be read through the page cache.
	 */
	uint32_t direct_bytes;
};

enum {
	/* A worker owns a batch and reads all of it; else samples go one by
	 * one to whichever worker asks. */
	GPEMU_ENGINE_WHOLE_BATCHES = 1,
	/* Batches leave as they become complete, not in the order's order. */
	GPEMU_ENGINE_ANY_ORDER = 2,
	/* It knows what to do with direct_bytes. */
	GPEMU_ENGINE_DIRECT = 4
};

/*
 * The struct is copied when it is handed over; the strings and functions stay
 * in use until gpemu_close.
 */
struct gpemu_engine {
	size_t struct_bytes; /* sizeof(struct gpemu_engine) */
	const char *name;    /* a C identifier, for the record and errors */
	const char *summary; /* one line, or NULL */
	size_t state_bytes;  /* of an instance; the loader allocates it zeroed,
			      * aligned as malloc(3) does */
	unsigned flags;	     /* GPEMU_ENGINE_... */
	/* NULL: nothing to set up. 0 or -errno, and a text in `error` (n
	 * bytes, "" at first). -EPERM, -ENOMEM: not available now. */
	int (*init)(void *state, const struct gpemu_engine_config *config,
		    char *error, size_t n);
	/* After init, also a failed one; afterwards nothing writes to any
	 * buffer. NULL: nothing to release. */
	void (*fini)(void *state);
	/* Wait for a sample that was read, and return it: 0. -ECANCELED as
	 * from gpemu_feed_take; another error is the loader's end, and what
	 * gpemu_next returns (-ECANCELED of its own, and -ENODATA, as
	 * -EIO). */
	int (*next)(void *state, struct gpemu_feed *feed,
		    struct gpemu_fetch **ret, char *error, size_t n);
};

#ifdef __cplusplus
}
#endif

#endif
