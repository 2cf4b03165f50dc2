/* SPDX-License-Identifier: MIT */
/*
 * Lists of jobs that train graph neural networks, all there at once: a line
 * "MODEL_training GRAPH LAYERS" each. Source: Sun et al., "CoGNN", SC 2022; the
 * repository guessmewho233/CoGNN_info_for_SC22, software/data/model.
 *
 * The work of a job is counted in GiB of its memory, of which the speeds
 * `cognn` have the time.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "sched/trace/gnn.h"
#include "sched/trace/workload.h"

#define SUFFIX "_training"

enum { MODEL, GRAPH, LAYERS, WORDS };

/* -1: unknown. */
static int find_model(const struct rows_field *f)
{
	for (int i = 0; i < GNN_MODELS; i++) {
		size_t n = strlen(gnn_models[i]);

		if (f->n == n + strlen(SUFFIX) &&
		    !memcmp(f->text, gnn_models[i], n) &&
		    !memcmp(f->text + n, SUFFIX, strlen(SUFFIX)))
			return i;
	}
	return -1;
}

static int read_job(struct trace_reader *t, struct sched_job *job)
{
	_cleanup_free_ char *name = NULL;
	const struct gnn_graph *graph;
	struct rows *c = &t->csv;
	uint64_t layers;
	double bytes;
	int model = find_model(&c->f[MODEL]), r;

	if (c->n != WORDS)
		return rows_error(c, NULL, "not 'MODEL_training GRAPH LAYERS'");
	if (model < 0)
		return rows_error(c, &c->f[MODEL],
				  "'%.*s' is none of GCN_training, "
				  "GraphSAGE_training, GAT_training, "
				  "GIN_training",
				  (int)MIN(c->f[MODEL].n, 40),
				  c->f[MODEL].text);
	r = rows_text(c, GRAPH, &name);
	if (r < 0)
		return r;
	graph = gnn_graph(name);
	if (!graph)
		return rows_error(c, &c->f[GRAPH], "unknown graph '%.40s'",
				  name);
	r = rows_count(c, LAYERS, "layers", GNN_LAYERS_MAX, &layers);
	if (r == 0 && layers < 2)
		r = rows_error(c, &c->f[LAYERS], "layers: less than 2");
	if (r < 0)
		return r;
	bytes = gnn_memory((enum gnn_model)model, graph, (uint32_t)layers);
	job->work_ns = bytes / GIB;
	job->gpu_memory_mib = (uint64_t)(bytes / MIB) + 1;
	job->name = util_text("%s-%s-%d", gnn_models[model], name, (int)layers);
	if (!job->name)
		return -ENOMEM;
	r = workload_user(t->w, "-", &job->user);
	return r < 0 ? r : workload_class(t->w, gnn_models[model], &job->class);
}

static int cognn_parse(struct trace_reader *t)
{
	t->w->iterations_of = "cognn";
	return workload_words(t, read_job);
}

/* The first word of the first line that is no comment. */
static bool cognn_knows(const char *bytes, size_t n)
{
	struct rows c = { .at = bytes, .end = bytes + n };

	return rows_next_words(&c) && find_model(&c.f[0]) >= 0;
}

const struct reader_ops reader_cognn = {
	.plugin = { .name = "cognn",
		    .summary = "CoGNN's lists of graph neural networks: model, "
			       "graph, layers" },
	.knows = cognn_knows,
	.parse = cognn_parse,
};
