/* SPDX-License-Identifier: MIT */
#include "loader/order/schedule.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

#include "common/util.h"

static uint64_t share(const struct schedule_config *c)
{
	uint64_t n = c->in.n;

	return c->drop_last ? n / c->world : (n + c->world - 1) / c->world;
}

int schedule_open(const struct schedule_config *c, struct order_schedule *ret,
		  struct err *err)
{
	bool once = !c->replay && !c->order->repeats;
	int r = 0;

	*ret = (struct order_schedule){ .c = *c, .n = share(c) };
	if (!c->replay && c->order->by_group && !c->in.group)
		return err_set(err, -EINVAL,
			       "the order %s needs groups, and this dataset "
			       "has none: it needs shards or a pack "
			       "(docs/formats.md), or a mount with gpemu-fs "
			       "--group N",
			       c->order->plugin.name);
	ret->order = calloc(c->in.n, sizeof(*ret->order));
	if (once)
		ret->seen = calloc((c->in.n + 63) / 64, sizeof(*ret->seen));
	if (!ret->order || (once && !ret->seen))
		return err_set(err, -ENOMEM, "out of memory for an order");
	if (c->dump)
		r = util_output_stream(c->dump, O_CREAT | O_TRUNC, &ret->dump);
	if (r < 0)
		return err_set(err, r, "%s: %s", c->dump, strerror(-r));
	return c->replay ? order_text_open(c->replay, c->in.n, c->data,
					   &ret->replay, err)
			 : 0;
}

void schedule_close(struct order_schedule *s)
{
	order_text_close(s->replay);
	if (s->dump)
		fclose(s->dump);
	free(s->order);
	free(s->seen);
	*s = (struct order_schedule){ 0 };
}

/* Keep the positions of this rank. */
static void share_out(struct order_schedule *s)
{
	uint64_t rank = s->c.rank;
	uint32_t last;

	if (s->n == 0 || s->c.world == 1 || s->c.whole)
		return;
	/* it may wrap around to a first one, which the loop overwrites */
	last = s->order[schedule_position(&s->c, rank, s->n - 1)];
	for (uint64_t i = 0; i + 1 < s->n; i++)
		s->order[i] = s->order[schedule_position(&s->c, rank, i)];
	s->order[s->n - 1] = last;
}

bool schedule_repeats(const struct order_schedule *s)
{
	return s->replay ? order_text_repeats(s->replay) : s->c.order->repeats;
}

static int bad_position(const struct order_schedule *s, uint64_t epoch,
			uint64_t i, const char *what, struct err *err)
{
	return err_set(err, -EINVAL,
		       "the order %s: epoch %" PRIu64 " has sample %" PRIu32
		       " at position %" PRIu64 ", %s",
		       s->c.order->plugin.name, epoch, s->order[i], i, what);
}

/* Does the order keep its contract (order.h)? The text of a file is checked
 * when it is opened. */
static int check_order(struct order_schedule *s, uint64_t epoch,
		       struct err *err)
{
	uint64_t n = s->c.in.n;

	if (s->seen)
		memset(s->seen, 0, (n + 63) / 64 * sizeof(*s->seen));
	for (uint64_t i = 0; i < n; i++) {
		uint32_t sample = s->order[i];
		uint64_t bit = 1ull << sample % 64;

		if (sample >= n)
			return bad_position(s, epoch, i,
					    "which the dataset does not have",
					    err);
		if (s->seen && s->seen[sample / 64] & bit)
			return bad_position(s, epoch, i,
					    "for the second time: an order "
					    "that repeats samples must declare "
					    "it",
					    err);
		if (s->seen)
			s->seen[sample / 64] |= bit;
	}
	return 0;
}

/* Before it is shared out. */
static int make_order(struct order_schedule *s, uint64_t epoch, struct err *err)
{
	struct order_input in = s->c.in;
	int r;

	in.epoch = epoch;
	if (s->replay)
		return order_text_fill(s->replay, epoch, s->order, err);
	r = s->c.order->fill(&in, s->order, err);
	return r < 0 ? r : check_order(s, epoch, err);
}

int schedule_all(struct order_schedule *s, uint64_t epoch, uint32_t *ret,
		 struct err *err)
{
	int r = make_order(s, epoch, err);

	for (uint64_t i = 0; r >= 0 && i < s->n * s->c.world; i++)
		ret[i] = s->order[i % s->c.in.n];
	return r;
}

int schedule_fill(struct order_schedule *s, uint64_t epoch, struct err *err)
{
	int r = make_order(s, epoch, err);

	if (r < 0)
		return r;
	if (s->dump && epoch >= s->dumped) {
		if (!s->dumped && schedule_repeats(s))
			fputs("repeats\n", s->dump);
		s->dumped = epoch + 1;
		order_text_put(s->dump, epoch, s->order, s->c.in.n, s->c.data);
		if (fflush(s->dump) || ferror(s->dump))
			return err_set(err, errno ? -errno : -EIO, "%s: %s",
				       s->c.dump,
				       strerror(errno ? errno : EIO));
	}
	share_out(s);
	return 0;
}

int schedule_weights(const struct order_schedule *s, float **ret,
		     struct err *err)
{
	const struct order_input *in = &s->c.in;
	_cleanup_free_ double *weight = NULL;
	double most = 0;
	int r;

	*ret = NULL;
	if (s->replay || !s->c.order->weigh)
		return 0;
	weight = calloc(in->n, sizeof(*weight));
	*ret = calloc(in->n, sizeof(**ret));
	r = weight && *ret ? s->c.order->weigh(in, weight, err) : -ENOMEM;
	for (size_t i = 0; r == 0 && i < in->n; i++)
		most = MAX(most, weight[i]);
	for (size_t i = 0; r == 0 && most > 0 && i < in->n; i++)
		(*ret)[i] = (float)(weight[i] / most);
	if (r < 0)
		free(TAKE_PTR(*ret));
	return r == -ENOMEM ? err_set(err, r, "out of memory for weights") : r;
}

uint64_t schedule_fingerprint(const struct order_schedule *s)
{
	const struct order_input *in = &s->c.in;
	uint64_t h = s->c.data ? dataset_fingerprint(s->c.data)
			       : XXH3_64bits(&in->n, sizeof(in->n));

	if (s->c.order->by_group && in->group)
		h = XXH3_64bits_withSeed(in->group, in->n * sizeof(*in->group),
					 h);
	if (s->c.order->repeats && in->label)
		h = XXH3_64bits_withSeed(in->label, in->n * sizeof(*in->label),
					 h);
	if (in->holder)
		h = XXH3_64bits_withSeed(in->holder,
					 in->n * sizeof(*in->holder), h);
	return h;
}
