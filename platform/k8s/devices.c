/* SPDX-License-Identifier: MIT */
#include "platform/k8s/devices.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare_devices(const void *a, const void *b)
{
	const struct k8s_device *const *x = a, *const *y = b;

	return strcmp((*x)->id, (*y)->id);
}

/* The group of a new device: that of an earlier one, or the next. */
static uint32_t group_of(const struct k8s_devices *d,
			 const struct k8s_device *new)
{
	for (size_t i = 0; i < d->n; i++)
		if (d->items[i].kind == new->kind &&
		    d->items[i].numa == new->numa)
			return d->items[i].at[K8S_GROUP];
	return d->n_at[K8S_GROUP];
}

static void add_gpu(struct k8s_devices *d, const struct node_kind *k,
		    uint32_t gpu)
{
	struct k8s_device new = { .kind = k,
				  .gpu = gpu,
				  .numa = node_numa(k, gpu) };

	new.at[K8S_CARD] = d->n_at[K8S_CARD]++;
	new.at[K8S_KIND] = d->n_at[K8S_KIND];
	new.at[K8S_GROUP] = group_of(d, &new);
	if (new.at[K8S_GROUP] == d->n_at[K8S_GROUP])
		d->n_at[K8S_GROUP]++;
	for (uint32_t i = 0; i < k->n_slices; i++) {
		if (d->packed || d->spread)
			snprintf(new.id, K8S_ID, "%s-%u-%u", k->name, gpu, i);
		else
			snprintf(new.id, K8S_ID, "%s-%u", k->name, gpu);
		d->items[d->n++] = new;
	}
}

int k8s_devices_init(struct k8s_devices *d, const struct node *node,
		     const char *resource)
{
	size_t n = 0;

	*d = (struct k8s_devices){ .resource = resource };
	for (size_t i = 0; i < node->gpus.n; i++)
		if (!strcmp(node_kind(node, i)->resource, resource))
			n += node_kind(node, i)->count *
			     node_kind(node, i)->n_slices;
	d->items = calloc(n ? n : 1, sizeof(*d->items));
	d->by_id = calloc(n ? n : 1, sizeof(struct k8s_device *));
	if (!d->items || !d->by_id)
		return -ENOMEM;
	for (size_t i = 0; i < node->gpus.n; i++) {
		const struct node_kind *k = node_kind(node, i);

		if (strcmp(k->resource, resource) != 0)
			continue;
		d->packed = k->slice_bytes;
		d->spread = k->replicas;
		for (uint32_t gpu = 0; gpu < k->count; gpu++)
			add_gpu(d, k, gpu);
		d->n_at[K8S_KIND]++;
	}
	d->n_at[K8S_ALL] = 1;
	for (size_t i = 0; i < d->n; i++)
		d->by_id[i] = &d->items[i];
	qsort(d->by_id, d->n, sizeof(struct k8s_device *), compare_devices);
	return 0;
}

void k8s_devices_fini(struct k8s_devices *d)
{
	free(d->items);
	free(d->by_id);
	*d = (struct k8s_devices){ 0 };
}

static int compare_id(const void *id, const void *device)
{
	return strcmp(id, (*(struct k8s_device *const *)device)->id);
}

const struct k8s_device *k8s_devices_find(const struct k8s_devices *d,
					  const char *id)
{
	struct k8s_device **p = bsearch(
		id, d->by_id, d->n, sizeof(struct k8s_device *), compare_id);

	return p ? *p : NULL;
}

bool k8s_devices_mark(struct k8s_devices *d, const struct node_kind *kind,
		      uint64_t healthy)
{
	bool changed = false;

	for (size_t i = 0; i < d->n; i++) {
		struct k8s_device *device = &d->items[i];
		bool now = healthy >> device->gpu & 1;

		if (device->kind != kind)
			continue;
		changed |= device->healthy != now;
		device->healthy = now;
	}
	return changed;
}
