/* SPDX-License-Identifier: MIT */
/*
 * Validates all calls of a user's engine: a reported sample must have been
 * taken, a returned one must have been read and lie in its buffer, and error
 * codes are mapped to those of the loader.
 */
#include "lib/engine.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "common/util.h"
#include "loader/pipeline/buffer.h"

struct slot {
	struct gpemu_fetch fetch; /* the engine's view */
	struct fetch *own;	  /* NULL: not in flight */
	bool done;
};

/* The state of an instance, one per worker. */
struct gpemu_feed {
	const struct gpemu_engine *engine;
	struct feed *feed;
	struct slot *slot; /* depth */
	unsigned depth, n_out;
	uint32_t direct;
	bool canceled;	   /* the engine got -ECANCELED */
	atomic_bool stray; /* a sample was reported that was not taken */
	void *state;	   /* NULL: the engine's init was not called */
};

int gpemu_feed_take(struct gpemu_feed *feed, int wait, struct gpemu_fetch **ret)
{
	struct fetch *x;
	struct slot *s;
	int r;

	if (wait && feed->n_out)
		return -EINVAL;
	r = feed_take(feed->feed, wait, &x);
	feed->canceled |= r == -ECANCELED;
	if (r < 0)
		return r;
	s = &feed->slot[x->slot];
	s->own = x;
	s->done = false;
	s->fetch = (struct gpemu_fetch){
		.dirfd = x->dirfd,
		.path = feed_path(feed->feed, x),
		.fd = x->fd,
		.offset_bytes = x->offset,
		.size_bytes = x->size,
		.buffer = x->buf,
		.buffer_bytes = buffer_room(x->size, feed->direct),
		.data = x->buf,
		.slot = x->slot,
		.user = s->fetch.user,
	};
	feed->n_out++;
	*ret = &s->fetch;
	return 0;
}

void gpemu_feed_done(struct gpemu_feed *feed, struct gpemu_fetch *fetch,
		     int64_t result)
{
	struct slot *s = container_of(fetch, struct slot, fetch);

	if (!s->own) {
		atomic_store(&feed->stray, true);
		return;
	}
	s->own->data = fetch->data;
	feed_done(feed->feed, s->own, result < -MAX_ERRNO ? -EIO : result);
	s->done = true;
}

static int init(void *state, const struct engine_config *c, struct err *err)
{
	const struct own_engine *own =
		container_of(c->ops, struct own_engine, ops);
	const struct gpemu_engine *e = &own->engine;
	struct gpemu_engine_config config = { .depth = c->depth,
					      .direct_bytes = c->direct };
	struct gpemu_feed *f = state;
	char text[512] = "";
	int r;

	f->engine = e;
	f->depth = c->depth;
	f->direct = c->direct;
	f->slot = calloc(c->depth, sizeof(*f->slot));
	if (f->slot)
		f->state = calloc(1, e->state_bytes + 1);
	if (!f->state)
		return err_set(err, -ENOMEM, "out of memory");
	r = e->init ? e->init(f->state, &config, text, sizeof(text)) : 0;
	if (r > 0)
		r = -EINVAL;
	if (r < -MAX_ERRNO)
		r = -EIO;
	return r < 0 ? err_set(err, r, "engine %s: %s", e->name,
			       text[0] ? text : strerror(-r))
		     : 0;
}

static void fini(void *state)
{
	struct gpemu_feed *f = state;

	if (f->state && f->engine->fini)
		f->engine->fini(f->state);
	free(f->state);
	free(f->slot);
}

/* The slot returned by the engine, or NULL and an error text. */
static struct slot *returned(struct gpemu_feed *f,
			     const struct gpemu_fetch *fetch, const char **ret)
{
	struct slot *s = NULL;
	size_t at;

	for (unsigned i = 0; !s && i < f->depth; i++)
		if (fetch == &f->slot[i].fetch)
			s = &f->slot[i];
	*ret = NULL;
	if (!s || !s->own) {
		*ret = "returned a sample that it had not taken";
		return NULL;
	}
	at = (size_t)((char *)s->own->data - (char *)s->own->buf);
	if (atomic_load(&f->stray))
		*ret = "reported a sample that it had not taken";
	else if (!s->done)
		*ret = "returned a sample whose read has not ended";
	else if (s->own->error == 0 &&
		 (at > s->fetch.buffer_bytes ||
		  s->own->size > s->fetch.buffer_bytes - at))
		*ret = "returned a sample that is not in its buffer";
	return *ret ? NULL : s;
}

/* Map the result of next() to an error of the loader. */
static int code(int r)
{
	/* For the loader these mean "stopped" and "end of the epoch". */
	if (r == -ECANCELED || r == -ENODATA)
		return -EIO;
	return r < 0 ? r : -EINVAL;
}

static int next(void *state, struct feed *feed, struct fetch **ret,
		struct err *err)
{
	struct gpemu_feed *f = state;
	const struct gpemu_engine *e = f->engine;
	struct gpemu_fetch *fetch = NULL;
	const char *wrong;
	char text[512] = "";
	struct slot *s;
	int r;

	f->feed = feed;
	r = e->next(f->state, f, &fetch, text, sizeof(text));
	if (r == -ECANCELED && f->canceled)
		return r;
	if (r < -MAX_ERRNO)
		r = -EIO;
	if (r != 0)
		return err_set(err, code(r), "engine %s: %s", e->name,
			       text[0] ? text : strerror(r < 0 ? -r : EINVAL));
	s = returned(f, fetch, &wrong);
	if (!s)
		return err_set(err, -EINVAL, "engine %s: %s", e->name, wrong);
	/* a failed sample becomes zeros from the start of the buffer */
	if (s->own->error < 0)
		s->own->data = s->own->buf;
	*ret = TAKE_PTR(s->own);
	f->n_out--;
	return 0;
}

int own_engine_init(struct own_engine *ret, const struct gpemu_engine *engine,
		    struct err *err)
{
	unsigned known = GPEMU_ENGINE_WHOLE_BATCHES | GPEMU_ENGINE_ANY_ORDER |
			 GPEMU_ENGINE_DIRECT;
	const char *wrong = NULL;

	/* a smaller struct would be older than version 1 */
	if (engine->struct_bytes < sizeof(*engine))
		wrong = "struct_bytes is not sizeof(struct gpemu_engine)";
	else if (!engine->name || !engine->name[0])
		wrong = "the engine has no name";
	else if (!engine->next)
		wrong = "the engine has no next()";
	else if (engine->flags & ~known)
		wrong = "the engine has unknown flags";
	if (wrong)
		return err_set(err, -EINVAL, "engine: %s", wrong);
	ret->engine = *engine;
	ret->ops = (struct engine_ops){
		.plugin = { .name = engine->name,
			    .summary = engine->summary ? engine->summary : "",
			    .state_size = sizeof(struct gpemu_feed) },
		.whole_batches = engine->flags & GPEMU_ENGINE_WHOLE_BATCHES,
		.any_order = engine->flags & GPEMU_ENGINE_ANY_ORDER,
		.can_direct = engine->flags & GPEMU_ENGINE_DIRECT,
		.init = init,
		.fini = fini,
		.next = next,
	};
	return 0;
}
