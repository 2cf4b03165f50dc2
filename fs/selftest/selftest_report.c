/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "common/units.h"
#include "common/json.h"
#include "common/util.h"
#include "fs/selftest/selftest.h"
#include "fs/selftest/selftest_line.h"

static const char *verdict_name(const struct line *l)
{
	switch (l->verdict) {
	case LINE_OK: return "ok";
	case LINE_MISS: return "MISS";
	case LINE_SKIPPED: break;
	}
	return "skipped";
}

/* "lookup", "1 MiB reads in sequence, MB/s" */
static const char *line_name(const struct line *l, char *buf, size_t n)
{
	char size[UNITS_TEXT];

	units_exact_size(l->load.bytes, size);
	switch (l->kind) {
	case LINE_LATENCY:
		snprintf(buf, n, "%s, us", storage_op_name(l->load.op));
		break;
	case LINE_RATE: snprintf(buf, n, "%s reads/s", size); break;
	case LINE_STREAM: snprintf(buf, n, "%s reads, MB/s", size); break;
	case LINE_MEASURED: snprintf(buf, n, "%s random, MB/s", size); break;
	}
	return buf;
}

/* --- table ---------------------------------------------------------------- */

void line_print_head(FILE *f, const struct selftest_config *c,
		     const char *source, const struct line_base *base)
{
	fprintf(f,
		"storage %s, source %s\n"
		"without a device: 4K read %.1f us (median)\n\n"
		"%-19s %9s %9s %9s %9s  %5s %7s  %-7s %5s %6s %6s %5s\n",
		c->storage, source, base->read_ns / NS_PER_US, "", "mean",
		"p50", "p99", "max", "KS", "error", "", "tries", "scale", "n",
		"depth");
	fflush(f);
}

static void print_values(FILE *f, const char *what, const uint64_t *ns,
			 size_t n, double mean_us, double most, double unit)
{
	fprintf(f, "%-19s %9.1f %9.1f %9.1f %9.1f", what, mean_us,
		model_quantile(ns, n, .5) / unit,
		model_quantile(ns, n, .99) / unit, most / unit);
}

/* The expected maximum: the longest of n draws is about the 1 - 1/n quantile.
 */
static double longest_wanted(const struct line *l)
{
	return model_quantile(l->model.ns, l->model.n,
			      1 - 1 / (double)MAX(l->run.n_done, (size_t)1));
}

static void print_end(FILE *f, const struct line *l)
{
	fprintf(f, " %+6.1f%%  %-7s %5u %6g %6zu %5zu\n",
		100 * (l->got / l->want - 1), verdict_name(l), l->tries,
		l->time_scale, l->run.n_done, l->load.streams);
}

void line_print(FILE *f, const struct line *l)
{
	double unit = NS_PER_US * l->time_scale;
	char name[64];

	line_name(l, name, sizeof(name));
	if (l->verdict == LINE_SKIPPED) {
		fprintf(f, "%-19s skipped: %s\n", name, l->why);
	} else if (l->kind == LINE_LATENCY) {
		print_values(f, name, l->model.ns, l->model.n,
			     l->want / NS_PER_US, longest_wanted(l), NS_PER_US);
		fputc('\n', f);
		print_values(f, "  as measured", l->run.ns, l->run.n_done,
			     l->got / NS_PER_US,
			     model_quantile(l->run.ns, l->run.n_done, 1), unit);
		if (l->ks < 0)
			fprintf(f, "  %5s", "-");
		else
			fprintf(f, "  %5.3f", l->ks);
		print_end(f, l);
	} else {
		fprintf(f, "%-19s %9.1f\n%-19s %9.1f", name, l->want,
			"  as measured", l->got);
		if (l->ceiling > 0)
			fprintf(f, " (the mount alone: %9.0f)   ", l->ceiling);
		else
			fprintf(f, "%31s", "");
		fprintf(f, "%6s", "");
		print_end(f, l);
	}
	fflush(f);
}

/* --- JSON ----------------------------------------------------------------- */

static json_t *times_json(const uint64_t *ns, size_t n, double mean,
			  double most, double unit)
{
	return json_pack("{s:f, s:f, s:f, s:f}", "mean", mean / NS_PER_US,
			 "p50", model_quantile(ns, n, .5) / unit, "p99",
			 model_quantile(ns, n, .99) / unit, "max", most / unit);
}

static void add_latency(json_t *j, const struct line *l)
{
	double unit = NS_PER_US * l->time_scale;

	json_object_set_new(j, "requested_us",
			    times_json(l->model.ns, l->model.n, l->want,
				       longest_wanted(l), NS_PER_US));
	json_object_set_new(
		j, "achieved_us",
		times_json(l->run.ns, l->run.n_done, l->got,
			   model_quantile(l->run.ns, l->run.n_done, 1), unit));
	json_object_set_new(j, "ks",
			    l->ks < 0 ? json_null() : json_real(l->ks));
	json_add_real(j, "allowed_error_us", l->allowed / NS_PER_US);
}

static void add_rate(json_t *j, const struct line *l)
{
	json_add_real(j, "requested", l->want);
	json_add_real(j, "achieved", l->got);
	json_add_real(j, "allowed_error", l->allowed);
	json_object_set_new(j, "mount_alone",
			    l->ceiling > 0 ? json_real(l->ceiling)
					   : json_null());
}

static json_t *line_json(const struct line *l)
{
	static const char *const kinds[] = { "latency", "operations_per_s",
					     "mb_per_s", "published_mb_per_s" };
	json_t *j = json_pack(
		"{s:s, s:s, s:I, s:f, s:I, s:I, s:I, s:s}", "kind",
		kinds[l->kind], "operation", storage_op_name(l->load.op),
		"bytes", (json_int_t)l->load.bytes, "time_scale", l->time_scale,
		"streams", (json_int_t)l->load.streams, "operations",
		(json_int_t)l->run.n_done, "tries", (json_int_t)l->tries,
		"verdict", l->verdict == LINE_MISS ? "miss" : verdict_name(l));

	if (j && l->verdict == LINE_SKIPPED)
		json_object_set_new(j, "why", json_bytes(l->why));
	else if (j && l->kind == LINE_LATENCY)
		add_latency(j, l);
	else if (j)
		add_rate(j, l);
	return j;
}

json_t *lines_json(const struct selftest_config *c, const char *source,
		   const struct line_base *base, const struct line *lines,
		   size_t n, bool passed)
{
	struct utsname host = { 0 };
	json_t *list = json_array();

	uname(&host);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, line_json(&lines[i]));
	return json_pack("{s:o, s:o, s:o, s:I, s:{s:I, s:s}, s:f, s:o, s:b}",
			 "gpemu", json_version(), "storage",
			 json_bytes(c->storage), "source", json_bytes(source),
			 "seed", (json_int_t)c->seed, "host", "cpus",
			 (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "kernel",
			 host.release, "mount_read_us",
			 base->read_ns / NS_PER_US, "lines", list, "passed",
			 passed);
}
