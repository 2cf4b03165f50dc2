/* SPDX-License-Identifier: MIT */
#include "tests/unit/share_rig.h"

void share_rig_done(void *ctx, struct share_job *job,
		    const struct share_iteration *it)
{
	struct client *c = job->owner;

	(void)ctx;
	assert_true(it->end >= it->start + it->work_ns);
	assert_true(it->start >= it->copy_end);
	c->done++;
	c->left--;
	c->end = it->end;
	c->last_start = it->start;
}

struct share *share_rig_new(enum share_mode mode,
			    const struct scheduler_ops *scheduler,
			    uint32_t n_gpus, uint64_t memory)
{
	struct share_config c = { .mode = mode,
				  .scheduler = scheduler,
				  .n_gpus = n_gpus,
				  .max_jobs = MAX_JOBS,
				  .memory_bytes = memory,
				  .done = share_rig_done };
	struct share *s;

	assert_int_equal(share_new(&c, &s), 0);
	return s;
}

void share_rig_join(struct share *s, struct client *c, uint64_t persistent,
		    uint64_t peak, uint32_t n_gpus)
{
	struct share_want w = { .persistent_bytes = persistent,
				.peak_bytes = peak,
				.n_gpus = n_gpus,
				.iterations = c->left,
				.iteration_ns = c->work_ns };
	struct err err = { 0 };

	c->joined = s->now;
	assert_int_equal(share_join(s, &w, c, &c->job, &err), 0);
}

void share_rig_feed(struct share *s, struct client *c)
{
	struct share_iteration it;

	while (c->job && c->job->resident && c->job->n < 2 &&
	       c->job->n < c->left)
		assert_int_equal(share_submit(s, c->job, c->submitted++, 0,
					      c->work_ns, &it),
				 0);
}

void share_rig_play(struct share *s, struct client *c, size_t n, uint64_t until)
{
	for (;;) {
		uint64_t next;

		for (size_t i = 0; i < n; i++)
			if (c[i].job && c[i].left == 0) {
				share_leave(s, c[i].job);
				c[i].job = NULL;
			}
		for (size_t i = 0; i < n; i++)
			share_rig_feed(s, &c[i]);
		next = share_next(s);
		if (next >= until)
			break;
		share_advance(s, next);
	}
	if (until != SHARE_NEVER)
		share_advance(s, until);
}
