/* SPDX-License-Identifier: MIT */
/*
 * What control commands change. One at a time; what is new is made before the
 * server's lock is taken, and what it replaces is freed after it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "fs/device/device.h"
#include "fs/server/server_trace.h"

/* Under the lock of changes. */
static void begin_epoch(struct server *s, const struct epoch_mark *now)
{
	struct epoch_mark *last = &s->marks[s->n_marks - 1];

	/* an epoch in which nothing was read has not begun: begin it again */
	if (now->cache.hits + now->cache.misses >
	    last->cache.hits + last->cache.misses) {
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
	trace_event(s, TRACE_EPOCH, 0);
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
	trace_event(s, TRACE_RESET, 0);
	cache_reset_counts(s->cache);
	fetcher_reset_stats(s->fetcher);
	s->before = (struct cache_counts){ 0 };
	__atomic_store_n(&s->delivered_bytes, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&s->reread_bytes, 0, __ATOMIC_RELAXED);
	s->coalesced = s->passed_through = 0;
	s->group_hits = s->group_hit_bytes = 0;
	s->unmissed = (struct cache_counts){ 0 };
	s->marks[0] = server_mark_now(s);
	server_unlock(s);
	s->n_marks = 1;
	faults_reset(&s->faults);
	end_change(s);
	return 0;
}

/* Under the lock of changes: `fresh` is the cache from now on, and what came
 * with groups is forgotten. */
static struct epoch_mark swap_cache(struct server *s, struct cache *fresh,
				    enum trace_op op)
{
	struct group_buffer buffer;
	struct epoch_mark now;
	struct cache *old;

	pthread_mutex_lock(&s->lock);
	trace_event(s, op, 0);
	old = s->cache;
	cache_counts_add(&s->before, cache_counts(old));
	s->cache = fresh;
	budget_set_capacity(&s->budget, cache_capacity(fresh));
	buffer = s->buffer;
	s->buffer = (struct group_buffer){ .limit = buffer.limit };
	now = server_mark_now(s);
	server_unlock(s);
	server_free_cache(old);
	group_buffer_clear(&buffer);
	return now;
}

int server_drop_cache(struct server *s, struct err *err)
{
	struct units_capacity same = { .fraction = -1 };
	struct cache *fresh;
	int r = begin_change(s, err);

	if (r < 0)
		return r;
	/* constant, under the lock of changes */
	same.bytes = cache_capacity(s->cache);
	r = server_make_cache(s, cache_policy(s->cache)->plugin.name, &same,
			      &fresh, err);
	if (r == 0)
		swap_cache(s, fresh, TRACE_DROP_CACHE);
	end_change(s);
	return r;
}

int server_set_cache(struct server *s, const char *policy,
		     const struct units_capacity *size, struct err *err)
{
	struct epoch_mark now;
	struct cache *fresh;
	int r = begin_change(s, err);

	if (r < 0)
		return r;
	r = server_make_cache(s, policy, size, &fresh, err);
	if (r == 0) {
		now = swap_cache(s, fresh, TRACE_SET_CACHE);
		/* what the two caches did is told apart */
		begin_epoch(s, &now);
	}
	end_change(s);
	return r;
}

/* Under the lock of changes: take *profile and *name into use, and give back
 * what they replace. */
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
	/* its file may be in the mount itself: not while we are inside */
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
