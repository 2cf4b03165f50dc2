/* SPDX-License-Identifier: MIT */
/*
 * Requests a second and prefix, as the profile says (emu/profile): what is
 * beyond gets SlowDown. A prefix is what a key has up to its last slash. Each
 * may have a second's requests at once. Any thread.
 */
#ifndef GPEMU_S3_THROTTLE_H
#define GPEMU_S3_THROTTLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum throttle_kind { THROTTLE_READ, THROTTLE_WRITE, THROTTLE_KINDS };

enum { THROTTLE_SETS = 512, THROTTLE_WAYS = 8 };

struct throttle {
	double per_s[THROTTLE_KINDS]; /* 0: no limit */
	pthread_mutex_t lock;	      /* guards all below */
	uint64_t refused[THROTTLE_KINDS];
	struct throttle_entry {
		uint64_t hash;	  /* of kind and prefix */
		uint64_t used_ns; /* when all that was admitted is paid off */
	} v[THROTTLE_SETS][THROTTLE_WAYS];
};

void throttle_init(struct throttle *t, double reads_per_s, double writes_per_s);
void throttle_fini(struct throttle *t);
/* May a request for this key pass? `now` in emulated ns. */
bool throttle_admit(struct throttle *t, enum throttle_kind kind,
		    const char *key, uint64_t now);

#endif
