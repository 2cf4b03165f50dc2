/* SPDX-License-Identifier: MIT */
/*
 * Between two events the same iterations run at the same pace. The state
 * therefore advances from event to event (end of a copy, end of an iteration),
 * and at each event the ends of all running iterations are known.
 *
 * The number of jobs is small (a GPU holds tens), so everything is a pass
 * over them.
 */
#include "share/share.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "common/word.h"
#include "share/state.h"
#include "share/utilisation.h"

/* --- pace ----------------------------------------------------------------- */

/* Of the GPU's time, that of one job and of those with whom it shares. */
static double part_of(const struct share *s, const struct share_job *job,
		      uint32_t g, uint32_t *ret_running)
{
	const struct share_gpu *gpu = &s->gpus[g];
	const struct share_quota *q = pace_apart(&job->want, g);

	*ret_running = q ? q->n_running[g] : gpu->n_running - gpu->n_apart;
	return (q ? q->part_milli[g] : SHARE_WHOLE - gpu->part_milli) /
	       (double)SHARE_WHOLE;
}

/* Of those with whom the job shares the GPU, itself included, how many have an
 * iteration that runs or could. The driver switches between them. */
static uint32_t n_ready(const struct share *s, const struct share_job *job,
			uint32_t g)
{
	const struct share_quota *q = pace_apart(&job->want, g);
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n_jobs; i++) {
		const struct share_job *other = s->jobs[i];

		n += other->n && other->view.ready_ns <= s->now &&
		     share_on(other, g) && pace_apart(&other->want, g) == q;
	}
	return n;
}

/* The current pace of the job: emulated ns of work per ns. More than 0:
 * share_set_part leaves some time to every job. */
static double pace(const struct share *s, const struct share_job *job)
{
	double slowest = 1;

	for (uint32_t g = 0; g < s->config.n_gpus; g++) {
		uint32_t k;
		double part;

		if (!share_on(job, g))
			continue;
		part = part_of(s, job, g, &k) / k;
		if (s->config.speedup)
			part *= share_profile_speedup(s->config.speedup, k);
		if (s->config.slicing)
			part *= share_profile_speedup(s->config.slicing,
						      n_ready(s, job, g));
		slowest = MIN(slowest, part);
	}
	return slowest;
}

/* Advance running iterations to `now`. */
static void pace_settle(struct share *s, uint64_t now)
{
	const struct scheduler_ops *ops = s->config.scheduler;

	if (now <= s->now)
		return;
	for (uint32_t i = 0; i < s->n_jobs; i++) {
		struct share_job *job = s->jobs[i];
		double ns;

		if (!job->running)
			continue;
		ns = (double)(now - s->now) * pace(s, job);
		job->left_ns -= ns;
		ns *= job->want.n_gpus;
		job->service_ns += ns;
		if (ops->ran)
			ops->ran(&job->view, ns);
	}
	utilisation_count(s, now);
	s->now = now;
}

uint64_t share_next(const struct share *s)
{
	uint64_t next = SHARE_NEVER;

	for (uint32_t i = 0; i < s->n_jobs; i++) {
		const struct share_job *job = s->jobs[i];

		if (job->running) {
			double ns = pace_ended(job) ? 0 : job->left_ns;

			next = MIN(
				next,
				util_plus(s->now,
					  util_whole(ceil(ns / pace(s, job)))));
		} else if (job->n && job->view.ready_ns > s->now) {
			next = MIN(next, job->view.ready_ns);
		}
	}
	return next;
}

/* The job's iteration runs from now on, or (`by` -1) no more. */
static void pace_count(struct share *s, const struct share_job *job, int by)
{
	for (uint32_t g = 0; g < s->config.n_gpus; g++) {
		struct share_quota *q = pace_apart(&job->want, g);

		if (!share_on(job, g))
			continue;
		s->gpus[g].n_running += (uint32_t)by;
		if (!q)
			continue;
		s->gpus[g].n_apart += (uint32_t)by;
		q->n_running[g] += (uint32_t)by;
	}
}

/* --- parts of the time ---------------------------------------------------- */

int share_set_part(struct share *s, struct share_quota *q, uint32_t gpu,
		   uint32_t milli, struct err *err)
{
	uint32_t *all = &s->gpus[gpu].part_milli, *own = &q->part_milli[gpu];

	if (milli == *own)
		return 0;
	if (*all - *own + milli > SHARE_WHOLE)
		return err_set(err, -ENOSPC,
			       "GPU %u: .%03u of its time requested, but .%03u "
			       "is left",
			       gpu, milli, SHARE_WHOLE - (*all - *own));
	for (uint32_t i = 0; i < s->n_jobs; i++) {
		const struct share_want *w = &s->jobs[i]->want;

		if (!share_on(s->jobs[i], gpu))
			continue;
		if (w->quota == q)
			return err_set(err, -EBUSY,
				       "GPU %u: its part of the time cannot "
				       "change while a job is there",
				       gpu);
		if (*all - *own + milli == SHARE_WHOLE && !pace_apart(w, gpu))
			return err_set(err, -EBUSY,
				       "GPU %u: a job without a part of its "
				       "time is there, and none would be left",
				       gpu);
	}
	*all += milli - *own;
	*own = milli;
	return 0;
}

/* --- copies --------------------------------------------------------------- */

/* To all GPUs of a mask, which the job has, at once, for `ns`. Returns the end.
 * Nothing is copied in no time, once the model is there. */
static uint64_t copies_add(struct share *s, struct share_job *job,
			   uint64_t gpus, uint64_t ns, uint64_t *ret_start)
{
	uint64_t at = MAX(s->now, job->loaded_ns);

	if (ns == 0)
		gpus = 0;
	for (uint32_t g = 0; g < s->config.n_gpus; g++)
		if (gpus >> g & 1)
			at = MAX(at, s->gpus[g].copy_free);
	*ret_start = at;
	at = util_plus(at, ns);
	for (uint32_t g = 0; g < s->config.n_gpus; g++)
		if (gpus >> g & 1)
			s->gpus[g].copy_free = job->copy_end[g] = at;
	return at;
}

/* When the job has all that was copied to it for its next iteration. */
static uint64_t copies_there(const struct share_job *job)
{
	uint64_t end = 0;

	for (uint32_t g = 0; g < SHARE_MAX_GPUS; g++)
		if (job->copied >> g & 1)
			end = MAX(end, job->copy_end[g]);
	return end;
}

/* Of the job's GPUs; the number of GPUs: there is none. */
static uint32_t nth_of(const struct share *s, const struct share_job *job,
		       uint32_t nth)
{
	uint32_t g = 0;

	for (; g < s->config.n_gpus; g++)
		if (share_on(job, g) && nth-- == 0)
			break;
	return g;
}

int share_copy(struct share *s, struct share_job *job, uint32_t nth,
	       uint64_t copy_ns, uint64_t *ret_start, uint64_t *ret_end)
{
	uint32_t g = nth_of(s, job, nth);

	if (!job->resident)
		return -EAGAIN;
	if (job->n == SHARE_DEPTH)
		return -EBUSY;
	if (g == s->config.n_gpus || job->copied >> g & 1)
		return -EINVAL;
	*ret_end = copies_add(s, job, 1ull << g, copy_ns, ret_start);
	job->copied |= 1ull << g;
	return 0;
}

/* When all copies to the GPU that were accepted end. */
static uint64_t copies_end(const struct share *s, uint32_t gpu)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < s->n_jobs; i++) {
		const struct share_job *job = s->jobs[i];

		if (share_on(job, gpu))
			end = MAX(end, MAX(job->loaded_ns, job->copy_end[gpu]));
	}
	return end;
}

static const char *const modes[] = {
	[SHARE_TIME] = "time", [SHARE_LANES] = "lanes", [SHARE_MPS] = "mps"
};

int share_mode_parse(const char *s, enum share_mode *ret, struct err *err)
{
	return WORD_INTO(modes, "sharing mode", s, ret, err);
}

const char *share_mode_name(enum share_mode mode)
{
	return modes[mode];
}

int share_new(const struct share_config *config, struct share **ret)
{
	static const enum lanes_kind kinds[] = { [SHARE_TIME] = LANES_ONE,
						 [SHARE_LANES] = LANES_SALUS,
						 [SHARE_MPS] = LANES_OF_OWN };
	struct share *s = calloc(1, sizeof(*s));
	size_t n = config->max_jobs;
	int r = 0;

	if (!s)
		return -ENOMEM;
	s->config = *config;
	s->gpus = calloc(config->n_gpus, sizeof(*s->gpus));
	s->jobs = calloc(n, sizeof(struct share_job *));
	s->sorted = calloc(n, sizeof(struct share_job *));
	s->views = calloc(n, sizeof(struct scheduler_job *));
	if (!s->gpus || !s->jobs || !s->sorted || !s->views)
		r = -ENOMEM;
	for (uint32_t g = 0; r == 0 && g < config->n_gpus; g++)
		r = lanes_init(&s->gpus[g].lanes, kinds[config->mode],
			       config->memory_bytes, config->max_jobs);
	if (r < 0)
		share_free(s);
	else
		*ret = s;
	return r;
}

void share_free(struct share *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->n_jobs; i++)
		free(s->jobs[i]);
	for (uint32_t g = 0; s->gpus && g < s->config.n_gpus; g++)
		lanes_fini(&s->gpus[g].lanes);
	free(s->gpus);
	free(s->jobs);
	free(s->sorted);
	free(s->views);
	free(s);
}

uint32_t share_lane(const struct share *s, const struct share_job *job,
		    uint32_t gpu)
{
	return s->gpus[gpu].lanes.jobs[job->slot[gpu]].lane;
}

/* --- who runs ------------------------------------------------------------- */

static bool ready(const struct share *s, const struct share_job *job)
{
	return job->resident && !job->running && job->n &&
	       job->view.ready_ns <= s->now;
}

typedef int (*order_fn)(const struct scheduler_job *a,
			const struct scheduler_job *b);

static bool ahead(order_fn order, const struct share_job *a,
		  const struct share_job *b)
{
	int c = order ? order(&a->view, &b->view) : 0;

	return c ? c < 0 : a->view.seq < b->view.seq;
}

/* Put a job among those in s->sorted. */
static void insert(struct share *s, uint32_t *n, order_fn order,
		   struct share_job *job)
{
	uint32_t i = (*n)++;

	for (; i && ahead(order, job, s->sorted[i - 1]); i--)
		s->sorted[i] = s->sorted[i - 1];
	s->sorted[i] = job;
}

/* Does `other` block `job` on a common GPU? */
static bool in_the_way(const struct share *s, const struct share_job *other,
		       const struct share_job *job, uint32_t gpu)
{
	const struct scheduler_ops *ops = s->config.scheduler;

	if (pace_apart(&other->want, gpu) != pace_apart(&job->want, gpu))
		return false;
	if (ops->exclusive && ahead(ops->order, other, job))
		return true;
	if (!other->running && !other->held)
		return false;
	if (s->config.mode == SHARE_MPS)
		return false;
	return !ops->concurrent ||
	       share_lane(s, other, gpu) == share_lane(s, job, gpu);
}

static bool may_start(const struct share *s, const struct share_job *job)
{
	for (uint32_t i = 0; i < s->n_jobs; i++) {
		const struct share_job *other = s->jobs[i];

		if (other == job || !(other->gpus & job->gpus))
			continue;
		for (uint32_t g = 0; g < s->config.n_gpus; g++)
			if (share_on(other, g) && share_on(job, g) &&
			    in_the_way(s, other, job, g))
				return false;
	}
	return true;
}

static void start_job(struct share *s, struct share_job *job)
{
	struct share_iteration *it = &job->queue[job->head];

	job->running = true;
	job->left_ns = (double)it->work_ns;
	it->start = s->now;
	job->wait_ns += s->now - job->view.ready_ns;
	job->view.last_start = ++s->n_starts;
	pace_count(s, job, 1);
}

/*
 * Start all iterations that may start. A job that waits for several GPUs
 * reserves the free ones against jobs behind it; otherwise it might never find
 * all of them free at once.
 */
static void dispatch(struct share *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n_jobs; i++) {
		s->jobs[i]->held = false;
		if (ready(s, s->jobs[i]))
			insert(s, &n, s->config.scheduler->order, s->jobs[i]);
	}
	for (uint32_t i = 0; i < n; i++)
		if (may_start(s, s->sorted[i]))
			start_job(s, s->sorted[i]);
		else
			s->sorted[i]->held = s->sorted[i]->want.n_gpus > 1;
}

static void stop(struct share *s, struct share_job *job)
{
	job->running = false;
	pace_count(s, job, -1);
}

/* The head of the queue is ready when it is copied and the previous one is
 * done. */
static void next_head(struct share *s, struct share_job *job)
{
	if (job->n)
		job->view.ready_ns =
			MAX(job->queue[job->head].copy_end, s->now);
}

/* Also unknown once it has run more than announced. */
static uint64_t remaining(const struct share_job *job)
{
	uint64_t ns;

	if (job->iterations >= job->want.iterations ||
	    __builtin_mul_overflow(job->want.iterations - job->iterations,
				   job->want.iteration_ns, &ns))
		return SCHEDULER_UNKNOWN;
	return ns;
}

static void finish_job(struct share *s, struct share_job *job)
{
	struct share_iteration it = job->queue[job->head];

	stop(s, job);
	it.end = s->now;
	job->head = (job->head + 1) % SHARE_DEPTH;
	job->n--;
	job->iterations++;
	s->n_iterations++;
	job->view.remaining_ns = remaining(job);
	next_head(s, job);
	if (s->config.done)
		s->config.done(s->config.ctx, job, &it);
}

void share_advance(struct share *s, uint64_t now)
{
	uint64_t next;

	while ((next = share_next(s)) <= now) {
		pace_settle(s, next);
		for (uint32_t i = 0; i < s->n_jobs; i++)
			if (pace_ended(s->jobs[i]))
				finish_job(s, s->jobs[i]);
		dispatch(s);
	}
	pace_settle(s, now);
}

/* --- who is in memory ----------------------------------------------------- */

/* May it use so much memory of the GPU at all? */
static bool is_granted(const struct share_want *w, uint32_t gpu)
{
	const struct share_quota *q = w->quota;

	/* a profile without memory has jobs that need none */
	return !q || (q->bytes[gpu] && w->peak_bytes <= q->bytes[gpu]);
}

static bool within_quota(const struct share_want *w, uint32_t gpu)
{
	const struct share_quota *q = w->quota;

	return is_granted(w, gpu) &&
	       (!q || q->used[gpu] <= q->bytes[gpu] - w->peak_bytes);
}

/* What it holds while no iteration runs: all, if others do not wait for it. */
static uint64_t persistent(const struct share_want *w, uint32_t gpu)
{
	return pace_apart(w, gpu) ? w->peak_bytes : w->persistent_bytes;
}

/* Have quotas all of its time, and this job is of none of them? */
static bool is_given_away(const struct share *s, const struct share_want *w,
			  uint32_t gpu)
{
	return !pace_apart(w, gpu) && s->gpus[gpu].part_milli == SHARE_WHOLE;
}

/* Others need not wait behind it: for its own quota, or for those of others. */
static bool waits_for_quota(const struct share *s, const struct share_want *w)
{
	uint32_t n = 0;

	for (uint32_t g = 0; g < s->config.n_gpus; g++)
		n += within_quota(w, g) && !is_given_away(s, w, g);
	return n < w->n_gpus;
}

/* Would it be admitted to the GPU if that was empty? */
static bool may_use(const struct share *s, const struct share_want *w,
		    uint32_t gpu)
{
	return !s->gpus[gpu].failed && is_granted(w, gpu) &&
	       !is_given_away(s, w, gpu);
}

static bool has_room(const struct share *s, const struct share_want *w,
		     uint32_t gpu)
{
	return within_quota(w, gpu) &&
	       lanes_place(&s->gpus[gpu].lanes, persistent(w, gpu),
			   w->peak_bytes - persistent(w, gpu)) >= 0;
}

/* Does `other`, which is not resident, wait for memory that the job holds? Not
 * if that would not help: it waits for a GPU's time as well, or its own quota
 * is full with other jobs. */
static bool waits_for_memory(const struct share *s,
			     const struct share_job *other,
			     const struct share_job *job)
{
	const struct share_want *w = &other->want;
	bool waits = false;
	uint32_t n = 0;

	for (uint32_t g = 0; g < s->config.n_gpus; g++) {
		if (!may_use(s, w, g))
			continue;
		n++;
		waits |= share_on(job, g) && !has_room(s, w, g) &&
			 (within_quota(w, g) || job->want.quota == w->quota);
	}
	return waits && n >= w->n_gpus;
}

/* Do they take turns on a GPU? */
static bool share_a_gpu(const struct share *s, const struct share_job *a,
			const struct share_job *b)
{
	for (uint32_t g = 0; g < s->config.n_gpus; g++)
		if (share_on(a, g) && share_on(b, g) &&
		    pace_apart(&a->want, g) == pace_apart(&b->want, g))
			return true;
	return false;
}

bool share_blocks(const struct share *s, const struct share_job *job)
{
	const struct scheduler_ops *ops = s->config.scheduler;

	if (!job->resident || job->n)
		return false;
	for (uint32_t i = 0; i < s->n_jobs; i++) {
		const struct share_job *other = s->jobs[i];

		if (!other->resident
			    ? waits_for_memory(s, other, job)
			    : other != job && ops->exclusive && other->n &&
				      share_a_gpu(s, job, other) &&
				      ahead(ops->order, job, other))
			return true;
	}
	return false;
}

/* The sound GPU with the fewest jobs that has room and is not in `taken`; -1.
 */
static int choose(const struct share *s, const struct share_want *w,
		  uint64_t taken)
{
	int best = -1;

	for (uint32_t g = 0; g < s->config.n_gpus; g++) {
		const struct lanes *l = &s->gpus[g].lanes;

		if (taken >> g & 1 || !may_use(s, w, g) || !has_room(s, w, g))
			continue;
		if (best < 0 || l->n_jobs < s->gpus[best].lanes.n_jobs)
			best = (int)g;
	}
	return best;
}

static void report_admitted(struct share *s, const struct share_job *job)
{
	for (uint32_t g = 0; g < s->config.n_gpus; g++) {
		size_t n = 0;

		for (uint32_t i = 0; share_on(job, g) && i < s->n_jobs; i++)
			if (share_on(s->jobs[i], g))
				s->views[n++] = &s->jobs[i]->view;
		if (n)
			s->config.scheduler->admitted(
				s->views, n, s->config.scheduler_options);
	}
}

/* All of its GPUs or none. */
static bool admit(struct share *s, struct share_job *job)
{
	const struct share_want *w = &job->want;
	uint64_t taken = 0;

	for (uint32_t i = 0; i < w->n_gpus; i++) {
		int g = choose(s, w, taken);

		if (g < 0)
			return false;
		taken |= 1ull << g;
	}
	for (uint32_t g = 0; g < s->config.n_gpus; g++) {
		struct share_gpu *gpu = &s->gpus[g];
		int slot;

		if (!(taken >> g & 1))
			continue;
		slot = lanes_add(&gpu->lanes, persistent(w, g),
				 w->peak_bytes - persistent(w, g));
		assert(slot >= 0);
		job->slot[g] = (uint32_t)slot;
		if (w->quota)
			w->quota->used[g] += w->peak_bytes;
		gpu->copy_free =
			util_plus(MAX(gpu->copy_free, s->now), w->load_ns);
		job->loaded_ns = MAX(job->loaded_ns, gpu->copy_free);
	}
	job->gpus = taken;
	job->resident = true;
	job->admitted_ns = s->now;
	if (s->config.scheduler->admitted)
		report_admitted(s, job);
	if (s->config.admitted)
		s->config.admitted(s->config.ctx, job);
	return true;
}

void share_admit(struct share *s)
{
	const struct scheduler_ops *ops = s->config.scheduler;
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n_jobs; i++)
		if (!s->jobs[i]->resident)
			insert(s, &n, ops->queue_order, s->jobs[i]);
	for (uint32_t i = 0; i < n; i++)
		if (!admit(s, s->sorted[i]) && ops->in_turn &&
		    !waits_for_quota(s, &s->sorted[i]->want))
			break;
}

void share_end_parts(struct share *s, const struct share_quota *q)
{
	for (uint32_t g = 0; g < s->config.n_gpus; g++)
		s->gpus[g].part_milli -= q->part_milli[g];
	share_admit(s);
}

/* How many GPUs have a quota of so much memory. */
static uint32_t n_granted(const struct share *s, const struct share_want *w)
{
	uint32_t n = 0;

	for (uint32_t g = 0; g < s->config.n_gpus; g++)
		n += is_granted(w, g);
	return n;
}

static int check_want(const struct share *s, const struct share_want *w,
		      struct err *err)
{
	char need[UNITS_TEXT], have[UNITS_TEXT];

	if (w->n_gpus == 0 || w->n_gpus > s->config.n_gpus)
		return err_set(err, -EINVAL,
			       "%u GPUs requested, but the server has %u",
			       w->n_gpus, s->config.n_gpus);
	if (w->peak_bytes < w->persistent_bytes)
		return err_set(err, -EINVAL,
			       "a peak below the persistent memory");
	if (w->peak_bytes > s->config.memory_bytes)
		return err_set(err, -E2BIG,
			       "out of GPU memory: %s at its peak, and a GPU "
			       "has %s",
			       units_human_size((double)w->peak_bytes, need),
			       units_human_size((double)s->config.memory_bytes,
						have));
	if (n_granted(s, w) < w->n_gpus)
		return err_set(err, -E2BIG,
			       "out of GPU memory: %s at its peak on %u GPUs, "
			       "and so much is granted on %u",
			       units_human_size((double)w->peak_bytes, need),
			       w->n_gpus, n_granted(s, w));
	if (s->n_jobs == s->config.max_jobs)
		return err_set(err, -EAGAIN, "%u jobs are connected already",
			       s->n_jobs);
	return 0;
}

int share_join(struct share *s, const struct share_want *want, void *owner,
	       struct share_job **ret, struct err *err)
{
	struct share_job *job;
	int r = check_want(s, want, err);

	if (r < 0)
		return r;
	job = calloc(1, sizeof(*job));
	if (!job)
		return err_set(err, -ENOMEM, "out of memory");
	job->want = *want;
	job->owner = owner;
	job->view.seq = s->n_joined++;
	job->view.remaining_ns = remaining(job);
	job->joined_ns = s->now;
	s->jobs[s->n_jobs++] = job;
	*ret = job;
	share_admit(s);
	return 0;
}

void share_mark(struct share *s, uint32_t gpu, bool failed)
{
	s->gpus[gpu].failed = failed;
	share_admit(s);
}

void share_leave(struct share *s, struct share_job *job)
{
	uint32_t i = 0;

	if (job->running)
		stop(s, job);
	for (uint32_t g = 0; g < s->config.n_gpus; g++) {
		if (!share_on(job, g))
			continue;
		lanes_remove(&s->gpus[g].lanes, job->slot[g]);
		if (job->want.quota)
			job->want.quota->used[g] -= job->want.peak_bytes;
	}
	while (s->jobs[i] != job)
		i++;
	s->n_jobs--;
	memmove(&s->jobs[i], &s->jobs[i + 1],
		(s->n_jobs - i) * sizeof(struct share_job *));
	free(job);
	for (uint32_t g = 0; g < s->config.n_gpus; g++)
		s->gpus[g].copy_free =
			MIN(s->gpus[g].copy_free, copies_end(s, g));
	share_admit(s);
	dispatch(s);
}

int share_submit(struct share *s, struct share_job *job, uint64_t id,
		 uint64_t copy_ns, uint64_t work_ns,
		 struct share_iteration *ret)
{
	struct share_iteration *it;

	if (!job->resident)
		return -EAGAIN;
	if (job->n == SHARE_DEPTH)
		return -EBUSY;
	it = &job->queue[(job->head + job->n++) % SHARE_DEPTH];
	*it = (struct share_iteration){ .id = id, .work_ns = work_ns };
	it->copy_end = copies_add(s, job, job->gpus & ~job->copied, copy_ns,
				  &it->copy_start);
	*ret = *it;
	it->copy_end = MAX(it->copy_end, copies_there(job));
	job->copied = 0;
	if (job->n == 1) {
		next_head(s, job);
		dispatch(s);
	}
	return 0;
}
