/* SPDX-License-Identifier: MIT */
/*
 * Faults: rules that make operations fail, wait, or hang on purpose.
 *
 *	op=read,path=*.jpg,every=100,errno=EIO
 *	op=open,p=0.01,delay=200ms
 *	path=n01*,delay=2s,errno=ETIMEDOUT
 *	op=read,path=n01*,stuck,for=30s
 *
 * A rule is a list of words with commas between; rules are separated by
 * semicolons. A backslash takes the next character as it is.
 *
 *	op=OP         open, read, lookup, readdir, write, sync, create, remove,
 *	              rename, metadata (all but read, write and sync), any
 *	              (the default)
 *	path=GLOB     fnmatch(3) on the path below the root. Without a slash the
 *	              last name alone must match, anywhere; with one the whole
 *	              path, name by name, where ** is any number of folders
 *	after=N       leave the first N matching operations alone
 *	first=N       only the first N, of those that `after` left
 *	every=N       of these every Nth
 *	p=X           of these each with probability X
 *	count=N       N times at most
 *	errno=NAME    fail
 *	delay=TIME    take so much longer (emulated), then go on or fail
 *	stuck         do nothing, until the rule is cleared or the mount ends
 *	for=TIME      stuck no longer than that (emulated), then go on
 *
 * Rules only decide. Matches are counted from 1 in order of arrival. The
 * decision on the k-th is a function of the seed, the rule's text and k.
 *
 * A layer (fs/layer/layer_fault.c) applies them before the cache. An operation
 * that fails never reaches cache or device: it is neither hit nor miss, and
 * changes nothing. A delayed one is counted when it continues, as hit or miss
 * at that time, and its own duration comes on top. Every rule sees every
 * operation that it matches, whatever other rules do: delays add up; of several
 * errors or stuck rules the first rule's applies.
 *
 * Pure: no locks, no clock, no I/O.
 */
#ifndef GPEMU_FS_LAYER_FAULT_H
#define GPEMU_FS_LAYER_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/units.h"

/* arbitrary: a month; far below the overflow of clocks */
#define FAULT_MAX_DELAY_NS (30ull * 24 * 3600 * NS_PER_S)

struct fault_rule {
	char *text;		      /* as it was given */
	char *path;		      /* the glob; NULL: all */
	unsigned ops;		      /* a bit for each enum storage_op */
	double p;		      /* 0..1 */
	uint64_t every;		      /* >= 1 */
	uint64_t after, first, count; /* first, count: UINT64_MAX is no limit */
	int error;		      /* 0 or -errno */
	uint64_t delay_ns; /* emulated; of a stuck rule: `for`, 0: for ever */
	bool stuck;
};

/*
 * Parse `n` bytes of any content: one rule or more. *ret is an array of *ret_n
 * rules, for fault_rules_free. -EINVAL with a text that names the column (from
 * 1) and what could stand there; -ENOMEM.
 */
int fault_rules_parse(const char *text, size_t n, struct fault_rule **ret,
		      size_t *ret_n, struct err *err);
void fault_rule_fini(struct fault_rule *r);
void fault_rules_free(struct fault_rule *rules, size_t n);

/* Is the rule about operation `op` (enum storage_op) on `path`? */
bool fault_matches(const struct fault_rule *r, unsigned op, const char *path);
/* Match `path` against a glob as above. */
bool fault_glob(const char *glob, const char *path);

/*
 * Does the rule fire on the k-th operation that it matches (from 1), having
 * fired `fired` times before?
 */
bool fault_fires(const struct fault_rule *r, uint64_t seed, uint64_t k,
		 uint64_t fired);
/* The rule will never fire again, after k matches. */
bool fault_is_over(const struct fault_rule *r, uint64_t k, uint64_t fired);

#endif
