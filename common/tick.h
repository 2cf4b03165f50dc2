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
 * All deadlines are absolute, so lateness does not accumulate. A wait sleeps on
 * CLOCK_MONOTONIC until `spin_ns` of wall time before its deadline and spins
 * the rest; how late it returned (wall ns) goes to the error histogram.
 * tick_keep_awake keeps idle processors awake shortly before, so that the sleep
 * ends within the spin.
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
#include <sys/types.h>

/* The spin that main programs use unless told otherwise. Source: measured,
 * tests/bench/timer.c, see docs/timing.md. */
#define TICK_DEFAULT_SPIN_NS 120000u

struct pollfd;

/* "Never" as a deadline. */
#define TICK_NEVER UINT64_MAX

struct tick;

/*
 * A real (scale 1) or scaled clock. Also sets the timer slack of the calling
 * thread to 1 ns; threads that it starts later inherit that. NULL: no memory.
 */
struct tick *tick_new(double scale, uint64_t spin_ns);
/* The same slack for a thread that waits by a clock that another one made. */
void tick_thread(void);
struct tick *tick_new_fake(void);
void tick_free(struct tick *t);

/* Emulated ns since the clock was made. */
uint64_t tick_now(const struct tick *t);
/* The wall time (tick_wall) of an emulated time, and the reverse; so that two
 * processes can speak of the same moment. Not for fake clocks. */
uint64_t tick_to_wall(const struct tick *t, uint64_t at);
uint64_t tick_of_wall(const struct tick *t, uint64_t wall);
/* Wall ns per emulated ns. */
double tick_scale(const struct tick *t);
/* The emulated ns that pass in so many wall ns. */
uint64_t tick_emulated(const struct tick *t, uint64_t wall_ns);
/* The spin, emulated ns. */
uint64_t tick_spin(const struct tick *t);
/*
 * Keep idle processors awake from 2 ms of wall time before the
 * end of each sleep that is followed by a spin. Call before the first wait.
 * -errno: not permitted; -ENOTSUP: the tick does not spin; no effect then.
 * tick_error_json reports it.
 */
int tick_keep_awake(struct tick *t);
bool tick_keeps_awake(const struct tick *t);
/* The lead of keep-awake before a deadline, emulated ns. */
uint64_t tick_early(const struct tick *t);
/* Explicit hold; no effect without tick_keep_awake. Each hold needs a
 * let_sleep. */
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
/* The same until the deadline itself, if a spin costs more than it gains. */
bool tick_cond_wait_coarse(struct tick *t, pthread_cond_t *cond,
			   pthread_mutex_t *mutex, uint64_t deadline);
int tick_cond_init(pthread_cond_t *cond);
/*
 * Wait while *word, a futex in memory that processes share, has this value,
 * until tick_futex_wake or as tick_cond_wait until the deadline. May return
 * early. Returns true when the time ended the wait.
 */
bool tick_futex_wait(struct tick *t, const uint32_t *word, uint32_t value,
		     uint64_t deadline);
/* Wake all that wait on it, in all processes. */
void tick_futex_wake(const uint32_t *word);
/* Spin for the rest after tick_cond_wait, and count the error of this deadline.
 */
void tick_finish(struct tick *t, uint64_t deadline);
/*
 * A deadline for an epoll loop: the descriptor becomes readable one spin before
 * the last deadline set; tick_finish then waits for the rest. Setting another
 * deadline, or TICK_NEVER, clears the readiness. A descriptor, the caller's to
 * close, or -errno; not for fake clocks.
 */
int tick_timer_new(void);
int tick_timer_set(const struct tick *t, int fd, uint64_t deadline);
/* {"mean","p50","p90","p99","max"} of lateness and "spin", all in wall us;
 * "realtime": do the waiting threads have SCHED_FIFO, and "keeps_awake": does
 * tick_keep_awake have an effect? */
json_t *tick_error_json(const struct tick *t);

/*
 * Run the calling thread under SCHED_FIFO, so that other load does not delay
 * it; for threads that wait for deadlines and do little else. Needs
 * CAP_SYS_NICE or RLIMIT_RTPRIO, else no effect. tick_error_json reports it.
 */
void tick_urgent(struct tick *t);
/*
 * A mutex shared by such a thread and ordinary ones: its holder inherits the
 * priority of a waiting real-time thread (PTHREAD_PRIO_INHERIT). An ordinary
 * mutex if not supported.
 */
void tick_mutex_init(pthread_mutex_t *mutex);

/* Wall time to measure real work: monotonic ns, arbitrary origin. */
uint64_t tick_wall(void);
/* poll(2) until `deadline` on that clock, TICK_NEVER: for ever; signals do not
 * end it. How many are ready, 0: none in time; -errno. */
int tick_poll(struct pollfd *fds, size_t n, uint64_t deadline);
/* For epoll_wait(2) and its like: ms until `deadline` on that clock, rounded
 * up. Beyond INT_MAX, TICK_NEVER included, it is that: 24 days. */
int tick_ms_until(uint64_t deadline);
/* CPU time of the process, of the calling thread, in ns. */
uint64_t tick_cpu(void);
uint64_t tick_cpu_thread(void);
/* The same of another process, without its children; 0: there is none. */
uint64_t tick_cpu_of(pid_t pid);
/* Now as "2026-11-21T09:00:00Z", for records and file names only. */
void tick_utc(char buf[32]);
/* Now in ns since 1970, to be compared with times of files and of signatures
 * only. */
int64_t tick_realtime(void);
/* A plain pause of the calling thread, for retries against the outside. */
void tick_pause(uint64_t wall_ns);

#endif
