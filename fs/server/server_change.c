/* SPDX-License-Identifier: MIT */
/*
 * The changes of control commands, one at a time. New state is made before the
 * server's lock is taken; the old one is freed after it is released.
 */
#include "fs/server/server_change.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/system/importance.h"
#include "common/util.h"
#include "fs/device/device.h"
#include "fs/server/object.h"
#include "fs/server/server_stats.h"
#include "fs/server/stack.h"

/* Under change_lock. */
static void begin_epoch(struct server *s, const struct epoch_mark *now)
{
	struct epoch_mark *last = &s->marks[s->n_marks - 1];

	/* an epoch without a read has not begun: restart it */
	if (now->reads.hits + now->reads.misses >
	    last->reads.hits + last->reads.misses) {
		struct epoch_mark *more =
			realloc(s->marks, (s->n_marks + 1) * sizeof(*s->marks));

		if (more) {
			s->marks = more;
			s->n_marks++;
		}
	}
	s->marks[s->n_marks - 1] = *now;
}

static int begin_change(struct server *s, struct err *err)
{
	int r = server_enter(s, err);

	if (r == 0)
		pthread_mutex_lock(&s->change_lock);
	return r;
}

static void end_change(struct server *s)
{
	pthread_mutex_unlock(&s->change_lock);
	server_leave(s);
}

int server_epoch(struct server *s, struct err *err)
{
	struct epoch_mark now;
	int r = begin_change(s, err);

	if (r < 0)
		return r;
	pthread_mutex_lock(&s->lock);
	stack_event(s, LAYER_EPOCH, 0);
	s->epoch++;
	now = server_mark_now(s);
	server_unlock(s);
	begin_epoch(s, &now);
	end_change(s);
	return 0;
}

int server_reset(struct server *s, struct err *err)
{
	int r = begin_change(s, err);

	if (r < 0)
		return r;
	pthread_mutex_lock(&s->lock);
	stack_event(s, LAYER_RESET, 0);
	s->epoch++;
	fetcher_reset_stats(s->fetcher);
	s->reads = (struct cache_counts){ 0 };
	__atomic_store_n(&s->delivered_bytes, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&s->reread_bytes, 0, __ATOMIC_RELAXED);
	s->coalesced = s->passed_through = 0;
	for (size_t i = 0; i < s->n_layers; i++)
		if (s->layers[i]->ops->reset)
			s->layers[i]->ops->reset(s->layers[i]);
	s->marks[0] = server_mark_now(s);
	server_unlock(s);
	s->n_marks = 1;
	end_change(s);
	return 0;
}

/* Under change_lock: all layers, or the caches alone if they keep what fits,
 * drop their history, with `c` applied. All of them, or none on an error. */
static int renew(struct server *s, const struct layer_change *c,
		 enum layer_event event, struct epoch_mark *now,
		 struct err *err)
{
	void *fresh[MOST_LAYERS] = { 0 };
	bool keep = c && c->keep;
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->n_layers; i++) {
		const struct layer_ops *ops = s->layers[i]->ops;

		if (ops->renew && (!keep || ops->rank == LAYER_CACHE))
			r = ops->renew(s->layers[i], c, &fresh[i], err);
	}
	if (r == 0) {
		pthread_mutex_lock(&s->lock);
		if (!keep) {
			stack_event(s, event, 0);
			s->epoch++;
		}
		for (size_t i = 0; i < s->n_layers; i++)
			if (fresh[i])
				s->layers[i]->ops->swap(s->layers[i],
							&fresh[i]);
		*now = server_mark_now(s);
		server_unlock(s);
	}
	for (size_t i = 0; i < s->n_layers; i++)
		if (fresh[i])
			s->layers[i]->ops->discard(s->layers[i], fresh[i]);
	return r;
}

int server_drop_cache(struct server *s, struct err *err)
{
	struct epoch_mark now;
	int r = begin_change(s, err);

	if (r < 0)
		return r;
	r = renew(s, NULL, LAYER_DROP_CACHE, &now, err);
	end_change(s);
	return r;
}

/* Under change_lock. From the bottom: the placement comes before the fetches
 * that follow it. */
static int use_future(struct server *s, struct future *f, struct err *err)
{
	bool places = !f->continues || !s->foresees;
	struct epoch_mark now;
	int r = 0;

	for (size_t i = s->n_layers; r >= 0 && i-- > 0;) {
		struct layer *l = s->layers[i];

		if (places && l->ops->place)
			r = l->ops->place(l, f, err);
		if (r > 0)
			r = renew(s, NULL, LAYER_DROP_CACHE, &now, err);
	}
	for (size_t i = s->n_layers; r >= 0 && i-- > 0;)
		if (s->layers[i]->ops->foresee)
			r = s->layers[i]->ops->foresee(s->layers[i], f, err);
	s->foresees = s->foresees || r >= 0;
	return r;
}

static bool uses_future(const struct server *s)
{
	for (size_t i = 0; i < s->n_layers; i++)
		if (s->layers[i]->ops->foresee)
			return true;
	return false;
}

int server_future(struct server *s, const void *writer, uint64_t offset,
		  const void *bytes, size_t n, struct err *err)
{
	struct future *f = NULL;
	int r = uses_future(s) ? begin_change(s, err)
			       : err_set(err, -EOPNOTSUPP,
					 "no prefetching here; mount with "
					 "--prefetch SIZE");

	if (r < 0)
		return r;
	if (offset == 0)
		s->future_writer = writer;
	r = s->future_writer == writer
		    ? future_take(&s->future, s->c.tree, offset, bytes, n, &f,
				  err)
		    : err_set(err, -EBUSY,
			      "another program is announcing its accesses; "
			      "only one at a time can");
	if (f)
		r = use_future(s, f, err);
	future_put(f);
	end_change(s);
	return r;
}

int server_future_end(struct server *s, const void *writer, struct err *err)
{
	int r = begin_change(s, err);

	if (r < 0)
		return r;
	if (s->future_writer == writer)
		r = future_end(&s->future, err);
	end_change(s);
	return r;
}

/* Under change_lock: a file has this importance from now on. */
static void weigh(struct server *s, uint32_t node, float importance)
{
	float *v = &s->importance.v[node];

	if (*v == importance)
		return;
	pthread_mutex_lock(&s->lock);
	*v = importance;
	for (size_t i = 0; i < s->n_layers; i++)
		if (s->layers[i]->ops->reweigh)
			s->layers[i]->ops->reweigh(s->layers[i], node);
	server_unlock(s);
}

int server_importance(struct server *s, const void *bytes, size_t n,
		      struct err *err)
{
	const unsigned char *at = bytes;
	int r = begin_change(s, err);

	if (r < 0)
		return r;
	r = importance_check(s->c.tree, bytes, n, err);
	if (r == 0) {
		pthread_mutex_lock(&s->lock);
		r = importance_init(&s->importance, s->c.tree->n_nodes);
		server_unlock(s);
	}
	if (r == -ENOMEM)
		err_set(err, r, "out of memory");
	for (size_t i = 0; r == 0 && i < n; i += IMPORTANCE_RECORD) {
		uint32_t inode;
		float v;

		importance_get(at + i, &inode, &v);
		weigh(s, tree_file(s->c.tree, inode - 1), v);
	}
	end_change(s);
	return r;
}

static bool has_cache(const struct server *s)
{
	for (size_t i = 0; i < s->n_layers; i++) {
		const struct layer_ops *ops = s->layers[i]->ops;

		if (ops->rank == LAYER_CACHE && ops->renew)
			return true;
	}
	return false;
}

int server_set_cache(struct server *s, const char *policy,
		     const struct units_capacity *size, struct err *err)
{
	return server_set_tier(s, 0, policy, size, err);
}

static int change_cache(struct server *s, const struct layer_change *c,
			struct err *err)
{
	struct epoch_mark now;
	int r = has_cache(s) ? begin_change(s, err)
			     : err_set(err, -EINVAL,
				       "the mount has no layer 'cache': add it "
				       "to --layers and mount again");

	if (r < 0)
		return r;
	r = renew(s, c, LAYER_SET_CACHE, &now, err);
	if (r == 0 && !c->keep) /* keep the counts of the two caches apart */
		begin_epoch(s, &now);
	end_change(s);
	return r;
}

int server_set_tier(struct server *s, unsigned tier, const char *policy,
		    const struct units_capacity *size, struct err *err)
{
	struct layer_change c = { .cache = tier,
				  .policy = policy,
				  .size = size };

	return change_cache(s, &c, err);
}

int server_resize_cache(struct server *s, const struct units_capacity *size,
			struct err *err)
{
	struct layer_change c = { .size = size, .keep = true };

	if (s->c.peers || s->c.trace)
		return err_set(err, -EINVAL,
			       "resize: not with %s, which knows one capacity",
			       s->c.peers ? "--peers" : "--trace");
	return change_cache(s, &c, err);
}

/* Under change_lock: put *profile and *name into use, and return the old ones
 * in them. */
static int swap_storage(struct server *s, struct storage_profile **profile,
			char **name)
{
	struct storage_profile *old;
	struct device *device = NULL;
	char *old_name = s->storage_name;
	int r = device_new(*profile, s->c.seed, &device);

	if (r < 0)
		return r;
	pthread_mutex_lock(&s->lock);
	device = fetcher_swap_device(s->fetcher, device);
	old = s->storage;
	s->storage = *profile;
	server_see_names(s);
	server_unlock(s);
	device_free(device);
	*profile = old;
	s->storage_name = *name;
	*name = old_name;
	return 0;
}

int server_set_storage(struct server *s, const char *storage, struct err *err)
{
	struct storage_profile *profile = NULL;
	_cleanup_free_ char *name = strdup(storage);
	/* the profile may be in the mount itself: load it before the change
	 * begins */
	int r = name ? storage_profile_load(storage, &profile, err) : -ENOMEM;

	if (r == 0)
		r = begin_change(s, err);
	if (r == 0) {
		r = swap_storage(s, &profile, &name);
		end_change(s);
	}
	storage_profile_free(profile);
	return r < 0 ? err_set(err, r, "%s", strerror(-r)) : 0;
}

/* Of a device, bytes per s. arbitrary: a block of 4 KiB takes 4 s */
enum { LEAST_BANDWIDTH = 1000 };

int server_set_bandwidth(struct server *s, uint64_t bytes_per_s,
			 struct err *err)
{
	int r;

	if (bytes_per_s && bytes_per_s < LEAST_BANDWIDTH)
		return err_set(err, -EINVAL,
			       "set bandwidth: %" PRIu64 " bytes per second "
			       "are less than %d; 0 is no limit",
			       bytes_per_s, LEAST_BANDWIDTH);
	r = begin_change(s, err);
	if (r < 0)
		return r;
	s->bandwidth = bytes_per_s;
	fetcher_limit_device(s->fetcher, (double)bytes_per_s / 1e6);
	end_change(s);
	return 0;
}
