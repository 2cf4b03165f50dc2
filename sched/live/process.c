/* SPDX-License-Identifier: MIT */
#include "sched/live/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/program/commands.h"
#include "common/replace.h"
#include "common/tick.h"
#include "common/util.h"

enum { BYTE_JOB, BYTE_KEEPER };

static struct flock keeper_lock(void)
{
	return (struct flock){ .l_type = F_WRLCK,
			       .l_whence = SEEK_SET,
			       .l_start = BYTE_KEEPER,
			       .l_len = 1 };
}

/* --- the keeper ----------------------------------------------------------- */

struct keeping {
	const struct process_start *s;
	int lock_fd, log_fd;
	int control_fd; /* -1: none */
};

/* RUN STATUS REAL_NS */
static int write_end(const struct keeping *k, int status)
{
	_cleanup_free_ char *path = util_join(k->s->folder, "exit");
	struct replace file;
	FILE *f;
	int r = path ? replace_begin_stream(&file, path, &f) : -ENOMEM;

	if (r < 0)
		return r;
	fprintf(f, "%" PRIu32 " %d %" PRId64 "\n", k->s->run, status,
		tick_realtime());
	return replace_end_stream(&file, f);
}

static int compare_fds(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* A pipe or a terminal must not wait for a process that outlives the
 * scheduler; nor the program have what the keeper waits on. The FIFO becomes
 * its stdin, which it does not read. */
static int leave_files(const struct keeping *k)
{
	int kept[] = { k->s->turns_fd, k->lock_fd, k->s->stop->fd };
	int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int in_fd = k->control_fd < 0 ? null_fd : k->control_fd;
	unsigned from = 3;

	if (null_fd < 0 || dup2(in_fd, 0) < 0 || dup2(k->log_fd, 1) < 0 ||
	    dup2(k->log_fd, 2) < 0)
		return -errno;
	qsort(kept, ARRAY_SIZE(kept), sizeof(*kept), compare_fds);
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		unsigned fd = (unsigned)kept[i];

		if (kept[i] < 3)
			continue;
		if (fd > from && close_range(from, fd - 1, 0) < 0)
			return -errno;
		from = fd + 1;
	}
	return close_range(from, ~0u, 0) < 0 ? -errno : 0;
}

static int keep_job(void *ctx)
{
	const struct keeping *k = ctx;
	struct flock own = keeper_lock();
	struct err err = { 0 };
	struct child child;
	int status = 127, r;

	prctl(PR_SET_PDEATHSIG, 0);
	prctl(PR_SET_NAME, "gpemu-keeper");
	if (leave_files(k) < 0 || fcntl(k->lock_fd, F_SETLK, &own) < 0 ||
	    fcntl(k->lock_fd, F_SETFD, 0) < 0 ||
	    (k->s->turns_fd >= 0 && fcntl(k->s->turns_fd, F_SETFD, 0) < 0))
		return 1;
	r = child_start(&child, k->s->argv, NULL, 1, 2, &err);
	if (r < 0)
		dprintf(2, "%s\n", err.text);
	else if (child_wait(&child, k->s->stop, 0, &status) == -EINTR)
		status = child_end(&child, k->s->grace_ns);
	return write_end(k, status) < 0;
}

/* --- the scheduler's side ------------------------------------------------- */

static int open_in(const char *folder, const char *name, int flags, mode_t mode,
		   struct err *err)
{
	_cleanup_free_ char *path = util_join(folder, name);
	int fd = path ? open(path, flags | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
			     mode)
		      : -1;

	return fd < 0 ? err_set(err, path ? -errno : -ENOMEM, "%s/%s: %s",
				folder, name, strerror(errno))
		      : fd;
}

int process_start(struct process *p, const struct process_start *s,
		  struct err *err)
{
	_cleanup_close_ int lock_fd = -1, log_fd = -1, control_fd = -1;
	struct keeping k = { .s = s };
	struct child child;
	int r;

	if (mkdir(s->folder, 0755) < 0 && errno != EEXIST)
		return err_set(err, -errno, "%s: %s", s->folder,
			       strerror(errno));
	/* who may read a file can lock it */
	lock_fd = open_in(s->folder, "lock", O_RDWR, 0600, err);
	if (lock_fd < 0)
		return lock_fd;
	log_fd = open_in(s->folder, "log", O_WRONLY | O_APPEND, 0666, err);
	if (log_fd < 0)
		return log_fd;
	if (util_lock_byte(lock_fd, BYTE_JOB, F_WRLCK) < 0)
		return err_set(err, -EBUSY, "%s: the job runs already",
			       s->folder);
	if (s->control) {
		control_fd = commands_open(s->control, err);
		if (control_fd < 0)
			return control_fd;
	}
	k.lock_fd = lock_fd;
	k.log_fd = log_fd;
	k.control_fd = control_fd;
	r = child_fork(&child, keep_job, &k, err);
	if (r < 0)
		return r;
	p->state = PROCESS_RUNS;
	p->pidfd = child.pidfd;
	return 0;
}

/* The keeper by its lock, which is no other's with the same pid: it still has
 * it once there is a descriptor of the process. */
static int find_keeper(int lock_fd)
{
	struct flock own = keeper_lock(), again = own;
	_cleanup_close_ int pidfd = -1;

	if (fcntl(lock_fd, F_GETLK, &own) < 0 || own.l_type == F_UNLCK ||
	    own.l_pid <= 0)
		return -1;
	pidfd = pidfd_open(own.l_pid, 0);
	if (pidfd < 0 || fcntl(lock_fd, F_GETLK, &again) < 0 ||
	    again.l_type == F_UNLCK || again.l_pid != own.l_pid)
		return -1;
	return TAKE_FD(pidfd);
}

int process_look(struct process *p, const char *folder, struct err *err)
{
	_cleanup_free_ char *path = util_join(folder, "lock");
	_cleanup_close_ int fd = -1;
	int r;

	if (p->pidfd >= 0) /* fails for a keeper of another scheduler */
		waitid(P_PIDFD, (id_t)p->pidfd, &(siginfo_t){ 0 },
		       WEXITED | WNOHANG);
	process_forget(p);
	if (!path)
		return err_set(err, -ENOMEM, "out of memory");
	fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return 0;
	r = fd < 0 ? -errno : util_byte_is_locked(fd, BYTE_JOB);
	if (r < 0)
		return err_set(err, r, "%s: %s", path, strerror(-r));
	if (!r)
		return 0;
	p->pidfd = find_keeper(fd);
	p->state = p->pidfd < 0 ? PROCESS_UNKNOWN : PROCESS_RUNS;
	return 0;
}

void process_stop(const struct process *p)
{
	if (p->pidfd >= 0)
		pidfd_send_signal(p->pidfd, SIGTERM, NULL, 0);
}

/* Does /proc/PID/fdinfo/FD say that the descriptor holds a lock? */
static bool has_lock(int process, const char *fd)
{
	char path[40], text[1024];
	_cleanup_close_ int info = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "fdinfo/%.20s", fd);
	info = openat(process, path, O_RDONLY | O_CLOEXEC);
	n = info < 0 ? -1 : util_read_all(info, text, sizeof(text) - 1, 0);
	if (n < 0)
		return false;
	text[n] = 0;
	return strstr(text, "OFDLCK");
}

/* Does a process, by its folder in /proc, hold the lock in this file? Files are
 * told apart by their names, as a look at one could wait for its storage. */
static bool holds(int process, const char *path)
{
	int fds = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fds < 0 ? NULL : fdopendir(fds);
	const struct dirent *e;
	bool found = false;

	while (dir && !found && (e = readdir(dir))) {
		char target[PATH_MAX];
		ssize_t n = readlinkat(fds, e->d_name, target, sizeof(target));

		found = n == (ssize_t)strlen(path) &&
			!memcmp(target, path, (size_t)n) &&
			has_lock(process, e->d_name);
	}
	if (dir)
		closedir(dir);
	else
		util_closep(&fds);
	return found;
}

/* The process that has this pid, if it holds the lock: its folder in /proc is
 * of the same process as the pidfd if it is still there after that. */
static void kill_holder(int proc, const char *pid, const char *path)
{
	_cleanup_close_ int process =
		openat(proc, pid, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int pidfd = -1;

	if (process < 0 || !holds(process, path))
		return;
	pidfd = pidfd_open(atoi(pid), 0);
	if (pidfd >= 0 && holds(process, path))
		pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
}

void process_kill(const char *folder)
{
	_cleanup_free_ char *path = util_join(folder, "lock");
	_cleanup_free_ char *real = path ? realpath(path, NULL) : NULL;
	DIR *proc = real ? opendir("/proc") : NULL;
	const struct dirent *e;

	while (proc && (e = readdir(proc)))
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
			kill_holder(dirfd(proc), e->d_name, real);
	if (proc)
		closedir(proc);
}

void process_forget(struct process *p)
{
	util_closep(&p->pidfd);
	*p = (struct process){ .pidfd = -1 };
}

int process_read_end(const char *folder, struct process_end *ret)
{
	_cleanup_free_ char *path = util_join(folder, "exit"), *text = NULL;
	size_t n;
	int r = path ? util_read_file(path, 100, &text, &n) : -ENOMEM;
	int used = 0;

	if (r < 0)
		return r;
	if (sscanf(text, "%9" SCNu32 " %3d %19" SCNd64 "\n%n", &ret->run,
		   &ret->status, &ret->real_ns, &used) != 3 ||
	    (size_t)used != n || ret->status < 0)
		return -EBADMSG;
	return 0;
}

void process_last_line(const char *folder, char ret[PROCESS_LINE])
{
	_cleanup_free_ char *path = util_join(folder, "log");
	_cleanup_close_ int fd = -1;
	char text[PROCESS_LINE], *line;
	struct stat st;
	ssize_t n;

	*ret = 0;
	fd = path ? open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	n = util_read_all(fd, text, sizeof(text) - 1,
			  st.st_size > (off_t)sizeof(text)
				  ? st.st_size - (off_t)sizeof(text) + 1
				  : 0);
	while (n > 0 && text[n - 1] == '\n')
		n--;
	if (n <= 0)
		return;
	text[n] = 0;
	line = strrchr(text, '\n');
	snprintf(ret, PROCESS_LINE, "%s", line ? line + 1 : text);
}
