/* SPDX-License-Identifier: MIT */
#include "platform/k8s/kubelet.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/inotify.h>

#include "common/log.h"
#include "common/units.h"
#include "common/util.h"

/* Between looks for a folder that is not there. arbitrary: short for a person
 */
#define LOOK_NS NS_PER_S

static bool has_socket(const struct kubelet *k)
{
	char path[PATH_MAX];
	struct stat st;

	return snprintf(path, sizeof(path), "%s/%s", k->dir, KUBELET_SOCKET) <
		       (int)sizeof(path) &&
	       lstat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* Watch the folder, and look what is there: it may have come before. */
static void look(struct kubelet *k)
{
	k->wd = inotify_add_watch(k->event.fd, k->dir,
				  IN_CREATE | IN_MOVED_TO | IN_DELETE |
					  IN_MOVED_FROM | IN_MOVE_SELF |
					  IN_DELETE_SELF | IN_ONLYDIR);
	if (k->wd < 0)
		k->timer.at = tick_wall() + LOOK_NS;
	else if (has_socket(k))
		k->started(k->ctx);
}

static void look_again(struct event_timer *t)
{
	look(container_of(t, struct kubelet, timer));
}

static void handle(struct kubelet *k, const struct inotify_event *e)
{
	if (e->mask & IN_Q_OVERFLOW) {
		k->started(k->ctx);
	} else if (e->wd != k->wd) {
		return; /* of a watch that has ended */
	} else if (e->mask & (IN_MOVE_SELF | IN_DELETE_SELF | IN_IGNORED)) {
		inotify_rm_watch(k->event.fd, k->wd);
		k->wd = -1;
		look(k);
	} else if (e->len && !strcmp(e->name, KUBELET_SOCKET)) {
		if (e->mask & (IN_CREATE | IN_MOVED_TO))
			k->started(k->ctx);
	} else if (e->mask & (IN_DELETE | IN_MOVED_FROM)) {
		k->removed(k->ctx);
	}
}

static void ready(struct event *event, uint32_t what)
{
	struct kubelet *k = container_of(event, struct kubelet, event);
	char buf[4096]
		__attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n = read(event->fd, buf, sizeof(buf));
	const struct inotify_event *e;

	(void)what;
	for (char *p = buf; p < buf + n; p += sizeof(*e) + e->len) {
		e = (const struct inotify_event *)p;
		handle(k, e);
	}
}

int kubelet_begin(struct kubelet *k, struct err *err)
{
	int r = 0;

	k->event =
		(struct event){ .fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC),
				.fn = ready };
	k->timer = (struct event_timer){ .at = TICK_NEVER, .fn = look_again };
	events_add_timer(k->events, &k->timer);
	if (k->event.fd < 0)
		r = -errno;
	if (r == 0)
		r = events_add(k->events, &k->event, EPOLLIN);
	if (r < 0)
		return err_set(err, r, "inotify: %s", strerror(-r));
	look(k);
	if (k->wd < 0)
		log_warn("%s does not exist yet; does a kubelet run on this "
			 "node?",
			 k->dir);
	return 0;
}

void kubelet_end(struct kubelet *k)
{
	events_remove_timer(k->events, &k->timer);
	events_close(k->events, &k->event);
}
