/* SPDX-License-Identifier: MIT */
/*
 * S3-FIFO (Yang et al., "FIFO queues are all you need for cache eviction", SOSP
 * 2023, algorithm 1): three queues; entries are inserted only at the head.
 *
 *	miss -> SMALL (10 %) --used more than once--> MAIN (the rest)
 *	          |                                    ^   | used: one more
 *	          v                                    |   v round, count - 1
 *	        GHOST (keys; as many as MAIN) -accessed again
 *
 * Uses are counted up to `uses`, and from 0 again on entering MAIN. If a
 * promotion makes MAIN too large, the victim comes from MAIN at once. The
 * paper's loop then also evicts from SMALL; here the next victim does, if there
 * is still too little room.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "common/conf/conf.h"
#include "common/util.h"
#include "fs/cache/policy/policy_ghost.h"

struct s3fifo_options {
	double small;
	uint64_t uses, promote;
};

#define FIELD(key, type) #key, type, offsetof(struct s3fifo_options, key)

static const struct conf_field s3fifo_fields[] = {
	{ FIELD(small, CONF_DOUBLE), .max = 1, .arg = "0..1",
	  .help = "share of the capacity for the small queue" },
	{ FIELD(uses, CONF_UINT), .min = 1, .max = 255, .arg = "N",
	  .help = "count the uses of an entry up to N" },
	{ FIELD(promote, CONF_UINT), .min = 1, .max = 255, .arg = "N",
	  .help = "uses in the small queue that promote an entry to the main "
		  "queue" },
	{ 0 },
};

/* Source: the paper, sections 4.1 and 4.2 */
static const struct s3fifo_options s3fifo_defaults = { .small = 0.1,
						       .uses = 3,
						       .promote = 2 };

enum { SMALL, MAIN, N_QUEUES };

struct s3fifo {
	struct policy_list queue[N_QUEUES];
	uint64_t small_bytes, main_bytes; /* their shares of the capacity */
	uint8_t max_uses, promote;
	struct ghosts ghosts;
	uint64_t known; /* key of the object that was a ghost */
	bool is_known;
	struct cache_entry *victim; /* from SMALL */
};

static int s3fifo_init(void *state, const struct policy_params *params,
		       struct err *err)
{
	const struct s3fifo_options *o = params->options ? params->options
							 : &s3fifo_defaults;
	struct s3fifo *s = state;

	if (o->promote > o->uses)
		return err_set(err, -EINVAL,
			       "cache policy s3fifo: promote=%" PRIu64
			       " is never reached with uses=%" PRIu64,
			       o->promote, o->uses);
	s->max_uses = (uint8_t)o->uses;
	s->promote = (uint8_t)o->promote;
	/* rounded up: SMALL evicts at its share or above. Percents are exact in
	 * a double, their hundredths are not */
	s->small_bytes = (uint64_t)ceil((double)params->capacity_bytes *
					(100 * o->small) / 100);
	s->small_bytes = MIN(s->small_bytes, params->capacity_bytes);
	s->main_bytes = params->capacity_bytes - s->small_bytes;
	s->ghosts.max = policy_expected_entries(params);
	return 0;
}

static bool s3fifo_admit(void *state, const struct cache_object *object,
			 struct cache_entry *ghost)
{
	struct s3fifo *s = state;

	s->is_known = ghost != NULL;
	s->known = object->key;
	if (ghost)
		ghosts_remove(&s->ghosts, ghost);
	return true;
}

static void s3fifo_inserted(void *state, struct cache_entry *entry,
			    const struct cache_object *object)
{
	struct s3fifo *s = state;

	entry->queue = s->is_known && s->known == object->key ? MAIN : SMALL;
	policy_list_push(&s->queue[entry->queue], entry);
	s->is_known = false;
}

static void s3fifo_hit(void *state, struct cache_entry *entry,
		       uint64_t next_use)
{
	const struct s3fifo *s = state;

	(void)next_use;
	if (entry->uses < s->max_uses)
		entry->uses++;
}

static void s3fifo_removed(void *state, struct cache_entry *entry)
{
	struct s3fifo *s = state;

	policy_list_remove(&s->queue[entry->queue], entry);
	if (s->victim != entry)
		return; /* from MAIN, or removed by the host */
	s->victim = NULL;
	ghosts_push(&s->ghosts, 0, entry);
	ghosts_trim(&s->ghosts, 0, s->main_bytes);
}

static struct cache_entry *victim_of_main(struct s3fifo *s)
{
	struct policy_list *main = &s->queue[MAIN];

	for (;;) {
		struct cache_entry *e = main->tail;

		if (!e->uses)
			return e;
		e->uses--;
		policy_list_move(main, main, e);
	}
}

static struct cache_entry *s3fifo_victim(void *state)
{
	struct s3fifo *s = state;
	struct policy_list *small = &s->queue[SMALL], *main = &s->queue[MAIN];

	while (small->tail && (small->bytes >= s->small_bytes || !main->tail)) {
		struct cache_entry *e = small->tail;

		if (e->uses < s->promote) {
			s->victim = e;
			return e;
		}
		e->uses = 0;
		e->queue = MAIN;
		policy_list_move(small, main, e);
		if (main->bytes > s->main_bytes)
			break;
	}
	return victim_of_main(s);
}

static struct cache_entry *s3fifo_forget(void *state)
{
	struct s3fifo *s = state;

	return ghosts_forget(&s->ghosts);
}

const struct policy_ops policy_s3fifo = {
	.plugin = { .name = "s3fifo",
		    .summary = "small, main and ghost FIFO queues (SOSP'23)",
		    .state_size = sizeof(struct s3fifo),
		    PLUGIN_OPTIONS(s3fifo_fields, s3fifo_defaults) },
	.entry_size = sizeof(struct policy_link),
	.n_ghosts = 1,
	.init = s3fifo_init,
	.admit = s3fifo_admit,
	.inserted = s3fifo_inserted,
	.hit = s3fifo_hit,
	.removed = s3fifo_removed,
	.victim = s3fifo_victim,
	.forget = s3fifo_forget,
};
