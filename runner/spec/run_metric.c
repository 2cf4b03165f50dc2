/* SPDX-License-Identifier: MIT */
#include "runner/spec/run_metric.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

int metric_check(const void *object, struct err *err)
{
	const struct metric *m = object;
	int r;

	if (!m->path == !m->of)
		return err_set(err, -EINVAL,
			       "a metric needs either 'path' or 'of'");
	if (m->of)
		return m->per ? err_set(err, -EINVAL,
					"'per' goes with 'path', not with 'of'")
			      : 0;
	r = metric_check_path(m->path, err);
	return r == 0 && m->per ? metric_check_path(m->per, err) : r;
}

const struct conf_field metric_fields[] = {
	{ CONF_KEY(name, CONF_STRING, struct metric) },
	{ CONF_KEY(path, CONF_STRING, struct metric) },
	{ CONF_KEY(of, CONF_STRING, struct metric) },
	{ CONF_KEY(per, CONF_STRING, struct metric) },
	{ CONF_KEY(scale, CONF_DOUBLE, struct metric) },
	{ CONF_KEY(label, CONF_STRING, struct metric) },
	{ CONF_KEY(unit, CONF_STRING, struct metric) },
	{ 0 },
};

const struct metric metric_builtin[] = {
	{ .name = "seconds",
	  .path = "epochs[steady].seconds",
	  .label = "epoch time",
	  .unit = "s" },
	{ .name = "samples_per_s",
	  .path = "epochs[steady].samples_per_s",
	  .label = "throughput",
	  .unit = "samples/s" },
	{ .name = "au",
	  .path = "epochs[steady].au",
	  .scale = 100,
	  .label = "AU",
	  .unit = "%" },
	{ .name = "fetch_stall",
	  .path = "epochs[steady].fetch_stall_s",
	  .per = "epochs[steady].seconds",
	  .scale = 100,
	  .label = "fetch stall",
	  .unit = "%" },
	{ .name = "prep_stall",
	  .path = "epochs[steady].prep_stall_s",
	  .per = "epochs[steady].seconds",
	  .scale = 100,
	  .label = "prep stall",
	  .unit = "%" },
	{ .name = "pin_stall",
	  .path = "epochs[steady].pin_stall_s",
	  .per = "epochs[steady].seconds",
	  .scale = 100,
	  .label = "pin stall",
	  .unit = "%" },
	{ .name = "hit_ratio",
	  /* counted by the mount, for any program that reads it */
	  .path = "mount.epochs[steady].hits",
	  .per = "mount.epochs[steady].hits + mount.epochs[steady].misses",
	  .scale = 100,
	  .label = "hit ratio",
	  .unit = "%" },
	/* only for nodes with a price and a power */
	{ .name = "cost",
	  .path = "epochs[steady].cost_usd",
	  .label = "cost of an epoch",
	  .unit = "USD" },
	{ .name = "energy",
	  .path = "epochs[steady].energy_kwh",
	  .label = "energy of an epoch",
	  .unit = "kWh" },
	/* the last one: available for any program */
	{ .name = "wall_seconds",
	  .path = "run.wall_seconds",
	  .label = "wall time",
	  .unit = "s" },
	{ 0 },
};

const struct metric *metric_find(const struct conf_list *own, const char *name)
{
	const struct metric *m = own->items;

	for (size_t i = 0; i < own->n; i++)
		if (!strcmp(m[i].name, name))
			return &m[i];
	for (m = metric_builtin; m->name; m++)
		if (!strcmp(m->name, name))
			return m;
	return NULL;
}

/* --- paths ------------------------------------------------------------ */

/* One step of a path: a key, or a range of an array (or both are absent). */
struct step {
	const char *key;
	size_t n_key;
	bool has_range;
	bool steady;
	long from, to; /* negative: from the end; to: exclusive */
	bool open;     /* no upper end */
	bool one;      /* a single index: `from` */
};

static const char *parse_index(const char *s, long *ret)
{
	char *end;

	errno = 0;
	*ret = strtol(s, &end, 10);
	return end == s || errno ? NULL : end;
}

/* Parse a range between [ and ]; returns the text after ], NULL: not a range.
 */
static const char *parse_range(const char *s, struct step *step)
{
	step->has_range = true;
	if (!strncmp(s, "steady]", 7)) {
		step->steady = true;
		return s + 7;
	}
	if (*s != ':') {
		s = parse_index(s, &step->from);
		if (!s)
			return NULL;
	}
	if (*s == ']') {
		step->one = true;
		return s + 1;
	}
	if (*s++ != ':')
		return NULL;
	step->open = *s == ']';
	if (!step->open)
		s = parse_index(s, &step->to);
	return s && *s == ']' ? s + 1 : NULL;
}

static bool is_key_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/* Returns the text after the step and its dot; NULL: not a step. */
static const char *parse_step(const char *s, struct step *step)
{
	*step = (struct step){ .key = s };
	while (is_key_char(*s))
		s++;
	step->n_key = (size_t)(s - step->key);
	if (!step->n_key)
		return NULL;
	if (*s == '[')
		s = parse_range(s + 1, step);
	if (s && *s == '.')
		return s[1] ? s + 1 : NULL;
	return s && (!*s || *s == ' ') ? s : NULL;
}

int metric_check_path(const char *path, struct err *err)
{
	const char *s = path;
	struct step step;

	while (s && *s) {
		s = parse_step(s, &step);
		if (s && *s == ' ')
			s = strncmp(s, " + ", 3) || !s[3] ? NULL : s + 3;
	}
	if (s && path[0])
		return 0;
	return err_set(err, -EINVAL,
		       "'%s' is not a path such as totals.seconds, "
		       "epochs[-1].au or epochs[1:].hits + epochs[1:].misses",
		       path);
}

/* --- values ----------------------------------------------------------- */

struct numbers {
	double *v;
	size_t n;
};

static int numbers_add(struct numbers *numbers, double v)
{
	double *grown = realloc(numbers->v, (numbers->n + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	numbers->v = grown;
	numbers->v[numbers->n++] = v;
	return 0;
}

static void numbers_fini(struct numbers *numbers)
{
	free(numbers->v);
}

static void step_bounds(const struct step *step, long n, long *from, long *to)
{
	*from = step->from < 0 ? step->from + n : step->from;
	*to = step->open ? n : step->to < 0 ? step->to + n : step->to;
	if (step->steady) {
		*from = n > 1;
		*to = n;
	}
	if (step->one)
		*to = *from + 1;
	*from = MAX(*from, 0);
	*to = MIN(*to, n);
}

/* All numbers that the path (up to a space) names below `j`, in order. */
static int collect(const json_t *j, const char *path, struct numbers *ret)
{
	struct step step;
	long from, to;
	int r = 0;

	if (!*path || *path == ' ')
		return json_is_number(j)
			       ? numbers_add(ret, json_number_value(j))
			       : 0;
	path = parse_step(path, &step);
	if (!path)
		return -EINVAL;
	j = json_object_getn(j, step.key, step.n_key);
	if (!step.has_range)
		return collect(j, path, ret);
	step_bounds(&step, (long)json_array_size(j), &from, &to);
	for (; r == 0 && from < to; from++)
		r = collect(json_array_get(j, (size_t)from), path, ret);
	return r;
}

/* The sum of the paths, value by value, up to the shortest. */
static int collect_sum(const json_t *record, const char *path,
		       struct numbers *ret)
{
	int r = collect(record, path, ret);

	while (r == 0 && (path = strchr(path, '+'))) {
		_cleanup_(numbers_fini) struct numbers more = { 0 };

		path += 2;
		r = collect(record, path, &more);
		ret->n = MIN(ret->n, more.n);
		for (size_t i = 0; i < ret->n; i++)
			ret->v[i] += more.v[i];
	}
	return r;
}

static int divide(const json_t *record, const char *per, struct numbers *values)
{
	_cleanup_(numbers_fini) struct numbers by = { 0 };
	int r = collect_sum(record, per, &by);
	size_t n = 0;

	for (size_t i = 0; r == 0 && i < MIN(values->n, by.n); i++)
		if (by.v[i] != 0)
			values->v[n++] = values->v[i] / by.v[i];
	values->n = n;
	return r;
}

int metric_value(const struct metric *m, const json_t *record, double *ret)
{
	_cleanup_(numbers_fini) struct numbers values = { 0 };
	int r = collect_sum(record, m->path, &values);

	if (r == 0 && m->per)
		r = divide(record, m->per, &values);
	if (r < 0)
		return r;
	if (!values.n)
		return -ENOENT;
	*ret = stats_spread(values.v, values.n).median *
	       (m->scale != 0 ? m->scale : 1);
	return 0;
}
