/* SPDX-License-Identifier: MIT */
#include "common/program/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/log.h"
#include "common/util.h"

int notify_v(const char *fmt, va_list ap)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	const char *name = secure_getenv("NOTIFY_SOCKET");
	_cleanup_close_ int fd = -1;
	char text[512];
	size_t n;

	if (!name)
		return 0;
	n = strlen(name);
	if ((*name != '/' && *name != '@') || n < 2 || n >= sizeof(to.sun_path))
		return -EINVAL;
	memcpy(to.sun_path, name, n);
	if (*name == '@')
		to.sun_path[0] = 0; /* abstract: unix(7) */
	vsnprintf(text, sizeof(text), fmt, ap);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 ||
	    sendto(fd, text, strlen(text), MSG_NOSIGNAL, (void *)&to,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) < 0)
		return -errno;
	return 0;
}

int notify(const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = notify_v(fmt, ap);
	va_end(ap);
	return r;
}

void notify_ready(void)
{
	int r = notify("READY=1\nMAINPID=%d", (int)getpid());

	if (r < 0)
		log_warn("NOTIFY_SOCKET: %s", strerror(-r));
}
