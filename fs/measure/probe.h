/* SPDX-License-Identifier: MIT */
/* Measures one point of a storage device, as a program on it sees it. */
#ifndef GPEMU_FS_MEASURE_PROBE_H
#define GPEMU_FS_MEASURE_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/program/child.h"
#include "common/tick.h"
#include "fs/measure/points.h"

/*
 * What is measured: a file to read from, and small files to look up. Made in a
 * folder of their own below the path that is measured, and removed again; or a
 * file of the user's, which is only read.
 */

/* Folders of small files, for all that is done with names. Arbitrary: enough
 * for quantiles, few enough to be made on a slow server. */
enum { AREA_FOLDERS = 16, AREA_FILES = 64 };

struct area {
	char *folder; /* NULL: the user's file */
	int dirfd;    /* of it, or -1 */
	int fd;	      /* the file to read from */
	uint64_t bytes;
	bool direct; /* read with O_DIRECT; else the page cache was asked to
		      * drop it, and reads may come from it */
};

/*
 * `path` is a folder, where at most `space` bytes are written, or a file of at
 * least 16 MiB. Shows progress. -errno with a text; -EINTR: `stop` came.
 */
int area_open(const char *path, uint64_t space, struct stop *stop,
	      struct area *ret, struct err *err);
/* Remove what was made. Safe on a failed area_open. */
void area_close(struct area *a);

/* The name of a small file, relative to dirfd. */
enum { AREA_NAME = 32 };
const char *area_name(unsigned folder, unsigned file, char buf[AREA_NAME]);

/* Drop cached data of the file, where it is not read directly. */
void area_forget(const struct area *a);

/* Bytes in flight at most. Arbitrary: no laptop lacks them. */
enum { PROBE_BYTES = 64 << 20 };

/*
 * Fill in the results of `p`: reads for `ns` of time, at least a few; names for
 * as long as they take, at most POINT_KEPT_MOST.
 * Reads go through io_uring, `p->depth` of them in flight from one thread.
 * -ENODATA: cannot be measured here, `why` (static) is the reason. -EINTR:
 * `stop` came. Else -errno with a text.
 */
int probe(const struct area *a, struct point *p, uint64_t ns, struct tick *tick,
	  struct stop *stop, const char **why, struct err *err);

#endif
