/* SPDX-License-Identifier: MIT */
#include "runner/run/run_warm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/system/memory.h"
#include "common/system/walk.h"
#include "common/units.h"
#include "common/util.h"

enum { CHUNK = 1 << 20 };

struct warming {
	char *buf; /* NULL: only add up */
	uint64_t bytes;
	struct stop *stop;
	int dirfd;
};

/* Its bytes; read errors are left to the mount. */
static uint64_t read_file(int dirfd, const char *path, char *buf)
{
	struct stat st;
	_cleanup_close_ int fd = util_open_file(dirfd, path, O_NOFOLLOW, &st);
	uint64_t bytes = 0;
	ssize_t n;

	while (fd >= 0 && (n = read(fd, buf, CHUNK)) > 0)
		bytes += (uint64_t)n;
	return bytes;
}

static int warm_file(void *ctx, const char *path, const struct walk_entry *e,
		     struct err *err)
{
	struct warming *w = ctx;

	(void)err;
	if (S_ISREG(e->mode))
		w->bytes += w->buf ? read_file(w->dirfd, path, w->buf)
				   : e->bytes;
	return stop_came(w->stop) ? -EINTR : 0;
}

/* Sum the bytes of all files; with a buffer also read them. */
static int warm_tree(struct warming *w, char *buf, struct err *err)
{
	struct walk walk = { .flags = WALK_HIDDEN | WALK_FILES | WALK_FOLLOW,
			     .ctx = w,
			     .file = warm_file };

	int r;

	w->buf = buf;
	w->bytes = 0;
	r = walk_tree(&walk, w->dirfd, "", err);
	if (r != -ELOOP)
		return r;
	/* the mount does not follow a loop, either */
	if (err)
		*err = (struct err){ 0 };
	walk.flags &= ~(unsigned)WALK_FOLLOW;
	w->bytes = 0;
	return walk_tree(&walk, w->dirfd, "", err);
}

int warm_folder(const char *folder, struct stop *stop, struct err *err)
{
	uint64_t memory = memory_limit();
	_cleanup_free_ char *buf = malloc(CHUNK);
	_cleanup_close_ int fd =
		open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct warming w = { .stop = stop, .dirfd = fd };
	char size[UNITS_TEXT];
	int r = fd < 0 ? -errno : buf ? warm_tree(&w, NULL, err) : -ENOMEM;

	if (r == 0 && w.bytes > memory / 2) {
		log_warn("%s: %s do not fit into the page cache: where the "
			 "real device is slower than the emulated one, its "
			 "time counts",
			 folder, units_human_size((double)w.bytes, size));
		return 0;
	}
	if (r == 0)
		r = warm_tree(&w, buf, err);
	if (r < 0 && r != -EINTR) {
		err_set(err, r, "%s", strerror(-r));
		err_prefix(err, "%s", folder);
	}
	return r;
}
