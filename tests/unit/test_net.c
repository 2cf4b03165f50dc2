/* SPDX-License-Identifier: MIT */
/* Frames, keys, addresses and the emulated card, without sockets. */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/collective.h"
#include "net/addr.h"
#include "net/frame.h"
#include "net/nic.h"
#include "net/parcel.h"
#include "net/wire.h"

/* --- keys ----------------------------------------------------------------- */

struct ends {
	struct seal dialer, listener;
};

static struct ends agree(const char *key_of_dialer, const char *key_of_listener)
{
	unsigned char a[FRAME_GREETING], b[FRAME_GREETING];
	struct seal_secret x = { { 0 } }, y = { { 0 } };
	struct ends e;

	memcpy(x.bytes, key_of_dialer, strlen(key_of_dialer));
	memcpy(y.bytes, key_of_listener, strlen(key_of_listener));
	frame_greet(FRAME_VERSION, a);
	frame_greet(FRAME_VERSION, b);
	seal_agree(&x, a, b, FRAME_GREETING, 1, &e.dialer);
	seal_agree(&y, a, b, FRAME_GREETING, 0, &e.listener);
	return e;
}

enum { BODY = 100, HEAD = 4, ALL = HEAD + BODY + SEAL_TAG };

static void fill(unsigned char m[ALL])
{
	for (int i = 0; i < HEAD + BODY; i++)
		m[i] = (unsigned char)i;
}

static void a_message_opens_once_in_its_direction(void **state)
{
	struct ends e = agree("key", "key"), other = agree("key", "key");
	unsigned char m[ALL], copy[ALL], plain[ALL];

	(void)state;
	fill(m);
	memcpy(plain, m, sizeof(m));
	seal_close(&e.dialer, m, HEAD, BODY);
	assert_memory_not_equal(m + HEAD, plain + HEAD, BODY);
	memcpy(copy, m, sizeof(m));
	/* not for the other direction, nor another connection */
	assert_int_equal(seal_open(&e.dialer, copy, HEAD, BODY + SEAL_TAG),
			 -EBADMSG);
	memcpy(copy, m, sizeof(m));
	assert_int_equal(seal_open(&other.listener, copy, HEAD,
				   BODY + SEAL_TAG),
			 -EBADMSG);
	memcpy(copy, m, sizeof(m));
	assert_int_equal(seal_open(&e.listener, copy, HEAD, BODY + SEAL_TAG),
			 0);
	assert_memory_equal(copy, plain, HEAD + BODY);
	/* nor again */
	assert_int_equal(seal_open(&e.listener, m, HEAD, BODY + SEAL_TAG),
			 -EBADMSG);
}

static void every_bit_counts(void **state)
{
	(void)state;
	for (int i = 0; i < ALL; i++) {
		struct ends e = agree("key", "key");
		unsigned char m[ALL];

		fill(m);
		seal_close(&e.dialer, m, HEAD, BODY);
		m[i] ^= 1;
		assert_int_equal(seal_open(&e.listener, m, HEAD,
					   BODY + SEAL_TAG),
				 -EBADMSG);
	}
}

enum { SEALED = BODY + SEAL_TAG };

/* The body of a parcel, of which byte `changed` is, if it has that. */
static int open_body(struct parcel *p, const struct seal_key *k, uint64_t whose,
		     uint64_t number, size_t n, int changed)
{
	unsigned char m[SEALED];
	int r;

	memcpy(m, parcel_body(p), SEALED);
	if (changed < SEALED)
		m[changed] ^= 1;
	r = seal_open_common(k, whose, number, m, n);
	for (int i = 0; r == 0 && i < BODY; i++)
		assert_int_equal(m[i], 7);
	return r;
}

static void a_parcel_opens_for_its_number_and_owner(void **state)
{
	struct parcel *p = parcel_new(BODY);
	struct seal_key k, other;

	(void)state;
	seal_draw(&k);
	seal_draw(&other);
	memset(parcel_body(p), 7, BODY);
	assert_int_equal(p->n, FRAME_HEADER + SEALED);
	parcel_seal(p, &k, 5, 1);
	/* of two connections one has ended */
	assert_ptr_equal(parcel_get(p), p);
	parcel_put(p);
	assert_int_equal(open_body(p, &k, 5, 1, SEALED, SEALED), 0);
	assert_int_equal(open_body(p, &k, 5, 1, SEALED, SEALED), 0);
	for (int i = 0; i < SEALED; i++)
		assert_int_equal(open_body(p, &k, 5, 1, SEALED, i), -EBADMSG);
	/* replayed, of another job, with another key, cut off */
	assert_int_equal(open_body(p, &k, 5, 2, SEALED, SEALED), -EBADMSG);
	assert_int_equal(open_body(p, &k, 6, 1, SEALED, SEALED), -EBADMSG);
	assert_int_equal(open_body(p, &other, 5, 1, SEALED, SEALED), -EBADMSG);
	assert_int_equal(open_body(p, &k, 5, 1, SEALED - 1, SEALED), -EBADMSG);
	parcel_put(p);
	parcel_put(NULL);
}

static void another_key_opens_nothing(void **state)
{
	struct ends e = agree("key", "kez");
	unsigned char m[ALL];

	(void)state;
	fill(m);
	seal_close(&e.dialer, m, HEAD, BODY);
	assert_int_equal(seal_open(&e.listener, m, HEAD, BODY + SEAL_TAG),
			 -EBADMSG);
}

static int read_key(const char *content, mode_t mode, struct seal_secret *ret,
		    struct err *err)
{
	char path[] = "/tmp/gpemu-key-XXXXXX";
	int fd = mkstemp(path), r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, strlen(content)), strlen(content));
	fchmod(fd, mode);
	close(fd);
	r = seal_read_secret(path, ret, err);
	unlink(path);
	return r;
}

static void a_key_file_is_long_and_private(void **state)
{
	static const char key[] = "0123456789abcdef0123456789abcdef";
	struct seal_secret a, b;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(read_key(key, 0600, &a, &err), 0);
	assert_int_equal(read_key(key, 0400, &b, &err), 0);
	assert_memory_equal(&a, &b, sizeof(a));
	assert_int_equal(read_key(key + 1, 0600, &a, &err), -EINVAL);
	assert_non_null(strstr(err.text, "32"));
	err.text[0] = 0;
	assert_int_equal(read_key(key, 0640, &a, &err), -EACCES);
	assert_non_null(strstr(err.text, "chmod 600"));
	assert_int_equal(seal_read_secret("/nowhere/key", &a, NULL), -ENOENT);
}

/* --- frames --------------------------------------------------------------- */

/* As many of `n` bytes as it has room for. */
static size_t put(struct frame_in *in, const void *bytes, size_t n)
{
	size_t room;
	unsigned char *to = frame_space(in, &room);

	assert_non_null(to);
	assert_true(room > 0);
	room = room < n ? room : n;
	memcpy(to, bytes, room);
	frame_add(in, room);
	return room;
}

static size_t frame(unsigned char *to, uint32_t n)
{
	memset(wire_put(to, n, FRAME_HEADER), (int)n, n);
	return FRAME_HEADER + n;
}

static void frames_come_out_however_they_come_in(void **state)
{
	static const uint32_t sizes[] = { 17, 300, 17, 40000, 18 };
	unsigned char all[60000], *f;
	size_t n = 0, got;

	(void)state;
	for (size_t i = 0; i < 5; i++)
		n += frame(all + n, sizes[i]);
	for (size_t piece = 1; piece < n; piece = piece * 3 + 1) {
		struct frame_in in = { .most = 50000 };
		size_t next = 0;

		for (size_t at = 0; at < n;) {
			at += put(&in, all + at, MIN(piece, n - at));
			while (frame_next(&in, &f, &got) == 1) {
				assert_int_equal(got,
						 FRAME_HEADER + sizes[next]);
				assert_int_equal(f[got - 1], sizes[next] & 255);
				next++;
			}
		}
		assert_int_equal(next, 5);
		assert_false(frame_is_partial(&in));
		frame_in_fini(&in);
	}
}

static void a_length_is_checked_before_memory_is_taken(void **state)
{
	static const uint32_t bad[] = { 0, 16, 100 + SEAL_TAG + 1, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct frame_in in = { .most = 100 };
		unsigned char head[FRAME_HEADER], *f;
		size_t n;

		wire_put(head, bad[i], FRAME_HEADER);
		put(&in, head, 3);
		assert_int_equal(frame_next(&in, &f, &n), 0);
		put(&in, head + 3, 1);
		assert_int_equal(frame_next(&in, &f, &n), -EMSGSIZE);
		assert_in_range(in.room, 0, 16 << 10);
		frame_in_fini(&in);
	}
}

static void a_greeting_has_magic_and_version(void **state)
{
	unsigned char g[FRAME_GREETING], other[FRAME_GREETING];
	uint32_t version;

	(void)state;
	frame_greet(FRAME_VERSION, g);
	frame_greet(FRAME_VERSION, other);
	assert_memory_not_equal(g, other, sizeof(g)); /* its nonce */
	assert_int_equal(frame_check_greeting(g, &version), 0);
	g[0] ^= 1;
	assert_int_equal(frame_check_greeting(g, &version), -EBADMSG);
	frame_greet(77, g);
	assert_int_equal(frame_check_greeting(g, &version), -EPROTONOSUPPORT);
	assert_int_equal(version, 77);
}

/* --- addresses ------------------------------------------------------------ */

static void addresses(void **state)
{
	static const char *const bad[] = {
		"",	    "host",	  ":7000",   "host:",
		"host:0",   "host:70000", "host:x",  "host:7x",
		"::1:7000", "[]:7000",	  "host:-1", "host: 1",
	};
	struct addr a;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (addr_check(bad[i], NULL) != -EINVAL)
			fail_msg("%s", bad[i]);
	assert_int_equal(addr_check("node-1.cluster:7000", NULL), 0);
	assert_int_equal(addr_find("127.0.0.1:7000", &a, NULL), 0);
	assert_true(addr_is_loopback(&a));
	addr_fini(&a);
	assert_int_equal(addr_find("[::1]:7000", &a, NULL), 0);
	assert_true(addr_is_loopback(&a));
	addr_fini(&a);
	assert_int_equal(addr_find("0.0.0.0:7000", &a, NULL), 0);
	assert_false(addr_is_loopback(&a));
	addr_fini(&a);
	assert_int_equal(addr_find("[::ffff:10.0.0.1]:7000", &a, NULL), 0);
	assert_false(addr_is_loopback(&a));
	addr_fini(&a);
}

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
		cmocka_unit_test(a_message_opens_once_in_its_direction),
		cmocka_unit_test(every_bit_counts),
		cmocka_unit_test(a_parcel_opens_for_its_number_and_owner),
		cmocka_unit_test(another_key_opens_nothing),
		cmocka_unit_test(a_key_file_is_long_and_private),
		cmocka_unit_test(frames_come_out_however_they_come_in),
		cmocka_unit_test(a_length_is_checked_before_memory_is_taken),
		cmocka_unit_test(a_greeting_has_magic_and_version),
		cmocka_unit_test(addresses),
		cmocka_unit_test(the_rate_holds_with_late_timers),
		cmocka_unit_test(a_pause_is_not_made_up_for),
		cmocka_unit_test(gradients_alone_take_the_modelled_time),
		cmocka_unit_test(gradients_and_traffic_share_the_card),
		cmocka_unit_test(delays_are_right_however_much_is_ahead),
		cmocka_unit_test(chains_and_buckets_are_limited),
		cmocka_unit_test(whole_messages_take_their_time),
		cmocka_unit_test(whole_messages_take_turns_with_gradients),
	};
	return seal_init(NULL) < 0 ? 1
				   : cmocka_run_group_tests(tests, NULL, NULL);
}
