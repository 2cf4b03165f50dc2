/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>

#include "common/util.h"
#include "platform/k8s/devices.h"

/* Of a card, a group, a kind, or all: how many devices may be chosen, and how
 * many are. */
struct tally {
	uint32_t free, taken;
};

enum state { ABSENT, FREE, TAKEN };

struct choice {
	const struct k8s_devices *all;
	uint8_t *state; /* enum state, of each device */
	struct tally *tally[K8S_LEVELS];
	size_t n_taken;
};

static void fini(struct choice *c)
{
	free(c->state);
	for (int level = 0; level < K8S_LEVELS; level++)
		free(c->tally[level]);
}

static int init_choice(struct choice *c, const struct k8s_devices *d)
{
	*c = (struct choice){ .all = d, .state = calloc(d->n + 1, 1) };
	for (int level = 0; level < K8S_LEVELS; level++) {
		c->tally[level] =
			calloc(d->n_at[level] + 1, sizeof(struct tally));
		if (!c->tally[level])
			return -ENOMEM;
	}
	return c->state ? 0 : -ENOMEM;
}

static void set(struct choice *c, const struct k8s_device *device,
		enum state state)
{
	uint8_t *now = &c->state[device - c->all->items];

	for (int level = 0; level < K8S_LEVELS; level++) {
		struct tally *t = &c->tally[level][device->at[level]];

		t->free += (state == FREE) - (*now == FREE);
		t->taken += (state == TAKEN) - (*now == TAKEN);
	}
	c->n_taken += (state == TAKEN) - (*now == TAKEN);
	*now = state;
}

/* The nearest level at which a set holds all that is taken and is large enough;
 * of several such sets the smallest. */
static enum k8s_level find_set(const struct choice *c, size_t size,
			       uint32_t *ret_set)
{
	int level = c->all->packed ? K8S_CARD : K8S_GROUP;

	for (; level < K8S_ALL; level++) {
		const struct tally *t = c->tally[level];
		size_t least = SIZE_MAX;

		for (uint32_t i = 0; i < c->all->n_at[level]; i++) {
			size_t n = (size_t)t[i].free + t[i].taken;

			if (t[i].taken != c->n_taken || n < size || n >= least)
				continue;
			least = n;
			*ret_set = i;
		}
		if (least < SIZE_MAX)
			return (enum k8s_level)level;
	}
	*ret_set = 0;
	return K8S_ALL;
}

/* What was begun comes first, then what is largest. */
static int64_t pull(const struct choice *c, enum k8s_level level,
		    const struct k8s_device *device)
{
	const struct tally *t = &c->tally[level][device->at[level]];

	return t->taken ? (int64_t)t->taken + NODE_MAX_DEVICES : t->free;
}

/* Is `a` the better next one? 0: they are equal. */
static int64_t better(const struct choice *c, const struct k8s_device *a,
		      const struct k8s_device *b)
{
	const struct tally *x = &c->tally[K8S_CARD][a->at[K8S_CARD]],
			   *y = &c->tally[K8S_CARD][b->at[K8S_CARD]];
	int64_t d = 0;

	for (int level = K8S_KIND; level > K8S_CARD && d == 0; level--)
		d = pull(c, (enum k8s_level)level, a) -
		    pull(c, (enum k8s_level)level, b);
	if (d != 0 || a->at[K8S_CARD] == b->at[K8S_CARD])
		return d;
	if (c->all->packed)
		return pull(c, K8S_CARD, a) - pull(c, K8S_CARD, b);
	if (c->all->spread)
		return x->taken != y->taken
			       ? (int64_t)y->taken - (int64_t)x->taken
			       : (int64_t)x->free - (int64_t)y->free;
	return 0;
}

static const struct k8s_device *
next_device(const struct choice *c, enum k8s_level level, uint32_t which)
{
	const struct k8s_device *best = NULL;

	for (size_t i = 0; i < c->all->n; i++) {
		const struct k8s_device *device = &c->all->items[i];

		if (c->state[i] != FREE || device->at[level] != which)
			continue;
		if (!best || better(c, device, best) > 0)
			best = device;
	}
	return best;
}

int k8s_prefer(const struct k8s_devices *d,
	       const struct k8s_device *const *available, size_t n_available,
	       const struct k8s_device *const *must, size_t n_must, size_t size,
	       const struct k8s_device **ret)
{
	struct choice c;
	enum k8s_level level;
	uint32_t which;
	int r = init_choice(&c, d);

	for (size_t i = 0; r == 0 && i < n_available; i++)
		set(&c, available[i], FREE);
	for (size_t i = 0; r == 0 && i < n_must; i++)
		set(&c, must[i], TAKEN);
	if (r == 0 && (c.n_taken > size ||
		       (size_t)c.tally[K8S_ALL][0].free + c.n_taken < size))
		r = -EINVAL;
	if (r == 0) {
		level = find_set(&c, size, &which);
		while (c.n_taken < size)
			set(&c, next_device(&c, level, which), TAKEN);
		for (size_t i = 0; i < d->n; i++)
			if (c.state[i] == TAKEN)
				*ret++ = &d->items[i];
	}
	fini(&c);
	return r;
}
