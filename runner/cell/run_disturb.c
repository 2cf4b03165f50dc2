/* SPDX-License-Identifier: MIT */
#include "runner/cell/run_disturb.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/json.h"
#include "common/util.h"
#include "loader/account/rig.h"
#include "runner/cell/run_rig.h"
#include "runner/spec/run_stats.h"

/* Source: docs/timing.md: the mean lateness of an idle machine was at most
 * 58.6 us on its worst day, with sleeping processors. */
#define IDLE_LATE_US 60
/* arbitrary: between the spread of quiet repetitions and a disturbance */
#define LATE_FACTOR 2
/* Ticks of /proc/stat, 10 ms, are too coarse for less. */
#define SHORTEST_S .5
/* measured: undisturbed repetitions differ by .001 % */
#define CEILING_FALL .01
/* A rig that misses its ceiling even when idle varies. */
#define CEILING_AU .99

static const json_t *watched(const json_t *record)
{
	return json_object_get(json_object_get(record, "host"), "watch");
}

bool disturb_is(const json_t *record)
{
	return json_is_true(
		json_object_get(json_object_get(record, "cell"), "disturbed"));
}

double disturb_share(const json_t *record)
{
	return json_get_number(watched(record), "taken_share") +
	       json_get_number(watched(record), "taken_io_share");
}

__attribute__((format(printf, 3, 4))) static void
add(json_t *signs, const char *name, const char *format, ...)
{
	char text[240];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	json_array_append_new(signs, json_pack("{s:s, s:s}", "sign", name,
					       "seen", text));
}

/* --- what was taken --------------------------------------------------- */

static void cpu(const json_t *record, double limit, json_t *signs)
{
	const json_t *w = watched(record);
	double share = json_get_number(w, "taken_share"),
	       s = json_get_number(w, "seconds");

	if (share > limit && s > SHORTEST_S)
		add(signs, "cpu",
		    "other programs took up to %.3g s of %.3g s from it (%.3g "
		    "%%, limit %.3g %%): they used %.3g %% of the CPUs, at "
		    "most %.3g %% in %.3g s, while its threads waited %.3g s "
		    "for a CPU; the host stole %.3g s",
		    json_get_number(w, "taken_s"), s, 100 * share, 100 * limit,
		    100 * json_get_number(w, "other_cpu_share"),
		    100 * json_get_number(w, "other_cpu_share_max"),
		    json_get_number(w, "window_s"),
		    json_get_number(w, "cpu_wait_s"),
		    json_get_number(w, "stolen_s"));
}

static void disk(const json_t *record, double limit, json_t *signs)
{
	const json_t *w = watched(record);
	double share = json_get_number(w, "taken_io_share");

	if (share > limit)
		add(signs, "disk",
		    "programs waited for the disk for %.3g s of %.3g s, and "
		    "other programs moved %.4g MiB besides its %.4g MiB",
		    json_get_number(w, "pressure_io_s"),
		    json_get_number(w, "seconds"),
		    json_get_number(w, "other_disk_mib"),
		    json_get_number(w, "own_disk_mib"));
}

/* --- timers ----------------------------------------------------------- */

static double late(const json_t *program)
{
	return json_get_number(json_object_get(program, "timer_error_us"),
			       "mean");
}

/* Of the node of a job whose timers were the latest. */
static double late_job(const json_t *job)
{
	double us = late(job);
	const json_t *one;
	size_t i;

	json_array_foreach (json_object_get(job, "nodes"), i, one)
		us = MAX(us, late(one));
	return us;
}

/* Of the program whose timers were the latest. */
static double late_us(const json_t *record)
{
	static const char *const lists[] = { "jobs", "mounts" };
	double us =
		MAX(late_job(record), late(json_object_get(record, "mount")));
	const char *name;
	json_t *one;

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		json_object_foreach (json_object_get(record, lists[i]), name,
				     one)
			us = MAX(us, late_job(one));
	return us;
}

/* The median over the peers; 0 without any. */
static double usual(const json_t *peers, double (*value)(const json_t *))
{
	size_t i, n = 0, most = json_array_size(peers);
	_cleanup_free_ double *v = calloc(most + 1, sizeof(*v));
	const json_t *peer;

	json_array_foreach ((json_t *)peers, i, peer)
		if (v && value(peer) > 0)
			v[n++] = value(peer);
	return n ? stats_spread(v, n).median : 0;
}

static void timers(const json_t *record, const json_t *peers, json_t *signs)
{
	double us = late_us(record), step = rig_step_us(record);
	double before = usual(peers, late_us);

	if (step <= 0 || us <= IDLE_LATE_US || us <= RIG_ERROR_SHARE * step)
		return;
	if (before > 0 ? us <= LATE_FACTOR * before
		       : disturb_share(record) <= RIG_ERROR_SHARE)
		return;
	add(signs, "timers",
	    "emulated durations " RIG_LATE "; %.3g us in the other repetitions",
	    us, 100 * us / step, step / 1e3, before);
}

/* --- ceiling ---------------------------------------------------------- */

static double ceiling_of(const json_t *record)
{
	return json_get_number(json_object_get(record, "ceiling"),
			       "samples_per_s");
}

static bool reached(const json_t *record)
{
	return json_get_number(json_object_get(record, "ceiling"), "au") >=
	       CEILING_AU;
}

static void ceiling(const json_t *record, const json_t *peers, json_t *signs)
{
	double ours = ceiling_of(record), best = 0;
	const json_t *peer;
	size_t i;

	json_array_foreach ((json_t *)peers, i, peer)
		if (reached(peer))
			best = MAX(best, ceiling_of(peer));
	if (ours > 0 && ours < (1 - CEILING_FALL) * best)
		add(signs, "ceiling",
		    "the testbed's ceiling was %.5g samples/s, %.3g %% below "
		    "the "
		    "%.5g of another repetition",
		    ours, 100 * (1 - ours / best), best);
}

json_t *disturb_signs(const json_t *record, const json_t *peers, double limit)
{
	json_t *signs = json_array();

	if (!signs || limit >= 1)
		return signs;
	cpu(record, limit, signs);
	disk(record, limit, signs);
	timers(record, peers, signs);
	ceiling(record, peers, signs);
	return signs;
}
