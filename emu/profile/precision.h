/* SPDX-License-Identifier: MIT */
/*
 * The precision of a training step, and the bytes that each parameter of the
 * model then has. Sources: torch.autocast keeps parameters and gradients in
 * fp32 (PyTorch documentation, "Automatic Mixed Precision package"); training
 * in 16 bits keeps 16-bit parameters and gradients, and an fp32 copy of the
 * parameters for the optimiser (Micikevicius et al., "Mixed Precision
 * Training", ICLR 2018; Rajbhandari et al., "ZeRO", SC 2020, section 3.1);
 * fp8 holds for the operands of matrix products, the parameters stay in bf16
 * (Transformer Engine documentation, "Using FP8 with Transformer Engine").
 */
#ifndef GPEMU_EMU_PROFILE_PRECISION_H
#define GPEMU_EMU_PROFILE_PRECISION_H

#include <stdint.h>

#include "common/err.h"

struct precision {
	const char *name;
	/* bytes per parameter */
	uint32_t weight;
	uint32_t gradient;
	uint32_t master; /* the fp32 copy; 0: the weights are fp32 */
};

/* NULL and a text that lists the known ones. */
const struct precision *precision_find(const char *name, struct err *err);
/* A `check` of a conf_field: the text at `object`, a char **. */
int precision_check(const void *object, struct err *err);

#endif
