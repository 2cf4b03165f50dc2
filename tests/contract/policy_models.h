/* SPDX-License-Identifier: MIT */
/*
 * A second implementation of the cache policies from their papers, as simple as
 * possible: arrays, linear search, keys below MODEL_KEYS. One object is one
 * unit, unless the model is `sized`.
 */
#ifndef GPEMU_TESTS_CONTRACT_POLICY_MODELS_H
#define GPEMU_TESTS_CONTRACT_POLICY_MODELS_H

#include <stdbool.h>

enum { MODEL_KEYS = 512 };

/* Keys in order; v[0] is the newest. */
struct seq {
	int v[MODEL_KEYS], n;
};

/* Zeroed but for cap and size[] it is an empty cache. */
struct model {
	int cap;
	struct seq a, b, ga, gb;
	int used[MODEL_KEYS], count[MODEL_KEYS], ring[MODEL_KEYS];
	int size[MODEL_KEYS];
	long stamp[MODEL_KEYS];
	double value[MODEL_KEYS];
	double p, inflation;
	long now, age;
	int hand, n_counted;
};

struct model_policy {
	const char *name;
	/* One request: was it a hit? */
	bool (*ask)(struct model *m, int key);
	bool sized;
};

extern const struct model_policy model_policies[]; /* ends with a NULL name */

#endif
