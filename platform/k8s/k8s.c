/* SPDX-License-Identifier: MIT */
/*
 * gpemu-k8s-plugin: options, the node's file, the record.
 *
 * Rooms, in the order in which a request of the kubelet meets them:
 *
 *	platform	the event loop (events.h); the node's file (node.h)
 *	platform/grpc	HTTP/2 frames to messages and back (grpc.h)
 *	platform/k8s	the calls (methods.h) of a resource (resource.h), its
 *			devices and which of them to prefer (devices.h), what a
 *			container gets (methods.h) and is granted (grants.h)
 *			until it ends (below); the health of the GPUs
 *			(health.h); the kubelet's comings and goings (kubelet.h)
 *	emu/gpu		the protocol of gpemu-gpud
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>

#include "common/err.h"
#include "common/json.h"
#include "common/log.h"
#include "common/program/cli.h"
#include "common/program/events.h"
#include "common/program/notify.h"
#include "common/units.h"
#include "common/util.h"
#include "platform/grpc/grpc.h"
#include "platform/k8s/grant_files.h"
#include "platform/k8s/grants.h"
#include "platform/k8s/health.h"
#include "platform/k8s/kubelet.h"
#include "platform/k8s/kubelet.pb-c.h"
#include "platform/k8s/methods.h"
#include "platform/k8s/resource.h"
#include "platform/node.h"

/*
 * --- pods -----------------------------------------------------------------
 *
 * The devices that pods have, by the kubelet's own list
 * (v1.PodResourcesLister): the one way to learn that a container has ended. It
 * can only be asked for, so it is, now and then while there are grants.
 */

#define PODS_SOCKET "/var/lib/kubelet/pod-resources/kubelet.sock"

struct pods {
	struct events *events; /* set by the owner, as the next five */
	const char *path;      /* of the kubelet's socket for that */
	uint64_t interval_ns;
	struct grants *grants;
	struct resource *resources;
	size_t n_resources;

	struct event_timer timer;
	struct grpc_client *client;
	char trouble[1024]; /* that was logged; "": none */
};

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

static bool grant_lives(void *ctx, const struct k8s_grant *grant)
{
	const struct sets *all = ctx;

	for (size_t i = 0; i < all->n; i++)
		if (grants_within(grant, all->items[i].items, all->items[i].n))
			return true;
	return false;
}

static int add_device(struct set *s, const struct k8s_device *d)
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

			if (device && add_device(ret, device) < 0)
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
		grants_prune(p->grants, grant_lives, &all, list->n_pods > 0,
			     PATIENCE_NS);
	for (size_t i = 0; i < all.n; i++)
		free(all.items[i].items);
	free(all.items);
	return r;
}

/* Log a trouble once. */
static void pods_fail(struct pods *p, const char *why)
{
	if (strcmp(p->trouble, why) != 0)
		log_warn("cannot see which pods have ended: %s", why);
	snprintf(p->trouble, sizeof(p->trouble), "%s", why);
}

static void list_done(void *ctx, enum grpc_status status, const char *text,
		      const void *answer, size_t n)
{
	Kubelet__PodList *list = NULL;
	struct pods *p = ctx;

	p->client = NULL;
	if (status == GRPC_OK)
		list = kubelet__pod_list__unpack(NULL, n, answer);
	if (!list)
		pods_fail(p, status == GRPC_OK ? "a malformed answer" : text);
	else if (take_list(p, list) < 0)
		pods_fail(p, "out of memory");
	else
		p->trouble[0] = '\0';
	if (list)
		kubelet__pod_list__free_unpacked(list, NULL);
}

static void list_pods(struct event_timer *t)
{
	struct pods *p = container_of(t, struct pods, timer);
	struct grpc_request q = { .path = p->path,
				  .method = "/v1.PodResourcesLister/List",
				  .timeout_ns = ANSWER_NS,
				  .done = list_done,
				  .ctx = p };
	struct err err = { 0 };

	p->timer.at = tick_wall() + p->interval_ns;
	if (!p->grants->first)
		return;
	if (!p->client && grpc_client_new(p->events, &q, &p->client, &err) < 0)
		pods_fail(p, err.text);
}

static void pods_begin(struct pods *p)
{
	p->timer = (struct event_timer){ .at = tick_wall(), .fn = list_pods };
	events_add_timer(p->events, &p->timer);
}

/* A container has a new grant: the list is asked for soon, so that it has the
 * container even if that ends before the interval does. */
static void pods_granted(struct pods *p)
{
	p->timer.at = MIN(p->timer.at, tick_wall() + SOON_NS);
}

static void pods_end(struct pods *p)
{
	events_remove_timer(p->events, &p->timer);
	grpc_client_free(p->client);
}

/*
 * The plugin: one loop for the kubelet's folder, the sockets of all resources,
 * and all gpemu-gpud.
 *
 * The order of the start matters: a kubelet that first heard of unhealthy
 * devices would set the node's capacity to zero for a moment, after each
 * restart of the plugin. So the resources begin when the health of all kinds is
 * known, but wait no longer than BEGIN_NS for a server that is silent.
 */

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

/* arbitrary: a gpemu-gpud answers in a millisecond, on a busy machine later */
#define BEGIN_NS (5 * NS_PER_S)

static void register_all(struct k8s_plugin *p)
{
	for (size_t i = 0; p->begun && i < p->n_resources; i++)
		resource_register(&p->resources[i]);
}

static void started(void *ctx)
{
	struct k8s_plugin *p = ctx;

	grants_doubt(&p->grants);
	register_all(p);
}

static void removed(void *ctx)
{
	struct k8s_plugin *p = ctx;

	for (size_t i = 0; p->begun && i < p->n_resources; i++)
		resource_check(&p->resources[i]);
}

/* Once. */
static void begin_plugin(struct k8s_plugin *p)
{
	if (p->begun)
		return;
	p->begun = true;
	p->begin.at = TICK_NEVER;
	register_all(p);
	p->config.ready();
}

static void begin_now(struct event_timer *t)
{
	begin_plugin(container_of(t, struct k8s_plugin, begin));
}

static void changed(void *ctx, const struct node_kind *kind, uint64_t healthy)
{
	struct k8s_plugin *p = ctx;
	bool known = true;

	for (size_t i = 0; i < p->n_resources; i++)
		resource_mark(&p->resources[i], kind, healthy);
	for (size_t i = 0; i < p->config.node->gpus.n; i++)
		known &= p->health[i].known;
	if (known) /* not from here: kinds are still being set up */
		event_timer_in(&p->begin, 0);
}

static void granted(struct k8s_plugin *p)
{
	for (size_t i = 0; i < p->n_resources; i++)
		methods_granted(&p->resources[i]);
}

static void connected(void *ctx, const struct node_kind *kind)
{
	struct k8s_plugin *p = ctx;

	grants_connected(&p->grants, kind);
}

static void lost(void *ctx, const struct node_kind *kind)
{
	struct k8s_plugin *p = ctx;

	grants_lost(&p->grants, kind);
	granted(p);
}

static void acked(void *ctx, const struct node_kind *kind, const char *name,
		  int error)
{
	struct k8s_plugin *p = ctx;

	if (grants_ack(&p->grants, kind, name, error))
		pods_granted(&p->pods);
	granted(p);
}

static void on_signal(struct event *e, uint32_t ready)
{
	(void)ready;
	container_of(e, struct k8s_plugin, signals)->stop = true;
}

static int watch_signals(struct k8s_plugin *p)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	p->signals = (struct event){
		.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
		.fn = on_signal,
	};
	return p->signals.fd < 0 ? -errno
				 : events_add(&p->events, &p->signals, EPOLLIN);
}

static bool is_new(const struct k8s_plugin *p, const char *resource)
{
	for (size_t i = 0; i < p->n_resources; i++)
		if (!strcmp(p->resources[i].devices.resource, resource))
			return false;
	return true;
}

static int open_resources(struct k8s_plugin *p, struct err *err)
{
	const struct node *node = p->config.node;
	int r = 0;

	p->resources = calloc(node->gpus.n, sizeof(*p->resources));
	if (!p->resources)
		return err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; r == 0 && i < node->gpus.n; i++) {
		const char *name = node_kind(node, i)->resource;

		if (is_new(p, name))
			r = resource_init(&p->resources[p->n_resources++],
					  &p->events, node, name, p->config.dir,
					  &p->grants, err);
	}
	return r;
}

static const struct k8s_device *find_device(void *ctx, const char *resource,
					    const char *id)
{
	const struct k8s_plugin *p = ctx;

	for (size_t i = 0; i < p->n_resources; i++)
		if (!strcmp(p->resources[i].devices.resource, resource))
			return k8s_devices_find(&p->resources[i].devices, id);
	return NULL;
}

static int watch_health(struct k8s_plugin *p, struct err *err)
{
	const struct node *node = p->config.node;

	p->health = calloc(node->gpus.n, sizeof(*p->health));
	if (!p->health)
		return err_set(err, -ENOMEM, "out of memory");
	p->grants.health = p->health;
	p->grants.n_health = node->gpus.n;
	for (size_t i = 0; i < node->gpus.n; i++) {
		p->health[i] = (struct health){
			.kind = node_kind(node, i),
			.events = &p->events,
			.interval_ns = p->config.interval_ns,
			.changed = changed,
			.connected = connected,
			.lost = lost,
			.acked = acked,
			.ctx = p,
		};
		health_begin(&p->health[i]);
	}
	return 0;
}

/* -errno with a text; plugin_fini in any case. Blocks SIGINT and SIGTERM for
 * the calling thread. */
static int plugin_init(struct k8s_plugin *p, const struct plugin_config *config,
		       struct err *err)
{
	int r;

	*p = (struct k8s_plugin){
		.config = *config,
		.signals.fd = -1,
		.begin = { .at = TICK_NEVER, .fn = begin_now },
		.kubelet = { .events = &p->events,
			     .dir = config->dir,
			     .started = started,
			     .removed = removed,
			     .ctx = p,
			     .event.fd = -1 },
	};
	r = events_init(&p->events);
	if (r == 0)
		r = watch_signals(p);
	if (r < 0)
		return err_set(err, r, "epoll: %s", strerror(-r));
	p->folder = util_text("%s/" GRANT_FILES, config->dir);
	if (!p->folder)
		return err_set(err, -ENOMEM, "out of memory");
	p->grants.folder = p->folder;
	/* half: answers take their time */
	p->grants.interval_ns = config->pods_interval_ns / 2;
	return open_resources(p, err);
}

static void plugin_fini(struct k8s_plugin *p)
{
	for (size_t i = 0; p->health && i < p->config.node->gpus.n; i++)
		health_end(&p->health[i]);
	for (size_t i = 0; i < p->n_resources; i++)
		resource_fini(&p->resources[i]);
	grants_fini(&p->grants);
	kubelet_end(&p->kubelet);
	events_close(&p->events, &p->signals);
	events_fini(&p->events);
	free(p->health);
	free(p->folder);
	free(p->resources);
}

/* Run until SIGINT or SIGTERM (0), or -errno with a text. */
static int plugin_run(struct k8s_plugin *p, struct err *err)
{
	int r = kubelet_begin(&p->kubelet, err);

	p->begin.at = tick_wall() + BEGIN_NS;
	events_add_timer(&p->events, &p->begin);
	if (r == 0)
		r = watch_health(p, err);
	/* a kubelet that was there before the plugin is not new */
	if (r == 0)
		r = grants_load(&p->grants, find_device, p, err);
	if (r < 0)
		return r;
	p->pods = (struct pods){ .events = &p->events,
				 .path = p->config.pods,
				 .interval_ns = p->config.pods_interval_ns,
				 .grants = &p->grants,
				 .resources = p->resources,
				 .n_resources = p->n_resources };
	pods_begin(&p->pods);
	while (r >= 0 && !p->stop)
		r = events_turn(&p->events, true);
	pods_end(&p->pods);
	return r < 0 ? err_set(err, r, "epoll_wait: %s", strerror(-r)) : 0;
}

/* What happened since the start. */
static json_t *plugin_json(const struct k8s_plugin *p)
{
	json_t *all = json_array();

	for (size_t i = 0; i < p->n_resources; i++)
		json_array_append_new(all, resource_json(&p->resources[i]));
	return all;
}

struct options {
	struct cli_common common;
	char *dir;
	uint64_t interval_ns;
	char *pods;
	uint64_t pods_interval_ns;
	bool dry_run;
};

#define FIELD(key, type, member) key, type, offsetof(struct options, member)

static const struct conf_field fields[] = {
	{ FIELD("kubelet_dir", CONF_STRING, dir), .arg = "DIR",
	  .help = "folder of the sockets of kubelet and device plugins "
		  "(default " KUBELET_DIR ")" },
	{ FIELD("health_interval", CONF_DURATION, interval_ns),
	  .min = 10 * NS_PER_MS, .max = 600e9, .arg = "TIME",
	  .help = "interval of checks for lost servers, and time limit of "
		  "their reply (default 2s)" },
	{ FIELD("pods_socket", CONF_STRING, pods), .arg = "PATH",
	  .help = "where the kubelet lists the devices of pods "
		  "(default " PODS_SOCKET ")" },
	{ FIELD("pods_interval", CONF_DURATION, pods_interval_ns),
	  .min = 10 * NS_PER_MS, .max = 3600e9, .arg = "TIME",
	  .help = "interval of queries for pods that have ended (default "
		  "10s)" },
	{ FIELD("dry_run", CONF_BOOL, dry_run), .cli_only = true,
	  .help = "list the resources and devices, and exit" },
	CLI_COMMON_FIELDS(struct options, common),
	{ 0 },
};

static const struct cli_program program = {
	.name = "gpemu-k8s-plugin",
	.args = "NODE",
	.n_args = 1,
	.summary = "Hand out the emulated GPUs of a node to containers of "
		   "Kubernetes.",
	.notes = "NODE is the file of the node's GPUs, see the manual. SIGTERM "
		 "ends it.",
	.fields = fields,
};

static void list(const struct k8s_plugin *p)
{
	char size[UNITS_TEXT];

	for (size_t i = 0; i < p->n_resources; i++) {
		const struct k8s_devices *d = &p->resources[i].devices;

		for (size_t k = 0; k < d->n; k++) {
			const struct k8s_device *v = &d->items[k];

			printf("%-24s %-24s %-20s %10s  numa ", d->resource,
			       v->id, v->kind->gpu,
			       units_human_size(
				       (double)node_slice_bytes(v->kind),
				       size));
			if (v->numa < 0)
				printf("-\n");
			else
				printf("%" PRId64 "\n", v->numa);
		}
	}
}

static int write_record(const struct options *o, const struct k8s_plugin *p,
			struct err *err)
{
	json_auto_t *j = json_pack("{s:o, s:o, s:o}", "gpemu", json_version(),
				   "config", conf_json(fields, o), "resources",
				   plugin_json(p));

	return j ? json_write(j, o->common.json, err)
		 : err_set(err, -ENOMEM, "out of memory");
}

static int serve(const struct options *o, const struct node *node,
		 struct err *err)
{
	struct plugin_config config = { .node = node,
					.dir = o->dir,
					.interval_ns = o->interval_ns,
					.pods = o->pods,
					.pods_interval_ns = o->pods_interval_ns,
					.ready = notify_ready };
	struct k8s_plugin p;
	int r = plugin_init(&p, &config, err);

	if (r == 0 && o->dry_run)
		list(&p);
	else if (r == 0)
		r = plugin_run(&p, err);
	if (r == 0 && o->common.json)
		r = write_record(o, &p, err);
	plugin_fini(&p);
	return r;
}

int main(int argc, char **argv)
{
	struct options o = { .dir = strdup(KUBELET_DIR),
			     .interval_ns = 2 * NS_PER_S,
			     .pods = strdup(PODS_SOCKET),
			     .pods_interval_ns = 10 * NS_PER_S };
	struct node node = { 0 };
	struct err err = { 0 };
	char *file;
	int r;

	cli_parse(&program, argc, argv, &o, &file);
	r = node_load(file, &node, &err);
	if (r == 0)
		r = serve(&o, &node, &err);
	node_free(&node);
	conf_free(fields, &o);
	return r < 0 ? cli_fail(r, &err) : EXIT_STATUS_DONE;
}
