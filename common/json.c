/* SPDX-License-Identifier: MIT */
#include "common/json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"

/* 12 digits: ns in an hour; shorter than the 17 that doubles can carry. */
#define FLAGS (JSON_INDENT(2) | JSON_REAL_PRECISION(12))

static int write_to(const json_t *j, FILE *f)
{
	if (json_dumpf(j, f, FLAGS) < 0 || fputc('\n', f) == EOF || fflush(f))
		return errno ? -errno : -EIO;
	return 0;
}

int json_write(const json_t *j, const char *path, struct err *err)
{
	_cleanup_free_ char *beside = NULL;
	_cleanup_fclose_ FILE *f = NULL;
	int r;

	if (!strcmp(path, "-")) {
		r = write_to(j, stdout);
		return r < 0 ? err_set(err, r, "stdout: %s", strerror(-r)) : 0;
	}
	if (asprintf(&beside, "%s.%d.tmp", path, (int)getpid()) < 0)
		return -ENOMEM;
	f = fopen(beside, "we");
	if (!f)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	r = write_to(j, f);
	if (r == 0 && rename(beside, path) < 0)
		r = -errno;
	if (r < 0) {
		unlink(beside);
		return err_set(err, r, "%s: %s", path, strerror(-r));
	}
	return 0;
}

char *json_text(const json_t *j)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	int r = f ? write_to(j, f) : -ENOMEM;

	if (f && (fclose(f) != 0 || r < 0)) {
		free(text);
		text = NULL;
	}
	return text;
}

int json_read(const char *path, json_t **ret, struct err *err)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	json_error_t je;

	if (!f)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	*ret = json_loadf(f, JSON_REJECT_DUPLICATES, &je);
	if (!*ret)
		return err_set(err, -EINVAL, "%s:%d:%d: %s", path, je.line,
			       je.column, je.text);
	return 0;
}
