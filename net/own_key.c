/* SPDX-License-Identifier: MIT */
#include "net/own_key.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/replace.h"
#include "common/util.h"

static const char advice[] =
	"set XDG_CONFIG_HOME to a folder of your own, or give the programs a "
	"key file";

/* sudo and su may leave the home of another user, who could not read what root
 * makes there. */
static bool is_own(const char *dir)
{
	struct stat st;

	return dir && dir[0] == '/' && stat(dir, &st) == 0 &&
	       st.st_uid == geteuid();
}

/* The folder of configurations; NULL: none, or no memory. */
static char *config_home(void)
{
	const char *config = secure_getenv("XDG_CONFIG_HOME"),
		   *home = secure_getenv("HOME");
	const struct passwd *p;
	char *ret;

	if (config && config[0] == '/')
		return strdup(config);
	if (!is_own(home)) {
		p = getpwuid(geteuid());
		home = p && is_own(p->pw_dir) ? p->pw_dir : NULL;
	}
	if (!home || asprintf(&ret, "%s/.config", home) < 0)
		return NULL;
	return ret;
}

static int make_folder(const char *path)
{
	/* the mode of the XDG base directory specification */
	return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

/* Complete when it has its name. Of several programs that make one the first
 * counts. */
static int make_key(const char *path)
{
	struct seal_key key;
	struct replace file;
	int fd = replace_begin(&file, AT_FDCWD, path, 0600), r;

	if (fd < 0)
		return fd;
	seal_draw(&key);
	r = util_write_all(fd, key.bytes, sizeof(key.bytes));
	seal_forget(&key, sizeof(key));
	if (r == 0 && linkat(AT_FDCWD, file.beside, AT_FDCWD, path, 0) < 0 &&
	    errno != EEXIST)
		r = -errno;
	close(fd);
	replace_end(&file, -ECANCELED);
	return r;
}

int own_key_read(struct seal_secret *ret, struct err *err)
{
	_cleanup_free_ char *home = config_home(), *dir = NULL, *path = NULL;
	int r = 0;

	if (!home)
		return err_set(err, -ENOENT, "no home folder for a key: %s",
			       advice);
	dir = util_text("%s/gpemu", home);
	if (!dir || asprintf(&path, "%s/key", dir) < 0) {
		path = NULL;
		return err_set(err, -ENOMEM, "out of memory");
	}
	if (access(path, F_OK) < 0) {
		r = make_folder(home);
		if (r == 0)
			r = make_folder(dir);
		if (r == 0)
			r = make_key(path);
	}
	if (r < 0)
		return err_set(err, r, "%s: %s: %s", path, strerror(-r),
			       advice);
	return seal_read_secret(path, ret, err);
}
