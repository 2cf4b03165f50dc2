/* SPDX-License-Identifier: MIT */
/*
 * The header Host, "data.localhost:9000". A page in a browser can have a name
 * of its author's that leads here (DNS rebinding), but no address, and no name
 * below localhost (RFC 6761, section 6.3). Pure.
 */
#ifndef GPEMU_S3_PROTO_HOST_H
#define GPEMU_S3_PROTO_HOST_H

#include <stdbool.h>

/* Is it an address of IPv4 or IPv6, localhost, or a name below that? */
bool host_is_local(const char *host);
/* Is it `name`, which may have a port, too? Ports and case do not count. */
bool host_is(const char *host, const char *name);

#endif
