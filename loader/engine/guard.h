/* SPDX-License-Identifier: MIT */
/*
 * Copies out of memory maps of files. A page that the file no longer has, or
 * that its device cannot read, raises SIGBUS in the thread that touches it. A
 * guarded copy ends there; any other SIGBUS goes to the handler that the
 * process had before.
 */
#ifndef GPEMU_LOADER_ENGINE_GUARD_H
#define GPEMU_LOADER_ENGINE_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/*
 * From now on copies are guarded, in all threads. Each call needs a guard_end;
 * the last one restores the handler that was there before, unless another part
 * of the process has installed its own meanwhile. Such a handler gets the
 * faults of our copies, too, until the next guard_begin. -EBUSY: others have
 * installed handlers over ours too often.
 */
int guard_begin(void);
void guard_end(void);

struct guard_copy {
	void *to;
	const void *from; /* in a map */
	size_t n;
	/* set: a byte of it cannot be read, and those at `to` are undefined */
	bool failed;
};

/* Makes copy i, or something else that reads its source, and that may be left
 * by a jump. */
typedef void guard_make(void *ctx, size_t i);

/* Make `n` copies; `make` NULL: as memcpy does. Between guard_begin and
 * guard_end, in a thread that does not block SIGBUS. */
void guard_copies(struct guard_copy *c, size_t n, guard_make *make, void *ctx);

/* One; false: it failed. */
static inline bool guard_copy(void *to, const void *from, size_t n)
{
	struct guard_copy c = { .to = to, .from = from, .n = n };

	guard_copies(&c, 1, NULL, NULL);
	return !c.failed;
}

#endif
