/* SPDX-License-Identifier: MIT */
#include "s3/proto/target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/percent.h"
#include "common/util.h"

/* arbitrary: a request of S3 has a dozen */
enum { MOST_ARGS = 64 };

/* In an argument a plus is a space. NULL: broken, or no memory. */
static char *decode(const char *s, size_t n, bool plus)
{
	_cleanup_free_ char *copy = strndup(s, n);

	return copy && percent_decode(copy, plus) ? TAKE_PTR(copy) : NULL;
}

static int add_arg(struct target *t, const char *s, size_t n)
{
	const char *equals = memchr(s, '=', n);
	size_t n_name = equals ? (size_t)(equals - s) : n;
	struct target_arg a;

	if (!n)
		return 0;
	if (t->n_args == MOST_ARGS)
		return -EINVAL;
	a.name = decode(s, n_name, true);
	a.value = equals ? decode(equals + 1, n - n_name - 1, true)
			 : strdup("");
	t->args[t->n_args++] = a;
	return a.name && a.value ? 0 : -EINVAL;
}

int target_parse(const char *raw, struct target *ret)
{
	size_t n = strcspn(raw, "?");
	const char *at = raw[n] ? raw + n + 1 : raw + n;
	int r = 0;

	*ret = (struct target){ 0 };
	if (raw[0] != '/')
		return -EINVAL;
	ret->args = calloc(MOST_ARGS, sizeof(*ret->args));
	if (!ret->args)
		return -ENOMEM;
	ret->path = decode(raw, n, false);
	if (!ret->path)
		return -EINVAL;
	while (r == 0 && *at) {
		n = strcspn(at, "&");
		r = add_arg(ret, at, n);
		at += at[n] ? n + 1 : n;
	}
	return r;
}

void target_fini(struct target *t)
{
	for (size_t i = 0; i < t->n_args; i++) {
		free(t->args[i].name);
		free(t->args[i].value);
	}
	free(t->args);
	free(t->path);
	*t = (struct target){ 0 };
}

const char *target_arg(const struct target *t, const char *name)
{
	for (size_t i = 0; i < t->n_args; i++)
		if (!strcmp(t->args[i].name, name))
			return t->args[i].value;
	return NULL;
}

const char *target_arg_or(const struct target *t, const char *name,
			  const char *otherwise)
{
	const char *value = target_arg(t, name);

	return value ? value : otherwise;
}

bool target_decimal(const char *text, uint64_t most, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno && *ret <= most;
}

bool target_number(const struct target *t, const char *name, uint64_t most,
		   uint64_t otherwise, uint64_t *ret)
{
	const char *text = target_arg(t, name);

	*ret = otherwise;
	return !text || target_decimal(text, most, ret);
}
