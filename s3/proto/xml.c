/* SPDX-License-Identifier: MIT */
#include "s3/proto/xml.h"

#include <string.h>
#include <time.h>

#include "common/percent.h"
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

void xml_key(FILE *f, const char *name, const char *key, bool encoded)
{
	fprintf(f, "<%s>", name);
	if (encoded)
		percent_encode(key, false, f);
	else
		xml_text(f, key);
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

FILE *xml_begin(struct xml *x, const char *root, bool space)
{
	xml_drop(x);
	x->root = root;
	x->f = open_memstream(&x->text, &x->n);
	if (x->f)
		fprintf(x->f, XML_START "<%s%s>", root,
			space ? " xmlns=\"http://s3.amazonaws.com/doc/"
				"2006-03-01/\""
			      : "");
	return x->f;
}

char *xml_end(struct xml *x, size_t *ret_n)
{
	char *text = NULL;

	if (!x->f)
		return NULL;
	fprintf(x->f, "</%s>", x->root);
	if (fclose(TAKE_PTR(x->f)) == 0)
		text = TAKE_PTR(x->text);
	*ret_n = x->n;
	xml_drop(x);
	return text;
}

void xml_drop(struct xml *x)
{
	if (x->f)
		fclose(x->f);
	free(x->text);
	*x = (struct xml){ 0 };
}
