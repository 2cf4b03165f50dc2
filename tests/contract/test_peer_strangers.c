/* SPDX-License-Identifier: MIT */
/*
 * A server of a partitioned cache and a peer that is not what it seems: dead,
 * slow, with another key, sending garbage. All that is read is compared with
 * the dataset.
 */
#include "tests/contract/peer_rig.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/units.h"
#include "common/util.h"
#include "net/loop.h"

#define PATIENT (20 * NS_PER_S)
#define HASTY (600 * NS_PER_MS)

/* --- an owner that is none ------------------------------------------------ */

/* What a node must say to be welcome. */
static struct peer_msg hello_of(struct fixture *f, const struct peer_net *net,
				struct server *s, enum peer_type type)
{
	unsigned n_caches;
	struct peer_msg m = {
		.type = type,
		.hello = { .version = PEER_VERSION,
			   .node = net->self,
			   .nodes = net->n,
			   .seed = 1,
			   .capacity_bytes = server_capacity(s, &n_caches) },
	};

	assert_int_equal(place_fingerprint(&f->tree, m.hello.fingerprint), 0);
	return m;
}

/* Node 0 is a server, node 1 the test. */
struct pair {
	struct peer_net nets[2];
	struct server *s;
	struct end owner; /* what node 0 asks */
	int listener;
};

static void pair_start_on(struct fixture *f, struct pair *p,
			  uint64_t timeout_ns, const char *storage)
{
	struct peer_msg m;

	nets_init(p->nets, 2, timeout_ns);
	p->listener = end_listen(&p->nets[1]);
	f->fraction = .65;
	f->peers = &p->nets[0];
	p->s = rig_start(f, "minio", storage);
	f->peers = NULL;
	end_accept(&p->owner, p->listener, &p->nets[1].secret);
	assert_true(end_receive(&p->owner, &m));
	assert_int_equal(m.type, PEER_HELLO);
	m = hello_of(f, &p->nets[1], p->s, PEER_WELCOME);
	end_send(&p->owner, &m);
	peer_wait(p->s, "connected", 1);
}

static void pair_start(struct fixture *f, struct pair *p, uint64_t timeout_ns)
{
	pair_start_on(f, p, timeout_ns, "ideal");
}

static void pair_stop(struct fixture *f, struct pair *p)
{
	server_free(p->s);
	end_close(&p->owner);
	close(p->listener);
	nets_fini(p->nets, 2);
	f->fraction = 0;
}

/* Read all files; the owner gets some questions and does `answer`. All bytes
 * are right and the owner is `counted`. */
static void with_owner(struct fixture *f, uint64_t timeout_ns,
		       void (*answer)(struct end *e, const struct peer_msg *m),
		       const char *counted)
{
	struct wait w[N_FILES];
	struct peer_msg m;
	struct pair p;

	pair_start(f, &p, timeout_ns);
	for (int i = 0; i < N_FILES; i++)
		rig_start_read(f, p.s, &w[i], i);
	assert_true(end_receive(&p.owner, &m));
	assert_int_equal(m.type, PEER_GET);
	answer(&p.owner, &m);
	for (int i = 0; i < N_FILES; i++)
		assert_int_equal(rig_end_read(f, p.s, &w[i], i), 0);
	assert_int_equal(peer_stat(p.s, "lost"), 1);
	/* again if it dials once more */
	assert_true(peer_stat(p.s, counted) > 0);
	assert_int_equal(peer_stat(p.s, "hits"), 0);
	assert_true(peer_stat(p.s, "unanswered") > 0);
	assert_int_equal(rig_stat(p.s, "backend_reads"), N_FILES);
	pair_stop(f, &p);
}

static unsigned char zeros[1 << 20];

static void answer_short(struct end *e, const struct peer_msg *m)
{
	end_send(e, &(struct peer_msg){ .type = PEER_DATA,
					.id = m->id,
					.data = zeros,
					.n_data = m->bytes - 1 });
}

static void answer_another(struct end *e, const struct peer_msg *m)
{
	end_send(e, &(struct peer_msg){ .type = PEER_NOTFOUND,
					.id = m->id + 7 * PEER_MOST_GETS });
}

static void answer_with_a_question(struct end *e, const struct peer_msg *m)
{
	(void)m;
	end_send(e, &(struct peer_msg){ .type = PEER_GET });
}

static void answer_garbage(struct end *e, const struct peer_msg *m)
{
	(void)m;
	memset(zeros, 0x33, 1000);
	end_send_plain(e, "\x40\0\0\0", 4);
	end_send_plain(e, zeros, 1000);
	memset(zeros, 0, 1000);
}

static void answer_too_much(struct end *e, const struct peer_msg *m)
{
	(void)m;
	end_send_plain(e, "\xff\xff\xff\xff", 4);
}

static void answer_nothing(struct end *e, const struct peer_msg *m)
{
	(void)e;
	(void)m;
}

/* It would take minutes. */
static void answer_slowly(struct end *e, const struct peer_msg *m)
{
	struct peer_msg data = { .type = PEER_DATA,
				 .id = m->id,
				 .data = zeros,
				 .n_data = m->bytes };
	unsigned char *bytes = malloc(m->bytes + 200);
	size_t n = end_seal(e, &data, bytes);
	ssize_t got;
	char c;

	for (size_t i = 0; i < n; i++) {
		end_send_plain(e, bytes + i, 1);
		tick_pause(20 * NS_PER_MS);
		/* the questions that are still there, or the end */
		got = recv(e->fd, &c, 1, MSG_DONTWAIT);
		if (got == 0 || (got < 0 && errno != EAGAIN))
			break;
	}
	free(bytes);
}

static void leave(struct end *e, const struct peer_msg *m)
{
	(void)m;
	shutdown(e->fd, SHUT_RDWR);
}

static void a_bad_owner_costs_a_read_of_the_storage(void **state)
{
	with_owner(*state, PATIENT, answer_short, "refused");
	with_owner(*state, PATIENT, answer_another, "refused");
	with_owner(*state, PATIENT, answer_with_a_question, "refused");
	with_owner(*state, PATIENT, answer_garbage, "refused");
	with_owner(*state, PATIENT, answer_too_much, "refused");
	with_owner(*state, HASTY, answer_nothing, "timeouts");
	with_owner(*state, HASTY, answer_slowly, "timeouts");
	with_owner(*state, PATIENT, leave, "lost");
}

static void an_owner_may_have_nothing(void **state)
{
	struct fixture *f = *state;
	struct wait w[N_FILES];
	struct peer_msg m;
	struct pair p;
	int n = 0;

	pair_start(f, &p, PATIENT);
	for (int i = 0; i < N_FILES; i++)
		rig_start_read(f, p.s, &w[i], i);
	while (rig_stat(p.s, "backend_reads") < N_FILES) {
		assert_true(end_receive(&p.owner, &m));
		m.type = PEER_NOTFOUND;
		end_send(&p.owner, &m);
		peer_wait(p.s, "notfound", ++n);
	}
	for (int i = 0; i < N_FILES; i++)
		assert_int_equal(rig_end_read(f, p.s, &w[i], i), 0);
	assert_int_equal(peer_stat(p.s, "lost"), 0);
	assert_true(n > 0);
	pair_stop(f, &p);
}

/* One that comes and goes fills no log. */
static void many_losses_are_logged_once(void **state)
{
	char path[] = "/tmp/gpemu-log.XXXXXX", line[300];
	int fd = mkstemp(path), lost = 0, connected = 0, all = 0;
	struct fixture *f = *state;
	struct peer_msg m;
	struct pair p;
	FILE *log;

	assert_true(fd >= 0);
	log_set_level(LOG_LEVEL_INFO);
	assert_int_equal(log_to_file(path), 0);
	pair_start(f, &p, PATIENT);
	for (int i = 1; i <= 5; i++) {
		end_close(&p.owner);
		end_accept(&p.owner, p.listener, &p.nets[1].secret);
		assert_true(end_receive(&p.owner, &m));
		m = hello_of(f, &p.nets[1], p.s, PEER_WELCOME);
		end_send(&p.owner, &m);
		peer_wait(p.s, "lost", i);
		peer_wait(p.s, "connected", 1);
	}
	pair_stop(f, &p);
	log = fdopen(fd, "r");
	while (fgets(line, sizeof(line), log)) {
		all++;
		lost += strstr(line, ": lost: ") != NULL;
		connected += strstr(line, ": connected") != NULL;
	}
	fclose(log);
	unlink(path);
	assert_int_equal(lost, 1);
	assert_int_equal(connected, 1);
	assert_int_equal(all, 2);
}

/* --- a guest that is none ------------------------------------------------- */

/* Connect as a node that fits. */
static void be_welcome(struct fixture *f, struct pair *p, struct end *e)
{
	struct peer_msg m = hello_of(f, &p->nets[1], p->s, PEER_HELLO);

	end_dial(e, &p->nets[0], &p->nets[1].secret);
	end_send(e, &m);
	assert_true(end_receive(e, &m));
	assert_int_equal(m.type, PEER_WELCOME);
	assert_int_equal(m.hello.node, 0);
}

static void ask(struct end *e, uint64_t key, uint64_t bytes, struct peer_msg *m)
{
	*m = (struct peer_msg){
		.type = PEER_GET, .id = 42, .key = key, .bytes = (uint32_t)bytes
	};
	end_send(e, m);
	assert_true(end_receive(e, m));
	assert_int_equal(m->id, 42);
}

/* It is closed, `refused` is one more, and the server serves. */
static void check_refused(struct pair *p, struct end *e, json_int_t before)
{
	end_wait_closed(e);
	peer_wait(p->s, "refused", before + 1);
	assert_int_equal(peer_stat(p->s, "refused"), before + 1);
	end_close(e);
	assert_int_equal(rig_stat(p->s, "inflight"), 0);
}

static void strangers_are_refused(void **state)
{
	struct fixture *f = *state;
	unsigned char g[FRAME_GREETING];
	struct seal_secret other = { { 1 } };
	struct peer_msg m;
	struct pair p;
	struct end e;

	pair_start(f, &p, HASTY);
	m = hello_of(f, &p.nets[1], p.s, PEER_HELLO);
	/* garbage */
	end_dial_plain(&e, &p.nets[0]);
	memset(zeros, 0x33, 1000);
	end_send_plain(&e, zeros, 1000);
	memset(zeros, 0, 1000);
	check_refused(&p, &e, 0);
	/* nothing, and a byte now and then */
	end_dial_plain(&e, &p.nets[0]);
	check_refused(&p, &e, 1);
	end_dial_plain(&e, &p.nets[0]);
	frame_greet(FRAME_VERSION, g);
	for (int i = 0; i < FRAME_GREETING - 1; i++) {
		end_send_plain(&e, g + i, 1);
		tick_pause(20 * NS_PER_MS);
	}
	check_refused(&p, &e, 2);
	/* another version is told ours */
	end_dial_plain(&e, &p.nets[0]);
	frame_greet(FRAME_VERSION + 1, g);
	end_send_plain(&e, g, sizeof(g));
	assert_int_equal(recv(e.fd, g, sizeof(g), MSG_WAITALL), sizeof(g));
	assert_int_equal(frame_check_greeting(g, &m.bytes), 0);
	check_refused(&p, &e, 3);
	/* another key */
	end_dial(&e, &p.nets[0], &other);
	end_send(&e, &m);
	check_refused(&p, &e, 4);
	/* too long for somebody who is not trusted */
	end_dial(&e, &p.nets[0], &p.nets[1].secret);
	end_send_plain(&e, "\0\4\0\0", 4);
	check_refused(&p, &e, 5);
	assert_int_equal(peer_stat(p.s, "connected"), 1);
	pair_stop(f, &p);
}

/* Those that do not greet fill their own places only. */
static void a_crowd_leaves_the_nodes_alone(void **state)
{
	enum { CROWD = LOOP_STRANGERS + 10 };
	struct fixture *f = *state;
	struct end crowd[CROWD];
	struct peer_msg m;
	struct pair p;
	struct end e;

	pair_start(f, &p, PATIENT);
	be_welcome(f, &p, &e);
	for (int i = 0; i < CROWD; i++)
		end_dial_plain(&crowd[i], &p.nets[0]);
	peer_wait(p.s, "refused", CROWD - LOOP_STRANGERS);
	assert_int_equal(peer_stat(p.s, "refused"), CROWD - LOOP_STRANGERS);
	ask(&e, object_key(f->node[0], 0), f->bytes[0], &m);
	assert_int_equal(peer_stat(p.s, "connected"), 1);
	for (int i = 0; i < CROWD; i++)
		end_close(&crowd[i]);
	/* they have left their places */
	peer_wait(p.s, "refused", CROWD);
	end_close(&e);
	be_welcome(f, &p, &e);
	end_close(&e);
	pair_stop(f, &p);
}

static void check_reason(struct pair *p, json_int_t before,
			 const struct peer_msg *hello, enum peer_reason want)
{
	struct peer_msg m;
	struct end e;

	end_dial(&e, &p->nets[0], &p->nets[1].secret);
	end_send(&e, hello);
	assert_true(end_receive(&e, &m));
	assert_int_equal(m.type, PEER_REFUSE);
	assert_int_equal(m.reason, want);
	check_refused(p, &e, before);
}

static void nodes_that_do_not_fit_learn_why(void **state)
{
	struct fixture *f = *state;
	struct peer_msg good, m;
	struct pair p;

	pair_start(f, &p, PATIENT);
	m = good = hello_of(f, &p.nets[1], p.s, PEER_HELLO);
	m.hello.version++;
	check_reason(&p, 0, &m, PEER_OTHER_VERSION);
	m = good;
	m.hello.fingerprint[3] ^= 1;
	check_reason(&p, 1, &m, PEER_OTHER_DATASET);
	m = good;
	m.hello.seed++;
	check_reason(&p, 2, &m, PEER_OTHER_SEED);
	m = good;
	m.hello.nodes++;
	check_reason(&p, 3, &m, PEER_OTHER_NODES);
	m = good;
	m.hello.capacity_bytes++;
	check_reason(&p, 4, &m, PEER_OTHER_CAPACITY);
	m = good;
	m.hello.node = 0; /* the server itself */
	check_reason(&p, 5, &m, PEER_OTHER_NODE);
	m.hello.node = 2;
	check_reason(&p, 6, &m, PEER_OTHER_NODES);
	pair_stop(f, &p);
}

static void only_what_is_there_is_served(void **state)
{
	struct fixture *f = *state;
	struct peer_msg m;
	struct pair p;
	struct end e;
	int served = 0;

	pair_start(f, &p, PATIENT);
	be_welcome(f, &p, &e);
	for (int i = 0; i < N_FILES; i++) {
		ask(&e, object_key(f->node[i], 0), f->bytes[i], &m);
		if (m.type == PEER_NOTFOUND)
			continue;
		assert_int_equal(m.type, PEER_DATA);
		assert_int_equal(m.n_data, f->bytes[i]);
		assert_memory_equal(m.data, f->content[i], m.n_data);
		served++;
	}
	assert_in_range(served, N_FILES / 3, N_FILES * 2 / 3);
	assert_int_equal(peer_stat(p.s, "served"), served);
	ask(&e, object_key(f->node[0], 0), f->bytes[0] + 1, &m);
	assert_int_equal(m.type, PEER_NOTFOUND);
	ask(&e, object_key(f->node[0], 1), f->bytes[0], &m);
	assert_int_equal(m.type, PEER_NOTFOUND);
	ask(&e, 0, 0, &m);
	assert_int_equal(m.type, PEER_NOTFOUND);
	ask(&e, UINT64_MAX, 1, &m);
	assert_int_equal(m.type, PEER_NOTFOUND);
	/* these accesses are no reads of the mount */
	assert_int_equal(rig_stat(p.s, "hits") + rig_stat(p.s, "misses"), 0);
	end_close(&e);
	pair_stop(f, &p);
}

static void a_guest_keeps_to_the_protocol(void **state)
{
	struct fixture *f = *state;
	struct peer_msg m;
	struct pair p;
	struct end e, again;

	pair_start(f, &p, PATIENT);
	be_welcome(f, &p, &e);
	end_send(&e, &(struct peer_msg){ .type = PEER_NOTFOUND });
	check_refused(&p, &e, 0);
	be_welcome(f, &p, &e);
	end_send_plain(&e, "\0\4\0\0", 4);
	check_refused(&p, &e, 1);
	/* the second connection of a node ends the first, without blame */
	be_welcome(f, &p, &e);
	be_welcome(f, &p, &again);
	end_wait_closed(&e);
	end_close(&e);
	ask(&again, object_key(f->node[0], 0), f->bytes[0], &m);
	assert_int_equal(peer_stat(p.s, "refused"), 2);
	end_close(&again);
	pair_stop(f, &p);
}

/* It asks for all and takes nothing: what waits for it is let go. */
static void a_guest_that_does_not_read_is_dropped(void **state)
{
	struct fixture *f = *state;
	const int size = 4096;
	struct pair p;
	struct end e;

	pair_start(f, &p, HASTY);
	be_welcome(f, &p, &e);
	setsockopt(e.fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	for (int k = 0; k < 40; k++)
		for (int i = 0; i < N_FILES; i++)
			end_send(&e, &(struct peer_msg){
					     .type = PEER_GET,
					     .id = (uint64_t)k,
					     .key = object_key(f->node[i], 0),
					     .bytes = (uint32_t)f->bytes[i] });
	peer_wait(p.s, "timeouts", 1);
	assert_int_equal(peer_stat(p.s, "lost"), 0);
	end_close(&e);
	pair_stop(f, &p);
}

/* A profile of which a read never ends while the test runs. */
static void write_storage(char *path)
{
	static const char *const ops[] = { "channels", "link",	 "iops",
					   "open",     "lookup", "readdir" };
	int fd = mkstemps(path, 5);

	assert_true(fd >= 0);
	dprintf(fd, "name: still\nsource: test\n");
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		dprintf(fd, "%s: {source: test, verified: true}\n", ops[i]);
	dprintf(fd, "read: {source: test, verified: true, "
		    "latency: {kind: const, value: 600s}}\n");
	close(fd);
}

/* The first object that node 0 owns. */
static int owned_by_0(struct fixture *f, struct server *s)
{
	struct place_config c = { .tree = &f->tree,
				  .seed = 1,
				  .n_nodes = 2,
				  .extent_bytes = OBJECT_EXTENT };
	struct place *p;
	unsigned n;
	int i = 0;

	c.capacity_bytes = server_capacity(s, &n);
	assert_int_equal(place_new(&c, &p), 0);
	while (place_owner(p, object_key(f->node[i], 0)) != 0)
		i++;
	place_free(p);
	return i;
}

/* It asks, leaves and comes back: it does not pile up questions. */
static void a_guest_that_returns_has_no_more_questions(void **state)
{
	char path[] = "/tmp/gpemu-still-XXXXXX.yaml";
	struct fixture *f = *state;
	struct peer_msg m = { .type = PEER_GET };
	struct pair p;
	struct end e;
	int i;

	write_storage(path);
	pair_start_on(f, &p, PATIENT, path);
	i = owned_by_0(f, p.s);
	m.key = object_key(f->node[i], 0);
	m.bytes = (uint32_t)f->bytes[i];
	be_welcome(f, &p, &e);
	for (int k = 0; k < PEER_MOST_GETS + 1; k++)
		end_send(&e, &m);
	end_wait_closed(&e); /* by the last */
	end_close(&e);
	be_welcome(f, &p, &e);
	ask(&e, m.key, m.bytes, &m);
	assert_int_equal(m.type, PEER_NOTFOUND);
	end_close(&e);
	pair_stop(f, &p);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bad_owner_costs_a_read_of_the_storage),
		cmocka_unit_test(an_owner_may_have_nothing),
		cmocka_unit_test(strangers_are_refused),
		cmocka_unit_test(a_crowd_leaves_the_nodes_alone),
		cmocka_unit_test(nodes_that_do_not_fit_learn_why),
		cmocka_unit_test(only_what_is_there_is_served),
		cmocka_unit_test(a_guest_keeps_to_the_protocol),
		cmocka_unit_test(a_guest_that_does_not_read_is_dropped),
		cmocka_unit_test(a_guest_that_returns_has_no_more_questions),
		/* last: it redirects the log */
		cmocka_unit_test(many_losses_are_logged_once),
	};
	return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
