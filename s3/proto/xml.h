/* SPDX-License-Identifier: MIT */
/* The XML of answers. */
#ifndef GPEMU_S3_PROTO_XML_H
#define GPEMU_S3_PROTO_XML_H

#include <stdint.h>
#include <stdio.h>

#define XML_START "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
#define XML_SPACE " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\""

/* Text with what XML reserves escaped. What is no UTF-8 becomes U+FFFD;
 * characters that XML 1.0 cannot hold become references, as S3 has them. */
void xml_text(FILE *f, const char *s);
/* <name>text</name> */
void xml_element(FILE *f, const char *name, const char *text);
/* <name>2013-05-24T00:00:00.000Z</name>, of s since 1970 */
void xml_time(FILE *f, const char *name, int64_t s, unsigned ns);

#endif
