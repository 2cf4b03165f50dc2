/* SPDX-License-Identifier: MIT */
/* gpemu-sched make: a trace from a seed, on standard output. */
#include <inttypes.h>
#include <string.h>

#include "common/log.h"
#include "common/units.h"
#include "common/util.h"
#include "sched/command.h"
#include "sched/trace/generate.h"

struct options {
	struct cli_common common;
	uint64_t n, users, median_ns;
	double per_hour, sigma;
	char *gpus, *classes, *slowdown;
};

static int check_mix(const void *object, struct err *err)
{
	struct mix m;
	int r = mix_parse(*(char *const *)object, &m, err);

	mix_fini(&m);
	return r;
}

static int check_gpus(const void *object, struct err *err)
{
	struct mix m;
	uint32_t n;
	int r = mix_parse(*(char *const *)object, &m, err);

	for (size_t i = 0; r == 0 && i < m.n; i++)
		r = generate_gpus(m.words[i], &n, err);
	mix_fini(&m);
	return r;
}

static int check_slowdown(const void *object, struct err *err)
{
	struct mix m;
	double factor;
	int r = mix_parse(*(char *const *)object, &m, err);

	for (size_t i = 0; r == 0 && i < m.n; i++)
		r = generate_slowdown(m.words[i], &factor, err);
	mix_fini(&m);
	return r;
}

static const struct conf_field fields[] = {
	{ "count", CONF_UINT, offsetof(struct options, n), .short_opt = 'n',
	  .arg = "N", .min = 1, .max = WORKLOAD_JOBS_MAX,
	  .help = "number of jobs (default: 100)" },
	{ "per_hour", CONF_DOUBLE, offsetof(struct options, per_hour),
	  .arg = "N", .max = 1e9,
	  .help = "mean number of arrivals in an hour, a Poisson process "
		  "(default: 0, all jobs arrive at the start)" },
	{ "median", CONF_DURATION, offsetof(struct options, median_ns),
	  .arg = "DURATION", .min = 1, .max = 1e18,
	  .help = "median of the work of a job, log-normal (default: 1h)" },
	{ "sigma", CONF_DOUBLE, offsetof(struct options, sigma), .arg = "X",
	  .max = 10,
	  .help = "standard deviation of the work's natural logarithm "
		  "(default: 1.5)" },
	{ "gpus", CONF_STRING, offsetof(struct options, gpus),
	  .check = check_gpus, .arg = "N:WEIGHT,...",
	  .help = "numbers of GPUs of jobs (default: 1)" },
	{ "classes", CONF_STRING, offsetof(struct options, classes),
	  .check = check_mix, .arg = "NAME:WEIGHT,...",
	  .help = "classes of jobs, such as models with speeds (default: "
		  "job)" },
	{ "users", CONF_UINT, offsetof(struct options, users), .arg = "N",
	  .min = 1, .max = 100000, .help = "number of users (default: 1)" },
	{ "slowdown", CONF_STRING, offsetof(struct options, slowdown),
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
	struct workload w = { 0 };
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
