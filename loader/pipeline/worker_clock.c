/* SPDX-License-Identifier: MIT */
#include "loader/pipeline/worker_clock.h"

#include <string.h>

#include "common/util.h"

static uint64_t past(uint64_t from, uint64_t to)
{
	return to > from ? to - from : 0;
}

void worker_clock_init(struct worker_clock *c, const struct tick *tick,
		       uint32_t cores)
{
	*c = (struct worker_clock){ .tick = tick, .cores = cores };
	c->since = tick_now(tick);
	pthread_mutex_init(&c->lock, NULL);
}

void worker_clock_fini(struct worker_clock *c)
{
	pthread_mutex_destroy(&c->lock);
}

uint64_t worker_clock_turn(struct worker_clock *c, enum doing doing)
{
	uint64_t now = tick_now(c->tick);

	pthread_mutex_lock(&c->lock);
	c->spent[c->doing] += now - c->since;
	c->since = now;
	c->doing = doing;
	pthread_mutex_unlock(&c->lock);
	return now;
}

uint64_t worker_clock_prepared(struct worker_clock *c, uint64_t from,
			       enum doing doing)
{
	uint64_t now = tick_now(c->tick);

	pthread_mutex_lock(&c->lock);
	from = MIN(MAX(from, c->since), now);
	c->spent[c->doing] += from - c->since;
	c->spent[PREPARING] += now - from;
	c->since = now;
	c->doing = doing;
	pthread_mutex_unlock(&c->lock);
	return now;
}

/* Under the lock. */
static void look_at(const struct worker_clock *c, uint64_t spent[N_DOING])
{
	memcpy(spent, c->spent, sizeof(c->spent));
	spent[c->doing] += past(c->since, tick_now(c->tick));
}

/* Under the lock: time of all virtual cores while the worker was reading for so
 * long. */
static uint64_t cores_read_ns(const struct worker_clock *c, uint64_t reading_ns)
{
	return c->core_ns + past(c->counted_ns, reading_ns) * c->cores;
}

void worker_clock_set_cores(struct worker_clock *c, uint32_t n)
{
	uint64_t spent[N_DOING];

	pthread_mutex_lock(&c->lock);
	look_at(c, spent);
	c->core_ns = cores_read_ns(c, spent[READING]);
	c->counted_ns = spent[READING];
	c->cores = n;
	pthread_mutex_unlock(&c->lock);
}

struct activity worker_clock_read(struct worker_clock *c, uint64_t *ret_core_ns)
{
	uint64_t spent[N_DOING];

	pthread_mutex_lock(&c->lock);
	look_at(c, spent);
	*ret_core_ns = cores_read_ns(c, spent[READING]);
	pthread_mutex_unlock(&c->lock);
	return (struct activity){ .read_ns = spent[READING],
				  .prep_ns = spent[PREPARING] };
}
