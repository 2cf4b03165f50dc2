/* SPDX-License-Identifier: MIT */
#include "service/core/registry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

void registry_fini(struct registry *r)
{
	for (uint32_t i = 0; i < r->n; i++)
		free(r->worker[i].address);
	r->n = 0;
}

struct registered *registry_find(struct registry *r, uint64_t id)
{
	for (uint32_t i = 0; i < r->n; i++)
		if (r->worker[i].id == id)
			return &r->worker[i];
	return NULL;
}

/* The worker of this number, new or not; NULL: too many. */
static struct registered *get(struct registry *r, uint64_t id)
{
	struct registered *w = registry_find(r, id);

	if (w || r->n == REGISTRY_MOST)
		return w;
	w = &r->worker[r->n++];
	*w = (struct registered){ .id = id };
	return w;
}

int registry_expect(struct registry *r, uint64_t id, uint64_t now)
{
	struct registered *w = get(r, id);

	if (!w)
		return -ENOSPC;
	w->until = now + r->timeout_ns;
	return 0;
}

int registry_add(struct registry *r, uint64_t id, const char *address,
		 uint64_t now, uint64_t *ret_old)
{
	char *copy = strdup(address);
	struct registered *w;

	*ret_old = 0;
	if (!copy)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->n; i++) {
		const char *at = r->worker[i].address;

		if (r->worker[i].id != id && at && !strcmp(at, address))
			*ret_old = r->worker[i].id;
	}
	w = get(r, id);
	if (!w) {
		free(copy);
		return -ENOSPC;
	}
	free(w->address);
	w->address = copy;
	w->until = now + r->timeout_ns;
	return 0;
}

void registry_beat(struct registry *r, uint64_t id, uint64_t now)
{
	struct registered *w = registry_find(r, id);

	if (w)
		w->until = now + r->timeout_ns;
}

uint64_t registry_expired(const struct registry *r, uint64_t now)
{
	for (uint32_t i = 0; i < r->n; i++)
		if (now >= r->worker[i].until)
			return r->worker[i].id;
	return 0;
}

uint64_t registry_due(const struct registry *r)
{
	uint64_t due = UINT64_MAX;

	for (uint32_t i = 0; i < r->n; i++)
		due = MIN(due, r->worker[i].until);
	return due;
}

void registry_remove(struct registry *r, uint64_t id)
{
	struct registered *w = registry_find(r, id);

	if (!w)
		return;
	free(w->address);
	*w = r->worker[--r->n];
}
