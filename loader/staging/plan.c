/* SPDX-License-Identifier: MIT */
#include "loader/staging/plan.h"

#include <errno.h>

#include "common/util.h"

/* A store that is visible before the next one, whenever the process is killed.
 */
#define PUT(field, value) __atomic_store_n(&(field), value, __ATOMIC_SEQ_CST)
#define GET PLAN_GET

/* The batches in the area. */
struct range {
	uint64_t first, end;
};

/* Read once, so that no loop is longer than PLAN_BATCHES. */
static struct range range_of(const struct staging_plan *p)
{
	uint64_t first = GET(p->first), next = GET(p->next);

	next -= MIN(first, next);
	return (struct range){ first, first + MIN(next, PLAN_BATCHES) };
}

static bool is_valid(const struct staging_plan *p, uint64_t index)
{
	const struct plan_batch *b = &p->batch[index % PLAN_BATCHES];
	uint64_t all = GET(p->bytes), offset = GET(b->offset);
	uint32_t state = GET(b->state), maker = GET(b->maker);

	return GET(b->index) == index && state <= PLAN_READY &&
	       (maker < PLAN_MEMBERS ||
		(maker == PLAN_NOBODY && state == PLAN_OPEN)) &&
	       offset <= all && GET(b->bytes) <= all - offset;
}

bool plan_valid(struct staging_plan *p)
{
	struct range r = range_of(p);
	bool valid = GET(p->jobs) - 1 < PLAN_MEMBERS &&
		     GET(p->phase) <= PLAN_FAILED;

	if (r.first > GET(p->next)) /* killed in jump() */
		PUT(p->next, r.first);
	valid = valid && GET(p->next) == r.end;
	for (uint32_t i = 0; valid && i < PLAN_MEMBERS; i++)
		valid = GET(p->member[i].life) <= PLAN_DIED;
	for (uint64_t i = r.first; valid && i < r.end; i++)
		valid = is_valid(p, i);
	return valid;
}

static bool is_alive(const struct staging_plan *p, uint32_t i)
{
	return GET(p->member[i].life) == PLAN_ALIVE;
}

uint32_t plan_n_members(const struct staging_plan *p, enum plan_life life)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < PLAN_MEMBERS; i++)
		n += GET(p->member[i].life) == life;
	return n;
}

struct plan_batch *plan_find(struct staging_plan *p, uint64_t index)
{
	struct plan_batch *b = &p->batch[index % PLAN_BATCHES];

	return index >= GET(p->first) && index < GET(p->next) &&
			       GET(b->index) == index
		       ? b
		       : NULL;
}

/* --- room ----------------------------------------------------------------- */

/* All living members have used the batches below this one. */
static uint64_t used(const struct staging_plan *p)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < PLAN_MEMBERS; i++)
		if (is_alive(p, i))
			least = MIN(least, GET(p->member[i].done));
	return least;
}

/* Is it being made? Its memory is then in use. */
static bool is_held(struct staging_plan *p, uint64_t index)
{
	const struct plan_batch *b = plan_find(p, index);

	return b && GET(b->state) == PLAN_HELD;
}

bool plan_free(struct staging_plan *p)
{
	struct range r = range_of(p);
	uint64_t first = r.first, end = used(p);

	end = MIN(end, r.end);
	while (first < end && !is_held(p, first))
		PUT(p->first, ++first);
	return first != r.first;
}

/* All members leave out batches that are not in the area yet. */
static void jump(struct staging_plan *p)
{
	uint64_t end = used(p);

	if (GET(p->first) != GET(p->next) || end == UINT64_MAX ||
	    end <= GET(p->next))
		return;
	PUT(p->first, end);
	PUT(p->next, end);
}

/* Where a batch fits behind the newest one. */
static bool find_place(struct staging_plan *p, uint64_t bytes, uint64_t *ret)
{
	uint64_t first = GET(p->first), next = GET(p->next),
		 all = GET(p->bytes);
	const struct plan_batch *newest = &p->batch[(next - 1) % PLAN_BATCHES];
	uint64_t tail = GET(p->batch[first % PLAN_BATCHES].offset);
	uint64_t head = GET(newest->offset) + GET(newest->bytes);

	*ret = 0;
	if (first == next)
		return bytes <= all;
	if (head > tail && head <= all && bytes <= all - head)
		*ret = head;
	else if (head > tail)
		return bytes <= tail;
	else if (bytes <= tail - head)
		*ret = head;
	else
		return false;
	return true;
}

static uint64_t used_bytes(const struct staging_plan *p)
{
	struct range r = range_of(p);
	uint64_t bytes = 0;

	for (uint64_t i = r.first; i < r.end; i++)
		bytes += GET(p->batch[i % PLAN_BATCHES].bytes);
	return bytes;
}

static bool add_batch(struct staging_plan *p, uint64_t index, uint64_t bytes)
{
	struct plan_batch *b = &p->batch[index % PLAN_BATCHES];
	uint64_t offset;

	bytes = (bytes + PLAN_ALIGN - 1) & ~(uint64_t)(PLAN_ALIGN - 1);
	if (index - GET(p->first) >= PLAN_BATCHES ||
	    !find_place(p, bytes, &offset))
		return false;
	b->maker = PLAN_NOBODY;
	b->offset = offset;
	b->bytes = bytes;
	PUT(b->state, PLAN_OPEN);
	PUT(b->index, index);
	PUT(p->next, index + 1);
	return true;
}

void plan_grow(struct staging_plan *p, uint64_t limit, plan_size_fn size,
	       void *ctx)
{
	uint64_t bytes = 1, before = GET(p->next);

	jump(p);
	for (unsigned i = 0; i < PLAN_BATCHES && bytes; i++) {
		uint64_t index = GET(p->next);

		bytes = index < limit ? size(ctx, index) : 0;
		if (bytes && !add_batch(p, index, bytes))
			bytes = 0;
	}
	if (GET(p->next) != before)
		PUT(p->most_bytes, MAX(used_bytes(p), GET(p->most_bytes)));
}

/* --- making --------------------------------------------------------------- */

static void count_held(struct staging_plan *p, uint32_t held[PLAN_MEMBERS])
{
	struct range r = range_of(p);

	for (uint64_t i = r.first; i < r.end; i++) {
		const struct plan_batch *b = plan_find(p, i);

		uint32_t maker = b ? GET(b->maker) : PLAN_NOBODY;

		if (maker < PLAN_MEMBERS && GET(b->state) == PLAN_HELD)
			held[maker]++;
	}
}

static bool may_claim(struct staging_plan *p, uint32_t me, uint32_t most)
{
	uint32_t held[PLAN_MEMBERS] = { 0 };

	count_held(p, held);
	for (uint32_t i = 0; i < PLAN_MEMBERS; i++)
		if (is_alive(p, i) && held[i] < held[me])
			return false;
	return held[me] < most;
}

int plan_claim(struct staging_plan *p, uint32_t me, uint32_t most,
	       uint64_t limit, uint64_t *ret)
{
	struct range r = range_of(p);

	if (!may_claim(p, me, most))
		return -EAGAIN;
	for (uint64_t i = r.first; i < MIN(r.end, limit); i++) {
		struct plan_batch *b = plan_find(p, i);

		if (!b || GET(b->state) != PLAN_OPEN)
			continue;
		if (GET(b->maker) != PLAN_NOBODY)
			p->member[me].taken_over++;
		PUT(b->maker, me);
		PUT(b->state, PLAN_HELD);
		*ret = i;
		return 0;
	}
	return -EAGAIN;
}

int plan_publish(struct staging_plan *p, uint32_t me, uint64_t index,
		 uint32_t n, uint64_t now_ns, double read_share)
{
	struct plan_batch *b = plan_find(p, index);

	if (!b || GET(b->state) != PLAN_HELD || GET(b->maker) != me)
		return -EPROTO;
	b->n = n;
	b->made_ns = now_ns;
	b->read_share = read_share;
	p->member[me].made++;
	PUT(b->state, PLAN_READY);
	return 0;
}

void plan_use(struct staging_plan *p, uint32_t me, uint64_t done)
{
	PUT(p->member[me].done, done);
}

void plan_give_back(struct staging_plan *p, uint32_t me)
{
	struct range r = range_of(p);

	for (uint64_t i = r.first; i < r.end; i++) {
		struct plan_batch *b = plan_find(p, i);

		if (b && GET(b->state) == PLAN_HELD && GET(b->maker) == me)
			PUT(b->state, PLAN_OPEN);
	}
}

void plan_leave(struct staging_plan *p, uint32_t member, enum plan_life how)
{
	/* the death of one that has left is no news */
	if (is_alive(p, member))
		PUT(p->member[member].life, how);
	plan_give_back(p, member);
}

uint32_t plan_n_ready(struct staging_plan *p, uint64_t index)
{
	uint32_t n = 0;

	while (n < PLAN_BATCHES) {
		const struct plan_batch *b = plan_find(p, index + n);

		if (!b || GET(b->state) != PLAN_READY)
			break;
		n++;
	}
	return n;
}
