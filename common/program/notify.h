/* SPDX-License-Identifier: MIT */
/* Notifications to a service manager: the protocol of sd_notify(3). */
#ifndef GPEMU_COMMON_PROGRAM_NOTIFY_H
#define GPEMU_COMMON_PROGRAM_NOTIFY_H

#include <stdarg.h>

/*
 * Send "NAME=VALUE\nNAME=VALUE" as one datagram to $NOTIFY_SOCKET. 0, also if
 * it is not set; -EINVAL: not the name of a socket; -errno.
 */
int notify(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int notify_v(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));

/* That the program serves now; failure is logged. */
void notify_ready(void);

#endif
