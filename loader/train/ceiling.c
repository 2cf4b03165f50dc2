/* SPDX-License-Identifier: MIT */
#include "loader/train/ceiling.h"

#include <errno.h>
#include <stdlib.h>

#include "common/units.h"
#include "common/util.h"
#include "loader/account/observe_account.h"
#include "loader/train/train.h"

/* arbitrary: enough steps for an average, short enough not to be noticed before
 * a training run */
enum { CEILING_STEPS = 20 };
#define CEILING_WALL_NS (NS_PER_S / 2)
/* A step of a second takes a microsecond: the least that --time-scale allows */
#define CEILING_FREE 1e-6

extern const struct engine_ops engine_null;
extern const struct prep_ops prep_none;

static int train(struct train *t, const struct pipeline_config *c,
		 struct err *err)
{
	const struct intake_config from = { .pipeline = *c };
	struct delivery d;
	struct gpu_step s;
	int r = intake_new(&from, &t->intake, err);

	if (r < 0)
		return r;
	train_begin(t, 0, NULL,
		    (uint64_t)CEILING_STEPS * t->batch * t->gpus->n);
	while ((r = train_next(t, TICK_NEVER, &d, err)) == 0 &&
	       (r = train_step(t, &d, &s, err)) == 0)
		;
	r = train_end(t, r);
	intake_free(t->intake);
	return r;
}

static int run(const struct device_job *job, const struct pipeline_config *c,
	       struct account *a, struct err *err)
{
	_cleanup_free_ struct train *t = calloc(1, sizeof(*t));
	struct device *d = device_local_new();
	struct observed seen = { .account = a };
	uint64_t load;
	int r = t && d ? device_start(d, job, &load, err)
		       : err_set(err, -ENOMEM, "out of memory");

	if (r == 0) {
		t->tick = job->tick;
		t->device = d;
		t->gpus = job->gpus;
		t->batch = job->batch;
		t->pinned = job->pinned;
		observers_add(&t->observers, &observe_account, &seen);
		r = train(t, c, err);
	}
	device_close(d);
	return r;
}

/* The steps at a time scale. */
static int measure(struct device_job *job, struct pipeline_config *c,
		   double scale, struct account *ret, struct err *err)
{
	int r;

	job->tick = c->tick = tick_new(scale, TICK_DEFAULT_SPIN_NS);
	if (!job->tick)
		return err_set(err, -ENOMEM, "out of memory");
	r = run(job, c, ret, err);
	tick_free(job->tick);
	return r;
}

int ceiling_measure(const struct device_job *like, uint32_t batch,
		    uint64_t sample_bytes, double time_scale,
		    struct ceiling *ret, struct err *err)
{
	_cleanup_free_ struct account *a = malloc(sizeof(*a));
	struct device_job job = *like;
	double ns = (double)device_local_ns(&job, job.batch * sample_bytes) *
		    CEILING_STEPS;
	struct pipeline_config c = { .engine = &engine_null,
				     .prep = &prep_none,
				     .batch = batch,
				     .sample_bytes = sample_bytes };
	int r;

	if (!a)
		return err_set(err, -ENOMEM, "out of memory");
	job.load = false;
	ret->time_scale = MIN(time_scale, (double)CEILING_WALL_NS / ns);
	r = measure(&job, &c, ret->time_scale, a, err);
	if (r < 0)
		return r;
	ret->samples_per_s = account_samples_per_s(a);
	ret->au = account_au(a);
	ret->steps = a->steps;
	r = measure(&job, &c, CEILING_FREE, a, err);
	ret->samples_per_wall_s = account_samples_per_s(a) / CEILING_FREE;
	return r;
}
