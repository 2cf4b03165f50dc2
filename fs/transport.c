/* SPDX-License-Identifier: MIT */
#include "fs/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/util.h"

/* The protocol, as far as INIT goes. */
enum { OP_INIT = 26 };

#define INIT_EXT (1u << 30) /* flags2 counts */
#define PARALLEL_DIROPS (1u << 18)
#define DIRECT_IO_ALLOW_MMAP (1u << (36 - 32)) /* in flags2 */
#define PASSTHROUGH (1u << (37 - 32))	       /* in flags2 */
/* The backing file may itself be on one stacked file system (overlayfs of a
 * container); the kernel allows no more. */
enum { MAX_STACK_DEPTH = 2 };

struct in_header {
	uint32_t len, opcode;
	uint64_t unique, nodeid;
	uint32_t uid, gid, pid, padding;
};

struct init_in {
	uint32_t major, minor, max_readahead, flags, flags2;
};

struct out_header {
	uint32_t len;
	int32_t error;
	uint64_t unique;
};

struct init_out {
	uint32_t major, minor, max_readahead, flags;
	uint16_t max_background, congestion_threshold;
	uint32_t max_write, time_gran;
	uint16_t max_pages, map_alignment;
	uint32_t flags2, max_stack_depth;
};

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

static ssize_t transport_read(int fd, void *buf, size_t n, void *userdata)
{
	struct transport *t = userdata;
	ssize_t got = read(fd, buf, n);

	if (got > 0 && !__atomic_load_n(&t->settled, __ATOMIC_RELAXED))
		note_init(t, buf, (size_t)got);
	return got;
}

/* Is this the reply to INIT? Then it asks for more now. It is a header and,
 * unless it failed, what we want. */
static bool patch_init(struct transport *t, struct iovec *iov, int n)
{
	uint64_t unique = __atomic_load_n(&t->init_unique, __ATOMIC_ACQUIRE);
	struct out_header h;
	struct init_out out;

	if (!unique || iov[0].iov_len < sizeof(h))
		return false;
	memcpy(&h, iov[0].iov_base, sizeof(h));
	if (h.unique != unique || h.error || n < 2 ||
	    iov[1].iov_len < sizeof(out))
		return false;
	memcpy(&out, iov[1].iov_base, sizeof(out));
	out.flags |= t->offered & PARALLEL_DIROPS;
	if (t->offered & INIT_EXT) {
		out.flags |= INIT_EXT;
		out.flags2 |= t->offered2 & DIRECT_IO_ALLOW_MMAP;
		t->passthrough = t->want_passthrough &&
				 (t->offered2 & PASSTHROUGH);
	}
	if (t->passthrough) {
		out.flags2 |= PASSTHROUGH;
		out.max_stack_depth = MAX_STACK_DEPTH;
	}
	memcpy(iov[1].iov_base, &out, sizeof(out));
	return true;
}

static ssize_t transport_writev(int fd, struct iovec *iov, int n,
				void *userdata)
{
	struct transport *t = userdata;
	ssize_t sent;

	if (__atomic_load_n(&t->settled, __ATOMIC_RELAXED) ||
	    !patch_init(t, iov, n))
		return writev(fd, iov, n);
	__atomic_store_n(&t->settled, true, __ATOMIC_RELAXED);
	sent = writev(fd, iov, n);
	if (sent > 0 && t->accepted)
		t->accepted(t);
	return sent;
}

int transport_attach(struct fuse_session *session)
{
	static const struct fuse_custom_io io = {
		.read = transport_read,
		.writev = transport_writev,
	};
	/* the session wants a descriptor now; mounting gives it the real one */
	_cleanup_close_ int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return fuse_session_custom_io(session, &io, fd);
}
