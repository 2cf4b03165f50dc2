/* SPDX-License-Identifier: MIT */
/* What comes over a connection of the preparation service, the events of its
 * dispatcher, and a journal. */
#include <stdlib.h>
#include <string.h>

#include "net/seal.h"
#include "service/core/journal.h"
#include "tests/fuzz/fuzz.h"

static void check_message(const uint8_t *data, size_t n)
{
	unsigned char head[PREPD_HEAD];
	struct msg m;
	size_t bytes = 0;

	if (msg_decode(data, n, &m) < 0)
		return;
	PROMISED(n == PREPD_HEAD + m.n_rest);
	msg_encode(&m, head);
	PROMISED(!memcmp(head, data, PREPD_HEAD));
	for (uint32_t i = 0; m.type == PREPD_BATCH && i < m.count; i++) {
		PROMISED(msg_batch_sample(&m, i).error <= 0);
		bytes += msg_batch_sample(&m, i).bytes;
	}
	if (m.type == PREPD_BATCH)
		PROMISED(msg_batch_data(&m) + bytes == data + n);
	if (m.type == PREPD_KEY)
		PROMISED(m.n_rest == SEAL_KEY);
}

/* The head of a batch, and what was in the parcel behind it. */
static void check_parcel(const uint8_t *data, size_t n)
{
	unsigned char *batch;
	struct msg m;

	if (n < PREPD_HEAD || msg_decode(data, PREPD_HEAD, &m) < 0 ||
	    m.type != PREPD_SHARED)
		return;
	m.type = PREPD_BATCH;
	batch = malloc(n);
	PROMISED(batch);
	memcpy(batch, data, n);
	msg_encode(&m, batch);
	check_message(batch, n);
	free(batch);
}

static int apply(void *ctx, const unsigned char *bytes, size_t n)
{
	struct msg m;
	int r = msg_decode(bytes, n, &m);

	return r < 0 ? r : book_apply(ctx, &m);
}

static int put(void *ctx, const struct msg *event)
{
	return book_apply(ctx, event);
}

/* The same book follows from its own events. */
static void check_book(const struct book *b)
{
	struct book copy = { 0 };

	PROMISED(book_dump(b, put, &copy) == 0);
	PROMISED(copy.n == b->n);
	for (uint32_t i = 0; i < b->n; i++) {
		const struct splits *s = &b->job[i]->splits;
		const struct splits *t = &copy.job[i]->splits;

		PROMISED(!memcmp(&b->job[i]->share, &copy.job[i]->share,
				 sizeof(struct share)));
		PROMISED(s->n_slots == t->n_slots);
		PROMISED(s->n == t->n && s->n_done == t->n_done);
		PROMISED(s->n_done + s->n_lost <= s->n);
		PROMISED(!s->n || !memcmp(s->state, t->state, s->n));
	}
	book_fini(&copy);
}

/* Each record is PREPD_HEAD bytes of the input. */
static void check_records(const uint8_t *data, size_t n)
{
	struct book b = { 0 };

	for (; n >= PREPD_HEAD; data += PREPD_HEAD, n -= PREPD_HEAD)
		apply(&b, data, PREPD_HEAD);
	check_book(&b);
	book_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct book b = { 0 };
	size_t good;

	check_message(data, n);
	check_parcel(data, n);
	check_records(data, n);
	journal_scan(data, n, apply, &b, &good);
	PROMISED(good <= n);
	check_book(&b);
	book_fini(&b);
	return 0;
}
