/* SPDX-License-Identifier: MIT */
/*
 * Counts the calls inside, and closes. Entering and leaving take one atomic
 * operation each and never wait. A zeroed gate is open and empty.
 */
#ifndef GPEMU_FS_SERVER_GATE_H
#define GPEMU_FS_SERVER_GATE_H

#include <stdbool.h>
#include <stdint.h>

struct gate {
	uint32_t state; /* atomic: number of calls inside; top bit: closed */
};

/* false: the gate is closed, and was not entered. */
bool gate_enter(struct gate *g);
void gate_leave(struct gate *g);
/* Permanent. Calls that are inside continue. */
void gate_close(struct gate *g);
/* Wait until all calls have left; the gate must be closed. */
void gate_wait(struct gate *g);

#endif
