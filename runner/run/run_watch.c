/* SPDX-License-Identifier: MIT */
#include "runner/run/run_watch.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>

#include "common/thread.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "runner/run/run_host.h"

/* The resolution of times in /proc/stat. */
#define TICK_S .02

/* arbitrary: less is logs and records, whose writing delays nothing */
#define DISK_MIB 1

/* --- windows ---------------------------------------------------------- */

static double since(double before, double now)
{
	return MAX(now - before, 0);
}

void watch_add(struct run_watch *w, const struct watch_sample *s)
{
	const struct watch_sample *l = &w->last;
	double wall = (double)(s->wall_ns - l->wall_ns) / NS_PER_S;
	double own = since(l->own_s, s->own_s);
	double waited = since(l->waited_s, s->waited_s);
	double stolen = since(l->stolen_s, s->stolen_s);
	double busy = w->cpus * wall - since(l->idle_s, s->idle_s) - stolen;
	double rest = busy - own + w->owed_s;
	double other = MAX(rest, 0);
	double ours = busy > 0 ? MIN(own / busy, 1) : 0;

	w->last = *s;
	if (wall <= 0)
		return;
	/* /proc/stat counts in ticks: what is missing now is too much later */
	w->owed_s = MAX(MIN(rest, 0), -(double)w->cpus * TICK_S);
	w->n++;
	w->other_s += other;
	w->waited_s += waited;
	w->stolen_s += stolen;
	w->taken_s += MIN(MIN(other, waited) + stolen * ours, wall);
	w->most = MAX(w->most, MIN(other / (w->cpus * wall), 1));
}

static double watched(const struct run_watch *w)
{
	return (double)(w->last.wall_ns - w->first.wall_ns) / NS_PER_S;
}

double watch_taken(const struct run_watch *w)
{
	double s = watched(w);

	return s > 0 ? w->taken_s / s : 0;
}

double watch_taken_io(const struct run_watch *w)
{
	double own = w->last.own_mib - w->first.own_mib;
	double all = MAX(w->last.disk_mib - w->first.disk_mib, own);
	double busy = since(w->first.disk_busy_s, w->last.disk_busy_s);
	double waited = since(w->first.pressure_io_s, w->last.pressure_io_s);
	double s = watched(w);

	if (own < DISK_MIB || s <= 0)
		return 0;
	return MIN(waited, busy) / s * (1 - own / all);
}

json_t *watch_json(const struct run_watch *w)
{
	const struct watch_sample *a = &w->first, *b = &w->last;
	double s = watched(w), own = b->own_mib - a->own_mib;

	return json_pack(
		"{s:i, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, "
		"s:f, s:f, s:f, s:f, s:f}",
		"cpus", (int)w->cpus, "windows", (json_int_t)w->n, "window_s",
		(double)WATCH_NS / NS_PER_S, "seconds", s, "own_cpu_s",
		since(a->own_s, b->own_s), "other_cpu_share",
		s > 0 ? MIN(w->other_s / (w->cpus * s), 1) : 0,
		"other_cpu_share_max", w->most, "cpu_wait_s", w->waited_s,
		"stolen_s", w->stolen_s, "taken_s", w->taken_s, "taken_share",
		watch_taken(w), "taken_io_share", watch_taken_io(w),
		"pressure_cpu_s", b->pressure_cpu_s - a->pressure_cpu_s,
		"pressure_io_s", b->pressure_io_s - a->pressure_io_s,
		"disk_busy_s", since(a->disk_busy_s, b->disk_busy_s),
		"own_disk_mib", own, "other_disk_mib",
		since(own, b->disk_mib - a->disk_mib));
}

/* --- the system ------------------------------------------------------- */

/* Source: proc(5), /proc/stat: ticks of user nice system idle iowait irq
 * softirq steal, of one CPU per line. */
static void read_cpus(struct watch_sample *s)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/stat", "re");
	double tick = 1 / (double)sysconf(_SC_CLK_TCK);
	uint64_t idle, wait, stolen;
	unsigned cpu;
	char line[512];
	cpu_set_t set;

	if (!f || sched_getaffinity(0, sizeof(set), &set) < 0)
		return;
	while (fgets(line, sizeof(line), f) && !strncmp(line, "cpu", 3)) {
		if (sscanf(line,
			   "cpu%u %*u %*u %*u %" SCNu64 " %" SCNu64
			   " %*u %*u %" SCNu64,
			   &cpu, &idle, &wait, &stolen) != 4 ||
		    !CPU_ISSET(cpu, &set))
			continue;
		s->idle_s += (double)(idle + wait) * tick;
		s->stolen_s += (double)stolen * tick;
	}
}

/* A small file, as text; "" if it cannot be read. */
static const char *text_of(int dirfd, const char *name, char *buf, size_t n)
{
	_cleanup_close_ int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? 0 : read(fd, buf, n - 1);

	buf[MAX(got, 0)] = 0;
	return buf;
}

/* The time in which at least one task waited. */
static double read_pressure(const char *path)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	uint64_t us = 0;

	if (!f ||
	    fscanf(f, "some avg10=%*f avg60=%*f avg300=%*f total=%" SCNu64,
		   &us) != 1)
		return 0;
	return (double)us / 1e6;
}

/* Source: Documentation/block/stat.rst of Linux: the tenth number is io_ticks,
 * in ms. A device that others stand on counts with them. */
static double read_disk_busy(void)
{
	DIR *d = opendir("/sys/block");
	const struct dirent *e;
	double ms = 0;

	while (d && (e = readdir(d))) {
		char path[300], text[256];
		uint64_t ticks;

		snprintf(path, sizeof(path), "%s/stat", e->d_name);
		text_of(dirfd(d), path, text, sizeof(text));
		if (sscanf(text, "%*u %*u %*u %*u %*u %*u %*u %*u %*u %" SCNu64,
			   &ticks) == 1)
			ms += (double)ticks;
	}
	if (d)
		closedir(d);
	return ms / 1e3;
}

/* --- our processes ---------------------------------------------------- */

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

static void add_usage(struct watch_sample *s, int who)
{
	struct rusage u;

	if (getrusage(who, &u) < 0)
		return;
	s->own_s += seconds(u.ru_utime) + seconds(u.ru_stime);
	/* in blocks of 512 bytes */
	s->own_mib += (double)(u.ru_inblock + u.ru_oublock) / 2048;
}

struct look {
	struct run_watch *w;
	struct watch_sample *s;
	struct watch_thread *threads;
	size_t n_threads, capacity;
	int *pids; /* still to be looked at */
	size_t n_pids, pids_capacity;
};

static void add_pid(struct look *l, int pid)
{
	if (util_reserve(&l->pids, &l->pids_capacity, l->n_pids + 1,
			 sizeof(*l->pids)) == 0)
		l->pids[l->n_pids++] = pid;
}

/* CPU time of a process and of the children that it has reaped. Also says if it
 * may have more children: programs with many threads have none. */
static bool add_process(struct watch_sample *s, int pid)
{
	uint64_t user, system;
	static const char *const alone[] = { "(gpemu-fs)", "(gpemu-train)",
					     "(gpemu-gpud)", "(gpemu-s3)" };
	char name[64], text[1024];
	bool forks = true;
	const char *end;

	snprintf(name, sizeof(name), "/proc/%d/stat", pid);
	/* the name of the program may contain anything */
	end = strrchr(text_of(AT_FDCWD, name, text, sizeof(text)), ')');
	if (end && sscanf(end,
			  ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u "
			  "%*u %" SCNu64 " %" SCNu64,
			  &user, &system) == 2)
		s->own_s +=
			(double)(user + system) / (double)sysconf(_SC_CLK_TCK);
	s->own_s += (double)tick_cpu_of(pid) / NS_PER_S;
	for (size_t i = 0; i < ARRAY_SIZE(alone); i++)
		forks = forks && !strstr(text, alone[i]);
	return forks;
}

static void add_disk(struct watch_sample *s, int pid)
{
	static const char *const keys[] = { "\nread_bytes: ",
					    "\nwrite_bytes: " };
	char name[64], text[512];

	snprintf(name, sizeof(name), "/proc/%d/io", pid);
	text_of(AT_FDCWD, name, text, sizeof(text));
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const char *at = strstr(text, keys[i]);

		if (at)
			s->own_mib += strtod(at + strlen(keys[i]), NULL) /
				      (double)MIB;
	}
}

static int by_tid(const void *a, const void *b)
{
	const struct watch_thread *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

/* Adds the time that the thread waited since the last sample. Source:
 * Documentation/scheduler/sched-stats.rst of Linux, /proc/<pid>/schedstat. */
static void add_thread(struct look *l, int tasks, const char *tid)
{
	struct watch_thread t = { .tid = atoi(tid) }, *old;
	char name[48], text[128];

	snprintf(name, sizeof(name), "%.20s/schedstat", tid);
	text_of(tasks, name, text, sizeof(text));
	if (sscanf(text, "%*u %" SCNu64, &t.waited_ns) != 1 ||
	    util_reserve(&l->threads, &l->capacity, l->n_threads + 1,
			 sizeof(t)) < 0)
		return;
	l->threads[l->n_threads++] = t;
	old = l->w->n_threads ? bsearch(&t, l->w->threads, l->w->n_threads,
					sizeof(t), by_tid)
			      : NULL;
	if (old && old->waited_ns <= t.waited_ns)
		t.waited_ns -= old->waited_ns;
	l->s->waited_s += (double)t.waited_ns / NS_PER_S;
}

/* Processes beyond the size of the text are missed. */
static void add_children(struct look *l, int tasks, const char *tid)
{
	char name[48], text[4096], *at = text, *end;

	snprintf(name, sizeof(name), "%.20s/children", tid);
	text_of(tasks, name, text, sizeof(text));
	for (long pid; (pid = strtol(at, &end, 10)) > 0; at = end)
		add_pid(l, (int)pid);
}

static void look_at(struct look *l, int pid)
{
	bool forks = add_process(l->s, pid);
	const struct dirent *e;
	char path[64];
	DIR *d;

	add_disk(l->s, pid);
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		add_thread(l, dirfd(d), e->d_name);
		if (forks)
			add_children(l, dirfd(d), e->d_name);
	}
	if (d)
		closedir(d);
}

static void look_at_all(struct run_watch *w, struct watch_sample *s,
			struct child *const *children, size_t n)
{
	struct look l = { .w = w, .s = s };

	for (size_t i = 0; i < n; i++)
		if (children[i]->pid > 0)
			add_pid(&l, children[i]->pid);
	while (l.n_pids)
		look_at(&l, l.pids[--l.n_pids]);
	free(l.pids);
	free(w->threads);
	if (l.n_threads)
		qsort(l.threads, l.n_threads, sizeof(*l.threads), by_tid);
	w->threads = l.threads;
	w->n_threads = l.n_threads;
	w->capacity = l.capacity;
}

static struct watch_sample now(struct run_watch *w,
			       struct child *const *children, size_t n)
{
	struct watch_sample s = { .waited_s = w->last.waited_s };

	look_at_all(w, &s, children, n);
	add_usage(&s, RUSAGE_SELF);
	add_usage(&s, RUSAGE_CHILDREN);
	s.pressure_cpu_s = read_pressure("/proc/pressure/cpu");
	s.pressure_io_s = read_pressure("/proc/pressure/io");
	/* in KiB, what block devices read and wrote */
	s.disk_mib =
		(double)(host_vmstat("pgpgin") + host_vmstat("pgpgout")) / 1024;
	s.disk_busy_s = read_disk_busy();
	s.wall_ns = tick_wall();
	read_cpus(&s);
	return s;
}

/* --- watching --------------------------------------------------------- */

void watch_begin(struct run_watch *w, struct child *const *children, size_t n)
{
	*w = (struct run_watch){ .cpus = thread_cpus() };
	w->first = w->last = now(w, children, n);
}

void watch_look(struct run_watch *w, struct child *const *children, size_t n)
{
	struct watch_sample s = now(w, children, n);

	watch_add(w, &s);
}

void watch_fini(struct run_watch *w)
{
	free(w->threads);
	w->threads = NULL;
	w->n_threads = 0;
}
