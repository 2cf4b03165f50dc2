/* SPDX-License-Identifier: MIT */
/*
 * The points at which a storage device is measured, and what was found there.
 * Each is a line of a state file at once, so that a stopped run goes on.
 */
#ifndef GPEMU_FS_MEASURE_POINTS_H
#define GPEMU_FS_MEASURE_POINTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"
#include "common/hist.h"
#include "common/units.h"

enum point_kind {
	POINT_RANDOM,	  /* reads at multiples of their size */
	POINT_SEQUENTIAL, /* each read goes on where the last one ended */
	POINT_GET,	  /* of a part of an object: the durations are those to
			   * its first byte */
	POINT_LOOKUP,	  /* of a name not known to the kernel */
	POINT_OPEN,	  /* of a file whose name is known */
	POINT_READDIR,	  /* of a folder of AREA_FILES names; of a bucket: one
			   * page of a listing */
	POINT_KEPT,	  /* not an operation: for how long a name that was
			   * looked up stays known to the kernel */
	POINT_N_KINDS
};

/* From 0 to 1, closer together in the tail, where a line between two of them
 * would be far from what was measured. */
enum { POINT_QUANTILES = 22 };
extern const double point_quantiles[POINT_QUANTILES];
enum { POINT_P50 = 8, POINT_P99 = 16 }; /* places in that list */

struct point {
	enum point_kind kind;
	uint64_t bytes; /* of a read */
	uint64_t depth; /* operations in flight */
	uint64_t want;	/* of an object store: so many requests */
	/* results; n is 0 before */
	uint64_t n;
	double rest_ns; /* median of a GET, from its first byte to the last */
	double mean_ns;
	double per_s;		    /* operations; POINT_KEPT: 0 */
	double ns[POINT_QUANTILES]; /* of their durations */
};

/* A name that is known for so long is taken to be known for ever. Arbitrary:
 * beyond FUSE's 1 s and the first 3 s of NFS. */
#define POINT_KEPT_MOST (5 * NS_PER_S)

enum { POINTS_MAX = 64 };
/* Sizes of reads, bytes: the shortest; one between the next two of which
 * several depths are measured; the longest that no kernel or server cuts into
 * pieces. Source: FUSE's max_pages, the usual rsize of NFS. */
enum {
	POINTS_LEAST = 4 << 10,
	POINTS_BETWEEN = 32 << 10,
	POINTS_PIECE = 1 << 20,
	POINTS_LONGEST = 16 << 20
};
struct points {
	struct point point[POINTS_MAX];
	size_t n;
};

/* All points, without results. Reads have at most `most` bytes in flight. */
void points_all(struct points *ret, uint64_t most);
/*
 * The points of an object store, whose pages of listings have `page` bytes and
 * whose objects have `largest`: of all together `want` is at most `requests`,
 * and what they transfer at most `bytes`. At least POINTS_REQUESTS and
 * POINTS_BYTES of them.
 */
enum { POINTS_REQUESTS = 200, POINTS_BYTES = 64 << 20 };
void points_bucket(struct points *ret, uint64_t requests, uint64_t bytes,
		   uint64_t page, uint64_t largest);
/* Fill in quantiles and the rate: `n` operations in `ns`. */
void point_fill(struct point *p, const struct hist *h, uint64_t n, uint64_t ns);

/* "random", ...; the read size and depth follow in points_text. */
enum { POINT_TEXT = 64 };
const char *point_text(const struct point *p, char buf[POINT_TEXT]);

/* The point of that kind, size and depth if it has results, or NULL. */
const struct point *points_find(const struct points *p, enum point_kind kind,
				uint64_t bytes, uint64_t depth);

/*
 * Take results from the state file of an earlier run of the same measurement,
 * and open it to append to. -errno with a text, "file:line: what"; -EINVAL: it
 * is of another path or space.
 */
int points_resume(struct points *p, const char *file, const char *what,
		  FILE **ret, struct err *err);
/* Append one. -errno. */
int point_save(const struct point *p, FILE *f);

#endif
