/* SPDX-License-Identifier: MIT */
/*
 * Why a spin at the end: on a two-core virtual machine a sleep with a timer
 * slack of 1 ns returns 25-90 us late (timer interrupt, wake-up, scheduling),
 * and a sleep cannot compensate for exactly this. Sleeping until shortly before
 * the deadline and spinning the rest brings the mean error under 2 us for the
 * price of at most `spin_ns` of CPU per wait.
 *
 * Why processors are kept awake: an idle virtual processor halts, and the host
 * may resume it late. Some sleeps of a few ms then end 1 ms late, too much for
 * a reasonable spin.
 */
#include "common/tick.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "common/hist.h"
#include "common/json.h"
#include "common/units.h"
#include "common/util.h"

/*
 * Keeps idle processors awake, so that threads on them wake up quickly.
 *
 * A sleeping processor takes 30 to 100 us to run a woken thread: a virtual
 * machine halts with an exit to the host, bare metal leaves a deep idle state.
 * Linux lets a program bound this latency for the whole machine (PM QoS,
 * Documentation/power/pm_qos_interface.rst): while a program holds
 * /dev/cpu_dma_latency open with a value of 0, idle processors poll. Writing
 * the value wakes sleeping processors.
 *
 * This costs the power of polling processors, but no CPU time: runnable threads
 * take precedence.
 */

struct awake {
	int fd; /* < 0: unavailable, all functions are no-ops */
	bool held;
};

/* The no-op state. */
#define AWAKE_NONE ((struct awake){ .fd = -1 })

/* Source: PM_QOS_CPU_LATENCY_DEFAULT_VALUE, include/linux/pm_qos.h: no
 * constraint */
enum { ANY_LATENCY_US = 2000 * 1000 * 1000 };

/* -EACCES, -ENOENT and others of open(2): not permitted. */
static int awake_init(struct awake *a)
{
	*a = AWAKE_NONE;
	a->fd = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);
	if (a->fd < 0)
		return -errno;
	return 0;
}

static void awake_fini(struct awake *a)
{
	if (a->fd >= 0)
		close(a->fd);
	*a = AWAKE_NONE;
}

static void set(struct awake *a, bool held, int32_t us)
{
	if (a->fd >= 0 && a->held != held &&
	    write(a->fd, &us, sizeof(us)) == sizeof(us))
		a->held = held;
}

/* One thread at a time; takes one or two microseconds if the state changes. */
static void awake_hold(struct awake *a)
{
	set(a, true, 0);
}

static void awake_release(struct awake *a)
{
	set(a, false, ANY_LATENCY_US);
}

/* arbitrary: longer than the latest wake-ups seen, 1.3 ms (docs/timing.md) */
enum { EARLY_NS = 2 * 1000 * 1000 };

struct tick {
	double scale;
	uint64_t origin; /* wall ns at emulated 0 */
	uint64_t spin_ns;
	bool fake;
	uint64_t fake_now;
	bool realtime;	   /* atomic: a thread was granted SCHED_FIFO */
	struct hist error; /* lateness, wall ns */
	pthread_mutex_t awake_lock;
	struct awake awake; /* awake_lock, but for its descriptor */
	unsigned n_awake;   /* awake_lock: number of holders */
};

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S),
				  .tv_nsec = (long)(ns % NS_PER_S) };
}

static struct tick *new_tick(double scale)
{
	struct tick *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->scale = scale;
	t->awake = AWAKE_NONE;
	tick_mutex_init(&t->awake_lock);
	return t;
}

void tick_thread(void)
{
	prctl(PR_SET_TIMERSLACK, 1);
}

struct tick *tick_new(double scale, uint64_t spin_ns)
{
	struct tick *t = new_tick(scale);

	if (!t)
		return NULL;
	t->spin_ns = spin_ns;
	t->origin = tick_wall();
	tick_thread();
	return t;
}

struct tick *tick_new_fake(void)
{
	struct tick *t = new_tick(1);

	if (t)
		t->fake = true;
	return t;
}

void tick_free(struct tick *t)
{
	if (!t)
		return;
	awake_fini(&t->awake);
	pthread_mutex_destroy(&t->awake_lock);
	free(t);
}

/* --- keeping processors awake ------------------------------------------ */

int tick_keep_awake(struct tick *t)
{
	return t->spin_ns ? awake_init(&t->awake) : -ENOTSUP;
}

bool tick_keeps_awake(const struct tick *t)
{
	return t->awake.fd >= 0;
}

uint64_t tick_early(const struct tick *t)
{
	return util_whole(EARLY_NS / t->scale);
}

void tick_hold_awake(struct tick *t)
{
	if (!tick_keeps_awake(t))
		return;
	pthread_mutex_lock(&t->awake_lock);
	if (t->n_awake++ == 0)
		awake_hold(&t->awake);
	pthread_mutex_unlock(&t->awake_lock);
}

void tick_let_sleep(struct tick *t)
{
	if (!tick_keeps_awake(t))
		return;
	pthread_mutex_lock(&t->awake_lock);
	if (--t->n_awake == 0)
		awake_release(&t->awake);
	pthread_mutex_unlock(&t->awake_lock);
}

/* --- waiting ------------------------------------------------------------ */

uint64_t tick_now(const struct tick *t)
{
	return t->fake ? t->fake_now : tick_of_wall(t, tick_wall());
}

uint64_t tick_emulated(const struct tick *t, uint64_t wall_ns)
{
	return t->scale == 1 ? wall_ns : util_whole((double)wall_ns / t->scale);
}

uint64_t tick_of_wall(const struct tick *t, uint64_t wall)
{
	return tick_emulated(t, wall > t->origin ? wall - t->origin : 0);
}

double tick_scale(const struct tick *t)
{
	return t->scale;
}

uint64_t tick_spin(const struct tick *t)
{
	return tick_emulated(t, t->spin_ns);
}

/* Rounded up: a wait must never return before its deadline. */
uint64_t tick_to_wall(const struct tick *t, uint64_t deadline)
{
	if (t->scale != 1)
		deadline = util_whole(ceil((double)deadline * t->scale));
	return util_plus(t->origin, deadline);
}

static void spin_until(struct tick *t, uint64_t wall)
{
	uint64_t now;

	while ((now = tick_wall()) < wall)
		__asm__ volatile("" ::: "memory");
	hist_add(&t->error, now - wall);
}

static void sleep_until(uint64_t wall)
{
	struct timespec ts = timespec_of(wall);

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) ==
	       EINTR)
		;
}

void tick_wait(struct tick *t, uint64_t deadline)
{
	if (t->fake) {
		if (deadline > t->fake_now)
			t->fake_now = deadline;
		return;
	}
	uint64_t wall = tick_to_wall(t, deadline), now = tick_wall();

	if (now >= wall)
		return;
	if (wall - now > t->spin_ns) {
		if (tick_keeps_awake(t) && wall - now > EARLY_NS)
			sleep_until(wall - EARLY_NS);
		tick_hold_awake(t);
		sleep_until(wall - t->spin_ns);
		tick_let_sleep(t);
	}
	spin_until(t, wall);
}

int tick_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	int r = -pthread_cond_init(cond, &attr);

	pthread_condattr_destroy(&attr);
	return r;
}

static bool cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex,
		      uint64_t wall)
{
	struct timespec ts = timespec_of(wall);

	return pthread_cond_timedwait(cond, mutex, &ts) == ETIMEDOUT;
}

bool tick_cond_wait(struct tick *t, pthread_cond_t *cond,
		    pthread_mutex_t *mutex, uint64_t deadline)
{
	if (deadline == TICK_NEVER) {
		pthread_cond_wait(cond, mutex);
		return false;
	}
	uint64_t wall = tick_to_wall(t, deadline), now = tick_wall();

	if (now + t->spin_ns >= wall)
		return true;
	if (tick_keeps_awake(t) && now + EARLY_NS < wall &&
	    !cond_wait(cond, mutex, wall - EARLY_NS))
		return false;
	tick_hold_awake(t);
	bool late = cond_wait(cond, mutex, wall - t->spin_ns);

	tick_let_sleep(t);
	return late;
}

bool tick_cond_wait_coarse(struct tick *t, pthread_cond_t *cond,
			   pthread_mutex_t *mutex, uint64_t deadline)
{
	return cond_wait(cond, mutex, tick_to_wall(t, deadline));
}

static bool futex_wait(const uint32_t *word, uint32_t value,
		       const struct timespec *until)
{
	return syscall(SYS_futex, word, FUTEX_WAIT_BITSET, value, until, NULL,
		       FUTEX_BITSET_MATCH_ANY) < 0 &&
	       errno == ETIMEDOUT;
}

bool tick_futex_wait(struct tick *t, const uint32_t *word, uint32_t value,
		     uint64_t deadline)
{
	struct timespec until;

	if (deadline == TICK_NEVER)
		return futex_wait(word, value, NULL);
	uint64_t wall = tick_to_wall(t, deadline), now = tick_wall();

	if (now + t->spin_ns >= wall)
		return true;
	if (tick_keeps_awake(t) && now + EARLY_NS < wall) {
		until = timespec_of(wall - EARLY_NS);
		if (!futex_wait(word, value, &until))
			return false;
	}
	tick_hold_awake(t);
	until = timespec_of(wall - t->spin_ns);
	bool late = futex_wait(word, value, &until);

	tick_let_sleep(t);
	return late;
}

void tick_futex_wake(const uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void tick_finish(struct tick *t, uint64_t deadline)
{
	spin_until(t, tick_to_wall(t, deadline));
}

int tick_timer_new(void)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int tick_timer_set(const struct tick *t, int fd, uint64_t deadline)
{
	struct itimerspec when = { 0 }; /* disarmed */

	if (deadline != TICK_NEVER)
		when.it_value = timespec_of(
			MAX(tick_to_wall(t, deadline), t->spin_ns + 1) -
			t->spin_ns);
	return timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL) < 0 ? -errno
								       : 0;
}

json_t *tick_error_json(const struct tick *t)
{
	json_t *j = hist_json(&t->error, NS_PER_US);

	json_add_real(j, "spin", (double)t->spin_ns / NS_PER_US);
	json_object_set_new(
		j, "realtime",
		json_boolean(__atomic_load_n(&t->realtime, __ATOMIC_RELAXED)));
	json_object_set_new(j, "keeps_awake",
			    json_boolean(tick_keeps_awake(t)));
	return j;
}

void tick_mutex_init(pthread_mutex_t *mutex)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	if (pthread_mutex_init(mutex, &attr))
		pthread_mutex_init(mutex, NULL);
	pthread_mutexattr_destroy(&attr);
}

void tick_urgent(struct tick *t)
{
	/* the lowest real-time priority: above all ordinary threads, below
	 * other real-time threads of the machine */
	struct sched_param param = { .sched_priority = 1 };

	/* threads started by this one do not inherit it */
	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param) ==
	    0)
		__atomic_store_n(&t->realtime, true, __ATOMIC_RELAXED);
}

uint64_t tick_wall(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t tick_cpu(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t tick_cpu_thread(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t tick_cpu_of(pid_t pid)
{
	clockid_t id;

	return clock_getcpuclockid(pid, &id) ? 0 : clock_ns(id);
}

void tick_utc(char buf[32])
{
	time_t now = time(NULL);
	struct tm tm;

	strftime(buf, 32, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
}

int64_t tick_realtime(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * (int64_t)NS_PER_S + ts.tv_nsec;
}

int tick_poll(struct pollfd *fds, size_t n, uint64_t deadline)
{
	for (;;) {
		uint64_t now = tick_wall();
		struct timespec left =
			timespec_of(deadline > now ? deadline - now : 0);
		int r = ppoll(fds, n, deadline == TICK_NEVER ? NULL : &left,
			      NULL);

		if (r >= 0 || errno != EINTR)
			return r < 0 ? -errno : r;
	}
}

int tick_ms_until(uint64_t deadline)
{
	uint64_t now = tick_wall();

	return deadline <= now
		       ? 0
		       : (int)MIN((deadline - now) / NS_PER_MS + 1, INT_MAX);
}

void tick_pause(uint64_t wall_ns)
{
	struct timespec ts = timespec_of(wall_ns);

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) == EINTR)
		;
}
