/* SPDX-License-Identifier: MIT */
/*
 * The device that a training loop feeds: the GPUs of this process
 * (device_local.c), or some of a gpemu-gpud (device_server.c). The loop knows
 * this interface only.
 *
 *	device_copy(d, i, &batch, ...)	 a batch goes to GPU i
 *	device_submit(d, parts, user)	 the step of what was copied
 *	device_room(d, n)		 wait: another batch may be copied
 *	device_drain(d)			 wait: every step was reported
 *
 * A step is reported through struct device_events, by a call that is on its
 * way: local GPUs report in device_submit, as they know when a step will end,
 * or, if other nodes take part in it, in the next call that needs its end; a
 * server's in the call that hears of it. So at most DEVICE_STEPS are
 * submitted and not reported. One thread makes all calls but
 * device_interrupt. All times are emulated ns of the job's clock.
 *
 * Does a batch fit the memory? gpu_check_batch (gpu.h) answers from the
 * profile, which both kinds of device have.
 */
#ifndef GPEMU_EMU_GPU_DEVICE_H
#define GPEMU_EMU_GPU_DEVICE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"
#include "common/tick.h"
#include "emu/gpu/gpus.h"
#include "emu/profile/profile_prep.h"

enum { DEVICE_STEPS = 2 };

/* What a device is to do. What it points to is used until the device is
 * closed. */
struct device_job {
	struct tick *tick;
	const struct gpu_profile *gpu;
	const struct gpu_model *model;
	const struct gpus_config *gpus;
	const struct prep_profile *prep_gpu; /* NULL: nothing on the GPU */
	uint32_t batch;			     /* samples of a step, each GPU */
	uint32_t accumulate; /* steps per optimiser step; 0: 1 */
	bool pinned;	     /* batches come from page-locked memory */
	bool inference;	     /* no backward pass */
	bool load;	     /* the model's way to the GPUs takes time */
	double jitter;	     /* of step times, as gpu_jitter */
	/* of a step, whatever its batch; NULL: the model's, with `jitter` */
	const struct dist_time *step;
	uint64_t seed; /* of that */
	uint64_t node; /* of several, each of which varies on its own */

	/* for a server */
	uint64_t iterations;
	/* on each GPU, of the batch after this one and of flat gradients */
	uint64_t waiting_bytes, bucket_bytes;
	bool extrapolate;
	/* NULL: nobody listens. No room on the GPU now, `ahead` others wait. */
	void (*queued)(void *ctx, uint64_t ahead);
	void *ctx;
};

/* A batch, or a part of one, in host memory. */
struct device_batch {
	uint32_t samples;
	uint64_t bytes;
	uint64_t ready_ns;
	/* of the step, a set of enum gpud_parts; 0: all. A server's only. */
	uint32_t parts;
	/*
	 * From pageable memory a device cannot read: the driver copies the
	 * batch into a buffer of its own, on this thread, once it is ready and
	 * the device has room. `stage` makes that copy of `memory` and returns
	 * the emulated ns it took. NULL: page-locked, or there are no bytes.
	 */
	uint64_t (*stage)(const struct tick *tick, const void *memory);
	const void *memory;
};

/* A GPU's part of a step. */
struct device_part {
	uint32_t samples;
	uint64_t bytes;
	/* by so much its sequences are shorter than the model's, as a share of
	 * them; local GPUs only */
	double shorter;
};

struct device_step {
	void *user;	  /* as it was submitted */
	uint64_t idle_ns; /* the GPUs had nothing to compute from then on */
	const struct gpu_step *gpu; /* of each GPU */
};

struct device_events {
	/* A step's times are known. */
	void (*done)(void *ctx, const struct device_step *s);
	/* That step began, as seen at `at`. */
	void (*begun)(void *ctx, uint64_t at);
	void *ctx;
	/*
	 * Gradients are reduced with other nodes; NULL: there are none. This
	 * node's part of a step is computed, known up to compute_end; returns
	 * at once. Then, in a later call of the device: wait until all nodes
	 * have theirs; -errno with a text.
	 */
	void (*reach)(void *ctx, const struct device_step *s,
		      const struct gpus_reach *r);
	int (*reduced)(void *ctx, struct gpus_reach *ret_all,
		       uint64_t *ret_reduced, struct err *err);
};

struct device;

struct device_ops {
	const char *name;
	/* Others use the GPUs, too; a step's parts are not known. */
	bool shared;
	void (*close)(struct device *d);
	int (*start)(struct device *d, uint64_t *ret_load_ns, struct err *err);
	void (*begin)(struct device *d, uint64_t epoch);
	int (*copy)(struct device *d, uint32_t gpu,
		    const struct device_batch *b, struct gpu_step *ret,
		    struct err *err);
	void (*submit)(struct device *d, const struct device_part *part,
		       void *user);
	int (*room)(struct device *d, uint32_t n, struct err *err);
	int (*drain)(struct device *d, struct err *err);
	void (*hold)(struct device *d, uint64_t until);
	void (*interrupt)(struct device *d);	 /* NULL: nothing waits long */
	json_t *(*json)(const struct device *d); /* NULL: JSON's null */
	/* NULL: nothing to say */
	void (*summary)(const struct device *d, uint64_t elapsed_ns, FILE *f);
};

struct device {
	const struct device_ops *ops;
	struct device_job job; /* since device_start */
	struct device_events events;
	uint64_t idle_ns; /* the last step that was reported ends */
};

/* GPUs of this process. NULL: no memory. */
struct device *device_local_new(void);
/*
 * Connect to a gpemu-gpud; `user`: see gpud_open. *ret_profile, the caller's,
 * is the path of its GPU's profile. -EINVAL: its time scale is another one,
 * else as gpud_open; each with a text.
 */
int device_server_open(const char *path, const char *user, double time_scale,
		       struct device **ret, char **ret_profile,
		       struct err *err);
/* NULL is allowed. */
void device_close(struct device *d);

/*
 * The job begins: local GPUs load the model, a server is asked for its GPU on
 * a fresh connection and makes the caller wait for room. *ret_load_ns: what
 * the model's way took. -EINVAL: by now the server is another one;
 * -ECANCELED: interrupted; other errors are the server's, with its text.
 */
int device_start(struct device *d, const struct device_job *job,
		 uint64_t *ret_load_ns, struct err *err);

/* An epoch begins now, on idle GPUs. */
static inline void device_begin(struct device *d, uint64_t epoch)
{
	d->ops->begin(d, epoch);
}

/* Does one batch serve all GPUs, as DataParallel has it? Then it goes to GPU 0,
 * which cuts it. */
static inline bool device_cuts(const struct gpus_config *c)
{
	return c->parallel == GPUS_DP && c->n > 1;
}

/*
 * Copy to a GPU. Fills the copy's half of *ret: from copy_end on the host's
 * memory is free again. May report the step before. -errno with a text,
 * -ECONNRESET when a server went away.
 */
static inline int device_copy(struct device *d, uint32_t gpu,
			      const struct device_batch *b,
			      struct gpu_step *ret, struct err *err)
{
	return d->ops->copy(d, gpu, b, ret, err);
}

/* The step, part[i] of GPU i. `user` comes back with its report. */
static inline void device_submit(struct device *d,
				 const struct device_part *part, void *user)
{
	d->ops->submit(d, part, user);
}

/* Wait until the first `n` GPUs have room for another batch. */
static inline int device_room(struct device *d, uint32_t n, struct err *err)
{
	return d->ops->room(d, n, err);
}

/* Wait until every step was reported. Both: as device_copy. */
static inline int device_drain(struct device *d, struct err *err)
{
	return d->ops->drain(d, err);
}

/* The device neither copies nor computes until `until`. */
static inline void device_hold(struct device *d, uint64_t until)
{
	d->ops->hold(d, until);
}

/* From any thread: what waits for a server fails with -ECANCELED from now on.
 * A step that is on its way is lost. */
void device_interrupt(struct device *d);

/* For the record: what sharing cost; null where nothing is shared. */
json_t *device_json(const struct device *d);
/* A line on that, of `elapsed_ns`. */
void device_summary(const struct device *d, uint64_t elapsed_ns, FILE *f);

/* A GPU's part of a step of this job, without its copy; then that part as it
 * varies from step to step. */
struct gpus_part device_part_of(const struct device_job *j, uint32_t samples,
				uint64_t bytes);
void device_vary(const struct device_job *j, struct rng *rng,
		 struct gpus_part *p);
/* Step n (from 0, since the run's start) is one of the model's warmup_ms. */
void device_warm_up(const struct device_job *j, uint64_t n,
		    struct gpus_part *part);
/* Does step n (from 0, since the run's start) keep its gradients for a later
 * one? Then the optimiser is left out of its parts. */
bool device_accumulates(const struct device_job *j, uint64_t n,
			struct gpus_part *part);
/* The stream of that, of GPU `i` in an epoch. */
struct rng device_rng(const struct device_job *j, uint64_t epoch, uint32_t i);
/* What a step of whole batches of `bytes` takes of local GPUs, copies
 * included, without what varies. */
uint64_t device_local_ns(const struct device_job *j, uint64_t bytes);

#endif
