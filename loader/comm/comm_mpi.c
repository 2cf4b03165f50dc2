/* SPDX-License-Identifier: MIT */
/*
 * Ranks over MPI-3, of Open MPI or MPICH. A module, which comm_load.c loads.
 *
 * One thread makes all MPI calls. MPI libraries spin while they wait, on the
 * cores that the loader needs. So every collective here is non-blocking, and
 * the thread sleeps between two polls, meanwhile watching the connections of
 * the other ranks (watch.h). The pause grows from FIRST to LAST: a rank that
 * waits for long polls a thousand times a second. Seeing a result late by
 * LAST delays no step: its times follow from the records and not from when
 * they were seen, and it ends later than that.
 *
 *	caller	comm_start	     comm_finish
 *		   | order		  ^ done
 *	thread	   +-- Iallgather, Test, sleep, Test ... --+
 */
#include "loader/comm/comm.h"

#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>

#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "loader/comm/watch.h"

/* LAST: measured: a waiting rank uses 2.9 % of a core (the other of two ranks
 * stopped for 10 s, Open MPI 4.1.4, two cores, 2026-11). FIRST: arbitrary, less
 * than a message between two processes takes. */
#define FIRST (20 * NS_PER_US)
#define LAST NS_PER_MS

enum order { NOTHING, JOIN, EXCHANGE, GATHER, BCAST, LEAVE };

struct mpi {
	struct comm comm;
	struct comm_watch watch;
	pthread_t thread;
	int wake; /* eventfd: there is a command */

	pthread_mutex_t lock;
	pthread_cond_t done;
	enum order order;	/* lock; NOTHING: done */
	bool left;		/* lock: the thread takes no more commands */
	int result;		/* lock */
	struct err err;		/* of the result */
	struct comm_blob *blob; /* of the command */
	struct comm_blob own;
};

/* --- the thread ----------------------------------------------------------- */

static int check_call(struct mpi *m, int code)
{
	char text[MPI_MAX_ERROR_STRING];
	int n;

	if (code == MPI_SUCCESS)
		return 0;
	if (MPI_Error_string(code, text, &n) != MPI_SUCCESS)
		strcpy(text, "unknown error");
	return err_set(&m->err, -EIO, "MPI: %s", text);
}

/* Wait for a request; `code`: of the call that made it. A status of our own:
 * GCC takes MPICH's MPI_STATUS_IGNORE for a write to address 1. */
static int settle_call(struct mpi *m, int code, MPI_Request *request)
{
	uint64_t pause = FIRST;
	MPI_Status status;
	int done = 0;
	int r = check_call(m, code);

	while (r == 0) {
		r = check_call(m, MPI_Test(request, &done, &status));
		if (r < 0 || done)
			break;
		watch_wait(&m->watch, -1, pause);
		pause = MIN(2 * pause, LAST);
	}
	return r;
}

static int exchange(struct mpi *m)
{
	const int n = sizeof(struct comm_cell);
	MPI_Request q;
	int code = MPI_Iallgather(&m->comm.mine, n, MPI_BYTE, m->comm.all, n,
				  MPI_BYTE, MPI_COMM_WORLD, &q);

	return settle_call(m, code, &q);
}

/* Messages longer than an int counts go in pieces. */
enum { PIECE = 1 << 30 };

static int transfer(struct mpi *m, struct comm_blob *b, uint32_t rank,
		    bool send)
{
	int r = 0;

	for (size_t at = 0; r == 0 && at < b->n; at += PIECE) {
		int n = (int)MIN(b->n - at, PIECE), code;
		char *from = (char *)b->bytes + at;
		MPI_Request q;

		code = send ? MPI_Isend(from, n, MPI_BYTE, (int)rank, 0,
					MPI_COMM_WORLD, &q)
			    : MPI_Irecv(from, n, MPI_BYTE, (int)rank, 0,
					MPI_COMM_WORLD, &q);
		r = settle_call(m, code, &q);
	}
	return r;
}

static int gather(struct mpi *m)
{
	int r = 0;

	if (m->comm.rank)
		return transfer(m, &m->own, 0, true);
	for (uint32_t i = 1; r == 0 && i < m->comm.size; i++)
		r = transfer(m, &m->blob[i], i, false);
	return r;
}

static int bcast(struct mpi *m)
{
	int r = 0;

	for (size_t at = 0; r == 0 && at < m->blob->n; at += PIECE) {
		MPI_Request q;
		int code = MPI_Ibcast((char *)m->blob->bytes + at,
				      (int)MIN(m->blob->n - at, PIECE),
				      MPI_BYTE, 0, MPI_COMM_WORLD, &q);

		r = settle_call(m, code, &q);
	}
	return r;
}

/* Connect the watch of all ranks; rank 0 listens (the door). */
static int open_watch(struct mpi *m)
{
	struct watch_door door = { 0 };
	MPI_Comm here = MPI_COMM_NULL;
	MPI_Request q;
	int n_here = 0, code, r, e, all;

	r = check_call(m,
		       MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED,
					   0, MPI_INFO_NULL, &here));
	if (r == 0)
		r = check_call(m, MPI_Comm_size(here, &n_here));
	if (here != MPI_COMM_NULL)
		MPI_Comm_free(&here);
	if (r == 0 && m->comm.rank == 0)
		r = watch_listen(&m->watch, n_here == (int)m->comm.size, &door,
				 &m->err);
	code = MPI_Ibcast(&door, sizeof(door), MPI_BYTE, 0, MPI_COMM_WORLD, &q);
	e = settle_call(m, code, &q);
	r = r < 0 ? r : e;
	if (r == 0)
		r = m->comm.rank == 0
			    ? watch_accept(&m->watch, m->comm.size - 1, &m->err)
			    : watch_connect(&m->watch, &door, m->comm.rank,
					    &m->err);
	/* all or none */
	code = MPI_Iallreduce(&r, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD,
			      &q);
	e = settle_call(m, code, &q);
	if (r < 0 || e < 0 || all == 0)
		return r < 0 ? r : e;
	return err_set(&m->err, all, "another rank cannot join the run");
}

static int join(struct mpi *m)
{
	int have, rank = 0, size = 0;
	int r = check_call(m, MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED,
					      &have));

	if (r < 0)
		return r;
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	r = check_call(m, MPI_Comm_rank(MPI_COMM_WORLD, &rank));
	if (r == 0)
		r = check_call(m, MPI_Comm_size(MPI_COMM_WORLD, &size));
	m->comm.rank = (uint32_t)rank;
	m->comm.size = (uint32_t)size;
	if (r == 0)
		r = watch_init(&m->watch, m->comm.size);
	m->comm.all = calloc(m->comm.size, sizeof(*m->comm.all));
	if (r == 0 && !m->comm.all)
		r = -ENOMEM;
	if (r == -ENOMEM)
		err_set(&m->err, r, "out of memory");
	return r < 0 || size == 1 ? r : open_watch(m);
}

static int carry_out(struct mpi *m, enum order order)
{
	MPI_Request q;

	switch (order) {
	case JOIN: return join(m);
	case EXCHANGE: return exchange(m);
	case GATHER: return gather(m);
	case BCAST: return bcast(m);
	/* no rank leaves before all are about to */
	case LEAVE: return settle_call(m, MPI_Ibarrier(MPI_COMM_WORLD, &q), &q);
	case NOTHING: break;
	}
	return 0;
}

static void report(struct mpi *m, int result)
{
	pthread_mutex_lock(&m->lock);
	m->result = result;
	m->order = NOTHING;
	m->left = result < 0;
	pthread_cond_signal(&m->done);
	pthread_mutex_unlock(&m->lock);
}

static enum order await_order(struct mpi *m)
{
	enum order order;
	uint64_t n;

	while (!watch_wait(&m->watch, m->wake, TICK_NEVER) ||
	       read(m->wake, &n, sizeof(n)) != sizeof(n))
		;
	pthread_mutex_lock(&m->lock);
	order = m->order;
	pthread_mutex_unlock(&m->lock);
	return order;
}

static void *run_mpi(void *arg)
{
	struct mpi *m = arg;
	enum order order = JOIN;
	sigset_t all;
	int r = 0, joined = 0;

	/* also for the threads of the library */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	while (r == 0 && order != LEAVE) {
		r = carry_out(m, order);
		report(m, r);
		if (r == 0)
			order = await_order(m);
	}
	if (order == LEAVE)
		carry_out(m, LEAVE);
	watch_close(&m->watch);
	MPI_Initialized(&joined);
	/* after a failure this might never return; the launcher ends the rest
	 */
	if (joined && r == 0)
		MPI_Finalize();
	return NULL;
}

/* --- the caller ----------------------------------------------------------- */

static struct mpi *mpi_of(struct comm *c)
{
	return container_of(c, struct mpi, comm);
}

static void command(struct mpi *m, enum order order)
{
	uint64_t one = 1;

	pthread_mutex_lock(&m->lock);
	m->order = m->left ? NOTHING : order;
	pthread_mutex_unlock(&m->lock);
	while (write(m->wake, &one, sizeof(one)) != sizeof(one))
		;
}

static int await(struct mpi *m, struct err *err)
{
	int r;

	pthread_mutex_lock(&m->lock);
	while (m->order != NOTHING)
		pthread_cond_wait(&m->done, &m->lock);
	r = m->result;
	pthread_mutex_unlock(&m->lock);
	return r < 0 ? err_set(err, r, "%s", m->err.text) : 0;
}

static void mpi_start(struct comm *c)
{
	command(mpi_of(c), EXCHANGE);
}

static int mpi_finish(struct comm *c, struct err *err)
{
	return await(mpi_of(c), err);
}

static int mpi_gather(struct comm *c, const struct comm_blob *mine,
		      struct comm_blob *all, struct err *err)
{
	struct mpi *m = mpi_of(c);

	m->own = *mine;
	m->blob = all;
	command(m, GATHER);
	return await(m, err);
}

static int mpi_bcast(struct comm *c, struct comm_blob *b, struct err *err)
{
	struct mpi *m = mpi_of(c);

	m->blob = b;
	command(m, BCAST);
	return await(m, err);
}

static void release(struct mpi *m)
{
	if (m->wake >= 0)
		close(m->wake);
	pthread_cond_destroy(&m->done);
	pthread_mutex_destroy(&m->lock);
	free(m->comm.all);
	free(m);
}

static void mpi_close(struct comm *c)
{
	struct mpi *m = mpi_of(c);

	/* after a failure of MPI the thread has left */
	command(m, LEAVE);
	pthread_join(m->thread, NULL);
	release(m);
}

static const struct comm_ops comm_mpi = {
	.close = mpi_close,
	.start = mpi_start,
	.finish = mpi_finish,
	.gather = mpi_gather,
	.bcast = mpi_bcast,
};

int comm_mpi_module_open(void (*died)(void *ctx, uint32_t rank), void *ctx,
			 struct comm **ret, struct err *err)
{
	struct mpi *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return err_set(err, -ENOMEM, "out of memory");
	m->comm.ops = &comm_mpi;
	m->order = JOIN;
	m->watch = (struct comm_watch){ .died = died,
					.ctx = ctx,
					.listening = -1 };
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->done, NULL);
	m->wake = eventfd(0, EFD_CLOEXEC);
	r = m->wake < 0 ? -errno
			: -pthread_create(&m->thread, NULL, run_mpi, m);
	if (r < 0) {
		release(m);
		return err_set(err, r, "%s", strerror(-r));
	}
	r = await(m, err);
	if (r < 0) {
		pthread_join(m->thread, NULL);
		release(m);
		return r;
	}
	*ret = &m->comm;
	return 0;
}
