/* SPDX-License-Identifier: MIT */
/*
 * What the forward pass keeps for the backward pass adds up layer by layer
 * (`kept`); the most that there is at any time, with what an operator needs
 * while it runs, is the peak.
 */
#include "sched/trace/gnn.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "common/util.h"

const char *const gnn_models[GNN_MODELS] = {
	[GNN_GCN] = "GCN",
	[GNN_SAGE] = "GraphSAGE",
	[GNN_GAT] = "GAT",
	[GNN_GIN] = "GIN",
};

/* Source: Wang et al., "TC-GNN", USENIX ATC 2023, table 4;
 * TWITTER-Real-Graph-Partial: Wang et al., "GNNAdvisor", OSDI 2021, table 1. */
static const struct gnn_graph graphs[] = {
	{ "citeseer", 3327, 9464, 3703, 6 },
	{ "cora", 2708, 10858, 1433, 7 },
	{ "pubmed", 19717, 88676, 500, 3 },
	{ "ppi", 56944, 818716, 50, 121 },
	{ "PROTEINS_full", 43471, 162088, 29, 2 },
	{ "OVCAR-8H", 1890931, 3946402, 66, 2 },
	{ "Yeast", 1714644, 3636546, 74, 2 },
	{ "DD", 334925, 1686092, 89, 2 },
	{ "TWITTER-Real-Graph-Partial", 580768, 1435116, 1323, 2 },
	{ "artist", 50515, 1638396, 100, 12 },
	{ "com-amazon", 334863, 1851744, 96, 22 },
	{ "soc-BlogCatalog", 88784, 2093195, 128, 39 },
	{ "amazon0601", 403394, 3387388, 96, 22 },
};

enum { HIDDEN = 64, HEADS = 8, FLOAT = 4, INDEX = 8, MARGIN_PERCENT = 15 };

/* PyTorch allocates multiples of it. */
enum { BLOCK = 512 };

struct account {
	double kept, peak;
};

static double block(double bytes)
{
	return BLOCK * ceil(bytes / BLOCK);
}

static double floats(double n, uint32_t features)
{
	return block(n * features * FLOAT);
}

static void keep_bytes(struct account *a, double bytes)
{
	a->kept += bytes;
	a->peak = MAX(a->peak, a->kept);
}

/* Needed while an operator runs, and then no more. */
static void pass(struct account *a, double bytes)
{
	a->peak = MAX(a->peak, a->kept + bytes);
}

const struct gnn_graph *gnn_graph(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(graphs); i++)
		if (!strcmp(graphs[i].name, name))
			return &graphs[i];
	return NULL;
}

/* A layer has so many features before it and after it. */
struct layer {
	uint32_t in, out;
};

static struct layer layer_of(const struct gnn_graph *g, uint32_t i, uint32_t n)
{
	return (struct layer){ i ? HIDDEN : g->features,
			       i == n - 1 ? g->classes : HIDDEN };
}

/* --- the models ----------------------------------------------------------- */

static void gcn(struct account *a, const struct gnn_graph *g, uint32_t n)
{
	/* each node gets an edge to itself */
	double edges = g->edges + g->nodes;

	keep_bytes(a, block(g->edges * FLOAT)); /* weights */
	for (uint32_t i = 0; i < n; i++) {
		struct layer l = layer_of(g, i, n);

		keep_bytes(a, 2 * floats(g->nodes, l.out) +
				      block(edges * 2 * INDEX) +
				      block(edges * FLOAT));
		pass(a, block(edges * 2 * l.out * FLOAT));
	}
}

static void sage(struct account *a, const struct gnn_graph *g, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct layer l = layer_of(g, i, n);

		keep_bytes(a, floats(g->nodes, l.in));
		pass(a, floats(g->edges, l.in));
		keep_bytes(a, 2 * floats(g->nodes, l.out));
	}
}

static void gin(struct account *a, const struct gnn_graph *g, uint32_t n)
{
	double hidden = floats(g->nodes, HIDDEN);

	/* the last layer is a linear one */
	for (uint32_t i = 0; i < n - 1; i++) {
		uint32_t in = layer_of(g, i, n).in;

		keep_bytes(a, floats(g->nodes, in));
		pass(a, floats(g->edges, in));
		keep_bytes(a, (i ? 4 : 5) * hidden);
	}
	keep_bytes(a, 2 * (hidden + floats(g->nodes, g->classes)));
	pass(a, hidden);
}

/*
 * Attention is a score of each edge in each head. Its operators one by one:
 * linear, self loops, scores, leaky ReLU, softmax in five steps, messages,
 * sums; of their peaks three can be the largest.
 */
static void gat(struct account *a, const struct gnn_graph *g, uint32_t n)
{
	double edges = g->edges + g->nodes;
	double index = block(edges * 2 * INDEX);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t out = layer_of(g, i, n).out;
		uint32_t heads = i == n - 1 ? 1 : HEADS;
		double node = floats(g->nodes, out);
		double self = floats(g->nodes, heads);
		double message = floats(edges, out);
		double score = floats(edges, heads);

		pass(a, 2 * (node + self));
		pass(a, node + self + index + message + 10 * score);
		pass(a, 2 * node + self + index + 2 * message + 7 * score);
		keep_bytes(a, 2 * node - self + index + message + 5 * score);
	}
	/* gradients of the last hidden layer */
	pass(a, 2 * floats(g->nodes, HIDDEN) + 16 * floats(edges, HEADS));
}

double gnn_memory(enum gnn_model model, const struct gnn_graph *g,
		  uint32_t n_layers)
{
	static void (*const models[])(struct account *,
				      const struct gnn_graph *, uint32_t) = {
		[GNN_GCN] = gcn,
		[GNN_SAGE] = sage,
		[GNN_GAT] = gat,
		[GNN_GIN] = gin,
	};
	struct account a = { 0 };
	double parameters = 0;

	keep_bytes(&a, block(g->edges * 2 * INDEX) +
			       floats(g->nodes, g->features) +
			       block(g->nodes * INDEX)); /* labels */
	models[model](&a, g, n_layers);
	for (uint32_t i = 0; i < n_layers; i++) {
		struct layer l = layer_of(g, i, n_layers);

		parameters += floats(l.in, l.out);
	}
	return block(floor(a.peak * (100 + MARGIN_PERCENT) / 100)) + parameters;
}
