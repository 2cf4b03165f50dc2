/* SPDX-License-Identifier: MIT */
/*
 * Who is inside, and a door that closes. Entering and leaving take an atomic
 * operation each and never wait. A zeroed gate is open and empty.
 */
#ifndef GPEMU_FS_SERVER_GATE_H
#define GPEMU_FS_SERVER_GATE_H

#include <stdbool.h>
#include <stdint.h>

struct gate {
	uint32_t state; /* atomic: how many are inside; top bit: closed */
};

/* false: it is closed, and the caller is outside. */
bool gate_enter(struct gate *g);
void gate_leave(struct gate *g);
/* For good. Who is inside stays. */
void gate_close(struct gate *g);
/* Until all have left; of a closed gate. */
void gate_wait(struct gate *g);

#endif
