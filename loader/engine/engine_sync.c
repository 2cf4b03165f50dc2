/* SPDX-License-Identifier: MIT */
/*
 * The structure of PyTorch's DataLoader: a worker owns a batch, and opens,
 * reads and closes its files one after the other with blocking calls. The
 * reference for every other engine.
 */
#include "loader/engine/engine.h"

#include "loader/engine/readfile.h"

struct sync {
	uint32_t direct;
};

static int init_sync(void *state, const struct engine_config *c,
		     struct err *err)
{
	struct sync *s = state;

	(void)err;
	s->direct = c->direct;
	return 0;
}

static int next_sync(void *state, struct feed *feed, struct engine_fetch **ret,
		     struct err *err)
{
	struct sync *s = state;
	struct engine_fetch *f;
	int r = feed_take(feed, true, &f);

	(void)err;
	if (r < 0)
		return r;
	feed_done(feed, f, readfile(f, s->direct));
	*ret = f;
	return 0;
}

const struct engine_ops engine_sync = {
	.plugin = { .name = "sync",
		    .summary = "blocking reads, a worker owns a batch, as "
			       "PyTorch's DataLoader",
		    .state_size = sizeof(struct sync) },
	.whole_batches = true,
	.can_direct = true,
	.init = init_sync,
	.next = next_sync,
};
