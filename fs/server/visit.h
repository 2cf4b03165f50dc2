/* SPDX-License-Identifier: MIT */
/*
 * What was read of a file that is open: which of its extents were counted in
 * this epoch, and which object was paid for last. Pure; of the handles of a
 * mount (handle.h) and of the shards of a simulation.
 */
#ifndef GPEMU_FS_SERVER_VISIT_H
#define GPEMU_FS_SERVER_VISIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Extent of a large file. Source: design target, the unit that hits are
 * counted in; four times the largest FUSE read, so that streaming pays the
 * device's latency once per 4 MiB. */
#define OBJECT_EXTENT (4u << 20)

struct visit {
	/* key of the object read last, or 0. Its other chunks need no second
	 * fetch, even if the object is gone and its bytes are read again */
	uint64_t paid;
	uint64_t end;	/* of the last read */
	uint64_t epoch; /* to which `seen` belongs */
	uint64_t *seen; /* visit_words: bit e: extent e was counted */
};

static inline size_t visit_words(uint64_t file_bytes)
{
	return file_bytes / OBJECT_EXTENT / 64 + 1;
}

/* Before each read of [offset, end): in another epoch than the last one all
 * extents are counted again. True: and the last object is to be paid for again,
 * as this read does not go on behind that one. */
static inline bool visit_turn(struct visit *v, uint64_t epoch,
			      uint64_t file_bytes, uint64_t offset,
			      uint64_t end)
{
	uint64_t last = v->end;

	v->end = end;
	if (v->epoch == epoch)
		return false;
	v->epoch = epoch;
	memset(v->seen, 0, visit_words(file_bytes) * sizeof(*v->seen));
	if (offset >= last)
		return false;
	v->paid = 0;
	return true;
}

/* Its first access in this epoch? Marks it. */
static inline bool visit_first(struct visit *v, uint64_t extent)
{
	uint64_t bit = 1ull << (extent % 64), *word = &v->seen[extent / 64];
	bool first = !(*word & bit);

	*word |= bit;
	return first;
}

#endif
