/* SPDX-License-Identifier: MIT */
#include "loader/staging/deaths.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include "common/thread.h"
#include "common/util.h"

struct deaths {
	void (*died)(void *ctx, uint32_t number);
	void *ctx;
	pthread_t thread;
	bool started;
	struct pollfd *fd; /* [0]: to stop */
	uint32_t *number;
	nfds_t n;
};

int deaths_new(uint32_t most, void (*died)(void *ctx, uint32_t number),
	       void *ctx, struct deaths **ret)
{
	struct deaths *d = calloc(1, sizeof(*d));
	int stop = eventfd(0, EFD_CLOEXEC), r = stop < 0 ? -errno : 0;

	if (d) {
		d->fd = calloc(most + 1, sizeof(*d->fd));
		d->number = calloc(most + 1, sizeof(*d->number));
	}
	if (r == 0 && (!d || !d->fd || !d->number))
		r = -ENOMEM;
	if (d && d->fd && stop >= 0)
		d->fd[d->n++] = (struct pollfd){ .fd = stop, .events = POLLIN };
	else if (stop >= 0)
		close(stop);
	if (r < 0) {
		deaths_free(d);
		return r;
	}
	d->died = died;
	d->ctx = ctx;
	*ret = d;
	return 0;
}

int deaths_watch(struct deaths *d, pid_t pid, uint32_t number)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0)
		return -errno;
	d->number[d->n] = number;
	d->fd[d->n++] = (struct pollfd){ .fd = fd, .events = POLLIN };
	return 0;
}

static void *watch(void *arg)
{
	struct deaths *d = arg;

	while (!d->fd[0].revents) {
		if (poll(d->fd, d->n, -1) < 0)
			continue; /* EINTR */
		for (nfds_t i = 1; i < d->n; i++) {
			if (!d->fd[i].revents)
				continue;
			d->died(d->ctx, d->number[i]);
			close(d->fd[i].fd);
			/* poll ignores it */
			d->fd[i] = (struct pollfd){ .fd = -1 };
		}
	}
	return NULL;
}

int deaths_start(struct deaths *d)
{
	int r = thread_start(&d->thread, NULL, watch, d);

	d->started = r == 0;
	return r;
}

void deaths_free(struct deaths *d)
{
	if (!d)
		return;
	if (d->started) {
		eventfd_write(d->fd[0].fd, 1);
		pthread_join(d->thread, NULL);
	}
	for (nfds_t i = 0; i < d->n; i++)
		if (d->fd[i].fd >= 0)
			close(d->fd[i].fd);
	free(d->fd);
	free(d->number);
	free(d);
}
