/* SPDX-License-Identifier: MIT */
/*
 * Threads for the real operations of writes: long ones leave some to others,
 * and each job ends once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/util.h"
#include "s3/store/writers.h"

enum { N_LONG = 40 };

/* Jobs that wait for a door, and what became of them. */
struct rig {
	pthread_mutex_t lock;
	pthread_cond_t change;
	bool open;
	unsigned running, most, ended, stopped;
};

struct job {
	struct write_job job;
	struct rig *rig;
	bool passes; /* without waiting */
};

static void run(struct write_job *j, bool stopping)
{
	struct job *job = container_of(j, struct job, job);
	struct rig *rig = job->rig;

	pthread_mutex_lock(&rig->lock);
	if (!job->passes && !stopping) {
		rig->running++;
		rig->most = MAX(rig->most, rig->running);
		pthread_cond_broadcast(&rig->change);
		while (!rig->open)
			pthread_cond_wait(&rig->change, &rig->lock);
		rig->running--;
	}
	rig->ended++;
	rig->stopped += stopping;
	pthread_cond_broadcast(&rig->change);
	pthread_mutex_unlock(&rig->lock);
	free(job);
}

static void add(struct writers *w, struct rig *rig, bool is_long)
{
	struct job *job = calloc(1, sizeof(*job));

	assert_non_null(job);
	*job = (struct job){ .job = { .run = run, .is_long = is_long },
			     .rig = rig,
			     .passes = !is_long };
	writers_add(w, &job->job);
}

static void wait_until(struct rig *rig, const unsigned *n, unsigned wanted)
{
	pthread_mutex_lock(&rig->lock);
	while (*n < wanted)
		pthread_cond_wait(&rig->change, &rig->lock);
	pthread_mutex_unlock(&rig->lock);
}

static void open_door(struct rig *rig)
{
	pthread_mutex_lock(&rig->lock);
	rig->open = true;
	pthread_cond_broadcast(&rig->change);
	pthread_mutex_unlock(&rig->lock);
}

static void long_jobs_leave_threads_to_others(void **state)
{
	struct rig rig = { PTHREAD_MUTEX_INITIALIZER,
			   PTHREAD_COND_INITIALIZER,
			   false,
			   0,
			   0,
			   0,
			   0 };
	struct writers *w;

	(void)state;
	assert_int_equal(writers_new(&w), 0);
	for (int i = 0; i < N_LONG; i++)
		add(w, &rig, true);
	wait_until(&rig, &rig.running, WRITERS_LONG);
	for (int i = 0; i < 100; i++)
		add(w, &rig, false);
	wait_until(&rig, &rig.ended, 100);
	open_door(&rig);
	wait_until(&rig, &rig.ended, 100 + N_LONG);
	assert_int_equal(rig.most, WRITERS_LONG);
	assert_int_equal(rig.stopped, 0);
	writers_free(w);
}

static void each_job_ends_once(void **state)
{
	struct rig rig = { PTHREAD_MUTEX_INITIALIZER,
			   PTHREAD_COND_INITIALIZER,
			   true,
			   0,
			   0,
			   0,
			   0 };
	struct writers *w;

	(void)state;
	assert_int_equal(writers_new(&w), 0);
	for (int i = 0; i < 1000; i++)
		add(w, &rig, i % 3 == 0);
	writers_stop(w);
	assert_int_equal(rig.ended, 1000);
	add(w, &rig, true);
	assert_int_equal(rig.ended, 1001);
	assert_true(rig.stopped >= 1);
	writers_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_jobs_leave_threads_to_others),
		cmocka_unit_test(each_job_ends_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
