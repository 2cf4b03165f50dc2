/* SPDX-License-Identifier: MIT */
/*
 * The stack is an array, with a linked list for each kind of call: the link of
 * a layer leads to the next one that has the hook. So a call costs one indirect
 * call per layer that has the hook, and nothing for the others.
 *
 * The stack has three ends, which have hooks but are no plug-ins:
 *
 *	top	above all: answers go to the front, offers end
 *	split	between whole requests and objects
 *	floor	below all: no layer has, keeps, watches or refuses anything
 */
#include "fs/server/stack.h"

#include <stdlib.h>
#include <string.h>

#include "common/thread.h"
#include "common/util.h"
#include "fs/server/object.h"

/* --- ends ----------------------------------------------------------------- */

static void reply(struct layer *l, struct read_request *r,
		  const struct answer *a)
{
	(void)l;
	r->reply(r, a->error, a->iov, a->n_iov);
}

static void answered(struct layer *l, const struct fetch *f, int error)
{
	(void)l;
	(void)f;
	(void)error;
}

static void ignore_offer(struct layer *l, struct object *o)
{
	(void)l;
	(void)o;
}

static const struct layer_ops top = {
	.plugin.name = "top",
	.answer = reply,
	.metadata_answered = answered,
	.offer = ignore_offer,
};

static enum layer_warmth no_room(struct layer *l, struct ask *a)
{
	(void)l;
	(void)a;
	return WARM_REJECTED;
}

static bool no(struct layer *l, uint32_t node)
{
	(void)l;
	(void)node;
	return false;
}

static bool any(struct layer *l, uint64_t key, unsigned tier)
{
	(void)l;
	(void)key;
	(void)tier;
	return true;
}

static const struct layer_ops ground = {
	.plugin.name = "floor",
	.admits = any,
	.warm = no_room,
	.keeps = no,
	.watches = no,
};

/* --- links ---------------------------------------------------------------- */

static bool has(const struct layer *l, size_t hook)
{
	void *f;

	memcpy(&f, (const char *)l->ops + hook, sizeof(f));
	return f != NULL;
}

/* The next layer from number `i` on, by `step`, that has the hook. */
static struct layer *next_layer(struct layer *const *all, int n, int i,
				int step, size_t hook)
{
	for (i += step; i >= 0 && i < n; i += step)
		if (has(all[i], hook))
			return all[i];
	return NULL;
}

/* A cache starts only its own fetches: others skip it. */
static struct layer *next_start(struct layer *const *all, int n, int i)
{
	for (i++; i < n; i++)
		if (all[i]->ops->rank >= LAYER_FETCH && all[i]->ops->start)
			return all[i];
	return NULL;
}

#define DOWN(hook) next_layer(all, n, i, 1, offsetof(struct layer_ops, hook))
#define UP(hook) next_layer(all, n, i, -1, offsetof(struct layer_ops, hook))

static void link_layers(struct layer *const *all, int n)
{
	for (int i = 0; i < n; i++) {
		struct layer *l = all[i];

		l->read = DOWN(read);
		l->metadata = DOWN(metadata);
		l->watches = DOWN(watches);
		l->ask = DOWN(ask);
		l->keeps = DOWN(keeps);
		l->peek = DOWN(peek);
		l->event = DOWN(event);
		l->admits = DOWN(admits);
		l->warm = DOWN(warm);
		l->start = next_start(all, n, i);
		l->answer = UP(answer);
		l->metadata_answered = UP(metadata_answered);
		l->offer = UP(offer);
	}
}

static void link_stack(struct server *s, const struct layer_ops *split)
{
	struct layer *all[MOST_LAYERS + 3] = { &s->top };
	size_t i = 0;
	int n = 1;

	s->top = (struct layer){ .ops = &top, .server = s };
	s->split = (struct layer){ .ops = split, .server = s };
	s->floor = (struct layer){ .ops = &ground, .server = s };
	while (i < s->n_layers && s->layers[i]->ops->rank == LAYER_REQUEST)
		all[n++] = s->layers[i++];
	all[n++] = &s->split;
	while (i < s->n_layers)
		all[n++] = s->layers[i++];
	all[n++] = &s->floor;
	link_layers(all, n);
}

/* --- making --------------------------------------------------------------- */

/* The layers named by the words of a stack. */
struct order {
	const struct layer_ops *ops[MOST_LAYERS];
	size_t n;
};

static unsigned count_of(const struct order *o, const struct layer_ops *ops)
{
	unsigned n = 0;

	for (size_t i = 0; i < o->n; i++)
		n += o->ops[i] == ops;
	return n;
}

/* Append at the bottom. */
static int add_word(struct order *o, const char *word, struct err *err)
{
	const struct plugin *p = plugin_find(layer_table, "layer", word, err);
	const struct layer_ops *ops, *above;

	if (!p)
		return -EINVAL;
	ops = container_of(p, const struct layer_ops, plugin);
	above = o->n ? o->ops[o->n - 1] : ops;
	if (above->rank > ops->rank)
		return err_set(err, -EINVAL,
			       "'%s' cannot stand below '%s'; the order "
			       "is " LAYERS_DEFAULT
			       ", where trace and fault may be swapped",
			       ops->plugin.name, above->plugin.name);
	if (count_of(o, ops) && !ops->many)
		return err_set(err, -EINVAL, "'%s' is listed twice",
			       ops->plugin.name);
	if (o->n == MOST_LAYERS)
		return err_set(err, -EINVAL, "more than %d layers",
			       MOST_LAYERS);
	o->ops[o->n++] = ops;
	return 0;
}

static int parse(const char *words, struct order *o, struct err *err)
{
	_cleanup_free_ char *copy = strdup(words);
	char *save, *word = copy ? strtok_r(copy, ",", &save) : NULL;
	int r = copy ? 0 : err_set(err, -ENOMEM, "out of memory");

	for (; r == 0 && word; word = strtok_r(NULL, ",", &save))
		r = add_word(o, word, err);
	for (size_t i = 0; r == 0 && layer_table[i]; i++) {
		const struct layer_ops *ops = container_of(
			layer_table[i], const struct layer_ops, plugin);

		if (ops->needed && !count_of(o, ops))
			r = err_set(err, -EINVAL, "the layer '%s' is required",
				    ops->plugin.name);
	}
	return r;
}

int stack_check_layers(const char *words, struct err *err)
{
	struct order o = { .n = 0 };

	return parse(words, &o, err);
}

static void free_layer(struct layer *l)
{
	if (l->made && l->ops->fini)
		l->ops->fini(l);
	free(l->state);
	free(l);
}

/* 0, LAYER_IDLE, -errno. */
static int add_layer(struct server *s, const struct layer_ops *ops,
		     unsigned nth, unsigned n_alike, struct err *err)
{
	struct layer *l = calloc(1, sizeof(*l));
	int r = -ENOMEM;

	if (!l)
		return r;
	*l = (struct layer){ .ops = ops,
			     .server = s,
			     .nth = nth,
			     .n_alike = n_alike,
			     .number = (uint8_t)(s->n_layers + 1),
			     .state = calloc(1,
					     MAX(ops->plugin.state_size, 1)) };
	l->made = l->state;
	if (l->made)
		r = ops->init ? ops->init(l, err) : 0;
	if (r == 0)
		s->layers[s->n_layers++] = l;
	else
		free_layer(l);
	return r;
}

/* One cache word stands for all tiers, or each tier has its own word. */
static int add_tiers(const struct server *s, const struct order *words,
		     struct order *ret, struct err *err)
{
	size_t n = s->c.tiers && s->c.tiers->n ? s->c.tiers->n : 1;

	for (size_t i = 0; i < words->n; i++) {
		const struct layer_ops *ops = words->ops[i];
		size_t there = count_of(words, ops);

		if (ops->many && n > 1 && there > 1 && there != n)
			return err_set(err, -EINVAL,
				       "layers: '%s' occurs %zu times, for "
				       "%zu tiers",
				       ops->plugin.name, there, n);
		for (size_t k = ops->many && there == 1 ? n : 1; k > 0; k--) {
			if (ret->n == MOST_LAYERS)
				return err_set(err, -EINVAL,
					       "layers: more than %d",
					       MOST_LAYERS);
			ret->ops[ret->n++] = ops;
		}
	}
	return 0;
}

int stack_init(struct server *s, const struct layer_ops *split, struct err *err)
{
	struct order words = { .n = 0 }, all = { .n = 0 }, above = { .n = 0 };
	int r = parse(s->c.layers ? s->c.layers : LAYERS_DEFAULT, &words, err);

	if (r == 0)
		r = add_tiers(s, &words, &all, err);
	for (size_t i = 0; r >= 0 && i < all.n; i++) {
		r = add_layer(s, all.ops[i], count_of(&above, all.ops[i]),
			      count_of(&all, all.ops[i]), err);
		above.ops[above.n++] = all.ops[i];
	}
	if (r < 0)
		return err_set(err, r, "%s", strerror(-r));
	link_stack(s, split);
	r = 0;
	for (size_t i = 0; r == 0 && i < s->n_layers; i++)
		if (s->layers[i]->ops->begin)
			r = s->layers[i]->ops->begin(s->layers[i], err);
	return r;
}

void stack_fini(struct server *s)
{
	for (size_t i = 0; i < s->n_layers; i++)
		free_layer(s->layers[i]);
	s->n_layers = 0;
}

void stack_stop(struct server *s)
{
	for (size_t i = 0; i < s->n_layers; i++) {
		struct layer *l = s->layers[i];

		if (l->ops->stop)
			l->ops->stop(l);
	}
}

struct layer *stack_layer(struct server *s, const struct layer_ops *ops)
{
	for (size_t i = 0; i < s->n_layers; i++)
		if (s->layers[i]->ops == ops)
			return s->layers[i];
	return NULL;
}

/* --- all of them ---------------------------------------------------------- */

void stack_event(struct server *s, enum layer_event event, uint64_t key)
{
	s->seq++;
	for (struct layer *l = s->top.event; l; l = l->event)
		l->ops->event(l, event, key, s->seq);
}

struct object *stack_peek(struct server *s, uint64_t key, bool kept)
{
	struct object *o = NULL;

	for (struct layer *l = s->top.peek; l && !o; l = l->peek)
		o = l->ops->peek(l, key, kept);
	return o;
}

bool stack_opens(struct layer *l, const struct fetch *f)
{
	if (!fetch_opens(f))
		return false;
	LOCK_SCOPE(&l->server->lock);
	return l->ops->peek(l, object_key(f->node, 0), false);
}

void stack_forget(struct server *s, const struct object *o)
{
	uint64_t key = o->key;
	bool was_cached = false;

	for (size_t i = 0; i < s->n_layers; i++) {
		struct layer *l = s->layers[i];

		if (l->ops->forget && l->ops->forget(l, o))
			was_cached = true;
	}
	if (was_cached)
		stack_event(s, LAYER_REMOVE, key);
}

void stack_accessed(struct server *s, struct object *o, struct ask *a)
{
	struct layer *l = s->layers[o->prefetched_by - 1];

	o->prefetched_by = 0;
	a->hit = true;
	l->ops->accessed(l, o, a);
}
