/* SPDX-License-Identifier: MIT */
#include "sched/live/carry.h"

#include <errno.h>

#include "common/util.h"
#include "sched/live/argv.h"
#include "sched/live/ends.h"
#include "sched/live/gpus.h"
#include "sched/live/group.h"
#include "sched/live/held.h"
#include "sched/live/lease.h"
#include "sched/live/state.h"

static void stop_one(struct live_job *p)
{
	if (p->process.state != PROCESS_RUNS || p->stopping)
		return;
	p->stopping = true;
	process_stop(&p->process);
}

void carry_stop_all(struct live *l)
{
	for (size_t i = 0; i < l->n_active; i++)
		stop_one(&l->live[l->active[i]]);
}

/* Does its process go on? */
static bool stays(const struct live *l, uint32_t which)
{
	if (l->jobs[which].state != JOB_RUNNING || !group_stays(l, which))
		return false;
	return lease_suits(l, which) ? held_same_gpus(l, which)
				     : held_same(l, which);
}

/* The server has no GPUs for it, 1, or -errno. */
static int not_started(struct live *l, uint32_t which, int error,
		       struct err *err)
{
	if (error < 0) {
		gpus_take_back(l, which);
		return error;
	}
	held_give(l, which, l->now_ns);
	ends_failed(l, which, err->text);
	*err = (struct err){ 0 };
	return 0;
}

static int start(struct live *l, const struct group_seat *seat, struct err *err)
{
	uint32_t which = seat->job;
	struct job *job = &l->jobs[which];
	struct live_job *p = &l->live[which];
	_cleanup_free_ char *folder = argv_folder(l, which);
	_cleanup_free_ char *control = NULL, *server = NULL;
	struct argv_given given = { .folder = folder, .turns = seat->text };
	struct process_start s = { .folder = folder,
				   .run = p->n_ended + 1,
				   .turns_fd = seat->fd,
				   .grace_ns = l->c.grace_ns,
				   .stop = &l->stop };
	char **argv = NULL;
	int r;

	group_join(l, which);
	r = folder ? held_take(l, which) : -ENOMEM;
	if (r == 0)
		r = gpus_give(l, which, &server, err);
	if (r == 0)
		r = lease_begin(l, which, &control);
	given.control = control;
	given.gpu_server = server;
	if (r == 0)
		r = argv_make(l, which, &given, &argv);
	s.argv = argv;
	s.control = control;
	if (r == 0) {
		r = process_start(&p->process, &s, err);
		argv_free(argv);
	}
	if (r)
		return not_started(l, which, r, err);
	l->n_processes++;
	if (s.run == 1)
		job->start_ns = l->now_ns;
	job->since_ns = l->now_ns;
	l->unsaved = true;
	return 0;
}

/* Its server failed since the policy decided: the job, and those with whom it
 * takes turns, wait on. */
static bool is_late(struct live *l, uint32_t which)
{
	const struct job *group[GROUP_MAX];
	size_t n = job_group(&l->jobs[which], group);

	if (!job_is_stranded(&l->cluster, &l->jobs[which]))
		return false;
	for (size_t i = 0; i < n; i++)
		plan_release(&l->cluster, &l->jobs[group[i] - l->jobs],
			     l->now_ns, JOB_WAITING);
	l->changed = l->unsaved = true;
	return true;
}

/* The job, and those with whom it takes turns. */
static int start_group(struct live *l, uint32_t which, struct err *err)
{
	struct group_seat seats[GROUP_MAX];
	int n = group_open(l, which, seats, err), r = MIN(n, 0);

	for (int i = 0; r == 0 && i < n; i++)
		r = start(l, &seats[i], err);
	group_close(seats);
	return r;
}

int carry_out(struct live *l, struct err *err)
{
	int r = l->unsaved ? state_save(l, false, err) : 0;

	if (r < 0)
		return r;
	for (size_t i = 0; i < l->n_active; i++)
		if (!stays(l, l->active[i]))
			stop_one(&l->live[l->active[i]]);
	r = lease_all(l, err);
	for (size_t i = 0; r == 0 && i < l->n_active; i++) {
		uint32_t which = l->active[i];

		if (l->jobs[which].state == JOB_RUNNING &&
		    group_is_idle(l, which) &&
		    held_is_free(l, &l->jobs[which]) && !is_late(l, which))
			r = start_group(l, which, err);
	}
	/* who runs, and with what */
	return r == 0 && l->unsaved ? state_save(l, false, err) : r;
}
