/* SPDX-License-Identifier: MIT */
#include "fs/mount/mount.h"

#include "common/program/notify.h"

int mount_notify(struct mount *m, const char *fmt, ...)
{
	va_list ap;
	int r = 0;

	va_start(ap, fmt);
	pthread_mutex_lock(&m->notify_lock);
	if (!m->stopping)
		r = notify_v(fmt, ap);
	pthread_mutex_unlock(&m->notify_lock);
	va_end(ap);
	return r;
}
