/* SPDX-License-Identifier: MIT */
/*
 * What gpemu-fs emulates: the storage, the caches in front of it, the card of
 * its node. gpemu-fs and a simulation (loader/sim) read it by one table, with
 * the same defaults, and refuse the same.
 */
#ifndef GPEMU_FS_CONFIG_FS_CONFIG_H
#define GPEMU_FS_CONFIG_FS_CONFIG_H

#include "common/conf/conf.h"
#include "emu/profile/profile.h"
#include "fs/cache/tier.h"
#include "fs/layer/ahead.h"

struct fs_config {
	char *storage;
	/* Either a policy and a size, or tiers. Unused: NULL and NaN, or empty.
	 */
	char *cache_policy;
	struct units_capacity cache_size;
	struct conf_list tiers; /* of char * */
	char *tier_admit;
	bool cache_metadata;
	uint64_t prefetch, prefetch_depth;
	char *nic; /* NULL: no limit */
};

struct node_profile;

/* The defaults. -ENOMEM. */
int fs_config_init(struct fs_config *c);
/* The default cache policy of a mount. `peers`: the nodes partition a cache. */
const char *fs_config_policy(const struct fs_config *c, bool peers);
/* Check it as a whole, and fill in the cache that nobody named: `policy`.
 * -EINVAL with a text, -ENOMEM. */
int fs_config_settle(struct fs_config *c, const char *policy, struct err *err);

/* Append the tiers of --tier; none with a policy and a size. Free with
 * tiers_fini. -EINVAL with a text, -ENOMEM. */
int fs_config_tiers(const struct fs_config *c, struct tiers *ret,
		    struct err *err);
/* Replace tier `i`, which must exist. -ENOMEM. */
int fs_config_set_tier(struct fs_config *c, size_t i, const struct tier *t);
enum tier_admit fs_config_admit(const struct fs_config *c);
/* Cache nothing. -ENOMEM. */
int fs_config_no_cache(struct fs_config *c);
/* The node whose card `nic` is; free it, failed or not. -ENODEV: it has none;
 * errors of the profile; with a text. */
int fs_config_nic(const struct fs_config *c, struct node_profile *ret,
		  struct err *err);

/* conf_field.check */
int fs_config_check_policy(const void *text, struct err *err);
int fs_config_check_tier(const void *text, struct err *err);
int fs_config_check_admit(const void *word, struct err *err);

/* The fields of the struct fs_config `member` of `type` without those of
 * mounts: a storage and its caches. The default policy is a text for the help.
 */
#define FS_CACHE_FIELDS(type, member, policy_default)                         \
	{ "storage",                                                          \
	  CONF_STRING,                                                        \
	  offsetof(type, member.storage),                                     \
	  PROFILE_NAME(storage),                                              \
	  .short_opt = 's',                                                   \
	  .arg = "NAME|FILE",                                                 \
	  .help = "storage profile (default: ideal, which adds no time)" },   \
		{ "cache_policy",                                             \
		  CONF_STRING,                                                \
		  offsetof(type, member.cache_policy),                        \
		  .check = fs_config_check_policy,                            \
		  .short_opt = 'p',                                           \
		  .arg = "NAME[:KEY=VALUE,...]",                              \
		  .help = "cache policy (default: " policy_default ")" },     \
		{ "cache_size",                                               \
		  CONF_CAPACITY,                                              \
		  offsetof(type, member.cache_size),                          \
		  .check = tier_check_size,                                   \
		  .short_opt = 'c',                                           \
		  .arg = "SIZE|P%",                                           \
		  .help = "capacity in bytes, or percent of the dataset's "   \
			  "bytes (default: auto, the lesser of 35% and half " \
			  "of the memory)" },                                 \
		{ "tier",                                                     \
		  CONF_LIST,                                                  \
		  offsetof(type, member.tiers),                               \
		  .item = CONF_STRING,                                        \
		  .item_size = sizeof(char *),                                \
		  .lone = true,                                               \
		  .check = fs_config_check_tier,                              \
		  .arg = "[STORAGE:]POLICY:SIZE",                             \
		  .help = "instead of -p and -c: the next cache tier, such "  \
			  "as nvme:lru:50%; a hit costs a read of STORAGE "   \
			  "(default: dram, no time)" },                       \
		{ "tier_admit",                                               \
		  CONF_STRING,                                                \
		  offsetof(type, member.tier_admit),                          \
		  .check = fs_config_check_admit,                             \
		  .arg = "every|first",                                       \
		  .help = "which tiers may admit a missed object: every "     \
			  "tier, or only the first that does (default: "      \
			  "every)" },                                         \
	{                                                                     \
		"cache_metadata", CONF_BOOL,                                  \
			offsetof(type, member.cache_metadata),                \
			.arg = "on|off",                                      \
			.help = "the capacity includes the metadata of each " \
				"object (default: off)"                       \
	}

/* All of them. */
#define FS_CONFIG_FIELDS(type, member)                                         \
	FS_CACHE_FIELDS(type, member,                                          \
			"lru, with --peers or --prefetch minio; none caches "  \
			"nothing"),                                            \
		{ "prefetch", CONF_SIZE, offsetof(type, member.prefetch),      \
		  .arg = "SIZE",                                               \
		  .help = "size of the staging buffer: fetch the samples "     \
			  "that a loader announces (.gpemu/future) before it " \
			  "reads them (default: 0, none)" },                   \
		{ "prefetch_depth",                                            \
		  CONF_UINT,                                                   \
		  offsetof(type, member.prefetch_depth),                       \
		  .arg = "N",                                                  \
		  .min = 1,                                                    \
		  .max = AHEAD_MOST_DEPTH,                                     \
		  .help = "prefetches in flight at once (default: 16)" },      \
	{                                                                      \
		"nic", CONF_STRING, offsetof(type, member.nic),                \
			PROFILE_NAME(node),                                    \
			.arg = "NAME|FILE",                                    \
			.help = "node profile whose network card carries the " \
				"traffic of --peers (default: no limit; "      \
				"--list node)"                                 \
	}

#endif
