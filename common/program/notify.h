/* SPDX-License-Identifier: MIT */
/* What a service manager is told: the protocol of sd_notify(3). */
#ifndef GPEMU_COMMON_PROGRAM_NOTIFY_H
#define GPEMU_COMMON_PROGRAM_NOTIFY_H

/*
 * Send "NAME=VALUE\nNAME=VALUE" as one datagram to $NOTIFY_SOCKET. 0, also when
 * nobody wants to know; -EINVAL: no socket's name in it; -errno.
 */
int notify(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
