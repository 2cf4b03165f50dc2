/* SPDX-License-Identifier: MIT */
/*
 * The steps are those of each run (sched/core/run.h). `wait` sleeps until a
 * process ends, a job arrives, a round begins, the policy wants to decide
 * again, or a signal comes, and sees what ended processes mean for their jobs.
 * `carry` saves the state, so that what follows can be done again; then
 * processes are stopped, changed and started.
 *
 * A kill at any point leaves a state from which the same steps lead on: who
 * runs is not in it (process.h), and the end of a process counts once, by its
 * number.
 */
#include "sched/live/live.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>

#include "common/log.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "sched/live/argv.h"
#include "sched/live/gpus.h"
#include "sched/live/held.h"
#include "sched/live/remote.h"
#include "sched/live/state.h"

/* --- what the end of a process means for its job -------------------------- */

/* Of another process, which cannot have ended before it began. */
static uint64_t time_of(const struct live *l, const struct sched_job *job,
			int64_t real_ns)
{
	double ago_ns = (double)(l->real_ns - real_ns) / l->c.time_scale;
	uint64_t first =
		MIN(MAX(job->since_ns, job->arrival_ns), l->run.now_ns);

	if (ago_ns >= (double)(l->run.now_ns - first))
		return first;
	return l->run.now_ns - (uint64_t)MAX(0, ago_ns);
}

/* The job failed, for the reason of the text: it starts again, or has ended. No
 * process of it runs, and it holds nothing. */
static void job_failed(struct live *l, uint32_t which, const char *text)
{
	struct sched_job *job = &l->run.jobs[which];
	struct live_job *p = &l->live[which];
	bool again = ++p->n_failed <= l->c.retries;

	progress_end(&l->bar);
	log_line(again ? LOG_LEVEL_WARN : LOG_LEVEL_ERROR, "job %s %s: %s",
		 job->name, again ? "starts again" : "failed", text);
	l->unsaved = true;
	if (again) {
		plan_release(&l->run.cluster, job, l->run.now_ns, JOB_WAITING);
		l->run.changed = true;
		return;
	}
	p->failed = true;
	l->n_failed++;
	run_end(&l->run, which, l->run.now_ns);
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
	job_failed(l, which, text ? text : how);
}

/*
 * No process of the job runs any more. `expected`: it was asked to end, or it
 * ended while nobody watched; then it goes on from its checkpoint.
 */
static int ended(struct live *l, uint32_t which, const char *folder,
		 bool expected, struct err *err)
{
	struct sched_job *job = &l->run.jobs[which];
	struct live_job *p = &l->live[which];
	struct process_end end;
	int r = process_read_end(folder, &end);
	/* the end of an earlier one is known */
	bool known = r == 0 && end.run == p->n_ended + 1;
	uint64_t counted_ns = l->run.now_ns - l->away_ns, at_ns = counted_ns;
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
		run_end(&l->run, which, at_ns);
		return 0;
	}
	/* of a process that ended while nobody watched, unless it says when,
	 * no time counts */
	if (known)
		job_advance(job, at_ns);
	else if (l->run.asked_ns != UINT64_MAX)
		job_advance(job, l->run.now_ns);
	job->since_ns = l->run.now_ns;
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

/*
 * The process of a job may have ended: its pidfd says so, or nobody knows.
 * `expected`: an end without a result is no failure of the job, which goes on
 * from its checkpoint. -errno with a text.
 */
static int look_at(struct live *l, uint32_t which, bool expected,
		   struct err *err)
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

/*
 * --- what processes hold --------------------------------------------------
 *
 * From what the policy has decided to processes.
 */

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
	return l->c.leases && !l->live[which].group && !l->run.jobs[which].mate;
}

static bool goes_on(const struct live *l, uint32_t which)
{
	const struct live_job *p = &l->live[which];

	return p->process.state == PROCESS_RUNS && !p->stopping &&
	       l->run.jobs[which].state == JOB_RUNNING &&
	       lease_suits(l, which) && held_same_gpus(l, which);
}

/* No more of either than before. */
static bool give(struct live *l, uint32_t which)
{
	const struct sched_job *job = &l->run.jobs[which];
	struct live_job *p = &l->live[which];
	bool changed = false;

	for (size_t i = 0; i < p->n_held; i++) {
		const struct sched_part *to = &job->parts[i];
		struct sched_part *has = &p->held[i], was = *has;

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
	const struct sched_job *job = &l->run.jobs[which];
	struct live_job *p = &l->live[which];
	bool changed = false;

	for (size_t i = 0; i < p->n_held; i++) {
		const struct sched_part *to = &job->parts[i];
		struct sched_part *has = &p->held[i];

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
				 l->run.jobs[which].name, strerror(-r));
	}
	/* else remote.h says how much */
	if (l->c.mount && l->run.cluster.remote_mib_s <= 0 &&
	    mib != p->told_mib) {
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
	for (size_t i = 0; r == 0 && i < 2 * l->run.n_active; i++) {
		uint32_t which = l->run.active[i % l->run.n_active];

		if (!goes_on(l, which) ||
		    !(i < l->run.n_active ? give(l, which) : get(l, which)))
			continue;
		r = held_changed(l, which);
		changed = true;
	}
	/* a scheduler that is started again tells all of them again */
	if (r == 0 && changed)
		r = state_save(l, false, err);
	for (size_t i = 0; r == 0 && i < l->run.n_active; i++)
		if (goes_on(l, l->run.active[i]))
			tell(l, l->run.active[i]);
	return r;
}

static void stop_one(struct live_job *p)
{
	if (p->process.state != PROCESS_RUNS || p->stopping)
		return;
	p->stopping = true;
	process_stop(&p->process);
}

/* Ask all processes to end. */
static void carry_stop_all(struct live *l)
{
	for (size_t i = 0; i < l->run.n_active; i++)
		stop_one(&l->live[l->run.active[i]]);
}

/* Does its process go on? */
static bool stays(const struct live *l, uint32_t which)
{
	if (l->run.jobs[which].state != JOB_RUNNING || !group_stays(l, which))
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
	held_give(l, which, l->run.now_ns);
	job_failed(l, which, err->text);
	*err = (struct err){ 0 };
	return 0;
}

static int start_job(struct live *l, const struct group_seat *seat,
		     struct err *err)
{
	uint32_t which = seat->job;
	struct sched_job *job = &l->run.jobs[which];
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
		job->start_ns = l->run.now_ns;
	job->since_ns = l->run.now_ns;
	l->unsaved = true;
	return 0;
}

/* Its server failed since the policy decided: the job, and those with whom it
 * takes turns, wait on. */
static bool is_late(struct live *l, uint32_t which)
{
	const struct sched_job *group[GROUP_MAX];
	size_t n = job_group(&l->run.jobs[which], group);

	if (!job_is_stranded(&l->run.cluster, &l->run.jobs[which]))
		return false;
	for (size_t i = 0; i < n; i++)
		plan_release(&l->run.cluster,
			     &l->run.jobs[group[i] - l->run.jobs],
			     l->run.now_ns, JOB_WAITING);
	l->run.changed = l->unsaved = true;
	return true;
}

/* The job, and those with whom it takes turns. */
static int start_group(struct live *l, uint32_t which, struct err *err)
{
	struct group_seat seats[GROUP_MAX];
	int n = group_open(l, which, seats, err), r = MIN(n, 0);

	for (int i = 0; r == 0 && i < n; i++)
		r = start_job(l, &seats[i], err);
	group_close(seats);
	return r;
}

/*
 * The state is saved; then processes of jobs that shall not run, or not there,
 * are asked to end, those that go on get and give CPUs and memory, and those of
 * jobs that shall run are started where all is free. -errno with a text.
 */
static int carry_out(struct live *l, struct err *err)
{
	int r = l->unsaved ? state_save(l, false, err) : 0;

	if (r < 0)
		return r;
	for (size_t i = 0; i < l->run.n_active; i++)
		if (!stays(l, l->run.active[i]))
			stop_one(&l->live[l->run.active[i]]);
	r = lease_all(l, err);
	for (size_t i = 0; r == 0 && i < l->run.n_active; i++) {
		uint32_t which = l->run.active[i];

		if (l->run.jobs[which].state == JOB_RUNNING &&
		    group_is_idle(l, which) &&
		    held_is_free(l, &l->run.jobs[which]) && !is_late(l, which))
			r = start_group(l, which, err);
	}
	/* who runs, and with what */
	return r == 0 && l->unsaved ? state_save(l, false, err) : r;
}

/* arbitrary: a program that lost its keeper needs some steps to end */
#define LOOK_AGAIN_NS (NS_PER_S / 10)

/* --- the clock ------------------------------------------------------------ */

static void move_clock(struct live *l)
{
	uint64_t wall = tick_wall();
	double ns = (double)(wall - l->wall_ns) / l->c.time_scale;

	l->run.now_ns += (uint64_t)ns;
	l->use_ns += ns * live_gpus(l);
	l->wall_ns = wall;
	l->real_ns = tick_realtime();
	/* work begins with the process */
	for (size_t i = 0; i < l->run.n_active; i++) {
		struct sched_job *job = &l->run.jobs[l->run.active[i]];
		const struct live_job *p = &l->live[l->run.active[i]];

		if (job->state == JOB_RUNNING &&
		    (p->process.state != PROCESS_RUNS || p->stopping))
			job->since_ns = l->run.now_ns;
	}
}

/* --- waiting -------------------------------------------------------------- */

/* Wall ns until an emulated time; TICK_NEVER. */
static uint64_t wall_until(const struct live *l, uint64_t at_ns)
{
	if (at_ns == UINT64_MAX)
		return TICK_NEVER;
	return at_ns <= l->run.now_ns
		       ? 0
		       : util_plus(util_whole((double)(at_ns - l->run.now_ns) *
					      l->c.time_scale),
				   1);
}

/* Until a process ends, a signal comes, or the time has come. 0 or -errno. */
static int sleep_until(struct live *l, uint64_t at_ns)
{
	uint64_t left = MIN(wall_until(l, at_ns), down_left(l));
	int r;

	for (size_t i = 0; i < l->run.n_active; i++) {
		const struct process *p = &l->live[l->run.active[i]].process;

		l->fds[i] = (struct pollfd){ .fd = p->pidfd, .events = POLLIN };
		if (p->state == PROCESS_UNKNOWN)
			left = MIN(left, LOOK_AGAIN_NS);
	}
	l->fds[l->run.n_active] =
		(struct pollfd){ .fd = l->stop.fd, .events = POLLIN };
	r = tick_poll(l->fds, l->run.n_active + 1,
		      util_plus(tick_wall(), left));
	move_clock(l);
	return MIN(r, 0);
}

static int see_ends(struct live *l, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < l->run.n_active; i++) {
		uint32_t which = l->run.active[i];

		if (l->fds[i].revents ||
		    l->live[which].process.state == PROCESS_UNKNOWN)
			r = look_at(l, which, false, err);
	}
	return r;
}

static bool any_process(const struct live *l)
{
	for (size_t i = 0; i < l->run.n_active; i++)
		if (l->live[l->run.active[i]].process.state != PROCESS_NONE)
			return true;
	return false;
}

/* --- the run -------------------------------------------------------------- */

/* Nothing will happen any more: a decision that changed nothing, without
 * processes, is like the next. */
static bool is_stuck(const struct live *l)
{
	return !any_process(l) && run_next_arrival(&l->run) == UINT64_MAX &&
	       !l->run.changed && l->run.asked_ns == l->run.now_ns &&
	       down_left(l) == TICK_NEVER;
}

static int await(struct sched_run *run, struct err *err)
{
	struct live *l = live_of(run);
	int r;

	if (is_stuck(l))
		return err_set(err, -EDEADLK,
			       "policy %s leaves %zu jobs waiting for ever",
			       l->c.of.policy->plugin->name,
			       run->n - run->n_done);
	/* a job that could not be started waits again */
	r = sleep_until(l, run->changed && !run->every_ns ? run->now_ns
							  : run_next(run));
	if (r == 0)
		r = see_ends(l, err);
	live_compact(l);
	down_end(l);
	progress_update(&l->bar, run->n_done, NULL);
	if (r == 0 && stop_came(&l->stop))
		r = err_set(err, -EINTR,
			    "interrupted: %zu of %zu jobs are done; the same "
			    "command continues",
			    run->n_done, run->n);
	return r;
}

static int apply(struct sched_run *run, struct err *err)
{
	struct live *l = live_of(run);
	int r;

	/* a real process takes its own time to begin */
	run->plan.cold = false;
	r = plan_apply(&run->plan, &run->cluster, run->jobs, run->n,
		       run->now_ns, err);
	/* jobs will be what their processes make of them */
	schedule_refresh(&run->schedule);
	l->unsaved = l->unsaved || run->plan.n;
	if (r < 0)
		err_prefix(err, "policy %s", l->c.of.policy->plugin->name);
	return r;
}

static int carry(struct sched_run *run, struct err *err)
{
	struct live *l = live_of(run);

	l->unsaved = l->unsaved || run->arrived;
	remote_tell(l);
	return carry_out(l, err);
}

static const struct sched_run_ops live_ops = {
	.wait = await,
	.apply = apply,
	.look = remote_look,
	.carry = carry,
};

/* End all processes, each with its checkpoint. */
static int end_all(struct live *l, struct err *err)
{
	int r = 0;

	l->closing = true;
	while (r == 0 && any_process(l)) {
		carry_stop_all(l);
		r = sleep_until(l, UINT64_MAX);
		if (r == 0)
			r = see_ends(l, err);
		/* a second signal hurries nobody */
		stop_came(&l->stop);
	}
	/* what they have done is in their checkpoints */
	for (size_t i = 0; i < l->run.n_active; i++) {
		struct sched_job *job = &l->run.jobs[l->run.active[i]];

		if (job->state == JOB_RUNNING)
			plan_release(&l->run.cluster, job, job->since_ns,
				     JOB_WAITING);
	}
	live_compact(l);
	return r < 0 ? r : state_stop(l, err);
}

int live_run(struct live *l, struct err *err)
{
	int r;

	progress_init(&l->bar, "jobs", l->run.n, l->c.progress);
	r = run_steps(&l->run, err);
	progress_end(&l->bar);
	if (r < 0) {
		struct err more = { 0 };

		err_set(err, r, "%s: %s", l->c.dir, strerror(-r));
		if (end_all(l, &more) < 0)
			log_error("%s", more.text);
		return r;
	}
	return state_save(l, true, err);
}

/* --- the beginning and the end of a run ----------------------------------- */

/* What the event clock has, and processes have not. */
static int check_config(const struct live_config *c,
			const struct schedule_ops *policy, struct err *err)
{
	const struct sched_workload *w = c->workload;

	if (c->of.cluster->remote_mib_s > 0 &&
	    (!c->mount || !argv_is_of_job(c->mount)))
		return err_set(err, -EINVAL,
			       "'remote' storage of nodes: live jobs have it "
			       "through mounts of their own; name them with "
			       "--mount, as in m/{job}");
	if (c->mount && c->of.cluster->remote_mib_s <= 0 &&
	    !c->of.cluster->whole.memory_mib)
		return err_set(err, -EINVAL,
			       "--mount: the nodes have no memory to give to "
			       "caches: name it, as in "
			       "--nodes gpus=2,cpus=8,memory=4G");
	for (size_t i = 0; policy->groups && !argv_uses_stages(c) && i < w->n;
	     i++)
		if (job_interleaves(&w->jobs[i]))
			return err_set(err, -EINVAL,
				       "job %s may take turns on GPUs with "
				       "others under policy %s, so its command "
				       "needs --loader null --stages {stages}",
				       w->jobs[i].name, policy->plugin.name);
	return 0;
}

static int allocate(struct live *l)
{
	const struct cluster *c = l->c.of.cluster;
	size_t n = l->c.of.n_jobs;
	int r = cluster_copy(c, &l->held);

	l->downs = calloc(c->n + 1, sizeof(*l->downs));
	l->live = calloc(n + 1, sizeof(*l->live));
	l->fds = calloc(n + 1, sizeof(*l->fds));
	if (r == 0)
		r = history_init(&l->history, n);
	if (r < 0 || !l->downs || !l->live || !l->fds)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		l->live[i].process.pidfd = -1;
		l->live[i].told_cache = l->live[i].told_remote = UINT64_MAX;
	}
	return 0;
}

/* The jobs of the state: which of them run, and which have ended since? */
static int find_processes(struct live *l, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < l->run.n_active; i++)
		r = look_at(l, l->run.active[i], true, err);
	for (size_t i = 0; r == 0 && i < l->run.n_active; i++) {
		uint32_t which = l->run.active[i];
		const struct sched_job *job = &l->run.jobs[which];

		if (l->live[which].process.state == PROCESS_NONE ||
		    l->live[which].n_held)
			continue;
		group_join(l, which);
		/* it started after the state was written, perhaps with those of
		 * its group */
		if (job->state != JOB_RUNNING ||
		    (!held_is_free(l, job) && !group_holder(l, which)))
			return err_set(err, -EBUSY,
				       "%s: job %s runs, but is missing in the "
				       "state",
				       l->c.dir, job->name);
		r = held_take(l, which);
	}
	if (r == 0)
		gpus_clean(l);
	l->use_ns += live_gpus(l) * (double)l->away_ns;
	l->away_ns = 0;
	live_compact(l);
	l->run.changed = true;
	return r;
}

int live_init(struct live *l, const struct live_config *c, struct err *err)
{
	const struct schedule_ops *policy =
		container_of(c->of.policy->plugin, struct schedule_ops, plugin);
	int r;

	*l = (struct live){ .c = *c };
	r = stop_init(&l->stop, err);
	if (r == 0)
		r = check_config(c, policy, err);
	if (r == 0)
		r = allocate(l);
	for (size_t i = 0; r == 0 && i < c->of.n_jobs; i++)
		r = argv_check(c, &c->of.jobs[i], &l->live[i].steps, err);
	if (r == 0)
		r = run_init(&l->run, &live_ops, &c->of, err);
	if (r == 0)
		r = gpus_check(l, err);
	if (r < 0)
		return r;
	l->wall_ns = tick_wall();
	l->real_ns = tick_realtime();
	r = state_load(l, err);
	plan_reset(&l->run.plan);
	l->resumed = r == 0;
	return l->resumed ? find_processes(l, err) : r == -ENOENT ? 0 : r;
}

void live_fini(struct live *l)
{
	for (size_t i = 0; l->live && i < l->run.n; i++) {
		process_forget(&l->live[i].process);
		free(l->live[i].held);
	}
	run_fini(&l->run);
	history_fini(&l->history);
	cluster_fini(&l->held);
	stop_fini(&l->stop);
	free(l->downs);
	free(l->live);
	free(l->fds);
}
