/* SPDX-License-Identifier: MIT */
/*
 * A decision:
 *
 *	1. From the front of the queue, as many jobs are admitted as there are
 *	   GPUs for, and behind each of them up to three more of its bucket: of
 *	   the jobs that ask for the same.
 *	2. While those admitted need more GPUs than there are, the teams of each
 *	   bucket, at first single jobs, are matched so that the sum of the
 *	   pairs' efficiencies is largest, and pairs become teams, those that
 *	   waste the least GPU time first. Two rounds make teams of four.
 *	3. Teams that are slower than their jobs one after the other are split.
 *	4. Teams run in order of their first job, and are placed by size. What
 *	   is left goes to the rest of the queue, in order.
 *
 * The efficiency of a team is the share of its time in which its resources
 * work: the sum of all stages, over the time of an iteration times resources.
 */
#include "sched/policy/muri.h"

#include "common/util.h"
#include "sched/core/interleave.h"
#include "sched/solver/matching.h"

/* Teams in one matching. arbitrary: time grows with the cube; four jobs for
 * each of the paper's 64 GPUs */
enum { MATCHED = 256 };

/* Efficiencies are at most 1. arbitrary: fits 32 bits */
#define WEIGHT_OF_ONE 1e9

#define NONE UINT32_MAX

const struct conf_field muri_fields[] = {
	{ CONF_KEY(group, CONF_UINT, struct muri_options), .min = 1,
	  .max = GROUP_MAX, .help = "maximum number of jobs that take turns" },
	{ CONF_KEY(matching, CONF_BOOL, struct muri_options),
	  .help = "off: neighbours in the queue become a group" },
	{ 0 },
};

const struct muri_options muri_defaults = { .group = GROUP_MAX,
					    .matching = true };

struct muri_team {
	uint32_t jobs[GROUP_MAX]; /* in the order of the queue */
	uint32_t n;
	uint32_t bucket; /* NONE: takes no turns */
	uint32_t rank;	 /* place of its first job in the queue */
	uint64_t gpu_milli;
	bool chosen;
};

struct muri_pair {
	uint32_t a, b; /* teams, a < b */
	double waste;  /* thousandths of GPUs */
};

int muri_begin(struct sched_schedule *s, const struct view *v, struct err *err)
{
	struct muri *m = s->state;
	size_t n = v->n_jobs + 1;

	(void)err;
	m->teams = schedule_array(s, n, sizeof(*m->teams));
	m->pairs = schedule_array(s, n, sizeof(*m->pairs));
	m->bucket = schedule_array(s, n, sizeof(*m->bucket));
	m->next = schedule_array(s, n, sizeof(*m->next));
	m->admitted = schedule_array(s, n, sizeof(*m->admitted));
	m->head = schedule_array(s, n, sizeof(*m->head));
	m->weights = schedule_array(s, MATCHED * MATCHED, sizeof(*m->weights));
	m->partners = schedule_array(s, MATCHED, sizeof(*m->partners));
	m->rank = schedule_array(s, n, sizeof(*m->rank));
	m->placed = schedule_array(s, n, sizeof(*m->placed));
	return 0;
}

/* --- 1: who is admitted --------------------------------------------------- */

/* A job alone. */
static void add_team(struct muri *m, const struct view *v, uint32_t job)
{
	m->teams[m->n_teams++] =
		(struct muri_team){ .jobs = { job },
				    .n = 1,
				    .bucket = m->bucket[m->rank[job]],
				    .rank = m->rank[job],
				    .gpu_milli = job_gpu_milli(&v->jobs[job]) };
}

/* Link the places of each bucket. */
static void sort_into_buckets(struct sched_schedule *s, const struct view *v,
			      size_t n)
{
	struct muri *m = s->state;
	size_t n_buckets = 0;

	for (size_t i = n; i-- > 0;) {
		const struct sched_job *job = &v->jobs[s->sorted[i].job];
		size_t b = 0;

		m->rank[s->sorted[i].job] = (uint32_t)i;
		m->admitted[i] = false;
		m->bucket[i] = m->next[i] = NONE;
		if (!job_interleaves(job))
			continue;
		while (b < n_buckets &&
		       !job_alike(job, &v->jobs[s->sorted[m->head[b]].job]))
			b++;
		if (b < n_buckets)
			m->next[i] = m->head[b];
		else
			n_buckets++;
		m->head[b] = (uint32_t)i;
		m->bucket[i] = (uint32_t)b;
	}
}

/* Returns the thousandths of GPUs that all admitted would need. */
static uint64_t admit(struct sched_schedule *s, const struct view *v, size_t n,
		      uint64_t most)
{
	uint64_t left = v->cluster->whole.gpu_milli, needed = 0;
	struct muri *m = s->state;

	m->n_teams = 0;
	for (size_t i = 0; i < n; i++) {
		uint64_t need = job_gpu_milli(&v->jobs[s->sorted[i].job]);
		uint32_t k = (uint32_t)i;

		if (m->admitted[i] || need > left)
			continue;
		left -= need;
		for (uint64_t c = 0; c < most && k != NONE; c++) {
			m->admitted[k] = true;
			add_team(m, v, s->sorted[k].job);
			needed += need;
			k = m->next[k];
		}
	}
	return needed;
}

/* --- 2: who takes turns with whom ----------------------------------------- */

static size_t jobs_of(const struct view *v, const struct muri_team *a,
		      const struct sched_job **ret)
{
	for (size_t i = 0; i < a->n; i++)
		ret[i] = &v->jobs[a->jobs[i]];
	return a->n;
}

static double efficiency(const struct view *v, const struct muri_team *a,
			 const struct muri_team *b)
{
	const struct sched_job *jobs[GROUP_MAX];
	size_t n = jobs_of(v, a, jobs);
	double sum_ns = 0, ns;

	n += jobs_of(v, b, jobs + n);
	for (size_t i = 0; i < n; i++) {
		sum_ns += jobs[i]->read_prep_ns;
		for (size_t k = 0; k < STAGES; k++)
			sum_ns += jobs[i]->stage_ns[k];
	}
	ns = interleave_on(v->cluster, jobs, n);
	return ns > 0 ? sum_ns / (ns * STAGES) : 0;
}

static int match(struct muri *m, const struct view *v,
		 const struct muri_team *teams, size_t n, uint64_t most)
{
	for (size_t a = 0; a < n; a++)
		for (size_t b = a + 1; b < n; b++) {
			double e = teams[a].n + teams[b].n <= most
					   ? efficiency(v, &teams[a], &teams[b])
					   : 0;

			m->weights[a * n + b] = m->weights[b * n + a] =
				(uint32_t)(e * WEIGHT_OF_ONE);
		}
	return matching_max(m->weights, n, m->partners);
}

/* The first with the second, the third with the fourth... */
static void match_neighbours(struct muri *m, const struct muri_team *teams,
			     size_t n, uint64_t most)
{
	for (size_t a = 0; a < n; a++)
		m->partners[a] = NONE;
	for (size_t a = 0; a + 1 < n; a++)
		if (m->partners[a] == NONE &&
		    teams[a].n + teams[a + 1].n <= most) {
			m->partners[a] = (uint32_t)a + 1;
			m->partners[a + 1] = (uint32_t)a;
		}
}

/* Pairs of the teams from `first` on, which are of one bucket. */
static int add_pairs(struct muri *m, const struct view *v, size_t first,
		     size_t n, const struct muri_options *o)
{
	const struct muri_team *teams = &m->teams[first];
	int r = 0;

	if (o->matching)
		r = match(m, v, teams, n, o->group);
	else
		match_neighbours(m, teams, n, o->group);
	for (size_t a = 0; r == 0 && a < n; a++) {
		size_t b = m->partners[a];
		double e;

		if (b == NONE || b < a)
			continue;
		e = efficiency(v, &teams[a], &teams[b]);
		m->pairs[m->n_pairs++] = (struct muri_pair){
			(uint32_t)(first + a), (uint32_t)(first + b),
			(1 - e) * (double)teams[a].gpu_milli
		};
	}
	return r;
}

static int by_bucket(const void *x, const void *y)
{
	const struct muri_team *a = x, *b = y;

	if (a->bucket != b->bucket)
		return a->bucket < b->bucket ? -1 : 1;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static int by_waste(const void *x, const void *y)
{
	const struct muri_pair *a = x, *b = y;

	if (a->waste != b->waste)
		return a->waste < b->waste ? -1 : 1;
	return a->a < b->a ? -1 : a->a > b->a;
}

/* By a team that comes before it in the queue. */
static void absorb(struct muri_team *a, struct muri_team *b)
{
	for (size_t i = 0; i < b->n; i++)
		a->jobs[a->n++] = b->jobs[i];
	b->n = 0;
}

/* One round of matching. */
static int merge(struct muri *m, const struct view *v,
		 const struct muri_options *o, uint64_t *needed)
{
	size_t end, n = 0;
	int r = 0;

	m->n_pairs = 0;
	qsort(m->teams, m->n_teams, sizeof(*m->teams), by_bucket);
	for (size_t first = 0; r == 0 && first < m->n_teams; first = end) {
		for (end = first;
		     end < m->n_teams && end - first < MATCHED &&
		     m->teams[end].bucket == m->teams[first].bucket;
		     end++)
			;
		if (m->teams[first].bucket != NONE)
			r = add_pairs(m, v, first, end - first, o);
	}
	qsort(m->pairs, m->n_pairs, sizeof(*m->pairs), by_waste);
	for (size_t i = 0; r == 0 && i < m->n_pairs; i++) {
		struct muri_team *a = &m->teams[m->pairs[i].a];

		if (*needed <= v->cluster->whole.gpu_milli)
			break;
		*needed -= a->gpu_milli;
		absorb(a, &m->teams[m->pairs[i].b]);
	}
	for (size_t i = 0; i < m->n_teams; i++)
		if (m->teams[i].n)
			m->teams[n++] = m->teams[i];
	m->n_teams = n;
	return r;
}

/* --- 3: who had better run alone ------------------------------------------ */

static bool gains(const struct view *v, const struct muri_team *a)
{
	const struct sched_job *jobs[GROUP_MAX];
	size_t n = jobs_of(v, a, jobs);
	double in_turn_ns = 0;

	for (size_t i = 0; i < n; i++)
		in_turn_ns += jobs[i]->iteration_ns;
	return interleave_on(v->cluster, jobs, n) <= in_turn_ns;
}

static void split(struct muri *m, const struct view *v)
{
	size_t n = m->n_teams;

	for (size_t i = 0; i < n; i++) {
		struct muri_team *a = &m->teams[i];

		if (a->n < 2 || gains(v, a))
			continue;
		for (; a->n > 1; a->n--)
			add_team(m, v, a->jobs[a->n - 1]);
	}
}

/* --- 4: who runs, and where ----------------------------------------------- */

static int by_rank(const void *x, const void *y)
{
	const struct muri_team *a = x, *b = y;

	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* The largest of the chosen first, so that they fit; then the rest. */
static int by_size(const void *x, const void *y)
{
	const struct muri_team *a = x, *b = y;

	if (a->chosen != b->chosen)
		return a->chosen ? -1 : 1;
	if (a->chosen && a->gpu_milli != b->gpu_milli)
		return a->gpu_milli > b->gpu_milli ? -1 : 1;
	return by_rank(x, y);
}

static void choose(struct sched_schedule *s, const struct view *v, size_t n)
{
	uint64_t left = v->cluster->whole.gpu_milli;
	struct muri *m = s->state;

	qsort(m->teams, m->n_teams, sizeof(*m->teams), by_rank);
	for (size_t i = 0; i < m->n_teams; i++) {
		struct muri_team *a = &m->teams[i];

		a->chosen = a->gpu_milli <= left;
		left -= a->chosen ? a->gpu_milli : 0;
	}
	for (size_t i = 0; i < n; i++)
		if (!m->admitted[i])
			add_team(m, v, s->sorted[i].job);
	qsort(m->teams, m->n_teams, sizeof(*m->teams), by_size);
}

/* Do the same jobs run there already? */
static bool unchanged(const struct view *v, const struct muri_team *a,
		      const struct sched_part *parts, size_t n_parts)
{
	const struct sched_job *group[GROUP_MAX];
	const struct sched_job *first = &v->jobs[a->jobs[0]];

	if (first->state != JOB_RUNNING || !job_holds(first, parts, n_parts) ||
	    job_group(first, group) != a->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		size_t k = 0;

		while (k < a->n && group[k] != &v->jobs[a->jobs[i]])
			k++;
		if (k == a->n)
			return false;
	}
	return true;
}

/* Those of the team who stay where they are; the others find no place there. */
static bool leave_stranded(const struct view *v, const struct muri_team *a,
			   bool *placed)
{
	bool found = false;

	for (size_t i = 0; i < a->n; i++) {
		if (!job_is_stranded(v->cluster, &v->jobs[a->jobs[i]]))
			continue;
		placed[a->jobs[i]] = found = true;
	}
	return found;
}

static int run_team(struct sched_schedule *s, const struct view *v,
		    const struct muri_team *a, struct sched_plan *ret)
{
	const struct sched_job *first = &v->jobs[a->jobs[0]];
	struct muri *m = s->state;
	size_t n = 0;
	int r = 0;

	if (!leave_stranded(v, a, m->placed))
		n = placement_place(&s->placement, &s->scratch, first,
				    s->parts);
	if (!n)
		return 0;
	for (size_t i = 0; i < n; i++)
		cluster_take(&s->scratch, &s->parts[i]);
	for (size_t i = 0; i < a->n; i++)
		m->placed[a->jobs[i]] = true;
	if (unchanged(v, a, s->parts, n))
		return 0;
	r = plan_add(ret,
		     first->state == JOB_RUNNING ? ACTION_CHANGE : ACTION_START,
		     a->jobs[0], s->parts, n);
	for (size_t i = 1; r == 0 && i < a->n; i++)
		r = plan_group(ret, a->jobs[i], a->jobs[0]);
	return r;
}

static int place(struct sched_schedule *s, const struct view *v,
		 struct sched_plan *ret)
{
	struct muri *m = s->state;
	int r = 0;

	for (size_t i = 0; i < v->n_active; i++)
		m->placed[v->active[i]] = false;
	cluster_sync(&s->scratch, v->cluster); /* which nodes are down */
	cluster_clear(&s->scratch);
	for (size_t i = 0; r == 0 && i < m->n_teams; i++)
		r = run_team(s, v, &m->teams[i], ret);
	for (size_t i = 0; r == 0 && i < v->n_active; i++)
		if (v->jobs[v->active[i]].state == JOB_RUNNING &&
		    !m->placed[v->active[i]])
			r = plan_add(ret, ACTION_STOP, v->active[i], NULL, 0);
	return r;
}

int muri_decide(struct sched_schedule *s, const struct view *v,
		struct sched_plan *ret)
{
	const struct muri_options *o = s->options;
	struct muri *m = s->state;
	uint64_t needed;
	size_t n, before = 0;
	int r = schedule_queue(s, v, &n);

	if (r < 0)
		return r;
	sort_into_buckets(s, v, n);
	needed = admit(s, v, n, o->group);
	while (r == 0 && needed > v->cluster->whole.gpu_milli &&
	       m->n_teams != before) {
		before = m->n_teams;
		r = merge(m, v, o, &needed);
	}
	split(m, v);
	choose(s, v, n);
	return r < 0 ? r : place(s, v, ret);
}
