/* SPDX-License-Identifier: MIT */
#include "runner/run/run_remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"

/* Each level holds a descriptor. arbitrary: ours have three */
enum { MOST_LEVELS = 100 };

static bool is_dot(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

static void empty(int at, const char *name, dev_t device, int level);

static void remove_at(int at, const char *name, dev_t device, int level)
{
	if (unlinkat(at, name, 0) == 0 || errno != EISDIR)
		return;
	empty(at, name, device, level);
	unlinkat(at, name, AT_REMOVEDIR);
}

static void empty(int at, const char *name, dev_t device, int level)
{
	_cleanup_close_ int fd = openat(
		at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct dirent *entry;
	struct stat st;
	DIR *d;

	if (fd < 0 || level == MOST_LEVELS || fstat(fd, &st) < 0 ||
	    st.st_dev != device || !(d = fdopendir(fd)))
		return;
	while ((entry = readdir(d)))
		if (!is_dot(entry->d_name))
			remove_at(fd, entry->d_name, device, level + 1);
	fd = -1;
	closedir(d);
}

void run_remove(const char *path)
{
	struct stat st;

	if (lstat(path, &st) == 0)
		remove_at(AT_FDCWD, path, st.st_dev, 0);
}
