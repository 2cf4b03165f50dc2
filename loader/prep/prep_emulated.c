/* SPDX-License-Identifier: MIT */
/*
 * The transforms of a larger node: a sample takes a profile's time on a virtual
 * core, and nothing is computed. The host chooses the core and the completion
 * time (emu/node/cores.h).
 */
#include <errno.h>

#include "emu/profile/profile_prep.h"
#include "loader/prep/prep.h"

struct emulated {
	const struct prep_profile *profile;
	size_t sample_bytes;
};

static int init_emulated(void *state, const struct prep_config *c,
			 struct err *err)
{
	struct emulated *e = state;

	if (!c->profile)
		return err_set(err, -EINVAL, "prep emulated needs a profile");
	e->profile = c->profile;
	e->sample_bytes = prep_image_bytes(c->side, c->output);
	return 0;
}

static size_t sample_bytes(const void *state)
{
	const struct emulated *e = state;

	return e->sample_bytes;
}

static uint64_t cost(void *state, size_t n, struct rng *rng)
{
	const struct emulated *e = state;

	return prep_profile_cost(e->profile, n, rng);
}

const struct prep_ops prep_emulated = {
	.plugin = { .name = "emulated",
		    .summary = "virtual cores and a cost per sample from a "
			       "profile; nothing is computed",
		    .state_size = sizeof(struct emulated) },
	.init = init_emulated,
	.sample_bytes = sample_bytes,
	.cost = cost,
};
