/* SPDX-License-Identifier: MIT */
#include "fs/config/fs_config.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/conf/part.h"
#include "emu/node/profile_node.h"
#include "emu/profile/profile.h"

int fs_config_check_policy(const void *text, struct err *err)
{
	return plugin_choice_check(policy_table, "cache policy", text, err);
}

/* Append one argument of --tier. */
static int add_tier(const char *text, struct tiers *ret, struct err *err)
{
	return tiers_parse(text, false, profile_check_storage, ret, err);
}

int fs_config_check_tier(const void *object, struct err *err)
{
	const char *text = *(char *const *)object;
	struct tiers t = { 0 };
	int r = part_is_kept(text) ? 0 : add_tier(text, &t, err);

	tiers_fini(&t);
	return r;
}

int fs_config_check_admit(const void *word, struct err *err)
{
	enum tier_admit admit;

	return tier_admit_parse(*(char *const *)word, &admit, err);
}

int fs_config_init(struct fs_config *c)
{
	*c = (struct fs_config){ .cache_size = { .fraction = NAN },
				 .prefetch_depth = AHEAD_DEPTH,
				 .storage = strdup("ideal"),
				 .tier_admit = strdup("every") };
	return c->storage && c->tier_admit ? 0 : -ENOMEM;
}

const char *fs_config_policy(const struct fs_config *c, bool peers)
{
	/* a node keeps what it owns, or accesses first */
	return peers || c->prefetch ? "minio" : "lru";
}

int fs_config_settle(struct fs_config *c, const char *policy, struct err *err)
{
	bool sized = !isnan(c->cache_size.fraction);
	struct tiers t = { 0 };
	int r = fs_config_tiers(c, &t, err);

	if (r == 0 && t.n && (c->cache_policy || sized))
		r = err_set(err, -EINVAL,
			    "--tier replaces --cache-policy and "
			    "--cache-size: leave those out");
	for (size_t i = 0; r == 0 && i < t.n; i++)
		if (tier_policy_ops(&t.v[i].policies[0])->bypass)
			r = err_set(err, -EINVAL,
				    "--tier: a tier with the policy %s caches "
				    "nothing: leave it out",
				    t.v[i].policies[0].text);
	tiers_fini(&t);
	if (r < 0 || c->tiers.n)
		return r;
	if (!sized)
		c->cache_size = (struct units_capacity){
			.fraction = UNITS_AUTO_FRACTION, .yields = true
		};
	if (!c->cache_policy)
		c->cache_policy = strdup(policy);
	return c->cache_policy ? 0 : -ENOMEM;
}

int fs_config_tiers(const struct fs_config *c, struct tiers *ret,
		    struct err *err)
{
	char **items = c->tiers.items;
	int r = 0;

	/* of a running mount: its texts are compared, no more */
	for (size_t i = 0; i < c->tiers.n; i++)
		if (part_is_kept(items[i]))
			return 0;
	for (size_t i = 0; r == 0 && i < c->tiers.n; i++)
		r = add_tier(items[i], ret, err);
	return r;
}

int fs_config_set_tier(struct fs_config *c, size_t i, const struct tier *t)
{
	char **items = c->tiers.items, *text = tier_text(t);

	if (!text)
		return -ENOMEM;
	free(items[i]);
	items[i] = text;
	return 0;
}

enum tier_admit fs_config_admit(const struct fs_config *c)
{
	enum tier_admit admit = TIER_ADMIT_EVERY;

	tier_admit_parse(c->tier_admit, &admit, NULL);
	return admit;
}

int fs_config_no_cache(struct fs_config *c)
{
	for (size_t i = 0; i < c->tiers.n; i++)
		free(((char **)c->tiers.items)[i]);
	free(c->tiers.items);
	free(c->cache_policy);
	c->tiers = (struct conf_list){ 0 };
	c->cache_size = (struct units_capacity){ .fraction = -1 };
	c->cache_policy = strdup("none");
	return c->cache_policy ? 0 : -ENOMEM;
}

int fs_config_nic(const struct fs_config *c, struct node_profile *ret,
		  struct err *err)
{
	int r = node_profile_load(c->nic, ret, err);

	return r == 0 && ret->nic.gb_per_s <= 0
		       ? err_set(err, -ENODEV, "--nic %s: the node has no nic",
				 c->nic)
		       : r;
}
