/* SPDX-License-Identifier: MIT */
#include "common/text/weights.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"

/* Not the text itself: the file may be of a kind that nobody should see. */
static int bad_line(const char *file, uint64_t line, const char *what,
		    struct err *err)
{
	return err_set(err, -EINVAL, "%s:%" PRIu64 ":1: %s", file, line, what);
}

int weights_read(const char *file, double *ret, uint64_t n, const char *of,
		 struct err *err)
{
	_cleanup_fclose_ FILE *f = util_open_stream(file);
	_cleanup_free_ char *text = NULL;
	uint64_t line = 0, got = 0;
	size_t cap = 0;

	if (!f)
		return err_set(err, -errno, "%s: %s", file, strerror(errno));
	for (ssize_t k; (k = getline(&text, &cap, f)) >= 0;) {
		line++;
		text[strcspn(text, "\r\n")] = 0;
		if (!*text || *text == '#')
			continue;
		if (got == n)
			return bad_line(file, line,
					"more weights than the dataset has "
					"of these",
					err);
		if (units_parse_double(text, &ret[got++]) < 0 ||
		    ret[got - 1] < 0)
			return bad_line(file, line,
					"a weight must be a number, 0 or more",
					err);
	}
	if (ferror(f) || got == n)
		return ferror(f)
			       ? err_set(err, -EIO, "%s: cannot be read", file)
			       : 0;
	return err_set(err, -EINVAL,
		       "%s: %" PRIu64 " weights for %" PRIu64 " %ss", file, got,
		       n, of);
}
