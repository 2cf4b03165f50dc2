/* SPDX-License-Identifier: MIT */
#include "service/client/links.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/json.h"
#include "common/log.h"
#include "common/util.h"
#include "net/wire.h"
#include "service/client/link.h"

/* --- turns ---------------------------------------------------------------- */

static bool may_have(const struct link_worker *w)
{
	return w->greeted && !w->failed && !w->empty;
}

/* The worker whose turn it is; NULL: none can make use of a buffer. */
static struct link_worker *next_worker(struct links *l)
{
	struct link_worker *first = l->turn ? l->turn : l->first, *w = first;

	while (w) {
		struct link_worker *after = w->next ? w->next : l->first;

		if (may_have(w)) {
			l->turn = after;
			return w;
		}
		w = after == first ? NULL : after;
	}
	return NULL;
}

/* The first round that was not granted to the worker. */
static uint64_t round_of(const struct link_worker *w)
{
	return (w->next_index + w->upto - w->have) * w->all->n_slots + w->slot;
}

/* The worker that makes the first round that was not granted; NULL: it is not
 * there, and no later one helps. */
static struct link_worker *next_round(struct links *l)
{
	struct link_worker *w, *first = NULL;
	uint32_t n = 0;

	DL_FOREACH (l->first, w) {
		if (w->slot == LINK_NO_SLOT)
			continue;
		n++;
		if (!first || round_of(w) < round_of(first))
			first = w;
	}
	return n && n == l->n_slots && may_have(first) ? first : NULL;
}

/* What was received, so that the worker may reuse its memory, and granted. */
static void tell(struct links *l)
{
	struct link_worker *w;

	DL_FOREACH (l->first, w) {
		struct msg m = { .type = PREPD_READ,
				 .job = l->job,
				 .epoch = l->epoch,
				 .a = w->have,
				 .b = w->upto,
				 .c = w->next_index };

		if (!w->greeted ||
		    (w->told_have == w->have && w->told_upto == w->upto))
			continue;
		outbox_put(&w->out, w->conn, &m);
		w->told_have = w->have;
		w->told_upto = w->upto;
	}
}

static uint64_t n_granted(const struct links *l)
{
	const struct link_worker *w;
	uint64_t n = 0;

	DL_FOREACH (l->first, w) {
		n += w->upto - w->have;
	}
	return n;
}

/* Grant the free buffers that the epoch needs, by turns. Returns whether one
 * is left, as no worker can take it. */
static bool grant(struct links *l)
{
	uint64_t granted = n_granted(l);
	struct link_worker *w = NULL;
	struct shelf_buffer *b = NULL;

	while (shelf_needs(l->shelf, granted) &&
	       (b = shelf_reserve(l->shelf))) {
		w = l->share.how == SHARE_ROUNDS ? next_round(l)
						 : next_worker(l);
		if (!w) {
			shelf_free(l->shelf, b);
			break;
		}
		link_grant(w, b);
		granted++;
	}
	tell(l);
	return b && !w;
}

/* --- workers -------------------------------------------------------------- */

void links_init(struct links *l)
{
	pthread_mutex_init(&l->lock, NULL);
	l->alone_since = tick_now(l->tick);
}

static struct link_worker *find(const struct links *l, uint64_t id)
{
	struct link_worker *w;

	DL_SEARCH_SCALAR(l->first, w, id, id);
	return w;
}

static uint32_t slot_of(const struct links *l, uint64_t id)
{
	for (uint32_t i = 0; i < l->n_slots; i++)
		if (l->slot[i] == id)
			return i;
	return LINK_NO_SLOT;
}

int links_take_turns(struct links *l, const struct msg *m)
{
	struct wire wire = { .at = m->rest, .left = m->n_rest };
	uint32_t n = (uint32_t)(m->n_rest / 8);
	_cleanup_free_ uint64_t *slot = calloc(n + 1, sizeof(*slot));
	struct link_worker *w;

	if (l->share.how != SHARE_ROUNDS)
		return -EPROTO;
	if (!slot)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		slot[i] = wire_get(&wire, 8);
	if (l->slot &&
	    (n != l->n_slots || memcmp(slot, l->slot, n * sizeof(*slot)) != 0))
		shelf_fail(l->shelf, -EIO,
			   "the workers of this job's rounds have changed");
	if (l->slot)
		return 0;
	l->slot = TAKE_PTR(slot);
	l->n_slots = n;
	DL_FOREACH (l->first, w) {
		w->slot = slot_of(l, w->id);
		if (w->failed && w->slot != LINK_NO_SLOT)
			shelf_fail(l->shelf, -EIO, "worker %s", l->unfit.text);
	}
	return 0;
}

static void forget(struct links *l, struct link_worker *w)
{
	if (l->turn == w)
		l->turn = NULL;
	pthread_mutex_lock(&l->lock);
	DL_DELETE(l->first, w);
	pthread_mutex_unlock(&l->lock);
	link_free(w);
}

void links_fini(struct links *l)
{
	while (l->first)
		forget(l, l->first);
	free(l->slot);
	pthread_mutex_destroy(&l->lock);
}

void links_add(struct links *l, uint64_t id, const char *address)
{
	struct link_worker *w;
	struct err err = { 0 };

	if (find(l, id))
		return;
	if (link_new(l, id, address, &w, &err) < 0) {
		log_warn("worker %s: skipped: %s", address, err.text);
		return;
	}
	w->slot = slot_of(l, id);
	pthread_mutex_lock(&l->lock);
	DL_APPEND(l->first, w);
	l->n_added++;
	pthread_mutex_unlock(&l->lock);
}

void links_remove(struct links *l, uint64_t id)
{
	struct link_worker *w = find(l, id);

	if (!w)
		return;
	log_warn("worker %s is no longer available", w->at.text);
	if (w->slot != LINK_NO_SLOT)
		shelf_fail(
			l->shelf, -EIO,
			"worker %s, which makes rounds, is no longer available",
			w->at.text);
	/* `ended` is called later: the worker waits for it */
	w->failed = true;
	w->id = 0;
	pthread_mutex_lock(&l->lock);
	l->n_gone++;
	pthread_mutex_unlock(&l->lock);
	link_return_buffers(w);
	if (w->conn)
		conn_end(w->conn, -ECONNRESET);
}

void links_failed(struct links *l, uint64_t id, const char *why)
{
	struct link_worker *w = find(l, id);

	if (!w || w->failed)
		return;
	log_warn("worker %s cannot do this job: %s", w->at.text, why);
	snprintf(l->unfit.text, sizeof(l->unfit.text), "%s: %s", w->at.text,
		 why);
	w->failed = true;
	link_return_buffers(w);
	if (w->slot != LINK_NO_SLOT)
		shelf_fail(l->shelf, -EIO, "worker %s", l->unfit.text);
}

/* --- rounds --------------------------------------------------------------- */

/* Batches have numbers from 0 again. */
static void turn_epoch(struct links *l, uint64_t now)
{
	struct link_worker *w;
	bool turned;

	pthread_mutex_lock(&l->shelf->lock);
	turned = l->seen_turn != l->shelf->turn;
	l->seen_turn = l->shelf->turn;
	l->epoch = l->shelf->sweep.epoch;
	pthread_mutex_unlock(&l->shelf->lock);
	if (!turned)
		return;
	l->awaited_since = now;
	DL_FOREACH (l->first, w) {
		link_return_buffers(w);
		w->have = w->upto = w->told_have = w->told_upto = 0;
		w->empty = false;
	}
}

/* Another consumer that asks for no more rounds would be awaited for good, and
 * so would the worker of the next one, which cannot be reached if `stuck`.
 * Returns when it is too late. */
static uint64_t await_round(struct links *l, bool stuck, uint64_t now,
			    uint64_t wait_ns)
{
	bool waits = stuck || n_granted(l);

	if (l->share.how != SHARE_ROUNDS || !shelf_is_open(l->shelf))
		return TICK_NEVER;
	if (!waits || stuck != l->stuck)
		l->awaited_since = now;
	l->stuck = stuck;
	if (now < l->awaited_since + wait_ns)
		return l->awaited_since + wait_ns;
	shelf_fail(l->shelf, -ETIMEDOUT,
		   "no round arrived: are all %u consumers and all workers "
		   "running?",
		   l->share.consumers);
	return TICK_NEVER;
}

uint64_t links_round(struct links *l, uint64_t now, uint64_t wait_ns)
{
	uint64_t due = TICK_NEVER, until;
	struct link_worker *w, *after;
	bool alone = true, able = false, unfit = false;

	turn_epoch(l, now);
	DL_FOREACH_SAFE (l->first, w, after) {
		uint64_t at = link_dial(w, now);

		due = MIN(due, at);
		alone = alone && !(w->greeted && !w->failed);
		able = able || !w->failed;
		unfit = unfit || (w->failed && w->id);
		if (!w->id && !w->conn)
			forget(l, w);
	}
	until = await_round(l, grant(l) && !n_granted(l), now, wait_ns);
	due = MIN(due, until);
	if (!alone || !shelf_is_open(l->shelf)) {
		l->alone_since = now;
		return due;
	}
	if (unfit && !able)
		shelf_fail(l->shelf, -EIO, "no worker can do this job; %s",
			   l->unfit.text);
	until = l->alone_since + wait_ns;
	if (now >= until) {
		shelf_fail(l->shelf, -ETIMEDOUT,
			   "no worker is connected: start gpemu-prepd worker");
		return due;
	}
	return MIN(due, until);
}

int links_json(struct links *l, json_t *into)
{
	json_t *workers = json_array();
	json_auto_t *j = NULL;
	struct link_worker *w;

	pthread_mutex_lock(&l->lock);
	DL_FOREACH (l->first, w) {
		json_array_append_new(
			workers, json_pack("{s:o, s:I, s:I}", "address",
					   json_bytes(w->at.text), "batches",
					   (json_int_t)w->n_batches, "bytes",
					   (json_int_t)w->n_bytes));
	}
	j = json_pack("{s:o, s:I, s:I, s:I, s:o}", "workers", workers,
		      "workers_added", (json_int_t)l->n_added, "workers_gone",
		      (json_int_t)l->n_gone, "batches_skipped",
		      (json_int_t)l->n_skipped, "connections",
		      ends_json(&l->ends));
	pthread_mutex_unlock(&l->lock);
	return j && json_object_update(into, j) == 0 ? 0 : -ENOMEM;
}
