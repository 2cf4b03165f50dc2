/* SPDX-License-Identifier: MIT */
/*
 * For `-o remount`, mount(8) calls us as for a mount, with the options of
 * fstab and of its command line. They are read on top of the configuration in
 * force, and the differences are set through the control file.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/conf/part.h"
#include "common/system/control.h"
#include "common/util.h"
#include "fs/mount/mount.h"
#include "fs/mount/mountpoint.h"

/* The configuration of the mount, overridden by the command line. */
static int load(struct mount *m, const char *config, struct options *ret,
		struct err *err)
{
	int r = options_init(ret);

	if (r == 0 && !(ret->common.config = strdup(config)))
		r = -ENOMEM;
	if (r == 0)
		r = cli_reload(&options_program, false, m->argc, m->argv, ret,
			       err);
	if (r == 0)
		r = options_absolute(ret, m->start_dir);
	return r < 0 ? err_set(err, r, "%s", strerror(-r)) : 0;
}

/* The commands that change `old` to `fresh`, malloc'ed; "": none. */
static char *commands(const json_t *old, json_t *fresh)
{
	char *text = NULL;
	const char *key;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	json_t *v;

	if (!f)
		return NULL;
	json_object_foreach (fresh, key, v)
		if (mount_is_live(key) && strcmp(key, "log_level") &&
		    !json_equal(v, json_object_get(old, key)))
			fprintf(f, "set %s %s\n", key, json_string_value(v));
	fclose(f);
	return text;
}

static int tell(const char *folder, const char *text, struct err *err)
{
	_cleanup_close_ int fd = -1;
	int r;

	if (!text)
		return err_set(err, -ENOMEM, "out of memory");
	if (!*text)
		return 0;
	fd = control_open(folder, "control", O_WRONLY);
	r = fd < 0 ? fd : 0;
	if (r == 0 && write(fd, text, strlen(text)) < 0)
		r = -errno;
	return r < 0 ? err_set(err, r,
			       "%s/control: %s; see the log of the mount",
			       folder, strerror(-r))
		     : 0;
}

static int remount(struct mount *m, const char *dir, struct err *err)
{
	_cleanup_free_ char *config = NULL, *folder = NULL, *text = NULL;
	struct options now = { 0 }, fresh = { 0 };
	json_auto_t *a = NULL, *b = NULL;
	int r = 0;

	if (asprintf(&folder, "%s/" CTL_DIR_NAME, dir) < 0 ||
	    asprintf(&config, "%s/config", folder) < 0)
		return err_set(err, -ENOMEM, "out of memory");
	/* whose mount it is does not matter: its text opens no part */
	part_files_keep(true);
	r = options_init(&now);
	if (r == 0)
		r = conf_load(config, options_program.fields, &now, err);
	if (r == 0)
		r = load(m, config, &fresh, err);
	part_files_keep(false);
	if (r == 0) {
		a = conf_json(options_program.fields, &now);
		b = conf_json(options_program.fields, &fresh);
		text = a && b ? commands(a, b) : NULL;
		r = tell(folder, text, err);
	}
	if (r == 0) {
		json_object_del(a, "mount_options");
		json_object_del(b, "mount_options");
		mount_report_fixed(a, b, "remount");
	}
	options_fini(&now);
	options_fini(&fresh);
	return r < 0 ? err_set(err, r, "%s", strerror(-r)) : 0;
}

int mount_remount(struct mount *m, const char *mountpoint)
{
	_cleanup_free_ char *dir = NULL;
	struct err err = { 0 };
	int r = 0;

	m->start_dir = getcwd(NULL, 0);
	if (!m->start_dir)
		r = err_set(&err, -errno, "%s", strerror(errno));
	if (r == 0)
		r = mountpoint_running(mountpoint, &dir, &err);
	if (r == 0)
		r = remount(m, dir, &err);
	return r < 0 ? cli_fail(r, &err) : EXIT_STATUS_DONE;
}
