/* SPDX-License-Identifier: MIT */
#include "loader/nodes/card.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "common/json.h"
#include "common/util.h"

/* Source: MAX_COMMAND of fs/control/ctl.c, and the longest line */
enum { TEXT = 4096, LINE = 120 };

/* As far as JSON carries digits. */
static bool is_same(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fabs(b);
}

int card_find(const struct mount *m, double time_scale, double gb_per_s,
	      struct card *ret, struct err *err)
{
	json_auto_t *j = NULL;
	double scale, rate;
	int r;

	*ret = (struct card){ 0 };
	r = m->dir ? mount_nic(m, &j, err) : 0;
	if (r < 0)
		return r;
	scale = json_get_number(j, "time_scale");
	rate = json_get_number(j, "gb_per_s");
	if (rate <= 0)
		return 0;
	if (!is_same(rate, gb_per_s))
		return err_set(err, -EINVAL,
			       "%s: its --nic has %g GB/s, that of --node %g",
			       m->dir, rate, gb_per_s);
	if (!is_same(scale, time_scale))
		return err_set(err, -EINVAL,
			       "%s: the mount has --time-scale %g, not %g",
			       m->dir, scale, time_scale);
	ret->mount = m;
	/* unique among the ranks of this machine */
	ret->id = (uint64_t)getpid();
	return 0;
}

/* --- booking -------------------------------------------------------------- */

struct booking {
	const struct card *card;
	const struct collective *c;
	uint64_t base;
	char text[TEXT];
	size_t n;
	int r;
	struct err *err;
};

static void flush(struct booking *b)
{
	if (b->r == 0 && b->n)
		b->r = mount_command(b->card->mount, b->text, b->err);
	b->n = 0;
}

static void book(void *ctx, const struct collective_bucket *bucket)
{
	struct booking *b = ctx;

	if (b->n > TEXT - LINE)
		flush(b);
	b->n += (size_t)snprintf(
		b->text + b->n, LINE,
		"reduce %" PRIu64 " %" PRIu64 " %" PRIu64 " %.17g %" PRIu64
		"\n",
		b->card->id,
		tick_to_wall(b->card->tick, b->base + bucket->ready_ns),
		bucket->bytes, b->c->bytes_per_s, bucket->latency_ns);
}

/* --- waiting -------------------------------------------------------------- */

static int read_delay(const struct card *c, uint64_t *ret, struct err *err)
{
	json_auto_t *j = NULL;
	char id[24];
	int r = mount_nic(c->mount, &j, err);

	if (r < 0)
		return r;
	snprintf(id, sizeof(id), "%" PRIu64, c->id);
	*ret = (uint64_t)json_integer_value(
		json_object_get(json_object_get(j, "delay_ns"), id));
	return 0;
}

int card_reduce(struct card *card, const struct collective *c,
		const struct collective_pass *pass, size_t n, uint64_t base,
		uint64_t reduced, uint64_t *ret_delay, struct err *err)
{
	struct booking b = { .card = card, .c = c, .base = base, .err = err };
	uint64_t waited = 0;

	*ret_delay = 0;
	collective_each(c, pass, n, book, &b);
	flush(&b);
	do {
		waited = *ret_delay;
		tick_wait(card->tick, reduced + waited);
		if (b.r == 0)
			b.r = read_delay(card, ret_delay, err);
	} while (b.r == 0 && *ret_delay > waited);
	*ret_delay = waited;
	card->delay_ns += waited;
	return b.r;
}
