/* SPDX-License-Identifier: MIT */
/* Tables and records of simulated runs. */
#include <inttypes.h>
#include <string.h>

#include "common/json.h"
#include "common/units.h"
#include "common/util.h"
#include "sched/sim.h"

void report_table(const struct sim *sim)
{
	int width = 12;

	for (size_t i = 0; i < sim->n_cells; i++)
		width = MAX(width, (int)strlen(sim->cells[i].name));
	printf("%-*s %10s %10s %10s %10s %10s %10s %6s %6s %8s %10s\n", width,
	       "policy", "mean JCT/s", "p50/s", "p95/s", "p99/s", "wait/s",
	       "makespan/s", "GPU/%", "Jain", "preempt", "decision");
	for (size_t i = 0; i < sim->n_cells; i++) {
		const struct sim_cell *c = &sim->cells[i];
		const struct sim_result *r = &c->result;
		char cost[UNITS_TEXT];

		if (!c->done)
			continue;
		printf("%-*s %10.1f %10.1f %10.1f %10.1f %10.1f %10.1f %6.1f "
		       "%6.3f %8" PRIu64 " %10s\n",
		       width, c->name, r->all.jct.mean_s, r->all.jct.p50_s,
		       r->all.jct.p95_s, r->all.jct.p99_s, r->all.wait_s,
		       r->makespan_s, 100 * r->utilisation, r->jain,
		       r->n_preempted,
		       units_human_duration(hist_mean(&r->decisions), cost));
	}
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
	json_object_set_new(j, "jain", json_real(r->jain));
	json_object_set_new(j, "slowdown_max", json_real(r->slowdown_max));
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
