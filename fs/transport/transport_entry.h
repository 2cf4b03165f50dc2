/* SPDX-License-Identifier: MIT */
/*
 * The entries of a queue (transport_uring.h): memory that the kernel fills with
 * a request, and that returns to it with the answer.
 *
 * libfuse gets another unique (request number) than the kernel's: it encodes
 * the entry and a serial number, so that a second answer finds no request.
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
	/* arbitrary: entries that are added and registered at once */
	CHUNK_ENTRIES = 256,
	/* 16,384 entries: room for ten thousand requests in flight on one
	 * processor */
	MAX_CHUNKS = 64,
};

struct uring_header;
struct chunk;

struct entry {
	struct uring_header *header;
	char *payload;
	struct iovec iov[2]; /* of both, for the kernel */
	uint64_t commit_id;
	uint64_t kernel_unique, unique; /* atomic; 0: no answer is due */
	uint32_t index, serial;
	uint32_t turn;	/* when it became idle */
	size_t touched; /* bytes of the payload that may be resident */
	bool idle;
	struct entry *prev, *next; /* utlist, of one list at a time */
};

/* Used by one thread, except entries_take and entries_find. */
struct entries {
	/* set before the first is added */
	uint16_t queue;
	size_t payload_bytes; /* of each; whole pages */
	size_t keep_bytes;    /* of idle payloads to keep resident */
	uint32_t turn;	      /* the caller adds 1 after each wait */
	/* private */
	struct chunk *chunks[MAX_CHUNKS];
	unsigned n_chunks;  /* atomic */
	struct entry *idle; /* the least recently used first */
	size_t idle_bytes;
};

/* Add CHUNK_ENTRIES; their memory is reserved, but not touched. -ENOMEM. */
int entries_add(struct entries *s);
void entries_fini(struct entries *s);
unsigned entries_count(const struct entries *s);
struct entry *entries_at(const struct entries *s, unsigned i);

/* The kernel has put a request into `e`: returns its unique for libfuse. */
uint64_t entries_begin(struct entries *s, struct entry *e);
/* Take the entry of a request to answer it: only the first call succeeds.
 * NULL: no such request. Any thread. */
struct entry *entries_take(struct entries *s, uint64_t unique);
/* Our unique of the kernel's request; 0: it is not here. Any thread. */
uint64_t entries_find(const struct entries *s, uint64_t kernel_unique);

/* The entry goes to the kernel, which fetches the answer; then it is idle. */
void entries_put(struct entries *s, struct entry *e);
/* Free memory of entries put before this turn, the least recently used first,
 * down to keep_bytes. Not while the kernel may write there. false: the next
 * turn can free more. */
bool entries_give_back(struct entries *s);

/* Is this unique one of ours? The kernel's are smaller. */
bool unique_is_ours(uint64_t unique);
uint16_t unique_queue(uint64_t unique);

#endif
