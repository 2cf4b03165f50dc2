/* SPDX-License-Identifier: MIT */
/* The queue of jobs is bounded. */
#include "tests/unit/test.h"

#include <errno.h>
#include <pthread.h>

#include "common/util.h"
#include "fs/control/jobs.h"

enum { N = 400 };

struct counted {
	struct job job;
	int r;
	unsigned n_done, n_freed;
};

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static int work(struct job *job)
{
	(void)job;
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	return 7;
}

static void done(struct job *job, int r)
{
	struct counted *c = container_of(job, struct counted, job);

	c->r = r;
	c->n_done++;
}

static void freed(struct job *job)
{
	container_of(job, struct counted, job)->n_freed++;
}

static void what_is_too_many_is_refused(void **state)
{
	static struct counted all[N];
	unsigned refused = 0, worked = 0;
	struct jobs *jobs;

	(void)state;
	assert_int_equal(jobs_new(&jobs), 0);
	pthread_mutex_lock(&gate);
	for (int i = 0; i < N; i++) {
		all[i].job = (struct job){ .work = work,
					   .done = done,
					   .free = freed };
		jobs_add(jobs, &all[i].job);
	}
	for (int i = 0; i < N; i++)
		refused += all[i].n_freed && all[i].r == -EAGAIN;
	pthread_mutex_unlock(&gate);
	assert_in_range(refused, N - 257, N - 256);
	jobs_stop(jobs);
	jobs_free(jobs);
	for (int i = 0; i < N; i++) {
		assert_int_equal(all[i].n_done, 1);
		assert_int_equal(all[i].n_freed, 1);
		worked += all[i].r == 7 || all[i].r == -ECONNABORTED;
	}
	assert_int_equal(worked, N - refused);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_too_many_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
