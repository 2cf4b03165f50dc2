/* SPDX-License-Identifier: MIT */
#include "common/thread.h"
#include "fs/server/budget.h"

#include "common/tick.h"
#include "common/util.h"

static uint64_t load(const uint64_t *v)
{
	return __atomic_load_n(v, __ATOMIC_RELAXED);
}

static uint64_t most_objects(const struct budget *b)
{
	return load(&b->capacity) + b->beside / 2;
}

void budget_init(struct budget *b, uint64_t beside)
{
	*b = (struct budget){ .beside = beside };
	b->end = &b->first;
	tick_mutex_init(&b->lock);
}

void budget_fini(struct budget *b)
{
	pthread_mutex_destroy(&b->lock);
}

void budget_set_capacity(struct budget *b, uint64_t bytes)
{
	__atomic_store_n(&b->capacity, bytes, __ATOMIC_RELAXED);
}

uint64_t budget_limit(const struct budget *b)
{
	return load(&b->capacity) + b->beside;
}

bool budget_take(struct budget *b, size_t bytes)
{
	uint64_t all = load(&b->objects);

	do {
		if (all + bytes > most_objects(b))
			return false;
	} while (!__atomic_compare_exchange_n(&b->objects, &all, all + bytes,
					      true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return true;
}

void budget_give(struct budget *b, size_t bytes)
{
	__atomic_fetch_sub(&b->objects, bytes, __ATOMIC_RELAXED);
}

uint64_t budget_lacks(const struct budget *b, size_t bytes)
{
	uint64_t all = load(&b->objects) + bytes, most = most_objects(b);

	return all > most ? all - most : 0;
}

/* The only answer always fits, however large. */
static bool try_answer(struct budget *b, struct budget_wait *w)
{
	uint64_t all = __atomic_load_n(&b->answers, __ATOMIC_SEQ_CST);

	do {
		w->has = !all || all + w->bytes <= b->beside - b->beside / 2;
	} while (w->has && !__atomic_compare_exchange_n(
				   &b->answers, &all, all + w->bytes, true,
				   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
	return w->has;
}

/* Under the lock: dequeue waiters in order, as long as they fit. */
static struct budget_wait *take_first(struct budget *b)
{
	struct budget_wait *list = NULL, **end = &list;

	while (b->first && try_answer(b, b->first)) {
		*end = b->first;
		b->first = b->first->next;
		end = &(*end)->next;
		*end = NULL;
		__atomic_fetch_sub(&b->n_waiting, 1, __ATOMIC_SEQ_CST);
	}
	if (!b->first)
		b->end = &b->first;
	return list;
}

bool budget_try_answer(struct budget *b, struct budget_wait *w)
{
	w->has = false;
	return !__atomic_load_n(&b->n_waiting, __ATOMIC_SEQ_CST) &&
	       try_answer(b, w);
}

/*
 * Takes no lock while nothing waits. A waiter increments n_waiting, then tries
 * again; a release gives memory back, then checks n_waiting. So one of the two
 * always sees the other.
 */
struct budget_wait *budget_answer(struct budget *b, struct budget_wait *w)
{
	struct budget_wait *list = w;

	w->next = NULL;
	if (budget_try_answer(b, w))
		return w;
	LOCK_SCOPE(&b->lock);
	if (!b->stopped) {
		*b->end = w;
		b->end = &w->next;
		__atomic_fetch_add(&b->n_waiting, 1, __ATOMIC_SEQ_CST);
		list = take_first(b);
	}
	return list;
}

struct budget_wait *budget_answered(struct budget *b, struct budget_wait *w)
{
	if (w->has)
		__atomic_fetch_sub(&b->answers, w->bytes, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&b->n_waiting, __ATOMIC_SEQ_CST))
		return NULL;
	LOCK_SCOPE(&b->lock);
	return take_first(b);
}

struct budget_wait *budget_stop(struct budget *b)
{
	struct budget_wait *list;

	LOCK_SCOPE(&b->lock);
	list = b->first;
	b->first = NULL;
	b->end = &b->first;
	b->stopped = true;
	__atomic_store_n(&b->n_waiting, 0, __ATOMIC_SEQ_CST);
	return list;
}
