/* SPDX-License-Identifier: MIT */
/* Clusters: nodes as text, and as the rows of a CSV file. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/conf/plugin_choice.h"
#include "common/units.h"
#include "common/util.h"
#include "sched/trace/workload.h"

/* --- text ----------------------------------------------------------------- */

struct spec {
	uint64_t gpus, memory_bytes, gpu_memory_bytes;
	uint64_t cache_bytes, remote_bytes_s, link_bytes_s;
	double cpus;
	char *model;
};

static int check_model(const void *object, struct err *err)
{
	return **(char *const *)object ? 0
				       : err_set(err, -EINVAL, "has no value");
}

static const struct conf_field spec_fields[] = {
	{ CONF_KEY(gpus, CONF_UINT, struct spec), .max = CLUSTER_GPUS_MAX },
	{ CONF_KEY(cpus, CONF_DOUBLE, struct spec), .max = CLUSTER_CPU_MAX },
	{ "memory", CONF_SIZE, offsetof(struct spec, memory_bytes),
	  .max = 0x1p60 },
	{ "gpu_memory", CONF_SIZE, offsetof(struct spec, gpu_memory_bytes),
	  .max = 0x1p60 },
	{ "cache", CONF_SIZE, offsetof(struct spec, cache_bytes),
	  .max = 0x1p60 },
	{ "remote", CONF_SIZE, offsetof(struct spec, remote_bytes_s),
	  .max = 0x1p60 },
	{ "link", CONF_SIZE, offsetof(struct spec, link_bytes_s),
	  .max = 0x1p60 },
	{ CONF_KEY(model, CONF_STRING, struct spec), .check = check_model },
	{ 0 },
};

/* "4*": how many; leaves `text` at what follows. */
static int read_count(const char **text, uint64_t *ret, struct err *err)
{
	const char *star = strchr(*text, '*');
	struct rows_field f = { *text, 0 };

	*ret = 1;
	if (!star)
		return 0;
	f.n = (size_t)(star - *text);
	if (!rows_u64(&f, ret) || !*ret || *ret > CLUSTER_NODES_MAX)
		return err_set(err, -EINVAL,
			       "'%.*s' is not a number of nodes from 1 to %u",
			       (int)f.n, f.text, CLUSTER_NODES_MAX);
	*text = star + 1;
	return 0;
}

int nodes_parse(const char *text, struct cluster *c, struct err *err)
{
	const char *rest = text;
	struct spec s = { 0 };
	uint64_t count;
	int r = read_count(&rest, &count, err);

	if (r == 0)
		r = plugin_options_set(spec_fields, &s, rest, err);
	if (r == 0) {
		struct sched_node n = {
			.n_gpus = (uint8_t)s.gpus,
			.cpu_milli = (uint32_t)lround(s.cpus * 1e3),
			.memory_mib = s.memory_bytes / MIB,
			.gpu_memory_mib = s.gpu_memory_bytes / MIB,
			.cache_mib = (double)s.cache_bytes / MIB,
			.remote_mib_s = (double)s.remote_bytes_s / MIB,
			.link_mib_s = (double)s.link_bytes_s / MIB
		};

		r = cluster_add(c, &n, s.model ? s.model : "gpu", count);
		if (r == -E2BIG)
			err_set(err, r, "more than %u nodes, or %d models",
				CLUSTER_NODES_MAX, CLUSTER_MODELS_MAX);
	}
	conf_free(spec_fields, &s);
	if (r < 0)
		err_prefix(err, "nodes '%s'", text);
	return r;
}

/* --- CSV ------------------------------------------------------------------ */

enum {
	CPU,
	MEMORY,
	GPUS,
	MODEL,
	COUNT,
	GPU_MEMORY,
	N_COLUMNS,
	N_REQUIRED = COUNT
};

/* Those of openb, how many, and the memory of each GPU. The serial numbers of
 * openb are not read. */
static const char *const columns[] = {
	"cpu_milli", "memory_mib",     "gpu", "model",
	"count",     "gpu_memory_mib", "sn",
};

static int read_row(struct rows *csv, const int *at, struct cluster *c)
{
	_cleanup_free_ char *model = NULL;
	uint64_t cpu, memory, gpus, count = 1;
	struct sched_node n = { 0 };
	int r = rows_count(csv, at[CPU], "cpu_milli", CLUSTER_CPU_MAX * 1000ull,
			   &cpu);

	if (r == 0)
		r = rows_count(csv, at[MEMORY], "memory_mib",
			       CLUSTER_MEMORY_MAX, &memory);
	if (r == 0)
		r = rows_count(csv, at[GPUS], "gpu", CLUSTER_GPUS_MAX, &gpus);
	if (r == 0 && at[COUNT] >= 0)
		r = rows_count(csv, at[COUNT], "count", CLUSTER_NODES_MAX,
			       &count);
	if (r == 0)
		r = rows_count(csv, at[GPU_MEMORY], "gpu_memory_mib",
			       CLUSTER_MEMORY_MAX, &n.gpu_memory_mib);
	if (r == 0)
		r = rows_text(csv, at[MODEL], &model);
	if (r < 0)
		return r;
	n.cpu_milli = (uint32_t)cpu;
	n.memory_mib = memory;
	n.n_gpus = (uint8_t)gpus;
	r = cluster_add(c, &n, model ? model : "-", count);
	return r == -E2BIG ? rows_error(csv, NULL,
					"more than %u nodes, or %d models",
					CLUSTER_NODES_MAX, CLUSTER_MODELS_MAX)
			   : r;
}

int nodes_parse_csv(const char *bytes, size_t n, const char *name,
		    struct cluster *c, struct err *err)
{
	struct rows csv = {
		.name = name, .at = bytes, .end = bytes + n, .err = err
	};
	int at[N_COLUMNS], r = 0;

	if (!rows_next(&csv))
		return err_set(err, -EINVAL,
			       "%s: empty: a cluster has a header and a row "
			       "for each kind of node",
			       name);
	r = rows_header(&csv, columns, N_COLUMNS, N_REQUIRED, at);
	if (r == 0)
		r = rows_closed(&csv, columns, ARRAY_SIZE(columns));
	while (r == 0 && rows_next(&csv))
		r = read_row(&csv, at, c);
	if (r == 0 && !c->n)
		r = err_set(err, -EINVAL, "%s: has no nodes, only a header",
			    name);
	return r < 0 ? err_set(err, r, "%s: %s", name, strerror(-r)) : 0;
}
