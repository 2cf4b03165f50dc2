/* SPDX-License-Identifier: MIT */
/*
 * Workers take the next item by an atomic counter. The caller's thread sleeps
 * in poll(2) until a signal or a finished item wakes it, and draws the bar:
 *
 *	worker: item, done++, write(eventfd)       signalfd --+
 *	                          |                           |
 *	                          +-----> poll <--------------+
 */
#include "loader/data/data_work.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"

struct run {
	const struct data_work *work;
	void *ctx;
	int wake_fd;	   /* eventfd: items done, threads gone */
	uint64_t next;	   /* atomic */
	uint64_t done;	   /* atomic */
	unsigned n_active; /* atomic: threads that have not ended */
	bool stop;	   /* atomic */
	pthread_mutex_t lock;
	int r;		 /* lock: the first error */
	struct err *err; /* lock: its text */
};

static void wake(const struct run *run)
{
	uint64_t one = 1;
	ssize_t n = write(run->wake_fd, &one, sizeof(one));

	/* it fails only when the counter is full: then poll wakes anyway */
	(void)n;
}

static void failed(struct run *run, int r, const struct err *err)
{
	pthread_mutex_lock(&run->lock);
	if (run->r == 0) {
		run->r = r;
		if (run->err)
			*run->err = *err;
	}
	pthread_mutex_unlock(&run->lock);
	__atomic_store_n(&run->stop, true, __ATOMIC_RELAXED);
}

static int items(struct run *run, void *worker, struct err *err)
{
	const struct data_work *w = run->work;
	int r = w->init ? w->init(worker, run->ctx, err) : 0;

	while (r == 0 && !__atomic_load_n(&run->stop, __ATOMIC_RELAXED)) {
		uint64_t i =
			__atomic_fetch_add(&run->next, 1, __ATOMIC_RELAXED);

		if (i >= w->n)
			break;
		r = w->item(worker, run->ctx, i, err);
		if (r < 0)
			break;
		__atomic_fetch_add(&run->done, 1, __ATOMIC_RELAXED);
		wake(run);
	}
	if (w->fini)
		w->fini(worker, run->ctx);
	return r;
}

static void *worker_main(void *arg)
{
	struct run *run = arg;
	struct err err = { 0 };
	_cleanup_free_ void *worker = calloc(1, run->work->worker_size);
	int r = worker ? items(run, worker, &err) : -ENOMEM;

	if (r < 0)
		failed(run, r, &err);
	__atomic_fetch_sub(&run->n_active, 1, __ATOMIC_RELEASE);
	wake(run);
	return NULL;
}

static void draw(struct progress *bar, const struct run *run)
{
	uint64_t done = __atomic_load_n(&run->done, __ATOMIC_RELAXED);
	double s = (double)(tick_wall() - bar->start_wall) / NS_PER_S;
	char note[64];

	snprintf(note, sizeof(note), "%.0f %s/s", s > 0 ? (double)done / s : 0,
		 run->work->unit);
	progress_update(bar, done, note);
}

/* Until every thread has ended; a signal tells them to. */
static void watch(struct run *run, int signal_fd)
{
	struct pollfd fds[2] = { { run->wake_fd, POLLIN, 0 },
				 { signal_fd, POLLIN, 0 } };
	struct progress bar;

	progress_init(&bar, run->work->label, run->work->n,
		      run->work->progress);
	while (__atomic_load_n(&run->n_active, __ATOMIC_ACQUIRE) > 0) {
		struct signalfd_siginfo info;
		uint64_t n;

		if (poll(fds, ARRAY_SIZE(fds), -1) < 0)
			continue;
		if ((fds[1].revents & POLLIN) &&
		    read(signal_fd, &info, sizeof(info)) > 0)
			failed(run, -EINTR,
			       &(struct err){ .text = "interrupted" });
		if ((fds[0].revents & POLLIN) &&
		    read(run->wake_fd, &n, sizeof(n)) > 0)
			draw(&bar, run);
	}
	progress_end(&bar);
}

static int start_and_watch(struct run *run, int signal_fd)
{
	unsigned n = run->work->n_threads, started = 0;
	_cleanup_free_ pthread_t *threads = calloc(n, sizeof(*threads));

	if (!threads)
		return -ENOMEM;
	run->n_active = n;
	while (started < n &&
	       pthread_create(&threads[started], NULL, worker_main, run) == 0)
		started++;
	if (started == 0)
		return -EAGAIN;
	/* fewer threads than wanted do the same work */
	__atomic_fetch_sub(&run->n_active, n - started, __ATOMIC_RELEASE);
	watch(run, signal_fd);
	for (unsigned i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	return run->r;
}

int data_work_run(const struct data_work *w, void *ctx, uint64_t *ret_done,
		  struct err *err)
{
	_cleanup_close_ int wake_fd = eventfd(0, EFD_CLOEXEC);
	_cleanup_close_ int signal_fd = -1;
	struct run run = { .work = w,
			   .ctx = ctx,
			   .wake_fd = wake_fd,
			   .lock = PTHREAD_MUTEX_INITIALIZER,
			   .err = err };
	sigset_t stop, before;
	int r;

	sigemptyset(&stop);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &stop, &before);
	signal_fd = signalfd(-1, &stop, SFD_CLOEXEC);
	if (wake_fd < 0 || signal_fd < 0)
		r = err_set(err, -errno, "signalfd: %s", strerror(errno));
	else
		r = start_and_watch(&run, signal_fd);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (ret_done)
		*ret_done = run.done;
	return r;
}
