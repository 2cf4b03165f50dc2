/* SPDX-License-Identifier: MIT */
#include "fs/transport/transport_uring.h"

#include <errno.h>
#include <fuse_lowlevel.h>
#include <liburing.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>
#include <utlist.h>

#include "common/log.h"
#include "common/thread.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "fs/transport/transport_entry.h"
#include "fs/transport/transport_protocol.h"

/*
 * --- a queue --------------------------------------------------------------
 *
 * One queue of FUSE over io_uring: the requests of one processor, and the
 * thread there that serves them (fs/transport/transport_uring.h).
 *
 * The kernel fills an entry, header and payload, for each request, and gets it
 * back with the answer. Only the queue's thread uses its ring. It passes each
 * available request to libfuse. One system call then submits all answers of
 * the batch and waits for the next batch:
 *
 * 	io_uring_enter        commit the answers, wait
 * 	for each completion   assemble the request, let libfuse handle it;
 * 	                      an immediate answer goes on `answered`
 * 	`handed`              answers of other threads, which have written
 * 	                      the payload and wake this thread
 *
 * The kernel writes into entries only in this thread, within io_uring_enter
 * (IORING_SETUP_DEFER_TASKRUN). So between the last completion of a batch and
 * the next wait, the payload of an entry that is not in use holds no data, and
 * its memory can be freed. Above a limit the least recently used go first; the
 * kernel reuses the entry that it got back last.
 *
 * An entry is in use until its request is answered, however long that takes.
 * A request without an entry waits, unseen, for an answer of its queue; adding
 * an entry does not help it. So a number of entries is always kept free: more
 * than the requests that arrive before the thread runs again.
 */

struct queue_config {
	struct fuse_session *session;
	int fd;		      /* of the session's device; borrowed */
	uint16_t number;      /* of the processor */
	size_t payload_bytes; /* the longest request and answer; whole pages */
	size_t keep_bytes;    /* payload memory kept for entries not in use */
	unsigned least_free;  /* entries */
};

/* The kernel keeps further completions, at the cost of memory. */
enum { CQ_ENTRIES = 4096 };

enum state { STARTING, HAS_RING, MAY_REGISTER, SERVING, ENDED };

struct queue {
	struct queue_config c;
	pthread_t thread;
	bool started;
	int wake_fd;
	bool stopping; /* atomic */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* under the lock */
	enum state state;
	int error;
	struct entry *handed; /* utlist, like the other lists */
	struct entries entries;
	/* the thread's own */
	struct io_uring ring;
	struct entry *answered;
	unsigned n_busy; /* entries that the kernel does not have */
	bool watched;	 /* the ring polls wake_fd */
	char *request;	 /* buffer of the request being assembled */
};

/* --- submissions --------------------------------------------------------- */

static struct io_uring_sqe *next_sqe(struct queue *q)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&q->ring);

	if (!sqe && io_uring_submit(&q->ring) >= 0)
		sqe = io_uring_get_sqe(&q->ring);
	return sqe;
}

static void prepare(const struct queue *q, struct io_uring_sqe *sqe,
		    struct entry *e, uint32_t op)
{
	struct uring_command command = { .queue = q->c.number,
					 .commit_id = e->commit_id };

	/* IORING_SETUP_SQE128: twice the size that liburing declares */
	memset(sqe, 0, 2 * sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->flags = IOSQE_FIXED_FILE; /* fixed file 0 */
	sqe->cmd_op = op;
	memcpy(sqe->cmd, &command, sizeof(command));
	io_uring_sqe_set_data(sqe, e);
}

/* Queue the answers for the kernel; the next call submits them. */
static void push_answers(struct queue *q)
{
	struct entry *e;

	while ((e = q->answered)) {
		struct io_uring_sqe *sqe = next_sqe(q);

		if (!sqe) /* after the next batch */
			return;
		DL_DELETE(q->answered, e);
		prepare(q, sqe, e, URING_CMD_COMMIT_AND_FETCH);
		q->n_busy--;
		entries_put(&q->entries, e);
	}
}

/* Poll wake_fd, which signals answers of other threads. */
static void watch_wake(struct queue *q)
{
	struct io_uring_sqe *sqe = q->watched ? NULL : next_sqe(q);

	if (!sqe)
		return;
	q->watched = true;
	memset(sqe, 0, 2 * sizeof(*sqe));
	io_uring_prep_poll_multishot(sqe, q->wake_fd, POLLIN);
	io_uring_sqe_set_data(sqe, NULL);
}

/* Register the last chunk: from now on the kernel may use its entries. */
static int register_last(struct queue *q)
{
	unsigned first = entries_count(&q->entries) - CHUNK_ENTRIES;
	int r;

	for (unsigned i = 0; i < CHUNK_ENTRIES; i++) {
		struct entry *e = entries_at(&q->entries, first + i);
		struct io_uring_sqe *sqe = next_sqe(q);

		if (!sqe)
			return -EBUSY;
		prepare(q, sqe, e, URING_CMD_REGISTER);
		sqe->addr = (uintptr_t)e->iov;
		sqe->len = ARRAY_SIZE(e->iov);
	}
	r = io_uring_submit(&q->ring);
	return r < 0 ? r : 0;
}

/* Add entries before this processor runs out: a request without an entry would
 * wait, unseen, for the next answer. One chunk a call; false: call again. */
static bool make_room(struct queue *q)
{
	unsigned n_free = entries_count(&q->entries) - q->n_busy;

	return n_free >= q->c.least_free || entries_add(&q->entries) < 0 ||
	       register_last(q) < 0;
}

/* --- answers ------------------------------------------------------------- */

static bool is_own_thread(const struct queue *q)
{
	return pthread_equal(q->thread, pthread_self());
}

static ssize_t fail_io(int error)
{
	errno = error;
	return -1;
}

/* Write the answer into the entry, which the caller owns until it hands it
 * over. */
static ssize_t write_answer(const struct queue *q, struct entry *e,
			    const struct iovec *iov, int n)
{
	struct out_header out = { 0 };
	size_t bytes = 0;

	memcpy(&out, iov[0].iov_base, MIN(sizeof(out), iov[0].iov_len));
	for (int i = 1; i < n && !out.error; i++) {
		if (iov[i].iov_len > q->c.payload_bytes - bytes) {
			bytes = 0;
			out.error = -EIO;
			break;
		}
		memcpy(e->payload + bytes, iov[i].iov_base, iov[i].iov_len);
		bytes += iov[i].iov_len;
	}
	out.unique = e->commit_id;
	out.len = (uint32_t)(sizeof(out) + bytes);
	memcpy(e->header->in_out, &out, sizeof(out));
	e->header->entry.payload_bytes = (uint32_t)bytes;
	e->touched = MAX(e->touched, bytes);
	return out.len;
}

static bool hand_over(struct queue *q, struct entry *e)
{
	const uint64_t one = 1;
	bool first, taken;

	pthread_mutex_lock(&q->lock);
	first = !q->handed;
	taken = q->state == SERVING;
	if (taken)
		DL_APPEND(q->handed, e);
	pthread_mutex_unlock(&q->lock);
	/* never blocks: the counter has 64 bits */
	if (taken && first && write(q->wake_fd, &one, sizeof(one)) < 0)
		log_error("eventfd: %s", strerror(errno));
	return taken;
}

/*
 * Answer the request that libfuse knows as `unique`: `iov` as for writev(2).
 * Any thread. Like writev(2): its bytes, or -1 with errno ENOENT: no such
 * request, already answered, or the queue has stopped.
 */
static ssize_t queue_reply(struct queue *q, uint64_t unique,
			   const struct iovec *iov, int n)
{
	struct entry *e = entries_take(&q->entries, unique);
	ssize_t bytes;

	if (!e)
		return fail_io(ENOENT);
	bytes = write_answer(q, e, iov, n);
	if (is_own_thread(q))
		DL_APPEND(q->answered, e);
	else if (!hand_over(q, e))
		return fail_io(ENOENT);
	return bytes;
}

/* libfuse's unique of the kernel's request; 0: it is not here. Any thread. */
static uint64_t queue_find(struct queue *q, uint64_t kernel_unique)
{
	return entries_find(&q->entries, kernel_unique);
}

static void take_handed(struct queue *q)
{
	LOCK_SCOPE(&q->lock);
	DL_CONCAT(q->answered, q->handed);
	q->handed = NULL;
}

/* --- requests ------------------------------------------------------------ */

/* The request in one piece, as the device would deliver it. 0: malformed. */
static size_t assemble(const struct queue *q, const struct entry *e,
		       uint64_t unique)
{
	const size_t payload = e->header->entry.payload_bytes;
	struct in_header in;
	char *at = q->request;
	size_t op;

	memcpy(&in, e->header->in_out, sizeof(in));
	if (payload > q->c.payload_bytes || in.len < sizeof(in) + payload)
		return 0;
	op = in.len - sizeof(in) - payload;
	if (op > sizeof(e->header->op_in))
		return 0;
	in.unique = unique;
	memcpy(at, &in, sizeof(in));
	memcpy(at + sizeof(in), e->header->op_in, op);
	memcpy(at + sizeof(in) + op, e->payload, payload);
	return in.len;
}

static void take_request(struct queue *q, struct entry *e)
{
	struct out_header bad = { .error = -EIO };
	struct iovec iov = { &bad, sizeof(bad) };
	struct fuse_buf buf = { .mem = q->request };
	uint64_t unique;

	q->n_busy++;
	e->commit_id = e->header->entry.commit_id;
	unique = entries_begin(&q->entries, e);
	e->touched = MAX(e->touched, MIN(e->header->entry.payload_bytes,
					 q->c.payload_bytes));
	buf.size = assemble(q, e, unique);
	if (buf.size)
		fuse_session_process_buf(q->c.session, &buf);
	else /* malformed */
		queue_reply(q, unique, &iov, 1);
}

/* false: the connection has ended. */
static bool take_completion(struct queue *q, struct entry *e, int res,
			    unsigned flags)
{
	if (!e) {
		q->watched = flags & IORING_CQE_F_MORE;
		return true;
	}
	if (res == 0) {
		take_request(q, e);
		return true;
	}
	/* the kernel dropped the entry: count it as in use */
	q->n_busy++;
	log_debug("queue %u: %s", q->c.number, strerror(-res));
	return res != -ENOTCONN && res != -ECONNABORTED && res != -ECANCELED;
}

static bool take_completions(struct queue *q)
{
	struct io_uring_cqe *cqe;
	bool connected = true;

	while (connected && io_uring_peek_cqe(&q->ring, &cqe) == 0) {
		struct entry *e = io_uring_cqe_get_data(cqe);
		unsigned flags = cqe->flags;
		int res = cqe->res;

		io_uring_cqe_seen(&q->ring, cqe);
		connected = take_completion(q, e, res, flags);
	}
	return connected;
}

/* --- the thread ---------------------------------------------------------- */

static void set_state(struct queue *q, enum state state, int error)
{
	LOCK_SCOPE(&q->lock);
	q->state = state;
	q->error = error;
	pthread_cond_broadcast(&q->changed);
}

/* Wait until the queue reaches `state`. */
static int await(struct queue *q, enum state state)
{
	LOCK_SCOPE(&q->lock);
	while (q->state < state)
		pthread_cond_wait(&q->changed, &q->lock);
	return q->error;
}

static int make_ring(struct queue *q)
{
	struct io_uring_params p = {
		.flags = IORING_SETUP_SQE128 | IORING_SETUP_CQSIZE |
			 IORING_SETUP_SUBMIT_ALL | IORING_SETUP_SINGLE_ISSUER |
			 IORING_SETUP_DEFER_TASKRUN,
		.cq_entries = CQ_ENTRIES,
	};
	int r = io_uring_queue_init_params(CHUNK_ENTRIES, &q->ring, &p);

	if (r < 0)
		return r;
	/* a child must not keep the device open; liburing 2.3 omits half of
	 * the large submission entries */
	r = io_uring_ring_dontfork(&q->ring);
	if (r == 0 &&
	    madvise(q->ring.sq.sqes,
		    2 * sizeof(struct io_uring_sqe) * q->ring.sq.ring_entries,
		    MADV_DONTFORK) < 0)
		r = -errno;
	if (r == 0)
		r = io_uring_register_files(&q->ring, &q->c.fd, 1);
	if (r < 0) {
		io_uring_queue_exit(&q->ring);
		return r;
	}
	/* optional: saves a descriptor lookup in each call */
	io_uring_register_ring_fd(&q->ring);
	return 0;
}

/* The error, if all entries failed; else 0. */
static int registered(struct queue *q)
{
	struct io_uring_cqe *cqe;
	unsigned head, n_failed = 0;
	int error = 0;

	io_uring_for_each_cqe(&q->ring, head, cqe)
	{
		if (io_uring_cqe_get_data(cqe) && cqe->res < 0) {
			error = cqe->res;
			n_failed++;
		}
	}
	return n_failed == CHUNK_ENTRIES ? error : 0;
}

/* Only after all completions: the kernel writes payloads only within the call,
 * see the header. false: more work remains. */
static bool give_back(struct queue *q)
{
	return !io_uring_cq_ready(&q->ring) && entries_give_back(&q->entries);
}

/* Submit the prepared entries, and wait for work. */
static int enter(struct queue *q, bool may_wait)
{
	int r;

	if (may_wait && !q->answered)
		return io_uring_submit_and_wait(&q->ring, 1);
	r = io_uring_submit(&q->ring);
	return r < 0 ? r : io_uring_get_events(&q->ring);
}

static bool is_passing(int error)
{
	return error == -EINTR || error == -EAGAIN || error == -EBUSY;
}

static void serve(struct queue *q)
{
	int r = 0;

	while (!__atomic_load_n(&q->stopping, __ATOMIC_ACQUIRE)) {
		watch_wake(q);
		take_handed(q);
		push_answers(q);
		r = enter(q, give_back(q) && make_room(q));
		if (r < 0 && !is_passing(r))
			break;
		r = 0;
		q->entries.turn++;
		if (!take_completions(q))
			break;
	}
	if (r < 0) {
		/* the requests of this processor would wait forever */
		log_error("io_uring: %s: the mount ends", strerror(-r));
		kill(getpid(), SIGTERM);
	}
}

static void pin(const struct queue *q)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(q->c.number, &set);
	/* refused on a processor outside our set: then run on another */
	if (pthread_setaffinity_np(pthread_self(), sizeof(set), &set))
		log_debug("queue %u does not run on its own processor",
			  q->c.number);
}

static void *run_queue(void *arg)
{
	struct queue *q = arg;
	int r;

	r = make_ring(q);
	if (r < 0) {
		set_state(q, ENDED, r);
		return NULL;
	}
	set_state(q, HAS_RING, 0);
	pin(q);
	r = await(q, MAY_REGISTER);
	if (r == 0)
		r = register_last(q);
	if (r == 0)
		r = registered(q);
	if (r == 0) {
		set_state(q, SERVING, 0);
		serve(q);
	}
	set_state(q, ENDED, r);
	io_uring_queue_exit(&q->ring);
	return NULL;
}

/* --- start and stop ------------------------------------------------------ */

/* No more requests; later answers are dropped. */
static void queue_stop(struct queue *q)
{
	const uint64_t one = 1;

	if (!q->started)
		return;
	q->started = false;
	__atomic_store_n(&q->stopping, true, __ATOMIC_RELEASE);
	pthread_mutex_lock(&q->lock);
	if (q->state < MAY_REGISTER) {
		q->state = MAY_REGISTER;
		q->error = -ECANCELED;
		pthread_cond_broadcast(&q->changed);
	}
	pthread_mutex_unlock(&q->lock);
	if (write(q->wake_fd, &one, sizeof(one)) < 0)
		log_error("eventfd: %s", strerror(errno));
	pthread_join(q->thread, NULL);
}

/* Stops first; NULL is allowed. No answer may follow. */
static void queue_free(struct queue *q)
{
	if (!q)
		return;
	queue_stop(q);
	entries_fini(&q->entries);
	if (q->wake_fd >= 0)
		close(q->wake_fd);
	free(q->request);
	pthread_cond_destroy(&q->changed);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

/* Start the thread, with a ring. -ENOMEM, -EAGAIN, -EPERM, -ENOSYS, -EINVAL. */
static int queue_new(const struct queue_config *config, struct queue **ret)
{
	struct queue *q = calloc(1, sizeof(*q));
	int r;

	if (!q)
		return -ENOMEM;
	q->c = *config;
	q->entries = (struct entries){ .queue = config->number,
				       .payload_bytes = config->payload_bytes,
				       .keep_bytes = config->keep_bytes };
	tick_mutex_init(&q->lock);
	pthread_cond_init(&q->changed, NULL);
	q->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	q->request = malloc(sizeof(struct in_header) +
			    sizeof(((struct uring_header *)0)->op_in) +
			    q->c.payload_bytes);
	r = q->wake_fd < 0 ? -errno
	    : q->request   ? entries_add(&q->entries)
			   : -ENOMEM;
	if (r == 0)
		r = -pthread_create(&q->thread, NULL, run_queue, q);
	q->started = r == 0;
	if (r == 0)
		r = await(q, HAS_RING);
	if (r < 0) {
		queue_free(q);
		return r;
	}
	*ret = q;
	return 0;
}

/* Start to receive requests. -errno: none will arrive. */
static int queue_register(struct queue *q)
{
	set_state(q, MAY_REGISTER, 0);
	return await(q, SERVING);
}

/* arbitrary: for all queues together, the answers of some hundred readers of
 * ImageNet's files; for each queue, at least those of a few readers */
#define KEEP_BYTES (64 * MIB)
#define KEEP_LEAST (2 * MIB)

/* Requests arrive faster than the queue's thread is scheduled: with ten
 * thousand readers on one processor more than 500 arrive in between. So with
 * two processors each queue has entries for all readers from the start. An
 * entry takes some 500 bytes; many processors share the total. */
enum { FREE_ENTRIES = 24576, FREE_LEAST = 2048, FREE_OFFLINE = 128 };

struct uring {
	int fd;
	unsigned n;
	struct queue *queues[];
};

int uring_new(struct fuse_session *session, int fd, size_t payload_bytes,
	      struct uring **ret)
{
	/* the kernel counts possible processors, not only those online */
	unsigned n = (unsigned)get_nprocs_conf();
	unsigned n_online = (unsigned)get_nprocs();
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct uring *u = calloc(1, sizeof(*u) + n * sizeof(u->queues[0]));
	struct queue_config c = {
		.session = session,
		.fd = fd,
		.payload_bytes = (payload_bytes + page - 1) / page * page,
		.keep_bytes = MAX(KEEP_BYTES / n, KEEP_LEAST),
	};
	int r = 0;

	if (!u)
		return -ENOMEM;
	u->fd = fd;
	for (; r == 0 && u->n < n; u->n += r == 0) {
		c.number = (uint16_t)u->n;
		c.least_free = u->n < n_online ? MAX(FREE_ENTRIES / n_online,
						     FREE_LEAST)
					       : FREE_OFFLINE;
		r = queue_new(&c, &u->queues[u->n]);
	}
	if (r < 0) {
		uring_free(u);
		return r;
	}
	*ret = u;
	return 0;
}

/*
 * The kernel holds all requests until each queue has an entry. If a
 * registration fails, it stays with /dev/fuse. So make one fail: register a
 * queue that does not exist.
 */
static void refuse(const struct uring *u)
{
	struct uring_command command = { .queue = UINT16_MAX };
	struct io_uring_params p = { .flags = IORING_SETUP_SQE128 };
	struct io_uring_sqe *sqe;
	struct io_uring ring;

	if (io_uring_queue_init_params(1, &ring, &p) < 0)
		return;
	sqe = io_uring_get_sqe(&ring);
	if (sqe) {
		memset(sqe, 0, 2 * sizeof(*sqe));
		sqe->opcode = IORING_OP_URING_CMD;
		sqe->fd = u->fd;
		sqe->cmd_op = URING_CMD_REGISTER;
		memcpy(sqe->cmd, &command, sizeof(command));
		io_uring_submit_and_wait(&ring, 1);
	}
	io_uring_queue_exit(&ring);
}

int uring_start(struct uring *u)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < u->n; i++)
		r = queue_register(u->queues[i]);
	if (r < 0)
		refuse(u);
	return r;
}

void uring_stop(struct uring *u)
{
	for (unsigned i = 0; i < u->n; i++)
		queue_stop(u->queues[i]);
}

void uring_free(struct uring *u)
{
	if (!u)
		return;
	for (unsigned i = 0; i < u->n; i++)
		queue_free(u->queues[i]);
	free(u);
}

ssize_t uring_reply(struct uring *u, uint64_t unique, const struct iovec *iov,
		    int n)
{
	uint16_t number = unique_queue(unique);

	if (number >= u->n) {
		errno = ENOENT;
		return -1;
	}
	return queue_reply(u->queues[number], unique, iov, n);
}

uint64_t uring_unique(struct uring *u, uint64_t kernel_unique)
{
	uint64_t unique = 0;

	for (unsigned i = 0; !unique && i < u->n; i++)
		unique = queue_find(u->queues[i], kernel_unique);
	return unique ? unique : kernel_unique;
}
