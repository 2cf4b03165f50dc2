/* SPDX-License-Identifier: MIT */
#include "sched/live/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/log.h"
#include "common/system/control.h"
#include "common/util.h"
#include "sched/live/argv.h"

/* A descriptor, or -errno. */
static int open_file(const struct live *l, uint32_t which, const char *name,
		     int flags)
{
	_cleanup_free_ char *mount = argv_words(l, which, l->c.mount);
	_cleanup_free_ char *dir = NULL;

	if (!mount || asprintf(&dir, "%s/.gpemu", mount) < 0)
		return -ENOMEM;
	return control_open(dir, name, flags);
}

int mount_tell(struct live *l, uint32_t which, const char *what,
	       const char *commands)
{
	_cleanup_close_ int fd = open_file(l, which, "control", O_WRONLY);
	int r = MIN(fd, 0);

	if (r == 0 && write(fd, commands, strlen(commands)) < 0)
		r = -errno;
	if (r == 0)
		return 0;
	progress_end(&l->bar);
	log_warn("job %s: its %s could not be changed: %s", l->jobs[which].name,
		 what,
		 r == -ENODEV ? "no gpemu-fs is mounted there" : strerror(-r));
	return r;
}

int mount_counts(const struct live *l, uint32_t which, uint64_t *ret_hits,
		 uint64_t *ret_misses)
{
	_cleanup_close_ int fd = open_file(l, which, "stats", O_RDONLY);
	json_auto_t *j = fd < 0 ? NULL : json_loadfd(fd, 0, NULL);
	json_int_t hits, misses;

	if (fd < 0)
		return fd;
	if (json_unpack(j, "{s:I,s:I}", "hit_bytes", &hits, "miss_bytes",
			&misses) < 0)
		return -EBADMSG;
	*ret_hits = (uint64_t)hits;
	*ret_misses = (uint64_t)misses;
	return 0;
}
