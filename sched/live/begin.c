/* SPDX-License-Identifier: MIT */
/* The beginning and the end of a live run. */
#include <errno.h>
#include <string.h>

#include "common/tick.h"
#include "common/util.h"
#include "sched/live/argv.h"
#include "sched/live/ends.h"
#include "sched/live/gpus.h"
#include "sched/live/group.h"
#include "sched/live/held.h"
#include "sched/live/live.h"
#include "sched/live/state.h"

/* What the event clock has, and processes have not. */
static int check(const struct live_config *c, const struct schedule_ops *policy,
		 struct err *err)
{
	const struct workload *w = c->workload;

	if (c->cluster->remote_mib_s > 0 &&
	    (!c->mount || !argv_is_of_job(c->mount)))
		return err_set(err, -EINVAL,
			       "'remote' storage of nodes: live jobs have it "
			       "through mounts of their own; name them with "
			       "--mount, as in m/{job}");
	if (c->mount && c->cluster->remote_mib_s <= 0 &&
	    !c->cluster->whole.memory_mib)
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
	const struct workload *w = l->c.workload;
	int r = cluster_copy(l->c.cluster, &l->cluster);

	if (r == 0)
		r = cluster_copy(l->c.cluster, &l->held);
	l->n = w->n;
	l->downs = calloc(l->cluster.n + 1, sizeof(*l->downs));
	l->jobs = malloc((w->n + 1) * sizeof(*l->jobs));
	l->live = calloc(w->n + 1, sizeof(*l->live));
	l->active = malloc((w->n + 1) * sizeof(*l->active));
	l->fds = calloc(w->n + 1, sizeof(*l->fds));
	for (size_t i = 0; l->live && i < w->n; i++) {
		l->live[i].process.pidfd = -1;
		l->live[i].told_cache = l->live[i].told_remote = UINT64_MAX;
	}
	if (r == 0)
		r = history_init(&l->history, w->n);
	if (r == 0)
		r = contention_init(&l->contention, &l->cluster, w->jobs, w->n);
	if (r < 0 || !l->downs || !l->jobs || !l->live || !l->active || !l->fds)
		return -ENOMEM;
	memcpy(l->jobs, w->jobs, w->n * sizeof(*l->jobs));
	return 0;
}

/* The jobs of the state: which of them run, and which have ended since? */
static int find_processes(struct live *l, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < l->n_active; i++)
		r = ends_look(l, l->active[i], true, err);
	for (size_t i = 0; r == 0 && i < l->n_active; i++) {
		uint32_t which = l->active[i];
		const struct job *job = &l->jobs[which];

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
	l->changed = true;
	return r;
}

static int start_policy(struct live *l, const struct schedule_ops *policy,
			struct err *err)
{
	const struct live_config *c = &l->c;
	struct view v = live_view(l);

	return schedule_init(&l->schedule, policy, c->policy->options,
			     container_of(c->placement->plugin,
					  struct placement_ops, plugin),
			     c->placement->options, c->seed, &v, err);
}

int live_init(struct live *l, const struct live_config *c, struct err *err)
{
	const struct schedule_ops *policy =
		container_of(c->policy->plugin, struct schedule_ops, plugin);
	int r;

	*l = (struct live){ .c = *c, .asked_ns = UINT64_MAX };
	plan_reset(&l->plan);
	r = stop_init(&l->stop, err);
	if (r == 0)
		r = check(c, policy, err);
	if (r == 0)
		r = allocate(l);
	for (size_t i = 0; r == 0 && i < l->n; i++)
		r = argv_check(c, &l->jobs[i], &l->live[i].steps, err);
	if (r == 0)
		r = gpus_check(l, err);
	if (r == 0)
		r = start_policy(l, policy, err);
	if (r < 0)
		return r;
	l->now_ns = l->n ? l->jobs[0].arrival_ns : 0;
	l->wall_ns = tick_wall();
	l->real_ns = tick_realtime();
	r = state_load(l, err);
	plan_reset(&l->plan);
	l->resumed = r == 0;
	return l->resumed ? find_processes(l, err) : r == -ENOENT ? 0 : r;
}

void live_fini(struct live *l)
{
	for (size_t i = 0; l->live && i < l->n; i++) {
		process_forget(&l->live[i].process);
		free(l->live[i].held);
	}
	for (size_t i = 0; l->jobs && i < l->n; i++)
		if (l->jobs[i].state == JOB_RUNNING)
			free(l->jobs[i].parts);
	schedule_fini(&l->schedule);
	plan_fini(&l->plan);
	contention_fini(&l->contention);
	history_fini(&l->history);
	cluster_fini(&l->cluster);
	cluster_fini(&l->held);
	stop_fini(&l->stop);
	free(l->downs);
	free(l->live);
	free(l->active);
	free(l->fds);
	free(l->jobs);
}
