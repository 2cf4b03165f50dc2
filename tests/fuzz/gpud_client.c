/* SPDX-License-Identifier: MIT */
/* What a server says, as gpemu-train and gpemu-smi take it. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/gpu/gpud_client.h"
#include "share/smi_table.h"
#include "tests/fuzz/fuzz.h"

static void show(const struct gpud_status *s)
{
	static FILE *nowhere;
	json_t *j = json_loadb(s->json, s->n, 0, NULL);

	if (!nowhere)
		nowhere = fopen("/dev/null", "we");
	if (j)
		smi_table(j, nowhere);
	json_decref(j);
}

/* Until the server has nothing more to say. */
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
	/* an epoch's end, and being interrupted, are no server's to say */
	PROMISED(r != -ENODATA && r != -ECANCELED);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	enum { FIRST = 64 }; /* bytes, that messages are longer than */
	struct gpud_client c = { .path = strdup("a server"),
				 .buf = malloc(FIRST),
				 .size = FIRST };
	int fds[2];

	if (!c.path || !c.buf ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		abort();
	c.fd = fds[0];
	/* an input is less than a socket holds */
	PROMISED(send(fds[1], data, n, MSG_DONTWAIT) == (ssize_t)n);
	close(fds[1]);
	listen_to(&c);
	gpud_close(&c);
	return 0;
}
