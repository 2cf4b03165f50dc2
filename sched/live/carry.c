/* SPDX-License-Identifier: MIT */
#include "sched/live/carry.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"
#include "sched/live/argv.h"
#include "sched/live/ends.h"
#include "sched/live/gpus.h"
#include "sched/live/group.h"
#include "sched/live/held.h"
#include "sched/live/mount.h"
#include "sched/live/run.h"
#include "sched/live/state.h"

/*
 * CPUs and memory of a job that runs: given and taken without a restart.
 *
 *	CPUs	virtual cores of gpemu-train: `set cores N`, which it reads from
 *		the FIFO `control` in the job's folder
 *	memory	the cache of the job's mount, if there is one: `resize`, written
 *		to its .gpemu/control; but see remote.h
 *
 * The keeper of a job holds its FIFO open too, so that no command is lost
 * before gpemu-train reads, or when the scheduler is killed.
 */

/* --- who has what --------------------------------------------------------- */

/* May CPUs and memory of the job change while it runs? Not if it takes turns
 * with others, who have the same. */
static bool lease_suits(const struct live *l, uint32_t which)
{
	return l->c.leases && !l->live[which].group && !l->jobs[which].mate;
}

static bool goes_on(const struct live *l, uint32_t which)
{
	const struct live_job *p = &l->live[which];

	return p->process.state == PROCESS_RUNS && !p->stopping &&
	       l->jobs[which].state == JOB_RUNNING && lease_suits(l, which) &&
	       held_same_gpus(l, which);
}

/* No more of either than before. */
static bool give(struct live *l, uint32_t which)
{
	const struct job *job = &l->jobs[which];
	struct live_job *p = &l->live[which];
	bool changed = false;

	for (size_t i = 0; i < p->n_held; i++) {
		const struct part *to = &job->parts[i];
		struct part *has = &p->held[i], was = *has;

		has->cpu_milli = MIN(was.cpu_milli, to->cpu_milli);
		has->memory_mib = MIN(was.memory_mib, to->memory_mib);
		if (!memcmp(has, &was, sizeof(was)))
			continue;
		cluster_give(&l->held, &was);
		cluster_take(&l->held, has);
		changed = true;
	}
	return changed;
}

static bool get(struct live *l, uint32_t which)
{
	const struct job *job = &l->jobs[which];
	struct live_job *p = &l->live[which];
	bool changed = false;

	for (size_t i = 0; i < p->n_held; i++) {
		const struct part *to = &job->parts[i];
		struct part *has = &p->held[i];

		if (!memcmp(has, to, sizeof(*to)))
			continue;
		cluster_give(&l->held, has);
		if (cluster_has(&l->held, to)) {
			*has = *to;
			changed = true;
		}
		cluster_take(&l->held, has);
	}
	return changed;
}

/* --- telling it ----------------------------------------------------------- */

static char *fifo_of(const struct live *l, uint32_t which)
{
	_cleanup_free_ char *folder = argv_folder(l, which);
	char *path;

	return folder && asprintf(&path, "%s/control", folder) >= 0 ? path
								    : NULL;
}

/* Reading as well, so that a job that is about to end is no error. */
static int tell_cores(struct live *l, uint32_t which)
{
	_cleanup_free_ char *path = fifo_of(l, which);
	_cleanup_close_ int fd = -1;
	char text[40];

	if (!path)
		return -ENOMEM;
	fd = open(path, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	snprintf(text, sizeof(text), "set cores %" PRIu32 "\n",
		 l->live[which].told_cores);
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

static void tell(struct live *l, uint32_t which)
{
	struct live_job *p = &l->live[which];
	uint32_t cores = argv_cores(p->held, p->n_held);
	uint64_t mib = 0;
	int r;

	for (size_t i = 0; i < p->n_held; i++)
		mib += p->held[i].memory_mib;
	if (argv_uses_cores(&l->c) && cores != p->told_cores) {
		p->told_cores = cores;
		l->n_leases++;
		r = tell_cores(l, which);
		/* it goes on with what it had */
		if (r < 0)
			log_warn("job %s: its cores could not be changed: %s",
				 l->jobs[which].name, strerror(-r));
	}
	/* else remote.h says how much */
	if (l->c.mount && l->cluster.remote_mib_s <= 0 && mib != p->told_mib) {
		char text[40];

		p->told_mib = mib;
		snprintf(text, sizeof(text), "resize %" PRIu64 "M\n", mib);
		mount_tell(l, which, "cache", text);
	}
}

/* A process is about to start with what the job holds: its mount is told. The
 * name of its FIFO, malloc'ed; NULL: it needs none. -ENOMEM. */
static int lease_begin(struct live *l, uint32_t which, char **ret_control)
{
	struct live_job *p = &l->live[which];

	/* the command line says the cores */
	p->told_cores = argv_cores(p->held, p->n_held);
	p->told_mib = UINT64_MAX;
	tell(l, which);
	if (!l->c.leases || !argv_uses_cores(&l->c))
		return 0;
	*ret_control = fifo_of(l, which);
	return *ret_control ? 0 : -ENOMEM;
}

/*
 * What processes hold becomes what their jobs were given: first all give back,
 * then all get what is free; what is not, they get in a later call. -errno with
 * a text.
 */
static int lease_all(struct live *l, struct err *err)
{
	bool changed = false;
	int r = 0;

	if (!l->c.leases)
		return 0;
	/* all give back before any gets */
	for (size_t i = 0; r == 0 && i < 2 * l->n_active; i++) {
		uint32_t which = l->active[i % l->n_active];

		if (!goes_on(l, which) ||
		    !(i < l->n_active ? give(l, which) : get(l, which)))
			continue;
		r = held_changed(l, which);
		changed = true;
	}
	/* a scheduler that is started again tells all of them again */
	if (r == 0 && changed)
		r = state_save(l, false, err);
	for (size_t i = 0; r == 0 && i < l->n_active; i++)
		if (goes_on(l, l->active[i]))
			tell(l, l->active[i]);
	return r;
}

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
