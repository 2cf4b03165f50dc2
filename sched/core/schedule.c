/* SPDX-License-Identifier: MIT */
/*
 * The queue that most policies are: jobs in the order of a key, as many from
 * the front as there are GPUs for. Those among them that wait are placed on a
 * copy of the cluster from which the running ones behind them were taken; where
 * a place is not found because free GPUs are scattered, the running ones keep
 * what is still free.
 */
#include "sched/core/schedule.h"

#include <errno.h>
#include <string.h>

#include "common/util.h"

int schedule_init(struct schedule *s, const struct schedule_ops *ops,
		  const void *options, const struct placement_ops *placement,
		  const void *placement_options, uint64_t seed,
		  const struct view *v, struct err *err)
{
	size_t parts = 1;
	int r;

	*s = (struct schedule){ .options = options,
				.rng = rng_stream(seed, "schedule", 0) };
	r = placement_init(&s->placement, placement, placement_options, seed,
			   v->cluster, v->jobs, v->n_jobs);
	if (r == 0)
		r = cluster_copy(v->cluster, &s->scratch);
	for (size_t i = 0; i < v->n_jobs; i++)
		parts = MAX(parts, placement_parts(&v->jobs[i]));
	s->parts = calloc(parts, sizeof(*s->parts));
	if (r < 0 || !s->parts)
		return r < 0 ? r : -ENOMEM;
	if (ops->plugin.state_size) {
		s->state = calloc(1, ops->plugin.state_size);
		if (!s->state)
			return -ENOMEM;
	}
	s->ops = ops;
	return ops->begin ? ops->begin(s, v, err) : 0;
}

void schedule_fini(struct schedule *s)
{
	if (s->ops && s->ops->end)
		s->ops->end(s);
	placement_fini(&s->placement);
	cluster_fini(&s->scratch);
	plan_fini(&s->all);
	free(s->state);
	free(s->queue);
	free(s->chosen);
	free(s->parts);
	*s = (struct schedule){ 0 };
}

/* --- who: from the front, while there are GPUs ---------------------------- */

static int compare(const void *a, const void *b)
{
	const struct queued *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->job < y->job ? -1 : x->job > y->job;
}

/* Sorted: all active jobs if they may be preempted, else those that wait. Jobs
 * are numbered by arrival. */
static int make_queue(struct schedule *s, const struct view *v, size_t *ret_n)
{
	int r = util_reserve_anew(&s->queue, &s->queue_allocated, v->n_active,
				  sizeof(*s->queue));
	size_t n = 0;

	if (r == 0)
		r = util_reserve_anew(&s->chosen, &s->chosen_allocated,
				      v->n_active, sizeof(*s->chosen));
	if (r < 0)
		return r;
	for (size_t i = 0; i < v->n_active; i++) {
		const struct job *job = &v->jobs[v->active[i]];

		if (job->state == JOB_WAITING || s->ops->preempts)
			s->queue[n++] =
				(struct queued){ s->ops->key(job, v->now_ns),
						 v->active[i] };
	}
	qsort(s->queue, n, sizeof(*s->queue), compare);
	*ret_n = n;
	return 0;
}

/* The numbers of those that shall run, in order; the rest of the queue gets
 * the key 1, the chosen the key 0. */
static size_t choose(struct schedule *s, const struct view *v, size_t n)
{
	uint64_t left = s->ops->preempts ? v->cluster->whole.gpu_milli
					 : v->cluster->free.gpu_milli;
	size_t n_chosen = 0;
	bool blocked = false;

	for (size_t i = 0; i < n; i++) {
		struct queued *q = &s->queue[i];
		uint64_t need = job_gpu_milli(&v->jobs[q->job]);

		q->key = blocked || need > left;
		blocked = s->ops->in_order && q->key > 0;
		if (q->key > 0)
			continue;
		left -= need;
		s->chosen[n_chosen++] = q->job;
	}
	return n_chosen;
}

/* --- where: on the copy --------------------------------------------------- */

static void take_parts(struct cluster *c, const struct part *parts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		cluster_take(c, &parts[i]);
}

static bool still_free(struct cluster *c, const struct job *job)
{
	for (size_t i = 0; i < job->n_parts; i++)
		if (!cluster_has(c, &job->parts[i]))
			return false;
	return true;
}

/* 1: it starts; 0: no room. */
static int start(struct schedule *s, const struct view *v, uint32_t job,
		 struct plan *ret)
{
	size_t n = placement_place(&s->placement, &s->scratch, &v->jobs[job],
				   s->parts);
	int r;

	if (!n)
		return 0;
	take_parts(&s->scratch, s->parts, n);
	r = plan_add(ret, ACTION_START, job, s->parts, n);
	return r < 0 ? r : 1;
}

/* Running jobs that were not chosen keep their parts where these are free. */
static int displace(struct schedule *s, const struct view *v, size_t n,
		    struct plan *ret)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < n; i++) {
		const struct job *job = &v->jobs[s->queue[i].job];

		if (s->queue[i].key == 0 || job->state != JOB_RUNNING)
			continue;
		if (still_free(&s->scratch, job))
			take_parts(&s->scratch, job->parts, job->n_parts);
		else
			r = plan_add(ret, ACTION_STOP, s->queue[i].job, NULL,
				     0);
	}
	return r;
}

/* Waiting jobs behind the chosen take what is left. */
static int fill(struct schedule *s, const struct view *v, size_t n,
		struct plan *ret)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < n; i++)
		if (s->queue[i].key > 0 && s->scratch.free.gpu_milli > 0 &&
		    v->jobs[s->queue[i].job].state == JOB_WAITING)
			r = start(s, v, s->queue[i].job, ret);
	return r;
}

static int keep_places(struct schedule *s, const struct view *v, size_t n,
		       size_t n_chosen, struct plan *ret)
{
	bool failed = false;
	int r = 0;

	cluster_sync(&s->scratch, v->cluster);
	for (size_t i = 0; i < n; i++) {
		const struct job *job = &v->jobs[s->queue[i].job];

		for (size_t k = 0; s->queue[i].key > 0 && k < job->n_parts; k++)
			cluster_give(&s->scratch, &job->parts[k]);
	}
	for (size_t i = 0; r >= 0 && i < n_chosen; i++) {
		if (v->jobs[s->chosen[i]].state != JOB_WAITING)
			continue;
		r = start(s, v, s->chosen[i], ret);
		failed = failed || r == 0;
		if (failed && s->ops->in_order)
			break;
	}
	if (r >= 0)
		r = displace(s, v, n, ret);
	if (r >= 0 && failed && !s->ops->in_order)
		r = fill(s, v, n, ret);
	return r < 0 ? r : 0;
}

/* --- all anew ------------------------------------------------------------- */

static int one_by_one(struct schedule *s, const struct view *v, size_t n)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < n; i++)
		r = start(s, v, s->chosen[i], &s->all);
	return r < 0 ? r : 0;
}

static bool same_parts(const struct job *job, const struct part *parts,
		       size_t n)
{
	return job->n_parts == n &&
	       !memcmp(job->parts, parts, n * sizeof(*parts));
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
		if (!runs || !same_parts(job, parts, a->n_parts))
			r = plan_add(ret, runs ? ACTION_CHANGE : ACTION_START,
				     a->job, parts, a->n_parts);
	}
	for (size_t i = 0; r == 0 && i < v->n_active; i++)
		if (v->jobs[v->active[i]].state == JOB_RUNNING &&
		    !kept[v->active[i]])
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

static int place_anew(struct schedule *s, const struct view *v, size_t n_chosen,
		      struct plan *ret)
{
	struct placement *p = &s->placement;
	int r;

	n_chosen = prepend_running(s, v, n_chosen);
	plan_reset(&s->all);
	cluster_clear(&s->scratch);
	r = p->ops->place_all ? p->ops->place_all(p, &s->scratch, v->jobs,
						  s->chosen, n_chosen, &s->all)
			      : one_by_one(s, v, n_chosen);
	return r < 0 ? r : difference(s, v, ret);
}

static int decide_queue(struct schedule *s, const struct view *v,
			struct plan *ret)
{
	size_t n, n_chosen;
	int r = make_queue(s, v, &n);

	if (r < 0)
		return r;
	n_chosen = choose(s, v, n);
	return s->placement.ops->anew ? place_anew(s, v, n_chosen, ret)
				      : keep_places(s, v, n, n_chosen, ret);
}

int schedule_decide(struct schedule *s, const struct view *v, struct plan *ret)
{
	plan_reset(ret);
	return s->ops->decide ? s->ops->decide(s, v, ret)
			      : decide_queue(s, v, ret);
}
