/* SPDX-License-Identifier: MIT */
#include "fs/server/server.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "common/system/memory.h"
#include "common/thread.h"
#include "common/tick.h"
#include "common/util.h"
#include "fs/device/device.h"
#include "fs/server/flight.h"
#include "fs/server/stack.h"

/* arbitrary: 32 extents of large files at once and as much for answers. Beyond
 * it bytes are copied twice, which costs the reader about as much as before */
#define DEFAULT_MEMORY (256 * MIB)

static uint64_t default_memory(void)
{
	return MIN(DEFAULT_MEMORY, memory_limit() / 8);
}

/* --- life --------------------------------------------------------------- */

static int start_fetcher(struct server *s, struct err *err)
{
	struct fetcher_config c = { .tick = s->c.tick,
				    .source = s->c.source,
				    .source_state = s->c.source_state,
				    .tree = s->c.tree,
				    .storage = s->storage,
				    .seed = s->c.seed };
	int r = fetcher_new(&c, &s->fetcher);

	return r < 0 ? err_set(err, r, "cannot start: %s", strerror(-r)) : 0;
}

int server_new(const struct server_config *config, struct server **ret,
	       struct err *err)
{
	struct server *s = calloc(1, sizeof(*s));
	int r = -ENOMEM;

	if (!s)
		return r;
	s->c = *config;
	s->why_reply = "the kernel has not started the mount yet";
	pthread_mutex_init(&s->change_lock, NULL);
	tick_mutex_init(&s->lock);
	tick_mutex_init(&s->backing_lock);
	budget_init(&s->budget,
		    config->memory ? config->memory : default_memory());
	budget_set_capacity(&s->budget, config->prefetch_bytes);
	s->sizes = tree_sizes(config->tree);
	s->marks = calloc(1, sizeof(*s->marks));
	s->storage_name = strdup(config->storage);
	if (!s->sizes || !s->marks || !s->storage_name)
		goto fail;
	s->n_marks = 1;
	r = config->memory > memory_limit()
		    ? err_set(err, -EINVAL,
			      "--memory exceeds the memory of this machine or "
			      "its control group")
		    : storage_profile_load(config->storage, &s->storage, err);
	if (r == 0 && config->is_store)
		storage_profile_expose(s->storage);
	if (r == 0) {
		server_see_names(s);
		r = start_fetcher(s, err);
	}
	if (r == 0)
		r = stack_init(s, &read_split, err);
	if (r < 0)
		goto fail;
	*ret = s;
	return 0;
fail:
	server_free(s);
	return err_set(err, r, "%s", strerror(-r));
}

void server_stop(struct server *s)
{
	gate_close(&s->gate);
	/* calls that are inside may still hold or start operations; these end
	 * at once */
	stack_stop(s);
	read_stop(s);
	if (s->fetcher)
		fetcher_stop(s->fetcher);
	gate_wait(&s->gate);
}

void server_free(struct server *s)
{
	if (!s)
		return;
	server_stop(s);
	stack_fini(s);
	fetcher_free(s->fetcher);
	budget_fini(&s->budget);
	storage_profile_free(s->storage);
	future_in_fini(&s->future);
	importance_fini(&s->importance);
	pthread_mutex_destroy(&s->change_lock);
	pthread_mutex_destroy(&s->lock);
	pthread_mutex_destroy(&s->backing_lock);
	free(s->storage_name);
	free(s->sizes);
	free(s->marks);
	free(s);
}

uint64_t server_capacity(struct server *s, unsigned *ret_n)
{
	uint64_t bytes;

	LOCK_SCOPE(&s->lock);
	bytes = s->capacity;
	*ret_n = s->n_keepers;
	return bytes;
}

const struct tree *server_tree(const struct server *s)
{
	return s->c.tree;
}

struct tick *server_tick(const struct server *s)
{
	return s->c.tick;
}

const struct storage_profile *server_storage(const struct server *s)
{
	return s->storage;
}

bool server_keeps_names(struct server *s, uint64_t *ret)
{
	*ret = __atomic_load_n(&s->keeps_names_ns, __ATOMIC_RELAXED);
	return *ret != UINT64_MAX;
}

uint64_t server_device_bytes(const struct server *s, uint64_t bytes)
{
	double scale = s->c.writable_scale;

	return scale > 0 ? units_unscaled(bytes, scale) : bytes;
}

int server_readlink(struct server *s, uint32_t node, char *buf, size_t n)
{
	return s->c.source->readlink(s->c.source_state, s->c.tree, node, buf,
				     n);
}

bool server_place(struct server *s, uint32_t node, uint64_t *ret)
{
	bool has;

	pthread_mutex_lock(&s->lock);
	has = s->storage->op[STORAGE_READ].settle_ns &&
	      node < s->c.tree->n_nodes && S_ISREG(s->c.tree->nodes[node].mode);
	server_unlock(s);
	if (has)
		*ret = device_place(group_map_lead(s->c.groups, node), 0);
	return has;
}

bool server_owner(struct server *s, uint32_t node, uint32_t *ret)
{
	bool has = false;

	for (size_t i = 0; !has && i < s->n_layers; i++) {
		struct layer *l = s->layers[i];

		has = l->ops->owner && l->ops->owner(l, node, ret);
	}
	return has;
}

int server_open_source(struct server *s, uint32_t node)
{
	if (!s->c.source->open)
		return -EOPNOTSUPP;
	return s->c.source->open(s->c.source_state, s->c.tree, node);
}

/* Is each hit that passthrough could find free? An object may be in several
 * tiers: a free one behind a device would hide its time. */
static bool has_free_hits(const struct tiers *t)
{
	bool device = false;

	for (size_t i = 0; t && i < t->n; i++) {
		if (device && !t->v[i].storage)
			return false;
		device |= t->v[i].storage != NULL;
	}
	return !t || !t->n || !t->v[0].storage;
}

bool server_set_hit_path(struct server *s, const char *why_reply)
{
	if (!why_reply && s->c.bytes_in_source)
		why_reply = "--cache-bytes source keeps no bytes in memory";
	if (!why_reply && !has_free_hits(s->c.tiers))
		why_reply = "a hit of a tier with a storage takes time";
	__atomic_store_n(&s->why_reply, why_reply, __ATOMIC_RELEASE);
	return !why_reply;
}

void server_set_round_trip(struct server *s, const struct round_trip *trip)
{
	fetcher_set_round_trip(s->fetcher, trip);
}

int server_read_groups(const struct server *s, uint64_t offset, size_t n,
		       char **ret, size_t *ret_n)
{
	*ret = NULL;
	*ret_n = 0;
	if (!s->c.groups)
		return 0;
	return group_map_read(s->c.groups, s->c.tree, offset, n, ret, ret_n);
}

/* --- requests ------------------------------------------------------------- */

void server_read(struct server *s, struct read_request *r)
{
	uint64_t file_bytes = s->c.tree->nodes[r->handle->node].bytes;

	r->server = s;
	r->n_parts = r->error = 0;
	r->pending = 1;
	r->again = r->later = false;
	if (!gate_enter(&s->gate)) {
		layer_answer(&s->split, r,
			     &(struct answer){ .error = -ECONNABORTED });
		return;
	}
	if (r->offset >= file_bytes || !r->bytes) {
		r->reply(r, 0, NULL, 0);
	} else {
		r->bytes = MIN(r->bytes,
			       MIN(file_bytes - r->offset, OBJECT_EXTENT));
		layer_read(&s->top, r);
	}
	gate_leave(&s->gate);
}

uint64_t server_read_deadline(const struct read_request *r)
{
	return r->n_parts ? r->parts[r->n_parts - 1].deadline : 0;
}

void server_metadata(struct server *s, struct fetch *f)
{
	f->offset = f->bytes = 0;
	server_operate(s, f);
}

void server_operate(struct server *s, struct fetch *f)
{
	f->buf = NULL;
	f->error = 0;
	f->later = f->apart = false;
	f->deadline = f->arrival;
	if (!gate_enter(&s->gate)) {
		f->done(f, true);
		return;
	}
	/* faults do not apply to the calibration's probes */
	layer_metadata(f->takes ? &s->split : &s->top, f);
	gate_leave(&s->gate);
}

void server_metadata_answered(struct server *s, const struct fetch *f,
			      int error)
{
	layer_metadata_answered(&s->split, f, error);
}

bool server_watches(struct server *s, uint32_t node)
{
	return layer_watches(&s->top, node);
}

void server_on_interrupt(struct server *s, bool (*is_interrupted)(void *client))
{
	s->is_interrupted = is_interrupted;
}

void server_interrupt(struct server *s, void *client)
{
	if (!gate_enter(&s->gate)) /* the stop ends it */
		return;
	for (size_t i = 0; i < s->n_layers; i++)
		if (s->layers[i]->ops->interrupt)
			s->layers[i]->ops->interrupt(s->layers[i], client);
	gate_leave(&s->gate);
}

/* --- without a request ---------------------------------------------------- */

/* Under the lock. */
static void count_hit(struct server *s, uint32_t node)
{
	uint64_t bytes = s->c.tree->nodes[node].bytes;
	struct ask a = { .what = { .key = object_key(node, 0),
				   .bytes = bytes,
				   .file_bytes = bytes },
			 .node = node,
			 .first = true,
			 .peeks = true };

	layer_ask(&s->split, &a);
	server_count(s, &a);
	stack_event(s, LAYER_PASSTHROUGH, a.what.key);
	s->passed_through++;
	__atomic_fetch_add(&s->delivered_bytes, bytes, __ATOMIC_RELAXED);
	server_put_object(a.object);
}

struct object *server_hit_whole(struct server *s, uint32_t node,
				int *ret_backing_id)
{
	struct object *o;

	if (s->c.tree->nodes[node].bytes > OBJECT_EXTENT)
		return NULL;
	pthread_mutex_lock(&s->lock);
	o = stack_peek(s, object_key(node, 0), true);
	if (o && o->state == OBJECT_READY) {
		object_get(o);
		*ret_backing_id =
			__atomic_load_n(&o->backing_id, __ATOMIC_ACQUIRE);
		if (*ret_backing_id > 0)
			count_hit(s, node);
	} else {
		o = NULL;
	}
	server_unlock(s);
	return o;
}

bool server_count_hit(struct server *s, uint32_t node)
{
	bool hit;

	pthread_mutex_lock(&s->lock);
	hit = stack_peek(s, object_key(node, 0), true);
	if (hit)
		count_hit(s, node);
	server_unlock(s);
	return hit;
}

/* Under the lock; *ret_fresh: the object to be read, with the flight's
 * reference. */
static enum layer_warmth warm_object(struct server *s, struct ask *a,
				     struct object **ret_fresh)
{
	enum layer_warmth w = layer_warm(&s->split, a);

	if (w != WARM_CACHED)
		stack_event(s, LAYER_WARM, a->what.key);
	*ret_fresh = a->fresh ? a->object : NULL;
	return w;
}

enum layer_warmth server_warm(struct server *s, uint32_t node, uint32_t extent)
{
	uint64_t file_bytes = s->c.tree->nodes[node].bytes;
	uint64_t offset = (uint64_t)extent * OBJECT_EXTENT;
	struct ask a = { .what = { .key = object_key(node, extent),
				   .bytes = MIN(file_bytes - offset,
						OBJECT_EXTENT),
				   .file_bytes = file_bytes },
			 .node = node,
			 .arrival = tick_now(s->c.tick) };
	enum layer_warmth w;
	struct object *o;
	int error = 0;

	pthread_mutex_lock(&s->lock);
	w = warm_object(s, &a, &o);
	server_unlock(s);
	if (!o)
		return w;
	if (o->data)
		error = s->c.source->read(s->c.source_state, s->c.tree, node,
					  o->data, o->bytes, offset, false);
	o->error = error;
	flight_land(s, &o, 1, 0);
	return error ? WARM_FAILED : w;
}

uint32_t server_extents(const struct server *s, uint32_t node)
{
	return (uint32_t)((s->c.tree->nodes[node].bytes + OBJECT_EXTENT - 1) /
			  OBJECT_EXTENT);
}
