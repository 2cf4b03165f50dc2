/* SPDX-License-Identifier: MIT */
/*
 * Batches of the workers of a gpemu-prepd dispatcher, as in tf.data service:
 * this process neither reads nor transforms. Source: A. Audibert et al.,
 * "tf.data service: A Case for Disaggregating ML Input Data Processing",
 * SoCC 2023.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/conf/conf.h"
#include "common/units.h"
#include "common/util.h"
#include "common/word.h"
#include "loader/engine/engine.h"
#include "loader/engine/remote.h"
#include "service/client/client.h"

struct options {
	char *sharding, *local;
	char *job; /* "": of this trainer alone */
	uint64_t split, outstanding, wait_ns;
	uint64_t consumers, consumer, bucket;
};

/* The rank of this process. */
enum { OWN_RANK = PREPD_CONSUMERS };

/* dynamic; or off, where batches hold any samples */
static const char AUTO[] = "auto";

static int check_sharding(const void *object, struct err *err)
{
	const char *word = *(char *const *)object;

	if (!strcmp(word, AUTO))
		return 0;
	return MIN(WORD_FIND(split_modes, "sharding", word, err), 0);
}

static const struct conf_field fields[] = {
	{ CONF_KEY(sharding, CONF_STRING, struct options),
	  .check = check_sharding, .arg = "auto|dynamic|static|off",
	  .help = "which worker prepares what: splits on request, a fixed part "
		  "each, or all samples each; auto: off with job= or "
		  "consumers=, else dynamic" },
	{ CONF_KEY(split, CONF_UINT, struct options), .min = 1, .max = 65536,
	  .arg = "N", .help = "batches of a split" },
	{ CONF_KEY(job, CONF_STRING, struct options), .arg = "NAME",
	  .help = "share the batches of all trainers with this job name: each "
		  "is made once" },
	{ CONF_KEY(consumers, CONF_UINT, struct options),
	  .max = PREPD_CONSUMERS, .arg = "N",
	  .help = "coordinated reads: in a round each of N trainers gets a "
		  "batch of its own, all of the same length; 0: none" },
	{ CONF_KEY(consumer, CONF_UINT, struct options), .max = OWN_RANK,
	  .arg = "I", .help = "index of this consumer, from 0; 64: its rank" },
	{ CONF_KEY(bucket, CONF_UINT, struct options), .max = 1 << 30,
	  .arg = "N",
	  .help = "with consumers=: width of a bucket of lengths, in tokens or "
		  "bytes; 0: one bucket" },
	{ CONF_KEY(outstanding, CONF_UINT, struct options), .min = 1,
	  .max = 4096, .arg = "N",
	  .help = "batches in flight, over all workers" },
	{ "wait", CONF_DURATION, offsetof(struct options, wait_ns),
	  .min = NS_PER_MS, .max = 86400. * NS_PER_S, .arg = "TIME",
	  .help = "wall time to wait without a dispatcher, or without "
		  "workers" },
	{ CONF_KEY(local, CONF_STRING, struct options), .arg = "ENGINE",
	  .help = "the engine for what --offload leaves to this process" },
	{ 0 },
};

static const struct options defaults = {
	.sharding = (char *)AUTO,
	.job = (char *)"",
	/* arbitrary: little is lost with a worker, and a request is rarer than
	 * a batch */
	.split = 4,
	/* arbitrary: two for each of a few workers */
	.outstanding = 16,
	.wait_ns = 30 * NS_PER_S,
	.local = (char *)"async",
	.consumer = OWN_RANK,
};

struct service {
	struct client *client;
	struct place *place; /* batch for each buffer */
	pthread_mutex_t lock;
	struct shelf_buffer **taken; /* lock: n_buffers; NULL: unused */
	uint32_t batch, n_buffers;
};

static const struct options *options_of(const void *options)
{
	return options ? options : &defaults;
}

static const char *local(const void *options)
{
	return options_of(options)->local;
}

static uint32_t n_buffers(const void *options)
{
	return (uint32_t)options_of(options)->outstanding;
}

static void close_service(void *state)
{
	struct service *s = state;

	if (!s)
		return;
	client_free(s->client);
	pthread_mutex_destroy(&s->lock);
	free(s->place);
	free(s->taken);
	free(s);
}

static bool one_job(const void *options)
{
	return options_of(options)->job[0];
}

/* Do batches hold any samples, not those of a split? */
static bool any_samples(const struct options *o)
{
	return o->job[0] || o->consumers;
}

static uint64_t consumer_of(const struct options *o, uint64_t rank)
{
	if (o->consumer != OWN_RANK)
		return o->consumer;
	return o->consumers > 1 ? MIN(rank, OWN_RANK) : 0;
}

static enum split_mode mode_of(const struct options *o)
{
	if (strcmp(o->sharding, AUTO) != 0)
		return (enum split_mode)WORD_FIND(split_modes, "sharding",
						  o->sharding, NULL);
	return any_samples(o) ? SPLIT_OFF : SPLIT_DYNAMIC;
}

static bool once(const void *options)
{
	return mode_of(options_of(options)) != SPLIT_OFF;
}

static int check_share(const struct options *o, const struct client_config *c,
		       struct err *err)
{
	const char *why = NULL;

	if (any_samples(o) && c->mode != SPLIT_OFF)
		why = "job= and consumers= have batches of any samples; "
		      "leave out sharding=";
	else if (!o->consumers && (o->bucket || o->consumer != OWN_RANK))
		why = "consumer= and bucket= need consumers=";
	else if (o->consumers > 1 && !o->job[0])
		why = "the consumers need a job in common: job=NAME";
	else if (o->consumers && c->consumer >= o->consumers)
		why = "consumer= (default: the rank) must be less than "
		      "consumers=";
	return why ? err_set(err, -EINVAL, "--loader service: %s", why) : 0;
}

static int open_service(const struct remote_config *c, void **ret,
			struct err *err)
{
	const struct options *o = options_of(c->options);
	struct client_config config = {
		.tick = c->tick,
		.dispatcher = c->service->address,
		.key = c->service->key,
		.nic_bytes_per_s = c->service->nic_bytes_per_s,
		.nic_latency_ns = c->service->nic_latency_ns,
		.definition = c->service->job,
		.job = o->job[0] ? o->job : NULL,
		.share = { .how = o->consumers ? SHARE_ROUNDS
				  : o->job[0]  ? SHARE_WINDOW
					       : SHARE_NONE,
			   .consumers = (uint32_t)o->consumers,
			   .bucket = o->bucket },
		.consumer = (uint32_t)consumer_of(o, c->service->rank),
		.mode = mode_of(o),
		.batch = c->batch,
		.per_split = (uint32_t)o->split,
		.n_samples = c->service->n_samples,
		.wait_ns = o->wait_ns,
		.buffer = c->buffer,
		.n_buffers = c->n_buffers,
		.buffer_bytes = c->buffer_bytes,
	};
	struct service *s;
	int r = check_share(o, &config, err);

	if (r < 0)
		return r;
	r = -ENOMEM;
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(err, r, "out of memory");
	pthread_mutex_init(&s->lock, NULL);
	s->batch = c->batch;
	s->n_buffers = c->n_buffers;
	s->place = calloc((size_t)c->n_buffers * c->batch, sizeof(*s->place));
	s->taken = calloc(c->n_buffers, sizeof(struct shelf_buffer *));
	if (s->place && s->taken)
		r = client_new(&config, &s->client, err);
	if (r < 0) {
		close_service(s);
		return err_set(err, r, "%s", strerror(-r));
	}
	*ret = s;
	return 0;
}

static int begin_service(void *state, uint64_t epoch, const uint32_t *order,
			 uint64_t n, struct err *err)
{
	struct service *s = state;

	return client_begin(s->client, epoch, order, n, err);
}

static uint64_t cut(void *state, uint64_t n)
{
	struct service *s = state;

	return client_cut(s->client, n);
}

/* The slots of a batch that the consumer has. */
static struct place *find_places(struct service *s, struct shelf_buffer *b)
{
	uint32_t i = 0;

	pthread_mutex_lock(&s->lock);
	while (s->taken[i])
		i++;
	s->taken[i] = b;
	pthread_mutex_unlock(&s->lock);
	return s->place + (size_t)i * s->batch;
}

static int next_service(void *state, uint64_t until, struct remote_batch *ret,
			struct err *err)
{
	struct service *s = state;
	const unsigned char *at;
	struct shelf_buffer *b;
	struct shelf_arrival a;
	struct place *place;
	int r = client_next(s->client, until, &b, err);

	if (r != 0)
		return r;
	place = find_places(s, b);
	at = msg_batch_data(&b->m);
	for (uint32_t i = 0; i < b->m.count; i++) {
		struct msg_sample one = msg_batch_sample(&b->m, i);

		place[i] = (struct place){ .data = at,
					   .n = one.bytes,
					   .sample = one.sample,
					   .error = one.error,
					   .bypassed = one.bypassed };
		at += one.bytes;
	}
	a = shelf_arrival(b);
	*ret = (struct remote_batch){
		.n = b->m.count,
		.epoch = b->m.epoch,
		.place = place,
		.arrival = { a.complete_ns, a.starved_ns, a.arrived_ns,
			     a.read_share, a.arrived_ns },
		.own = b,
	};
	return 0;
}

static double count(void *state, const struct remote_arrival *a, uint64_t idle)
{
	const struct service *s = state;
	const struct shelf_arrival arrival = { a->complete_ns, a->starved_ns,
					       a->arrived_ns, a->read_share };

	return client_count(s->client, &arrival, idle);
}

static void release(void *state, struct remote_batch *b)
{
	struct service *s = state;

	pthread_mutex_lock(&s->lock);
	for (uint32_t i = 0; i < s->n_buffers; i++)
		if (s->taken[i] == b->own)
			s->taken[i] = NULL;
	pthread_mutex_unlock(&s->lock);
	client_release(s->client, b->own);
}

static uint32_t n_ready(void *state)
{
	struct service *s = state;

	return client_n_ready(s->client);
}

static void stop(void *state)
{
	struct service *s = state;

	client_stop(s->client);
}

static json_t *json(void *state)
{
	struct service *s = state;

	return client_json(s->client);
}

static const struct remote_ops remote = {
	.local = local,
	.once = once,
	.one_job = one_job,
	.n_buffers = n_buffers,
	.buffer_bytes = client_buffer_bytes,
	.open = open_service,
	.close = close_service,
	.begin = begin_service,
	.cut = cut,
	.next = next_service,
	.count = count,
	.release = release,
	.n_ready = n_ready,
	.stop = stop,
	.json = json,
};

const struct engine_ops engine_service = {
	.plugin = { .name = "service",
		    .summary = "batches that the workers of gpemu-prepd "
			       "prepare (--dispatcher)",
		    PLUGIN_OPTIONS(fields, defaults) },
	.any_order = true,
	.remote = &remote,
};
