/* SPDX-License-Identifier: MIT */
#include "fs/server/gate.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CLOSED (1u << 31)

static void futex(uint32_t *word, int op, uint32_t value)
{
	syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

bool gate_enter(struct gate *g)
{
	if (!(__atomic_fetch_add(&g->state, 1, __ATOMIC_ACQ_REL) & CLOSED))
		return true;
	gate_leave(g);
	return false;
}

void gate_leave(struct gate *g)
{
	if (__atomic_sub_fetch(&g->state, 1, __ATOMIC_ACQ_REL) == CLOSED)
		futex(&g->state, FUTEX_WAKE, INT_MAX);
}

void gate_close(struct gate *g)
{
	__atomic_fetch_or(&g->state, CLOSED, __ATOMIC_ACQ_REL);
}

void gate_wait(struct gate *g)
{
	uint32_t state;

	while ((state = __atomic_load_n(&g->state, __ATOMIC_ACQUIRE)) != CLOSED)
		futex(&g->state, FUTEX_WAIT, state);
}
