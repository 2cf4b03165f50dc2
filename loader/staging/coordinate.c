/* SPDX-License-Identifier: MIT */
#include "loader/staging/coordinate.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/conf/plugin_choice.h"
#include "common/units.h"
#include "common/util.h"

static const struct conf_field fields[] = {
	{ CONF_KEY(jobs, CONF_UINT, struct coordinate), .min = 1,
	  .max = PLAN_MEMBERS, .arg = "N", .help = "jobs that take part" },
	{ CONF_KEY(size, CONF_SIZE, struct coordinate), .max = 1099511627776.,
	  .arg = "SIZE", .help = "memory for the batches that they share" },
	{ "wait", CONF_DURATION, offsetof(struct coordinate, wait_ns),
	  .max = 86400e9, .arg = "TIME",
	  .help = "wall time for all of them to start; 0s: no limit" },
	{ 0 },
};

static const struct coordinate defaults = {
	/* arbitrary: jobs of one experiment are started together */
	.wait_ns = 60 * NS_PER_S,
};

int coordinate_parse(const char *text, struct coordinate *ret, struct err *err)
{
	size_t n = strcspn(text, ":");
	/* the name is the user's, the options are read like a plug-in's */
	struct plugin plugin = { .name = ret->name,
				 PLUGIN_OPTIONS(fields, defaults) };
	const struct plugin *const table[] = { &plugin, NULL };
	struct plugin_choice c;
	_cleanup_free_ char *name = strndup(text, n);
	int r = name ? area_name_check(name, err)
		     : err_set(err, -ENOMEM, "out of memory");

	if (r < 0)
		return r;
	strcpy(ret->name, name);
	r = plugin_choose(table, "area", text, &c, err);
	if (r == 0) {
		*ret = *(const struct coordinate *)c.options;
		strcpy(ret->name, name);
	}
	plugin_choice_fini(&c);
	if (r == 0 && ret->jobs == 0)
		r = err_set(err, -EINVAL,
			    "%s: how many jobs share? give %s:jobs=N", name,
			    name);
	return r;
}

int coordinate_check(const void *object, struct err *err)
{
	struct coordinate c;

	return coordinate_parse(*(char *const *)object, &c, err);
}

json_t *coordinate_json(const char *name, const struct staging_stats *s)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f}",
			 "name", name, "jobs", (json_int_t)s->jobs, "bytes",
			 (json_int_t)s->bytes, "bytes_high_water",
			 (json_int_t)s->most_bytes, "batches_made",
			 (json_int_t)s->made, "batches_used",
			 (json_int_t)s->used, "batches_taken_over",
			 (json_int_t)s->taken_over, "jobs_died",
			 (json_int_t)s->died, "join_wall_seconds",
			 (double)s->join_ns / NS_PER_S);
}

void coordinate_summary(const char *name, const struct staging_stats *s,
			FILE *f)
{
	char most[UNITS_TEXT], bytes[UNITS_TEXT];

	fprintf(f,
		"Coordinated with %" PRIu32 " other jobs (%s): of %" PRIu64
		" batches it made %" PRIu64 "; at most %s of %s were shared.\n",
		s->jobs - 1, name, s->used, s->made,
		units_human_size((double)s->most_bytes, most),
		units_human_size((double)s->bytes, bytes));
	if (s->died || s->taken_over)
		fprintf(f,
			"%" PRIu32 " of the jobs died; this one took over "
			"%" PRIu64 " batches.\n",
			s->died, s->taken_over);
}
