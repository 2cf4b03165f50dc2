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
 *			container gets (answer.h) and is granted (grants.h)
 *			until it ends (pods.h); the health of the GPUs
 *			(health.h); the kubelet's comings and goings (kubelet.h)
 *	emu/gpu		the protocol of gpemu-gpud
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/program/cli.h"
#include "common/program/notify.h"
#include "common/units.h"
#include "common/util.h"
#include "common/version.h"
#include "platform/k8s/plugin.h"

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
	  .help = "look for lost servers so often, and wait so long for their "
		  "answer (default 2s)" },
	{ FIELD("pods_socket", CONF_STRING, pods), .arg = "PATH",
	  .help = "where the kubelet lists the devices of pods "
		  "(default " PODS_SOCKET ")" },
	{ FIELD("pods_interval", CONF_DURATION, pods_interval_ns),
	  .min = 10 * NS_PER_MS, .max = 3600e9, .arg = "TIME",
	  .help = "how often to ask it which pods have ended (default 10s)" },
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

static void report_ready(void)
{
	int r = notify("READY=1\nMAINPID=%d", (int)getpid());

	if (r < 0)
		log_warn("NOTIFY_SOCKET: %s", strerror(-r));
}

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
	json_auto_t *j =
		json_pack("{s:{s:s, s:s}, s:o, s:o}", "gpemu", "version",
			  GPEMU_RELEASE, "git", GPEMU_VERSION, "config",
			  conf_json(fields, o), "resources", plugin_json(p));

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
					.ready = report_ready };
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
