/* SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/units.h"
#include "platform/grpc/grpc.h"
#include "platform/grpc/grpc_frame.h"

static void a_message_comes_in_any_pieces(void **state)
{
	static const uint8_t bytes[] = "\0\0\0\0\3abc";

	(void)state;
	for (size_t cut = 1; cut < 8; cut++) {
		struct grpc_inbox in;

		grpc_inbox_init(&in, 3);
		assert_int_equal(grpc_inbox_add(&in, bytes, cut), 0);
		assert_false(grpc_inbox_whole(&in));
		assert_int_equal(grpc_inbox_add(&in, bytes + cut, 8 - cut), 0);
		assert_true(grpc_inbox_whole(&in));
		assert_int_equal(in.n, 3);
		assert_memory_equal(in.bytes, "abc", 3);
		/* and one only */
		assert_int_equal(grpc_inbox_add(&in, bytes, 1), -EBADMSG);
		grpc_inbox_fini(&in);
	}
}

static void empty_large_and_compressed_messages(void **state)
{
	struct grpc_inbox in;
	uint8_t prefix[GRPC_PREFIX];

	(void)state;
	grpc_inbox_init(&in, 70000);
	assert_false(grpc_inbox_whole(&in));
	grpc_prefix(prefix, 0);
	assert_int_equal(grpc_inbox_add(&in, prefix, sizeof(prefix)), 0);
	assert_true(grpc_inbox_whole(&in));
	assert_null(in.bytes);
	grpc_inbox_fini(&in);

	grpc_inbox_init(&in, 70000);
	grpc_prefix(prefix, 70000);
	assert_memory_equal(prefix, "\0\0\1\x11\x70", 5);
	assert_int_equal(grpc_inbox_add(&in, prefix, sizeof(prefix)), 0);
	grpc_inbox_fini(&in);

	grpc_inbox_init(&in, 70000);
	grpc_prefix(prefix, 70001);
	assert_int_equal(grpc_inbox_add(&in, prefix, 4), 0);
	assert_int_equal(grpc_inbox_add(&in, prefix + 4, 1), -EMSGSIZE);
	grpc_inbox_fini(&in);

	grpc_inbox_init(&in, 70000);
	prefix[0] = 1;
	assert_int_equal(grpc_inbox_add(&in, prefix, sizeof(prefix)), -EBADMSG);
	grpc_inbox_fini(&in);
}

static void texts_are_percent_encoded(void **state)
{
	char text[GRPC_TEXT], back[GRPC_TEXT], large[2 * GRPC_TEXT];

	(void)state;
	grpc_text_encode("5 % of\n\xc3\xa9~", text);
	assert_string_equal(text, "5 %25 of%0A%C3%A9~");
	grpc_text_decode((const uint8_t *)"a%20b%2", 7, back);
	assert_string_equal(back, "a b%2");
	grpc_text_decode((const uint8_t *)"%0a%zz%", 7, back);
	assert_string_equal(back, "?%zz%");
	memset(large, '%', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	grpc_text_encode(large, text);
	assert_in_range(strlen(text), GRPC_TEXT - 4, GRPC_TEXT - 1);
	assert_int_equal(strlen(text) % 3, 0);
	grpc_text_decode((const uint8_t *)large, strlen(large), back);
	assert_int_equal(strlen(back), GRPC_TEXT - 1);
}

/* --- connections ---------------------------------------------------------- */

/* A server that answers every call with nothing, and a call. */
struct rig {
	char dir[32], path[40];
	struct events events;
	struct grpc_server *server;
	struct grpc_request request;
	bool done;
	enum grpc_status status;
};

static void on_call(struct grpc_call *c, const void *request, size_t n)
{
	(void)request;
	(void)n;
	assert_int_equal(grpc_send(c, "", 0), 0);
	grpc_end(c, GRPC_OK, "");
}

static void on_gone(struct grpc_call *c)
{
	(void)c;
}

static const struct grpc_method methods[] = { { "/a.B/C", on_call }, { 0 } };

static void on_done(void *ctx, enum grpc_status status, const char *text,
		    const void *answer, size_t n)
{
	struct rig *rig = ctx;

	(void)text;
	(void)answer;
	(void)n;
	rig->done = true;
	rig->status = status;
}

static void open_rig(struct rig *rig)
{
	struct grpc_server_config config = { .events = &rig->events,
					     .methods = methods,
					     .gone = on_gone };
	struct err err = { 0 };

	*rig = (struct rig){ .dir = "/tmp/gpemu-grpc-XXXXXX" };
	assert_non_null(mkdtemp(rig->dir));
	snprintf(rig->path, sizeof(rig->path), "%s/s", rig->dir);
	rig->request = (struct grpc_request){ .path = rig->path,
					      .method = "/a.B/C",
					      .message = "",
					      .timeout_ns = 10 * NS_PER_S,
					      .done = on_done,
					      .ctx = rig };
	assert_int_equal(events_init(&rig->events), 0);
	assert_int_equal(
		grpc_server_new(&config, rig->path, &rig->server, &err), 0);
}

static void close_rig(struct rig *rig)
{
	grpc_server_free(rig->server);
	events_fini(&rig->events);
	assert_int_equal(rmdir(rig->dir), 0);
}

static void begin_call(struct rig *rig)
{
	struct grpc_client *client;
	struct err err = { 0 };

	rig->done = false;
	assert_int_equal(
		grpc_client_new(&rig->events, &rig->request, &client, &err), 0);
}

static void end_call(struct rig *rig, enum grpc_status status)
{
	while (!rig->done)
		assert_true(events_turn(&rig->events, true) >= 0);
	assert_int_equal(rig->status, status);
}

static struct sockaddr_un address(const struct rig *rig)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", rig->path);
	return a;
}

static int dial(const struct rig *rig)
{
	struct sockaddr_un a = address(rig);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void silent_clients_keep_nobody_out(void **state)
{
	/* the headers of a call whose message never comes */
	static const char half[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
				   "\0\0\0\4\0\0\0\0\0"
				   "\0\0\1\1\4\0\0\0\1\x83";
	int fd[2 * GRPC_CONNS];
	struct rig rig;

	(void)state;
	open_rig(&rig);
	for (int i = 0; i < 2 * GRPC_CONNS; i++) {
		fd[i] = dial(&rig);
		if (i & 1)
			assert_int_equal(send(fd[i], half, sizeof(half) - 1, 0),
					 sizeof(half) - 1);
		while (events_turn(&rig.events, false) > 0)
			;
	}
	begin_call(&rig);
	end_call(&rig, GRPC_OK);
	for (int i = 0; i < 2 * GRPC_CONNS; i++)
		close(fd[i]);
	close_rig(&rig);
}

static void without_descriptors_a_client_waits(void **state)
{
	struct rlimit all, few;
	struct rig rig;

	(void)state;
	open_rig(&rig);
	begin_call(&rig);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
	few = (struct rlimit){ .rlim_cur = 0, .rlim_max = all.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	/* and does not spin: it waits for a timer, or for nothing */
	for (int i = 0; i < 100; i++)
		events_turn(&rig.events, false);
	assert_int_equal(events_turn(&rig.events, false), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
	end_call(&rig, GRPC_OK);
	close_rig(&rig);
}

/* A server that answers a call with this status, on this stream. */
static void answers(const char *value, char stream, enum grpc_status status)
{
	char answer[64] = "\0\0\0\4\0\0\0\0\0\0\0\0\1\5\0\0\0\0\x88\0\13"
			  "grpc-status";
	size_t n = 32 + 1 + strlen(value);
	struct sockaddr_un a;
	struct rig rig;
	int listener, fd;

	open_rig(&rig);
	grpc_server_free(rig.server);
	rig.server = NULL;
	a = address(&rig);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(listener, 1), 0);
	begin_call(&rig);
	fd = accept(listener, NULL, NULL);
	while (events_turn(&rig.events, false) > 0)
		; /* the request is sent */
	answer[11] = (char)(n - 18);
	answer[17] = stream;
	answer[32] = (char)strlen(value);
	strcpy(answer + 33, value);
	assert_int_equal(send(fd, answer, n, 0), n);
	end_call(&rig, status);
	close(fd);
	close(listener);
	unlink(rig.path);
	close_rig(&rig);
}

static void a_status_is_a_number(void **state)
{
	(void)state;
	answers("14", 1, GRPC_UNAVAILABLE);
	answers("x", 1, GRPC_UNKNOWN);
	answers("", 1, GRPC_UNKNOWN);
	answers("-1", 1, GRPC_UNKNOWN);
	answers("4294967296", 1, GRPC_UNKNOWN);
	/* without a message; of a stream that nobody has opened */
	answers("0", 1, GRPC_INTERNAL);
	answers("0", 3, GRPC_UNAVAILABLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_comes_in_any_pieces),
		cmocka_unit_test(empty_large_and_compressed_messages),
		cmocka_unit_test(texts_are_percent_encoded),
		cmocka_unit_test(silent_clients_keep_nobody_out),
		cmocka_unit_test(without_descriptors_a_client_waits),
		cmocka_unit_test(a_status_is_a_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
