/* SPDX-License-Identifier: MIT */
#include "runner/run/run_burn.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/tick.h"

/* Between two looks at the clock, a system call. */
enum { BUSY_STEPS = 20000 };

/* Until SIGKILL, as the stop signals of gpemu-run are blocked here, too. */
__attribute__((noreturn)) static void burn(pid_t parent, uint64_t burst_ns,
					   uint64_t period_ns)
{
	struct tick *tick;

	/* the parent may have died before PDEATHSIG was set */
	if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ||
	    getppid() != parent)
		_exit(127);
	/* without the permission it keeps the nice value of gpemu-run */
	(void)setpriority(PRIO_PROCESS, 0, 0);
	tick = tick_new(1, 0);
	if (!tick)
		_exit(127);
	for (uint64_t n = 1;; n++) {
		while (tick_cpu() < n * burst_ns)
			for (volatile int i = 0; i < BUSY_STEPS; i++)
				;
		tick_wait(tick, n * period_ns);
	}
}

int burn_start(struct burn *b, size_t n, uint64_t burst_ns, uint64_t period_ns)
{
	pid_t parent = getpid();

	*b = (struct burn){ .pids = calloc(n, sizeof(*b->pids)) };
	if (!b->pids)
		return -ENOMEM;
	while (b->n < n) {
		pid_t pid = fork();

		if (pid == 0)
			burn(parent, burst_ns, period_ns);
		if (pid < 0) {
			int code = -errno;

			burn_end(b);
			return code;
		}
		b->pids[b->n++] = pid;
	}
	return 0;
}

void burn_end(struct burn *b)
{
	for (size_t i = 0; i < b->n; i++)
		kill(b->pids[i], SIGKILL);
	for (size_t i = 0; i < b->n; i++)
		while (waitpid(b->pids[i], NULL, 0) < 0 && errno == EINTR)
			;
	free(b->pids);
	*b = (struct burn){ 0 };
}
