/* SPDX-License-Identifier: MIT */
#include "platform/k8s/grants.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/rng.h"
#include "common/units.h"
#include "common/util.h"

/* Lists in a row without a grant that was listed, until it is revoked.
 * arbitrary: a kubelet that starts may list before its socket for plugins is
 * there, and grants_doubt is called */
enum { MISSED = 2 };

/* Containers of a pod may have devices in common, an init container's. They are
 * allocated at once. arbitrary: more than a kubelet takes for it */
#define POD_NS (5 * NS_PER_S)

/* arbitrary: two are there at a time, the former being revoked */
enum { TURNS = 4 };

static int by_place(const void *a, const void *b)
{
	const struct k8s_device *const *x = a, *const *y = b;

	return *x < *y ? -1 : *x > *y; /* of one array */
}

/* Of sorted devices those that are named twice count once. */
static size_t unique(const struct k8s_device **devices, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		if (k == 0 || devices[i] != devices[k - 1])
			devices[k++] = devices[i];
	return k;
}

static void make_name(const char *resource, struct k8s_grant *grant)
{
	uint64_t key = rng_key(grant->turn, resource, grant->n);

	for (size_t i = 0; i < grant->n; i++)
		key = rng_key(key, grant->devices[i]->id, i);
	snprintf(grant->name, GRANT_NAME, GRANT_PREFIX "%016" PRIx64, key);
}

static struct k8s_grant *find(const struct grants *g, const char *name)
{
	struct k8s_grant *grant = g->first;

	while (grant && strcmp(grant->name, name) != 0)
		grant = grant->next;
	return grant;
}

static struct health *health_of(const struct grants *g,
				const struct node_kind *kind)
{
	for (size_t i = 0; i < g->n_health; i++)
		if (g->health[i].kind == kind)
			return &g->health[i];
	return NULL;
}

/* Tell the server of a kind, or of all (NULL), what the grant has there. */
static void tell(struct grants *g, struct k8s_grant *grant,
		 const struct node_kind *only)
{
	size_t n;

	for (size_t i = 0; i < grant->n; i += n) {
		const struct k8s_device *d = grant->devices[i];
		int r;

		n = 1;
		while (i + n < grant->n &&
		       grant->devices[i + n]->at[K8S_CARD] == d->at[K8S_CARD])
			n++;
		if (only && d->kind != only)
			continue;
		r = health_grant(health_of(g, d->kind), grant->name, d->gpu,
				 n * node_slice_bytes(d->kind));
		if (r < 0)
			grant->error = -r;
		else
			grant->n_pending++;
	}
}

static bool has_kind(const struct k8s_grant *grant,
		     const struct node_kind *kind)
{
	for (size_t i = 0; i < grant->n; i++)
		if (grant->devices[i]->kind == kind)
			return true;
	return false;
}

/* It is not known to be listed. */
static void doubt(struct k8s_grant *grant)
{
	grant->listed = false;
	grant->n_missed = 0;
	grant->since_ns = tick_wall();
}

static void free_grant(struct k8s_grant *grant)
{
	free(grant->devices);
	free(grant);
}

/* A grant for these devices that nobody was told of; NULL: no memory. */
static struct k8s_grant *new_grant(const struct k8s_device *const *devices,
				   size_t n)
{
	struct k8s_grant *new = calloc(1, sizeof(*new));

	if (new)
		new->devices = calloc(n + 1, sizeof(struct k8s_device *));
	if (!new || !new->devices) {
		free(new);
		return NULL;
	}
	if (n)
		memcpy(new->devices, devices, n * sizeof(struct k8s_device *));
	qsort(new->devices, n, sizeof(struct k8s_device *), by_place);
	new->n = unique(new->devices, n);
	return new;
}

static bool is_same(const struct k8s_grant *a, const struct k8s_grant *b)
{
	return a->n == b->n && !memcmp(a->devices, b->devices,
				       a->n * sizeof(struct k8s_device *));
}

/* The one there is of the same devices; NULL: none. */
static struct k8s_grant *find_same(const struct grants *g,
				   const struct k8s_grant *as)
{
	struct k8s_grant *grant = g->first;

	while (grant && !is_same(grant, as))
		grant = grant->next;
	return grant;
}

static struct k8s_grant *put(struct grants *g, struct k8s_grant *grant)
{
	grant->next = g->first;
	g->first = grant;
	return grant;
}

static void take_back(struct grants *g, const struct k8s_grant *grant)
{
	for (size_t i = 0; i < g->n_health; i++)
		if (has_kind(grant, g->health[i].kind))
			health_revoke(&g->health[i], grant->name);
}

/* Take it out of the list, and from its servers. */
static void end_grant(struct grants *g, struct k8s_grant **at)
{
	struct k8s_grant *grant = *at;

	take_back(g, grant);
	*at = grant->next;
	free_grant(grant);
}

static bool meet(const struct k8s_grant *a, const struct k8s_grant *b)
{
	for (size_t i = 0; i < a->n; i++)
		for (size_t k = 0; k < b->n; k++)
			if (a->devices[i] == b->devices[k])
				return true;
	return false;
}

/* Of containers that had a device of a new grant before. */
static void end_former(struct grants *g, struct k8s_grant *new)
{
	struct k8s_grant **at = &g->first;

	while (*at) {
		struct k8s_grant *grant = *at;

		/* what others wait for is not former */
		if (grant->n_pending || grant->error || !meet(grant, new) ||
		    tick_wall() - grant->added_ns <= POD_NS) {
			at = &grant->next;
			continue;
		}
		if (is_same(grant, new))
			new->turn = (grant->turn + 1) % TURNS;
		end_grant(g, at);
	}
}

int grants_add(struct grants *g, const char *resource,
	       const struct k8s_device *const *devices, size_t n,
	       struct k8s_grant **ret)
{
	struct k8s_grant *new = new_grant(devices, n), *grant;

	if (!new)
		return -ENOMEM;
	end_former(g, new);
	grant = find_same(g, new);
	if (grant) {
		free_grant(new);
	} else {
		make_name(resource, new);
		grant = put(g, new);
	}
	doubt(grant);
	grant->added_ns = grant->since_ns;
	grant->error = 0;
	tell(g, grant, NULL);
	*ret = grant;
	return 0;
}

/* Has a server a folder of it? */
static bool is_there(const struct k8s_grant *grant)
{
	_cleanup_free_ char *path =
		grant->n ? gpud_grant_folder(grant->devices[0]->kind->server,
					     grant->name)
			 : NULL;

	return path && access(path, F_OK) == 0;
}

int grants_adopt(struct grants *g, const char *resource,
		 const struct k8s_device *const *devices, size_t n)
{
	struct k8s_grant *new = new_grant(devices, n);

	if (!new)
		return -ENOMEM;
	if (find_same(g, new)) {
		free_grant(new);
		return 0;
	}
	for (new->turn = TURNS - 1;; new->turn--) {
		make_name(resource, new);
		if (new->turn == 0 || is_there(new))
			break;
	}
	doubt(put(g, new));
	tell(g, new, NULL);
	return 0;
}

void grants_doubt(struct grants *g)
{
	for (struct k8s_grant *grant = g->first; grant; grant = grant->next)
		doubt(grant);
}

bool grants_ack(struct grants *g, const char *name, int error)
{
	struct k8s_grant *grant = find(g, name);

	if (!grant || grant->n_pending == 0)
		return false; /* revoked */
	grant->n_pending--;
	if (error)
		grant->error = error;
	return !grant->listed;
}

void grants_connected(struct grants *g, const struct node_kind *kind)
{
	for (struct k8s_grant *grant = g->first; grant; grant = grant->next)
		if (has_kind(grant, kind))
			tell(g, grant, kind);
}

void grants_lost(struct grants *g, const struct node_kind *kind)
{
	for (struct k8s_grant *grant = g->first; grant; grant = grant->next) {
		if (!has_kind(grant, kind) || grant->n_pending == 0)
			continue;
		grant->n_pending = 0;
		grant->error = EHOSTDOWN;
	}
}

bool grants_within(const struct k8s_grant *grant,
		   const struct k8s_device *const *devices, size_t n)
{
	size_t found = 0;

	for (size_t i = 0; i < grant->n; i++)
		for (size_t k = 0; k < n; k++)
			if (grant->devices[i] == devices[k]) {
				found++;
				break;
			}
	return found == grant->n;
}

void grants_prune(struct grants *g,
		  bool (*live)(void *ctx, const struct k8s_grant *grant),
		  void *ctx, uint64_t patience_ns)
{
	struct k8s_grant **at = &g->first;
	uint64_t now = tick_wall();

	while (*at) {
		struct k8s_grant *grant = *at;

		if (live(ctx, grant)) {
			grant->listed = true;
			grant->n_missed = 0;
		} else if ((grant->listed && ++grant->n_missed == MISSED) ||
			   now - grant->since_ns > patience_ns) {
			end_grant(g, at);
			continue;
		}
		at = &grant->next;
	}
}

static size_t sweep(struct grants *g, struct health *h)
{
	_cleanup_free_ char *path = gpud_grant_folder(h->kind->server, "");
	DIR *dir = path ? opendir(path) : NULL;
	const struct dirent *e;
	size_t n = 0;

	while (dir && (e = readdir(dir)))
		if (!strncmp(e->d_name, GRANT_PREFIX, strlen(GRANT_PREFIX)) &&
		    strlen(e->d_name) < GPUD_NAME && !find(g, e->d_name)) {
			health_revoke(h, e->d_name);
			n++;
		}
	if (dir)
		closedir(dir);
	return n;
}

bool grants_sweep(struct grants *g)
{
	size_t n = 0;

	for (size_t i = 0; i < g->n_health; i++)
		n += sweep(g, &g->health[i]);
	return n == 0;
}

void grants_fini(struct grants *g)
{
	while (g->first) {
		struct k8s_grant *grant = g->first;

		g->first = grant->next;
		free_grant(grant);
	}
}
