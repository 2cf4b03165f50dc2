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
#include <stddef.h>
#include <string.h>

#include "common/util.h"

struct schedule_array {
	struct schedule_array *next;
	max_align_t items[];
};

void *schedule_array(struct sched_schedule *s, size_t n, size_t size)
{
	/* of items for each job or user: the product fits */
	struct schedule_array *a = calloc(1, sizeof(*a) + n * size);

	s->no_memory |= !a;
	if (!a)
		return NULL;
	a->next = s->arrays;
	s->arrays = a;
	return a->items;
}

int schedule_init(struct sched_schedule *s, const struct schedule_ops *ops,
		  const void *options, const struct placement_ops *placement,
		  const void *placement_options, uint64_t seed,
		  const struct view *v, struct err *err)
{
	size_t parts = 1;
	int r;

	*s = (struct sched_schedule){ .options = options ? options
							 : ops->plugin.defaults,
				      .rng = rng_stream(seed, "schedule", 0) };
	r = placement_init(&s->placement, placement, placement_options, seed,
			   v->cluster, v->jobs, v->n_jobs);
	if (r == 0)
		r = cluster_copy(v->cluster, &s->scratch);
	for (size_t i = 0; i < v->n_jobs; i++)
		parts = MAX(parts, placement_parts(&v->jobs[i]));
	s->parts = calloc(parts, sizeof(*s->parts));
	s->keys = calloc(v->n_jobs + 1, sizeof(*s->keys));
	if (r < 0 || !s->parts || !s->keys)
		return r < 0 ? r : -ENOMEM;
	if (ops->plugin.state_size) {
		s->state = calloc(1, ops->plugin.state_size);
		if (!s->state)
			return -ENOMEM;
	}
	s->ops = ops;
	if (!ops->decide)
		r = queue_init(&s->queue, v->jobs, v->n_jobs);
	if (r < 0)
		return r;
	r = ops->begin ? ops->begin(s, v, err) : 0;
	return r == 0 && s->no_memory ? -ENOMEM : r;
}

void schedule_fini(struct sched_schedule *s)
{
	if (s->ops && s->ops->end)
		s->ops->end(s);
	while (s->arrays) {
		struct schedule_array *next = s->arrays->next;

		free(s->arrays);
		s->arrays = next;
	}
	placement_fini(&s->placement);
	cluster_fini(&s->scratch);
	plan_fini(&s->all);
	queue_fini(&s->queue);
	free(s->state);
	free(s->keys);
	free(s->sorted);
	free(s->behind);
	free(s->chosen);
	free(s->parts);
	*s = (struct sched_schedule){ 0 };
}

/* --- who: from the front, while there are GPUs ---------------------------- */

static struct queued entry_of(const struct sched_schedule *s,
			      const struct view *v, uint32_t job)
{
	double key = s->ops->keys ? s->keys[job]
				  : s->ops->key(&v->jobs[job], v->now_ns);

	return (struct queued){ key, job };
}

static int enqueue(struct sched_schedule *s, const struct view *v, uint32_t job)
{
	return queue_wait(&s->queue, v->jobs[job].shape, entry_of(s, v, job));
}

/* Nobody asks for the order of running jobs that are not preempted. */
static int add_running(struct sched_schedule *s, struct queued job)
{
	return s->ops->preempts ? queue_run(&s->queue, job) : 0;
}

/* Is the queue of the last decision that of this one, but for arrivals? */
static bool is_kept(const struct sched_schedule *s)
{
	return s->ops->key_motion != KEY_MOVES && !s->placement.ops->anew;
}

/* Jobs that arrived since, or all. Jobs are numbered by arrival. */
static int take_in(struct sched_schedule *s, const struct view *v)
{
	size_t i = v->n_active;
	int r = 0;

	if (!is_kept(s))
		queue_reset(&s->queue);
	while (i && v->active[i - 1] >= s->queue.n_seen)
		i--;
	for (; r == 0 && i < v->n_active; i++) {
		uint32_t job = v->active[i];

		r = v->jobs[job].state == JOB_WAITING
			    ? enqueue(s, v, job)
			    : add_running(s, entry_of(s, v, job));
		s->queue.n_seen = (size_t)job + 1;
	}
	return r;
}

int schedule_queue(struct sched_schedule *s, const struct view *v,
		   size_t *ret_n)
{
	int r = util_reserve_anew(&s->sorted, &s->sorted_allocated,
				  v->n_active + 1, sizeof(*s->sorted));

	*ret_n = 0;
	for (size_t i = 0; r == 0 && i < v->n_active; i++) {
		uint32_t job = v->active[i];

		if (v->jobs[job].state == JOB_WAITING || s->ops->preempts)
			s->sorted[(*ret_n)++] = entry_of(s, v, job);
	}
	if (*ret_n)
		qsort(s->sorted, *ret_n, sizeof(*s->sorted), queued_compare);
	return r;
}

/* All running jobs, where their keys may have moved either way. */
static int all_behind(struct sched_schedule *s, const struct view *v,
		      size_t *ret_n)
{
	int r = util_reserve_anew(&s->behind, &s->behind_allocated,
				  s->queue.n_running + 1, sizeof(*s->behind));

	for (size_t i = 0; r == 0 && i < s->queue.n_running; i++) {
		uint32_t job = s->queue.running[i].job;

		if (v->jobs[job].state == JOB_RUNNING)
			s->behind[(*ret_n)++] = entry_of(s, v, job);
	}
	s->queue.n_running = 0;
	return r;
}

/* NULL: none runs. Keys that fall were at least what they are now: the first of
 * the heap that has its key of now is the last of all. */
static const struct queued *last_running(struct sched_schedule *s,
					 const struct view *v)
{
	struct queue *q = &s->queue;

	while (q->n_running) {
		struct queued was = q->running[0];
		struct queued now = entry_of(s, v, was.job);

		if (v->jobs[was.job].state != JOB_RUNNING)
			queue_drop_last(q);
		else if (now.key < was.key)
			queue_sooner(q, now);
		else
			return &q->running[0];
	}
	return NULL;
}

/*
 * Running jobs from the last one on, until there is one such that all jobs up
 * to it, those that wait among them, fit into what is free and what the running
 * jobs behind it have: all of these run. The waiting jobs that were looked at
 * are the first of `chosen`.
 */
static int some_behind(struct sched_schedule *s, const struct view *v,
		       size_t *ret_n, size_t *ret_ahead)
{
	uint64_t room = v->cluster->free.gpu_milli;
	const struct queued *last;
	int r = 0;

	while (r == 0 && (last = last_running(s, v))) {
		const struct queue_head *head;

		while ((head = queue_next(&s->queue)) &&
		       queued_before(&head->first, last)) {
			uint64_t need =
				job_gpu_milli(&v->jobs[head->first.job]);

			if (need > room)
				break;
			room -= need;
			s->chosen[(*ret_ahead)++] = head->first.job;
			queue_take(&s->queue);
		}
		if (!head || queued_before(last, &head->first))
			break;
		r = util_reserve(&s->behind, &s->behind_allocated, *ret_n + 1,
				 sizeof(*s->behind));
		if (r < 0)
			break;
		s->behind[(*ret_n)++] = *last;
		room += job_gpu_milli(&v->jobs[last->job]);
		queue_drop_last(&s->queue);
	}
	return r;
}

/* Running jobs that may have to give way, sorted: all others run on. */
static int find_behind(struct sched_schedule *s, const struct view *v,
		       size_t *ret_n)
{
	bool all = !is_kept(s) || s->ops->key_motion != KEY_FALLS;
	size_t n_ahead = 0;
	int r;

	*ret_n = 0;
	r = all ? all_behind(s, v, ret_n) : some_behind(s, v, ret_n, &n_ahead);
	for (size_t i = 0; r == 0 && i < n_ahead; i++)
		r = enqueue(s, v, s->chosen[i]);
	if (n_ahead)
		queue_walk(&s->queue);
	if (*ret_n)
		qsort(s->behind, *ret_n, sizeof(*s->behind), queued_compare);
	return r;
}

/* GPUs for the waiting jobs and those of `behind`; all others run on. */
static uint64_t gpus_left(const struct sched_schedule *s, const struct view *v,
			  size_t n_behind)
{
	uint64_t left = v->cluster->free.gpu_milli;

	for (size_t i = 0; i < n_behind; i++)
		left += job_gpu_milli(&v->jobs[s->behind[i].job]);
	return left;
}

/*
 * The numbers of those that shall run, in order: of the waiting jobs, which
 * leave the queue, and of `behind`, which go back into it. What is not chosen
 * of the latter stays there, in order.
 */
static int choose(struct sched_schedule *s, const struct view *v,
		  size_t *n_behind, size_t *ret_n)
{
	uint64_t left = gpus_left(s, v, *n_behind);
	size_t i = 0, n_losers = 0, n = 0;
	bool blocked = false;
	int r = 0;

	while (r == 0) {
		const struct queue_head *head = blocked ? NULL
							: queue_next(&s->queue);
		bool runs =
			i < *n_behind &&
			(!head || queued_before(&s->behind[i], &head->first));
		struct queued q;
		uint64_t need;

		if (!runs && !head)
			break;
		q = runs ? s->behind[i++] : head->first;
		need = job_gpu_milli(&v->jobs[q.job]);
		if (!blocked && need <= left) {
			left -= need;
			s->chosen[n++] = q.job;
			if (runs)
				r = queue_run(&s->queue, q);
			else
				queue_take(&s->queue);
			continue;
		}
		blocked = s->ops->in_order;
		if (runs)
			s->behind[n_losers++] = q;
		else
			queue_skip(&s->queue);
	}
	*n_behind = n_losers;
	*ret_n = n;
	return r;
}

/* --- where: on the copy --------------------------------------------------- */

static bool still_free(struct cluster *c, const struct sched_job *job)
{
	for (size_t i = 0; i < job->n_parts; i++)
		if (!cluster_fits(c, &job->parts[i]))
			return false;
	return true;
}

/* 1: it starts; 0: no room. */
static int start_job(struct sched_schedule *s, const struct view *v,
		     uint32_t job, struct sched_plan *ret)
{
	size_t n = placement_place(&s->placement, &s->scratch, &v->jobs[job],
				   s->parts);
	int r = plan_start(ret, &s->scratch, job, s->parts, n);

	return r < 0 ? r : n > 0;
}

/* The same of a job that was taken from the queue. The copy only fills up: a
 * shape without room once in a decision has none later. */
static int start_queued(struct sched_schedule *s, const struct view *v,
			uint32_t job, struct sched_plan *ret)
{
	struct queue_shape *shape = &s->queue.shapes[v->jobs[job].shape];
	int r = shape->stuck == s->n_decisions ? 0 : start_job(s, v, job, ret);

	if (r > 0) {
		int e = add_running(s, entry_of(s, v, job));

		return e < 0 ? e : r;
	}
	shape->stuck = s->n_decisions;
	return r;
}

/* Those that find no place wait on. */
static int start_chosen(struct sched_schedule *s, const struct view *v,
			size_t n, bool *ret_failed, struct sched_plan *ret)
{
	int r = 0;

	*ret_failed = false;
	for (size_t i = 0; r >= 0 && i < n; i++) {
		uint32_t job = s->chosen[i];

		if (v->jobs[job].state != JOB_WAITING)
			continue;
		r = *ret_failed && s->ops->in_order
			    ? 0
			    : start_queued(s, v, job, ret);
		if (r == 0) {
			*ret_failed = true;
			r = enqueue(s, v, job);
		}
	}
	return MIN(r, 0);
}

/* Running jobs that were not chosen keep their parts where these are free. */
static int displace(struct sched_schedule *s, const struct view *v, size_t n,
		    struct sched_plan *ret)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < n; i++) {
		struct queued q = s->behind[i];
		const struct sched_job *job = &v->jobs[q.job];

		if (still_free(&s->scratch, job)) {
			for (size_t k = 0; k < job->n_parts; k++)
				cluster_take(&s->scratch, &job->parts[k]);
			r = queue_run(&s->queue, q);
		} else {
			r = plan_add(ret, ACTION_STOP, q.job, NULL, 0);
		}
	}
	return r;
}

/* Waiting jobs behind the chosen take what is left. */
static int fill_rest(struct sched_schedule *s, const struct view *v,
		     struct sched_plan *ret)
{
	const struct queue_head *head;
	int r = 0;

	queue_walk(&s->queue);
	while (r >= 0 && s->scratch.free.gpu_milli > 0 &&
	       (head = queue_next(&s->queue))) {
		r = start_queued(s, v, head->first.job, ret);
		if (r > 0)
			queue_take(&s->queue);
		else
			queue_skip(&s->queue);
	}
	return MIN(r, 0);
}

/* Only now, since a job does not start in the decision that stops it. */
static int enqueue_stopped(struct sched_schedule *s, const struct view *v,
			   const struct sched_plan *plan)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < plan->n; i++)
		if (plan->actions[i].kind == ACTION_STOP)
			r = enqueue(s, v, plan->actions[i].job);
	return r;
}

/* Was no waiting job chosen? Then all stay where they are. */
static bool none_starts(const struct sched_schedule *s, const struct view *v,
			size_t n_chosen)
{
	size_t i = 0;

	while (i < n_chosen && v->jobs[s->chosen[i]].state == JOB_RUNNING)
		i++;
	return i == n_chosen;
}

static int keep_places(struct sched_schedule *s, const struct view *v,
		       size_t n_behind, size_t n_chosen, struct sched_plan *ret)
{
	bool failed;
	int r = 0;

	if (none_starts(s, v, n_chosen)) {
		for (size_t i = 0; r == 0 && i < n_behind; i++)
			r = queue_run(&s->queue, s->behind[i]);
		return r;
	}
	cluster_sync(&s->scratch, v->cluster);
	for (size_t i = 0; i < n_behind; i++) {
		const struct sched_job *job = &v->jobs[s->behind[i].job];

		for (size_t k = 0; k < job->n_parts; k++)
			cluster_give(&s->scratch, &job->parts[k]);
	}
	r = start_chosen(s, v, n_chosen, &failed, ret);
	if (r == 0)
		r = displace(s, v, n_behind, ret);
	if (r == 0 && failed && !s->ops->in_order)
		r = fill_rest(s, v, ret);
	return r < 0 ? r : enqueue_stopped(s, v, ret);
}

/* --- placements that place all jobs anew with each decision --------------- */

static int one_by_one(struct sched_schedule *s, const struct view *v, size_t n)
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
static int difference(struct sched_schedule *s, const struct view *v,
		      struct sched_plan *ret)
{
	_cleanup_free_ uint8_t *kept = calloc(v->n_jobs + 1, 1);
	int r = kept ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < s->all.n; i++) {
		const struct action *a = &s->all.actions[i];
		const struct sched_part *parts = &s->all.parts[a->first];
		const struct sched_job *job = &v->jobs[a->job];
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
static size_t prepend_running(struct sched_schedule *s, const struct view *v,
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

static size_t leave_stranded(struct sched_schedule *s, const struct view *v,
			     size_t n_chosen)
{
	size_t n = 0;

	for (size_t i = 0; i < n_chosen; i++)
		if (!job_is_stranded(v->cluster, &v->jobs[s->chosen[i]]))
			s->chosen[n++] = s->chosen[i];
	return n;
}

/* In order, a job that found no place holds up those that wait behind it. */
static int hold_up(struct sched_schedule *s, const struct view *v,
		   size_t n_chosen)
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
static uint32_t gpus_there(const struct sched_job *job,
			   const struct sched_part *p)
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
static void keep_gpus(struct sched_plan *all, const struct sched_job *jobs,
		      uint32_t *taken, bool *kept)
{
	for (size_t i = 0; i < all->n_parts; i++)
		if (all->parts[i].gpus && all->parts[i].gpu_milli < GPU_MILLI)
			taken[all->parts[i].node] = SHARED;
	for (size_t i = 0; i < all->n; i++) {
		const struct action *a = &all->actions[i];

		for (size_t k = a->first; k < a->first + a->n_parts; k++) {
			struct sched_part *p = &all->parts[k];
			uint32_t gpus = gpus_there(&jobs[a->job], p);

			kept[k] = gpus && taken[p->node] != SHARED;
			if (!kept[k])
				continue;
			p->gpus = gpus;
			taken[p->node] |= gpus;
		}
	}
	for (size_t i = 0; i < all->n_parts; i++) {
		struct sched_part *p = &all->parts[i];

		if (kept[i] || !p->gpus || taken[p->node] == SHARED)
			continue;
		p->gpus = first_free(taken[p->node], part_gpus(p));
		taken[p->node] |= p->gpus;
	}
}

/*
 * The plan that leads from what is to where the placement puts the first
 * `n_chosen` of s->chosen, which has room for all active jobs. Jobs that stay
 * where they are with what they have are not in it.
 */
static int place_anew(struct sched_schedule *s, const struct view *v,
		      size_t n_chosen, struct sched_plan *ret)
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

/* --- decisions ------------------------------------------------------------ */

static int decide_queue(struct sched_schedule *s, const struct view *v,
			struct sched_plan *ret)
{
	size_t n_behind, n_chosen = 0;
	int r = take_in(s, v);

	if (r == 0)
		r = util_reserve_anew(&s->chosen, &s->chosen_allocated,
				      v->n_active + 1, sizeof(*s->chosen));
	queue_walk(&s->queue);
	/* nobody waits: all stay where they are */
	if (r < 0 || (!queue_next(&s->queue) && !s->placement.ops->anew))
		return r;
	s->n_decisions++;
	r = find_behind(s, v, &n_behind);
	if (r == 0)
		r = choose(s, v, &n_behind, &n_chosen);
	if (r < 0)
		return r;
	return s->placement.ops->anew
		       ? place_anew(s, v, n_chosen, ret)
		       : keep_places(s, v, n_behind, n_chosen, ret);
}

void schedule_refresh(struct sched_schedule *s)
{
	queue_reset(&s->queue);
}

/* Of the jobs that run or start; also of those that stop: harmless. */
static void set_wake(const struct sched_schedule *s, const struct view *v,
		     struct sched_plan *plan)
{
	for (size_t i = 0; i < v->n_active; i++) {
		const struct sched_job *job = &v->jobs[v->active[i]];

		if (job->state == JOB_RUNNING)
			plan->wake_ns = MIN(plan->wake_ns,
					    s->ops->wake(job, v->now_ns));
	}
	for (size_t i = 0; i < plan->n; i++) {
		const struct sched_job *job = &v->jobs[plan->actions[i].job];

		if (plan->actions[i].kind == ACTION_START)
			plan->wake_ns = MIN(plan->wake_ns,
					    s->ops->wake(job, v->now_ns));
	}
}

int schedule_decide(struct sched_schedule *s, const struct view *v,
		    struct sched_plan *ret)
{
	int r;

	plan_reset(ret);
	ret->cold = s->ops->cold;
	if (s->ops->keys)
		s->ops->keys(s, v);
	r = s->ops->decide ? s->ops->decide(s, v, ret)
			   : decide_queue(s, v, ret);
	if (r == 0 && s->ops->wake)
		set_wake(s, v, ret);
	return r;
}

/* The copy only fills up: a shape without room once has none later. */
int schedule_others(struct sched_schedule *s, const struct view *v,
		    bool (*is_own)(const struct sched_job *job),
		    struct sched_plan *ret)
{
	_cleanup_free_ bool *stuck = calloc(v->n_jobs + 1, sizeof(*stuck));
	int r = stuck ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < v->n_active; i++) {
		const struct sched_job *job = &v->jobs[v->active[i]];
		size_t n;

		if (job->state != JOB_WAITING || is_own(job) ||
		    stuck[job->shape])
			continue;
		n = placement_place(&s->placement, &s->scratch, job, s->parts);
		stuck[job->shape] = !n;
		r = plan_start(ret, &s->scratch, v->active[i], s->parts, n);
	}
	return r;
}
