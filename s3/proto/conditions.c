/* SPDX-License-Identifier: MIT */
#include "s3/proto/conditions.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/util.h"

void conditions_date(int64_t time_s, char ret[CONDITIONS_DATE])
{
	time_t t = (time_t)time_s;
	struct tm tm;

	if (!gmtime_r(&t, &tm) ||
	    !strftime(ret, CONDITIONS_DATE, "%a, %d %b %Y %H:%M:%S GMT", &tm))
		strcpy(ret, "Thu, 01 Jan 1970 00:00:00 GMT");
}

/* The three forms of RFC 9110, section 5.6.7. */
static bool parse_date(const char *s, int64_t *ret)
{
	static const char *const forms[] = { "%a, %d %b %Y %H:%M:%S GMT",
					     "%A, %d-%b-%y %H:%M:%S GMT",
					     "%a %b %d %H:%M:%S %Y" };

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		struct tm tm = { 0 };
		const char *end = strptime(s, forms[i], &tm);

		if (end && !*end) {
			*ret = (int64_t)timegm(&tm);
			return true;
		}
	}
	return false;
}

/* Is the tag, with or without quotes, in the list, or is that "*"? */
static bool lists(const char *list, const char *etag)
{
	size_t n = strlen(etag) - 2;

	for (const char *at = list; *at;) {
		size_t word;

		at += strspn(at, ", \t");
		if (!strncmp(at, "W/", 2))
			at += 2;
		at += *at == '"';
		word = strcspn(at, "\",");
		if ((word == n && !strncmp(at, etag + 1, n)) ||
		    (word == 1 && *at == '*'))
			return true;
		at += word;
		at += *at == '"';
	}
	return false;
}

enum failure conditions_check(const struct conditions *c,
			      const struct conditions_file *file)
{
	int64_t at;

	if (c->match) {
		if (!lists(c->match, file->etag))
			return FAILURE_PRECONDITION;
	} else if (c->unmodified_since &&
		   parse_date(c->unmodified_since, &at)) {
		if (file->mtime_s > at)
			return FAILURE_PRECONDITION;
	}
	if (c->none_match)
		return lists(c->none_match, file->etag) ? FAILURE_NOT_MODIFIED
							: FAILURE_NONE;
	if (c->modified_since && parse_date(c->modified_since, &at) &&
	    file->mtime_s <= at)
		return FAILURE_NOT_MODIFIED;
	return FAILURE_NONE;
}

/* Digits alone; false: there are none, or too many. */
static bool number(const char **at, uint64_t *ret)
{
	char *end;

	if (!isdigit((unsigned char)**at))
		return false;
	errno = 0;
	*ret = strtoull(*at, &end, 10);
	*at = end;
	return errno == 0;
}

enum failure conditions_range(const struct conditions *c,
			      const struct conditions_file *file,
			      uint64_t *ret_from, uint64_t *ret_end,
			      bool *ret_part)
{
	const char *at = c->range ? c->range : "";
	char date[CONDITIONS_DATE];
	uint64_t from, last;
	bool first;

	*ret_from = 0;
	*ret_end = file->bytes;
	*ret_part = false;
	conditions_date(file->mtime_s, date);
	if (strncmp(at, "bytes=", 6) != 0 ||
	    (c->if_range && strcmp(c->if_range, file->etag) != 0 &&
	     strcmp(c->if_range, date) != 0))
		return FAILURE_NONE;
	at += 6;
	first = number(&at, &from);
	if (*at++ != '-')
		return FAILURE_NONE;
	if (!number(&at, &last)) {
		if (!first)
			return FAILURE_NONE;
		last = UINT64_MAX;
	} else if (!first) { /* the last bytes */
		from = file->bytes - MIN(last, file->bytes);
		last = last ? UINT64_MAX : 0;
	}
	if (*at || last < from)
		return first || *at ? FAILURE_NONE : FAILURE_INVALID_RANGE;
	if (from >= file->bytes)
		return FAILURE_INVALID_RANGE;
	*ret_from = from;
	*ret_end = MIN(last, file->bytes - 1) + 1;
	*ret_part = true;
	return FAILURE_NONE;
}
