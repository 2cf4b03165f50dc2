/* SPDX-License-Identifier: MIT */
/*
 * Sessions of a dispatcher (end 0, which the worker dials) and of trainers (the
 * others) with a worker of the preparation service (session.h). The dispatcher
 * completes a JOB with the definition of one on a folder of eight files.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/units.h"
#include "common/util.h"
#include "loader/dataset/format_open.h"
#include "loader/options/train_job.h"
#include "loader/options/train_resolve.h"
#include "loader/options/train_table.h"
#include "service/proto/msg.h"
#include "service/worker/serve.h"
#include "tests/fuzz/session.h"

/* One that has lost its dispatcher waits 100 ms, and others are used meanwhile.
 */
enum { FILES = 8, BYTES = 20, WORKERS = 16 };

static char dir[] = "/tmp/gpemu-fuzz-worker.XXXXXX";
static char *definition;
static struct access access_of;
static struct node {
	struct addr dispatcher, at;
	int listener;
	struct serve *worker;
	struct session session;
} node[WORKERS];
static struct tick *tick; /* NULL: not started */

static void tidy(void)
{
	char path[80];

	for (int i = 0; i < FILES; i++) {
		snprintf(path, sizeof(path), "%s/%d", dir, i);
		unlink(path);
	}
	rmdir(dir);
}

static void fill_folder(void)
{
	char path[80];

	PROMISED(mkdtemp(dir));
	atexit(tidy);
	for (int i = 0; i < FILES; i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/%d", dir, i);
		fd = open(path, O_WRONLY | O_CREAT, 0600);
		PROMISED(util_write_all(fd, path, BYTES) == 0);
		close(fd);
	}
}

static void set(char **option, const char *value)
{
	free(*option);
	*option = strdup(value);
}

static void define(void)
{
	struct train_options o = { 0 };
	struct train_choice choice = { 0 };
	struct dataset data = { .dirfd = -1 };
	struct format_result how = { 0 };
	struct err err = { 0 };
	json_t *j;

	train_options_init(&o);
	set(&o.data, dir);
	set(&o.index, "off");
	set(&o.prep, "none");
	o.batch = 2;
	PROMISED(train_options_resolve(&o, &choice, &err) == 0);
	PROMISED(train_data_open(&o, &choice, &data, &how, &err) == 0);
	j = train_job_json(&o, &data, false, NULL);
	definition = json_dumps(j, 0);
	PROMISED(definition);
	json_decref(j);
	format_result_fini(&how);
	dataset_close(&data);
	train_choice_fini(&choice);
	conf_free(train_fields, &o);
}

static void *run(void *arg)
{
	struct err err = { 0 };
	/* a REFUSE ends it, which the input must not send */
	int r = serve_run(arg, &err);

	PROMISED(r == 0);
	return NULL;
}

/* The dispatcher hears the HELLO, and welcomes the worker. */
static bool open_end(struct session *s, unsigned who, struct session_end *e)
{
	const struct msg welcome = { .type = PREPD_WELCOME,
				     .a = 20 * NS_PER_S };
	const struct node *w = container_of(s, struct node, session);
	unsigned char head[PREPD_HEAD];
	size_t n;

	if (who)
		return session_dial(&w->at, s->secret, e);
	while (!session_accept(w->listener, s->secret, e) ||
	       !session_hear(e, &n))
		;
	msg_encode(&welcome, head);
	session_say(e, head, sizeof(head));
	return true;
}

/* A JOB gets the definition. The worker may end when it is refused, or told to
 * leave. */
static size_t complete(struct session *s, unsigned who, unsigned char *m,
		       size_t n)
{
	size_t n_rest = strlen(definition);

	(void)s;
	if (who || n < PREPD_HEAD)
		return n;
	memcpy(m + PREPD_HEAD, definition, n_rest);
	return PREPD_HEAD + n_rest;
}

static void start_node(struct node *w)
{
	struct serve_config c = {
		.tick = tick,
		.access = &access_of,
		.dispatcher = &w->dispatcher,
		.listen = &w->at,
		.window_bytes = 2000,
		.timeout_ns = 20 * NS_PER_S,
		.options = { .data = dir,
			     .loader = "sync",
			     .workers = 1,
			     .prefetch = FILES,
			     .time_scale = 1 },
	};
	struct err err = { 0 };
	pthread_t thread;

	session_port(&w->dispatcher);
	w->listener = addr_listen(&w->dispatcher, &err);
	PROMISED(w->listener >= 0);
	session_port(&w->at);
	c.address = w->at.text;
	PROMISED(serve_new(&c, &w->worker, &err) == 0);
	PROMISED(pthread_create(&thread, NULL, run, w->worker) == 0);
	w->session = (struct session){ .secret = &access_of.secret,
				       .open = open_end,
				       .complete = complete,
				       .deaf = true };
	for (int i = 0; i < SESSION_ENDS; i++)
		w->session.end[i].fd = -1;
}

static void start(void)
{
	struct err err = { 0 };

	if (tick)
		return;
	log_init("fuzz", LOG_LEVEL_ERROR);
	fill_folder();
	define();
	PROMISED(access_init(&access_of, NULL, &err) == 0);
	tick = tick_new(.01, 0);
	PROMISED(tick);
	for (int i = 0; i < WORKERS; i++)
		start_node(&node[i]);
}

/* Would it end? That is what it has to do. */
static bool ends_it(const uint8_t *data, size_t n)
{
	while (n >= 3) {
		size_t bytes = MIN(data[1] | (size_t)data[2] << 8, n - 3);

		if (data[0] % SESSION_ENDS == 0 && bytes &&
		    (data[3] == PREPD_REFUSE || data[3] == PREPD_LEAVE))
			return true;
		data += 3 + bytes;
		n -= 3 + bytes;
	}
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static unsigned next;
	struct session_end e;
	struct node *w;

	if (ends_it(data, n))
		return -1;
	start();
	w = &node[next++ % WORKERS];
	session_play(&w->session, data, n, 1);
	/* it serves, also while it waits to dial again */
	PROMISED(session_dial(&w->at, w->session.secret, &e));
	session_leave(&e);
	return 0;
}
