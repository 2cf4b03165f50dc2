/* SPDX-License-Identifier: MIT */
#include "runner/run/run_network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "common/units.h"
#include "common/util.h"
#include "common/word.h"

/* arbitrary: ip(8) takes milliseconds */
#define IP_TIMEOUT_NS (20 * NS_PER_S)
/* arbitrary: no other program listens in the namespaces */
enum { PORT = 7640, KEY = 32 };

int network_parse(const char *s, enum network_mode *ret, struct err *err)
{
	static const char *const names[] = {
		[NETWORK_AUTO] = "auto",
		[NETWORK_NAMESPACES] = "namespaces",
		[NETWORK_LOOPBACK] = "loopback",
	};

	return WORD_INTO(names, "--network", s, ret, err);
}

/* --- namespaces ----------------------------------------------------------- */

static int here(struct err *err)
{
	int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? err_set(err, -errno, "/proc/self/ns/net: %s",
				strerror(errno))
		      : fd;
}

/* Move to a new namespace. Its descriptor. */
static int make(struct err *err)
{
	if (unshare(CLONE_NEWNET) < 0)
		return err_set(err, -errno, "network namespaces: %s",
			       strerror(errno));
	return here(err);
}

static int move_to(int space, struct err *err)
{
	return setns(space, CLONE_NEWNET) < 0
		       ? err_set(err, -errno, "setns: %s", strerror(errno))
		       : 0;
}

/* Run lines of ip(8) in this namespace. */
static int ip(const char *lines, const char *folder, struct stop *stop,
	      struct err *err)
{
	_cleanup_free_ char *file = util_join(folder, "ip");
	_cleanup_fclose_ FILE *f = NULL;
	struct child child;
	int status = 0, r;

	if (!file)
		return err_set(err, -ENOMEM, "out of memory");
	f = fopen(file, "we");
	if (!f || fputs(lines, f) == EOF || fflush(f))
		return err_set(err, -errno, "%s: %s", file, strerror(errno));
	r = child_start(&child,
			(char *[]){ (char *)"ip", (char *)"-batch", file,
				    NULL },
			NULL, STDERR_FILENO, STDERR_FILENO, err);
	if (r == 0)
		r = child_wait(&child, stop, IP_TIMEOUT_NS, &status);
	child_end(&child, 0);
	unlink(file);
	if (r == 0 && status)
		r = -EIO;
	return r < 0 ? err_set(err, r, "ip -batch: %s", strerror(-r)) : 0;
}

/* The namespace of a node, and its link to the one of the bridge. */
static int make_node(struct network *net, uint32_t i, const char *folder,
		     struct stop *stop, struct err *err)
{
	char address[NETWORK_ADDRESS], text[512];

	net->node[i] = make(err);
	if (net->node[i] < 0)
		return net->node[i];
	network_address(net, i, address);
	*strchr(address, ':') = 0;
	snprintf(text, sizeof(text),
		 "link set lo up\n"
		 "link add eth0 type veth peer name n%u netns /proc/%d/fd/%d\n"
		 "addr add %s/24 dev eth0\n"
		 "link set eth0 up\n",
		 i, (int)getpid(), net->hub, address);
	return ip(text, folder, stop, err);
}

static int bridge(uint32_t n, const char *folder, struct stop *stop,
		  struct err *err)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return err_set(err, -ENOMEM, "out of memory");
	fputs("link add hub type bridge\nlink set hub up\n", f);
	for (uint32_t i = 0; i < n; i++)
		fprintf(f, "link set n%u master hub up\n", i);
	return fclose(f) ? err_set(err, -ENOMEM, "out of memory")
			 : ip(text, folder, stop, err);
}

static int make_spaces(struct network *net, const char *folder,
		       struct stop *stop, struct err *err)
{
	struct err why;
	int r;

	net->own = here(err);
	if (net->own < 0)
		return net->own;
	net->spaces = true;
	net->hub = make(err);
	r = MIN(net->hub, 0);
	for (uint32_t i = 0; r == 0 && i < net->n; i++)
		r = make_node(net, i, folder, stop, err);
	if (r == 0)
		r = move_to(net->hub, err);
	if (r == 0)
		r = bridge(net->n, folder, stop, err);
	/* the children of a cell would run in the wrong one */
	if (move_to(net->own, &why) < 0) {
		log_error("%s", why.text);
		abort();
	}
	return r;
}

/* --- loopback ------------------------------------------------------------- */

/* A port of a loopback address that is free. The socket keeps it: other
 * programs do not get it, and gpemu-fs, which sets SO_REUSEADDR too, may listen
 * there. */
static int reserve(uint32_t address, struct err *err)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(address) };
	_cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int on = 1;

	if (fd < 0 || bind(fd, (const void *)&a, sizeof(a)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
		return err_set(err, -errno, "a port of %s for a node: %s",
			       inet_ntoa(a.sin_addr), strerror(errno));
	return TAKE_FD(fd);
}

static int reserve_all(struct network *net, struct err *err)
{
	uint8_t part[2];

	if (getrandom(part, sizeof(part), 0) != sizeof(part))
		return err_set(err, -errno, "getrandom: %s", strerror(errno));
	for (uint32_t i = 0; i < net->n; i++) {
		/* not in 127.0.0.0/16, which other programs use */
		net->node[i] = reserve(127u << 24 | (1u + part[0] % 254) << 16 |
					       (uint32_t)part[1] << 8 | (i + 1),
				       err);
		if (net->node[i] < 0)
			return net->node[i];
	}
	return 0;
}

/* --- life ----------------------------------------------------------------- */

static void drop(int *fd)
{
	util_closep(fd);
	*fd = -1;
}

static void drop_all(struct network *net)
{
	for (uint32_t i = 0; i < net->n; i++)
		drop(&net->node[i]);
	drop(&net->hub);
	drop(&net->own);
	net->spaces = false;
}

static int make_key(struct network *net, const char *folder, struct err *err)
{
	_cleanup_close_ int fd = -1;
	uint8_t bytes[KEY];

	if (!folder)
		return 0;
	net->key = util_join(folder, "peer-key");
	if (!net->key)
		return err_set(err, -ENOMEM, "out of memory");
	fd = open(net->key, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || getrandom(bytes, KEY, 0) != KEY ||
	    write(fd, bytes, KEY) != KEY)
		return err_set(err, -errno, "%s: %s", net->key,
			       strerror(errno));
	return 0;
}

int network_open(struct network *net, uint32_t n, enum network_mode mode,
		 const char *folder, struct stop *stop, struct err *err)
{
	struct err why = { 0 };
	int r;

	*net = (struct network){ .own = -1, .hub = -1 };
	if (n == 0)
		return 0;
	if (n > NETWORK_NODES)
		return err_set(err, -E2BIG,
			       "%u mounts with peers: auto; at most %d", n,
			       NETWORK_NODES);
	net->node = calloc(n, sizeof(*net->node));
	if (!net->node)
		return err_set(err, -ENOMEM, "out of memory");
	net->n = n;
	for (uint32_t i = 0; i < n; i++)
		net->node[i] = -1;
	r = make_key(net, folder, err);
	if (r < 0 || mode == NETWORK_LOOPBACK)
		return r < 0 ? r : reserve_all(net, err);
	r = make_spaces(net, folder, stop, &why);
	if (r == 0)
		return 0;
	drop_all(net);
	if (mode == NETWORK_NAMESPACES || r == -EINTR)
		return err_set(err, r, "%s", why.text);
	if (r != -EPERM)
		log_warn("the nodes use loopback addresses: %s", why.text);
	return reserve_all(net, err);
}

void network_close(struct network *net)
{
	if (net->n)
		drop_all(net);
	free(net->node);
	if (net->key)
		unlink(net->key);
	free(net->key);
	*net = (struct network){ .own = -1, .hub = -1 };
}

/* --- use ------------------------------------------------------------------ */

const char *network_name(const struct network *net)
{
	if (!net->n)
		return NULL;
	return net->spaces ? "namespaces" : "loopback";
}

void network_address(const struct network *net, uint32_t node,
		     char ret[NETWORK_ADDRESS])
{
	struct sockaddr_in a = { 0 };
	socklen_t n = sizeof(a);

	if (net->spaces) {
		snprintf(ret, NETWORK_ADDRESS, "10.77.0.%u:%d", node + 1, PORT);
		return;
	}
	getsockname(net->node[node], (struct sockaddr *)&a, &n);
	snprintf(ret, NETWORK_ADDRESS, "%s:%u", inet_ntoa(a.sin_addr),
		 ntohs(a.sin_port));
}

int network_enter(const struct network *net, uint32_t node, struct err *err)
{
	return net->spaces ? move_to(net->node[node], err) : 0;
}

int network_leave(const struct network *net, struct err *err)
{
	return net->spaces ? move_to(net->own, err) : 0;
}
