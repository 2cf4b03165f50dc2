/* SPDX-License-Identifier: MIT */
/*
 * One handler for the process, in place while somebody needs it. It looks at
 * the copy of the thread it runs in: a fault of the kernel's within the copy's
 * source jumps out of the copy, and everything else is passed on.
 *
 * Handlers that we were installed over are kept as a stack. The one on top may
 * in turn pass its signals on to us, if it was installed over us at an earlier
 * time: such a nested call goes to the next one down, and behind the last to
 * the default action. (Python's faulthandler restores what it knows as the one
 * before, which may be us, and raises the signal again.)
 *
 * SA_NODEFER: after the jump SIGBUS must not stay blocked, and sigsetjmp need
 * not save the mask, which costs a system call. SA_ONSTACK: a thread may have
 * such a stack because its own is small.
 */
#include "loader/engine/guard.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "common/util.h"

/* arbitrary: one is usual, and each more takes somebody who installs a handler
 * while ours is in use */
enum { MOST = 8 };

/* Of a copy that is asked for: what hardware does not foresee.
 * Source of LINE: x86-64; elsewhere it costs a few requests more or less */
enum { LINE = 64, ASKED_BYTES = 256 };

struct copying {
	const struct guard_copy *volatile now;
	sigjmp_buf out;
};

/* A signal that this thread passes on, or did: a handler may leave by a jump.
 */
struct passing {
	const void *frame; /* of our handler; NULL: none */
	unsigned down;	   /* in the stack */
};

/* In si_errno, which is 0 in a SIGBUS, while it is passed on: so many down the
 * stack. arbitrary: no errno */
enum { MARK = 0x6770 };

/* initial-exec: the dynamic model may allocate at a thread's first access,
 * which a signal handler must not */
#define OF_THREAD \
	static _Thread_local __attribute__((tls_model("initial-exec")))
OF_THREAD struct copying *volatile current;
OF_THREAD struct passing passing;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned n_users; /* lock */
/* lock to write, but for one-shot handlers that ran: those below ours */
static struct sigaction before[MOST];
static atomic_uint n_before;

/* A fault repeats itself after the return; what was sent does not, nor does a
 * notice of bad memory that nobody has touched yet. */
static bool repeats(const siginfo_t *info)
{
	return info->si_code > 0 && info->si_code != BUS_MCEERR_AO;
}

/* As if there were no handler. */
static void by_default(int sig, const siginfo_t *info)
{
	struct sigaction a = { .sa_handler = SIG_DFL };

	sigaction(sig, &a, NULL);
	/* repeated, the core dump shows where */
	if (!repeats(info))
		raise(sig);
}

/* As the kernel calls a handler, but on the stack that ours runs on. */
static void call(struct sigaction *below, int sig, siginfo_t *info, void *ctx)
{
	const struct sigaction copy = *below, *a = &copy;
	sigset_t mask = a->sa_mask, old;

	if (!(a->sa_flags & SA_NODEFER))
		sigaddset(&mask, sig);
	if (a->sa_flags & (int)SA_RESETHAND)
		*below = (struct sigaction){ .sa_handler = SIG_DFL };
	pthread_sigmask(SIG_BLOCK, &mask, &old);
	if (a->sa_flags & SA_SIGINFO)
		a->sa_sigaction(sig, info, ctx);
	else
		a->sa_handler(sig);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Who gets it: the one on top, or of a signal that we have passed on already
 * the next one down. */
static unsigned down(const siginfo_t *info, const void *frame)
{
	unsigned marked = (unsigned)info->si_errno - MARK;

	if (info->si_code > 0)
		return marked < MOST ? marked + 1 : 0;
	/* raised again by the handler that we called? */
	return info->si_pid == getpid() && passing.frame &&
			       (uintptr_t)frame < (uintptr_t)passing.frame
		       ? passing.down + 1
		       : 0;
}

static void pass_on(int sig, siginfo_t *info, void *ctx)
{
	const void *frame = __builtin_frame_address(0);
	unsigned n = atomic_load(&n_before), at = down(info, frame);
	struct sigaction *a = at < n ? &before[n - 1 - at] : NULL;
	struct passing outer = passing;
	int mark = info->si_errno;

	if (!a || a->sa_handler == SIG_DFL) {
		by_default(sig, info);
	} else if (a->sa_handler == SIG_IGN) {
		/* a fault cannot be ignored */
		if (repeats(info))
			by_default(sig, info);
	} else {
		passing = (struct passing){ frame, at };
		if (info->si_code > 0)
			info->si_errno = MARK + (int)at;
		call(a, sig, info, ctx);
		info->si_errno = mark;
		passing = outer;
	}
}

/* Did the copy touch a page that cannot be read? */
static bool ours(const struct copying *c, const siginfo_t *info)
{
	uintptr_t at = (uintptr_t)info->si_addr, from;

	if (!c || !repeats(info))
		return false;
	from = (uintptr_t)c->now->from;
	/* not every processor gives more than the page */
	return at >= (from & ~((uintptr_t)getpagesize() - 1)) &&
	       at < from + c->now->n;
}

static void on_bus(int sig, siginfo_t *info, void *ctx)
{
	struct copying *c = current;
	int error = errno;

	if (ours(c, info)) {
		const ucontext_t *u = ctx;

		/* a handler above ours may have blocked signals, and the kernel
		 * restores the mask only after a return */
		pthread_sigmask(SIG_SETMASK, &u->uc_sigmask, NULL);
		siglongjmp(c->out, 1);
	}
	/* A handler above ours that restored us and raised it again, as
	 * Python's faulthandler does: the copy repeats its fault, which says
	 * where. One that somebody in this process sent to a thread within a
	 * copy looks the same, and is lost. */
	if (c && info->si_code == SI_TKILL && info->si_pid == getpid())
		return;
	pass_on(sig, info, ctx);
	errno = error;
}

static bool is_ours(const struct sigaction *a)
{
	return (a->sa_flags & SA_SIGINFO) && a->sa_sigaction == on_bus;
}

static bool same(const struct sigaction *a, const struct sigaction *b)
{
	return a->sa_handler == b->sa_handler && a->sa_flags == b->sa_flags;
}

/* Under the lock: put ours over the handler there is. */
static int install(void)
{
	struct sigaction own = { .sa_sigaction = on_bus,
				 .sa_flags = SA_SIGINFO | SA_NODEFER |
					     SA_ONSTACK };
	unsigned n = atomic_load(&n_before);
	struct sigaction there;

	if (sigaction(SIGBUS, NULL, &there) < 0)
		return -errno;
	if (is_ours(&there))
		return 0;
	/* it may have been restored by whoever was above us */
	if (n == 0 || !same(&before[n - 1], &there)) {
		if (n == MOST)
			return -EBUSY;
		before[n] = there;
		atomic_store(&n_before, n + 1);
	}
	return sigaction(SIGBUS, &own, NULL) < 0 ? -errno : 0;
}

int guard_begin(void)
{
	int r;

	pthread_mutex_lock(&lock);
	r = install();
	n_users += r == 0;
	pthread_mutex_unlock(&lock);
	return r;
}

void guard_end(void)
{
	struct sigaction there;
	unsigned n;

	pthread_mutex_lock(&lock);
	n = atomic_load(&n_before);
	if (--n_users == 0 && n > 0 && sigaction(SIGBUS, NULL, &there) == 0 &&
	    is_ours(&there)) {
		sigaction(SIGBUS, &before[n - 1], NULL);
		atomic_store(&n_before, n - 1);
	}
	pthread_mutex_unlock(&lock);
}

/* So that it is there when its turn comes: the copies of short samples begin
 * anywhere, and would each wait for memory. No page is faulted in. */
static void ask(const struct guard_copy *c)
{
	const char *from = c->from;

	for (size_t at = 0; at < MIN(c->n, ASKED_BYTES); at += LINE)
		__builtin_prefetch(from + at);
}

void guard_copies(struct guard_copy *c, size_t n, guard_make *make, void *ctx)
{
	struct copying all;
	volatile size_t i = 0;

	if (n)
		ask(&c[0]);
	if (sigsetjmp(all.out, 0)) {
		c[i].failed = true;
		i = i + 1;
	}
	for (; i < n; i = i + 1) {
		if (i + 1 < n)
			ask(&c[i + 1]);
		all.now = &c[i];
		current = &all;
		/* the copy is between the two, also for the compiler */
		atomic_signal_fence(memory_order_seq_cst);
		if (make)
			make(ctx, i);
		else
			memcpy(c[i].to, c[i].from, c[i].n);
		atomic_signal_fence(memory_order_seq_cst);
		c[i].failed = false;
	}
	current = NULL;
}
