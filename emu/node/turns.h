/* SPDX-License-Identifier: MIT */
/*
 * Jobs that take turns: each uses one resource at a time, no two use the same,
 * and all go on to the next together. Source: Zhao et al., "Multi-resource
 * interleaving for deep learning training" (Muri), SIGCOMM 2022, section 4.
 *
 *	phase		0	1	2	3	4
 *	offset 0	storage	CPU	GPU	network	storage
 *	offset 1	network	storage	CPU	GPU	network
 *
 * Nobody coordinates them. They share a file, which each has opened by itself,
 * and in it each has a byte locked, F_OFD_SETLKW of fcntl(2):
 *
 *	byte 3 * index + phase % 3	of the job, while it is in that phase
 *
 * A job leaves a phase by locking its byte of the next one, unlocking that of
 * this one, and waiting until all others have unlocked theirs. So no job is
 * more than one phase ahead of another, and three bytes are enough. The kernel
 * drops the locks of a job that ends, however: it holds up nobody.
 */
#ifndef GPEMU_EMU_NODE_TURNS_H
#define GPEMU_EMU_NODE_TURNS_H

#include <stdint.h>

#include "common/err.h"

enum turn { TURN_STORAGE, TURN_CPU, TURN_GPU, TURN_NETWORK, TURNS };

/* Emulated ns of the stages of an iteration but that of the GPU. `load`:
 * storage and CPU together, in any parts. */
struct turns_stages {
	uint64_t storage_ns, cpu_ns, load_ns, network_ns;
};

struct turns {
	uint64_t fd; /* the file, inherited */
	uint64_t index, members;
	uint64_t offset; /* phases by which it is behind */
	uint64_t phase;
};

/* "storage=80ms,cpu=4ms,load=0ms,network=1ms", any of them. -EINVAL with a
 * text. */
int turns_parse_stages(const char *text, struct turns_stages *ret,
		       struct err *err);
/* "fd=7,index=0,members=4,offset=1": in phase 0. -EINVAL with a text; -EBADF:
 * there is no such descriptor. */
int turns_parse(const char *text, struct turns *ret, struct err *err);
/* The lock of a job, whose own description of the file is `fd`, in phase 0; for
 * the process that starts it. -errno. */
int turns_enter(int fd, uint64_t index);

/* Wait until it is this job's turn to use the resource, which ends its use of
 * another one. -errno. */
int turns_take(struct turns *t, enum turn turn);
/* It takes no part any more. */
void turns_leave(struct turns *t);

#endif
