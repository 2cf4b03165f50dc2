/* SPDX-License-Identifier: MIT */
#include "sched/core/anew.h"

#include <errno.h>
#include <string.h>

#include "common/util.h"

static int one_by_one(struct schedule *s, const struct view *v, size_t n)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		uint32_t job = s->chosen[i];

		r = plan_start(&s->all, &s->scratch, job, s->parts,
			       placement_place(&s->placement, &s->scratch,
					       &v->jobs[job], s->parts));
	}
	return r;
}

/* The plan that leads from what is to `all`. */
static int difference(struct schedule *s, const struct view *v,
		      struct plan *ret)
{
	_cleanup_free_ uint8_t *kept = calloc(v->n_jobs + 1, 1);
	int r = kept ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < s->all.n; i++) {
		const struct action *a = &s->all.actions[i];
		const struct part *parts = &s->all.parts[a->first];
		const struct job *job = &v->jobs[a->job];
		bool runs = job->state == JOB_RUNNING;

		kept[a->job] = true;
		if (!runs || !job_holds(job, parts, a->n_parts))
			r = plan_add(ret, runs ? ACTION_CHANGE : ACTION_START,
				     a->job, parts, a->n_parts);
	}
	for (size_t i = 0; r == 0 && i < v->n_active; i++)
		if (v->jobs[v->active[i]].state == JOB_RUNNING &&
		    !kept[v->active[i]] &&
		    !job_is_stranded(v->cluster, &v->jobs[v->active[i]]))
			r = plan_add(ret, ACTION_STOP, v->active[i], NULL, 0);
	return r;
}

/* Without preemption the running jobs are served first. */
static size_t prepend_running(struct schedule *s, const struct view *v,
			      size_t n_chosen)
{
	size_t n = 0;

	if (s->ops->preempts)
		return n_chosen;
	for (size_t i = 0; i < v->n_active; i++)
		n += v->jobs[v->active[i]].state == JOB_RUNNING;
	memmove(&s->chosen[n], s->chosen, n_chosen * sizeof(*s->chosen));
	n_chosen += n;
	n = 0;
	for (size_t i = 0; i < v->n_active; i++)
		if (v->jobs[v->active[i]].state == JOB_RUNNING)
			s->chosen[n++] = v->active[i];
	return n_chosen;
}

static size_t leave_stranded(struct schedule *s, const struct view *v,
			     size_t n_chosen)
{
	size_t n = 0;

	for (size_t i = 0; i < n_chosen; i++)
		if (!job_is_stranded(v->cluster, &v->jobs[s->chosen[i]]))
			s->chosen[n++] = s->chosen[i];
	return n;
}

/* In order, a job that found no place holds up those that wait behind it. */
static int hold_up(struct schedule *s, const struct view *v, size_t n_chosen)
{
	_cleanup_free_ uint8_t *placed = calloc(v->n_jobs + 1, 1);
	bool blocked = false;
	size_t n = 0;

	if (!placed)
		return -ENOMEM;
	for (size_t i = 0; i < s->all.n; i++)
		placed[s->all.actions[i].job] = true;
	for (size_t i = 0; i < n_chosen; i++) {
		if (v->jobs[s->chosen[i]].state != JOB_WAITING)
			continue;
		blocked = blocked || !placed[s->chosen[i]];
		placed[s->chosen[i]] = !blocked;
	}
	for (size_t i = 0; i < s->all.n; i++)
		if (placed[s->all.actions[i].job])
			s->all.actions[n++] = s->all.actions[i];
	s->all.n = n;
	return 0;
}

/* --- which GPUs of a node ------------------------------------------------- */

/* The GPUs that the job has where the part is, if they are as many. */
static uint32_t gpus_there(const struct job *job, const struct part *p)
{
	for (size_t i = 0; i < job->n_parts; i++)
		if (job->parts[i].node == p->node &&
		    part_gpus(&job->parts[i]) == part_gpus(p))
			return job->parts[i].gpus;
	return 0;
}

/* The first `n` that are not taken. */
static uint32_t first_free(uint32_t taken, uint32_t n)
{
	uint32_t gpus = 0;

	for (uint32_t g = 0; n; g++)
		if (!(taken >> g & 1)) {
			gpus |= 1u << g;
			n--;
		}
	return gpus;
}

/* Some of its GPUs are shared: they are not alike. */
#define SHARED UINT32_MAX

/*
 * GPUs of a node are alike, so a job that stays there with as many keeps those
 * that it has, instead of moving to the one next to it; the others get the
 * rest. `taken` and `kept`: zeros, for each node, and each part of the plan.
 */
static void keep_gpus(struct plan *all, const struct job *jobs, uint32_t *taken,
		      bool *kept)
{
	for (size_t i = 0; i < all->n_parts; i++)
		if (all->parts[i].gpus && all->parts[i].gpu_milli < GPU_MILLI)
			taken[all->parts[i].node] = SHARED;
	for (size_t i = 0; i < all->n; i++) {
		const struct action *a = &all->actions[i];

		for (size_t k = a->first; k < a->first + a->n_parts; k++) {
			struct part *p = &all->parts[k];
			uint32_t gpus = gpus_there(&jobs[a->job], p);

			kept[k] = gpus && taken[p->node] != SHARED;
			if (!kept[k])
				continue;
			p->gpus = gpus;
			taken[p->node] |= gpus;
		}
	}
	for (size_t i = 0; i < all->n_parts; i++) {
		struct part *p = &all->parts[i];

		if (kept[i] || !p->gpus || taken[p->node] == SHARED)
			continue;
		p->gpus = first_free(taken[p->node], part_gpus(p));
		taken[p->node] |= p->gpus;
	}
}

int anew_place(struct schedule *s, const struct view *v, size_t n_chosen,
	       struct plan *ret)
{
	_cleanup_free_ uint32_t *taken =
		calloc(v->cluster->n + 1, sizeof(*taken));
	_cleanup_free_ bool *kept = NULL;
	struct placement *p = &s->placement;
	int r;

	n_chosen = leave_stranded(s, v, prepend_running(s, v, n_chosen));
	plan_reset(&s->all);
	cluster_sync(&s->scratch, v->cluster); /* which nodes are down */
	cluster_clear(&s->scratch);
	r = p->ops->place_all ? p->ops->place_all(p, &s->scratch, v->jobs,
						  s->chosen, n_chosen, &s->all)
			      : one_by_one(s, v, n_chosen);
	if (r >= 0 && s->ops->in_order)
		r = hold_up(s, v, n_chosen);
	if (r < 0)
		return r;
	kept = calloc(s->all.n_parts + 1, sizeof(*kept));
	if (!taken || !kept)
		return -ENOMEM;
	keep_gpus(&s->all, v->jobs, taken, kept);
	return difference(s, v, ret);
}
