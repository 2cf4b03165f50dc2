/* SPDX-License-Identifier: MIT */
/* Where completed batches come from: the workers of this process, as they fill
 * them or gathered from single samples, or a staging area that several jobs
 * fill. The functions are those of flow.h, gather.h, staged.h. */
#ifndef GPEMU_LOADER_PIPELINE_SUPPLY_H
#define GPEMU_LOADER_PIPELINE_SUPPLY_H

#include "loader/pipeline/flow.h"
#include "loader/pipeline/gather.h"
#include "loader/pipeline/staged.h"

struct supply {
	struct flow *flow;
	struct staged *staged; /* NULL: no other jobs */
	struct gather *gather; /* NULL: the workers' batches */
};

static inline int supply_next(const struct supply *s, uint64_t deadline,
			      struct batch **ret)
{
	return s->staged   ? staged_next(s->staged, deadline, ret)
	       : s->gather ? gather_next(s->gather, deadline, ret)
			   : flow_next(s->flow, deadline, ret);
}

static inline void supply_release(const struct supply *s, struct batch *b)
{
	if (s->staged)
		staged_release(s->staged, b);
	else if (s->gather)
		gather_release(s->gather, b);
	else
		flow_release(s->flow, b);
}

static inline uint32_t supply_n_complete(const struct supply *s)
{
	return s->staged   ? staged_n_complete(s->staged)
	       : s->gather ? gather_n_complete(s->gather)
			   : flow_n_complete(s->flow);
}

#endif
