/* SPDX-License-Identifier: MIT */
/*
 * Memory of a GPU that the training of a graph neural network needs, estimated
 * operator by operator. Source: Sun et al., "CoGNN", SC 2022, section 4.2; its
 * repository, guessmewho233/CoGNN_info_for_SC22, software/task/<model>.py:
 * PyTorch Geometric, full batches, 64 hidden features, 8 heads of attention,
 * and 15 % on top. That of the parameters' gradients and of the optimizer,
 * which is small, is not counted there.
 */
#ifndef GPEMU_SCHED_TRACE_GNN_H
#define GPEMU_SCHED_TRACE_GNN_H

#include <stdint.h>

enum gnn_model { GNN_GCN, GNN_SAGE, GNN_GAT, GNN_GIN, GNN_MODELS };

/* arbitrary: far beyond any network */
enum { GNN_LAYERS_MAX = 1000 };

extern const char *const gnn_models[GNN_MODELS];

struct gnn_graph {
	const char *name;
	double nodes, edges;
	uint32_t features, classes;
};

/* By name; NULL: unknown. */
const struct gnn_graph *gnn_graph(const char *name);
/* Bytes, with so many layers, from 2. */
double gnn_memory(enum gnn_model model, const struct gnn_graph *g,
		  uint32_t n_layers);

#endif
