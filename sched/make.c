/* SPDX-License-Identifier: MIT */
/*
 * gpemu-sched make: a trace from a seed, on standard output. Poisson arrivals,
 * log-normal lengths, a mix of sizes and of classes.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/log.h"
#include "common/rng.h"
#include "common/units.h"
#include "common/util.h"
#include "sched/command.h"

/* --- mixes ---------------------------------------------------------------- */

/* Words with weights: "a:20,b:80"; a weight of 1 may be left out. */
struct mix {
	char **words;
	double *weights; /* each and those before it; the last one is 1 */
	size_t n;
};

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

/* -EINVAL with a text, -ENOMEM. Free with mix_fini, failed or not. */
static int mix_parse(const char *text, struct mix *ret, struct err *err)
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

static void mix_fini(struct mix *m)
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

struct generate {
	uint64_t seed, jobs, users;
	double jobs_per_hour; /* 0: all at once */
	double median_s;      /* of the work */
	double sigma;	      /* of its logarithm; 0: all alike */
	struct mix gpus;      /* words are numbers of GPUs */
	struct mix classes;
	/* how many times longer a job takes without GPU; none: it needs one */
	struct mix slowdown;
};

struct streams {
	struct rng arrivals, work, gpus, classes, users, slowdown;
};

/* A number of GPUs, from 1 to WORKLOAD_GPUS_MAX. -EINVAL with a text. */
static int generate_gpus(const char *word, double *ret, struct err *err)
{
	struct rows_field f = { word, strlen(word) };
	uint64_t n;

	if (!rows_u64(&f, &n) || !n || n > WORKLOAD_GPUS_MAX)
		return err_set(err, -EINVAL,
			       "'%s' is not a number of GPUs from 1 to %u",
			       word, WORKLOAD_GPUS_MAX);
	*ret = (double)n;
	return 0;
}

/* -EINVAL with a text. */
static int generate_slowdown(const char *word, double *ret, struct err *err)
{
	if (units_parse_double(word, ret) < 0 || *ret < 1e-3 || *ret > 1e6)
		return err_set(err, -EINVAL,
			       "'%s' is not a factor from 0.001 to 1e6", word);
	return 0;
}

static int slow_down(const struct generate *g, struct streams *s,
		     struct sched_job *job, struct err *err)
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
			double *now_s, struct sched_workload *w,
			struct err *err)
{
	struct sched_job job = workload_job();
	double work_s, gpus;
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
	r = generate_gpus(mix_draw(&g->gpus, &s->gpus), &gpus, err);
	if (r == 0)
		r = slow_down(g, s, &job, err);
	if (r == 0)
		job.n_gpus = (uint32_t)gpus;
	snprintf(user, sizeof(user), "user%zu",
		 (size_t)rng_below(&s->users, g->users));
	if (r == 0)
		r = workload_user(w, user, &job.user);
	if (r == 0)
		r = workload_class(w, mix_draw(&g->classes, &s->classes),
				   &job.class);
	return r < 0 ? r : workload_add(w, &job, 1);
}

/* Each quantity has a random stream of its own, so that changing one leaves
 * the others. -EINVAL with a text, -ENOMEM. */
static int generate_workload(const struct generate *g,
			     struct sched_workload *ret, struct err *err)
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

	*ret = (struct sched_workload){ .format = "jobs" };
	for (uint64_t i = 0; r == 0 && i < g->jobs; i++)
		r = generate_job(g, &s, &now_s, ret, err);
	return r < 0 ? r : workload_settle(ret);
}

/* As a trace of the format "jobs". */
static int generate_print(const struct sched_workload *w, FILE *f)
{
	bool cpus = w->n && w->jobs[0].cpu_work_ns > 0;

	fprintf(f, "name,user,class,arrival_s,gpus,work_s%s\n",
		cpus ? ",cpu_work_s" : "");
	for (size_t i = 0; i < w->n; i++) {
		const struct sched_job *job = &w->jobs[i];

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

/* --- options -------------------------------------------------------------- */

struct options {
	struct cli_common common;
	uint64_t n, users, median_ns;
	double per_hour, sigma;
	char *gpus, *classes, *slowdown;
};

/* Each word of a mix as `read` has it; NULL: any. */
static int check_words(const void *object,
		       int (*read)(const char *word, double *ret,
				   struct err *err),
		       struct err *err)
{
	struct mix m;
	double v;
	int r = mix_parse(*(char *const *)object, &m, err);

	for (size_t i = 0; read && r == 0 && i < m.n; i++)
		r = read(m.words[i], &v, err);
	mix_fini(&m);
	return r;
}

static int check_mix(const void *object, struct err *err)
{
	return check_words(object, NULL, err);
}

static int check_gpus(const void *object, struct err *err)
{
	return check_words(object, generate_gpus, err);
}

static int check_slowdown(const void *object, struct err *err)
{
	return check_words(object, generate_slowdown, err);
}

static const struct conf_field fields[] = {
	{ "count", CONF_UINT, offsetof(struct options, n), .short_opt = 'n',
	  .arg = "N", .min = 1, .max = WORKLOAD_JOBS_MAX,
	  .help = "number of jobs (default: 100)" },
	{ CONF_KEY(per_hour, CONF_DOUBLE, struct options), .arg = "N",
	  .max = 1e9,
	  .help = "mean number of arrivals in an hour, a Poisson process "
		  "(default: 0, all jobs arrive at the start)" },
	{ "median", CONF_DURATION, offsetof(struct options, median_ns),
	  .arg = "DURATION", .min = 1, .max = 1e18,
	  .help = "median of the work of a job, log-normal (default: 1h)" },
	{ CONF_KEY(sigma, CONF_DOUBLE, struct options), .arg = "X", .max = 10,
	  .help = "standard deviation of the work's natural logarithm "
		  "(default: 1.5)" },
	{ CONF_KEY(gpus, CONF_STRING, struct options), .check = check_gpus,
	  .arg = "N:WEIGHT,...",
	  .help = "numbers of GPUs of jobs (default: 1)" },
	{ CONF_KEY(classes, CONF_STRING, struct options), .check = check_mix,
	  .arg = "NAME:WEIGHT,...",
	  .help = "classes of jobs, such as models with speeds (default: "
		  "job)" },
	{ CONF_KEY(users, CONF_UINT, struct options), .arg = "N", .min = 1,
	  .max = 100000, .help = "number of users (default: 1)" },
	{ CONF_KEY(slowdown, CONF_STRING, struct options),
	  .check = check_slowdown, .arg = "X:WEIGHT,...",
	  .help = "jobs also run without a GPU, X times longer (default: they "
		  "need one)" },
	CLI_COMMON_FIELDS(struct options, common),
	{ 0 },
};

static const struct cli_program program = {
	.name = "gpemu-sched make",
	.summary = "Make a trace from a seed: Poisson arrivals, log-normal "
		   "work, a mix of sizes and classes.",
	.notes = "The trace is written to standard output, its description as "
		 "JSON with --json.",
	.fields = fields,
};

static int make(const struct options *o, struct err *err)
{
	struct generate g = { .seed = o->common.seed,
			      .jobs = o->n,
			      .users = o->users,
			      .jobs_per_hour = o->per_hour,
			      .median_s = (double)o->median_ns / NS_PER_S,
			      .sigma = o->sigma };
	struct sched_workload w = { 0 };
	int r = mix_parse(o->gpus, &g.gpus, err);

	if (r == 0)
		r = mix_parse(o->classes, &g.classes, err);
	if (r == 0 && o->slowdown)
		r = mix_parse(o->slowdown, &g.slowdown, err);
	if (r == 0)
		r = generate_workload(&g, &w, err);
	if (r == 0) {
		printf("# gpemu-sched make -n %" PRIu64
		       " --per-hour %g --median %gs --sigma %g --gpus %s "
		       "--classes %s --users %" PRIu64 "%s%s --seed %" PRIu64
		       "\n",
		       o->n, o->per_hour, g.median_s, o->sigma, o->gpus,
		       o->classes, o->users, o->slowdown ? " --slowdown " : "",
		       o->slowdown ? o->slowdown : "", o->common.seed);
		r = generate_print(&w, stdout);
	}
	if (r == 0 && o->common.json)
		r = input_record(json_pack("{s:I}", "jobs", (json_int_t)w.n),
				 fields, o, &o->common, err);
	mix_fini(&g.gpus);
	mix_fini(&g.classes);
	mix_fini(&g.slowdown);
	workload_fini(&w);
	return r < 0 ? err_set(err, r, "%s", strerror(-r)) : 0;
}

int command_make(int argc, char **argv)
{
	struct options o = {
		.n = 100, .users = 1, .median_ns = 3600 * NS_PER_S, .sigma = 1.5
	};
	struct err err = { 0 };
	int r;

	o.gpus = strdup("1");
	o.classes = strdup("job");
	cli_parse(&program, argc, argv, &o, NULL);
	if (o.common.json && !strcmp(o.common.json, "-")) {
		log_error("--json -: standard output has the trace; give a "
			  "file");
		r = EXIT_STATUS_USAGE;
	} else {
		r = make(&o, &err);
		r = r < 0 ? cli_fail(r, &err) : EXIT_STATUS_DONE;
	}
	conf_free(fields, &o);
	return r;
}
