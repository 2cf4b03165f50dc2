/* SPDX-License-Identifier: MIT */
/*
 * What a client sends to the device plugin, behind HTTP/2's preface: frames,
 * headers, messages of gRPC, messages of Kubernetes. The first byte: how many
 * bytes come at once, and whether the preface is left out. The plugin serves
 * the next client.
 */
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/util.h"
#include "platform/k8s/grant_files.h"
#include "platform/k8s/resource.h"
#include "tests/fuzz/fuzz.h"

static const char yaml[] =
	"gpus: {v100: {count: 3, server: /v, replicas: 2, numa: [0, 0, 1],"
	" device: /dev/v, cdi: a/b, env: [A=b]},"
	" p100: {count: 1, server: /p, replicas: 2, resource: gpemu.io/v100}}";

static char dir[] = "/tmp/gpemu-fuzz-XXXXXX", folder[64];
static struct node node;
static struct events events;
static struct health health[2]; /* without servers */
static struct grants grants = { .health = health, .n_health = 2 };
static struct resource resource;

static void tidy(void)
{
	resource_fini(&resource);
	grants_fini(&grants);
	events_fini(&events);
	node_free(&node);
	rmdir(folder);
	rmdir(dir);
}

static void start(void)
{
	struct err err = { 0 };

	if (resource.events)
		return;
	PROMISED(mkdtemp(dir));
	snprintf(folder, sizeof(folder), "%s/" GRANT_FILES, dir);
	grants.folder = folder;
	PROMISED(events_init(&events) == 0);
	PROMISED(node_parse(yaml, strlen(yaml), "yaml", &node, &err) == 0);
	PROMISED(resource_init(&resource, &events, &node, "gpemu.io/v100", dir,
			       &grants, &err) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(health); i++)
		health[i] = (struct health){ .kind = node_kind(&node, i),
					     .event.fd = -1 };
	resource_register(&resource); /* there is no kubelet */
	PROMISED(resource.server);
	/* half of what there is */
	resource_mark(&resource, node_kind(&node, 0), 5);
	atexit(tidy);
}

static int dial(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", resource.path);
	PROMISED(fd >= 0);
	PROMISED(connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	return fd;
}

/* Until the plugin has nothing to do, or the client would have to read more. */
static void turn(int fd)
{
	char buf[16384];

	while (events_turn(&events, false) > 0)
		while (recv(fd, buf, sizeof(buf), MSG_DONTWAIT) > 0)
			;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
				      "\0\0\0\4\0\0\0\0";
	size_t piece;
	int fd;

	if (n == 0)
		return 0;
	start();
	fd = dial();
	piece = data[0] & 64 ? n : 1 + data[0] % 64 * 16;
	if (!(data[0] & 128)) /* the last byte is the string's own */
		send(fd, preface, sizeof(preface), MSG_NOSIGNAL);
	for (size_t at = 1; at < n; at += piece) {
		send(fd, data + at, MIN(piece, n - at), MSG_NOSIGNAL);
		turn(fd);
	}
	close(fd);
	turn(-1);
	PROMISED(resource.n_watchers == 0 && !resource.allocations);
	/* without servers nobody gets anything */
	PROMISED(!grants.first);
	PROMISED(grpc_server_reachable(resource.server));
	return 0;
}
