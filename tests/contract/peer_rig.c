/* SPDX-License-Identifier: MIT */
#include "tests/contract/peer_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"

void nets_init(struct peer_net *nets, uint32_t n, uint64_t timeout_ns)
{
	char list[PLACE_NODES * 24] = "";
	int fd[PLACE_NODES];
	struct err err = { 0 };

	for (uint32_t i = 0; i < n; i++) {
		struct sockaddr_in a = { .sin_family = AF_INET,
					 .sin_addr.s_addr =
						 htonl(INADDR_LOOPBACK) };
		socklen_t size = sizeof(a);

		fd[i] = socket(AF_INET, SOCK_STREAM, 0);
		assert_int_equal(bind(fd[i], (void *)&a, sizeof(a)), 0);
		assert_int_equal(getsockname(fd[i], (void *)&a, &size), 0);
		sprintf(list + strlen(list), "%s127.0.0.1:%u", i ? "," : "",
			ntohs(a.sin_port));
	}
	for (uint32_t i = 0; i < n; i++)
		close(fd[i]);
	for (uint32_t i = 0; i < n; i++) {
		if (peer_net_init(&nets[i], list, i, NULL, &err) < 0)
			fail_msg("%s", err.text);
		nets[i].timeout_ns = timeout_ns;
	}
}

void nets_fini(struct peer_net *nets, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		peer_net_fini(&nets[i]);
}

json_int_t peer_stat(struct server *s, const char *name)
{
	json_auto_t *j = server_stats(s);

	return json_integer_value(
		json_object_get(json_object_get(j, "peer"), name));
}

void peer_wait(struct server *s, const char *name, json_int_t value)
{
	for (int i = 0; peer_stat(s, name) < value; i++) {
		if (i == 20000)
			fail_msg("%s stays %lld", name,
				 (long long)peer_stat(s, name));
		tick_pause(NS_PER_MS);
	}
}

/* --- an end --------------------------------------------------------------- */

int end_listen(const struct peer_net *net)
{
	struct err err = { 0 };
	int fd = addr_listen(&net->nodes[net->self], &err);

	if (fd < 0)
		fail_msg("%s", err.text);
	return fd;
}

static void wait_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, 20000), 1);
}

static void read_all(int fd, void *to, size_t n)
{
	assert_int_equal(recv(fd, to, n, MSG_WAITALL), n);
}

void end_accept(struct end *e, int listener, const struct seal_secret *secret)
{
	unsigned char theirs[FRAME_GREETING], mine[FRAME_GREETING];

	wait_readable(listener);
	*e = (struct end){ .fd = accept(listener, NULL, NULL),
			   .in.most = OBJECT_EXTENT };
	assert_true(e->fd >= 0);
	read_all(e->fd, theirs, sizeof(theirs));
	frame_greet(FRAME_VERSION, mine);
	end_send_plain(e, mine, sizeof(mine));
	seal_agree(secret, theirs, mine, sizeof(mine), 0, &e->seal);
}

void end_dial_plain(struct end *e, const struct peer_net *net)
{
	const struct addr *a = &net->nodes[net->self];

	*e = (struct end){ .fd = socket(a->at.ss_family, SOCK_STREAM, 0),
			   .in.most = OBJECT_EXTENT };
	assert_int_equal(connect(e->fd, (const void *)&a->at, a->n), 0);
}

void end_dial(struct end *e, const struct peer_net *net,
	      const struct seal_secret *secret)
{
	unsigned char theirs[FRAME_GREETING], mine[FRAME_GREETING];

	end_dial_plain(e, net);
	frame_greet(FRAME_VERSION, mine);
	end_send_plain(e, mine, sizeof(mine));
	read_all(e->fd, theirs, sizeof(theirs));
	seal_agree(secret, mine, theirs, sizeof(mine), 1, &e->seal);
}

size_t end_seal(struct end *e, const struct peer_msg *m, unsigned char *ret)
{
	size_t n = peer_encode(m, ret + FRAME_HEADER);

	if (m->n_data)
		memcpy(ret + FRAME_HEADER + n, m->data, m->n_data);
	n += m->n_data;
	for (int i = 0; i < FRAME_HEADER; i++)
		ret[i] = (unsigned char)((n + SEAL_TAG) >> 8 * i);
	seal_close(&e->seal, ret, FRAME_HEADER, n);
	return FRAME_HEADER + n + SEAL_TAG;
}

void end_send(struct end *e, const struct peer_msg *m)
{
	unsigned char *bytes = malloc(m->n_data + 200);

	end_send_plain(e, bytes, end_seal(e, m, bytes));
	free(bytes);
}

void end_send_plain(struct end *e, const void *bytes, size_t n)
{
	/* the other end may have closed */
	send(e->fd, bytes, n, MSG_NOSIGNAL);
}

bool end_receive(struct end *e, struct peer_msg *ret)
{
	unsigned char *frame;
	size_t n;

	while (!frame_next(&e->in, &frame, &n)) {
		size_t room;
		unsigned char *to = frame_space(&e->in, &room);
		ssize_t got;

		wait_readable(e->fd);
		got = recv(e->fd, to, room, 0);
		if (got <= 0)
			return false;
		frame_add(&e->in, (size_t)got);
	}
	n -= FRAME_HEADER;
	assert_int_equal(seal_open(&e->seal, frame, FRAME_HEADER, n), 0);
	assert_int_equal(peer_decode(frame + FRAME_HEADER, n - SEAL_TAG, ret),
			 0);
	return true;
}

void end_wait_closed(struct end *e)
{
	char bytes[4096];

	do
		wait_readable(e->fd);
	while (recv(e->fd, bytes, sizeof(bytes), 0) > 0);
}

void end_close(struct end *e)
{
	close(e->fd);
	frame_in_fini(&e->in);
}
