/* SPDX-License-Identifier: MIT */
#include "runner/run/run_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <xxhash.h>

#include "common/util.h"

/* arbitrary: the child has nothing to save */
#define GRACE_NS 1000000000ULL

/* Cells have the bytes from 1, machines those from 2^62 + 1. */
uint64_t lock_of_cell(const char *id)
{
	return 1 + (XXH3_64bits(id, strlen(id)) >> 2);
}

uint64_t lock_of_machine(void)
{
	_cleanup_free_ char *boot = NULL;
	struct utsname about = { 0 };
	size_t n = 0;
	uint64_t hash;

	if (util_read_file("/proc/sys/kernel/random/boot_id", 100, &boot, &n) ==
	    0) {
		hash = XXH3_64bits(boot, n);
	} else {
		uname(&about);
		hash = XXH3_64bits(about.nodename, strlen(about.nodename));
	}
	return (UINT64_C(1) << 62) + 1 + (hash >> 2);
}

int lock_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);

	return fd < 0 ? -errno : fd;
}

int lock_open_shared(const char *path)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int lock_error(const char *path, int code, struct err *err)
{
	struct stat st;

	if (code != -EACCES || stat(path, &st) < 0)
		return err_set(err, code, "%s: %s", path, strerror(-code));
	return err_set(err, code, "%s: %s (it belongs to user %u)", path,
		       strerror(-code), (unsigned)st.st_uid);
}

int lock_try(int fd, uint64_t byte, bool shared)
{
	return util_lock_byte(fd, byte, shared ? F_RDLCK : F_WRLCK);
}

void lock_drop(int fd, uint64_t byte)
{
	util_lock_byte(fd, byte, F_UNLCK);
}

struct waiting {
	const char *path;
	uint64_t byte;
};

/* In a process of its own; its exit status is an errno. */
static int wait_for(void *ctx)
{
	const struct waiting *w = ctx;
	short type = F_WRLCK;
	sigset_t all;
	int fd;

	/* the parent blocks the signals that shall end this process */
	sigfillset(&all);
	sigprocmask(SIG_UNBLOCK, &all, NULL);
	fd = lock_open(w->path);
	if (fd == -EACCES) {
		fd = lock_open_shared(w->path);
		type = F_RDLCK;
	}
	return fd < 0 ? -fd : -util_lock_byte_wait(fd, w->byte, type);
}

int lock_wait(const char *path, uint64_t byte, struct stop *stop,
	      struct err *err)
{
	struct waiting w = { .path = path, .byte = byte };
	struct child child;
	int status = 0;
	int code = child_fork(&child, wait_for, &w, err);

	if (code < 0)
		return code;
	code = child_wait(&child, stop, 0, &status);
	child_end(&child, GRACE_NS);
	if (code == 0 && status)
		code = -status;
	return code < 0 && code != -EINTR ? lock_error(path, code, err) : code;
}
