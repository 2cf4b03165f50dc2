/* SPDX-License-Identifier: MIT */
/*
 * The folder in which kubelet and its device plugins have their sockets. A
 * kubelet that starts empties it and makes its socket anew: plugins have to
 * listen and register again.
 */
#ifndef GPEMU_PLATFORM_K8S_KUBELET_H
#define GPEMU_PLATFORM_K8S_KUBELET_H

#include <stdbool.h>

#include "common/err.h"
#include "common/program/events.h"

#define KUBELET_DIR "/var/lib/kubelet/device-plugins"
#define KUBELET_SOCKET "kubelet.sock"

struct kubelet {
	struct events *events; /* set by the owner, as the next four */
	const char *dir;
	/* The kubelet's socket is new. */
	void (*started)(void *ctx);
	/* Another file has gone. */
	void (*removed)(void *ctx);
	void *ctx;

	struct event event;
	struct event_timer timer;
	int wd; /* -1: there is no folder */
};

/* Watch; `started` is called from here if there is a socket. A folder that is
 * not there is waited for. -errno with a text. */
int kubelet_begin(struct kubelet *k, struct err *err);
void kubelet_end(struct kubelet *k);

#endif
