/* SPDX-License-Identifier: MIT */
#include "s3/proto/keys.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "net/seal.h"

/* arbitrary: some hundred pairs */
enum { MOST_FILE = 64 * 1024 };

static int add_key(struct keys *k, const char *id, const char *secret)
{
	struct key *v = reallocarray(k->v, k->n + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	k->v = v;
	v[k->n] = (struct key){ strdup(id), strdup(secret) };
	k->n++;
	return v[k->n - 1].id && v[k->n - 1].secret ? 0 : -ENOMEM;
}

struct reader {
	const char *name, *id, *secret; /* of the present section */
	unsigned line;
};

static int complain(const struct reader *r, const char *line, const char *at,
		    const char *what, struct err *err)
{
	return err_set(err, -EINVAL, "%s:%u:%d: %s", r->name, r->line,
		       (int)(at - line) + 1, what);
}

/* The section is complete. */
static int end_section(struct reader *r, struct keys *k, struct err *err)
{
	int e = 0;

	if (!r->id != !r->secret)
		return complain(r, "", "",
				"a section needs aws_access_key_id and "
				"aws_secret_access_key",
				err);
	if (r->id)
		e = add_key(k, r->id, r->secret);
	r->id = r->secret = NULL;
	return e < 0 ? err_set(err, e, "out of memory") : 0;
}

static int read_line(struct reader *r, char *line, struct keys *k,
		     struct err *err)
{
	char *word = line + strspn(line, " \t"), *value = strchr(word, '=');
	const char **into = NULL;

	if (!*word || *word == '#' || *word == ';')
		return 0;
	if (*word == '[')
		return end_section(r, k, err);
	if (!value)
		return complain(r, line, word, "expected KEY = VALUE", err);
	*value++ = 0;
	value = util_trim(value);
	if (!strcmp(util_trim(word), "aws_access_key_id"))
		into = &r->id;
	else if (!strcmp(util_trim(word), "aws_secret_access_key"))
		into = &r->secret;
	if (!into) /* region, output, ...: of other programs */
		return 0;
	if (!*value || *into)
		return complain(r, line, value,
				*value ? "given twice" : "expected a value",
				err);
	*into = value;
	return 0;
}

int keys_parse(char *text, size_t n, const char *name, struct keys *ret,
	       struct err *err)
{
	struct reader reader = { .name = name };
	char *at = text, *end = text + n;
	int r = 0;

	if (memchr(text, 0, n))
		return err_set(err, -EINVAL, "%s: contains a NUL", name);
	while (r == 0 && at < end) {
		char *newline = memchr(at, '\n', (size_t)(end - at));

		*(newline ? newline : end) = 0;
		reader.line++;
		r = read_line(&reader, at, ret, err);
		at = newline ? newline + 1 : end;
	}
	if (r == 0)
		r = end_section(&reader, ret, err);
	if (r == 0 && !ret->n)
		r = err_set(err, -EINVAL,
			    "%s: contains no aws_access_key_id and "
			    "aws_secret_access_key",
			    name);
	return r;
}

int keys_read(const char *path, struct keys *ret, struct err *err)
{
	char *text = malloc(MOST_FILE + 1);
	ssize_t n = text ? key_file_read(path, text, MOST_FILE, err) : -ENOMEM;
	int r = (int)n;

	if (n == MOST_FILE)
		r = err_set(err, -EINVAL, "%s: too large for a file of keys",
			    path);
	else if (n >= 0)
		r = keys_parse(text, (size_t)n, path, ret, err);
	if (text)
		sodium_memzero(text, MOST_FILE);
	free(text);
	return r;
}

int keys_of_environment(struct keys *ret)
{
	const char *id = secure_getenv("AWS_ACCESS_KEY_ID"),
		   *secret = secure_getenv("AWS_SECRET_ACCESS_KEY");

	return id && *id && secret && *secret ? add_key(ret, id, secret) : 0;
}

void keys_fini(struct keys *k)
{
	for (size_t i = 0; i < k->n; i++) {
		if (k->v[i].secret)
			sodium_memzero(k->v[i].secret, strlen(k->v[i].secret));
		free(k->v[i].secret);
		free(k->v[i].id);
	}
	free(k->v);
	*k = (struct keys){ 0 };
}

const char *keys_find(const struct keys *k, const char *id)
{
	for (size_t i = 0; i < k->n; i++)
		if (!strcmp(k->v[i].id, id))
			return k->v[i].secret;
	return NULL;
}
