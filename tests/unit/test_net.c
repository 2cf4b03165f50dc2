/* SPDX-License-Identifier: MIT */
/* Frames, keys and addresses, without sockets. */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "net/addr.h"
#include "net/frame.h"
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
	};
	return seal_init(NULL) < 0 ? 1
				   : cmocka_run_group_tests(tests, NULL, NULL);
}
