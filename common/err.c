/* SPDX-License-Identifier: MIT */
#include "common/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (!err || err->text[0])
		return code;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return code;
}

int err_also(struct err *err, int code)
{
	if (code >= 0 || !err || !err->all)
		return code;
	fprintf(err->all, "%s\n", err->text);
	err->text[0] = '\0';
	return 0;
}

void err_prefix(struct err *err, const char *fmt, ...)
{
	char prefix[256], text[sizeof(err->text)];
	va_list ap;

	if (!err)
		return;
	va_start(ap, fmt);
	vsnprintf(prefix, sizeof(prefix), fmt, ap);
	va_end(ap);
	memcpy(text, err->text, sizeof(text));
	snprintf(err->text, sizeof(err->text), "%s: %.*s", prefix,
		 (int)(sizeof(err->text) - sizeof(prefix) - 3), text);
}

void err_list(char list[ERR_LIST], const char *word)
{
	size_t n = strlen(list), room = ERR_LIST - sizeof(" ...");

	if (n + 1 + strlen(word) <= room)
		snprintf(list + n, ERR_LIST - n, "%s%s", n ? " " : "", word);
	else if (n < 4 || strcmp(list + n - 4, " ..."))
		strcpy(list + n, " ...");
}
