/* SPDX-License-Identifier: MIT */
/*
 * The only code that reads a clock or sleeps.
 *
 * A tick is a clock that starts at 0 ns when it is made. Three kinds:
 *
 *   real    emulated time is wall time
 *   scaled  an emulated second takes `scale` wall seconds: scale 0.1 runs an
 *           experiment ten times faster
 *   fake    stands still until somebody waits: the wait moves it (tests, and
 *           the event clock of simulations)
 *
 * All deadlines are absolute, so lateness never adds up. A wait sleeps on
 * CLOCK_MONOTONIC until `spin_ns` of wall time before its deadline and spins
 * the rest; how late it returned (wall ns) goes to the error histogram.
 * With tick_keep_awake idle processors are kept from falling asleep shortly
 * before, so that the sleep ends within the spin.
 *
 * Threads: everything here may be called from any thread, except that a fake
 * clock belongs to one.
 */
#ifndef GPEMU_COMMON_TICK_H
#define GPEMU_COMMON_TICK_H

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* The spin that main programs use unless told otherwise. Source: measured,
 * tests/bench/timer.c, see docs/timing.md. */
#define TICK_DEFAULT_SPIN_NS 120000u

/* "Never" as a deadline. */
#define TICK_NEVER UINT64_MAX

struct tick;

/*
 * A real (scale 1) or scaled clock. Also sets the timer slack of the calling
 * thread to 1 ns; threads that it starts later inherit that. NULL: no memory.
 */
struct tick *tick_new(double scale, uint64_t spin_ns);
struct tick *tick_new_fake(void);
void tick_free(struct tick *t);

/* Emulated ns since the clock was made. */
uint64_t tick_now(const struct tick *t);
/* Wall ns per emulated ns. */
double tick_scale(const struct tick *t);
/* The spin, emulated ns. */
uint64_t tick_spin(const struct tick *t);
/*
 * From 2 ms of wall time before the end of each sleep that has a spin after it
 * keep the machine's idle processors awake (common/awake.h). Before the first
 * wait. -errno: the system does not grant it, -ENOTSUP: the tick does not
 * spin; then nothing changes. tick_error_json tells.
 */
int tick_keep_awake(struct tick *t);
bool tick_keeps_awake(const struct tick *t);
/* How long before a deadline that begins, emulated ns. */
uint64_t tick_early(const struct tick *t);
/* The same for as long as the caller wants; nothing without tick_keep_awake.
 * Each hold needs its let_sleep. */
void tick_hold_awake(struct tick *t);
void tick_let_sleep(struct tick *t);
/* Wait until `deadline` (emulated ns). Returns at once when it has passed. */
void tick_wait(struct tick *t, uint64_t deadline);
/*
 * Wait on `cond` (which must come from tick_cond_init) with `mutex` held until
 * it is signalled or `deadline` (emulated ns) is less than the spin away;
 * TICK_NEVER waits for the signal alone. Not for fake clocks.
 * Returns true when the time, not a signal, ended the wait.
 */
bool tick_cond_wait(struct tick *t, pthread_cond_t *cond,
		    pthread_mutex_t *mutex, uint64_t deadline);
/* The same until the deadline itself, for when a spin costs more than it
 * gains. */
bool tick_cond_wait_coarse(struct tick *t, pthread_cond_t *cond,
			   pthread_mutex_t *mutex, uint64_t deadline);
int tick_cond_init(pthread_cond_t *cond);
/* Spin out what tick_cond_wait left, and count the error of this deadline. */
void tick_finish(struct tick *t, uint64_t deadline);
/*
 * A deadline for an epoll loop: the descriptor becomes readable a spin before
 * the deadline that was set last; tick_finish then waits out the rest. Setting
 * another deadline, or TICK_NEVER, takes the readiness back.
 * A descriptor, the caller's to close, or -errno; not for fake clocks.
 */
int tick_timer_new(void);
int tick_timer_set(const struct tick *t, int fd, uint64_t deadline);
/* {"mean","p50","p90","p99","max"} of lateness and "spin", all in wall us;
 * "realtime": were the waiting threads granted SCHED_FIFO? and "keeps_awake":
 * was tick_keep_awake granted? */
json_t *tick_error_json(const struct tick *t);

/*
 * Ask for the calling thread to run ahead of all ordinary ones (SCHED_FIFO),
 * so that a busy machine does not make it late; for threads that wait for
 * deadlines and do little else. Needs CAP_SYS_NICE or RLIMIT_RTPRIO; without,
 * nothing changes. Whether it was granted is in tick_error_json.
 */
void tick_urgent(struct tick *t);
/*
 * A mutex that such a thread shares with ordinary ones: who holds it while an
 * urgent thread waits runs as that thread would (PTHREAD_PRIO_INHERIT). An
 * ordinary mutex where the system has none of these.
 */
void tick_mutex_init(pthread_mutex_t *mutex);

/* Wall time for measuring what is real: monotonic ns, arbitrary origin. */
uint64_t tick_wall(void);
/* CPU time of the process, of the calling thread, in ns. */
uint64_t tick_cpu(void);
uint64_t tick_cpu_thread(void);
/* Now as "2026-11-21T09:00:00Z", for records and file names only. */
void tick_utc(char buf[32]);
/* Now in ns since 1970, to be compared with times of files only. */
int64_t tick_realtime(void);
/* A plain pause of the calling thread, for retries against the outside. */
void tick_pause(uint64_t wall_ns);

#endif
