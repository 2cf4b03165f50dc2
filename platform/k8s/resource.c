/* SPDX-License-Identifier: MIT */
#include "platform/k8s/resource.h"

#include <errno.h>
#include <string.h>
#include <sys/un.h>

#include "common/log.h"
#include "common/units.h"
#include "common/util.h"
#include "platform/k8s/kubelet.h"
#include "platform/k8s/methods.h"

/* Between attempts to register: at first, and at most. arbitrary: a kubelet
 * that has made its socket listens within the first, and a person waits for the
 * last */
#define FIRST_PAUSE_NS (20 * NS_PER_MS)
#define LAST_PAUSE_NS (10 * NS_PER_S)
/* For an answer to Register. Source: a kubelet gives up the connection to a
 * plugin after 10 s, which it waits for before it answers */
#define REGISTER_NS (15 * NS_PER_S)
/* For the ListAndWatch of a kubelet that has answered. arbitrary: it calls at
 * once */
#define WATCH_NS (5 * NS_PER_S)

static void check_server(struct event_timer *t);

int resource_init(struct resource *r, struct events *events,
		  const struct node *node, const char *name, const char *dir,
		  struct grants *grants, struct err *err)
{
	char *slash;

	*r = (struct resource){
		.events = events,
		.dir = dir,
		.grants = grants,
		.timer = { .at = TICK_NEVER, .fn = check_server },
		.pause_ns = FIRST_PAUSE_NS,
	};
	events_add_timer(events, &r->timer);
	if (k8s_devices_init(&r->devices, node, name) < 0)
		return err_set(err, -ENOMEM, "out of memory");
	r->endpoint = util_text("gpemu-%s.sock", name);
	slash = r->endpoint ? strchr(r->endpoint, '/') : NULL;
	if (slash)
		*slash = '_';
	if (!r->endpoint || asprintf(&r->path, "%s/%s", dir, r->endpoint) < 0)
		r->path = NULL;
	r->kubelet = util_text("%s/%s", dir, KUBELET_SOCKET);
	if (!r->path || !r->kubelet)
		return err_set(err, -ENOMEM, "out of memory");
	if (strlen(r->path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return err_set(err, -ENAMETOOLONG,
			       "%s: path too long for a socket; use a shorter "
			       "name of the resource",
			       r->path);
	return 0;
}

void resource_fini(struct resource *r)
{
	events_remove_timer(r->events, &r->timer);
	grpc_client_free(r->registering);
	methods_forget(r);
	grpc_server_free(r->server);
	k8s_devices_fini(&r->devices);
	free(r->endpoint);
	free(r->path);
	free(r->kubelet);
}

/* Log a trouble once, and try again, later each time. */
static void fail_resource(struct resource *r, const char *why)
{
	if (strcmp(r->trouble, why) != 0)
		log_warn("%s: not registered: %s", r->devices.resource, why);
	snprintf(r->trouble, sizeof(r->trouble), "%s", why);
	r->timer.at = tick_wall() + r->pause_ns;
	r->pause_ns = MIN(2 * r->pause_ns, LAST_PAUSE_NS);
}

static int listen_again(struct resource *r, struct err *err)
{
	struct grpc_server_config config = { .events = r->events,
					     .methods = device_plugin_methods,
					     .gone = methods_gone,
					     .ctx = r };

	if (r->server && grpc_server_reachable(r->server))
		return 0;
	methods_forget(r);
	grpc_server_free(r->server);
	r->server = NULL;
	return grpc_server_new(&config, r->path, &r->server, err);
}

static void registered(void *ctx, enum grpc_status status, const char *text,
		       const void *answer, size_t n)
{
	struct resource *r = ctx;

	(void)answer;
	(void)n;
	r->registering = NULL;
	if (status != GRPC_OK) {
		fail_resource(r, text);
		return;
	}
	log_info("%s: registered, %zu devices", r->devices.resource,
		 r->devices.n);
	r->n_registered++;
	r->trouble[0] = '\0';
	r->pause_ns = FIRST_PAUSE_NS;
	r->timer.at = tick_wall() + WATCH_NS;
}

static int call_register(struct resource *r, struct err *err)
{
	char version[] = "v1beta1", name[NODE_RESOURCE];
	Kubelet__RegisterRequest m = KUBELET__REGISTER_REQUEST__INIT;
	Kubelet__Options options = methods_options();
	_cleanup_free_ void *bytes = NULL;
	struct grpc_request q = { .path = r->kubelet,
				  .method = "/v1beta1.Registration/Register",
				  .timeout_ns = REGISTER_NS,
				  .done = registered,
				  .ctx = r };

	snprintf(name, sizeof(name), "%s", r->devices.resource);
	m.version = version;
	m.endpoint = r->endpoint;
	m.resource_name = name;
	m.options = &options;
	bytes = methods_pack(&m.base, &q.n);
	if (!bytes)
		return err_set(err, -ENOMEM, "out of memory");
	q.message = bytes;
	grpc_client_free(r->registering);
	r->registering = NULL;
	return grpc_client_new(r->events, &q, &r->registering, err);
}

/* Not yet, or not any more. */
static void try_again(struct resource *r)
{
	struct err err = { 0 };

	if (listen_again(r, &err) < 0 || call_register(r, &err) < 0)
		fail_resource(r, err.text);
}

void resource_register(struct resource *r)
{
	r->timer.at = TICK_NEVER;
	r->pause_ns = FIRST_PAUSE_NS;
	try_again(r);
}

void resource_check(struct resource *r)
{
	if (!r->server || !grpc_server_reachable(r->server))
		event_timer_in(&r->timer, FIRST_PAUSE_NS);
}

static void check_server(struct event_timer *t)
{
	struct resource *r = container_of(t, struct resource, timer);
	bool reachable = r->server && grpc_server_reachable(r->server);

	if (!r->registering && !(reachable && r->n_watchers))
		try_again(r);
}

void resource_mark(struct resource *r, const struct node_kind *kind,
		   uint64_t healthy)
{
	if (k8s_devices_mark(&r->devices, kind, healthy))
		methods_send_lists(r);
}

json_t *resource_json(const struct resource *r)
{
	size_t healthy = 0;

	for (size_t i = 0; i < r->devices.n; i++)
		healthy += r->devices.items[i].healthy;
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "resource",
			 r->devices.resource, "devices",
			 (json_int_t)r->devices.n, "healthy",
			 (json_int_t)healthy, "registrations",
			 (json_int_t)r->n_registered, "lists",
			 (json_int_t)r->n_lists, "allocations",
			 (json_int_t)r->n_allocated);
}
