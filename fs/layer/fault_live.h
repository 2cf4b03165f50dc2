/* SPDX-License-Identifier: MIT */
/* Rules of faults in force, with what they matched so far. Plain lists: whose
 * they are locks them. */
#ifndef GPEMU_FS_LAYER_FAULT_LIVE_H
#define GPEMU_FS_LAYER_FAULT_LIVE_H

#include "fs/layer/fault.h"

struct fault_live {
	struct fault_rule rule;
	uint32_t id;
	uint64_t matched, fired;
	uint64_t hidden_matched, hidden_fired; /* before the last reset */
	uint64_t held;
	struct fault_live *prev, *next; /* utlist */
};

/* What the rules together want of an operation. */
struct verdict {
	int error;
	uint64_t delay_ns;
	bool stuck;    /* for delay_ns, or for ever when that is 0 */
	uint32_t rule; /* who holds it; 0: nobody */
};

/* Rules in words (fs/layer/fault.h), without ids yet. -EINVAL, -ENOMEM; with a
 * text. */
int fault_live_parse(const char *text, struct fault_live **ret,
		     struct err *err);
void fault_live_free(struct fault_live *rules);
/* Every rule counts what it matches and says what it wants. */
struct verdict fault_live_judge(struct fault_live *rules, unsigned op,
				const char *path, uint64_t seed);
/* Is there one that an operation on `path` may still meet? */
bool fault_live_may(const struct fault_live *rules, unsigned op,
		    const char *path);

#endif
