/* SPDX-License-Identifier: MIT */
/*
 * A progress bar on stderr, redrawn in place at most ten times a second:
 *
 *	label  [=======>          ]  41 %  1234/3000  12 s left  note
 *
 * One thread draws; on a terminal only, unless forced.
 */
#ifndef GPEMU_COMMON_PROGRAM_PROGRESS_H
#define GPEMU_COMMON_PROGRAM_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

enum progress_mode { PROGRESS_AUTO, PROGRESS_ON, PROGRESS_OFF };

struct progress {
	const char *label; /* borrowed */
	uint64_t total;
	bool shown;
	bool drawn;
	uint64_t start_wall, last_wall;
};

/* "auto", "on" or "off". */
int progress_parse(const char *s, enum progress_mode *ret, struct err *err);
void progress_init(struct progress *p, const char *label, uint64_t total,
		   enum progress_mode mode);
/* `note` may be NULL. */
void progress_update(struct progress *p, uint64_t done, const char *note);
/* Remove the bar: what follows starts on a clean line. */
void progress_end(struct progress *p);

#endif
