/* SPDX-License-Identifier: MIT */
#include "fs/transport/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <linux/fuse.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/util.h"
#include "fs/transport/transport_entry.h"
#include "fs/transport/transport_protocol.h"
#include "fs/transport/transport_uring.h"

/* The backing file may itself be on one stacked file system (overlayfs of a
 * container); the kernel allows no more. */
enum { MAX_STACK_DEPTH = 2 };

static void note_init(struct transport *t, const char *buf, size_t n)
{
	struct in_header h;
	struct init_in in = { 0 };

	if (n < sizeof(h))
		return;
	memcpy(&h, buf, sizeof(h));
	if (h.opcode != OP_INIT)
		return;
	memcpy(&in, buf + sizeof(h), MIN(n - sizeof(h), sizeof(in)));
	t->offered = in.flags;
	t->offered2 = in.flags & INIT_EXT ? in.flags2 : 0;
	__atomic_store_n(&t->init_unique, h.unique, __ATOMIC_RELEASE);
}

/* INTERRUPT names a request by the kernel's unique; if the request came from a
 * queue, libfuse knows it by another unique. */
static void rename_interrupted(struct transport *t, char *buf, size_t n)
{
	struct in_header h;
	uint64_t unique;

	if (!t->uring || n < sizeof(h) + sizeof(unique))
		return;
	memcpy(&h, buf, sizeof(h));
	if (h.opcode != OP_INTERRUPT)
		return;
	memcpy(&unique, buf + sizeof(h), sizeof(unique));
	unique = uring_unique(t->uring, unique);
	memcpy(buf + sizeof(h), &unique, sizeof(unique));
}

static ssize_t transport_read(int fd, void *buf, size_t n, void *userdata)
{
	struct transport *t = userdata;
	ssize_t got = read(fd, buf, n);

	if (got <= 0)
		return got;
	if (!__atomic_load_n(&t->settled, __ATOMIC_ACQUIRE))
		note_init(t, buf, (size_t)got);
	else
		rename_interrupted(t, buf, (size_t)got);
	return got;
}

/* Is this the successful reply to INIT? Then the requested features follow the
 * header. */
static bool is_init(const struct transport *t, const struct iovec *iov, int n)
{
	uint64_t unique = __atomic_load_n(&t->init_unique, __ATOMIC_ACQUIRE);
	struct out_header h;

	if (!unique || iov[0].iov_len < sizeof(h))
		return false;
	memcpy(&h, iov[0].iov_base, sizeof(h));
	return h.unique == unique && !h.error && n >= 2 &&
	       iov[1].iov_len >= sizeof(struct init_out);
}

/* Make the queues before the INIT reply: after it the kernel waits for them. */
static void make_queues(struct transport *t, int fd, const struct init_out *out)
{
	size_t read_bytes = out->max_pages * (size_t)sysconf(_SC_PAGESIZE);
	int r;

	if (!t->want_uring || !(t->offered2 & INIT2_OVER_IO_URING))
		return;
	r = uring_new(t->session, fd, MAX(out->max_write, read_bytes),
		      &t->uring);
	t->uring_error = r;
}

/* Add our feature bits to the INIT reply. */
static void patch_init(struct transport *t, int fd, struct iovec *iov)
{
	struct init_out out;

	memcpy(&out, iov[1].iov_base, sizeof(out));
	out.flags |= t->offered & INIT_PARALLEL_DIROPS;
	if (t->offered & INIT_EXT) {
		out.flags |= INIT_EXT;
		out.flags2 |= t->offered2 & INIT2_DIRECT_IO_ALLOW_MMAP;
		t->passthrough = t->want_passthrough &&
				 (t->offered2 & INIT2_PASSTHROUGH);
		make_queues(t, fd, &out);
	}
	if (t->passthrough) {
		out.flags2 |= INIT2_PASSTHROUGH;
		out.max_stack_depth = MAX_STACK_DEPTH;
	}
	if (t->uring)
		out.flags2 |= INIT2_OVER_IO_URING;
	memcpy(iov[1].iov_base, &out, sizeof(out));
}

static void start_queues(struct transport *t)
{
	if (!t->uring)
		return;
	t->uring_error = uring_start(t->uring);
	if (t->uring_error < 0)
		uring_stop(t->uring);
	t->over_uring = t->uring_error == 0;
}

static ssize_t reply_init(struct transport *t, int fd, struct iovec *iov, int n)
{
	ssize_t sent;

	patch_init(t, fd, iov);
	__atomic_store_n(&t->settled, true, __ATOMIC_RELEASE);
	sent = writev(fd, iov, n);
	if (sent <= 0)
		return sent;
	start_queues(t);
	if (t->accepted)
		t->accepted(t);
	return sent;
}

static ssize_t transport_writev(int fd, struct iovec *iov, int n,
				void *userdata)
{
	struct transport *t = userdata;
	struct out_header h;

	if (!__atomic_load_n(&t->settled, __ATOMIC_ACQUIRE))
		return is_init(t, iov, n) ? reply_init(t, fd, iov, n)
					  : writev(fd, iov, n);
	if (!t->uring || iov[0].iov_len < sizeof(h))
		return writev(fd, iov, n);
	memcpy(&h, iov[0].iov_base, sizeof(h));
	return unique_is_ours(h.unique)
		       ? uring_reply(t->uring, h.unique, iov, n)
		       : writev(fd, iov, n);
}

void transport_stop(struct transport *t)
{
	if (t->uring)
		uring_stop(t->uring);
}

void transport_fini(struct transport *t)
{
	uring_free(t->uring);
	t->uring = NULL;
}

#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)
/* A descriptor of a thread of libfuse: 3.17 leaves to a custom io what it did
 * itself before. */
static int transport_clone(int session)
{
	_cleanup_close_ int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	uint32_t of = (uint32_t)session;

	return fd < 0 || ioctl(fd, FUSE_DEV_IOC_CLONE, &of) < 0 ? -1
								: TAKE_FD(fd);
}
#endif

int transport_attach(struct transport *t, struct fuse_session *session)
{
	static const struct fuse_custom_io io = {
		.read = transport_read,
		.writev = transport_writev,
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)
		.clone_fd = transport_clone,
#endif
	};
	/* the session needs a descriptor now; mounting sets the real one */
	_cleanup_close_ int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	t->session = session;
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)
	return fuse_session_custom_io_317(session, &io, sizeof(io), fd);
#else
	return fuse_session_custom_io(session, &io, fd);
#endif
}
