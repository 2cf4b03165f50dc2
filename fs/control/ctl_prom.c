/* SPDX-License-Identifier: MIT */
#include "fs/control/ctl_prom.h"

#include <string.h>

#include "common/util.h"

static void print_label(FILE *f, const char *value)
{
	for (; *value; value++) {
		if (strchr("\"\\\n", *value))
			fputc('\\', f);
		fputc(*value == '\n' ? 'n' : *value, f);
	}
}

static void print_value(FILE *f, const char *name, const char *labels,
			json_t *v)
{
	if (json_is_number(v))
		fprintf(f, "gpemu_fs_%s%s %.17g\n", name, labels,
			json_number_value(v));
}

static void print_group(FILE *f, const char *name, json_t *group)
{
	const char *key;
	json_t *v;

	json_object_foreach (group, key, v) {
		if (!json_is_number(v) && !json_is_boolean(v))
			continue;
		fprintf(f,
			"# TYPE gpemu_fs_%s_%s gauge\n"
			"gpemu_fs_%s_%s %.17g\n",
			name, key, name, key,
			json_is_true(v) ? 1. : json_number_value(v));
	}
}

static void print_faults(FILE *f, json_t *stats)
{
	static const char *const counts[] = { "matched", "fired", "held" };
	json_t *faults = json_object_get(stats, "faults"), *fault;
	size_t i;

	for (size_t c = 0; c < ARRAY_SIZE(counts); c++) {
		fprintf(f, "# TYPE gpemu_fs_fault_%s gauge\n", counts[c]);
		json_array_foreach (faults, i, fault) {
			const char *text = json_string_value(
				json_object_get(fault, "rule"));

			fprintf(f, "gpemu_fs_fault_%s{id=\"%lld\",rule=\"",
				counts[c],
				(long long)json_integer_value(
					json_object_get(fault, "id")));
			print_label(f, text);
			fprintf(f, "\"} %lld\n",
				(long long)json_integer_value(
					json_object_get(fault, counts[c])));
		}
	}
}

static void print_tiers(FILE *f, json_t *stats)
{
	static const char *const counts[] = { "capacity_bytes", "used_bytes",
					      "objects",	"hits",
					      "misses",		"evictions" };
	json_t *tiers = json_object_get(stats, "tiers"), *tier;
	size_t i;

	for (size_t c = 0; c < ARRAY_SIZE(counts); c++) {
		fprintf(f, "# TYPE gpemu_fs_tier_%s gauge\n", counts[c]);
		json_array_foreach (tiers, i, tier) {
			const char *storage = json_string_value(
				json_object_get(tier, "storage"));

			fprintf(f, "gpemu_fs_tier_%s{tier=\"%zu\",storage=\"",
				counts[c], i + 1);
			print_label(f, storage ? storage : "");
			fprintf(f, "\"} %lld\n",
				(long long)json_integer_value(
					json_object_get(tier, counts[c])));
		}
	}
}

/* Every number of the stats is a gauge: `reset` clears even the counters. */
void ctl_prom(FILE *f, json_t *stats)
{
	const char *storage =
		json_string_value(json_object_get(stats, "storage"));
	const char *key, *kind, *stat;
	json_t *v, *group, *number;

	fprintf(f,
		"# TYPE gpemu_fs_info gauge\n"
		"gpemu_fs_info{policy=\"%s\",storage=\"",
		json_string_value(json_object_get(stats, "policy")));
	/* JSON cannot express a path that is not UTF-8 */
	print_label(f, storage ? storage : "");
	fputs("\"} 1\n", f);
	json_object_foreach (stats, key, v) {
		if (!json_is_number(v))
			continue;
		fprintf(f, "# TYPE gpemu_fs_%s gauge\n", key);
		print_value(f, key, "", v);
	}
	print_group(f, "requests", json_object_get(stats, "requests"));
	print_group(f, "links", json_object_get(stats, "links"));
	print_group(f, "warm", json_object_get(stats, "warm"));
	print_group(f, "trace", json_object_get(stats, "trace"));
	print_group(f, "peer", json_object_get(stats, "peer"));
	print_group(f, "prefetch", json_object_get(stats, "prefetch"));
	fprintf(f, "# TYPE gpemu_fs_latency_us gauge\n");
	json_object_foreach (json_object_get(stats, "latency_us"), kind,
			     group) {
		json_object_foreach (group, stat, number) {
			char labels[80];

			snprintf(labels, sizeof(labels),
				 "{kind=\"%s\",stat=\"%s\"}", kind, stat);
			print_value(f, "latency_us", labels, number);
		}
	}
	print_tiers(f, stats);
	print_faults(f, stats);
}
