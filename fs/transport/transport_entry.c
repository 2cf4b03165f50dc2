/* SPDX-License-Identifier: MIT */
#include "fs/transport/transport_entry.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <utlist.h>

#include "fs/transport/transport_protocol.h"

#define OURS (1ull << 63)
#define SERIAL_MASK 0x3fffffffull

struct chunk {
	struct entry entries[CHUNK_ENTRIES];
	struct uring_header headers[CHUNK_ENTRIES];
	char *payloads;
};

bool unique_is_ours(uint64_t unique)
{
	return unique & OURS;
}

uint16_t unique_queue(uint64_t unique)
{
	return (uint16_t)(unique >> 47);
}

static uint64_t unique_of(const struct entries *s, const struct entry *e)
{
	return OURS | (uint64_t)s->queue << 47 | (uint64_t)e->index << 31 |
	       (e->serial & SERIAL_MASK) << 1;
}

/* --- memory -------------------------------------------------------------- */

static char *reserve(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	/* most payloads are short; a child does not need them */
	madvise(p, bytes, MADV_NOHUGEPAGE);
	madvise(p, bytes, MADV_DONTFORK);
	return p;
}

int entries_add(struct entries *s)
{
	struct chunk *c;

	if (s->n_chunks == MAX_CHUNKS)
		return -ENOMEM;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->payloads = reserve(CHUNK_ENTRIES * s->payload_bytes);
	if (!c->payloads) {
		free(c);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < CHUNK_ENTRIES; i++) {
		struct entry *e = &c->entries[i];

		e->header = &c->headers[i];
		e->payload = c->payloads + i * s->payload_bytes;
		e->iov[0].iov_base = e->header;
		e->iov[0].iov_len = sizeof(*e->header);
		e->iov[1].iov_base = e->payload;
		e->iov[1].iov_len = s->payload_bytes;
		e->index = s->n_chunks * CHUNK_ENTRIES + i;
	}
	s->chunks[s->n_chunks] = c;
	__atomic_store_n(&s->n_chunks, s->n_chunks + 1, __ATOMIC_RELEASE);
	return 0;
}

void entries_fini(struct entries *s)
{
	for (unsigned i = 0; i < s->n_chunks; i++) {
		munmap(s->chunks[i]->payloads,
		       CHUNK_ENTRIES * s->payload_bytes);
		free(s->chunks[i]);
	}
	s->n_chunks = 0;
}

unsigned entries_count(const struct entries *s)
{
	return CHUNK_ENTRIES * __atomic_load_n(&s->n_chunks, __ATOMIC_ACQUIRE);
}

struct entry *entries_at(const struct entries *s, unsigned i)
{
	return &s->chunks[i / CHUNK_ENTRIES]->entries[i % CHUNK_ENTRIES];
}

/* --- idle memory --------------------------------------------------------- */

static void leave_idle(struct entries *s, struct entry *e)
{
	if (!e->idle)
		return;
	DL_DELETE(s->idle, e);
	e->idle = false;
	s->idle_bytes -= e->touched;
}

void entries_put(struct entries *s, struct entry *e)
{
	if (!e->touched)
		return;
	e->turn = s->turn;
	e->idle = true;
	DL_APPEND(s->idle, e);
	s->idle_bytes += e->touched;
}

bool entries_give_back(struct entries *s)
{
	while (s->idle && s->idle_bytes > s->keep_bytes &&
	       s->idle->turn != s->turn) {
		struct entry *e = s->idle;

		leave_idle(s, e);
		madvise(e->payload, e->touched, MADV_DONTNEED);
		e->touched = 0;
	}
	return s->idle_bytes <= s->keep_bytes;
}

/* --- requests ------------------------------------------------------------ */

uint64_t entries_begin(struct entries *s, struct entry *e)
{
	uint64_t unique;

	leave_idle(s, e);
	e->serial++;
	unique = unique_of(s, e);
	__atomic_store_n(&e->kernel_unique, e->commit_id, __ATOMIC_RELAXED);
	__atomic_store_n(&e->unique, unique, __ATOMIC_RELEASE);
	return unique;
}

struct entry *entries_take(struct entries *s, uint64_t unique)
{
	unsigned i = (unsigned)(unique >> 31) & 0xffff;
	struct entry *e = i < entries_count(s) ? entries_at(s, i) : NULL;

	return e && __atomic_compare_exchange_n(&e->unique, &unique, 0, false,
						__ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED)
		       ? e
		       : NULL;
}

uint64_t entries_find(const struct entries *s, uint64_t kernel_unique)
{
	unsigned n = entries_count(s);

	for (unsigned i = 0; i < n; i++) {
		const struct entry *e = entries_at(s, i);
		uint64_t unique = __atomic_load_n(&e->unique, __ATOMIC_ACQUIRE);

		/* an answered entry (unique 0) keeps its kernel_unique */
		if (unique &&
		    __atomic_load_n(&e->kernel_unique, __ATOMIC_RELAXED) ==
			    kernel_unique)
			return unique;
	}
	return 0;
}
