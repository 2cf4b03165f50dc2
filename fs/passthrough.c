/* SPDX-License-Identifier: MIT */
#include "fs/passthrough.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <uthash.h>

#include "common/log.h"
#include "common/util.h"

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
	struct object *object; /* of passthrough mode, with its reference */
	UT_hash_handle hh;
};

static void close_backing(int id, void *ctx)
{
	struct passthrough *p = ctx;
	uint32_t arg = (uint32_t)id;

	/* the connection may be gone, and took the backing file with it */
	if (ioctl(p->device_fd, BACKING_CLOSE, &arg) < 0)
		return;
}

void passthrough_init(struct passthrough *p, struct server *server)
{
	*p = (struct passthrough){ .server = server, .device_fd = -1 };
	pthread_mutex_init(&p->lock, NULL);
}

void passthrough_enable(struct passthrough *p, int device_fd)
{
	/* of our own: the session closes its when it unmounts */
	p->device_fd = fcntl(device_fd, F_DUPFD_CLOEXEC, 0);
	if (p->device_fd < 0)
		return;
	server_on_backing_close(p->server, close_backing, p);
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

/* The object's backing file, made at its first hit; <= 0: none. */
static int backing_of(struct passthrough *p, struct object *o, uint32_t node)
{
	struct backing_map map = { 0 };
	_cleanup_close_ int fd = -1;
	int id;

	if (o->backing_id)
		return o->backing_id;
	fd = server_open_source(p->server, node);
	if (fd < 0)
		return 0;
	map.fd = fd;
	id = ioctl(p->device_fd, BACKING_OPEN, &map);
	if (id <= 0) {
		log_debug("no passthrough: %s", strerror(errno));
		__atomic_store_n(&p->on, false, __ATOMIC_RELAXED);
		return 0;
	}
	return o->backing_id = id;
}

/* Under the lock: the first open of a node decides its mode. */
static void decide(struct passthrough *p, struct open_node *o)
{
	struct object *hit;

	/* the kernel's own reads would pass the faults by */
	if (!__atomic_load_n(&p->on, __ATOMIC_ACQUIRE) ||
	    server_read_may_fault(p->server, o->node))
		return;
	hit = server_peek_whole(p->server, o->node);
	if (hit && backing_of(p, hit, o->node) > 0 &&
	    server_count_hit(p->server, o->node))
		o->object = TAKE_PTR(hit);
	object_put(hit);
}

int passthrough_open(struct passthrough *p, uint32_t node, int *ret_backing_id)
{
	struct open_node *o;
	int mode = OPEN_PLAIN;

	pthread_mutex_lock(&p->lock);
	HASH_FIND(hh, p->open, &node, sizeof(node), o);
	if (!o) {
		o = calloc(1, sizeof(*o));
		if (!o) {
			pthread_mutex_unlock(&p->lock);
			return -ENOMEM;
		}
		o->node = node;
		decide(p, o);
		HASH_ADD(hh, p->open, node, sizeof(node), o);
		mode = o->object ? OPEN_PASSTHROUGH : OPEN_PLAIN;
	} else if (o->object) {
		mode = server_count_hit(p->server, node) ? OPEN_PASSTHROUGH
							 : OPEN_MISS;
	}
	o->n_opens++;
	if (o->object)
		*ret_backing_id = o->object->backing_id;
	pthread_mutex_unlock(&p->lock);
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
		free(o);
	}
	pthread_mutex_unlock(&p->lock);
	object_put(object);
}
