/* SPDX-License-Identifier: MIT */
/* Messages of a server, as gpemu-train and gpemu-smi parse them. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/gpu/gpud_client.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/smi.h"

static void show(const struct gpud_status *status)
{
	json_t *j = json_loadb(status->json, status->n, 0, NULL);

	if (j)
		smi_show(j);
	json_decref(j);
}

/* Until the server has no more messages. */
static void listen_to(struct gpud_client *c)
{
	struct err err = { 0 };
	struct gpud_msg m;
	int r;

	while ((r = gpud_receive(c, &m, &err)) == 0) {
		PROMISED(m.type != GPUD_ERROR && gpud_type_name(m.type));
		if (m.type == GPUD_STATUS)
			show(&m.status);
	}
	PROMISED(err.text[0] && r > -4096);
	/* no server may report the end of an epoch, or an interruption */
	PROMISED(r != -ENODATA && r != -ECANCELED);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	enum { FIRST = 64 }; /* bytes; messages are longer */
	struct gpud_client c = { .path = strdup("a server"),
				 .buf = malloc(FIRST),
				 .size = FIRST };
	int fds[2];

	if (!c.path || !c.buf ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		abort();
	c.fd = fds[0];
	/* an input fits into the buffer of a socket */
	PROMISED(send(fds[1], data, n, MSG_DONTWAIT) == (ssize_t)n);
	close(fds[1]);
	listen_to(&c);
	gpud_close(&c);
	return 0;
}
