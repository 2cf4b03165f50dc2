/* SPDX-License-Identifier: MIT */
/*
 * Numbers on the wire: little-endian, of 1 to 8 bytes. A reader never leaves
 * its buffer: a read beyond the end sets `bad` for good, and all numbers are 0.
 */
#ifndef GPEMU_NET_WIRE_H
#define GPEMU_NET_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wire {
	const unsigned char *at;
	size_t left;
	bool bad;
};

/* The next `n` bytes; NULL: there are fewer. */
static inline const unsigned char *wire_bytes(struct wire *w, size_t n)
{
	const unsigned char *at = w->at;

	if (w->bad || n > w->left) {
		w->bad = true;
		return NULL;
	}
	w->at += n;
	w->left -= n;
	return at;
}

static inline uint64_t wire_get(struct wire *w, size_t n)
{
	const unsigned char *at = wire_bytes(w, n);
	uint64_t v = 0;

	for (size_t i = n; at && i > 0; i--)
		v = v << 8 | at[i - 1];
	return v;
}

/* Returns the end. */
static inline unsigned char *wire_put(unsigned char *at, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n; i++, v >>= 8)
		*at++ = (unsigned char)v;
	return at;
}

#endif
