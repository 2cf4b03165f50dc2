/* SPDX-License-Identifier: MIT */
#include "common/percent.h"

#include <string.h>

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 32);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool percent_decode(char *s, bool plus)
{
	char *to = s;

	for (; *s; s++) {
		int high, low;

		if (*s != '%') {
			*to++ = plus && *s == '+' ? ' ' : *s;
			continue;
		}
		high = digit(s[1]);
		low = high >= 0 ? digit(s[2]) : -1;
		if (low < 0 || !(high | low))
			return false;
		*to++ = (char)(high << 4 | low);
		s += 2;
	}
	*to = 0;
	return true;
}

void percent_encode(const char *s, bool slashes, FILE *f)
{
	for (; *s; s++)
		if (strchr("-._~", *s) || (*s == '/' && !slashes) ||
		    (*s >= '0' && *s <= '9') ||
		    ((*s | 32) >= 'a' && (*s | 32) <= 'z'))
			fputc(*s, f);
		else
			fprintf(f, "%%%02X", (unsigned char)*s);
}

char *percent_encoded(const char *s, bool slashes)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return NULL;
	percent_encode(s, slashes, f);
	return fclose(f) == 0 ? text : NULL;
}
