/* SPDX-License-Identifier: MIT */
/* gpemu-train's options about the model: its variant, its sequences, and the
 * bytes of its gradients and of its state. */
#ifndef GPEMU_LOADER_OPTIONS_TRAIN_MODEL_H
#define GPEMU_LOADER_OPTIONS_TRAIN_MODEL_H

#include "emu/profile/profile_gpu.h"
#include "loader/options/train_options.h"

/*
 * With --sequence-length: the format and the transforms of tokens, where they
 * are not given, and their own option of that name. Called again, it changes
 * nothing. -EINVAL, -ENOMEM with a text.
 */
int train_model_resolve(struct train_options *o, struct err *err);

/* The model's table, as variant_find (variant.h). */
const struct gpu_model *train_model_find(const struct train_options *o,
					 const struct gpu_profile *gpu,
					 struct err *err);

/* Bytes of the gradients, and of the parameters as the GPUs compute with them:
 * 4 per parameter without --precision. */
uint64_t train_model_gradient_bytes(const struct train_options *o,
				    const struct gpu_model *m);
uint64_t train_model_weight_bytes(const struct train_options *o,
				  const struct gpu_model *m);

/*
 * Bytes of a checkpoint: --checkpoint-size, or per parameter the weights, their
 * fp32 copy if --precision has one, and the state of the optimiser: a momentum
 * in fp32 (SGD), or two (AdamW). With --parallel fsdp each rank saves its share
 * of that. 0: the number of parameters is not known.
 */
uint64_t train_model_state_bytes(const struct train_options *o,
				 const struct gpu_model *m);

#endif
