/* SPDX-License-Identifier: MIT */
/* gpemu-train's options about the node and its GPUs, and the record's `node`.
 */
#ifndef GPEMU_LOADER_OPTIONS_TRAIN_NODE_H
#define GPEMU_LOADER_OPTIONS_TRAIN_NODE_H

#include <jansson.h>

#include "emu/gpu/gpus.h"
#include "emu/profile/profile_gpu.h"
#include "emu/node/profile_node.h"
#include "emu/profile/profile_prep.h"
#include "loader/account/account.h"
#include "loader/dataset/dataset.h"
#include "loader/options/train_options.h"
#include "loader/options/train_prep.h"

struct train_node {
	struct node_profile profile; /* name NULL: no --node */
	struct gpus_config gpus;
	struct gpu_beside beside;
	double jitter;	       /* coefficient of variation of step times */
	struct dist_time step; /* of --step-time */
	bool step_given;
	struct prep_profile prep;
	const struct prep_profile *prep_gpu; /* NULL: not on the GPU */
	uint64_t model_transfer_ns;	     /* 0: left out */
};

/* Fill in options from the node that were not given: `gpus`, `gpu` (unless a
 * server has it), `cores`. -EINVAL with a text. */
int train_node_resolve(struct train_options *o, struct train_choice *ret,
		       struct err *err);
/* After that and train_prep_open, for a model of a GPU. Free with
 * train_node_close, failed or not; `ret` must not move until then. */
int train_node_open(const struct train_options *o, const struct train_choice *c,
		    const struct gpu_profile *gpu, const struct gpu_model *m,
		    const struct train_prep *prep, struct train_node *ret,
		    struct err *err);
/* Fills in `beside` and checks whether a batch fits, as gpu_check_batch. For
 * raw samples the file sizes count once they are known. */
int train_node_fit(const struct train_options *o, const struct train_choice *c,
		   const struct gpu_profile *gpu, const struct gpu_model *m,
		   const struct train_prep *prep, const struct dataset *data,
		   struct train_node *n, struct err *err);
void train_node_close(struct train_node *n);

/* Samples per step over all GPUs; samples per batch of the pipeline. */
uint64_t train_step_samples(const struct train_options *o);
uint64_t train_pipeline_batch(const struct train_options *o,
			      const struct train_choice *c);

/* Add cost_usd and energy_kwh of one or several epochs to their JSON: null
 * without a node, or if the node's price or power is unknown. */
void train_node_add_cost(const struct train_node *n,
			 const struct train_account *a, json_t *j);

json_t *train_node_json(const struct train_node *n,
			const struct train_options *o);

#endif
