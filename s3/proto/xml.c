/* SPDX-License-Identifier: MIT */
#include "s3/proto/xml.h"

#include <string.h>
#include <time.h>

#include "common/util.h"

void xml_text(FILE *f, const char *s)
{
	while (*s) {
		unsigned char c = (unsigned char)*s;
		size_t n = c < 0x80 ? 1 : util_utf8(s);

		if (!n)
			fputs("\xef\xbf\xbd", f);
		else if (c < ' ' || c == 0x7f || strchr("<>&\"", c))
			fprintf(f, "&#%u;", c);
		else
			fwrite(s, 1, n, f);
		s += n ? n : 1;
	}
}

void xml_element(FILE *f, const char *name, const char *text)
{
	fprintf(f, "<%s>", name);
	xml_text(f, text);
	fprintf(f, "</%s>", name);
}

void xml_time(FILE *f, const char *name, int64_t s, unsigned ns)
{
	time_t t = (time_t)s;
	struct tm tm = { 0 };
	char text[32] = "1970-01-01T00:00:00";

	if (gmtime_r(&t, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	fprintf(f, "<%s>%s.%03uZ</%s>", name, text, ns / 1000000, name);
}
