/* SPDX-License-Identifier: MIT */
#include "s3/proto/target.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* arbitrary: a request of S3 has a dozen */
enum { MOST_ARGS = 64 };

static int digit(char c)
{
	if (!isxdigit((unsigned char)c))
		return -1;
	return c <= '9' ? c - '0' : (c | 32) - 'a' + 10;
}

/* In an argument a plus is a space. NULL: broken, or no memory. */
static char *decode(const char *s, size_t n, bool plus)
{
	char *ret = malloc(n + 1), *out = ret;

	for (size_t i = 0; ret && i < n; i++) {
		int high, low;

		if (s[i] != '%') {
			*out++ = plus && s[i] == '+' ? ' ' : s[i];
			continue;
		}
		high = i + 2 < n ? digit(s[i + 1]) : -1;
		low = i + 2 < n ? digit(s[i + 2]) : -1;
		if (high < 0 || low < 0 || !(high | low)) {
			free(ret);
			return NULL;
		}
		*out++ = (char)(high << 4 | low);
		i += 2;
	}
	if (ret)
		*out = 0;
	return ret;
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

void target_encode(const char *s, int slashes, FILE *f)
{
	for (; *s; s++)
		if (isalnum((unsigned char)*s) || strchr("-._~", *s) ||
		    (*s == '/' && !slashes))
			fputc(*s, f);
		else
			fprintf(f, "%%%02X", (unsigned char)*s);
}

char *target_encoded(const char *s, int slashes)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return NULL;
	target_encode(s, slashes, f);
	return fclose(f) == 0 ? text : NULL;
}
