/* SPDX-License-Identifier: MIT */
#include "loader/sim/sim_fs.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/util.h"
#include "common/word.h"
#include "emu/profile/profile.h"
#include "fs/layer/ahead.h"

static int check_storage(const void *object, struct err *err)
{
	return profile_check(PROFILE_STORAGE, object, err);
}

static int check_nic(const void *object, struct err *err)
{
	return profile_check(PROFILE_NODE, object, err);
}

static int check_policy(const void *object, struct err *err)
{
	return plugin_choice_check(policy_table, "cache policy", object, err);
}

static int check_admit(const void *object, struct err *err)
{
	enum tier_admit admit;

	return tier_admit_parse(*(char *const *)object, &admit, err);
}

static int check_tier(const void *object, struct err *err)
{
	struct tiers t = { 0 };
	int r = tiers_parse(*(char *const *)object, false, check_storage, &t,
			    err);

	tiers_fini(&t);
	return r;
}

#define FIELD(key, type, member) key, type, offsetof(struct sim_fs, member)

static const struct conf_field fields[] = {
	{ FIELD("storage", CONF_STRING, storage), .check = check_storage },
	{ FIELD("cache_policy", CONF_STRING, cache_policy),
	  .check = check_policy },
	{ FIELD("cache_size", CONF_CAPACITY, cache_size),
	  .check = tier_check_size },
	{ FIELD("tier", CONF_LIST, tiers), .item = CONF_STRING,
	  .item_size = sizeof(char *), .lone = true, .check = check_tier },
	{ FIELD("tier_admit", CONF_STRING, tier_admit), .check = check_admit },
	{ FIELD("cache_metadata", CONF_BOOL, cache_metadata) },
	{ FIELD("nic", CONF_STRING, nic), .check = check_nic },
	{ FIELD("prefetch", CONF_SIZE, prefetch) },
	{ FIELD("prefetch_depth", CONF_UINT, prefetch_depth), .min = 1,
	  .max = AHEAD_MOST_DEPTH },
	{ 0 },
};

/* For an unknown key; the keys are in the manual page, too. */
static int unknown(const char *text, struct err *err)
{
	struct word_list words = WORD_LIST(text, strcspn(text, "="));

	for (const struct conf_field *f = fields; f->key; f++)
		word_list_add(&words, f->key);
	return err_set(err, -EINVAL,
		       "--fs %s: give KEY=VALUE, with a KEY of gpemu-fs that a "
		       "simulation knows%s (known: %s)",
		       text, words.hint, words.known);
}

/* A file for real mounts may have more keys than a simulation knows. */
static int load(struct sim_fs *o, const char *file, struct err *err)
{
	int r = conf_load(file, fields, o, err);

	if (r < 0)
		err_prefix(err, "--fs-config of a simulation");
	return r;
}

static int set(struct sim_fs *o, const char *text, struct err *err)
{
	size_t n = strcspn(text, "=");
	struct err why = { 0 };
	int r;

	for (const struct conf_field *f = fields; text[n] && f->key; f++) {
		if (strlen(f->key) != n || strncmp(f->key, text, n) != 0)
			continue;
		r = conf_set(f, o, text + n + 1, &why);
		return r < 0 ? err_set(err, r, "--fs %s: %s", text, why.text)
			     : 0;
	}
	return unknown(text, err);
}

/* As gpemu-fs does. */
static int settle(struct sim_fs *o, bool peers, struct err *err)
{
	bool sized = !isnan(o->cache_size.fraction);

	if (o->tiers.n && (o->cache_policy || sized))
		return err_set(err, -EINVAL,
			       "--fs, --fs-config: tier replaces cache_policy "
			       "and cache_size; leave those out");
	if (o->tiers.n)
		return 0;
	if (!sized)
		o->cache_size.fraction = UNITS_AUTO_FRACTION;
	if (!o->cache_policy)
		o->cache_policy =
			strdup(peers || o->prefetch ? "minio" : "lru");
	return o->cache_policy ? 0 : err_set(err, -ENOMEM, "out of memory");
}

int sim_fs_read(struct sim_fs *o, const char *file,
		const struct conf_list *settings, bool peers, struct err *err)
{
	char *const *text = settings->items;
	int r;

	*o = (struct sim_fs){ .cache_size = { .fraction = NAN },
			      .storage = strdup("ideal"),
			      .tier_admit = strdup("every"),
			      .prefetch_depth = AHEAD_DEPTH };
	r = o->storage && o->tier_admit
		    ? 0
		    : err_set(err, -ENOMEM, "out of memory");
	if (r == 0 && file)
		r = load(o, file, err);
	for (size_t i = 0; r == 0 && i < settings->n; i++)
		r = set(o, text[i], err);
	return r == 0 ? settle(o, peers, err) : r;
}

void sim_fs_fini(struct sim_fs *o)
{
	conf_free(fields, o);
}

static int one_tier(const struct sim_fs *o, struct tiers *ret, struct err *err)
{
	struct tier *t = &ret->v[ret->n++];

	t->sizes = malloc(sizeof(*t->sizes));
	if (!t->sizes)
		return err_set(err, -ENOMEM, "out of memory");
	t->sizes[t->n_sizes++] = o->cache_size;
	return tier_add_policies(t, o->cache_policy, err);
}

int sim_fs_tiers(const struct sim_fs *o, struct tiers *ret, struct err *err)
{
	int r = 0;

	if (!o->tiers.n)
		return one_tier(o, ret, err);
	for (size_t i = 0; r == 0 && i < o->tiers.n; i++)
		r = tiers_parse(((char **)o->tiers.items)[i], false,
				check_storage, ret, err);
	return r;
}

json_t *sim_fs_json(const struct sim_fs *o)
{
	return conf_json(fields, o);
}
