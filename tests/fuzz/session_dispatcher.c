/* SPDX-License-Identifier: MIT */
/* Sessions of workers and trainers with a dispatcher of the preparation service
 * (session.h). It keeps its jobs from one input to the next, for 50 ms. */
#include <pthread.h>
#include <string.h>

#include "common/log.h"
#include "common/units.h"
#include "service/dispatcher/dispatcher.h"
#include "service/proto/msg.h"
#include "tests/fuzz/session.h"

static struct access access_of;
static struct addr at;
static struct dispatcher *dispatcher;
static struct session session;

static void *run(void *arg)
{
	struct err err = { 0 };

	PROMISED(dispatcher_run(arg, &err) == 0);
	return NULL;
}

static bool dial(struct session *s, unsigned who, struct session_end *e)
{
	(void)who;
	return session_dial(&at, s->secret, e);
}

static void start(void)
{
	struct dispatcher_config c = { .access = &access_of,
				       .listen = &at,
				       .timeout_ns = 20 * NS_PER_S,
				       .job_timeout_ns = 50 * NS_PER_MS };
	struct err err = { 0 };
	pthread_t thread;

	if (dispatcher)
		return;
	log_init("fuzz", LOG_LEVEL_ERROR);
	PROMISED(access_init(&access_of, NULL, &err) == 0);
	session_port(&at);
	c.tick = tick_new(1, 0);
	PROMISED(dispatcher_new(&c, &dispatcher, &err) == 0);
	PROMISED(pthread_create(&thread, NULL, run, dispatcher) == 0);
	session = (struct session){ .secret = &access_of.secret, .open = dial };
	for (int i = 0; i < SESSION_ENDS; i++)
		session.end[i].fd = -1;
}

/* A trainer is welcome. */
static void check_alive(void)
{
	const struct msg hello = {
		.type = PREPD_HELLO, .role = PREPD_TRAINER, .id = 1, .job = 1
	};
	unsigned char head[PREPD_HEAD];
	const unsigned char *bytes;
	struct session_end e;
	struct msg m;
	size_t n;

	PROMISED(dial(&session, 0, &e));
	msg_encode(&hello, head);
	session_say(&e, head, sizeof(head));
	/* other jobs' messages do not come to it */
	bytes = session_hear(&e, &n);
	PROMISED(bytes && msg_decode(bytes, n, &m) == 0);
	PROMISED(m.type == PREPD_WELCOME || m.type == PREPD_TASK);
	session_leave(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	start();
	session_play(&session, data, n, 0);
	check_alive();
	return 0;
}
