/* SPDX-License-Identifier: MIT */
#include "sched/trace/generate.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/rng.h"
#include "common/units.h"
#include "common/util.h"

/* --- mixes ---------------------------------------------------------------- */

static int mix_add(struct mix *m, const char *word, double weight)
{
	char **words = reallocarray(m->words, m->n + 1, sizeof(*words));
	double *weights;

	if (!words)
		return -ENOMEM;
	m->words = words;
	weights = reallocarray(m->weights, m->n + 1, sizeof(*weights));
	if (!weights)
		return -ENOMEM;
	m->weights = weights;
	m->words[m->n] = strdup(word);
	if (!m->words[m->n])
		return -ENOMEM;
	m->weights[m->n] = weight + (m->n ? m->weights[m->n - 1] : 0);
	m->n++;
	return 0;
}

int mix_parse(const char *text, struct mix *ret, struct err *err)
{
	_cleanup_free_ char *copy = strdup(text);
	char *rest = copy, *word;
	int r = copy ? 0 : -ENOMEM;

	*ret = (struct mix){ 0 };
	while (r == 0 && (word = strsep(&rest, ","))) {
		char *colon = strchr(word, ':');
		double weight = 1;

		if (colon)
			*colon++ = 0;
		if (!*word || (colon && (units_parse_double(colon, &weight) ||
					 weight <= 0 || weight > 1e9)))
			return err_set(err, -EINVAL,
				       "'%s' is not a list of WORD:WEIGHT, "
				       "such as a:20,b:80",
				       text);
		r = mix_add(ret, word, weight);
	}
	for (size_t i = 0; r == 0 && i < ret->n; i++)
		ret->weights[i] /= ret->weights[ret->n - 1];
	return r;
}

void mix_fini(struct mix *m)
{
	for (size_t i = 0; i < m->n; i++)
		free(m->words[i]);
	free(m->words);
	free(m->weights);
	*m = (struct mix){ 0 };
}

static const char *mix_draw(const struct mix *m, struct rng *rng)
{
	double x = rng_double(rng);
	size_t i = 0;

	while (i + 1 < m->n && x >= m->weights[i])
		i++;
	return m->words[i];
}

/* --- jobs ----------------------------------------------------------------- */

struct streams {
	struct rng arrivals, work, gpus, classes, users, slowdown;
};

int generate_gpus(const char *word, uint32_t *ret, struct err *err)
{
	struct rows_field f = { word, strlen(word) };
	uint64_t n;

	if (!rows_u64(&f, &n) || !n || n > WORKLOAD_GPUS_MAX)
		return err_set(err, -EINVAL,
			       "'%s' is not a number of GPUs from 1 to %u",
			       word, WORKLOAD_GPUS_MAX);
	*ret = (uint32_t)n;
	return 0;
}

int generate_slowdown(const char *word, double *ret, struct err *err)
{
	if (units_parse_double(word, ret) < 0 || *ret < 1e-3 || *ret > 1e6)
		return err_set(err, -EINVAL,
			       "'%s' is not a factor from 0.001 to 1e6", word);
	return 0;
}

static int slow_down(const struct generate *g, struct streams *s,
		     struct job *job, struct err *err)
{
	double factor;
	int r = 0;

	if (!g->slowdown.n)
		return 0;
	r = generate_slowdown(mix_draw(&g->slowdown, &s->slowdown), &factor,
			      err);
	if (r == 0)
		job->cpu_work_ns = MIN(factor * job->work_ns,
				       NS_PER_S * WORKLOAD_SECONDS_MAX);
	return r;
}

static int generate_job(const struct generate *g, struct streams *s,
			double *now_s, struct workload *w, struct err *err)
{
	struct job job = workload_job();
	double work_s;
	char user[32];
	int r;

	/* the times between Poisson arrivals are exponential */
	if (g->jobs_per_hour > 0)
		*now_s -= log1p(-rng_double(&s->arrivals)) * 3600 /
			  g->jobs_per_hour;
	work_s = g->median_s * exp(g->sigma * rng_normal(&s->work));
	job.work_ns = NS_PER_S * MIN(MAX(work_s, WORKLOAD_SECONDS_MIN),
				     WORKLOAD_SECONDS_MAX);
	if (*now_s > WORKLOAD_SECONDS_MAX)
		return err_set(err, -EINVAL,
			       "job %zu would arrive later than %g s, the "
			       "limit: give a lower --count or a higher "
			       "--per-hour",
			       w->n, WORKLOAD_SECONDS_MAX);
	job.arrival_ns = (uint64_t)(*now_s * NS_PER_S);
	r = generate_gpus(mix_draw(&g->gpus, &s->gpus), &job.n_gpus, err);
	if (r == 0)
		r = slow_down(g, s, &job, err);
	snprintf(user, sizeof(user), "user%zu",
		 (size_t)rng_below(&s->users, g->users));
	if (r == 0)
		r = workload_user(w, user, &job.user);
	if (r == 0)
		r = workload_class(w, mix_draw(&g->classes, &s->classes),
				   &job.class);
	return r < 0 ? r : workload_add(w, &job, 1);
}

int generate_workload(const struct generate *g, struct workload *ret,
		      struct err *err)
{
	struct streams s = {
		.arrivals = rng_stream(g->seed, "sched.arrivals", 0),
		.work = rng_stream(g->seed, "sched.work", 0),
		.gpus = rng_stream(g->seed, "sched.gpus", 0),
		.classes = rng_stream(g->seed, "sched.classes", 0),
		.users = rng_stream(g->seed, "sched.users", 0),
		.slowdown = rng_stream(g->seed, "sched.slowdown", 0),
	};
	double now_s = 0;
	int r = 0;

	*ret = (struct workload){ .format = "jobs" };
	for (uint64_t i = 0; r == 0 && i < g->jobs; i++)
		r = generate_job(g, &s, &now_s, ret, err);
	return r < 0 ? r : workload_settle(ret);
}

int generate_print(const struct workload *w, FILE *f)
{
	bool cpus = w->n && w->jobs[0].cpu_work_ns > 0;

	fprintf(f, "name,user,class,arrival_s,gpus,work_s%s\n",
		cpus ? ",cpu_work_s" : "");
	for (size_t i = 0; i < w->n; i++) {
		const struct job *job = &w->jobs[i];

		fprintf(f, "%s,%s,%s,%.9g,%u,%.9g", job->name,
			w->users[job->user], w->classes[job->class],
			(double)job->arrival_ns / NS_PER_S, job->n_gpus,
			job->work_ns / NS_PER_S);
		if (cpus)
			fprintf(f, ",%.9g", job->cpu_work_ns / NS_PER_S);
		fputc('\n', f);
	}
	return ferror(f) ? -EIO : 0;
}
