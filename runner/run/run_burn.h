/* SPDX-License-Identifier: MIT */
/*
 * Busy processes beside a cell, as other programs on the machine would be: of
 * the ordinary nice value 0 where that is permitted, each in a session of its
 * own (the kernel's autogroups share the CPUs by session), and not part of the
 * cell whose load run_watch.h samples.
 *
 * Ctrl-C does not reach them; they die with the process that started them.
 */
#ifndef GPEMU_RUNNER_RUN_RUN_BURN_H
#define GPEMU_RUNNER_RUN_RUN_BURN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct burn {
	pid_t *pids;
	size_t n;
};

/*
 * Start `n` processes; each uses `burst_ns` of CPU time every `period_ns`, all
 * at the same moments. Load that competing threads delay is made up for later.
 * -errno, with none left. End with burn_end.
 */
int burn_start(struct burn *b, size_t n, uint64_t burst_ns, uint64_t period_ns);
/* Kill and reap them. */
void burn_end(struct burn *b);

#endif
