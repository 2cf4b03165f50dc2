/* SPDX-License-Identifier: MIT */
#include "net/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

#include "common/util.h"

enum { MOST_HOST = 255, MOST_PORT = 65535, BACKLOG = 64 };

struct parts {
	char host[MOST_HOST + 1], port[6];
};

static int split(const char *text, struct parts *ret, struct err *err)
{
	const char *colon = strrchr(text, ':');
	const char *host = text;
	size_t n = colon ? (size_t)(colon - text) : 0;
	unsigned long port;
	char *end;

	if (n >= 2 && text[0] == '[' && text[n - 1] == ']') {
		host++;
		n -= 2;
	} else if (memchr(text, ':', n)) {
		n = 0; /* a bare IPv6 address: where does its port begin? */
	}
	port = colon && colon[1] >= '1' && colon[1] <= '9'
		       ? strtoul(colon + 1, &end, 10)
		       : 0;
	if (!n || n > MOST_HOST || !port || *end || port > MOST_PORT)
		return err_set(err, -EINVAL,
			       "'%s' is not HOST:PORT, such as node1:7000 or "
			       "[::1]:7000",
			       text);
	memcpy(ret->host, host, n);
	ret->host[n] = 0;
	snprintf(ret->port, sizeof(ret->port), "%u", (unsigned)port);
	return 0;
}

int addr_check(const char *text, struct err *err)
{
	struct parts p;

	return split(text, &p, err);
}

int addr_find(const char *text, struct addr *ret, struct err *err)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC,
					.ai_socktype = SOCK_STREAM,
					.ai_flags = AI_NUMERICSERV };
	struct addrinfo *found;
	struct parts p;
	int r = split(text, &p, err);

	*ret = (struct addr){ 0 };
	if (r < 0)
		return r;
	r = getaddrinfo(p.host, p.port, &hints, &found);
	if (r != 0)
		return err_set(err, r == EAI_MEMORY ? -ENOMEM : -EAGAIN,
			       "%s: %s", text, gai_strerror(r));
	memcpy(&ret->at, found->ai_addr, found->ai_addrlen);
	ret->n = found->ai_addrlen;
	freeaddrinfo(found);
	ret->text = strdup(text);
	return ret->text ? 0 : err_set(err, -ENOMEM, "out of memory");
}

void addr_fini(struct addr *a)
{
	free(a->text);
	*a = (struct addr){ 0 };
}

bool addr_is_loopback(const struct addr *a)
{
	const struct sockaddr_in *v4 = (const void *)&a->at;
	const struct sockaddr_in6 *v6 = (const void *)&a->at;

	if (a->at.ss_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return a->at.ss_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static int new_socket(const struct addr *a)
{
	int fd = socket(a->at.ss_family,
			SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

int addr_listen(const struct addr *a, struct err *err)
{
	_cleanup_close_ int fd = new_socket(a);
	const int on = 1;
	int r = fd < 0 ? fd : 0;

	/* connections of a listener that has ended do not keep its port */
	if (r == 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (r == 0 && (bind(fd, (const void *)&a->at, a->n) < 0 ||
		       listen(fd, BACKLOG) < 0))
		r = -errno;
	if (r < 0)
		return err_set(err, r, "%s: %s", a->text, strerror(-r));
	return TAKE_FD(fd);
}

int addr_dial(const struct addr *a)
{
	_cleanup_close_ int fd = new_socket(a);

	if (fd < 0)
		return fd;
	if (connect(fd, (const void *)&a->at, a->n) < 0 && errno != EINPROGRESS)
		return -errno;
	return TAKE_FD(fd);
}

void addr_tune(int fd)
{
	const int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}
