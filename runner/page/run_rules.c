/* SPDX-License-Identifier: MIT */
#include "runner/page/run_rules.h"

#include <string.h>

#include "common/json.h"
#include "common/util.h"
#include "runner/run/run_host.h"

#define MIN_SIZE 5.0
#define MIN_STEPS 500.0

static void init_rules(struct rules *ret, const struct workload *w)
{
	*ret = (struct rules){
		.asked_for = conf_node_get(w->root, "rules"),
		.au = 100 * w->rules.au.fraction,
	};
}

/* One value of a rule. */
static void judge(struct rules *rules, int which, double found)
{
	const double least[N_RULES] = { MIN_SIZE, 1, MIN_STEPS, rules->au };
	struct rule *r = &rules->rule[which];

	r->worst = r->n++ ? MIN(r->worst, found) : found;
	r->n_broken += found < least[which];
}

/* --- of a record ------------------------------------------------------ */

static void add_epochs(struct rules *rules, const json_t *job, bool au)
{
	const json_t *epochs = json_object_get(job, "epochs"), *e;
	size_t i;

	json_array_foreach ((json_t *)epochs, i, e) {
		if (json_is_number(json_object_get(e, "steps")))
			judge(rules, RULE_STEPS, json_get_number(e, "steps"));
		if (au && json_is_number(json_object_get(e, "au")))
			judge(rules, RULE_AU, 100 * json_get_number(e, "au"));
	}
}

/* `memory`: bytes of the cache that could hold the data; 0: no cache. */
static void add_job(struct rules *rules, bool cold, double memory,
		    const json_t *job, bool au)
{
	const json_t *data = json_object_get(job, "dataset");

	if (!json_is_object(data))
		return;
	/* without a cache the rule holds */
	judge(rules, RULE_SIZE,
	      memory > 0 ? json_get_number(data, "bytes") / memory : MIN_SIZE);
	judge(rules, RULE_COLD, cold);
	add_epochs(rules, job, au);
}

/* A simulation leaves it out. */
static bool is_direct(const json_t *job)
{
	const json_t *list =
		json_object_get(json_object_get(job, "fs"), "left_out");
	json_t *what;
	size_t i;

	json_array_foreach ((json_t *)list, i, what)
		if (!strcmp(json_string_value(what), "--direct"))
			return true;
	return json_is_true(
		json_object_get(json_object_get(job, "config"), "direct"));
}

static double capacity(const json_t *mount)
{
	return strcmp(json_get_text(mount, "policy"), "none")
		       ? json_get_number(mount, "capacity_bytes")
		       : 0;
}

/* What the caches of a job hold: of its mount, or of those of its nodes, whose
 * names end with the node's number. */
static double cache_bytes(const json_t *record, const json_t *spec,
			  const json_t *job)
{
	const json_t *mounts = json_object_get(record, "mounts");
	size_t nodes = json_array_size(json_object_get(job, "nodes"));
	const char *first = json_get_text(spec, "mount");
	double sum = 0;
	char name[256];

	if (!mounts)
		return capacity(json_object_get(record, "mount"));
	if (nodes < 2)
		return capacity(json_object_get(mounts, first));
	for (size_t i = 0; *first && i < nodes; i++) {
		snprintf(name, sizeof(name), "%.*s%zu",
			 (int)MIN(strlen(first) - 1, 200u), first, i);
		sum += capacity(json_object_get(mounts, name));
	}
	return sum;
}

static void add_record(struct rules *rules, bool mounted, double host_memory,
		       const json_t *record)
{
	const json_t *specs =
		json_object_get(json_object_get(record, "cell"), "jobs");
	const json_t *jobs = json_object_get(record, "jobs"), *spec;
	const char *name;

	json_object_foreach ((json_t *)specs, name, spec) {
		const json_t *job = jobs ? json_object_get(jobs, name) : record;

		add_job(rules, mounted || is_direct(job),
			mounted ? cache_bytes(record, spec, job) : host_memory,
			job, true);
	}
}

void rules_of(struct rules *ret, const struct result *res)
{
	json_auto_t *host = host_about();
	json_t *record;
	size_t i;

	init_rules(ret, res->r->w);
	json_array_foreach (res->records, i, record)
		add_record(ret, res->r->mounted,
			   json_get_number(host, "memory_bytes"), record);
}

/* --- before ----------------------------------------------------------- */

void rules_expected(struct rules *ret, const struct runner *r,
		    const json_t *simulated)
{
	json_auto_t *host = host_about();
	json_t *job;
	size_t i;

	init_rules(ret, r->w);
	json_array_foreach ((json_t *)simulated, i, job) {
		const json_t *fs = json_object_get(job, "fs");

		/* what is left out might lower the utilisation */
		add_job(ret, r->mounted || is_direct(job),
			r->mounted ? json_get_number(fs, "capacity_bytes") *
					     json_get_number(fs, "mounts")
				   : json_get_number(host, "memory_bytes"),
			job, !json_object_get(fs, "left_out"));
	}
}

/* --- words ------------------------------------------------------------ */

static const char *const names[N_RULES] = { "dataset-size", "cold-cache",
					    "steps-per-epoch", "au" };

static void wanted(const struct rules *rules, const struct runner *r, int i,
		   char *buf, size_t n)
{
	switch (i) {
	case RULE_SIZE:
		snprintf(buf, n, "%.3g times the %s", MIN_SIZE,
			 r->mounted ? "mount's cache" : "host's memory");
		break;
	case RULE_COLD: snprintf(buf, n, "no data left by earlier runs"); break;
	case RULE_STEPS:
		snprintf(buf, n, "%.3g steps (closed division)", MIN_STEPS);
		break;
	default: snprintf(buf, n, "%.3g %%", rules->au);
	}
}

static void found(const struct rules *rules, int i, char *buf, size_t n)
{
	const struct rule *one = &rules->rule[i];

	if (!one->n)
		snprintf(buf, n, "not known");
	else if (i == RULE_COLD)
		snprintf(buf, n, "%s",
			 one->n_broken ? "the page cache may hold the folder"
				       : "cold");
	else
		snprintf(buf, n, "%s%.3g%s", one->n_broken ? "down to " : "",
			 one->worst,
			 i == RULE_SIZE	   ? " times"
			 : i == RULE_STEPS ? " steps"
					   : " %");
	/* without a cache there is no ratio */
	if (i == RULE_SIZE && one->n && one->worst == MIN_SIZE)
		snprintf(buf, n, "enough, or no cache");
}

void rules_print(const struct rules *rules, const struct runner *r, FILE *f)
{
	char a[80], b[80];

	for (int i = 0; rules->asked_for && i < N_RULES; i++) {
		const struct rule *one = &rules->rule[i];

		wanted(rules, r, i, a, sizeof(a));
		found(rules, i, b, sizeof(b));
		if (one->n_broken)
			fprintf(f,
				"WARN  MLPerf Storage, rule %s: %s, wanted %s "
				"(%zu of %zu)\n",
				names[i], b, a, one->n_broken, one->n);
		else
			fprintf(f, "%s  MLPerf Storage, rule %s: %s\n",
				one->n ? "ok  " : "-   ", names[i], b);
	}
}

json_t *rules_json(const struct rules *rules, const struct runner *r)
{
	json_t *j = json_array();
	char a[80], b[80];

	for (int i = 0; j && rules->asked_for && i < N_RULES; i++) {
		wanted(rules, r, i, a, sizeof(a));
		found(rules, i, b, sizeof(b));
		json_array_append_new(
			j,
			json_pack("{s:s, s:s, s:s, s:I, s:I}", "rule", names[i],
				  "wanted", a, "found", b, "judged",
				  (json_int_t)rules->rule[i].n, "broken",
				  (json_int_t)rules->rule[i].n_broken));
	}
	return j;
}
