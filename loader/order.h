/* SPDX-License-Identifier: MIT */
/*
 * Plug-in kind `order`: in which order an epoch visits the samples.
 */
#ifndef GPEMU_LOADER_ORDER_H
#define GPEMU_LOADER_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/plugin.h"

struct order_ops {
	struct plugin plugin;
	/*
	 * Write the samples 0..n-1 of epoch `epoch` to `ret`, each once. The
	 * same seed, epoch and n give the same order on every machine.
	 */
	void (*fill)(uint64_t seed, uint64_t epoch, size_t n, uint32_t *ret);
};

extern const struct plugin *const order_table[];

#endif
