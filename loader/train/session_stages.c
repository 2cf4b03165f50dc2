/* SPDX-License-Identifier: MIT */
#include "loader/train/session_stages.h"

#include <errno.h>
#include <string.h>

#include "common/util.h"

int session_open_stages(struct session *s, struct err *err)
{
	const struct train_options *o = &s->options;
	int r = 0;

	if (o->stages)
		r = turns_parse_stages(o->stages, &s->stages, err);
	if (r == 0 && o->turns)
		r = turns_parse(o->turns, &s->turns, err);
	return r;
}

static int take_turn(struct session *s, enum turn turn, struct err *err)
{
	int r = s->turns.members ? turns_take(&s->turns, turn) : 0;

	if (r < 0)
		return err_set(err, r, "turns: %s", strerror(-r));
	return atomic_load(&s->stop) ? -ECANCELED : 0;
}

/* Is no batch of the step with the GPUs yet, and of several none? */
static bool between_steps(const struct session *s)
{
	return s->train.now.next->n == 0;
}

int session_load_stage(struct session *s, struct err *err)
{
	const struct turns_stages *g = &s->stages;
	uint64_t from, loaded, done;
	int r;

	if (!s->options.stages || !between_steps(s))
		return 0;
	r = take_turn(s, TURN_STORAGE, err);
	if (r < 0)
		return r;
	from = tick_now(s->tick);
	loaded = from + g->load_ns;
	tick_wait(s->tick, from + g->storage_ns);
	r = take_turn(s, TURN_CPU, err);
	if (r < 0)
		return r;
	done = tick_now(s->tick) + g->cpu_ns;
	tick_wait(s->tick, MAX(done, loaded));
	return take_turn(s, TURN_GPU, err);
}

int session_network_stage(struct session *s, struct err *err)
{
	int r;

	if (!s->options.stages || !between_steps(s))
		return 0;
	r = device_drain(s->device, err);
	if (r < 0)
		return r;
	tick_wait(s->tick, s->device->idle_ns);
	r = take_turn(s, TURN_NETWORK, err);
	if (r == 0)
		tick_wait(s->tick, tick_now(s->tick) + s->stages.network_ns);
	return r;
}
