/* SPDX-License-Identifier: MIT */
#include "fs/front/passthrough.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <utlist.h>

#include "common/log.h"
#include "common/thread.h"
#include "common/tick.h"
#include "common/util.h"
#include "fs/server/hash.h"

/* Of linux/fuse.h since 6.9; Debian 12's headers are older. */
struct backing_map {
	int32_t fd;
	uint32_t flags;
	uint64_t padding;
};
#define BACKING_OPEN _IOW(229, 1, struct backing_map)
#define BACKING_CLOSE _IOW(229, 2, uint32_t)

struct open_node {
	uint32_t node;
	uint32_t n_opens;
	struct object *object;	/* passthrough mode: holds a reference */
	struct open_node *next; /* spare */
	UT_hash_handle hh;
};

static void close_backing(int id, void *ctx)
{
	struct passthrough *p = ctx;
	uint32_t arg = (uint32_t)id;

	/* fails after the end of the connection, which closed the file */
	if (ioctl(p->device_fd, BACKING_CLOSE, &arg) < 0)
		return;
}

void passthrough_init(struct passthrough *p, struct server *server, bool wanted)
{
	*p = (struct passthrough){ .server = server,
				   .device_fd = -1,
				   .wanted = wanted };
	tick_mutex_init(&p->lock);
}

void passthrough_enable(struct passthrough *p, int device_fd)
{
	/* a duplicate: the session closes its own at unmount */
	p->device_fd = fcntl(device_fd, F_DUPFD_CLOEXEC, 0);
	if (p->device_fd < 0)
		return;
	server_on_backing_close(p->server, close_backing, p);
	if (server_set_hit_path(p->server, NULL))
		__atomic_store_n(&p->on, true, __ATOMIC_RELEASE);
}

void passthrough_disable(struct passthrough *p)
{
	__atomic_store_n(&p->on, false, __ATOMIC_RELAXED);
	server_on_backing_close(p->server, NULL, NULL);
	if (p->device_fd >= 0)
		close(p->device_fd);
	p->device_fd = -1;
}

void passthrough_fini(struct passthrough *p)
{
	struct open_node *o, *next;

	passthrough_disable(p);
	HASH_ITER (hh, p->open, o, next) {
		HASH_DEL(p->open, o);
		object_put(o->object);
		free(o);
	}
	LL_FOREACH_SAFE(p->spare, o, next)
	free(o);
	pthread_mutex_destroy(&p->lock);
}

/* Why the kernel refuses backing files; static. */
static const char *reason(int error)
{
	switch (error) {
	case EPERM: return "backing files need CAP_SYS_ADMIN";
	case ELOOP:
		return "the file systems of the source are stacked too deep";
	case EOPNOTSUPP: return "the source has no backing files";
	default: return strerrordesc_np(error);
	}
}

static void turn_off(struct passthrough *p, int error)
{
	if (!__atomic_exchange_n(&p->on, false, __ATOMIC_RELAXED))
		return;
	server_set_hit_path(p->server, reason(error));
	log_line(p->wanted ? LOG_LEVEL_WARN : LOG_LEVEL_DEBUG,
		 "no passthrough: %s", reason(error));
}

/* Make the backing file, at the first hit, without the lock; <= 0: none. */
static int make_backing(struct passthrough *p, struct object *o, uint32_t node)
{
	struct backing_map map = { 0 };
	_cleanup_close_ int fd = -1;
	int id, before = 0;

	fd = server_open_source(p->server, node);
	if (fd == -EOPNOTSUPP)
		turn_off(p, EOPNOTSUPP);
	if (fd < 0)
		return 0;
	map.fd = fd;
	id = ioctl(p->device_fd, BACKING_OPEN, &map);
	if (id <= 0) {
		if (errno != ENOMEM)
			turn_off(p, errno);
		return 0;
	}
	if (__atomic_compare_exchange_n(&o->backing_id, &before, id, false,
					__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return id;
	/* another open made one first */
	close_backing(id, p);
	return before;
}

/* --- opens ------------------------------------------------------------- */

/* Not open; NULL: no memory. Under the lock. */
static struct open_node *node_new(struct passthrough *p, uint32_t node)
{
	struct open_node *o = p->spare;

	if (o)
		LL_DELETE(p->spare, o);
	else
		o = malloc(sizeof(*o));
	if (!o)
		return NULL;
	*o = (struct open_node){ .node = node };
	if (HASH_TRY_ADD(p->open, node, o))
		return o;
	LL_PREPEND(p->spare, o);
	return NULL;
}

/* An open of a file that is open, in the mode of the first one. */
static int open_more(struct passthrough *p, struct open_node *o,
		     int *ret_backing_id)
{
	o->n_opens++;
	if (!o->object)
		return OPEN_PLAIN;
	*ret_backing_id =
		__atomic_load_n(&o->object->backing_id, __ATOMIC_ACQUIRE);
	return server_count_hit(p->server, o->node) ? OPEN_PASSTHROUGH
						    : OPEN_MISS;
}

enum { NO_BACKING = OPEN_MISS + 1 };

/*
 * Under the lock: the first open of a file decides its mode. NO_BACKING,
 * only if `may_make`: not open; *hit is cached and has no backing file.
 * *hit, with a reference, may be left in other modes too.
 */
static int decide(struct passthrough *p, uint32_t node, bool may_pass,
		  bool may_make, struct object **hit, int *ret_backing_id)
{
	struct open_node *o;

	HASH_FIND(hh, p->open, &node, sizeof(node), o);
	if (o)
		return open_more(p, o, ret_backing_id);
	if (may_pass)
		*hit = server_hit_whole(p->server, node, ret_backing_id);
	if (*hit && *ret_backing_id <= 0 && may_make)
		return NO_BACKING;
	o = node_new(p, node);
	if (!o)
		return -ENOMEM;
	o->n_opens = 1;
	if (!*hit || *ret_backing_id <= 0)
		return OPEN_PLAIN;
	o->object = TAKE_PTR(*hit);
	return OPEN_PASSTHROUGH;
}

static int decide_locked(struct passthrough *p, uint32_t node, bool may_pass,
			 bool may_make, struct object **hit,
			 int *ret_backing_id)
{
	LOCK_SCOPE(&p->lock);

	return decide(p, node, may_pass, may_make, hit, ret_backing_id);
}

int passthrough_open(struct passthrough *p, uint32_t node, bool may_wait,
		     int *ret_backing_id)
{
	/* the kernel's own reads would bypass the faults */
	bool may_pass = __atomic_load_n(&p->on, __ATOMIC_ACQUIRE) &&
			!server_watches(p->server, node);
	struct object *hit = NULL;
	int mode = decide_locked(p, node, may_pass, may_wait, &hit,
				 ret_backing_id);

	if (mode == NO_BACKING) {
		may_pass = make_backing(p, hit, node) > 0;
		object_put(TAKE_PTR(hit));
		mode = decide_locked(p, node, may_pass, false, &hit,
				     ret_backing_id);
	}
	object_put(hit);
	return mode;
}

void passthrough_close(struct passthrough *p, uint32_t node)
{
	struct object *object = NULL;
	struct open_node *o;

	pthread_mutex_lock(&p->lock);
	HASH_FIND(hh, p->open, &node, sizeof(node), o);
	if (--o->n_opens == 0) {
		HASH_DEL(p->open, o);
		object = o->object;
		LL_PREPEND(p->spare, o);
	}
	pthread_mutex_unlock(&p->lock);
	object_put(object);
}
