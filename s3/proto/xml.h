/* SPDX-License-Identifier: MIT */
/* The XML of answers. */
#ifndef GPEMU_S3_PROTO_XML_H
#define GPEMU_S3_PROTO_XML_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define XML_START "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"

/* Text with what XML reserves escaped. What is no UTF-8 becomes U+FFFD;
 * characters that XML 1.0 cannot hold become references, as S3 has them. */
void xml_text(FILE *f, const char *s);
/* <name>text</name> */
void xml_element(FILE *f, const char *name, const char *text);
/* The same of a key, or of a part of one; `encoded` as in a URL. */
void xml_key(FILE *f, const char *name, const char *key, bool encoded);
/* <name>2013-05-24T00:00:00.000Z</name>, of s since 1970 */
void xml_time(FILE *f, const char *name, int64_t s, unsigned ns);

/* A text that is being written. All zeros: none. */
struct xml {
	FILE *f;
	const char *root; /* its outermost element; static */
	char *text;
	size_t n;
};
/* Begin one, of S3's name space if `space`: where to write what is in it; NULL:
 * no memory. */
FILE *xml_begin(struct xml *x, const char *root, bool space);
/* Its end, malloc'ed; NULL: no memory. */
char *xml_end(struct xml *x, size_t *ret_n);
/* It is not wanted any more, if there is one. */
void xml_drop(struct xml *x);

#endif
