/* SPDX-License-Identifier: MIT */
#include "loader/nodes/sync.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "common/units.h"
#include "common/util.h"

_Static_assert(sizeof(struct sync_record) <= COMM_RECORD, "a cell holds it");

/* --- the card ------------------------------------------------------------ */

/* Source: MAX_COMMAND of fs/control/ctl.c, and the longest line */
enum { TEXT = 4096, LINE = 120 };

/* As far as JSON carries digits. */
static bool is_same(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fabs(b);
}

int card_find(const struct dataset_mount *m, double time_scale, double gb_per_s,
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

/*
 * Book the buckets of c for the passes, whose times count from `base`, and wait
 * until they are reduced: at `reduced` or, by *ret_delay, later. Errors of the
 * mount's files, with a text.
 */
static int card_reduce(struct card *card, const struct collective *c,
		       const struct collective_pass *pass, size_t n,
		       uint64_t base, uint64_t reduced, uint64_t *ret_delay,
		       struct err *err)
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

/* --- the step ------------------------------------------------------------ */

int sync_init(struct sync *s, struct comm *comm,
	      const struct collective *reduce)
{
	*s = (struct sync){
		.comm = comm,
		.reduce = *reduce,
		.node = calloc(comm->size, sizeof(*s->node)),
		.pass = calloc(comm->size, sizeof(*s->pass)),
		.straggler = calloc(comm->size, sizeof(*s->straggler)),
		.delay = calloc(comm->size, sizeof(*s->delay)),
	};
	return s->node && s->pass && s->straggler && s->delay ? 0 : -ENOMEM;
}

void sync_fini(struct sync *s)
{
	free(s->node);
	free(s->pass);
	free(s->straggler);
	free(s->delay);
	*s = (struct sync){ 0 };
}

void sync_begin(struct sync *s, uint64_t now)
{
	s->base_ns = now;
}

struct sync_record sync_record(uint64_t base, uint64_t idle,
			       const struct gpus_reach *reach,
			       const struct stalls *data, uint64_t transfer_ns)
{
	return (struct sync_record){
		.start_ns = reach->pass.start - base,
		.end_ns = reach->pass.end - base,
		.optimizer_ns = reach->optimizer_ns,
		.data = *data,
		.transfer_ns = transfer_ns,
		.held_ns = idle - base,
	};
}

void sync_start(struct sync *s, uint64_t idle, const struct gpus_reach *reach,
		const struct stalls *data, uint64_t transfer_ns)
{
	struct sync_record mine =
		sync_record(s->base_ns, idle, reach, data, transfer_ns);

	s->accumulates = reach->accumulates;
	comm_start(s->comm, &mine, sizeof(mine));
}

struct collective sync_reduce(const struct sync *s)
{
	struct collective c = s->reduce;

	if (s->accumulates)
		c.bytes = 0;
	return c;
}

/* Take from *left what `its` exceeds `own` by, at most all. */
static uint64_t excess(uint64_t *left, uint64_t its, uint64_t own)
{
	uint64_t ns = its > own ? MIN(its - own, *left) : 0;

	*left -= ns;
	return ns;
}

/* One node waited for the last one. */
static void blame(struct straggler *s, const struct sync_record *last,
		  const struct sync_record *other)
{
	uint64_t left = last->end_ns - other->end_ns;
	struct stalls d = account_late(excess(&left, stalls_ns(&last->data),
					      stalls_ns(&other->data)),
				       &last->data);

	s->data.fetch_ns += d.fetch_ns;
	s->data.prep_ns += d.prep_ns;
	s->data.pin_ns += d.pin_ns;
	s->transfer_ns += excess(&left, last->transfer_ns, other->transfer_ns);
	s->held_ns += excess(&left, last->held_ns, other->held_ns);
	s->compute_ns += left;
}

static void attribute(struct sync *s)
{
	const struct sync_record *last;
	bool anyone_waits = false;

	s->last = 0;
	for (uint32_t i = 1; i < s->comm->size; i++)
		if (s->node[i].end_ns > s->node[s->last].end_ns)
			s->last = i;
	last = &s->node[s->last];
	for (uint32_t i = 0; i < s->comm->size; i++) {
		uint64_t wait = last->end_ns - s->node[i].end_ns;

		s->straggler[i].waited_ns += wait;
		if (wait)
			blame(&s->straggler[s->last], last, &s->node[i]);
		anyone_waits |= wait > 0;
	}
	s->straggler[s->last].n_last += anyone_waits;
}

void sync_settle(struct sync *s, struct gpus_reach *ret_all,
		 uint64_t *ret_reduced)
{
	const struct collective reduce = sync_reduce(s);
	uint32_t n = s->comm->size;
	struct gpus_reach all = { .accumulates = s->accumulates };

	for (uint32_t i = 0; i < n; i++) {
		const struct sync_record *p = &s->node[i];

		s->pass[i].start = p->start_ns;
		s->pass[i].end = p->end_ns;
		all.pass.start = MAX(all.pass.start, p->start_ns);
		all.pass.end = MAX(all.pass.end, p->end_ns);
		all.optimizer_ns = MAX(all.optimizer_ns, p->optimizer_ns);
	}
	*ret_reduced = s->base_ns + collective_overlapped(&reduce, s->pass, n);
	attribute(s);
	all.pass.start += s->base_ns;
	all.pass.end += s->base_ns;
	*ret_all = all;
	s->base_ns = *ret_reduced + all.optimizer_ns;
}

void sync_delay(struct sync *s, uint64_t ns)
{
	s->base_ns += ns;
}

/* When the slowest card has passed the gradients. */
static int share_cards(struct sync *s, uint64_t base, uint64_t *reduced,
		       struct err *err)
{
	uint64_t mine = 0, most = 0;
	int r = 0;

	if (s->card.mount && !s->accumulates)
		r = card_reduce(&s->card, &s->reduce, s->pass, s->comm->size,
				base, *reduced, &mine, err);
	if (r == 0)
		r = comm_exchange(s->comm, &mine, s->delay, sizeof(mine), err);
	for (uint32_t i = 0; r == 0 && i < s->comm->size; i++)
		most = MAX(most, s->delay[i]);
	*reduced += most;
	sync_delay(s, most);
	return r;
}

int sync_finish(struct sync *s, struct gpus_reach *ret_all,
		uint64_t *ret_reduced, struct err *err)
{
	uint64_t base = s->base_ns;
	int r = comm_finish(s->comm, s->node, sizeof(*s->node), err);

	if (r < 0)
		return r;
	sync_settle(s, ret_all, ret_reduced);
	return s->cards ? share_cards(s, base, ret_reduced, err) : 0;
}

const struct stalls *sync_other(const struct sync *s)
{
	return s->last == s->comm->rank ? NULL : &s->node[s->last].data;
}

/* --- afterwards ----------------------------------------------------------- */

static uint64_t kept_waiting(const struct straggler *s)
{
	return stalls_ns(&s->data) + s->transfer_ns + s->held_ns +
	       s->compute_ns;
}

static uint64_t mean(const struct sync *s, uint64_t ns)
{
	return s->comm->size > 1 ? ns / (s->comm->size - 1) : 0;
}

uint32_t sync_slowest(const struct sync *s, uint64_t *ret_ns)
{
	uint32_t most = 0;

	for (uint32_t i = 1; i < s->comm->size; i++)
		if (kept_waiting(&s->straggler[i]) >
		    kept_waiting(&s->straggler[most]))
			most = i;
	*ret_ns = mean(s, kept_waiting(&s->straggler[most]));
	return most;
}

enum { CAUSES = 6 };

static void causes(const struct straggler *p, uint64_t ret[CAUSES])
{
	const uint64_t ns[CAUSES] = { p->data.fetch_ns, p->data.prep_ns,
				      p->data.pin_ns,	p->transfer_ns,
				      p->held_ns,	p->compute_ns };

	memcpy(ret, ns, sizeof(ns));
}

const char *sync_cause(const struct sync *s, uint32_t node)
{
	static const char *const names[CAUSES] = {
		"reads",  "transforms",	 "pin stage",
		"copies", "checkpoints", "computation",
	};
	uint64_t ns[CAUSES];
	int most = 0;

	causes(&s->straggler[node], ns);
	for (int i = 1; i < CAUSES; i++)
		if (ns[i] > ns[most])
			most = i;
	return names[most];
}

static void set_s(json_t *j, const char *key, uint64_t ns)
{
	json_add_real(j, key, (double)ns / NS_PER_S);
}

json_t *sync_json(const struct sync *s, uint32_t node)
{
	static const char *const keys[CAUSES] = {
		"fetch_s",    "prep_s",	      "pin_s",
		"transfer_s", "checkpoint_s", "compute_s",
	};
	const struct straggler *p = &s->straggler[node];
	json_t *j = json_pack("{s:I}", "steps_last", (json_int_t)p->n_last);
	uint64_t ns[CAUSES];

	causes(p, ns);
	set_s(j, "waited_s", p->waited_ns);
	set_s(j, "card_s", s->card.delay_ns);
	set_s(j, "kept_waiting_s", mean(s, kept_waiting(p)));
	for (int i = 0; i < CAUSES; i++)
		set_s(j, keys[i], mean(s, ns[i]));
	return j;
}
