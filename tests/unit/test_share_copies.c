/* SPDX-License-Identifier: MIT */
/* Shared GPUs on an event clock: the link. */
#include "tests/unit/share_rig.h"

#include <errno.h>
#include <string.h>

static void copies_take_turns_on_the_link(void **state)
{
	struct share *s = share_rig_new(SHARE_TIME, &scheduler_fair, 1, 1000);
	struct share_iteration a, b, rest;
	struct client c[2] = { { .work_ns = 5, .left = 100 },
			       { .work_ns = 5, .left = 100 } };

	(void)state;
	share_rig_join(s, &c[0], 1, 2, 1);
	share_rig_join(s, &c[1], 1, 2, 1);
	share_submit(s, c[0].job, 0, 100, 5, &a);
	share_submit(s, c[1].job, 0, 100, 5, &b);
	assert_int_equal(a.copy_end, 100);
	assert_int_equal(b.copy_start, 100);
	assert_int_equal(b.copy_end, 200);
	for (size_t i = 0; i < SHARE_DEPTH - 1; i++)
		assert_int_equal(share_submit(s, c[0].job, 0, 0, 5, &rest), 0);
	assert_int_equal(share_submit(s, c[0].job, 0, 0, 5, &rest), -EBUSY);
	share_advance(s, 1000);
	assert_int_equal(c[1].last_start, 200);
	share_free(s);
}

static void who_leaves_gives_back_the_link(void **state)
{
	struct share *s = share_rig_new(SHARE_TIME, &scheduler_fair, 1, 1000);
	struct share_want loads = { .peak_bytes = 2,
				    .n_gpus = 1,
				    .load_ns = 1000 };
	struct share_iteration it;
	struct share_job *job;
	struct client c[3] = { 0 };

	(void)state;
	share_rig_join(s, &c[0], 1, 2, 1);
	share_rig_join(s, &c[1], 1, 2, 1);
	share_submit(s, c[0].job, 0, 100, 5, &it);
	share_submit(s, c[1].job, 0, 100, 5, &it);
	share_submit(s, c[0].job, 0, 100, 5, &it);
	assert_int_equal(it.copy_end, 300);
	assert_int_equal(share_join(s, &loads, &c[2], &job, NULL), 0);
	share_leave(s, job);
	share_leave(s, c[0].job);
	/* the answer that the other got remains valid */
	share_rig_join(s, &c[2], 1, 2, 1);
	share_submit(s, c[2].job, 0, 100, 5, &it);
	assert_int_equal(it.copy_start, 200);
	share_leave(s, c[1].job);
	share_leave(s, c[2].job);
	share_rig_join(s, &c[0], 1, 2, 1);
	share_submit(s, c[0].job, 0, 100, 5, &it);
	assert_int_equal(it.copy_start, 0);
	share_free(s);
}

/* Each engine copies on its own; the step begins when the last batch is there.
 */
static void batches_of_several_gpus_are_copied_one_by_one(void **state)
{
	struct share *s = share_rig_new(SHARE_TIME, &scheduler_fair, 3, 100);
	struct client c = { .work_ns = 1000, .left = 1 };
	struct share_iteration it;
	uint64_t start, end;

	(void)state;
	share_rig_join(s, &c, 1, 50, 3);
	assert_int_equal(share_copy(s, c.job, 0, 70, &start, &end), 0);
	assert_int_equal(start, 0);
	assert_int_equal(end, 70);
	assert_int_equal(share_copy(s, c.job, 0, 70, &start, &end), -EINVAL);
	assert_int_equal(share_copy(s, c.job, 3, 70, &start, &end), -EINVAL);
	share_advance(s, 10);
	assert_int_equal(share_copy(s, c.job, 2, 20, &start, &end), 0);
	assert_int_equal(start, 10);
	assert_int_equal(end, 30);
	assert_int_equal(share_submit(s, c.job, 1, 5, 1000, &it), 0);
	/* that of GPU 1 */
	assert_int_equal(it.copy_start, 10);
	assert_int_equal(it.copy_end, 15);
	assert_int_equal(share_next(s), 70);
	/* of the next iteration, behind that */
	assert_int_equal(share_copy(s, c.job, 0, 10, &start, &end), 0);
	assert_int_equal(start, 70);
	share_advance(s, 500);
	assert_int_equal(s->gpus[1].busy.ns, 430);
	share_leave(s, c.job);
	assert_int_equal(s->gpus[0].copy_free, 0);
	share_free(s);
}

static void a_gpu_without_a_part_waits_for_no_copy(void **state)
{
	struct share *s = share_rig_new(SHARE_TIME, &scheduler_fair, 2, 100);
	struct client a = { .work_ns = 1000, .left = 1 }, b = a;
	struct share_iteration it;
	uint64_t start, end;

	(void)state;
	share_rig_join(s, &a, 1, 50, 2);
	share_rig_join(s, &b, 1, 40, 2);
	assert_int_equal(share_copy(s, b.job, 1, 5000, &start, &end), 0);
	assert_int_equal(share_copy(s, a.job, 0, 10, &start, &end), 0);
	assert_int_equal(share_submit(s, a.job, 0, 0, 1000, &it), 0);
	assert_int_equal(share_next(s), 10);
	assert_int_equal(s->gpus[1].copy_free, 5000);
	share_free(s);
}

/* Others need not wait for the copies of a job that left. */
static void a_copy_counts_until_its_job_leaves(void **state)
{
	struct share *s = share_rig_new(SHARE_TIME, &scheduler_fair, 2, 100);
	struct client a = { .work_ns = 1000, .left = 1 }, b = a;
	uint64_t start, end;

	(void)state;
	share_rig_join(s, &a, 1, 50, 2);
	share_rig_join(s, &b, 1, 40, 2);
	assert_int_equal(share_copy(s, a.job, 0, 70, &start, &end), 0);
	assert_int_equal(share_copy(s, b.job, 0, 10, &start, &end), 0);
	assert_int_equal(start, 70);
	assert_int_equal(share_copy(s, b.job, 1, 60, &start, &end), 0);
	assert_int_equal(share_copy(s, a.job, 1, 5, &start, &end), 0);
	assert_int_equal(start, 60);
	share_leave(s, b.job);
	/* as far as the other waited, its answers remain valid */
	assert_int_equal(s->gpus[0].copy_free, 70);
	assert_int_equal(s->gpus[1].copy_free, 65);
	share_leave(s, a.job);
	assert_int_equal(s->gpus[0].copy_free, 0);
	share_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_take_turns_on_the_link),
		cmocka_unit_test(who_leaves_gives_back_the_link),
		cmocka_unit_test(batches_of_several_gpus_are_copied_one_by_one),
		cmocka_unit_test(a_gpu_without_a_part_waits_for_no_copy),
		cmocka_unit_test(a_copy_counts_until_its_job_leaves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
