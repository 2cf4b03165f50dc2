/* SPDX-License-Identifier: MIT */
/*
 * The contents of a staging area (staging.h) and the rules by which its batches
 * are made, used and dropped. No locks, no waiting, no system calls.
 *
 * Batches are counted from 0 over all epochs. Those in the area are first ..
 * next - 1; their bytes lie in a ring, in this order.
 *
 *	--grow--> OPEN --claim--> HELD --publish--> READY --free-->
 *	            ^               |
 *	            +-- its maker died or gave it back
 *
 * A member publishes how many batches it has used (`done`). A batch is dropped
 * when no living member needs it.
 *
 * Every function leaves a state that is consistent after any prefix of its
 * stores: its process may be killed between two of them. Whatever another
 * process writes there, no function loops for long or leaves its arrays; who
 * uses an offset as an address checks it first.
 */
#ifndef GPEMU_LOADER_STAGING_PLAN_H
#define GPEMU_LOADER_STAGING_PLAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	PLAN_MEMBERS = 64,
	PLAN_BATCHES = 1024, /* arbitrary: more than a node's jobs keep ahead */
	PLAN_IDENTITY = 4096,
	PLAN_ALIGN = 64, /* of a batch in the ring: a cache line */
	PLAN_NOBODY = UINT32_MAX,
};

enum plan_phase { PLAN_JOINING, PLAN_RUNNING, PLAN_FAILED };
enum plan_life { PLAN_NONE, PLAN_ALIVE, PLAN_LEFT, PLAN_DIED };
enum plan_made { PLAN_OPEN, PLAN_HELD, PLAN_READY };

struct plan_member {
	uint32_t life;
	int32_t pid;
	uint64_t done; /* batches below this one are used */
	uint64_t made, taken_over;
};

struct plan_batch {
	uint64_t index;
	uint32_t state;
	uint32_t maker; /* the last member that held it */
	uint32_t n;	/* samples */
	uint64_t offset, bytes;
	uint64_t made_ns;  /* tick_wall() */
	double read_share; /* as struct delivery */
};

struct staging_plan {
	/* futexes: counters of changes */
	_Atomic uint32_t published; /* for those that use batches */
	_Atomic uint32_t changed;   /* for those that make batches */
	_Atomic uint32_t unlocked;  /* for those that wait for the lock */
	_Atomic uint32_t n_waiting; /* for the lock; those killed count, too */
	uint32_t phase;
	int32_t error; /* PLAN_FAILED: -errno */
	uint32_t jobs;
	uint64_t bytes; /* of the ring */
	uint64_t first, next;
	uint64_t most_bytes; /* high water */
	char identity[PLAN_IDENTITY];
	struct plan_member member[PLAN_MEMBERS];
	struct plan_batch batch[PLAN_BATCHES];
};

/* Read a field once: another process may change it between check and use. */
#define PLAN_GET(field) __atomic_load_n(&(field), __ATOMIC_SEQ_CST)

/* Bytes of a batch of the caller's; 0: unknown to it. */
typedef uint64_t (*plan_size_fn)(void *ctx, uint64_t index);

/* Is it a state that members can leave? Corrects what a killed one left half
 * done. */
bool plan_valid(struct staging_plan *p);
uint32_t plan_n_members(const struct staging_plan *p, enum plan_life life);
/* The batch, if it is in the area; else NULL. */
struct plan_batch *plan_find(struct staging_plan *p, uint64_t index);

/* Drop what no living member needs. True: room for others. */
bool plan_free(struct staging_plan *p);
/* Add the batches below `limit` for which there is room. */
void plan_grow(struct staging_plan *p, uint64_t limit, plan_size_fn size,
	       void *ctx);
/*
 * The next batch below `limit` that `me` has to make. It may hold `most`, and
 * one more than any other living member, so that all make equally many however
 * little room there is. -EAGAIN: not now.
 */
int plan_claim(struct staging_plan *p, uint32_t me, uint32_t most,
	       uint64_t limit, uint64_t *ret);
/* A batch that `me` holds is made. -EPROTO: it does not hold it. */
int plan_publish(struct staging_plan *p, uint32_t me, uint64_t index,
		 uint32_t n, uint64_t now_ns, double read_share);
/* `me` has used all batches below this one. */
void plan_use(struct staging_plan *p, uint32_t me, uint64_t done);
/* Open again what `me` holds. */
void plan_give_back(struct staging_plan *p, uint32_t me);
/* The member has left or died, as `how` says; others take its batches over. */
void plan_leave(struct staging_plan *p, uint32_t member, enum plan_life how);
/* Batches ready from `index` on, one after the other. */
uint32_t plan_n_ready(struct staging_plan *p, uint64_t index);

#endif
