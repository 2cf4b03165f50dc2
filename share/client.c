/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/util.h"
#include "share/server.h"

/* To be sent to one client, at most. arbitrary: the longest message and many
 * short ones; who lets more pile up does not read */
enum { MAX_OUT = GPUD_MAX_MESSAGE + (64 << 10) };

void client_send(struct client *c, const struct gpud_msg *m)
{
	size_t n = gpud_size(m);

	if (c->dead)
		return;
	if (c->out_n + n > c->out_size) {
		size_t size = MIN(2 * (c->out_n + n), MAX_OUT);
		uint8_t *out = c->out_n + n > MAX_OUT ? NULL
						      : realloc(c->out, size);

		if (!out) {
			c->dead = true;
			return;
		}
		c->out = out;
		c->out_size = size;
	}
	gpud_encode(m, c->out + c->out_n);
	c->out_n += n;
}

void client_refuse(struct client *c, int error, const char *text)
{
	struct gpud_msg m = { .type = GPUD_ERROR,
			      .error.code = (uint32_t)-error };

	snprintf(m.error.text, sizeof(m.error.text), "%.*s", GPUD_TEXT - 1,
		 text);
	client_send(c, &m);
	c->dead = true;
}

void client_flush(struct client *c)
{
	while (c->out_at < c->out_n) {
		ssize_t k = send(c->socket.fd, c->out + c->out_at,
				 c->out_n - c->out_at,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0 && errno != EAGAIN)
			c->dead = true;
		if (k < 0)
			break;
		c->out_at += (size_t)k;
	}
	if (c->out_at == c->out_n)
		c->out_at = c->out_n = 0;
	if (!c->dead)
		events_want(&c->server->events, &c->socket,
			    EPOLLIN | (c->out_n ? EPOLLOUT : 0));
}

void client_free(struct client *c)
{
	close(c->socket.fd);
	free(c->out);
	free(c);
}
