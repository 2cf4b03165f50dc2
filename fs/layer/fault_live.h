/* SPDX-License-Identifier: MIT */
/* Fault rules in force, with their counts of matches. Plain lists; the owner
 * locks them. */
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

/* The joint decision of all rules on an operation. */
struct verdict {
	int error;
	uint64_t delay_ns;
	bool stuck;    /* for delay_ns, or for ever when that is 0 */
	uint32_t rule; /* id of the rule that holds it; 0: none */
};

/* Parse rules (fs/layer/fault.h); they have no ids yet. -EINVAL, -ENOMEM; with
 * a text. */
int fault_live_parse(const char *text, struct fault_live **ret,
		     struct err *err);
void fault_live_free(struct fault_live *rules);
/* Every rule counts the operation if it matches; returns their decision. */
struct verdict fault_live_judge(struct fault_live *rules, unsigned op,
				const char *path, uint64_t seed);
/* May a rule still fire on an operation on `path`? */
bool fault_live_may(const struct fault_live *rules, unsigned op,
		    const char *path);

#endif
