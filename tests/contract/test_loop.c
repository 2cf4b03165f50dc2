/* SPDX-License-Identifier: MIT */
/* The loop of connections, against clients that do not keep to anything. */
#include "tests/unit/test.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/units.h"
#include "net/loop.h"

struct rig {
	struct tick *tick;
	struct nic *nic;
	struct loop *loop;
	struct seal_secret secret;
	struct sockaddr_in at;
	uint32_t accepted, ended; /* atomic */
	/* of the thread, until the loop has stopped */
	uint32_t in_round, most_in_round;
};

static int message(struct conn *c, unsigned char *m, size_t n, uint64_t now)
{
	(void)c;
	(void)m;
	(void)n;
	(void)now;
	return 0;
}

static uint64_t fill(struct conn *c, uint64_t now)
{
	(void)c;
	(void)now;
	return TICK_NEVER;
}

static void count(uint32_t *n)
{
	__atomic_fetch_add(n, 1, __ATOMIC_SEQ_CST);
}

static void ended(struct conn *c, int why)
{
	struct rig *r = c->user;

	(void)why;
	count(&r->ended);
}

static const struct conn_ops ops = { message, fill, ended };

static int accepted(struct conn *c, void *ctx)
{
	struct rig *r = ctx;

	c->ops = &ops;
	c->user = r;
	r->in_round++;
	count(&r->accepted);
	return 0;
}

static void refused(void *ctx)
{
	struct rig *r = ctx;

	r->in_round++;
}

static uint64_t go_round(void *ctx, uint64_t now)
{
	struct rig *r = ctx;

	(void)now;
	if (r->in_round > r->most_in_round)
		r->most_in_round = r->in_round;
	r->in_round = 0;
	return TICK_NEVER;
}

/* It listens; loop_start lets it accept. */
static void rig_init(struct rig *r)
{
	struct loop_config c = { .secret = &r->secret,
				 .timeout_ns = 60 * NS_PER_S,
				 .accepted = accepted,
				 .refused = refused,
				 .round = go_round,
				 .ctx = r };
	socklen_t n = sizeof(r->at);

	*r = (struct rig){ .tick = tick_new(1, 0),
			   .nic = nic_new(),
			   .at = { .sin_family = AF_INET } };
	r->at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	r->secret = (struct seal_secret){ 0 };
	c.tick = r->tick;
	c.nic = r->nic;
	assert_non_null(c.nic);
	c.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(c.listener, (void *)&r->at, n), 0);
	assert_int_equal(listen(c.listener, 128), 0);
	assert_int_equal(getsockname(c.listener, (void *)&r->at, &n), 0);
	assert_int_equal(loop_new(&c, &r->loop), 0);
}

static void rig_fini(struct rig *r)
{
	loop_free(r->loop);
	nic_free(r->nic);
	tick_free(r->tick);
}

static int dial(const struct rig *r)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(connect(fd, (const void *)&r->at, sizeof(r->at)), 0);
	return fd;
}

/* Is there an answer to a greeting? */
static bool is_greeted(int fd)
{
	unsigned char g[FRAME_GREETING];
	struct pollfd p = { .fd = fd, .events = POLLIN };

	frame_greet(FRAME_VERSION, g);
	send(fd, g, sizeof(g), MSG_NOSIGNAL);
	return poll(&p, 1, 20000) == 1 &&
	       recv(fd, g, sizeof(g), MSG_WAITALL) == sizeof(g);
}

static void wait_until(const uint32_t *n, uint32_t value)
{
	for (int i = 0; __atomic_load_n(n, __ATOMIC_SEQ_CST) < value; i++) {
		assert_true(i < 20000);
		tick_pause(NS_PER_MS);
	}
}

static int lines_of(const char *file, const char *word)
{
	char path[300], line[300];
	FILE *f;
	int n = 0;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%s", file);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		n += !strncmp(line, word, strlen(word));
	if (f)
		fclose(f);
	return n;
}

/* The files that this process's epoll(7) watch. */
static int watched(void)
{
	DIR *d = opendir("/proc/self/fdinfo");
	const struct dirent *e;
	int n = 0;

	while ((e = readdir(d)))
		n += lines_of(e->d_name, "tfd:");
	closedir(d);
	return n;
}

/* Even while a child has a copy of its socket, which keeps the file open. */
static void a_connection_that_has_ended_has_no_events(void **state)
{
	struct rig r;
	int fd, before;
	pid_t child;

	(void)state;
	rig_init(&r);
	assert_int_equal(loop_start(r.loop), 0);
	before = watched();
	fd = dial(&r);
	assert_true(is_greeted(fd));
	assert_int_equal(watched(), before + 1);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	/* a frame that is too long */
	assert_int_equal(send(fd, "\xff\xff\xff\xff", 4, MSG_NOSIGNAL), 4);
	wait_until(&r.ended, 1);
	assert_int_equal(watched(), before);
	send(fd, "more", 4, MSG_NOSIGNAL);
	close(fd);
	fd = dial(&r);
	assert_true(is_greeted(fd));
	close(fd);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	rig_fini(&r);
}

/* They come all at once and say nothing. */
static void a_crowd_neither_holds_the_loop_nor_the_door(void **state)
{
	enum { CROWD = 100 };
	int crowd[CROWD], fd;
	struct rig r;

	(void)state;
	rig_init(&r);
	for (int i = 0; i < CROWD; i++)
		crowd[i] = dial(&r);
	assert_int_equal(loop_start(r.loop), 0);
	fd = dial(&r);
	assert_true(is_greeted(fd));
	wait_until(&r.ended, CROWD + 1 - LOOP_STRANGERS);
	loop_stop(r.loop);
	assert_int_equal(r.accepted, CROWD + 1);
	assert_in_range(r.most_in_round, 1, LOOP_ACCEPTS);
	for (int i = 0; i < CROWD; i++)
		close(crowd[i]);
	close(fd);
	rig_fini(&r);
}

/* Whoever came meanwhile is in the queue, and no new one has to come. */
static void without_descriptors_the_queue_waits(void **state)
{
	struct rlimit before, none;
	struct rig r;
	int fd;

	(void)state;
	rig_init(&r);
	assert_int_equal(loop_start(r.loop), 0);
	getrlimit(RLIMIT_NOFILE, &before);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	none = before;
	none.rlim_cur = 3; /* no number is below it */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(connect(fd, (const void *)&r.at, sizeof(r.at)), 0);
	tick_pause(20 * NS_PER_MS); /* it tries, and cannot */
	assert_int_equal(__atomic_load_n(&r.accepted, __ATOMIC_SEQ_CST), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(is_greeted(fd));
	close(fd);
	rig_fini(&r);
}

/* --- messages with memory of their own ------------------------------------ */

enum { LARGE = 300000 };

/* One loop dials itself. */
struct package {
	struct rig r;
	struct addr at;
	unsigned char source[LARGE], memory[LARGE + 100];
	struct conn *out;
	uint32_t n_sent;
	uint32_t n_came, n_apart, n_ended; /* atomic */
	bool same, elsewhere;
};

static unsigned char *parcel_apart(struct conn *c, size_t n)
{
	struct package *p = c->user;

	count(&p->n_apart);
	return n <= sizeof(p->memory) ? p->memory : NULL;
}

/* The first is trusted, the second large, the others small. */
static int parcel_message(struct conn *c, unsigned char *m, size_t n,
			  uint64_t now)
{
	struct package *p = c->user;

	(void)now;
	if (p->n_came == 0)
		conn_trust(c, 2 * LARGE);
	else
		p->elsewhere = p->elsewhere || m != p->memory;
	if (p->n_came == 1)
		p->same = n == LARGE && !memcmp(m, p->source, LARGE);
	count(&p->n_came);
	return 0;
}

static uint64_t parcel_fill(struct conn *c, uint64_t now)
{
	struct package *p = c->user;
	const struct iovec piece[] = { { p->source, 1 },
				       { NULL, 0 },
				       { p->source + 1, LARGE - 1 } };

	if (c != p->out || p->n_sent == 5)
		return TICK_NEVER;
	if (p->n_sent == 1)
		conn_send_pieces(c, piece, 3, now);
	else if (p->n_sent == 4) /* longer than its memory */
		conn_send(c, p->memory, sizeof(p->memory), "x", 1, now);
	else
		conn_send(c, "x", 1, NULL, 0, now);
	p->n_sent++;
	return now;
}

static void parcel_ended(struct conn *c, int why)
{
	struct package *p = c->user;

	if (why == -ENOBUFS)
		count(&p->n_ended);
}

static const struct conn_ops parcel_ops = { parcel_message, parcel_fill,
					    parcel_ended, parcel_apart };

static int parcel_accepted(struct conn *c, void *ctx)
{
	c->ops = &parcel_ops;
	c->user = ctx;
	return 0;
}

static void parcel_refused(void *ctx)
{
	(void)ctx;
}

static uint64_t parcel_round(void *ctx, uint64_t now)
{
	struct package *p = ctx;

	(void)now;
	if (!p->out)
		loop_dial(p->r.loop, &p->at, &parcel_ops, p, &p->out);
	return TICK_NEVER;
}

static void a_message_is_received_where_the_user_says(void **state)
{
	struct package *p = calloc(1, sizeof(*p));
	struct loop_config c = { .timeout_ns = 60 * NS_PER_S,
				 .accepted = parcel_accepted,
				 .refused = parcel_refused,
				 .round = parcel_round,
				 .ctx = p };

	(void)state;
	rig_init(&p->r);
	loop_free(p->r.loop);
	c.tick = p->r.tick;
	c.nic = p->r.nic;
	c.secret = &p->r.secret;
	c.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	p->r.at.sin_port = 0;
	assert_int_equal(bind(c.listener, (void *)&p->r.at, sizeof(p->r.at)),
			 0);
	assert_int_equal(listen(c.listener, 8), 0);
	p->at.n = sizeof(p->r.at);
	assert_int_equal(getsockname(c.listener, (void *)&p->at.at, &p->at.n),
			 0);
	for (size_t i = 0; i < LARGE; i++)
		p->source[i] = (unsigned char)(i * 31 >> 3);
	assert_int_equal(loop_new(&c, &p->r.loop), 0);
	assert_int_equal(loop_start(p->r.loop), 0);
	wait_until(&p->n_ended, 1);
	loop_stop(p->r.loop);
	assert_int_equal(p->n_came, 4);
	assert_int_equal(p->n_apart, 4); /* all but the first, and the last */
	assert_true(p->same);
	assert_false(p->elsewhere);
	rig_fini(&p->r);
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_descriptors_the_queue_waits),
		cmocka_unit_test(a_message_is_received_where_the_user_says),
		cmocka_unit_test(a_connection_that_has_ended_has_no_events),
		cmocka_unit_test(a_crowd_neither_holds_the_loop_nor_the_door),
	};

	return seal_init(NULL) < 0 ? 1
				   : cmocka_run_group_tests(tests, NULL, NULL);
}
