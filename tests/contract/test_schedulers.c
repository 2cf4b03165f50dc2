/* SPDX-License-Identifier: MIT */
/*
 * Every registered scheduler, with every mode of sharing: all requests
 * complete, runs are reproducible, memory is never exceeded, and no GPU is
 * needlessly idle.
 */
#include "tests/unit/test.h"

#include <string.h>

#include "common/rng.h"
#include "common/units.h"
#include "common/util.h"
#include "share/share.h"
#include "tests/contract/tested.h"

enum { N_JOBS = 24, N_GPUS = 3 };

struct job {
	struct share_job *at;
	uint64_t work_ns, left, end;
};

struct rig {
	struct share *s;
	struct job jobs[N_JOBS];
	uint64_t sum; /* of the times of all events */
};

static void done(void *ctx, struct share_job *at,
		 const struct share_iteration *it)
{
	struct rig *rig = ctx;
	struct job *job = at->owner;

	job->left--;
	job->end = it->end;
	rig->sum = rig->sum * 31 + it->start * 7 + it->end;
}

static void begin(struct rig *rig, const struct scheduler_ops *ops,
		  enum share_mode mode)
{
	struct share_config c = { .mode = mode,
				  .scheduler = ops,
				  .n_gpus = N_GPUS,
				  .max_jobs = N_JOBS,
				  .memory_bytes = 1000,
				  .done = done,
				  .ctx = rig };
	struct rng rng = rng_stream(11, "jobs", 0);

	memset(rig, 0, sizeof(*rig));
	assert_int_equal(share_new(&c, &rig->s), 0);
	for (size_t i = 0; i < N_JOBS; i++) {
		struct job *job = &rig->jobs[i];
		uint64_t persistent = rng_below(&rng, 100);
		struct share_want w = {
			.persistent_bytes = persistent,
			.peak_bytes = persistent + rng_below(&rng, 900),
			.n_gpus = 1 + (uint32_t)(rng_below(&rng, 4) == 0),
		};

		job->work_ns = 1000 + rng_below(&rng, NS_PER_MS);
		job->left = 1 + rng_below(&rng, 40);
		/* some do not announce their iterations */
		w.iterations = i % 5 ? job->left : 0;
		w.iteration_ns = job->work_ns;
		assert_int_equal(share_join(rig->s, &w, job, &job->at, NULL),
				 0);
	}
}

/* No job waits for an idle GPU, unless the GPU belongs to one job or is
 * reserved for one that needs several. */
static void check_no_waste(const struct rig *rig)
{
	const struct share *s = rig->s;
	uint64_t held = 0;

	for (uint32_t i = 0; i < s->n_jobs; i++)
		if (s->jobs[i]->held)
			held |= s->jobs[i]->gpus;
	for (uint32_t i = 0; i < s->n_jobs; i++) {
		const struct share_job *job = s->jobs[i];

		if (!job->resident || job->running || job->n == 0 ||
		    job->view.ready_ns > s->now || job->want.n_gpus > 1)
			continue;
		for (uint32_t g = 0; g < N_GPUS; g++)
			if (share_on(job, g) && !(held >> g & 1))
				assert_true(s->gpus[g].n_running > 0 ||
					    s->config.scheduler->exclusive);
	}
}

static void leave(struct rig *rig, struct job *job)
{
	if (job->at && job->left == 0) {
		share_leave(rig->s, job->at);
		job->at = NULL;
	}
}

static void feed(struct rig *rig, struct job *job)
{
	struct share_iteration it;

	while (job->at && job->at->resident && job->at->n < 2 &&
	       job->at->n < job->left)
		share_submit(rig->s, job->at, 0, 100, job->work_ns, &it);
}

/* True while jobs remain. */
static bool turn(struct rig *rig)
{
	uint64_t next;

	for (size_t i = 0; i < N_JOBS; i++)
		leave(rig, &rig->jobs[i]);
	for (size_t i = 0; i < N_JOBS; i++)
		feed(rig, &rig->jobs[i]);
	check_no_waste(rig);
	for (uint32_t g = 0; g < N_GPUS; g++) {
		const struct share_gpu *gpu = &rig->s->gpus[g];

		assert_true(gpu->lanes.used <= gpu->lanes.capacity);
		assert_true(gpu->n_running <= gpu->lanes.n_lanes);
	}
	next = share_next(rig->s);
	if (next != SHARE_NEVER)
		share_advance(rig->s, next);
	return next != SHARE_NEVER;
}

static void end(struct rig *rig)
{
	assert_int_equal(rig->s->n_jobs, 0);
	for (size_t i = 0; i < N_JOBS; i++)
		assert_int_equal(rig->jobs[i].left, 0);
	for (uint32_t g = 0; g < N_GPUS; g++)
		assert_int_equal(rig->s->gpus[g].lanes.used, 0);
	share_free(rig->s);
}

static void keeps_the_contract(void **state)
{
	const struct scheduler_ops *ops = *state;

	for (int mode = SHARE_TIME; mode <= SHARE_MPS; mode++) {
		static struct rig a, b;
		bool more = true;

		/* two running concurrently */
		begin(&a, ops, (enum share_mode)mode);
		begin(&b, ops, (enum share_mode)mode);
		while (more) {
			more = turn(&a);
			assert_int_equal(turn(&b), more);
		}
		assert_int_equal(a.sum, b.sum);
		end(&a);
		end(&b);
	}
}

static void has_a_name_and_a_summary(void **state)
{
	const struct scheduler_ops *ops = *state;

	assert_non_null(ops->plugin.name);
	assert_true(strlen(ops->plugin.summary) > 10);
	assert_ptr_equal(plugin_find(scheduler_table, "scheduler",
				     ops->plugin.name, NULL),
			 &ops->plugin);
}

int main(int argc, char **argv)
{
	const struct plugin *const *tested =
		tested_parts(argc, argv, scheduler_table);
	int failed = 0;

	for (size_t i = 0; tested[i]; i++) {
		void *ops =
			container_of(tested[i], struct scheduler_ops, plugin);
		const struct CMUnitTest tests[] = {
			cmocka_unit_test_prestate(has_a_name_and_a_summary,
						  ops),
			cmocka_unit_test_prestate(keeps_the_contract, ops),
		};

		failed += cmocka_run_group_tests_name(tested[i]->name, tests,
						      NULL, NULL);
	}
	return failed;
}
