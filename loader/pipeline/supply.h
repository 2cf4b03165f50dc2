/* SPDX-License-Identifier: MIT */
/* Where completed batches come from: the workers of this process, or a staging
 * area that several jobs fill. The functions are those of flow.h, staged.h. */
#ifndef GPEMU_LOADER_PIPELINE_SUPPLY_H
#define GPEMU_LOADER_PIPELINE_SUPPLY_H

#include "loader/pipeline/flow.h"
#include "loader/pipeline/staged.h"

struct supply {
	struct flow *flow;
	struct staged *staged; /* NULL: no other jobs */
};

static inline int supply_next(const struct supply *s, uint64_t deadline,
			      struct batch **ret)
{
	return s->staged ? staged_next(s->staged, deadline, ret)
			 : flow_next(s->flow, deadline, ret);
}

static inline void supply_release(const struct supply *s, struct batch *b)
{
	if (s->staged)
		staged_release(s->staged, b);
	else
		flow_release(s->flow, b);
}

static inline uint32_t supply_n_complete(const struct supply *s)
{
	return s->staged ? staged_n_complete(s->staged)
			 : flow_n_complete(s->flow);
}

#endif
