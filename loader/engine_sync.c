/* SPDX-License-Identifier: MIT */
/*
 * The shape of PyTorch's DataLoader: a worker owns a batch, and opens, reads
 * and closes its files one after the other with blocking calls. The reference
 * that every other engine is compared with.
 */
#include "loader/engine.h"

#include "loader/readfile.h"

static int next(void *state, struct feed *feed, struct fetch **ret,
		struct err *err)
{
	struct fetch *f;
	int r = feed_take(feed, true, &f);

	(void)state;
	(void)err;
	if (r < 0)
		return r;
	feed_done(feed, f, readfile(f));
	*ret = f;
	return 0;
}

const struct engine_ops engine_sync = {
	.plugin = { .name = "sync",
		    .summary = "blocking reads, a worker owns a batch, as "
			       "PyTorch's DataLoader" },
	.whole_batches = true,
	.next = next,
};
