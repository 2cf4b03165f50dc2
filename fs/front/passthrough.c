/* SPDX-License-Identifier: MIT */
#include "fs/front/passthrough.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/log.h"
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
	struct object *object; /* passthrough mode: holds a reference */
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

/* The file's object, with a reference, if it is cached and has a backing file;
 * else NULL. */
static struct object *find_hit(struct passthrough *p, uint32_t node,
			       bool may_wait)
{
	struct object *o;
	int id;

	/* the kernel's own reads would bypass the faults */
	if (!__atomic_load_n(&p->on, __ATOMIC_ACQUIRE) ||
	    server_watches(p->server, node))
		return NULL;
	o = server_peek_whole(p->server, node);
	if (!o)
		return NULL;
	id = __atomic_load_n(&o->backing_id, __ATOMIC_ACQUIRE);
	if (!id && may_wait)
		id = make_backing(p, o, node);
	if (id > 0)
		return o;
	object_put(o);
	return NULL;
}

/* Under the lock: the first open of a node decides its mode. Takes over *fresh
 * and *hit if it uses them. */
static int decide(struct passthrough *p, struct open_node **fresh,
		  struct object **hit, int *ret_backing_id)
{
	uint32_t node = (*fresh)->node;
	int mode = OPEN_PLAIN;
	struct open_node *o;

	HASH_FIND(hh, p->open, &node, sizeof(node), o);
	if (!o) {
		if (!HASH_TRY_ADD(p->open, node, *fresh))
			return -ENOMEM;
		o = TAKE_PTR(*fresh);
		if (*hit && server_count_hit(p->server, node)) {
			o->object = TAKE_PTR(*hit);
			mode = OPEN_PASSTHROUGH;
		}
	} else if (o->object) {
		mode = server_count_hit(p->server, node) ? OPEN_PASSTHROUGH
							 : OPEN_MISS;
	}
	o->n_opens++;
	if (o->object)
		*ret_backing_id = __atomic_load_n(&o->object->backing_id,
						  __ATOMIC_ACQUIRE);
	return mode;
}

int passthrough_open(struct passthrough *p, uint32_t node, bool may_wait,
		     int *ret_backing_id)
{
	struct open_node *fresh = calloc(1, sizeof(*fresh));
	struct object *hit;
	int mode;

	if (!fresh)
		return -ENOMEM;
	fresh->node = node;
	hit = find_hit(p, node, may_wait);
	pthread_mutex_lock(&p->lock);
	mode = decide(p, &fresh, &hit, ret_backing_id);
	pthread_mutex_unlock(&p->lock);
	object_put(hit);
	free(fresh);
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
	} else {
		o = NULL;
	}
	pthread_mutex_unlock(&p->lock);
	object_put(object);
	free(o);
}
