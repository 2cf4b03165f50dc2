/* SPDX-License-Identifier: MIT */
#include "fs/control/ctl_prom.h"

#include <string.h>

#include "common/json.h"
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

/* Counts of each of a list: "gpemu_fs_KIND_COUNT{ID="1",LABEL="..."} 5". A
 * member without `id` is named by its place. */
struct prom_list {
	const char *key, *kind, *id, *label;
	const char *const *counts; /* ended by NULL */
};

static void print_list(FILE *f, json_t *stats, const struct prom_list *l)
{
	json_t *list = json_object_get(stats, l->key), *one, *id;
	size_t i;

	for (const char *const *count = l->counts; *count; count++) {
		fprintf(f, "# TYPE gpemu_fs_%s_%s gauge\n", l->kind, *count);
		json_array_foreach (list, i, one) {
			id = json_object_get(one, l->id);
			fprintf(f, "gpemu_fs_%s_%s{%s=\"%lld\",%s=\"", l->kind,
				*count, l->id,
				id ? (long long)json_integer_value(id)
				   : (long long)i + 1,
				l->label);
			print_label(f, json_get_text(one, l->label));
			fprintf(f, "\"} %lld\n",
				(long long)json_integer_value(
					json_object_get(one, *count)));
		}
	}
}

static const struct prom_list faults = {
	"faults", "fault", "id", "rule",
	(const char *const[]){ "matched", "fired", "held", NULL }
};
static const struct prom_list tiers = {
	"tiers", "tier", "tier", "storage",
	(const char *const[]){ "capacity_bytes", "used_bytes", "objects",
			       "hits", "misses", "evictions", NULL }
};

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
	print_list(f, stats, &tiers);
	print_list(f, stats, &faults);
}
