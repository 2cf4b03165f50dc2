/* SPDX-License-Identifier: MIT */
#include "loader/account/rig.h"

#include "common/util.h"

enum { WHY_TEXT = 240 };

static double ratio(double a, double b)
{
	return b > 0 ? a / b : 0;
}

/* Each returns by which factor its limit is exceeded; at most 1: it is kept.
 */

/* The lower of two: the loop alone, and all CPUs busy with such samples. */
static double upper_bound(const struct rig *r)
{
	double all = ratio(r->samples_per_wall_s * r->cpus, r->cpus_used);

	return r->ceiling > 0 && (r->ceiling < all || all <= 0) ? r->ceiling
								: all;
}

static double ceiling(const struct rig *r, char *why)
{
	double bound = upper_bound(r);

	snprintf(why, WHY_TEXT,
		 "without emulated durations this machine makes at most %.4g "
		 "such samples per wall second%s; the run made %.4g",
		 bound, bound < r->ceiling ? " on all its CPUs" : "",
		 r->samples_per_wall_s);
	return ratio(RIG_CEILING_FACTOR * r->samples_per_wall_s, bound);
}

static double timers(const struct rig *r, char *why)
{
	double share = ratio(r->late_us, r->step_us);

	snprintf(why, WHY_TEXT,
		 "emulated durations " RIG_LATE ": longer steps or a larger "
		 "time scale reduce this error",
		 r->late_us, 100 * share, r->step_us / 1e3);
	return share / RIG_ERROR_SHARE;
}

static double cpu(const struct rig *r, char *why)
{
	snprintf(why, WHY_TEXT, "gpemu-train " RIG_CPU, r->cpus_used, r->cpus);
	return ratio(r->cpus_used, r->cpus) / RIG_CPU_SHARE;
}

static double scale(const struct rig *r, char *why)
{
	snprintf(why, WHY_TEXT,
		 "at time scale %g real work counts %.4g-fold, and for %.3g %% "
		 "of the time the GPU waited for such work (copies into "
		 "pinned memory, transforms, reads that no device delays, "
		 "checkpoints)",
		 r->time_scale, ratio(1, r->time_scale), 100 * r->real_share);
	return r->time_scale == 1 ? 0 : r->real_share / RIG_ERROR_SHARE;
}

static const struct {
	const char *name;
	double (*exceeded)(const struct rig *r, char *why);
} limits[] = {
	{ "ceiling", ceiling },
	{ "timers", timers },
	{ "cpu", cpu },
	{ "time_scale", scale },
};

json_t *rig_json(const struct rig *r)
{
	json_t *reached = json_array();
	char why[WHY_TEXT];

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		double factor = limits[i].exceeded(r, why);

		if (factor > 1)
			json_array_append_new(
				reached, json_pack("{s:s, s:f, s:s}", "limit",
						   limits[i].name, "factor",
						   factor, "why", why));
	}
	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:o}", "samples_per_wall_s",
			 r->samples_per_wall_s, "ceiling_samples_per_wall_s",
			 upper_bound(r), "timer_error_share",
			 ratio(r->late_us, r->step_us), "cpu_share",
			 ratio(r->cpus_used, r->cpus), "real_stall_share",
			 r->real_share, "limits", reached);
}

void rig_print(const json_t *rig, const char *of, FILE *f)
{
	const char *limit, *why;
	const json_t *one;
	size_t i;

	json_array_foreach (json_object_get(rig, "limits"), i, one)
		if (json_unpack((json_t *)one, "{s:s, s:s}", "limit", &limit,
				"why", &why) == 0)
			fprintf(f, "Limit of the testbed (%s%s): %s.\n", limit,
				of, why);
}
