/* SPDX-License-Identifier: MIT */
/* Tables and records of simulated runs. */
#include <inttypes.h>
#include <string.h>

#include "common/json.h"
#include "common/units.h"
#include "common/util.h"
#include "sched/sim.h"

/* A longer name has a line of its own. */
enum { NAME_MIN = 12, NAME_MAX = 20 };

static void print_name(const char *name, int width)
{
	bool fits = strlen(name) <= (size_t)width;

	if (!fits)
		puts(name);
	printf("%-*s", width, fits ? name : "");
}

/* Seconds in seven columns: tenths as long as these fit. */
static void print_seconds(int width, double s)
{
	printf(" %*.*f", width, s < 99999.95 ? 1 : 0, s);
}

/* A percentage, or a ratio, with digits as long as these fit; < 0: not known.
 */
static void print_known(int width, int digits, double v)
{
	if (v < 0)
		printf(" %*s", width, "-");
	else
		printf(" %*.*f", width, v < 999.5 ? digits : 0, v);
}

static void print_times(const struct group_result *g)
{
	print_seconds(8, g->jct.mean_s);
	print_seconds(7, g->jct.p50_s);
	print_seconds(7, g->jct.p95_s);
	print_seconds(7, g->jct.p99_s);
	print_seconds(7, g->jct.max_s);
	print_seconds(7, g->wait_s);
}

static void print_use(const struct sim_result *r)
{
	bool known = r->gpus > 0;
	char cost[UNITS_TEXT];

	printf(" %5.1f", 100 * r->utilisation);
	print_known(6, 1, r->frag_known ? 100 * r->frag : -1);
	printf(" %5.3f", r->all.jain);
	print_known(6, 2, known ? r->all.finish_time : -1);
	print_known(6, 2, known ? r->all.finish_time_max : -1);
	printf(" %7" PRIu64 " %7" PRIu64 " %9" PRIu64 " %8s\n", r->n_preempted,
	       r->n_moved, r->n_decisions,
	       units_human_duration(hist_mean(&r->decisions), cost));
}

static int name_width(const struct sched_sim *sim)
{
	int width = NAME_MIN;

	for (size_t i = 0; i < sim->n_cells; i++)
		width = MAX(width, (int)strlen(sim->cells[i].name));
	return MIN(width, NAME_MAX);
}

void report_table(const struct sched_sim *sim, const char *kind)
{
	const struct cluster *c = sim->cluster;
	int width = name_width(sim);

	printf("%s: %zu jobs, %zu nodes, %g GPUs; times in s\n", kind,
	       sim->workload->n, c->n, (double)c->whole.gpu_milli / GPU_MILLI);
	printf("%-*s %8s %7s %7s %7s %7s %7s %8s\n", width, "policy",
	       "mean JCT", "p50", "p95", "p99", "max", "wait", "makespan");
	for (size_t i = 0; i < sim->n_cells; i++) {
		const struct sched_sim_cell *cell = &sim->cells[i];

		if (!cell->done)
			continue;
		print_name(cell->name, width);
		print_times(&cell->result.all);
		print_seconds(8, cell->result.makespan_s);
		putchar('\n');
	}
	printf("\n%-*s %5s %6s %5s %6s %6s %7s %7s %9s %8s\n", width, "policy",
	       "GPU/%", "frag/%", "Jain", "FTR", "max", "preempt", "moved",
	       "decisions", "each");
	for (size_t i = 0; i < sim->n_cells; i++) {
		if (!sim->cells[i].done)
			continue;
		print_name(sim->cells[i].name, width);
		print_use(&sim->cells[i].result);
	}
}

static void print_group(const char *name, const struct group_result *g,
			bool has_ratio)
{
	print_name(name, NAME_MAX);
	printf(" %6zu", g->n);
	print_times(g);
	printf(" %5.3f", g->jain);
	print_known(6, 2, has_ratio ? g->finish_time : -1);
	print_seconds(9, g->gpu_s);
	putchar('\n');
}

void report_groups(const struct sched_sim *sim, enum report_by by)
{
	const struct sched_workload *w = sim->workload;
	bool users = by == REPORT_USERS;

	printf("\n%-*s %6s %8s %7s %7s %7s %7s %7s %5s %6s %9s\n", NAME_MAX,
	       users ? "user" : "class", "jobs", "mean JCT", "p50", "p95",
	       "p99", "max", "wait", "Jain", "FTR", "GPU time");
	for (size_t i = 0; i < sim->n_cells; i++) {
		const struct sim_result *r = &sim->cells[i].result;
		const struct group_result *g = users ? r->users : r->classes;

		if (!sim->cells[i].done)
			continue;
		printf("%s:\n", sim->cells[i].name);
		for (size_t k = 0; k < (users ? w->n_users : w->n_classes); k++)
			print_group(users ? w->users[k] : w->classes[k], &g[k],
				    r->gpus > 0);
	}
}

static json_t *json_summary(const struct summary *s)
{
	return json_pack("{s:f,s:f,s:f,s:f,s:f}", "mean_s", s->mean_s, "p50_s",
			 s->p50_s, "p95_s", s->p95_s, "p99_s", s->p99_s,
			 "max_s", s->max_s);
}

static json_t *json_known(double v)
{
	return v < 0 ? json_null() : json_real(v);
}

static json_t *json_group(const char *name, const struct group_result *g,
			  bool has_ratio)
{
	json_t *j = json_pack("{s:I,s:o,s:f,s:f,s:f,s:f,s:f,s:f,s:o,s:o}",
			      "jobs", (json_int_t)g->n, "jct",
			      json_summary(&g->jct), "wait_s", g->wait_s,
			      "run_s", g->run_s, "gpu_s", g->gpu_s, "slowdown",
			      g->slowdown, "slowdown_max", g->slowdown_max,
			      "jain", g->jain, "finish_time_ratio",
			      json_known(has_ratio ? g->finish_time : -1),
			      "finish_time_ratio_max",
			      json_known(has_ratio ? g->finish_time_max : -1));

	if (j && name)
		json_object_set_new(j, "name", json_bytes(name));
	return j;
}

static json_t *json_groups(char *const *names, const struct group_result *g,
			   size_t n, bool has_ratio)
{
	json_t *a = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(a,
				      json_group(names[i], &g[i], has_ratio));
	return a;
}

static json_t *json_jobs(const struct sched_workload *w,
			 const struct sched_job *jobs)
{
	json_t *a = json_array();

	for (size_t i = 0; i < w->n; i++) {
		const struct sched_job *job = &jobs[i];

		json_array_append_new(
			a,
			json_pack("{s:o,s:o,s:o,s:f,s:f,s:f,s:f,s:i,s:i}",
				  "name", json_bytes(job->name), "user",
				  json_bytes(w->users[job->user]), "class",
				  json_bytes(w->classes[job->class]),
				  "arrival_s",
				  (double)job->arrival_ns / NS_PER_S, "start_s",
				  (double)job->start_ns / NS_PER_S, "end_s",
				  (double)job->end_ns / NS_PER_S, "run_s",
				  (double)job->run_ns / NS_PER_S, "preempted",
				  (int)job->n_preempted, "moved",
				  (int)job->n_moved));
	}
	return a;
}

/* GPUs that were allocated, on average in each bin; null: not known. */
static json_t *json_use(const struct sched_timeline *t)
{
	json_t *a;

	if (!t->bin_ns)
		return json_null();
	a = json_array();
	for (size_t i = 0; i < timeline_n(t); i++)
		json_array_append_new(a, json_real(timeline_mean(t, i)));
	return json_pack("{s:f,s:o}", "bin_s", (double)t->bin_ns / NS_PER_S,
			 "gpus", a);
}

static json_t *json_cell(const struct sched_sim *sim,
			 const struct sched_sim_cell *c, bool per_job)
{
	const struct sched_workload *w = sim->workload;
	const struct sim_result *r = &c->result;
	bool has_ratio = r->gpus > 0;
	json_t *j = json_group(NULL, &r->all, has_ratio);

	if (!j)
		return NULL;
	json_object_set_new(j, "policy",
			    plugin_choice_json(c->policy.plugin,
					       c->policy.options));
	json_object_set_new(j, "placement",
			    plugin_choice_json(c->placement.plugin,
					       c->placement.options));
	json_add_real(j, "makespan_s", r->makespan_s);
	json_add_real(j, "gpu_utilisation", r->utilisation);
	json_object_set_new(j, "gpu_use", json_use(&r->use));
	json_object_set_new(j, "fragmentation",
			    json_known(r->frag_known ? r->frag : -1));
	json_add_real(j, "gpu_overcommitted_s", r->over_s);
	json_add_integer(j, "preemptions", r->n_preempted);
	json_add_integer(j, "moves", r->n_moved);
	json_add_integer(j, "events", r->n_events);
	json_add_integer(j, "decisions", r->n_decisions);
	json_object_set_new(j, "decision_us",
			    hist_json(&r->decisions, NS_PER_US));
	json_object_set_new(j, "users",
			    json_groups(w->users, r->users, w->n_users,
					has_ratio));
	json_object_set_new(j, "classes",
			    json_groups(w->classes, r->classes, w->n_classes,
					has_ratio));
	if (per_job)
		json_object_set_new(j, "per_job", json_jobs(w, c->jobs));
	return j;
}

json_t *report_json(const struct sched_sim *sim, bool per_job)
{
	json_t *a = json_array();

	for (size_t i = 0; a && i < sim->n_cells; i++)
		if (sim->cells[i].done)
			json_array_append_new(a, json_cell(sim, &sim->cells[i],
							   per_job));
	return a;
}
