/* SPDX-License-Identifier: MIT */
#include "runner/result/run_origins.h"

#include <errno.h>

#include "common/json.h"
#include "common/util.h"

static const char *text(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s ? s : "unknown";
}

static int count(json_t *origins, const char *key, const char *value)
{
	json_t *values = json_object_get(origins, key);

	if (!values && json_object_set_new(origins, key, json_object()) < 0)
		return -ENOMEM;
	values = json_object_get(origins, key);
	return json_object_set_new(
		       values, value,
		       json_integer(1 + json_integer_value(json_object_get(
						values, value)))) < 0
		       ? -ENOMEM
		       : 0;
}

int origins_add(json_t *origins, const json_t *record)
{
	const json_t *cell = json_object_get(record, "cell");
	const json_t *host = json_object_get(record, "host");
	_cleanup_free_ char *machine = NULL;
	double memory = json_get_number(host, "memory_bytes");
	int r = count(origins, "gpemu", text(cell, "gpemu"));

	if (asprintf(&machine, "%s, %s, %d CPUs, %.1f GiB", text(host, "name"),
		     text(host, "cpu"),
		     (int)json_integer_value(json_object_get(host, "cpus")),
		     memory / (1 << 30)) < 0)
		return -ENOMEM;
	if (r == 0)
		r = count(origins, "kernel", text(host, "kernel"));
	if (r == 0)
		r = count(origins, "host", machine);
	return r == 0 ? count(origins, "order", text(cell, "order")) : r;
}

bool origins_mixed(const json_t *origins)
{
	const char *key;
	json_t *values;

	json_object_foreach ((json_t *)origins, key, values)
		if (json_object_size(values) > 1)
			return true;
	return false;
}

void origins_print(const json_t *origins, FILE *f)
{
	const char *key, *value, *between;
	json_t *values, *n;

	if (origins_mixed(origins))
		fputs("MIXED     runs of different versions, kernels or hosts; "
		      "--fresh runs all of them again\n",
		      f);
	json_object_foreach ((json_t *)origins, key, values) {
		if (json_object_size(values) < 2)
			continue;
		fprintf(f, "          %s:", key);
		between = " ";
		json_object_foreach (values, value, n) {
			fprintf(f, "%s%s (%" JSON_INTEGER_FORMAT " runs)",
				between, value, json_integer_value(n));
			between = "; ";
		}
		fputc('\n', f);
	}
}
