/* SPDX-License-Identifier: MIT */
#include "sched/live/ends.h"

#include <errno.h>
#include <string.h>

#include "common/log.h"
#include "common/tick.h"
#include "common/util.h"
#include "sched/live/argv.h"
#include "sched/live/gpus.h"
#include "sched/live/held.h"
#include "sched/live/remote.h"

/* Of another process, which cannot have ended before it began. */
static uint64_t time_of(const struct live *l, const struct job *job,
			int64_t real_ns)
{
	double ago_ns = (double)(l->real_ns - real_ns) / l->c.time_scale;
	uint64_t first = MIN(MAX(job->since_ns, job->arrival_ns), l->now_ns);

	if (ago_ns >= (double)(l->now_ns - first))
		return first;
	return l->now_ns - (uint64_t)MAX(0, ago_ns);
}

static void done(struct live *l, uint32_t which, uint64_t at_ns)
{
	struct job *job = &l->jobs[which];

	plan_release(&l->cluster, job, MAX(at_ns, job->since_ns), JOB_DONE);
	job->done = 1;
	job->end_ns = at_ns;
	l->n_done++;
	l->changed = true;
}

void ends_failed(struct live *l, uint32_t which, const char *text)
{
	struct job *job = &l->jobs[which];
	struct live_job *p = &l->live[which];
	bool again = ++p->n_failed <= l->c.retries;

	progress_end(&l->bar);
	log_line(again ? LOG_LEVEL_WARN : LOG_LEVEL_ERROR, "job %s %s: %s",
		 job->name, again ? "starts again" : "failed", text);
	l->unsaved = true;
	if (again) {
		plan_release(&l->cluster, job, l->now_ns, JOB_WAITING);
		l->changed = true;
		return;
	}
	p->failed = true;
	l->n_failed++;
	done(l, which, l->now_ns);
}

static void failed(struct live *l, uint32_t which, const char *folder,
		   const struct process_end *end)
{
	char line[PROCESS_LINE], how[40] = "its processes were killed";
	_cleanup_free_ char *text = NULL;

	process_last_line(folder, line);
	if (end)
		snprintf(how, sizeof(how), "exit status %d", end->status);
	text = util_text("%s%s%s (%s/log)", how, *line ? ": " : "", line,
			 folder);
	ends_failed(l, which, text ? text : how);
}

/*
 * No process of the job runs any more. `expected`: it was asked to end, or it
 * ended while nobody watched; then it goes on from its checkpoint.
 */
static int ended(struct live *l, uint32_t which, const char *folder,
		 bool expected, struct err *err)
{
	struct job *job = &l->jobs[which];
	struct live_job *p = &l->live[which];
	struct process_end end;
	int r = process_read_end(folder, &end);
	/* the end of an earlier one is known */
	bool known = r == 0 && end.run == p->n_ended + 1;
	uint64_t counted_ns = l->now_ns - l->away_ns, at_ns = counted_ns;
	double gpus = live_gpus(l);

	if (r < 0 && r != -ENOENT)
		return err_set(err, r, "%s/exit: %s", folder,
			       r == -EBADMSG ? "damaged" : strerror(-r));
	if (known)
		at_ns = time_of(l, job, end.real_ns);
	gpus_take_back(l, which);
	held_give(l, which, at_ns);
	remote_end(l, which);
	p->stopping = false;
	p->n_ended += known;
	l->unsaved = true;
	gpus -= live_gpus(l);
	l->use_ns += gpus * ((double)at_ns - (double)counted_ns);
	l->use_ns = MAX(0, l->use_ns);
	if (known && end.status == 0) {
		done(l, which, at_ns);
		return 0;
	}
	/* of a process that ended while nobody watched, unless it says when,
	 * no time counts */
	if (known)
		job_advance(job, at_ns);
	else if (l->asked_ns != UINT64_MAX)
		job_advance(job, l->now_ns);
	job->since_ns = l->now_ns;
	job->done = MIN(1, (double)argv_done(folder) / (double)p->steps);
	if (!expected)
		failed(l, which, folder, known ? &end : NULL);
	return 0;
}

/* The kernel has sent SIGTERM to a program without a keeper, and nobody else
 * counts how long it takes to end. */
static void hurry(const struct live *l, uint32_t which, const char *folder)
{
	struct live_job *p = &l->live[which];
	uint64_t now = tick_wall();

	if (p->process.state != PROCESS_UNKNOWN) {
		p->lost_ns = 0;
	} else if (!p->lost_ns) {
		p->lost_ns = now;
	} else if (now - p->lost_ns >= l->c.grace_ns) {
		process_kill(folder);
		p->lost_ns = now;
	}
}

int ends_look(struct live *l, uint32_t which, bool expected, struct err *err)
{
	struct live_job *p = &l->live[which];
	_cleanup_free_ char *folder = argv_folder(l, which);
	int r = folder ? process_look(&p->process, folder, err) : -ENOMEM;

	if (r == 0)
		hurry(l, which, folder);
	if (r < 0 || p->process.state != PROCESS_NONE)
		return r;
	return ended(l, which, folder, expected || p->stopping || l->closing,
		     err);
}
