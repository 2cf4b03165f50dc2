/* SPDX-License-Identifier: MIT */
/*
 * Human-readable sizes and durations.
 *
 * Sizes:     512, 512K, 4M, 8G, 1T; powers of 1024; a fraction is allowed
 *            ("1.5G"), "KiB" and "B" spellings too.
 * Durations: 80ns 80us 1.5ms 2s 1m 1h; the unit is required, except for 0.
 * Capacity:  a size, a percentage of something ("35%"), or "auto": 35 %, but no
 *            more than there is room for.
 *
 * All parsers take the whole string or fail with -EINVAL; out of range is
 * -ERANGE. Values are bytes (uint64_t) and nanoseconds (uint64_t).
 */
#ifndef GPEMU_COMMON_UNITS_H
#define GPEMU_COMMON_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define NS_PER_US 1000ull
#define NS_PER_MS 1000000ull
#define NS_PER_S 1000000000ull
#define KIB 1024ull
#define MIB (1024ull * KIB)
#define GIB (1024ull * MIB)

struct units_capacity {
	double fraction; /* of the dataset's bytes, 0..1; < 0: use bytes */
	uint64_t bytes;
	bool yields; /* "auto": limited by the available memory */
};

/* arbitrary: less than a dataset, so that the policy matters */
#define UNITS_AUTO_FRACTION .35

enum { UNITS_TEXT = 32 };

int units_parse_size(const char *s, uint64_t *ret_bytes);
int units_parse_duration(const char *s, uint64_t *ret_ns);
int units_parse_capacity(const char *s, struct units_capacity *ret);
/* How a size is written here that units_parse_size refuses: "10G" for "10GB",
 * "10 gb" or "10g". False: it is none. */
bool units_size_hint(const char *s, char ret[UNITS_TEXT]);
/* A finite decimal number, the whole string. */
int units_parse_double(const char *s, double *ret);

/* The capacity in bytes, given the size of 100 %; for "auto" before the memory
 * limit. */
uint64_t units_capacity_bytes(const struct units_capacity *c, uint64_t whole);

/* Of which `bytes` are the part `scale` (0 to 1), rounded up; at most 2^63. */
uint64_t units_unscaled(uint64_t bytes, double scale);

/*
 * Times of files, in ns since 1970, clamped to the years 1677 to 2262.
 */
int64_t units_time_ns(int64_t s, uint32_t ns);
struct timespec units_timespec(int64_t ns);

/* Exact, and read back to the same value: "64M", "65537", "80us", "35%". */
const char *units_exact_size(uint64_t bytes, char buf[UNITS_TEXT]);
const char *units_exact_duration(uint64_t ns, char buf[UNITS_TEXT]);
const char *units_exact_capacity(const struct units_capacity *c,
				 char buf[UNITS_TEXT]);
/* For display, three digits: "1.23 GiB", "12.3 ms". */
const char *units_human_size(double bytes, char buf[UNITS_TEXT]);
const char *units_human_duration(double ns, char buf[UNITS_TEXT]);

#endif
