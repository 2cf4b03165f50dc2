/* SPDX-License-Identifier: MIT */
/* Adapts a user's engine (gpemu.h) to the loader (loader/engine/engine.h). */
#ifndef GPEMU_LIB_ENGINE_H
#define GPEMU_LIB_ENGINE_H

#include "include/gpemu.h"
#include "loader/engine/engine.h"

struct own_engine {
	struct engine_ops ops; /* for the loader */
	struct gpemu_engine engine;
};

/* -EINVAL with a text: the struct is invalid. `ret` must not move while its
 * `ops` are in use. */
int own_engine_init(struct own_engine *ret, const struct gpemu_engine *engine,
		    struct err *err);

#endif
