/* SPDX-License-Identifier: MIT */
/* Tables and records of simulated runs. */
#include <inttypes.h>
#include <string.h>

#include "common/json.h"
#include "common/units.h"
#include "common/util.h"
#include "sched/sim.h"

/* With names of 20 columns a line has 99; a longer name has a line of its own.
 */
enum { NAME_MIN = 12, NAME_MAX = 20 };

/* Seconds in seven columns: tenths as long as these fit. */
static void print_seconds(int width, double s)
{
	printf(" %*.*f", width, s < 99999.95 ? 1 : 0, s);
}

static void print_cell(const struct sim_cell *c, int width)
{
	const struct sim_result *r = &c->result;
	bool fits = strlen(c->name) <= (size_t)width;
	char cost[UNITS_TEXT];

	if (!fits)
		puts(c->name);
	printf("%-*s", width, fits ? c->name : "");
	print_seconds(8, r->all.jct.mean_s);
	print_seconds(7, r->all.jct.p50_s);
	print_seconds(7, r->all.jct.p95_s);
	print_seconds(7, r->all.jct.p99_s);
	print_seconds(7, r->all.wait_s);
	print_seconds(8, r->makespan_s);
	printf(" %5.1f %5.3f %7" PRIu64 " %8s\n", 100 * r->utilisation, r->jain,
	       r->n_preempted,
	       units_human_duration(hist_mean(&r->decisions), cost));
}

void report_table(const struct sim *sim)
{
	const struct cluster *c = sim->cluster;
	int width = NAME_MIN;

	for (size_t i = 0; i < sim->n_cells; i++)
		width = MAX(width, (int)strlen(sim->cells[i].name));
	width = MIN(width, NAME_MAX);
	printf("SIMULATED: %zu jobs, %zu nodes, %g GPUs; times in s\n",
	       sim->workload->n, c->n, (double)c->whole.gpu_milli / GPU_MILLI);
	printf("%-*s %8s %7s %7s %7s %7s %8s %5s %5s %7s %8s\n", width,
	       "policy", "mean JCT", "p50", "p95", "p99", "wait", "makespan",
	       "GPU/%", "Jain", "preempt", "decision");
	for (size_t i = 0; i < sim->n_cells; i++)
		if (sim->cells[i].done)
			print_cell(&sim->cells[i], width);
}

static json_t *json_summary(const struct summary *s)
{
	return json_pack("{s:f,s:f,s:f,s:f,s:f}", "mean_s", s->mean_s, "p50_s",
			 s->p50_s, "p95_s", s->p95_s, "p99_s", s->p99_s,
			 "max_s", s->max_s);
}

static json_t *json_group(const char *name, const struct group_result *g)
{
	json_t *j = json_pack("{s:I,s:o,s:f,s:f,s:f}", "jobs", (json_int_t)g->n,
			      "jct", json_summary(&g->jct), "wait_s", g->wait_s,
			      "run_s", g->run_s, "slowdown", g->slowdown);

	if (j && name)
		json_object_set_new(j, "name", json_bytes(name));
	return j;
}

static json_t *json_groups(char *const *names, const struct group_result *g,
			   size_t n)
{
	json_t *a = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(a, json_group(names[i], &g[i]));
	return a;
}

static json_t *json_jobs(const struct workload *w, const struct job *jobs)
{
	json_t *a = json_array();

	for (size_t i = 0; i < w->n; i++) {
		const struct job *job = &jobs[i];

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

/* GPUs that were allocated, on average in each bin. */
static json_t *json_use(const struct timeline *t)
{
	json_t *a = json_array();

	for (size_t i = 0; i < timeline_n(t); i++)
		json_array_append_new(a, json_real(timeline_mean(t, i)));
	return json_pack("{s:f,s:o}", "bin_s", (double)t->bin_ns / NS_PER_S,
			 "gpus", a);
}

static json_t *json_cell(const struct sim *sim, const struct sim_cell *c,
			 bool per_job)
{
	const struct workload *w = sim->workload;
	const struct sim_result *r = &c->result;
	json_t *j = json_group(NULL, &r->all);

	if (!j)
		return NULL;
	json_object_set_new(j, "policy",
			    plugin_choice_json(c->policy.plugin,
					       c->policy.options));
	json_object_set_new(j, "placement",
			    plugin_choice_json(c->placement.plugin,
					       c->placement.options));
	json_object_set_new(j, "makespan_s", json_real(r->makespan_s));
	json_object_set_new(j, "gpu_utilisation", json_real(r->utilisation));
	json_object_set_new(j, "gpu_use", json_use(&r->use));
	json_object_set_new(j, "jain", json_real(r->jain));
	json_object_set_new(j, "slowdown_max", json_real(r->slowdown_max));
	json_object_set_new(j, "gpu_overcommitted_s", json_real(r->over_s));
	json_object_set_new(j, "preemptions",
			    json_integer((json_int_t)r->n_preempted));
	json_object_set_new(j, "moves", json_integer((json_int_t)r->n_moved));
	json_object_set_new(j, "events", json_integer((json_int_t)r->n_events));
	json_object_set_new(j, "decisions",
			    json_integer((json_int_t)r->n_decisions));
	json_object_set_new(j, "decision_us",
			    hist_json(&r->decisions, NS_PER_US));
	json_object_set_new(j, "users",
			    json_groups(w->users, r->users, w->n_users));
	json_object_set_new(j, "classes",
			    json_groups(w->classes, r->classes, w->n_classes));
	if (per_job)
		json_object_set_new(j, "per_job", json_jobs(w, c->jobs));
	return j;
}

json_t *report_json(const struct sim *sim, bool per_job)
{
	json_t *a = json_array();

	for (size_t i = 0; a && i < sim->n_cells; i++)
		if (sim->cells[i].done)
			json_array_append_new(a, json_cell(sim, &sim->cells[i],
							   per_job));
	return a;
}
