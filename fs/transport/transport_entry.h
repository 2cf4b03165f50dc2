/* SPDX-License-Identifier: MIT */
/*
 * The entries of a queue (fs/transport/transport_queue.h): memory that the
 *kernel fills with a request, and that goes back with the answer.
 *
 * libfuse is told another number of a request than the kernel's, its unique:
 * where it is, and a serial number, so that a second answer finds nothing.
 *
 *	63  62..47  46..31  30..1   0
 *	1   queue   entry   serial  0 (else it would be the answer to an
 *				    interrupt)
 */
#ifndef GPEMU_FS_TRANSPORT_TRANSPORT_ENTRY_H
#define GPEMU_FS_TRANSPORT_TRANSPORT_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
	/* arbitrary: what is added, and told to the kernel, at once */
	CHUNK_ENTRIES = 256,
	/* 16,384 entries: room for ten thousand requests that wait at once,
	 * all of them on one processor */
	MAX_CHUNKS = 64,
};

struct uring_header;
struct chunk;

struct entry {
	struct uring_header *header;
	char *payload;
	struct iovec iov[2]; /* of both, for the kernel */
	uint64_t commit_id;
	uint64_t kernel_unique, unique; /* atomic; 0: nobody is to answer */
	uint32_t index, serial;
	uint32_t turn;	/* when it became idle */
	size_t touched; /* of the payload: what may be in memory */
	bool idle;
	struct entry *prev, *next; /* utlist, of one list at a time */
};

/* One thread's, but for entries_take and entries_find. */
struct entries {
	/* set before the first is added */
	uint16_t queue;
	size_t payload_bytes; /* of each; whole pages */
	size_t keep_bytes;    /* of payloads that are idle: keep in memory */
	uint32_t turn;	      /* counted up by who has waited for the kernel */
	/* private */
	struct chunk *chunks[MAX_CHUNKS];
	unsigned n_chunks;  /* atomic */
	struct entry *idle; /* the least recently used first */
	size_t idle_bytes;
};

/* CHUNK_ENTRIES more; their memory is reserved, and not touched. -ENOMEM. */
int entries_add(struct entries *s);
void entries_fini(struct entries *s);
unsigned entries_count(const struct entries *s);
struct entry *entries_at(const struct entries *s, unsigned i);

/* The kernel has put a request there: its unique from now on. */
uint64_t entries_begin(struct entries *s, struct entry *e);
/* Ends that: who gets it is the one to answer. NULL: there is no such request.
 * Any thread. */
struct entry *entries_take(struct entries *s, uint64_t unique);
/* The unique of the kernel's request; 0: it is not here. Any thread. */
uint64_t entries_find(const struct entries *s, uint64_t kernel_unique);

/* What it was answered with is the kernel's to fetch, and then nobody's. */
void entries_put(struct entries *s, struct entry *e);
/* Free memory of those that were put before this turn, the least recently used
 * first, down to keep_bytes. Not while the kernel may write there. false: there
 * will be more to free in the next turn. */
bool entries_give_back(struct entries *s);

/* Is it one of ours? The kernel's are smaller. */
bool unique_is_ours(uint64_t unique);
uint16_t unique_queue(uint64_t unique);

#endif
