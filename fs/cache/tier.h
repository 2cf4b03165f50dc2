/* SPDX-License-Identifier: MIT */
/*
 * Tiers: caches behind each other, as the user writes them.
 *
 *	[STORAGE:]POLICY[:KEY=VALUE,...]:SIZE	nvme:slru:protected=0.5:50%
 *	or several, with blanks			dram:minio:10% nvme:lru:50%
 *
 * The first tier is accessed first. STORAGE sets the cost of a hit: the name
 * or path of a storage profile, or `dram`, the default, whose hits cost no
 * device time. SIZE follows the last colon. POLICY is the last piece before it
 * without '=', with its options behind it (common/conf/plugin_choice.h). So a
 * path may have colons, but no blanks.
 *
 * An access goes from tier to tier until one has the object. Each tier that
 * missed may admit it, by its own policy, as stacked read-through caches do.
 * So an object may be in several tiers (non-inclusive). An evicted object does
 * not move to the next tier (no demotion).
 */
#ifndef GPEMU_FS_CACHE_TIER_H
#define GPEMU_FS_CACHE_TIER_H

#include "common/conf/plugin_choice.h"
#include "common/units.h"
#include "fs/cache/policy.h"

/* arbitrary: memory, persistent memory, two kinds of flash, disks, and three
 * more */
enum { TIERS_MAX = 8 };

struct tier_policy {
	struct plugin_choice choice;
	char *text; /* as a user writes it, with its options */
};

struct tier {
	char *storage; /* NULL: dram */
	/* several of each: for a grid */
	struct tier_policy *policies;
	size_t n_policies;
	struct units_capacity *sizes;
	size_t n_sizes;
};

struct tiers {
	struct tier v[TIERS_MAX];
	size_t n;
};

/* Which of the tiers that miss an object may admit it. */
enum tier_admit {
	TIER_ADMIT_EVERY, /* each of them */
	TIER_ADMIT_FIRST, /* none below one that admitted it */
};

/* "every" or "first". -EINVAL with a text. */
int tier_admit_parse(const char *word, enum tier_admit *ret, struct err *err);

/*
 * Append the tiers in `text` to *ret, which tiers_fini releases even after an
 * error. `lists`: POLICY may be several policies, or "all", and SIZE several
 * sizes, separated by commas. `check` tells whether a char ** is a storage
 * (conf.h). -EINVAL with a text that names the column (from 1); -ENOMEM.
 */
int tiers_parse(const char *text, bool lists,
		int (*check)(const void *storage, struct err *err),
		struct tiers *ret, struct err *err);
void tiers_fini(struct tiers *t);

const struct policy_ops *tier_policy_ops(const struct tier_policy *p);
/* "dram" or the storage. */
const char *tier_storage(const struct tier *t);
/* The text of a tier of one policy and one size, malloc'ed. NULL: no
 * memory. */
char *tier_text(const struct tier *t);

/* conf_field.check of a struct units_capacity, the size of a cache: -EINVAL for
 * a few bytes, which would be a number whose unit was forgotten. */
int tier_check_size(const void *capacity, struct err *err);

/* Append the policies of a list, "all" of them, or the sizes. -EINVAL with a
 * text; -ENOMEM. */
int tier_add_policies(struct tier *t, const char *list, struct err *err);
int tier_add_sizes(struct tier *t, const char *list, struct err *err);

#endif
