/* SPDX-License-Identifier: MIT */
/*
 * A one-way link between two pipes: what comes in on standard input goes out
 * on standard output so many ms later, no faster than so many MB a second.
 *
 *	bench_link MS MB_PER_S
 *
 * With two of them and sftp-server, sshfs -o passive mounts a folder of this
 * machine as if it were far away (truth_storage.py).
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/tick.h"
#include "common/units.h"

enum {
	N_PIECES = 1024, /* on their way; further input waits in its pipe */
	PIECE_BYTES = 64 << 10,
};

struct piece {
	uint64_t due_ns;
	size_t bytes;
	char data[PIECE_BYTES];
};

struct link {
	uint64_t delay_ns;
	double ns_per_byte;
	uint64_t free_ns; /* when the last byte taken has left the sender */
	unsigned long taken, given;
	struct piece pieces[N_PIECES];
};

static struct piece *next_due(struct link *l)
{
	return l->given == l->taken ? NULL : &l->pieces[l->given % N_PIECES];
}

/* Until there is input or a piece is due. Is there input? */
static bool wait_input(struct link *l, bool open)
{
	struct pollfd in = {
		.fd = open && l->taken - l->given < N_PIECES ? STDIN_FILENO
							     : -1,
		.events = POLLIN,
	};
	struct piece *p = next_due(l);

	return tick_poll(&in, 1, p ? p->due_ns : TICK_NEVER) > 0;
}

/* One piece from standard input; false at its end. */
static bool take(struct link *l)
{
	struct piece *p = &l->pieces[l->taken % N_PIECES];
	uint64_t now = tick_wall();
	ssize_t n = read(STDIN_FILENO, p->data, sizeof(p->data));

	if (n <= 0)
		return n < 0 && errno == EINTR;
	l->free_ns = (l->free_ns > now ? l->free_ns : now) +
		     (uint64_t)((double)n * l->ns_per_byte);
	p->due_ns = l->free_ns + l->delay_ns;
	p->bytes = (size_t)n;
	l->taken++;
	return true;
}

/* All that is due; false if nobody reads it. */
static bool give(struct link *l)
{
	struct piece *p;

	while ((p = next_due(l)) && p->due_ns <= tick_wall()) {
		for (size_t at = 0; at < p->bytes;) {
			ssize_t n = write(STDOUT_FILENO, p->data + at,
					  p->bytes - at);

			if (n < 0)
				return false;
			at += (size_t)n;
		}
		l->given++;
	}
	return true;
}

int main(int argc, char **argv)
{
	static struct link l;
	double ms = argc == 3 ? atof(argv[1]) : -1;
	double mb_per_s = argc == 3 ? atof(argv[2]) : -1;
	bool open = true;

	if (!(ms >= 0) || !(mb_per_s > 0)) {
		fprintf(stderr, "usage: bench_link MS MB_PER_S\n");
		return 2;
	}
	l.delay_ns = (uint64_t)(ms * NS_PER_MS);
	l.ns_per_byte = (double)NS_PER_S / (mb_per_s * 1e6);
	while (open || next_due(&l)) {
		if (wait_input(&l, open))
			open = take(&l);
		if (!give(&l))
			break;
	}
	return 0;
}
