/* SPDX-License-Identifier: MIT */
/* The assignment, and the schedules that AlloX makes of it, against every
 * possibility. */
#include "tests/unit/test.h"

#include <math.h>
#include <string.h>

#include "common/rng.h"
#include "common/units.h"
#include "common/util.h"
#include "sched/sim.h"
#include "sched/solver/assign.h"

enum { MOST_ROWS = 6, MOST_COLUMNS = 8, ROUNDS = 300 };

/* The least sum for rows from `row` on, with the columns that are left. */
static double least(const double *cost, size_t rows, size_t columns, size_t row,
		    uint32_t used)
{
	double best = INFINITY;

	if (row == rows)
		return 0;
	for (size_t j = 0; j < columns; j++)
		if (!(used >> j & 1))
			best = MIN(best,
				   cost[row * columns + j] +
					   least(cost, rows, columns, row + 1,
						 used | 1u << j));
	return best;
}

static void an_assignment_is_the_least(void **state)
{
	struct rng rng = rng_stream(1, "assign", 0);

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		size_t rows = 1 + rng_below(&rng, MOST_ROWS);
		size_t columns =
			rows + rng_below(&rng, MOST_COLUMNS - rows + 1);
		double cost[MOST_ROWS * MOST_COLUMNS], sum = 0;
		uint32_t to[MOST_ROWS], used = 0;

		/* few values, so that many are equal; some below zero */
		for (size_t i = 0; i < rows * columns; i++)
			cost[i] = (double)rng_below(&rng, 20) - 5;
		assert_int_equal(assign_min(cost, rows, columns, to), 0);
		for (size_t i = 0; i < rows; i++) {
			assert_true(to[i] < columns && !(used >> to[i] & 1));
			used |= 1u << to[i];
			sum += cost[i * columns + to[i]];
		}
		assert_true(fabs(sum - least(cost, rows, columns, 0, 0)) <
			    1e-9);
	}
}

/* --- AlloX ---------------------------------------------------------------- */

struct small {
	size_t jobs, machines, gpus; /* the first machines are GPUs */
	double time[MOST_ROWS][2];   /* on a GPU, on CPUs; 0: not there */
	bool users;		     /* one for each job */
	const char *policy;
};

/*
 * The least sum of completion times: each job is appended to any machine, in
 * every order. `ends`: when each machine is free.
 */
static double least_sum(const struct small *s, uint32_t left, double *ends)
{
	double best = INFINITY;

	if (!left)
		return 0;
	for (size_t j = 0; j < s->jobs; j++)
		for (size_t m = 0; left >> j & 1 && m < s->machines; m++) {
			double before = ends[m];
			double end = before + s->time[j][m >= s->gpus];
			double sum;

			ends[m] = end;
			sum = end + least_sum(s, left & ~(1u << j), ends);
			ends[m] = before;
			best = MIN(best, sum);
		}
	return best;
}

static double simulated_sum(const struct small *s)
{
	struct cluster c = { 0 };
	struct sched_workload w = { 0 };
	struct sched_sim sim = { .cluster = &c, .workload = &w, .n_cells = 1 };
	struct err err = { 0 };
	char nodes[32], user[] = "a";
	double sum;

	snprintf(nodes, sizeof(nodes), "gpus=%zu", s->gpus);
	assert_int_equal(nodes_parse(nodes, &c, &err), 0);
	for (size_t m = s->gpus; m < s->machines; m++)
		assert_int_equal(nodes_parse("cpus=1", &c, &err), 0);
	for (size_t j = 0; j < s->jobs; j++) {
		struct sched_job job = workload_job();

		job.work_ns = s->time[j][0] * NS_PER_S;
		job.cpu_work_ns = s->time[j][1] * NS_PER_S;
		user[0] = (char)(s->users ? 'a' + j : 'a');
		assert_int_equal(workload_user(&w, user, &job.user), 0);
		assert_int_equal(workload_class(&w, "a", &job.class), 0);
		assert_int_equal(workload_add(&w, &job, 1), 0);
	}
	assert_int_equal(workload_settle(&w), 0);
	sim.cells = calloc(1, sizeof(*sim.cells));
	assert_non_null(sim.cells);
	assert_int_equal(plugin_choose(schedule_table, "policy", s->policy,
				       &sim.cells->policy, &err),
			 0);
	plugin_choose(placement_table, "placement", "proportional",
		      &sim.cells->placement, &err);
	sim.cells->name = strdup("allox");
	assert_int_equal(sim_run(&sim, sim.cells, &err), 0);
	sum = sim.cells->result.all.jct.mean_s * (double)s->jobs;
	sim_fini(&sim);
	workload_fini(&w);
	cluster_fini(&c);
	return sum;
}

/* All jobs are there at once: then the matching is the best schedule. */
static void allox_is_the_best_schedule(void **state)
{
	struct rng rng = rng_stream(2, "assign", 0);

	(void)state;
	for (int round = 0; round < 60; round++) {
		struct small s = { .jobs = 1 + rng_below(&rng, 5),
				   .machines = 1 + rng_below(&rng, 3),
				   .policy = "allox" };
		double ends[3] = { 0 };

		s.gpus = 1 + rng_below(&rng, s.machines);
		for (size_t j = 0; j < s.jobs; j++)
			for (size_t k = 0; k < 2; k++)
				s.time[j][k] = 1 + (double)rng_below(&rng, 30);
		assert_true(fabs(simulated_sum(&s) -
				 least_sum(&s, (1u << s.jobs) - 1, ends)) <
			    1e-6);
	}
}

/* Machines that the users who have least leave idle are for the others. */
static void allox_leaves_no_machine_idle(void **state)
{
	struct small s = { .jobs = 4,
			   .machines = 4,
			   .gpus = 4,
			   .time = { { 10 }, { 10 }, { 10 }, { 10 } },
			   .users = true,
			   .policy = "allox:alpha=0.25" };

	(void)state;
	/* all start at once */
	assert_true(fabs(simulated_sum(&s) - 40) < 1e-6);
	/* two more wait; none of them can use the node without GPUs */
	s.jobs = 6;
	s.machines = 5;
	s.time[4][0] = s.time[5][0] = 10;
	assert_true(fabs(simulated_sum(&s) - 80) < 1e-6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_assignment_is_the_least),
		cmocka_unit_test(allox_is_the_best_schedule),
		cmocka_unit_test(allox_leaves_no_machine_idle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
