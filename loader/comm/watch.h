/* SPDX-License-Identifier: MIT */
/*
 * Detects that the process of another rank has died. MPI does not report it: a
 * collective waits for a dead rank for ever.
 *
 * Each rank keeps a TCP connection to rank 0. The kernel closes it when a
 * process ends, however it ends; a machine that is gone is noticed after some
 * seconds without a reply. Rank 0 names the dead rank to all others.
 *
 *	rank 0		watch_listen(&w, ...); the door goes to all ranks
 *			watch_accept(&w, ranks - 1)
 *	others		watch_connect(&w, &door, rank)
 *	all		watch_wait() instead of sleeping
 *
 * A rank that connects shows the door's key, and rank 0 shows its own in
 * return: no stranger can pose as a rank, nor as rank 0 where several
 * machines have the same address. If all ranks share a machine, rank 0
 * listens on loopback.
 */
#ifndef GPEMU_LOADER_COMM_WATCH_H
#define GPEMU_LOADER_COMM_WATCH_H

#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

enum { WATCH_KEY = 16, WATCH_ADDRESSES = 8 };

/* Where rank 0 listens. Plain bytes, for ranks of the same build. */
struct watch_door {
	uint8_t key[WATCH_KEY], own[WATCH_KEY]; /* shown by others, rank 0 */
	uint32_t n;
	struct sockaddr_in address[WATCH_ADDRESSES];
};

struct comm_watch {
	/* called in watch_wait, at most once */
	void (*died)(void *ctx, uint32_t rank);
	void *ctx;
	/* private */
	bool first; /* rank 0 */
	int listening;
	uint8_t key[WATCH_KEY], own[WATCH_KEY];
	struct pollfd *fd; /* [0] is watch_wait's; then connections */
	uint32_t *rank;	   /* the rank at the other end */
	unsigned n;	   /* of both, at least 1 */
};

/* `ranks`: of the run. -ENOMEM. Close with watch_close, failed or not. */
int watch_init(struct comm_watch *w, uint32_t ranks);
/* `local`: all ranks are on this machine. -errno with a text. */
int watch_listen(struct comm_watch *w, bool local, struct watch_door *ret,
		 struct err *err);
/* Until `n` ranks have connected. -ETIMEDOUT with a text. */
int watch_accept(struct comm_watch *w, uint32_t n, struct err *err);
/* -ENOTCONN with a text. */
int watch_connect(struct comm_watch *w, const struct watch_door *door,
		  uint32_t rank, struct err *err);

/* Sleep until `fd` is readable (< 0: none) or for `ns`, TICK_NEVER for ever.
 * True: it is readable. */
bool watch_wait(struct comm_watch *w, int fd, uint64_t ns);

/* All ranks end: from now on a rank may go. */
void watch_close(struct comm_watch *w);

#endif
