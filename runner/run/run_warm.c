/* SPDX-License-Identifier: MIT */
#include "runner/run/run_warm.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/system/memory.h"
#include "common/units.h"
#include "common/util.h"

enum { CHUNK = 1 << 20 };

/* Its bytes; what cannot be read the mount will say. */
static uint64_t read_file(const char *path, char *buf)
{
	struct stat st;
	_cleanup_close_ int fd = util_open_file(AT_FDCWD, path, 0, &st);
	uint64_t bytes = 0;
	ssize_t n;

	while (fd >= 0 && (n = read(fd, buf, CHUNK)) > 0)
		bytes += (uint64_t)n;
	return bytes;
}

/* The bytes of all files, or, with a buffer, read them. */
static int walk(const char *folder, char *buf, struct stop *stop,
		uint64_t *ret_bytes)
{
	char *const paths[] = { (char *)folder, NULL };
	FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	FTSENT *e;
	int r = fts ? 0 : -errno;

	*ret_bytes = 0;
	while (r == 0 && (e = fts_read(fts))) {
		if (e->fts_info == FTS_F)
			*ret_bytes += buf ? read_file(e->fts_accpath, buf)
					  : (uint64_t)e->fts_statp->st_size;
		if (stop_came(stop))
			r = -EINTR;
	}
	if (fts)
		fts_close(fts);
	return r;
}

int warm_folder(const char *folder, struct stop *stop, struct err *err)
{
	uint64_t memory = memory_limit();
	_cleanup_free_ char *buf = malloc(CHUNK);
	uint64_t bytes = 0;
	char size[UNITS_TEXT];
	int r = buf ? walk(folder, NULL, stop, &bytes) : -ENOMEM;

	if (r == 0 && bytes > memory / 2) {
		log_warn("%s: %s are too many for the page cache: reads of the "
			 "real device count where they are slower than those "
			 "of the emulated one",
			 folder, units_human_size((double)bytes, size));
		return 0;
	}
	if (r == 0)
		r = walk(folder, buf, stop, &bytes);
	return r < 0 ? err_set(err, r, "%s: %s", folder, strerror(-r)) : 0;
}
