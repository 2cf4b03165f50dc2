/* SPDX-License-Identifier: MIT */
/*
 * GCRA (ITU-T I.371): of each prefix the time until which its requests are paid
 * off, a slot of 1 / rate each. One that lies in the past is as good as none,
 * so a set forgets the earliest, and loses nothing unless more prefixes than it
 * has ways are at their limit.
 */
#include "s3/throttle.h"

#include <string.h>
#include <xxhash.h>

#include "common/thread.h"
#include "common/units.h"

void throttle_init(struct throttle *t, double reads_per_s, double writes_per_s)
{
	memset(t, 0, sizeof(*t));
	t->per_s[THROTTLE_READ] = reads_per_s;
	t->per_s[THROTTLE_WRITE] = writes_per_s;
	pthread_mutex_init(&t->lock, NULL);
}

void throttle_fini(struct throttle *t)
{
	pthread_mutex_destroy(&t->lock);
}

static struct throttle_entry *entry_of(struct throttle *t, uint64_t hash)
{
	struct throttle_entry *set = t->v[hash % THROTTLE_SETS], *oldest = set;

	for (size_t i = 0; i < THROTTLE_WAYS; i++) {
		if (set[i].hash == hash)
			return &set[i];
		if (set[i].used_ns < oldest->used_ns)
			oldest = &set[i];
	}
	*oldest = (struct throttle_entry){ .hash = hash };
	return oldest;
}

bool throttle_admit(struct throttle *t, enum throttle_kind kind,
		    const char *key, uint64_t now)
{
	const char *slash = strrchr(key, '/');
	size_t n = slash ? (size_t)(slash - key) + 1 : 0;
	struct throttle_entry *e;

	if (t->per_s[kind] <= 0)
		return true;
	LOCK_SCOPE(&t->lock);
	e = entry_of(t, XXH3_64bits_withSeed(key, n, kind + 1));
	if (e->used_ns < now)
		e->used_ns = now;
	if (e->used_ns - now >= NS_PER_S) {
		t->refused[kind]++;
		return false;
	}
	e->used_ns += (uint64_t)((double)NS_PER_S / t->per_s[kind]);
	return true;
}
