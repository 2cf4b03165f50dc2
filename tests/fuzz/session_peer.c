/* SPDX-License-Identifier: MIT */
/*
 * Sessions of another node of a partitioned cache: what it answers (end 0,
 * which our node dials) and what it asks (the others), see session.h. The
 * target completes a HELLO or WELCOME with what fits, and sends a DATA or
 * NOTFOUND on end 0 as the answer to a GET, with as many bytes as that asks
 * for.
 */
#include <pthread.h>
#include <string.h>

#include "common/log.h"
#include "common/units.h"
#include "common/util.h"
#include "fs/device/fetch.h"
#include "fs/peer/peers.h"
#include "fs/source/tree.h"
#include "tests/fuzz/session.h"

enum { FILES = 16, BYTES = 3000, EXTENT = 1 << 20, SEED = 7 };

static struct peer_net net; /* of our node, number 0 */
static struct tree tree;
static struct peers *peers;
static struct peer_hello hello; /* of node 1 */
static struct session session;
static int listener;
static unsigned char object[BYTES];
static uint32_t n_fetches; /* atomic: that are not over */

static void miss(void *ctx, struct fetch *f)
{
	(void)ctx;
	free(f->buf);
	free(f);
	__atomic_fetch_sub(&n_fetches, 1, __ATOMIC_SEQ_CST);
}

static void done(struct fetch *f, bool stopping)
{
	(void)stopping;
	miss(NULL, f);
}

static void release(struct peer_ask *a)
{
	free(a);
}

static void serve(void *ctx, struct peer_ask *a)
{
	(void)ctx;
	/* the key and the length are what the other node says */
	if (a->bytes && a->bytes == place_bytes(peers_place(peers), a->key))
		a->data = object;
	a->release = release;
	peers_answer(peers, a);
}

/* All objects that node 1 owns. */
static unsigned want_all(void)
{
	unsigned n = 0;

	for (uint32_t node = 1; node <= FILES; node++) {
		struct fetch *f = calloc(1, sizeof(*f));

		PROMISED(f);
		f->op = STORAGE_READ;
		f->node = node;
		f->bytes = BYTES;
		f->buf = malloc(BYTES);
		f->done = done;
		__atomic_fetch_add(&n_fetches, 1, __ATOMIC_SEQ_CST);
		if (peers_want(peers, f))
			n++;
		else
			miss(NULL, f);
	}
	return n;
}

/* Another HELLO is welcome, and gets an object. */
static void check_alive(void)
{
	struct peer_msg m = { .type = PEER_HELLO, .hello = hello };
	unsigned char head[PEER_HEAD];
	const unsigned char *bytes;
	struct session_end e;
	size_t n;

	PROMISED(session_dial(&net.nodes[0], session.secret, &e));
	session_say(&e, head, peer_encode(&m, head));
	bytes = session_hear(&e, &n);
	PROMISED(bytes && peer_decode(bytes, n, &m) == 0);
	PROMISED(m.type == PEER_WELCOME);
	m = (struct peer_msg){ .type = PEER_GET, .id = 1, .bytes = BYTES };
	m.key = (uint64_t)1 << 32;
	session_say(&e, head, peer_encode(&m, head));
	bytes = session_hear(&e, &n);
	PROMISED(bytes && peer_decode(bytes, n, &m) == 0 && m.id == 1);
	session_leave(&e);
}

static bool open_end(struct session *s, unsigned who, struct session_end *e)
{
	size_t n;

	if (who)
		return session_dial(&net.nodes[0], s->secret, e);
	/* who connects is dialled at once */
	check_alive();
	while (!session_accept(listener, s->secret, e) ||
	       !session_hear(e, &n)) /* its HELLO */
		;
	return true;
}

/* The next GET. */
static bool hear_get(struct session_end *e, struct peer_msg *ret)
{
	const unsigned char *m;
	size_t n;

	if (!want_all())
		return false;
	do
		m = session_hear(e, &n);
	while (m && (peer_decode(m, n, ret) < 0 || ret->type != PEER_GET));
	return m;
}

static size_t complete(struct session *s, unsigned who, unsigned char *m,
		       size_t n)
{
	struct peer_msg x = { .type = n ? m[0] : 0, .hello = hello }, get;
	bool fits = n > 1 && m[1] & 1;

	if (x.type == PEER_HELLO || x.type == PEER_WELCOME)
		return peer_encode(&x, m);
	if (who || (x.type != PEER_DATA && x.type != PEER_NOTFOUND))
		return n;
	if (!hear_get(&s->end[0], &get))
		return 0;
	x.id = get.id;
	n = peer_encode(&x, m);
	if (x.type == PEER_NOTFOUND)
		return n;
	memset(m + n, 0x55, get.bytes);
	return n + get.bytes - !fits;
}

static void make_tree(void)
{
	struct tree_child child[FILES];
	char name[FILES][8];

	for (uint32_t i = 0; i < FILES; i++) {
		snprintf(name[i], sizeof(name[i]), "f%02u", i);
		child[i] = (struct tree_child){ .name = name[i],
						.bytes = BYTES,
						.mode = S_IFREG | 0444 };
	}
	PROMISED(tree_init(&tree) == 0);
	PROMISED(tree_add_children(&tree, 0, child, FILES) == 0);
}

static void start(void)
{
	struct peers_config c = { .net = &net,
				  .tree = &tree,
				  .seed = SEED,
				  .capacity_bytes = FILES * BYTES / 2,
				  .extent_bytes = EXTENT,
				  .miss = miss,
				  .serve = serve,
				  .ask_size = sizeof(struct peer_ask) };
	struct addr a, b;
	struct err err = { 0 };
	char list[80];

	if (peers)
		return;
	log_init("fuzz", LOG_LEVEL_ERROR);
	make_tree();
	session_port(&a);
	session_port(&b);
	snprintf(list, sizeof(list), "%s,%s", a.text, b.text);
	PROMISED(peer_net_init(&net, list, 0, NULL, &err) == 0);
	net.timeout_ns = 20 * NS_PER_S;
	listener = addr_listen(&net.nodes[1], &err);
	PROMISED(listener >= 0);
	hello = (struct peer_hello){ .version = PEER_VERSION,
				     .node = 1,
				     .nodes = 2,
				     .seed = SEED,
				     .capacity_bytes = c.capacity_bytes };
	PROMISED(place_fingerprint(&tree, hello.fingerprint) == 0);
	c.tick = tick_new(.01, 0);
	PROMISED(peers_new(&c, &peers, &err) == 0);
	PROMISED(peers_start(peers, &err) == 0);
	session = (struct session){ .secret = &net.secret,
				    .open = open_end,
				    .complete = complete };
	for (int i = 0; i < SESSION_ENDS; i++)
		session.end[i].fd = -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	start();
	session_play(&session, data, n, 1);
	check_alive();
	/* of a link that has ended, no fetch is left */
	if (n && data[n - 1] % 4 == 0) {
		session_leave(&session.end[0]);
		PROMISED(open_end(&session, 0, &session.end[0]));
		PROMISED(__atomic_load_n(&n_fetches, __ATOMIC_SEQ_CST) == 0);
	}
	return 0;
}
