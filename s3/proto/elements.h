/* SPDX-License-Identifier: MIT */
/*
 * The XML that requests have as their body: elements and text. Attributes are
 * skipped, and so are comments and instructions; there are no entities but the
 * five of XML and characters by number, and no document type. Pure.
 */
#ifndef GPEMU_S3_PROTO_ELEMENTS_H
#define GPEMU_S3_PROTO_ELEMENTS_H

#include <stdbool.h>
#include <stddef.h>

enum { ELEMENTS_PATH = 128, ELEMENTS_DEPTH = 8 };

/*
 * An element has ended: its path is "Delete/Object/Key"; of one without
 * elements in it `text` is its text, else "". false: enough.
 */
typedef bool elements_fn(void *ctx, const char *path, const char *text);

/* Reads `text[n]`, which must be writable and which it changes. false: it is
 * not well-formed, or `fn` had enough. */
bool elements_read(char *text, size_t n, elements_fn *fn, void *ctx);

#endif
