/* SPDX-License-Identifier: MIT */
/* Percent-encoding of URLs (RFC 3986, section 2.1). Pure. */
#ifndef GPEMU_COMMON_PERCENT_H
#define GPEMU_COMMON_PERCENT_H

#include <stdbool.h>
#include <stdio.h>

/* In place; `plus`: a plus is a space, as in the arguments of a URL. false: a
 * broken %XX, or one that is a NUL. */
bool percent_decode(char *s, bool plus);

/*
 * Encode all but the unreserved characters, and slashes if `slashes`. Source:
 * AWS, "Create a signed AWS API request", UriEncode.
 */
void percent_encode(const char *s, bool slashes, FILE *f);
/* The same, malloc'ed; NULL: no memory. */
char *percent_encoded(const char *s, bool slashes);

#endif
