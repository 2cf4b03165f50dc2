/* SPDX-License-Identifier: MIT */
/*
 * floor SOURCE MOUNTPOINT reply|passthrough dev|uring: a minimal FUSE server
 * for hits, without a library. Files are in memory (reply), or the kernel reads
 * them itself (passthrough). It answers the requests of open, fstat, read,
 * close and a listing; no device, no cache, no counts, no faults. It serves
 * until unmounted. Needs root.
 *
 * As gpemu-fs: names and attributes are kept for a day, direct I/O, no FLUSH;
 * four threads on /dev/fuse, or a queue for each processor over io_uring.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <liburing.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/util.h"
#include "fs/transport/transport_protocol.h"

enum {
	MAX_NODES = 200000,
	MAX_DEPTH = 64,
	DEV_THREADS = 4,
	ENTRIES = 64,	   /* a queue's */
	PAYLOAD = 1 << 20, /* of the largest read */
	DAY_S = 24 * 3600,
	OPEN_NO_FLUSH = 1 << 5,
	OPEN_PASSTHROUGH = 1 << 7,
};

struct backing_map {
	int32_t fd;
	uint32_t flags;
	uint64_t padding;
};
#define BACKING_OPEN _IOW(229, 1, struct backing_map)

struct node {
	char *name;
	struct stat st;
	void *data;
	int backing_id;
	uint32_t parent, child, next; /* 0: none */
};

static struct {
	struct node nodes[MAX_NODES];
	uint32_t n, at_level[MAX_DEPTH];
	uint32_t *hash; /* of names, open addressing */
	int dev;
	int passthrough, uring;
} all;

enum { HASH_SLOTS = 1 << 20 };

struct answer {
	int error; /* positive errno */
	struct iovec iov[2];
	union {
		struct fuse_entry_out entry;
		struct fuse_attr_out attr;
		struct fuse_open_out open;
		struct init_out init;
		struct fuse_statfs_out statfs;
	} out;
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* --- the tree ------------------------------------------------------------ */

static uint32_t slot_of(uint32_t parent, const char *name)
{
	uint32_t h = 2166136261u ^ parent;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 16777619u;
	return h % HASH_SLOTS;
}

static uint32_t find(uint32_t parent, const char *name)
{
	uint32_t at = slot_of(parent, name);

	for (; all.hash[at]; at = (at + 1) % HASH_SLOTS)
		if (all.nodes[all.hash[at]].parent == parent &&
		    strcmp(all.nodes[all.hash[at]].name, name) == 0)
			return all.hash[at];
	return 0;
}

static void load(struct node *n, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct backing_map map = { .fd = fd };

	if (fd < 0)
		die(path);
	if (all.passthrough) {
		n->backing_id = ioctl(all.dev, BACKING_OPEN, &map);
		if (n->backing_id <= 0)
			die("a backing file");
	} else if (n->st.st_size) {
		n->data = malloc((size_t)n->st.st_size);
		if (!n->data ||
		    read(fd, n->data, (size_t)n->st.st_size) != n->st.st_size)
			die(path);
	}
	close(fd);
}

static int visit(const char *path, const struct stat *st, int type,
		 struct FTW *ftw)
{
	uint32_t i = ++all.n, parent, at;
	struct node *n = &all.nodes[i];

	if (i == MAX_NODES - 1 || ftw->level >= MAX_DEPTH)
		return 1;
	if (type != FTW_F && type != FTW_D)
		return 0;
	parent = ftw->level ? all.at_level[ftw->level - 1] : 0;
	*n = (struct node){ .name = strdup(path + ftw->base),
			    .st = *st,
			    .parent = parent,
			    .next = all.nodes[parent].child };
	all.nodes[parent].child = i;
	if (type == FTW_D)
		all.at_level[ftw->level] = i;
	at = slot_of(parent, n->name);
	while (all.hash[at])
		at = (at + 1) % HASH_SLOTS;
	all.hash[at] = i;
	return 0;
}

/* Once the kernel has accepted passthrough. */
static void load_all(const char *source)
{
	char path[4096];

	for (uint32_t i = 1; i <= all.n; i++) {
		const struct node *n = &all.nodes[i];
		size_t at = sizeof(path) - 1;

		if (!S_ISREG(n->st.st_mode))
			continue;
		path[at] = 0;
		for (uint32_t p = i; p > 1; p = all.nodes[p].parent) {
			size_t bytes = strlen(all.nodes[p].name);

			memcpy(path + (at -= bytes), all.nodes[p].name, bytes);
			path[--at] = '/';
		}
		at -= strlen(source);
		memcpy(path + at, source, strlen(source));
		load(&all.nodes[i], path + at);
	}
}

/* --- requests ------------------------------------------------------------ */

static void fill_attr(struct fuse_attr *a, uint32_t i)
{
	const struct stat *st = &all.nodes[i].st;

	*a = (struct fuse_attr){ .ino = i,
				 .size = (uint64_t)st->st_size,
				 .blocks = (uint64_t)st->st_blocks,
				 .mode = st->st_mode,
				 .nlink = 1,
				 .blksize = 4096 };
}

static void lookup(uint32_t parent, const char *name, struct answer *a)
{
	uint32_t i = find(parent, name);

	if (!i) {
		a->error = ENOENT;
		return;
	}
	a->out.entry = (struct fuse_entry_out){ .nodeid = i,
						.entry_valid = DAY_S,
						.attr_valid = DAY_S };
	fill_attr(&a->out.entry.attr, i);
	a->iov[0].iov_len = sizeof(a->out.entry);
}

static void open_file(uint32_t i, struct answer *a)
{
	a->out.open = (struct fuse_open_out){ .open_flags = OPEN_NO_FLUSH };
	if (all.nodes[i].backing_id) {
		a->out.open.open_flags |= OPEN_PASSTHROUGH;
#if FUSE_KERNEL_MINOR_VERSION < 40
		a->out.open.padding = (uint32_t)all.nodes[i].backing_id;
#else
		a->out.open.backing_id = all.nodes[i].backing_id;
#endif
	} else if (S_ISREG(all.nodes[i].st.st_mode)) {
		a->out.open.open_flags |= FOPEN_DIRECT_IO;
	}
	a->iov[0].iov_len = sizeof(a->out.open);
}

static void read_file(uint32_t i, const struct fuse_read_in *in,
		      struct answer *a)
{
	const struct node *n = &all.nodes[i];
	uint64_t from = MIN(in->offset, (uint64_t)n->st.st_size);

	a->iov[0].iov_base = (char *)n->data + from;
	a->iov[0].iov_len = MIN(in->size, (uint64_t)n->st.st_size - from);
}

/* The offset of an entry is its successor's node, plus one. */
static void read_dir(uint32_t i, const struct fuse_read_in *in, char *buf,
		     struct answer *a)
{
	uint32_t c = in->offset ? (uint32_t)in->offset - 1 : all.nodes[i].child;
	size_t at = 0;

	for (; c; c = all.nodes[c].next) {
		const struct node *n = &all.nodes[c];
		struct fuse_dirent d = {
			.ino = c,
			.off = n->next + 1,
			.namelen = (uint32_t)strlen(n->name),
			.type = (n->st.st_mode & S_IFMT) >> 12,
		};
		size_t bytes = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + d.namelen);

		if (at + bytes > in->size)
			break;
		memcpy(buf + at, &d, FUSE_NAME_OFFSET);
		memcpy(buf + at + FUSE_NAME_OFFSET, n->name, d.namelen);
		at += bytes;
	}
	a->iov[0] = (struct iovec){ buf, at };
}

static void init(const struct init_in *in, struct answer *a)
{
	a->out.init = (struct init_out){
		.major = 7,
		.minor = MIN(in->minor, 42),
		.max_readahead = in->max_readahead,
		.flags = in->flags & (FUSE_ASYNC_READ | FUSE_MAX_PAGES |
				      INIT_PARALLEL_DIROPS | INIT_EXT),
		.max_write = PAYLOAD,
		.max_pages = PAYLOAD / 4096,
		.max_background = 64,
		.congestion_threshold = 48,
		.time_gran = 1,
	};
	if (all.passthrough) {
		a->out.init.flags2 |= in->flags2 & INIT2_PASSTHROUGH;
		a->out.init.max_stack_depth = 1;
	}
	if (all.uring)
		a->out.init.flags2 |= in->flags2 & INIT2_OVER_IO_URING;
	a->iov[0].iov_len = sizeof(a->out.init);
}

/* false: nobody waits for an answer. `buf` for a listing. */
static bool handle(const struct in_header *h, const void *arg, char *buf,
		   struct answer *a)
{
	uint32_t i = (uint32_t)h->nodeid;

	a->error = 0;
	a->iov[0] = (struct iovec){ &a->out, 0 };
	switch (h->opcode) {
	case FUSE_INIT: init(arg, a); break;
	case FUSE_LOOKUP: lookup(i, arg, a); break;
	case FUSE_GETATTR:
		a->out.attr = (struct fuse_attr_out){ .attr_valid = DAY_S };
		fill_attr(&a->out.attr.attr, i);
		a->iov[0].iov_len = sizeof(a->out.attr);
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR: open_file(i, a); break;
	case FUSE_READ: read_file(i, arg, a); break;
	case FUSE_READDIR: read_dir(i, arg, buf, a); break;
	case FUSE_STATFS:
		memset(&a->out.statfs, 0, sizeof(a->out.statfs));
		a->iov[0].iov_len = sizeof(a->out.statfs);
		break;
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR: break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT: return false;
	default: a->error = ENOSYS;
	}
	return true;
}

/* --- /dev/fuse ----------------------------------------------------------- */

/* false: unmounted. */
static bool serve_one(int fd, char *buf, char *out)
{
	ssize_t got = read(fd, buf, PAYLOAD + 4096);
	struct in_header *h = (struct in_header *)buf;
	struct out_header oh = { 0 };
	struct answer a;
	struct iovec iov[2] = { { &oh, sizeof(oh) } };

	if (got < 0)
		return errno != ENODEV && errno != EBADF;
	if (!handle(h, h + 1, out, &a))
		return true;
	if (a.error)
		a.iov[0].iov_len = 0;
	iov[1] = a.iov[0];
	oh = (struct out_header){ .len = (uint32_t)(sizeof(oh) +
						    iov[1].iov_len),
				  .error = -a.error,
				  .unique = h->unique };
	if (writev(fd, iov, 2) < 0 && errno != ENOENT)
		return errno != ENODEV;
	return true;
}

static void *serve_dev(void *arg)
{
	char *buf = malloc(PAYLOAD + 4096), *out = malloc(PAYLOAD);
	uint32_t dev = (uint32_t)all.dev;
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	(void)arg;
	if (!buf || !out || fd < 0 || ioctl(fd, FUSE_DEV_IOC_CLONE, &dev) < 0)
		die("/dev/fuse");
	while (serve_one(fd, buf, out))
		;
	return NULL;
}

/* --- io_uring ------------------------------------------------------------ */

struct entry {
	struct uring_header header;
	char *payload;
	struct iovec iov[2];
};

static void push(struct io_uring *ring, struct entry *e, unsigned cpu,
		 uint32_t op)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	struct uring_command c = { .queue = (uint16_t)cpu,
				   .commit_id = e->header.entry.commit_id };

	if (!sqe)
		die("io_uring");
	memset(sqe, 0, 2 * sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = all.dev;
	sqe->cmd_op = op;
	if (op == URING_CMD_REGISTER) {
		sqe->addr = (uintptr_t)e->iov;
		sqe->len = 2;
	}
	memcpy(sqe->cmd, &c, sizeof(c));
	io_uring_sqe_set_data(sqe, e);
}

static void answer_entry(struct entry *e)
{
	struct in_header h;
	struct out_header oh = { 0 };
	struct answer a;
	const void *arg = e->header.op_in;

	memcpy(&h, e->header.in_out, sizeof(h));
	if (h.opcode == FUSE_LOOKUP) /* names are payload */
		arg = e->payload;
	handle(&h, arg, e->payload, &a);
	if (a.error)
		a.iov[0].iov_len = 0;
	if (a.iov[0].iov_len && a.iov[0].iov_base != e->payload)
		memcpy(e->payload, a.iov[0].iov_base, a.iov[0].iov_len);
	oh.error = -a.error;
	oh.unique = e->header.entry.commit_id;
	oh.len = (uint32_t)(sizeof(oh) + a.iov[0].iov_len);
	memcpy(e->header.in_out, &oh, sizeof(oh));
	e->header.entry.payload_bytes = (uint32_t)a.iov[0].iov_len;
}

static void make_entries(struct io_uring *ring, unsigned cpu)
{
	struct entry *entries = calloc(ENTRIES, sizeof(*entries));

	for (int i = 0; entries && i < ENTRIES; i++) {
		struct entry *e = &entries[i];

		e->payload = mmap(NULL, PAYLOAD, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		e->iov[0] = (struct iovec){ &e->header, sizeof(e->header) };
		e->iov[1] = (struct iovec){ e->payload, PAYLOAD };
		push(ring, e, cpu, URING_CMD_REGISTER);
	}
}

static void *serve_queue(void *arg)
{
	unsigned cpu = (unsigned)(uintptr_t)arg;
	struct io_uring_params p = {
		.flags = IORING_SETUP_SQE128 | IORING_SETUP_SINGLE_ISSUER |
			 IORING_SETUP_DEFER_TASKRUN,
	};
	struct io_uring_cqe *cqe;
	struct io_uring ring;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	if (io_uring_queue_init_params(2 * ENTRIES, &ring, &p) < 0)
		die("io_uring");
	make_entries(&ring, cpu);
	while (io_uring_submit_and_wait(&ring, 1) >= 0) {
		while (io_uring_peek_cqe(&ring, &cqe) == 0) {
			struct entry *e = io_uring_cqe_get_data(cqe);
			int res = cqe->res;

			io_uring_cqe_seen(&ring, cqe);
			if (res < 0)
				return NULL;
			answer_entry(e);
			push(&ring, e, cpu, URING_CMD_COMMIT_AND_FETCH);
		}
	}
	return NULL;
}

/* ------------------------------------------------------------------------- */

static void start(void *(*fn)(void *), unsigned i)
{
	pthread_t t;

	if (pthread_create(&t, NULL, fn, (void *)(uintptr_t)i))
		die("a thread");
	pthread_detach(t);
}

int main(int argc, char **argv)
{
	char options[128];
	char *buf = malloc(PAYLOAD + 4096), *out = malloc(PAYLOAD);

	if (argc != 5 || !buf || !out) {
		fprintf(stderr,
			"usage: %s SOURCE MOUNTPOINT "
			"reply|passthrough dev|uring\n",
			argv[0]);
		return 64;
	}
	all.passthrough = strcmp(argv[3], "passthrough") == 0;
	all.uring = strcmp(argv[4], "uring") == 0;
	all.hash = calloc(HASH_SLOTS, sizeof(*all.hash));
	if (!all.hash || nftw(argv[1], visit, 32, FTW_PHYS))
		die(argv[1]);
	all.dev = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
		 all.dev);
	if (all.dev < 0 || mount("floor", argv[2], "fuse.floor",
				 MS_NOSUID | MS_NODEV, options))
		die(argv[2]);
	if (!serve_one(all.dev, buf, out)) /* INIT */
		die("INIT");
	load_all(argv[1]);
	for (unsigned i = 0; all.uring && i < (unsigned)get_nprocs_conf(); i++)
		start(serve_queue, i);
	for (unsigned i = 1; i < DEV_THREADS; i++)
		start(serve_dev, i);
	while (serve_one(all.dev, buf, out))
		;
	return 0;
}
