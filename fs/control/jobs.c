/* SPDX-License-Identifier: MIT */
#include "fs/control/jobs.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

/* arbitrary: for each job a client waits */
enum { MOST_WAITING = 256 };

struct jobs {
	pthread_t thread;
	pthread_mutex_t lock; /* all below, and `notified` of every job */
	pthread_cond_t wake;
	struct job *first, **end; /* jobs that have not begun */
	unsigned n_waiting;	  /* their number */
	struct job *running;
	bool started; /* the thread; starts with the first job */
	bool stopping;
};

/* Under the lock: may the caller call done? */
static bool take_notification(struct job *job)
{
	bool mine = !job->notified;

	job->notified = true;
	return mine;
}

static void *run_jobs(void *arg)
{
	struct jobs *jobs = arg;

	pthread_mutex_lock(&jobs->lock);
	while (!jobs->stopping) {
		struct job *job = jobs->first;
		bool mine;
		int r;

		if (!job) {
			pthread_cond_wait(&jobs->wake, &jobs->lock);
			continue;
		}
		jobs->first = job->next;
		jobs->n_waiting--;
		if (!jobs->first)
			jobs->end = &jobs->first;
		jobs->running = job;
		pthread_mutex_unlock(&jobs->lock);
		r = job->work(job);
		pthread_mutex_lock(&jobs->lock);
		jobs->running = NULL;
		mine = take_notification(job);
		pthread_mutex_unlock(&jobs->lock);
		if (mine)
			job->done(job, r);
		job->free(job);
		pthread_mutex_lock(&jobs->lock);
	}
	pthread_mutex_unlock(&jobs->lock);
	return NULL;
}

void jobs_add(struct jobs *jobs, struct job *job)
{
	int r = 0;

	job->notified = false;
	job->next = NULL;
	pthread_mutex_lock(&jobs->lock);
	if (jobs->stopping)
		r = -ECONNABORTED;
	else if (jobs->n_waiting == MOST_WAITING)
		r = -EAGAIN;
	else if (!jobs->started)
		r = -pthread_create(&jobs->thread, NULL, run_jobs, jobs);
	if (r == 0) {
		jobs->started = true;
		jobs->n_waiting++;
		*jobs->end = job;
		jobs->end = &job->next;
	}
	pthread_mutex_unlock(&jobs->lock);
	pthread_cond_signal(&jobs->wake);
	if (r < 0) {
		job->done(job, r);
		job->free(job);
	}
}

void jobs_stop(struct jobs *jobs)
{
	struct job *job;

	if (!jobs)
		return;
	pthread_mutex_lock(&jobs->lock);
	jobs->stopping = true;
	/* under the lock, so that the job is not freed before done */
	if (jobs->running && take_notification(jobs->running))
		jobs->running->done(jobs->running, -ECONNABORTED);
	job = jobs->first;
	jobs->first = NULL;
	pthread_mutex_unlock(&jobs->lock);
	pthread_cond_signal(&jobs->wake);
	while (job) {
		struct job *next = job->next;

		job->done(job, -ECONNABORTED);
		job->free(job);
		job = next;
	}
}

int jobs_new(struct jobs **ret)
{
	struct jobs *jobs = calloc(1, sizeof(*jobs));

	if (!jobs)
		return -ENOMEM;
	jobs->end = &jobs->first;
	pthread_mutex_init(&jobs->lock, NULL);
	pthread_cond_init(&jobs->wake, NULL);
	*ret = jobs;
	return 0;
}

void jobs_free(struct jobs *jobs)
{
	if (!jobs)
		return;
	jobs_stop(jobs);
	if (jobs->started)
		pthread_join(jobs->thread, NULL);
	pthread_cond_destroy(&jobs->wake);
	pthread_mutex_destroy(&jobs->lock);
	free(jobs);
}
