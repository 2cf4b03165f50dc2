/* SPDX-License-Identifier: MIT */
/* The emulated network card: its rate, gradients on it, whole messages. */
#include "tests/unit/test.h"

#include <errno.h>

#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/collective.h"
#include "net/nic.h"

/* --- the card ------------------------------------------------------------- */

/* Two flows share it; timers that are late by up to 1 ms cost nothing. */
static void the_rate_holds_with_late_timers(void **state)
{
	const size_t all = 50 << 20;
	struct nic_flow f[2] = { { 0 } };
	size_t left[2] = { all, all };
	uint64_t now = NS_PER_S, begin = now;
	struct nic *nic = nic_new();

	(void)state;
	nic_limit(nic, 1e9, 0);
	while (left[0] || left[1]) {
		uint64_t at = UINT64_MAX;

		for (int i = 0; i < 2; i++) {
			if (!left[i])
				continue;
			nic_book(nic, &nic->out, &f[i], left[i], begin, now);
			if (now >= f[i].at) {
				left[i] -= f[i].booked;
				nic_pass(&f[i], f[i].booked, &nic->sent);
				at = now;
			} else if (f[i].at < at) {
				at = f[i].at;
			}
		}
		if (at != now)
			now = at + at % NS_PER_MS;
	}
	assert_int_equal(nic->sent, 2 * all);
	assert_in_range(now - begin, 2 * all, 2 * all * 101 / 100 + NS_PER_MS);
	nic_free(nic);
}

static void a_pause_is_not_made_up_for(void **state)
{
	struct nic_flow f = { 0 };
	struct nic *nic = nic_new();

	(void)state;
	nic_limit(nic, 1e9, 0);
	nic_book(nic, &nic->in, &f, 10000, 5 * NS_PER_S, 5 * NS_PER_S);
	assert_int_equal(f.at, 5 * NS_PER_S + 10000);
	nic_pass(&f, f.booked, &nic->received);
	nic_idle(&f);
	nic_book(nic, &nic->in, &f, 10000, 7 * NS_PER_S, 7 * NS_PER_S);
	assert_int_equal(f.at, 7 * NS_PER_S + 10000);
	nic_pass(&f, f.booked, &nic->received);
	/* even without word of the pause */
	nic_book(nic, &nic->in, &f, 10000, 0, 9 * NS_PER_S);
	assert_in_range(f.at, 9 * NS_PER_S - 10 * NS_PER_MS, 9 * NS_PER_S);
	/* no limit: at once */
	nic_limit(nic, 0, 0);
	f = (struct nic_flow){ 0 };
	nic_book(nic, &nic->out, &f, 10000, 123, 124);
	assert_in_range(f.at, 0, 124);
	nic_free(nic);
}

/* --- gradients on the card ------------------------------------------------ */

#define BEGIN NS_PER_S

struct booked {
	struct nic *nic;
	const struct collective *c;
};

static void book(void *ctx, const struct collective_bucket *b)
{
	const struct booked *to = ctx;
	const struct gradients_bucket bucket = {
		.ready_ns = BEGIN + b->ready_ns,
		.bytes = b->bytes,
		.bytes_per_s = to->c->bytes_per_s,
		.latency_ns = b->latency_ns,
	};

	assert_int_equal(nic_reduce(to->nic, 7, &bucket, BEGIN), 0);
}

static uint64_t delay(struct nic *nic)
{
	struct nic_delay d[GRADIENTS_CHAINS];

	assert_int_equal(nic_delays(nic, d), 1);
	assert_int_equal(d[0].id, 7);
	return d[0].ns;
}

static struct nic *card(double bytes_per_s)
{
	struct nic *nic = nic_new();

	assert_non_null(nic);
	nic_limit(nic, bytes_per_s, 1000);
	return nic;
}

/* Also where the GPUs' links are slower than the card. */
static void gradients_alone_take_the_modelled_time(void **state)
{
	static const double links[] = { 1e9 / 3, 1.25e9, 7e8, 7e8 };
	static const enum collective_algorithm algorithms[] = {
		COLLECTIVE_RING, COLLECTIVE_TREE, COLLECTIVE_AUTO,
		COLLECTIVE_AUTO
	};

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct collective c = { .algorithm = algorithms[i],
					.ranks = 3 + (uint32_t)i,
					.bytes_per_s = links[i],
					.latency_ns = 12345,
					.bytes = 244403360 };
		struct collective_pass pass[] = {
			{ 0, 40 * NS_PER_MS },
			{ 10 * NS_PER_MS, (i + 1) * 400 * NS_PER_MS },
		};
		struct booked to = { card(1.25e9), &c };

		/* two steps; the second follows the first at once */
		for (int step = 0; step < 2; step++) {
			uint64_t end = collective_each(&c, pass, 2, book, &to);

			assert_int_equal(end,
					 collective_overlapped(&c, pass, 2));
			assert_int_equal(delay(to.nic), 0);
			pass[0] = pass[1] =
				(struct collective_pass){ end, end };
		}
		nic_free(to.nic);
	}
}

/* `n` flows of `bytes` from BEGIN on, through `l`; timers are late by up to
 * 100 us. Returns when the last byte has passed. */
static uint64_t traffic(struct nic *nic, struct link *l, size_t n, size_t bytes)
{
	struct nic_flow f[4] = { { 0 } };
	size_t left[4] = { bytes, bytes, bytes, bytes };
	uint64_t now = BEGIN, end = 0;

	while (now != UINT64_MAX) {
		uint64_t at = UINT64_MAX;

		for (size_t i = 0; i < n; i++) {
			if (!left[i])
				continue;
			nic_book(nic, l, &f[i], left[i], BEGIN, now);
			if (now >= f[i].at) {
				end = MAX(end, f[i].at);
				left[i] -= f[i].booked;
				nic_pass(&f[i], f[i].booked, &nic->sent);
				at = now;
			} else {
				at = MIN(at, f[i].at);
			}
		}
		if (at != now && at != UINT64_MAX)
			at += at % (100 * NS_PER_US);
		now = at;
	}
	return end;
}

/*
 * W bytes of gradients beside n flows of P bytes, all from the same time on, at
 * 1 byte/ns: each has 1/(n + 1) of the card as long as all last.
 *
 *	P >= W	gradients end at (n + 1) W, the flows at W + n P
 *	P <= W	the flows end at (n + 1) P, gradients at W + n P
 */
static void gradients_and_traffic_share_the_card(void **state)
{
	const uint64_t w = 48 << 20, slack = 400 << 10;

	(void)state;
	for (size_t n = 1; n <= 3; n++) {
		for (uint64_t p = w / 4; p <= 3 * w; p += w / 4) {
			struct nic *nic = card(1e9);
			struct gradients_bucket b = { .ready_ns = BEGIN,
						      .bytes = w,
						      .bytes_per_s = 1e9,
						      .latency_ns = 5000 };
			uint64_t end, late;

			assert_int_equal(nic_reduce(nic, 7, &b, BEGIN), 0);
			end = traffic(nic, n & 1 ? &nic->out : &nic->in, n, p) -
			      BEGIN;
			late = delay(nic);
			if (p >= w) {
				assert_in_range(late, n * w - slack,
						n * w + slack);
				assert_in_range(end, w + n * p - slack,
						w + n * p + slack);
			} else {
				assert_in_range(late, n * p - slack,
						n * p + slack);
				assert_in_range(end, (n + 1) * p - slack,
						(n + 1) * p + slack);
			}
			nic_free(nic);
		}
	}
}

/* As many chains as there may be: each has its part of the card, and all end
 * together. */
static void delays_are_right_however_much_is_ahead(void **state)
{
	static const struct {
		double bytes_per_s; /* of the card */
		size_t n;	    /* buckets of a chain */
	} cases[] = { { 1e9, 1 }, { 1e9, 50 }, { 1e8, 4096 } };

	(void)state;
	for (int k = 0; k < 3; k++) {
		struct nic *nic = card(cases[k].bytes_per_s);
		const struct gradients_bucket b = { .ready_ns = BEGIN,
						    .bytes = GRADIENTS_BYTES,
						    .bytes_per_s = 1e9 };
		uint64_t one = link_ns(cases[k].bytes_per_s, GRADIENTS_BYTES);
		uint64_t alone = link_ns(1e9, GRADIENTS_BYTES) * cases[k].n;
		uint64_t all = GRADIENTS_CHAINS * cases[k].n * one - alone;
		uint64_t begin = tick_cpu_thread();
		struct nic_delay d[GRADIENTS_CHAINS];
		struct nic_flow f = { 0 };

		for (size_t i = 0; i < cases[k].n * GRADIENTS_CHAINS; i++)
			assert_int_equal(nic_reduce(nic, i % GRADIENTS_CHAINS,
						    &b, BEGIN - 1),
					 0);
		for (int late = 0; late < 2; late++) {
			assert_int_equal(nic_delays(nic, d), GRADIENTS_CHAINS);
			for (int i = 0; i < GRADIENTS_CHAINS; i++)
				assert_in_range(d[i].ns, all - all / 100,
						all + 100);
			/* when half of it has passed, too */
			nic_book(nic, &nic->out, &f, 1, BEGIN + all / 2,
				 BEGIN + all / 2);
		}
		/* in pieces of 16 KiB these are 10 s of work, and more */
		assert_in_range(tick_cpu_thread() - begin, 0, NS_PER_S);
		nic_free(nic);
	}
}

static void chains_and_buckets_are_limited(void **state)
{
	struct gradients_bucket b = { .ready_ns = BEGIN,
				      .bytes = GRADIENTS_BYTES + 1,
				      .bytes_per_s = 1e9 };
	struct nic *nic = card(1e9);

	(void)state;
	assert_int_equal(nic_reduce(nic, 0, &b, BEGIN), -EINVAL);
	b.bytes = 0;
	assert_int_equal(nic_reduce(nic, 0, &b, BEGIN), -EINVAL);
	b.bytes = 1;
	for (uint64_t i = 0; i < GRADIENTS_CHAINS; i++)
		assert_int_equal(nic_reduce(nic, i, &b, BEGIN - 1), 0);
	assert_int_equal(nic_reduce(nic, 99, &b, BEGIN - 1), -EBUSY);
	/* they are over, and one makes room */
	assert_int_equal(nic_reduce(nic, 99, &b, 2 * BEGIN), 0);
	b.ready_ns = 9 * BEGIN;
	for (int i = 0; i < GRADIENTS_BUCKETS; i++)
		assert_int_equal(nic_reduce(nic, 1, &b, 3 * BEGIN), 0);
	assert_int_equal(nic_reduce(nic, 1, &b, 3 * BEGIN), -E2BIG);
	nic_free(nic);
}

/* In closed form: the messages of one card follow each other, and pass the
 * receiver's card piece by piece. */
static void whole_messages_take_their_time(void **state)
{
	enum { BYTES = 1000000, PIECE = 50000 };
	uint64_t first, sent, got, again;
	struct nic a, b;

	(void)state;
	a = (struct nic){ 0 };
	nic_limit(&a, 1e9, 10000);
	b = (struct nic){ 0 };
	nic_limit(&b, 1e9, 10000);
	assert_int_equal(a.piece, PIECE);
	sent = nic_send(&a, 0, BYTES, &first);
	assert_int_equal(sent, 10000 + BYTES);
	assert_int_equal(first, 10000 + PIECE);
	got = nic_receive(&b, first, sent, BYTES);
	assert_int_equal(got, 10000 + BYTES + PIECE);
	/* the next one leaves behind it, and so arrives */
	again = nic_send(&a, 5000, BYTES, &first);
	assert_int_equal(again, sent + BYTES);
	assert_int_equal(nic_receive(&b, first, again, BYTES), got + BYTES);
	/* a receiver that is busy with another sender */
	a = (struct nic){ 0 };
	nic_limit(&a, 1e9, 0);
	sent = nic_send(&a, 0, BYTES, &first);
	assert_int_equal(nic_receive(&b, first, sent, BYTES), got + 2 * BYTES);
	/* what fits in a piece passes between the pieces of another message */
	a = (struct nic){ 0 };
	nic_limit(&a, 1e9, 0);
	sent = nic_send(&a, 0, BYTES, &first);
	assert_int_equal(nic_send(&a, 100, 40, &first), 100 + PIECE + 40);
	assert_int_equal(first, 100 + PIECE + 40);
	assert_int_equal(nic_send(&a, 200, BYTES, &first), sent + 40 + BYTES);
	/* no limit */
	a = (struct nic){ 0 };
	nic_limit(&a, 0, 7);
	assert_int_equal(nic_send(&a, 3, BYTES, &first), 10);
	assert_int_equal(nic_receive(&a, 10, 10, BYTES), 10);
}

/* Gradients of ten pieces, and a message: both get half of the card while both
 * have more, the rest is for one. */
static void whole_messages_take_turns_with_gradients(void **state)
{
	enum { PIECE = 50000, GRADIENTS = 10 * PIECE };
	static const struct {
		uint64_t message, sent, late; /* pieces */
	} cases[] = { { 20, 30, 9 }, { 5, 10, 5 }, { 1, 2, 1 } };
	const struct gradients_bucket b = { .ready_ns = 1,
					    .bytes = GRADIENTS,
					    .bytes_per_s = 1e9 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		uint64_t bytes = cases[i].message * PIECE, first;
		struct nic_delay delay[GRADIENTS_CHAINS];
		struct nic *n = nic_new();

		nic_limit(n, 1e9, 0);
		assert_int_equal(nic_reduce(n, 1, &b, 0), 0);
		assert_int_equal(nic_send(n, 1, bytes, &first),
				 1 + cases[i].sent * PIECE);
		assert_int_equal(first, 1 + 2 * PIECE);
		assert_int_equal(nic_delays(n, delay), 1);
		assert_int_equal(delay->ns, cases[i].late * PIECE);
		nic_free(n);
		/* the same on the way in */
		n = nic_new();
		nic_limit(n, 1e9, 0);
		assert_int_equal(nic_reduce(n, 1, &b, 0), 0);
		assert_int_equal(nic_receive(n, 1, 1, bytes),
				 1 + cases[i].sent * PIECE);
		nic_free(n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rate_holds_with_late_timers),
		cmocka_unit_test(a_pause_is_not_made_up_for),
		cmocka_unit_test(gradients_alone_take_the_modelled_time),
		cmocka_unit_test(gradients_and_traffic_share_the_card),
		cmocka_unit_test(delays_are_right_however_much_is_ahead),
		cmocka_unit_test(chains_and_buckets_are_limited),
		cmocka_unit_test(whole_messages_take_their_time),
		cmocka_unit_test(whole_messages_take_turns_with_gradients),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
