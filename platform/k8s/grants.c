/* SPDX-License-Identifier: MIT */
#include "platform/k8s/grants.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/rng.h"
#include "common/units.h"
#include "common/util.h"
#include "platform/k8s/grant_files.h"

/* Lists in a row without a grant that was listed, until it is revoked.
 * arbitrary: a kubelet that starts may list before its socket for plugins is
 * there, and grants_doubt is called */
enum { MISSED = 2 };

/* Containers of a pod may have devices in common, an init container's. They are
 * allocated at once. arbitrary: more than a kubelet takes for it */
#define POD_NS (5 * NS_PER_S)

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

/* Of 64 bits that are another's only by chance: the time is in them. */
static void make_name(const char *resource, struct k8s_grant *grant)
{
	uint64_t key = rng_key(tick_wall(), resource, grant->n);

	for (size_t i = 0; i < grant->n; i++)
		key = rng_key(key, grant->devices[i]->id, i);
	snprintf(grant->name, GRANT_NAME, GRANT_PREFIX "%016" PRIx64, key);
}

static struct k8s_grant *find_grant(const struct grants *g, const char *name)
{
	struct k8s_grant *grant = g->first;

	while (grant && strcmp(grant->name, name) != 0)
		grant = grant->next;
	return grant;
}

static size_t index_of(const struct grants *g, const struct node_kind *kind)
{
	size_t i = 0;

	while (g->health[i].kind != kind)
		i++;
	return i;
}

static void fail_grant(struct k8s_grant *grant, int error)
{
	if (grant->held)
		grant->error = error;
	else
		log_warn("cannot grant again %s: %s",
			 grant->n ? grant->devices[0]->id : "nothing",
			 strerror(error));
}

/* Tell the server of a kind, or of all (NULL), what the grant has there. */
static void tell(struct grants *g, struct k8s_grant *grant,
		 const struct node_kind *only)
{
	size_t n;

	for (size_t i = 0; i < grant->n; i += n) {
		const struct k8s_device *d = grant->devices[i];
		size_t kind = index_of(g, d->kind);
		int r;

		n = 1;
		while (i + n < grant->n &&
		       grant->devices[i + n]->at[K8S_CARD] == d->at[K8S_CARD])
			n++;
		if (only && d->kind != only)
			continue;
		r = health_grant(&g->health[kind], grant->name, d->gpu,
				 n * node_slice_bytes(d->kind));
		if (r < 0)
			fail_grant(grant, -r);
		else
			grant->pending[kind]++;
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
	grant->listed = grant->loaded = false;
	grant->n_missed = 0;
	grant->since_ns = tick_wall();
}

static void free_grant(struct k8s_grant *grant)
{
	free(grant->devices);
	free(grant);
}

/* A grant for these devices that nobody was told of; NULL: no memory. */
static struct k8s_grant *new_grant(const struct grants *g,
				   const struct k8s_device *const *devices,
				   size_t n)
{
	struct k8s_grant *new =
		calloc(1, sizeof(*new) + g->n_health * sizeof(unsigned));

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

static void put_grant(struct grants *g, struct k8s_grant *grant)
{
	grant->next = g->first;
	g->first = grant;
}

static void take_back(struct grants *g, const struct k8s_grant *grant)
{
	for (size_t i = 0; i < g->n_health; i++)
		if (has_kind(grant, g->health[i].kind))
			health_revoke(&g->health[i], grant->name);
}

/* Take it out of the list, off the disk, and from its servers: one that does
 * not hear of it now does so when it is connected. */
static void end_grant(struct grants *g, struct k8s_grant **at)
{
	struct k8s_grant *grant = *at;

	grant_files_remove(g->folder, grant->name);
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
static void end_former(struct grants *g, const struct k8s_grant *new)
{
	struct k8s_grant **at = &g->first;

	while (*at) {
		struct k8s_grant *grant = *at;

		if (grant->held || !meet(grant, new) ||
		    tick_wall() - grant->added_ns <= POD_NS)
			at = &grant->next;
		else
			end_grant(g, at);
	}
}

int grants_add(struct grants *g, const char *resource,
	       const struct k8s_device *const *devices, size_t n,
	       struct k8s_grant **ret)
{
	struct k8s_grant *new = new_grant(g, devices, n);
	int r;

	if (!new)
		return -ENOMEM;
	make_name(resource, new);
	r = grant_files_write(g->folder, new->name, resource, new->devices,
			      new->n);
	if (r < 0) {
		free_grant(new);
		return r;
	}
	end_former(g, new);
	put_grant(g, new);
	doubt(new);
	new->added_ns = new->since_ns;
	new->held = true;
	tell(g, new, NULL);
	*ret = new;
	return 0;
}

bool grants_done(const struct grants *g, const struct k8s_grant *grant)
{
	for (size_t i = 0; i < g->n_health; i++)
		if (grant->pending[i] && !grant->error)
			return false;
	return true;
}

void grants_settle(struct grants *g, struct k8s_grant *grant, bool has_it)
{
	struct k8s_grant **at = &g->first;

	grant->held = false;
	while (*at != grant)
		at = &(*at)->next;
	if (!has_it)
		end_grant(g, at);
}

/* While they are loaded. */
struct loading {
	struct grants *grants;
	const struct k8s_device *(*device)(void *ctx, const char *resource,
					   const char *id);
	void *ctx;
};

static int load_one(void *ctx, const char *name, char *const *lines, size_t n)
{
	const struct loading *l = ctx;
	_cleanup_free_ const struct k8s_device **devices =
		calloc(n, sizeof(struct k8s_device *));
	struct k8s_grant *grant;

	if (!devices)
		return -ENOMEM;
	if (strlen(name) >= GRANT_NAME ||
	    strncmp(name, GRANT_PREFIX, strlen(GRANT_PREFIX)) != 0)
		return -EINVAL;
	for (size_t i = 1; i < n; i++) {
		devices[i - 1] = l->device(l->ctx, lines[0], lines[i]);
		if (!devices[i - 1])
			return -EINVAL;
	}
	grant = new_grant(l->grants, devices, n - 1);
	if (!grant)
		return -ENOMEM;
	snprintf(grant->name, GRANT_NAME, "%s", name);
	put_grant(l->grants, grant);
	doubt(grant);
	grant->loaded = true;
	return 0;
}

int grants_load(struct grants *g,
		const struct k8s_device *(*device)(void *ctx,
						   const char *resource,
						   const char *id),
		void *ctx, struct err *err)
{
	struct loading l = { .grants = g, .device = device, .ctx = ctx };

	return grant_files_load(g->folder, load_one, &l, err);
}

void grants_doubt(struct grants *g)
{
	for (struct k8s_grant *grant = g->first; grant; grant = grant->next)
		doubt(grant);
}

bool grants_ack(struct grants *g, const struct node_kind *kind,
		const char *name, int error)
{
	struct k8s_grant *grant = find_grant(g, name);
	unsigned *pending = grant ? &grant->pending[index_of(g, kind)] : NULL;

	if (!grant || *pending == 0)
		return false; /* revoked */
	--*pending;
	if (error)
		fail_grant(grant, error);
	return !grant->listed;
}

/* What an earlier plugin left; another one that runs has files. */
static void sweep(struct grants *g, struct health *h)
{
	_cleanup_free_ char *path = gpud_grant_folder(h->kind->server, "");
	DIR *dir = path ? opendir(path) : NULL;
	const struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (!strncmp(e->d_name, GRANT_PREFIX, strlen(GRANT_PREFIX)) &&
		    strlen(e->d_name) < GPUD_NAME &&
		    !find_grant(g, e->d_name) &&
		    !grant_files_has(g->folder, e->d_name))
			health_revoke(h, e->d_name);
	if (dir)
		closedir(dir);
}

void grants_connected(struct grants *g, const struct node_kind *kind)
{
	sweep(g, &g->health[index_of(g, kind)]);
	for (struct k8s_grant *grant = g->first; grant; grant = grant->next)
		if (has_kind(grant, kind))
			tell(g, grant, kind);
}

void grants_lost(struct grants *g, const struct node_kind *kind)
{
	size_t i = index_of(g, kind);

	for (struct k8s_grant *grant = g->first; grant; grant = grant->next) {
		if (grant->held && grant->pending[i])
			grant->error = EHOSTDOWN;
		grant->pending[i] = 0;
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
	return grant->n && found == grant->n;
}

/* Would the kubelet list it, if it had a container? */
static bool knows(const struct k8s_grant *grant, bool any)
{
	return grant->listed || (grant->loaded && any);
}

/* Is it for the last time that a list has it not? */
static bool missed(const struct grants *g, struct k8s_grant *grant,
		   uint64_t now)
{
	if (grant->n_missed && now - grant->missed_ns < g->interval_ns)
		return false;
	grant->missed_ns = now;
	return ++grant->n_missed == MISSED;
}

void grants_prune(struct grants *g,
		  bool (*live)(void *ctx, const struct k8s_grant *grant),
		  void *ctx, bool any, uint64_t patience_ns)
{
	struct k8s_grant **at = &g->first;
	uint64_t now = tick_wall();

	while (*at) {
		struct k8s_grant *grant = *at;

		if (live(ctx, grant)) {
			grant->listed = true;
			grant->n_missed = 0;
		} else if (!grant->held &&
			   ((knows(grant, any) && missed(g, grant, now)) ||
			    now - grant->since_ns > patience_ns)) {
			end_grant(g, at);
			continue;
		}
		at = &grant->next;
	}
}

void grants_fini(struct grants *g)
{
	while (g->first) {
		struct k8s_grant *grant = g->first;

		g->first = grant->next;
		free_grant(grant);
	}
}
