/* SPDX-License-Identifier: MIT */
#include "common/program/launcher.h"

#include <stdlib.h>

#include "tests/unit/test.h"

static int alone(void **state)
{
	(void)state;
	launcher_forget();
	unsetenv("PMIX_RANK");
	return 0;
}

static void no_launcher_is_one_process(void **state)
{
	(void)state;
	assert_int_equal(launcher_size(), 1);
	assert_true(launcher_connects());
	setenv("SLURM_STEP_NUM_TASKS", "", 1);
	assert_int_equal(launcher_size(), 1);
}

static void each_launcher_says_how_many(void **state)
{
	(void)state;
	setenv("SLURM_STEP_NUM_TASKS", "5", 1);
	assert_int_equal(launcher_size(), 5);
	setenv("PMI_SIZE", "4", 1);
	assert_int_equal(launcher_size(), 4);
	setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
	assert_int_equal(launcher_size(), 3);
	launcher_forget();
	assert_int_equal(launcher_size(), 1);
}

/* mpirun starts its daemons with srun: one of them has one process here. */
static void an_mpirun_counts_before_the_srun_around_it(void **state)
{
	(void)state;
	setenv("SLURM_STEP_NUM_TASKS", "2", 1);
	setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
	assert_int_equal(launcher_size(), 1);
	assert_true(launcher_connects());
}

static void srun_connects_with_pmi_only(void **state)
{
	(void)state;
	setenv("SLURM_STEP_NUM_TASKS", "2", 1);
	assert_false(launcher_connects());
	setenv("PMIX_RANK", "0", 1);
	assert_true(launcher_connects());
	unsetenv("PMIX_RANK");
	setenv("PMI_SIZE", "2", 1);
	assert_true(launcher_connects());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(no_launcher_is_one_process, alone),
		cmocka_unit_test_setup(each_launcher_says_how_many, alone),
		cmocka_unit_test_setup(
			an_mpirun_counts_before_the_srun_around_it, alone),
		cmocka_unit_test_setup(srun_connects_with_pmi_only, alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
