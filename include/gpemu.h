/* SPDX-License-Identifier: MIT */
/*
 * libgpemu: the data loader of gpemu-train and its emulated GPU, for your own
 * training loops and loader engines. C99, C++; link with pkg-config gpemu.
 *
 * Errors: functions return 0, 1 where documented, or a negative errno. The text
 * of an error goes to `error`, a buffer of n bytes, or is kept for gpemu_error;
 * it is one line.
 *
 * Times are emulated ns (their names end in _ns) since the run or the GPU was
 * opened: wall time over the option time_scale. Sizes end in _bytes.
 *
 * Threads: a struct gpemu, and a struct gpemu_gpu, is used by one thread at a
 * time; only gpemu_interrupt, gpemu_gpu_interrupt and gpemu_drop may be called
 * from any thread. Different handles are independent. The thread that opens
 * one, or begins an epoch, gets a timer slack of 1 ns (prctl(2),
 * PR_SET_TIMERSLACK). The library's own threads block all signals except
 * synchronous faults such as SIGSEGV. With loader=mmap the process has a
 * handler for SIGBUS while a handle is open; it passes on all faults but those
 * of the library's copies out of files that were truncated. A handler that is
 * installed meanwhile must pass on what it gets to the one before it.
 *
 * Pointers must not be NULL unless the function allows it.
 *
 * Memory that a function returns belongs to the library and is valid as long as
 * documented, unless the caller has to free it. `reserved` members are zero.
 * Structs that the library allocates may grow at their end in later versions;
 * those that the caller allocates do not grow.
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
	 * preparation; and while the batch was copied, or the host had not
	 * launched all of it. */
	uint64_t data_wait_ns, fetch_stall_ns;
	uint64_t transfer_stall_ns;
	/* With several GPUs, the first one: wait for the slowest GPU, then the
	 * part of the all-reduce not hidden by the backward pass; then the
	 * optimiser, if its time is separate from the backward pass. The next
	 * computation may begin at step_end_ns. */
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
 * '-' or '_' between words), other options have their defaults. "config=FILE"
 * at any position is read first. The option `progress` exists only in
 * gpemu-train.
 *
 *	{ "data=/data/train", "gpu=a100", "batch=256", "epochs=3", NULL }
 *
 * The GPUs are those of a gpemu-gpud with gpu_server=SOCKET. Without
 * gpu_server, gpu and node they are those that Kubernetes or Slurm handed out,
 * as for gpemu-train: $GPEMU_GPU_SERVER, $GPEMU_SERVER_USER, $GPEMU_GPUS. A
 * `gpu` with a gpu_server must be that of the server (-EINVAL); alone it is a
 * private one.
 *
 * `engine`: your own engine, which replaces the option `loader`; or NULL.
 *
 * Lists the dataset and starts the threads. `error` may be NULL. -EINVAL: an
 * invalid option, or options that exclude each other: pin=inline with several
 * GPUs under parallel=ddp, which have a process and a pin stage each;
 * pin=direct with prep=emulated, which produces no samples. -ENODATA: the
 * dataset has no samples; -ENOENT and others as open(2); -E2BIG: the batch does
 * not fit the GPU's memory, or pin_budget; -ENOMEM, -EPERM: temporarily
 * unavailable (memory, io_uring). *ret is NULL then; else it is closed with
 * gpemu_close.
 */
GPEMU_API int gpemu_open(const char *const options[],
			 const struct gpemu_engine *engine, struct gpemu **ret,
			 char *error, size_t n);
/*
 * gpemu_open in two parts, so that another thread can end the second one with
 * gpemu_interrupt: the run may have to wait for a GPU (gpu-server) or for other
 * jobs (coordinate). gpemu_new returns what only gpemu_start, gpemu_interrupt
 * and gpemu_close take: -ENOMEM, *ret is NULL then. gpemu_start is called once
 * and fails as gpemu_open does, with a text for gpemu_error, after which
 * gpemu_close has to follow. -ECANCELED: interrupted. Since GPEMU_3.
 */
GPEMU_API int gpemu_new(struct gpemu **ret);
GPEMU_API int gpemu_start(struct gpemu *g, const char *const options[],
			  const struct gpemu_engine *engine);
/* May be called at any time; interrupts an epoch. NULL is allowed. -errno: an
 * output file (trace, steps, dump_samples) could not be written. `g` is freed
 * in any case. */
GPEMU_API int gpemu_close(struct gpemu *g);

/* The message of the last failed call on `g`, valid until the next failure. */
GPEMU_API const char *gpemu_error(const struct gpemu *g);
/* Options that took effect differently than requested (O_DIRECT refused,
 * checkpoint damaged), one line each; "" if none. Valid until gpemu_close. */
GPEMU_API const char *gpemu_notes(const struct gpemu *g);

/* The type of the values of a sample. */
enum {
	GPEMU_BYTES = 0, /* prep=none: each sample has its own size */
	GPEMU_UINT8 = 1,
	GPEMU_FP32 = 2,
	GPEMU_INT64 = 3 /* prep=tokens; since GPEMU_2 */
};

/* The run with its options in effect. */
struct gpemu_info {
	uint64_t n_samples; /* of the dataset; loader=null: of an epoch */
	uint64_t n_batches; /* of a whole epoch, on this rank */
	uint32_t n_classes; /* 1 without classes */
	uint32_t batch;	    /* samples; the last batch may have less */
	uint32_t type;	    /* GPEMU_... */
	/* Of a sample, in the order of memory; what it has not is 0. An image:
	 * channels, rows, columns. Tokens: 2 rows, inputs and labels, of so
	 * many each. Bytes: zeros. */
	uint32_t shape[3];
	uint32_t n_kept; /* see gpemu_keep: 0 or 1 */
};
/* Valid until gpemu_close. Since GPEMU_2. */
GPEMU_API const struct gpemu_info *gpemu_info(const struct gpemu *g);

/*
 * One sample of a batch, transformed; with prep=none the bytes of its file. A
 * sample that could not be used is left out or replaced (bad_samples); if it
 * stays, it has an `error`, and its data are zeros:
 * -ESTALE: its size changed since the dataset was listed; -EBADMSG: not a
 * complete image; -4000 and beyond: another reason; others as open(2) and
 * read(2).
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
	uint64_t ready_ns;		    /* ready to be copied */
	/* Since GPEMU_2. All samples have the same size, and sample i is at
	 * data + i * stride_bytes. NULL: their sizes or distances differ, or
	 * they have no bytes. A stride of 0: they share theirs (prep=emulated);
	 * otherwise the caller may change them. */
	void *data;
	size_t stride_bytes;
};

/*
 * Begin the next epoch: 1, and its number in *ret (which may be NULL); 0: the
 * run is complete according to the options epochs and max_steps. A resumed run
 * begins where its checkpoint was taken. -EBUSY: an epoch is running;
 * -ECANCELED: interrupted; the error that ended the previous epoch and the run.
 */
GPEMU_API int gpemu_begin_epoch(struct gpemu *g, uint64_t *ret);

/*
 * Wait for the next batch: 1; 0: end of the epoch. The batch and its samples
 * are valid until gpemu_submit or gpemu_release, which must precede the next
 * call, else -EBUSY. -EINVAL: no epoch was begun. -ECANCELED: interrupted.
 * Other errors end the loader and are returned from then on.
 */
GPEMU_API int gpemu_next(struct gpemu *g, const struct gpemu_batch **ret);
/*
 * The same for a caller that has to react to something else meanwhile: waits
 * for timeout_ns of wall time at most. -EAGAIN: no batch yet, call again. Since
 * GPEMU_2.
 */
GPEMU_API int gpemu_next_within(struct gpemu *g, uint64_t timeout_ns,
				const struct gpemu_batch **ret);

/*
 * Keep the memory of the batch: the bytes of its samples (not the structs) stay
 * valid after gpemu_submit or gpemu_release, and even after gpemu_close, until
 * gpemu_drop. The loader has so much less memory to prefetch into: while more
 * than n_kept (struct gpemu_info) are kept, gpemu_next returns -EBUSY. -EINVAL:
 * not the batch from gpemu_next. -EBUSY: it was kept before. -ENOBUFS: n_kept
 * is 0: there is no memory for a second batch within pin_budget, or the bytes
 * are not only this batch's (prep=emulated, coordinate, loader=null, and
 * loader=service, whose memory is for the batches to come). -ENOMEM.
 * Since GPEMU_2.
 */
struct gpemu_memory;
GPEMU_API int gpemu_keep(struct gpemu *g, const struct gpemu_batch *batch,
			 struct gpemu_memory **ret);
/* From any thread, but not from a signal handler. NULL is allowed. Since
 * GPEMU_2. */
GPEMU_API void gpemu_drop(struct gpemu_memory *memory);

/*
 * Train on the batch: hand it to the GPU and wait until the GPU has room for
 * the next one. Writes a checkpoint when due. `ret` may be NULL. Several GPUs
 * under parallel=ddp take one batch each, in turn: until the last one has its
 * batch, only the copy of this batch is known, and step_end_ns is 0. -EINVAL:
 * not the batch from gpemu_next. Errors of the checkpoint.
 */
GPEMU_API int gpemu_submit(struct gpemu *g, const struct gpemu_batch *batch,
			   struct gpemu_step *ret);
/* Return the batch without training on it: no step. -EINVAL as above. */
GPEMU_API int gpemu_release(struct gpemu *g, const struct gpemu_batch *batch);

/* The account of an epoch's time; see gpemu-train(1). With several GPUs, the
 * mean per GPU. */
struct gpemu_epoch {
	uint64_t epoch;
	uint64_t steps, samples, failed_samples;
	uint64_t data_bytes; /* of the samples' files */
	uint64_t elapsed_ns, compute_ns;
	/* data_wait_ns is the sum of these two and pin_stall_ns */
	uint64_t data_wait_ns, fetch_stall_ns, prep_stall_ns;
	/* transfer_stall_ns: also until the host had launched a step */
	uint64_t transfer_stall_ns, checkpoint_stall_ns;
	/* Accelerator utilisation: compute time over elapsed time, without the
	 * first step; < 0: only one step. */
	double utilisation;
	uint64_t pin_stall_ns;
	uint64_t reserved[6];
};

/*
 * End the epoch: wait until the GPU has computed all steps. A held batch is
 * released; batches not taken are dropped, which costs a restart of threads.
 * After an error it waits for reads in flight. `ret` may be NULL. -EINVAL: no
 * epoch was begun; -ECANCELED: interrupted; the error that ended the epoch
 * (*ret covers the completed part).
 */
GPEMU_API int gpemu_end_epoch(struct gpemu *g, struct gpemu_epoch *ret);

/* From any thread, but not from a signal handler: gpemu_next and
 * gpemu_begin_epoch return -ECANCELED, now and later, and so does the wait of
 * gpemu_start. */
GPEMU_API void gpemu_interrupt(struct gpemu *g);

/*
 * The record of the run so far, as gpemu-train --json writes it; release the
 * text with free(3). The first call measures the testbed's ceiling for half a
 * wall second. -EBUSY: within an epoch.
 */
GPEMU_API int gpemu_record(struct gpemu *g, char **ret);

/* Emulated time. */
GPEMU_API uint64_t gpemu_now_ns(const struct gpemu *g);

/* --- the GPUs alone ------------------------------------------------------- */

struct gpemu_gpu;

/*
 * A GPU, or those of a node or of a gpemu-gpud, for a loop with another data
 * source. Options as in gpemu_open: gpu, model, batch (the largest one, per
 * GPU), transfer, pin (are batches in page-locked memory?), extrapolate,
 * time_scale, keep_awake; gpus, node, parallel, allreduce; gpu_server,
 * server_user; precision, sequence_length. -E2BIG: the batch does not fit a
 * GPU's memory; -ERANGE: it was not measured, and extrapolate is off.
 *
 * A server reserves memory for `batch`, keeps the caller waiting until its GPUs
 * have that much, and shares their time with other jobs. -ENODEV: no server
 * listens there; -EACCES: it is of another user, or refuses this one; -EINVAL:
 * its GPU or its time_scale is another one; other errors are the server's.
 */
GPEMU_API int gpemu_gpu_open(const char *const options[],
			     struct gpemu_gpu **ret, char *error, size_t n);
/*
 * gpemu_gpu_open in two parts, so that another thread can end the wait for a
 * server's GPU. gpemu_gpu_new returns what only gpemu_gpu_start,
 * gpemu_gpu_interrupt and gpemu_gpu_close take: -ENOMEM, *ret is NULL then.
 * gpemu_gpu_start is called once and fails as gpemu_gpu_open does, with a text
 * for gpemu_gpu_error, after which gpemu_gpu_close has to follow. -ECANCELED:
 * interrupted. Since GPEMU_4.
 */
GPEMU_API int gpemu_gpu_new(struct gpemu_gpu **ret);
GPEMU_API int gpemu_gpu_start(struct gpemu_gpu *gpu,
			      const char *const options[]);
/* From any thread, but not from a signal handler: calls that wait for a server
 * return -ECANCELED, now and later. A step on its way is lost. Since GPEMU_4.
 */
GPEMU_API void gpemu_gpu_interrupt(struct gpemu_gpu *gpu);
/* NULL is allowed. */
GPEMU_API void gpemu_gpu_close(struct gpemu_gpu *gpu);
GPEMU_API const char *gpemu_gpu_error(const struct gpemu_gpu *gpu);

/*
 * Submit a batch of n_samples >= 1 that is in host memory: the GPU copies and
 * computes it. Waits until the GPU has room for the next one. Several GPUs
 * share the batch, ceil(n_samples / GPUs) each; the last ones get less or
 * nothing. `ret` may be NULL; its fetch_stall_ns and pin_stall_ns are 0,
 * because they are unknown. -EINVAL: 0 samples; -E2BIG, -ERANGE.
 *
 * A server reports a step when it is computed. With transfer=overlap that is
 * during the next call, so *ret is the step before; of the first one, and the
 * first after a wait, only the copy is known, and step_end_ns is 0. Times are
 * those of sharing: others may compute in between. -E2BIG: also a batch for
 * which the server has reserved no memory; -ECONNRESET: it went away.
 */
GPEMU_API int gpemu_gpu_submit(struct gpemu_gpu *gpu, uint64_t n_samples,
			       struct gpemu_step *ret);
/* Wait until all steps are computed. Returns the emulated time of the end. If
 * the server went away meanwhile, the end of the last step that is known. */
GPEMU_API uint64_t gpemu_gpu_wait(struct gpemu_gpu *gpu);
/* The same with its errors, those of gpemu_gpu_submit; *ret (which may be NULL)
 * is the last step. Since GPEMU_4. */
GPEMU_API int gpemu_gpu_drain(struct gpemu_gpu *gpu, struct gpemu_step *ret);
GPEMU_API uint64_t gpemu_gpu_now_ns(const struct gpemu_gpu *gpu);

/* --- the parts of a step -------------------------------------------------- */

/*
 * A GPU for a framework with a loop of its own, which queues copies, forward
 * and backward passes one by one: what they cost by the profile, a clock, and
 * engines that do one thing at a time. Since GPEMU_5, as all of this part.
 */
struct gpemu_card;

/* Options as in gpemu_open: gpu, gpu_memory, time_scale, keep_awake; for
 * the links between several GPUs gpus, node; gpu_server, server_user, whose
 * default is the environment's unless gpu or node is given. *ret is
 * NULL on an error; else it is closed with gpemu_card_close. */
GPEMU_API int gpemu_card_open(const char *const options[],
			      struct gpemu_card **ret, char *error, size_t n);
/* NULL is allowed. */
GPEMU_API void gpemu_card_close(struct gpemu_card *card);
/* The profile, as JSON with the keys of its file. Valid until it is closed. */
GPEMU_API const char *gpemu_card_profile(const struct gpemu_card *card);

/* How many GPUs the job has. */
GPEMU_API unsigned gpemu_card_gpus(const struct gpemu_card *card);
/* The socket of the gpemu-gpud that has them, or NULL. The memory in the
 * profile is that of the grant. Valid until it is closed. */
GPEMU_API const char *gpemu_card_server(const struct gpemu_card *card);

struct gpemu_cost {
	uint64_t forward_ns, backward_ns; /* backward with the loss */
	uint64_t optimizer_ns; /* 0: not known apart, part of backward_ns */
	uint64_t peak_bytes, persistent_bytes; /* 0: not given */
	uint64_t extrapolated;		       /* 1: outside of the table */
	uint64_t reserved[6];
};
/*
 * A step of n_samples of the model, one of the profile's. -ENOENT: there is
 * none; -E2BIG: out of GPU memory; -ERANGE: it was not measured, and
 * `extrapolate` is 0. `error` may be NULL.
 */
GPEMU_API int gpemu_card_cost(const struct gpemu_card *card, const char *model,
			      uint64_t n_samples, int extrapolate,
			      struct gpemu_cost *ret, char *error, size_t n);
/* A copy of so many bytes to or from the device. `model`: whose table counts
 * for pageable memory; NULL: any. */
GPEMU_API uint64_t gpemu_card_copy_ns(const struct gpemu_card *card,
				      const char *model, uint64_t bytes,
				      int pinned);

/* A GPU's backward pass: the times of its first and last gradients. */
struct gpemu_pass {
	uint64_t start_ns, end_ns;
};
/*
 * When gradients of `bytes` are reduced among n GPUs, each with a card's
 * options: in buckets during the backward passes, as gpemu-train --parallel
 * ddp. -EINVAL: n is 0 or more than 64; a pass ends before it starts.
 */
GPEMU_API int gpemu_card_reduced_ns(const struct gpemu_card *card,
				    const struct gpemu_pass *passes, size_t n,
				    uint64_t bytes, uint64_t *ret_ns);

/* Fully sharded data parallelism among GPUs, each with a card's options. */
struct gpemu_sharded {
	uint64_t ranks,
		units;	   /* 1..1024 units, which are gathered one by one */
	uint64_t prefetch; /* units ahead of the computation */
	uint64_t weight_bytes, gradient_bytes; /* of the whole model */
	uint64_t forward_ns, backward_ns;      /* without the optimiser */
};
/* What a step takes longer while parameters and gradients are on their way, as
 * gpemu-train --parallel fsdp. -EINVAL: a number is out of range. */
GPEMU_API int gpemu_card_sharded_ns(const struct gpemu_card *card,
				    const struct gpemu_sharded *s,
				    uint64_t *ret_ns);

/*
 * The GPU of a server computes what these submit, in their order, while other
 * jobs use it, too. The job joins with the memory of a model and a batch, and
 * may wait for it; to join again is another job, once the first has computed
 * all. -E2BIG: out of GPU memory; -ECONNRESET: the server went away;
 * -ECANCELED: interrupted, from any thread.
 */
GPEMU_API int gpemu_card_join(struct gpemu_card *card, const char *model,
			      uint64_t n_samples, int extrapolate, char *error,
			      size_t n);
GPEMU_API void gpemu_card_interrupt(struct gpemu_card *card);
enum {
	GPEMU_FORWARD = 1,
	GPEMU_BACKWARD = 2, /* without the optimiser */
	GPEMU_OPTIMIZER = 4,
	GPEMU_STEP = 7 /* all of them */
};
/* Parts of a step. Waits while two are in flight. -EBUSY: four were not asked
 * for with gpemu_card_done. */
GPEMU_API int gpemu_card_submit(struct gpemu_card *card, unsigned parts,
				uint64_t n_samples, char *error, size_t n);
/* Wait for the oldest that was submitted and not asked for: when it was
 * computed. -EINVAL: there is none. */
GPEMU_API int gpemu_card_done(struct gpemu_card *card, struct gpemu_pass *ret,
			      char *error, size_t n);

enum {
	GPEMU_COMPUTE = 0,
	GPEMU_COPY_IN = 1, /* to the device */
	GPEMU_COPY_OUT = 2,
	GPEMU_ENGINES = 3
};
/*
 * Queue work of `ns` on an engine: it begins when the engine is free, and not
 * before after_ns. Does not wait. A stream is the chain of its ends. -EINVAL:
 * no such engine; -ERANGE: beyond the end of time.
 */
GPEMU_API int gpemu_card_queue(struct gpemu_card *card, unsigned engine,
			       uint64_t after_ns, uint64_t ns,
			       uint64_t *ret_begin_ns, uint64_t *ret_end_ns);
/* These two from any thread. */
GPEMU_API uint64_t gpemu_card_now_ns(const struct gpemu_card *card);
GPEMU_API void gpemu_card_wait(struct gpemu_card *card, uint64_t until_ns);

/* Page-locked memory, which forked processes do not inherit. NULL with errno:
 * ENOMEM, EPERM, EAGAIN: the limit (`ulimit -l`) is too low, or no memory.
 * From any thread. */
GPEMU_API void *gpemu_pin(size_t bytes);
/* `bytes` as in gpemu_pin. `data` may be NULL. */
GPEMU_API void gpemu_unpin(void *data, size_t bytes);

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
 * A sample in flight. Belongs to the engine from gpemu_feed_take until next()
 * returns it. Either a whole file to open (fd < 0), or size_bytes at
 * offset_bytes of an open shard.
 */
struct gpemu_fetch {
	int dirfd;
	const char *path; /* of the file, relative to dirfd */
	int fd;		  /* of the shard; do not close */
	uint64_t offset_bytes;
	uint64_t size_bytes; /* when the dataset was listed */
	/* buffer_bytes is at least one byte more than the sample, to detect a
	 * file that has grown without an overflow. */
	void *buffer;
	size_t buffer_bytes;
	/* Start of the sample in the buffer: the start of the buffer, unless
	 * the engine reads more than the sample and changes it. */
	void *data;
	unsigned slot; /* 0..depth-1, unique among fetches in flight */
	void *user;    /* for the engine; initially NULL, kept with the slot */
};

/* The loader's side of an engine. */
struct gpemu_feed;

/*
 * Take the next sample to read: 0. -EAGAIN: `depth` samples are in flight or,
 * without `wait`, there is no work now. With `wait` it blocks for work; -EINVAL
 * if samples are in flight then. -ECANCELED: the loader is stopping. Other
 * errors: it has failed. next() must return all of these except -EAGAIN.
 */
GPEMU_API int gpemu_feed_take(struct gpemu_feed *feed, int wait,
			      struct gpemu_fetch **ret);
/*
 * Report the end of a read: `result` is the number of bytes, size_bytes + 1 if
 * the file is longer than size_bytes, or -errno. Any length but size_bytes
 * becomes -ESTALE. May be called from any thread, also of the engine, before
 * next() returns the sample.
 */
GPEMU_API void gpemu_feed_done(struct gpemu_feed *feed,
			       struct gpemu_fetch *fetch, int64_t result);

struct gpemu_engine_config {
	unsigned depth; /* maximum of samples in flight */
	/*
	 * 0: read through the page cache. Otherwise (only with
	 * GPEMU_ENGINE_DIRECT) bypass it: offsets, lengths and addresses of
	 * reads must be multiples of this power of two. `buffer` is aligned,
	 * buffer_bytes has room for whole blocks, and shards are open for
	 * direct I/O. If a file refuses, read it through the page cache.
	 */
	uint32_t direct_bytes;
};

enum {
	/* A worker owns a batch and reads all of it; otherwise workers take
	 * samples one by one. */
	GPEMU_ENGINE_WHOLE_BATCHES = 1,
	/* Batches leave in order of completion, not of the epoch. */
	GPEMU_ENGINE_ANY_ORDER = 2,
	/* It supports direct_bytes. */
	GPEMU_ENGINE_DIRECT = 4
};

/*
 * gpemu_open copies the struct; strings and functions must stay valid until
 * gpemu_close.
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
	/* Called after init, even a failed one; on return nothing may write to
	 * any buffer. NULL: nothing to release. */
	void (*fini)(void *state);
	/* Wait for a sample that was read, and return it: 0. -ECANCELED as from
	 * gpemu_feed_take; another error ends the loader, and gpemu_next
	 * returns it (-EIO for -ENODATA, -EAGAIN, or an -ECANCELED of the
	 * engine's own).
	 */
	int (*next)(void *state, struct gpemu_feed *feed,
		    struct gpemu_fetch **ret, char *error, size_t n);
};

#ifdef __cplusplus
}
#endif

#endif
