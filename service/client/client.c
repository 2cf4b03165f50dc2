/* SPDX-License-Identifier: MIT */
#include "service/client/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/json.h"
#include "common/units.h"
#include "common/util.h"
#include "service/client/desk.h"

/* The dispatcher hears that the job is over, or its time-out tells it.
 * arbitrary: far longer than a message takes */
#define CLOSE_NS NS_PER_S

struct client {
	struct client_config c;
	char *definition;
	struct access access;
	struct addr dispatcher;
	struct loop *loop;
	struct shelf shelf;
	struct links links;
	struct desk desk;
	bool started;
};

size_t client_buffer_bytes(uint32_t n, uint64_t bytes)
{
	return msg_batch_head(n) + bytes + SEAL_TAG;
}

/* --- the thread of the loop ----------------------------------------------- */

static uint64_t go_round(void *ctx, uint64_t now)
{
	struct client *c = ctx;
	uint64_t desk = desk_round(&c->desk, now);
	uint64_t links = links_round(&c->links, now, c->desk.wait_ns);

	return MIN(desk, links);
}

static int no_guests(struct conn *c, void *ctx)
{
	(void)c;
	(void)ctx;
	return -EPROTO;
}

static void refused(void *ctx)
{
	(void)ctx;
}

/* --- life ----------------------------------------------------------------- */

/* Wall time for a message that has begun. arbitrary: a large batch over a slow
 * card */
#define TIMEOUT_NS (10 * NS_PER_S)

/* Nobody else has it. */
static uint64_t random_number(void)
{
	unsigned char bytes[SEAL_NONCE];
	uint64_t n;

	seal_nonce(bytes);
	memcpy(&n, bytes, sizeof(n));
	return n | 1; /* 0 is none */
}

/* The same for all trainers. */
static uint64_t number_of(const char *name)
{
	return XXH3_64bits(name, strlen(name)) | 1;
}

static int open_loop(struct client *c, struct err *err)
{
	struct loop_config l = {
		.tick = c->c.tick,
		.secret = &c->access.secret,
		.nic = c->access.nic,
		.timeout_ns = tick_emulated(c->c.tick, TIMEOUT_NS),
		.listener = -1,
		.accepted = no_guests,
		.refused = refused,
		.round = go_round,
		.ctx = c,
	};
	int r = loop_new(&l, &c->loop);

	c->links = (struct links){ .loop = c->loop,
				   .tick = c->c.tick,
				   .access = &c->access,
				   .shelf = &c->shelf,
				   .trainer = random_number(),
				   .share = c->c.share,
				   .consumer = c->c.consumer };
	c->links.job = c->c.job ? number_of(c->c.job) : c->links.trainer;
	links_init(&c->links);
	c->desk = (struct desk){
		.links = &c->links,
		.dispatcher = &c->dispatcher,
		.definition = c->definition,
		.mode = c->c.mode,
		.batch = c->c.batch,
		.per_split = c->c.per_split,
		.wait_ns = tick_emulated(c->c.tick, c->c.wait_ns),
		.timeout_ns = l.timeout_ns,
	};
	desk_init(&c->desk);
	return r < 0 ? err_set(err, r, "%s", strerror(-r)) : 0;
}

int client_new(const struct client_config *config, struct client **ret,
	       struct err *err)
{
	struct client *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return err_set(err, -ENOMEM, "out of memory");
	c->c = *config;
	r = shelf_init(&c->shelf, config->tick, config->buffer,
		       config->n_buffers, config->buffer_bytes);
	c->shelf.by_rounds = config->share.how == SHARE_ROUNDS;
	c->definition = strdup(config->definition);
	if (r < 0 || !c->definition)
		r = err_set(err, -ENOMEM, "out of memory");
	else if (config->buffer_bytes > UINT32_MAX) /* net/frame.h */
		r = err_set(err, -E2BIG,
			    "a batch of more than 4 GiB: use a smaller "
			    "--batch");
	if (r == 0)
		r = access_init(&c->access, config->key, err);
	if (r == 0)
		r = access_find(&c->access, config->dispatcher, &c->dispatcher,
				err);
	if (r == 0) {
		nic_limit(c->access.nic, config->nic_bytes_per_s,
			  config->nic_latency_ns);
		r = open_loop(c, err);
	}
	if (r == 0) {
		r = loop_start(c->loop);
		c->started = r == 0;
		if (r < 0)
			err_set(err, r, "cannot start a thread: %s",
				strerror(-r));
	}
	if (r < 0) {
		client_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

void client_free(struct client *c)
{
	if (!c)
		return;
	if (c->loop) {
		shelf_begin_close(&c->shelf);
		loop_wake(c->loop);
		if (c->started)
			shelf_wait_closed(&c->shelf,
					  tick_now(c->c.tick) +
						  tick_emulated(c->c.tick,
								CLOSE_NS));
		loop_stop(c->loop);
		desk_fini(&c->desk);
		links_fini(&c->links);
	}
	loop_free(c->loop);
	shelf_fini(&c->shelf);
	addr_fini(&c->dispatcher);
	access_fini(&c->access);
	free(c->definition);
	free(c);
}

int client_begin(struct client *c, uint64_t epoch, const uint32_t *order,
		 uint64_t n, struct err *err)
{
	int r = shelf_begin(&c->shelf, c->c.mode, epoch, order, n,
			    c->c.n_samples, c->c.batch, c->c.per_split);

	if (r == -EINVAL)
		return err_set(err, r,
			       "more than %d splits in an epoch: make them "
			       "larger (split=)",
			       SPLITS_MOST);
	if (r < 0)
		return err_set(err, r, "%s", strerror(-r));
	loop_wake(c->loop);
	return 0;
}

uint64_t client_cut(struct client *c, uint64_t n)
{
	n = shelf_cut(&c->shelf, n);
	loop_wake(c->loop);
	return n;
}

int client_next(struct client *c, uint64_t until, struct shelf_buffer **ret,
		struct err *err)
{
	return shelf_take(&c->shelf, until, ret, err);
}

double client_count(struct client *c, const struct shelf_arrival *a,
		    uint64_t idle)
{
	return shelf_count(&c->shelf, a, idle);
}

void client_release(struct client *c, struct shelf_buffer *b)
{
	shelf_free(&c->shelf, b);
	loop_wake(c->loop);
}

uint32_t client_n_ready(struct client *c)
{
	return shelf_n_ready(&c->shelf);
}

void client_stop(struct client *c)
{
	shelf_stop(&c->shelf);
}

json_t *client_json(struct client *c)
{
	uint64_t lost = __atomic_load_n(&c->desk.n_lost, __ATOMIC_RELAXED);
	uint64_t in, out;
	json_t *j;

	loop_bytes(c->loop, &in, &out);
	j = json_pack("{s:o, s:o?, s:s, s:I, s:I, s:I, s:I, s:I}", "dispatcher",
		      json_bytes(c->c.dispatcher), "job", json_bytes(c->c.job),
		      "sharding", split_modes[c->c.mode], "split_batches",
		      (json_int_t)c->c.per_split, "buffers",
		      (json_int_t)c->c.n_buffers, "dispatcher_lost",
		      (json_int_t)lost, "bytes_received", (json_int_t)in,
		      "bytes_sent", (json_int_t)out);
	if (j &&
	    (links_json(&c->links, j) < 0 || shelf_json(&c->shelf, j) < 0)) {
		json_decref(j);
		return NULL;
	}
	return j;
}
