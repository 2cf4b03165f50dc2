/* SPDX-License-Identifier: MIT */
#include "s3/proto/host.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

/* Without the port. */
static size_t length(const char *host)
{
	size_t n = strcspn(host, *host == '[' ? "]" : ":");

	return n + (host[n] == ']');
}

static bool is_address(const char *host)
{
	char text[INET6_ADDRSTRLEN], bytes[sizeof(struct in6_addr)];
	size_t n = length(host);
	int family = AF_INET;

	if (*host == '[' && host[n - 1] == ']') {
		family = AF_INET6;
		host++;
		n -= 2;
	}
	if (n >= sizeof(text))
		return false;
	memcpy(text, host, n);
	text[n] = 0;
	return inet_pton(family, text, bytes) == 1;
}

bool host_is(const char *host, const char *name)
{
	size_t n = length(name), n_host = length(host);

	/* "name." is the same, without the domains of a resolver */
	return !strncasecmp(host, name, n) &&
	       (n_host == n || (n_host == n + 1 && host[n] == '.'));
}

bool host_is_local(const char *host)
{
	static const char local[] = "localhost";
	size_t n = length(host), n_local = strlen(local);

	if (is_address(host))
		return true;
	n -= n && host[n - 1] == '.';
	if (n > n_local && host[n - n_local - 1] == '.')
		host += n - n_local;
	return host_is(host, local);
}
