/* SPDX-License-Identifier: MIT */
#include "loader/account/observe_account.h"

#include <string.h>

static void begin(void *ctx, uint64_t epoch, uint64_t now_ns)
{
	struct observed *o = ctx;

	o->start_ns = o->begun_ns = now_ns;
	o->wall_ns = tick_wall();
	memset(o->account, 0, sizeof(*o->account));
	o->account->epoch = epoch;
}

static void done(void *ctx, const struct step_done *s)
{
	struct observed *o = ctx;
	struct account *a = o->account;

	account_begin_step(a, s->n_gpus);
	for (uint32_t i = 0; i < s->n_batches; i++)
		account_batch(a, &s->batch[i]);
	for (uint32_t i = 0; i < s->n_gpus; i++)
		account_gpu(a, i, s->idle_ns, step_batch(s, i), &s->gpu[i],
			    &s->late[i]);
	if (a->steps == 1)
		o->first_end_ns = s->gpu[0].step_end;
}

static void begun(void *ctx, uint64_t at)
{
	struct observed *o = ctx;

	if (o->account->steps > 1)
		hist_add(&o->account->step, at - o->begun_ns);
	o->begun_ns = at;
}

static void held(void *ctx, const char *why, uint64_t from, uint64_t ns)
{
	struct observed *o = ctx;

	(void)why;
	(void)from;
	o->account->checkpoint_stall_ns += ns;
}

static void end(void *ctx, uint64_t now_ns)
{
	struct observed *o = ctx;
	struct account *a = o->account;

	if (a->steps)
		hist_add(&a->step, now_ns - o->begun_ns);
	if (a->steps > 1)
		a->au_elapsed_ns = now_ns - o->first_end_ns;
	a->elapsed_ns = now_ns - o->start_ns;
	a->wall_ns = tick_wall() - o->wall_ns;
}

const struct observer observe_account = {
	.begin = begin,
	.done = done,
	.begun = begun,
	.held = held,
	.end = end,
};
