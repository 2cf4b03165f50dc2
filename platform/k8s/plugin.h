/* SPDX-License-Identifier: MIT */
/* The plugin: one loop for the kubelet's folder, the sockets of all resources,
 * and all gpemu-gpud. */
#ifndef GPEMU_PLATFORM_K8S_PLUGIN_H
#define GPEMU_PLATFORM_K8S_PLUGIN_H

#include <jansson.h>
#include <stdbool.h>

#include "common/err.h"
#include "common/program/events.h"
#include "platform/k8s/grants.h"
#include "platform/k8s/health.h"
#include "platform/k8s/kubelet.h"
#include "platform/k8s/pods.h"
#include "platform/k8s/resource.h"
#include "platform/node.h"

struct plugin_config {
	const struct node *node;
	const char *dir;      /* of the kubelet's sockets */
	uint64_t interval_ns; /* of health checks */
	const char *pods;     /* the kubelet's socket for what pods have */
	uint64_t pods_interval_ns;
	void (*ready)(void); /* the sockets are there, if a kubelet is */
};

struct k8s_plugin {
	struct plugin_config config;
	struct events events;
	struct event signals;
	struct event_timer begin; /* wait no longer for servers */
	struct kubelet kubelet;
	struct health *health; /* of each kind of the node */
	struct grants grants;
	char *folder; /* of their files */
	struct pods pods;
	struct resource *resources;
	size_t n_resources;
	bool begun; /* the kubelet may hear of the resources */
	bool stop;
};

/* -errno with a text; plugin_fini in any case. Blocks SIGINT and SIGTERM for
 * the calling thread. */
int plugin_init(struct k8s_plugin *p, const struct plugin_config *config,
		struct err *err);
void plugin_fini(struct k8s_plugin *p);
/* Run until SIGINT or SIGTERM (0), or -errno with a text. */
int plugin_run(struct k8s_plugin *p, struct err *err);
/* What happened since the start. */
json_t *plugin_json(const struct k8s_plugin *p);

#endif
