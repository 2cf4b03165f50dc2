/* SPDX-License-Identifier: MIT */
#include "runner/cell/run_rig.h"

#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "loader/account/rig.h"

/* arbitrary: starting the programs is much of the work of a shorter cell */
#define LEAST_S .5

static void add_limit(json_t *limits, const char *limit, const char *of,
		      double factor, const char *why)
{
	json_array_append_new(limits, json_pack("{s:s, s:s, s:f, s:s}", "limit",
						limit, "of", of, "factor",
						factor, "why", why));
}

/* Those of a gpemu-train; its CPUs are part of the cell's. */
static void of_train(const json_t *job, const char *name, json_t *limits)
{
	const json_t *all =
		json_object_get(json_object_get(job, "rig"), "limits");
	const char *limit, *why;
	const json_t *one;
	size_t i;

	json_array_foreach ((json_t *)all, i, one)
		if (json_unpack((json_t *)one, "{s:s, s:s}", "limit", &limit,
				"why", &why) == 0 &&
		    strcmp(limit, "cpu"))
			add_limit(limits, limit, name,
				  json_get_number(one, "factor"), why);
}

/* With several nodes each has limits of its own. */
static void of_job(const json_t *job, const char *name, json_t *limits)
{
	const json_t *one;
	char node[80];
	size_t i;

	of_train(job, name, limits);
	json_array_foreach (json_object_get(job, "nodes"), i, one) {
		snprintf(node, sizeof(node), "%.50s, node %zu", name, i);
		of_train(one, node, limits);
	}
}

static double shorter(double least, const json_t *job)
{
	const json_t *totals = json_object_get(job, "totals");
	double steps = json_get_number(totals, "steps");
	double us = steps > 0 ? json_get_number(totals, "wall_seconds") * 1e6 /
					steps
			      : 0;

	return us > 0 && (least <= 0 || us < least) ? us : least;
}

double rig_step_us(const json_t *record)
{
	const json_t *jobs = json_object_get(record, "jobs"), *job;
	double us = jobs ? 0 : shorter(0, record);
	const char *name;

	json_object_foreach ((json_t *)jobs, name, job)
		us = shorter(us, job);
	return us;
}

static void of_mount(const json_t *mount, const char *name, double step,
		     json_t *limits)
{
	double late = json_get_number(json_object_get(mount, "timer_error_us"),
				      "mean");
	char why[200];

	if (step <= 0 || late <= RIG_ERROR_SHARE * step)
		return;
	snprintf(why, sizeof(why), "replies of the mount " RIG_LATE, late,
		 100 * late / step, step / 1e3);
	add_limit(limits, "timers", name, late / (RIG_ERROR_SHARE * step), why);
}

static void of_cell(const json_t *record, json_t *limits)
{
	const json_t *watch =
		json_object_get(json_object_get(record, "host"), "watch");
	double cpus = json_get_number(watch, "cpus"),
	       s = json_get_number(watch, "seconds");
	double used = s > 0 ? json_get_number(watch, "own_cpu_s") / s : 0;
	char why[200];

	if (s < LEAST_S || used <= cpus / RIG_CEILING_FACTOR)
		return;
	snprintf(why, sizeof(why),
		 "its programs used %.3g of %.0f CPUs: without emulated "
		 "durations this machine is at most %.3g times as fast",
		 used, cpus, cpus / used);
	add_limit(limits, "ceiling", "cell", RIG_CEILING_FACTOR * used / cpus,
		  why);
	if (used <= RIG_CPU_SHARE * cpus)
		return;
	snprintf(why, sizeof(why), "its programs " RIG_CPU, used, cpus);
	add_limit(limits, "cpu", "cell", used / (RIG_CPU_SHARE * cpus), why);
}

bool rig_is_simulated(const json_t *record)
{
	return json_is_true(
		json_object_get(json_object_get(record, "cell"), "simulated"));
}

json_t *rig_limits(const json_t *record)
{
	const json_t *jobs = json_object_get(record, "jobs");
	const json_t *mounts = json_object_get(record, "mounts"), *one;
	json_t *limits = json_array();
	double step = rig_step_us(record);
	const char *name;

	if (!limits || rig_is_simulated(record))
		return limits;
	if (!jobs)
		of_job(record, "train", limits);
	json_object_foreach ((json_t *)jobs, name, one)
		of_job(one, name, limits);
	of_mount(json_object_get(record, "mount"), "mount", step, limits);
	json_object_foreach ((json_t *)mounts, name, one)
		of_mount(one, name, step, limits);
	of_cell(record, limits);
	return limits;
}
