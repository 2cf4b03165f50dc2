/* SPDX-License-Identifier: MIT */
#include "platform/k8s/pods.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/units.h"
#include "common/util.h"
#include "platform/k8s/kubelet.pb-c.h"

/* For the list. arbitrary: a kubelet answers in milliseconds */
#define ANSWER_NS (5 * NS_PER_S)
/* A container that was allocated devices is listed at once, except by kubelets
 * that list it when it runs: until its images are there. arbitrary */
#define PATIENCE_NS (600 * NS_PER_S)
/* From a grant to the next list. arbitrary: a kubelet has the container in its
 * list by then, and few containers live shorter (seen: 0.6 s) */
#define SOON_NS (200 * NS_PER_MS)

/* The devices of a pod, of all its containers. */
struct set {
	const struct k8s_device **items;
	size_t n, size;
};

struct sets {
	struct set *items; /* of each pod */
	size_t n;
};

static bool live(void *ctx, const struct k8s_grant *grant)
{
	const struct sets *all = ctx;

	for (size_t i = 0; i < all->n; i++)
		if (grants_within(grant, all->items[i].items, all->items[i].n))
			return true;
	return false;
}

static int add(struct set *s, const struct k8s_device *d)
{
	if (util_reserve(&s->items, &s->size, s->n + 1,
			 sizeof(struct k8s_device *)) < 0)
		return -ENOMEM;
	s->items[s->n++] = d;
	return 0;
}

/* The devices of a resource that a container has; kubelets list them together
 * or one by one. */
static int collect(const struct resource *r, const Kubelet__PodContainer *c,
		   struct set *ret)
{
	for (size_t i = 0; i < c->n_devices; i++) {
		const Kubelet__PodDevices *d = c->devices[i];

		if (strcmp(d->resource_name, r->devices.resource) != 0)
			continue;
		for (size_t k = 0; k < d->n_ids; k++) {
			const struct k8s_device *device =
				k8s_devices_find(&r->devices, d->ids[k]);

			if (device && add(ret, device) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

static int take_container(const struct pods *p, const Kubelet__PodContainer *c,
			  struct set *pod)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->n_resources; i++)
		r = collect(&p->resources[i], c, pod);
	return r;
}

static int take_list(struct pods *p, const Kubelet__PodList *list)
{
	struct sets all = { .items = calloc(list->n_pods + 1,
					    sizeof(struct set)) };
	int r = all.items ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < list->n_pods; i++) {
		const Kubelet__Pod *pod = list->pods[i];

		all.n++;
		for (size_t k = 0; r == 0 && k < pod->n_containers; k++)
			r = take_container(p, pod->containers[k],
					   &all.items[i]);
	}
	if (r == 0)
		grants_prune(p->grants, live, &all, list->n_pods > 0,
			     PATIENCE_NS);
	for (size_t i = 0; i < all.n; i++)
		free(all.items[i].items);
	free(all.items);
	return r;
}

/* Log a trouble once. */
static void fail(struct pods *p, const char *why)
{
	if (strcmp(p->trouble, why) != 0)
		log_warn("cannot see which pods have ended: %s", why);
	snprintf(p->trouble, sizeof(p->trouble), "%s", why);
}

static void done(void *ctx, enum grpc_status status, const char *text,
		 const void *answer, size_t n)
{
	Kubelet__PodList *list = NULL;
	struct pods *p = ctx;

	p->client = NULL;
	if (status == GRPC_OK)
		list = kubelet__pod_list__unpack(NULL, n, answer);
	if (!list)
		fail(p, status == GRPC_OK ? "a malformed answer" : text);
	else if (take_list(p, list) < 0)
		fail(p, "out of memory");
	else
		p->trouble[0] = '\0';
	if (list)
		kubelet__pod_list__free_unpacked(list, NULL);
}

static void ask(struct event_timer *t)
{
	struct pods *p = container_of(t, struct pods, timer);
	struct grpc_request q = { .path = p->path,
				  .method = "/v1.PodResourcesLister/List",
				  .timeout_ns = ANSWER_NS,
				  .done = done,
				  .ctx = p };
	struct err err = { 0 };

	p->timer.at = tick_wall() + p->interval_ns;
	if (!p->grants->first)
		return;
	if (!p->client && grpc_client_new(p->events, &q, &p->client, &err) < 0)
		fail(p, err.text);
}

void pods_begin(struct pods *p)
{
	p->timer = (struct event_timer){ .at = tick_wall(), .fn = ask };
	events_add_timer(p->events, &p->timer);
}

void pods_granted(struct pods *p)
{
	p->timer.at = MIN(p->timer.at, tick_wall() + SOON_NS);
}

void pods_end(struct pods *p)
{
	events_remove_timer(p->events, &p->timer);
	grpc_client_free(p->client);
}
