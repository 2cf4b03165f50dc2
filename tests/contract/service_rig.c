/* SPDX-License-Identifier: MIT */
#include "tests/contract/service_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "common/units.h"
#include "common/util.h"
#include "net/wire.h"
#include "tests/unit/test.h"

static int a_socket(void)
{
	const struct timeval most = { .tv_sec = 20 };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
	return fd;
}

int hand_listen(char ret[32])
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(at);
	int fd = a_socket();

	assert_int_equal(bind(fd, (const void *)&at, n), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (void *)&at, &n), 0);
	snprintf(ret, 32, "127.0.0.1:%d", ntohs(at.sin_port));
	return fd;
}

void hand_say_plain(struct hand *h, const void *bytes, size_t n)
{
	/* the other end may have closed */
	send(h->fd, bytes, n, MSG_NOSIGNAL);
}

void hand_dial_plain(struct hand *h, const struct addr *to)
{
	*h = (struct hand){ .fd = a_socket(), .in.most = PREPD_MOST };
	assert_int_equal(connect(h->fd, (const void *)&to->at, to->n), 0);
}

void hand_agree(struct hand *h, const struct seal_secret *secret, int dialed)
{
	unsigned char mine[FRAME_GREETING], theirs[FRAME_GREETING];
	const ssize_t n = FRAME_GREETING;

	frame_greet(FRAME_VERSION, mine);
	hand_say_plain(h, mine, sizeof(mine));
	assert_int_equal(recv(h->fd, theirs, sizeof(theirs), MSG_WAITALL), n);
	seal_agree(secret, dialed ? mine : theirs, dialed ? theirs : mine,
		   sizeof(mine), dialed, &h->seal);
}

void hand_dial(struct hand *h, const struct addr *to,
	       const struct seal_secret *secret)
{
	hand_dial_plain(h, to);
	hand_agree(h, secret, 1);
}

unsigned char *hand_frame(struct hand *h, const struct msg *m, size_t *n)
{
	unsigned char *f =
		malloc(FRAME_HEADER + PREPD_HEAD + m->n_rest + SEAL_TAG);
	size_t body = PREPD_HEAD + m->n_rest;

	wire_put(f, body + SEAL_TAG, FRAME_HEADER);
	msg_encode(m, f + FRAME_HEADER);
	if (m->n_rest)
		memcpy(f + FRAME_HEADER + PREPD_HEAD, m->rest, m->n_rest);
	seal_close(&h->seal, f, FRAME_HEADER, body);
	*n = FRAME_HEADER + body + SEAL_TAG;
	return f;
}

void hand_say(struct hand *h, const struct msg *m)
{
	size_t n;
	unsigned char *f = hand_frame(h, m, &n);

	hand_say_plain(h, f, n);
	free(f);
}

static bool hear_frame(struct hand *h, unsigned char **ret, size_t *ret_n)
{
	unsigned char *to;

	while (!frame_next(&h->in, ret, ret_n)) {
		size_t room;
		ssize_t got;

		to = frame_space(&h->in, &room);
		got = recv(h->fd, to, room, 0);
		assert_false(got < 0 && errno == EAGAIN);
		if (got <= 0)
			return false;
		frame_add(&h->in, (size_t)got);
	}
	return true;
}

/* The parcel behind a head. */
static void hear_parcel(struct hand *h, struct msg *m)
{
	unsigned char *frame, *rest;
	struct msg head = *m;
	size_t n;

	assert_true(hear_frame(h, &frame, &n));
	n -= FRAME_HEADER;
	free(h->batch);
	h->batch = malloc(PREPD_HEAD + n);
	rest = h->batch + PREPD_HEAD;
	memcpy(rest, frame + FRAME_HEADER, n);
	assert_int_equal(seal_open_common(&h->key, head.job, head.c, rest, n),
			 0);
	head.type = PREPD_BATCH;
	msg_encode(&head, h->batch);
	assert_int_equal(msg_decode(h->batch, PREPD_HEAD + n - SEAL_TAG, m), 0);
}

bool hand_hear(struct hand *h, struct msg *ret)
{
	unsigned char *frame;
	size_t n;

	if (!hear_frame(h, &frame, &n))
		return false;
	n -= FRAME_HEADER;
	assert_int_equal(seal_open(&h->seal, frame, FRAME_HEADER, n), 0);
	assert_int_equal(msg_decode(frame + FRAME_HEADER, n - SEAL_TAG, ret),
			 0);
	if (ret->type == PREPD_KEY)
		memcpy(h->key.bytes, ret->rest, SEAL_KEY);
	else if (ret->type == PREPD_SHARED)
		hear_parcel(h, ret);
	return true;
}

void hand_hear_type(struct hand *h, enum msg_type type, struct msg *ret)
{
	do
		assert_true(hand_hear(h, ret));
	while (ret->type != type);
}

void hand_close(struct hand *h)
{
	close(h->fd);
	frame_in_fini(&h->in);
	free(TAKE_PTR(h->batch));
}

void hand_wait_end(struct hand *h)
{
	char bytes[4096];
	ssize_t got;

	while ((got = recv(h->fd, bytes, sizeof(bytes), 0)) > 0)
		;
	assert_false(got < 0 && errno == EAGAIN);
	hand_close(h);
}

static void *run(void *arg)
{
	struct service_rig *r = arg;
	struct err err = { 0 };

	assert_int_equal(dispatcher_run(r->d, &err), 0);
	return NULL;
}

void hand_is_alive(struct hand *h)
{
	const struct msg beat = { .type = PREPD_BEAT, .a = 17 };
	struct msg m;

	hand_say(h, &beat);
	hand_hear_type(h, PREPD_BEAT, &m);
	assert_int_equal(m.a, 17);
}

void service_rig_register(struct service_rig *r, uint64_t id)
{
	struct msg hello = { .type = PREPD_HELLO,
			     .role = PREPD_WORKER,
			     .id = id,
			     .rest = "127.0.0.1:8",
			     .n_rest = strlen("127.0.0.1:8") },
		   m;

	hand_dial(&r->honest, &r->at, &r->access.secret);
	hand_say(&r->honest, &hello);
	hand_hear_type(&r->honest, PREPD_WELCOME, &m);
}

void service_rig_start(struct service_rig *r, uint64_t timeout_ns)
{
	struct dispatcher_config c = { .access = &r->access,
				       .listen = &r->at,
				       .timeout_ns = timeout_ns,
				       .job_timeout_ns = NS_PER_S };
	struct err err = { 0 };
	char at[32];

	log_init("test", LOG_LEVEL_ERROR);
	*r = (struct service_rig){ .tick = tick_new(1, 0) };
	c.tick = r->tick;
	close(hand_listen(at));
	assert_int_equal(access_init(&r->access, NULL, &err), 0);
	assert_int_equal(access_find(&r->access, at, &r->at, &err), 0);
	assert_int_equal(dispatcher_new(&c, &r->d, &err), 0);
	assert_int_equal(pthread_create(&r->thread, NULL, run, r), 0);
	service_rig_register(r, RIG_WORKER);
}

json_t *service_rig_end(struct service_rig *r)
{
	json_t *j;

	hand_close(&r->honest);
	dispatcher_stop(r->d);
	pthread_join(r->thread, NULL);
	j = dispatcher_json(r->d);
	dispatcher_free(r->d);
	addr_fini(&r->at);
	access_fini(&r->access);
	tick_free(r->tick);
	return j;
}

json_int_t service_rig_stop(struct service_rig *r, const char *why)
{
	json_t *j = service_rig_end(r);
	json_int_t n = json_integer_value(
		json_object_get(json_object_get(j, "connections"), why));

	json_decref(j);
	return n;
}
