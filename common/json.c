/* SPDX-License-Identifier: MIT */
#include "common/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/replace.h"
#include "common/util.h"
#include "common/version.h"

/* 12 digits: ns in an hour; shorter than the 17 that doubles can carry. */
#define FLAGS (JSON_INDENT(2) | JSON_REAL_PRECISION(12))

static int write_to(const json_t *j, FILE *f)
{
	if (json_dumpf(j, f, FLAGS) < 0 || fputc('\n', f) == EOF || fflush(f))
		return errno ? -errno : -EIO;
	return 0;
}

/* Paths that must be written in place: /dev/null, /dev/stdout. The latter is a
 * link; a link of another user is not followed but replaced. */
static bool is_special(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return false;
	if (S_ISLNK(st.st_mode))
		return util_follows(st.st_uid);
	return !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

int json_check(const char *path, struct err *err)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *dir =
		slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");

	if (!dir)
		return err_set(err, -ENOMEM, "out of memory");
	if (strcmp(path, "-") && !is_special(path) && access(dir, W_OK) < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	return 0;
}

static int write_special(const json_t *j, const char *path, struct err *err)
{
	_cleanup_fclose_ FILE *f = NULL;
	int r = util_output_stream(path, O_CREAT | O_TRUNC, &f);

	if (r == 0)
		r = write_to(j, f);
	return r < 0 ? err_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

int json_replace(const json_t *j, const char *path, struct err *err)
{
	_cleanup_fclose_ FILE *f = NULL;
	struct replace file;
	int r = replace_begin_stream(&file, path, &f);

	if (r == 0)
		r = replace_end(&file, write_to(j, f));
	return r < 0 ? err_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

int json_write(const json_t *j, const char *path, struct err *err)
{
	int r;

	if (!strcmp(path, "-")) {
		r = write_to(j, stdout);
		return r < 0 ? err_set(err, r, "stdout: %s", strerror(-r)) : 0;
	}
	return is_special(path) ? write_special(j, path, err)
				: json_replace(j, path, err);
}

json_t *json_bytes(const char *bytes)
{
	_cleanup_free_ char *text = NULL;
	json_t *j = json_string(bytes);
	char *to;

	if (j || !bytes)
		return j;
	to = text = malloc(strlen("\\xHH") * strlen(bytes) + 1);
	if (!text)
		return NULL;
	while (*bytes) {
		size_t n = util_utf8(bytes);

		if (n == 0)
			to += sprintf(to, "\\x%02x", (unsigned char)*bytes++);
		else if (*bytes == '\\')
			*to++ = '\\';
		for (; n; n--)
			*to++ = *bytes++;
	}
	return json_stringn(text, (size_t)(to - text));
}

void json_put_yaml(FILE *f, const char *key, const char *text)
{
	json_auto_t *j = json_bytes(text);

	fprintf(f, "%s: ", key);
	if (j)
		json_dumpf(j, f, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
	fputc('\n', f);
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

const char *json_get_text(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s ? s : "";
}

double json_get_number(const json_t *j, const char *key)
{
	return json_number_value(json_object_get(j, key));
}

void json_add_integer(json_t *j, const char *key, uint64_t value)
{
	json_object_set_new(j, key, json_integer((json_int_t)value));
}

void json_add_real(json_t *j, const char *key, double value)
{
	json_object_set_new(j, key, json_real(value));
}

void json_add_text(json_t *j, const char *key, const char *value)
{
	json_object_set_new(j, key, json_string(value));
}

json_t *json_version(void)
{
	return json_pack("{s:s, s:s}", "version", GPEMU_RELEASE, "git",
			 GPEMU_VERSION);
}

int json_read(const char *path, json_t **ret, struct err *err)
{
	struct stat st;
	int fd = util_open_file(AT_FDCWD, path, 0, &st);
	_cleanup_fclose_ FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	json_error_t je;

	if (fd < 0)
		return err_set(err, fd, "%s: %s", path, strerror(-fd));
	if (!f) {
		close(fd);
		return err_set(err, -ENOMEM, "out of memory");
	}
	*ret = json_loadf(f, JSON_REJECT_DUPLICATES, &je);
	if (!*ret)
		return err_set(err, -EINVAL, "%s:%d:%d: %s", path, je.line,
			       je.column, je.text);
	return 0;
}
