/* SPDX-License-Identifier: MIT */
#include "common/units.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

struct unit {
	const char *name;
	uint64_t factor;
};

/* Longest factor first: the exact writers take the first that divides. */
static const struct unit sizes[] = {
	{ "T", 1024 * GIB }, { "G", GIB },	    { "M", MIB },
	{ "K", KIB },	     { "TiB", 1024 * GIB }, { "GiB", GIB },
	{ "MiB", MIB },	     { "KiB", KIB },	    { "B", 1 },
	{ "", 1 },	     { NULL, 0 },
};
static const struct unit durations[] = {
	{ "h", 3600 * NS_PER_S },
	{ "m", 60 * NS_PER_S },
	{ "s", NS_PER_S },
	{ "ms", NS_PER_MS },
	{ "us", NS_PER_US },
	{ "ns", 1 },
	{ NULL, 0 },
};

/* The number at the start of `s`; -EINVAL unless it is finite and decimal. */
static int number(const char *s, double *ret, const char **ret_rest)
{
	char *end;

	/* strtod also takes "inf", "nan", "0x1p3" and leading blanks */
	if (!strchr("0123456789+-.", s[0]) || !s[0] || strpbrk(s, "xXpP"))
		return -EINVAL;
	errno = 0;
	*ret = strtod(s, &end);
	if (end == s || errno || !isfinite(*ret))
		return -EINVAL;
	*ret_rest = end;
	return 0;
}

static int parse(const char *s, const struct unit *units, uint64_t *ret)
{
	const char *rest;
	double v;

	if (number(s, &v, &rest) < 0)
		return -EINVAL;
	if (v < 0)
		return -ERANGE;
	if (v == 0 && !rest[0]) {
		*ret = 0;
		return 0;
	}
	while (*rest == ' ')
		rest++;
	for (const struct unit *u = units; u->name; u++) {
		if (strcmp(u->name, rest))
			continue;
		/* 2^63: what fits int64_t too, so that sums stay defined */
		if (v * (double)u->factor >= 9223372036854775808.0)
			return -ERANGE;
		*ret = (uint64_t)llround(v * (double)u->factor);
		return 0;
	}
	return -EINVAL;
}

int units_parse_size(const char *s, uint64_t *ret_bytes)
{
	return parse(s, sizes, ret_bytes);
}

bool units_size_hint(const char *s, char ret[UNITS_TEXT])
{
	static const char *const tails[] = { "", "b", "ib" };
	const char *rest;
	double v;
	char letter;

	if (number(s, &v, &rest) < 0 || v < 0)
		return false;
	while (*rest == ' ')
		rest++;
	letter = (char)toupper((unsigned char)*rest);
	if (!letter || !strchr("KMGT", letter))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(tails); i++)
		if (!strcasecmp(rest + 1, tails[i]))
			return snprintf(ret, UNITS_TEXT, "%.15g%c", v, letter) <
			       UNITS_TEXT;
	return false;
}

int units_parse_duration(const char *s, uint64_t *ret_ns)
{
	return parse(s, durations, ret_ns);
}

int units_parse_double(const char *s, double *ret)
{
	const char *rest;
	int r = number(s, ret, &rest);

	return r < 0 || !rest[0] ? r : -EINVAL;
}

int units_parse_capacity(const char *s, struct units_capacity *ret)
{
	const char *rest;
	double v;

	if (!strcmp(s, "auto")) {
		*ret = (struct units_capacity){ .fraction = UNITS_AUTO_FRACTION,
						.yields = true };
		return 0;
	}
	if (number(s, &v, &rest) == 0 && !strcmp(rest, "%")) {
		if (v < 0 || v > 100)
			return -ERANGE;
		*ret = (struct units_capacity){ .fraction = v / 100 };
		return 0;
	}
	*ret = (struct units_capacity){ .fraction = -1 };
	return parse(s, sizes, &ret->bytes);
}

uint64_t units_unscaled(uint64_t bytes, double scale)
{
	double whole = scale < 1 ? ceil((double)bytes / scale) : 0;

	if (scale >= 1)
		return bytes;
	return whole < 9223372036854775808.0 ? (uint64_t)whole : 1ull << 63;
}

uint64_t units_capacity_bytes(const struct units_capacity *c, uint64_t whole)
{
	if (c->fraction < 0)
		return c->bytes;
	return (uint64_t)llround(c->fraction * (double)whole);
}

static const char *exact(uint64_t v, const struct unit *units, char *buf)
{
	for (const struct unit *u = units; u->name; u++) {
		if (v && v % u->factor == 0) {
			snprintf(buf, UNITS_TEXT, "%" PRIu64 "%s",
				 v / u->factor, u->name);
			return buf;
		}
	}
	snprintf(buf, UNITS_TEXT, "0");
	return buf;
}

const char *units_exact_size(uint64_t bytes, char buf[UNITS_TEXT])
{
	if (bytes % KIB) {
		snprintf(buf, UNITS_TEXT, "%" PRIu64, bytes);
		return buf;
	}
	return exact(bytes, sizes, buf);
}

const char *units_exact_duration(uint64_t ns, char buf[UNITS_TEXT])
{
	/* minutes and hours read worse than seconds in a record */
	return exact(ns, durations + 2, buf);
}

const char *units_exact_capacity(const struct units_capacity *c,
				 char buf[UNITS_TEXT])
{
	double percent = c->fraction * 100;
	/* a hundredth of one of these is the fraction; of the first as a rule
	 */
	const double near[] = { percent, nextafter(percent, 0),
				nextafter(percent, 101) };

	if (c->yields)
		return strcpy(buf, "auto");
	if (c->fraction < 0)
		return units_exact_size(c->bytes, buf);
	for (int digits = 15; digits <= 17; digits++)
		for (size_t i = 0; i < ARRAY_SIZE(near); i++) {
			snprintf(buf, UNITS_TEXT, "%.*g%%", digits, near[i]);
			if (strtod(buf, NULL) / 100 == c->fraction)
				return buf;
		}
	return buf;
}

static const char *human(double v, const char *const *names, double step,
			 char *buf)
{
	while (fabs(v) >= step * 0.9995 && names[1]) {
		v /= step;
		names++;
	}
	snprintf(buf, UNITS_TEXT, "%.*f %s",
		 fabs(v) >= 99.95   ? 0
		 : fabs(v) >= 9.995 ? 1
				    : 2,
		 v, *names);
	return buf;
}

const char *units_human_size(double bytes, char buf[UNITS_TEXT])
{
	static const char *const names[] = { "B",   "KiB", "MiB",
					     "GiB", "TiB", NULL };

	if (bytes < 1024) {
		snprintf(buf, UNITS_TEXT, "%.0f B", bytes);
		return buf;
	}
	return human(bytes, names, 1024, buf);
}

const char *units_human_duration(double ns, char buf[UNITS_TEXT])
{
	static const char *const names[] = { "ns", "us", "ms", "s", NULL };

	if (ns <= 0)
		return strcpy(buf, "0 s");
	return human(ns, names, 1000, buf);
}

int64_t units_time_ns(int64_t s, uint32_t ns)
{
	int64_t ret;

	if (__builtin_mul_overflow(s, (int64_t)NS_PER_S, &ret) ||
	    __builtin_add_overflow(ret, (int64_t)ns, &ret))
		return s < 0 ? INT64_MIN : INT64_MAX;
	return ret;
}

struct timespec units_timespec(int64_t ns)
{
	int64_t s = ns / (int64_t)NS_PER_S, rest = ns % (int64_t)NS_PER_S;

	/* the nanoseconds count forwards, also before 1970 */
	return (struct timespec){
		.tv_sec = rest < 0 ? s - 1 : s,
		.tv_nsec = rest < 0 ? rest + (int64_t)NS_PER_S : rest,
	};
}
