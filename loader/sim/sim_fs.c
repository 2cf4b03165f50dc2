/* SPDX-License-Identifier: MIT */
#include "loader/sim/sim_own.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/conf/part.h"
#include "common/word.h"

struct whole {
	struct fs_config c;
};

static const struct conf_field fields[] = {
	FS_CONFIG_FIELDS(struct whole, c),
	{ 0 },
};

static const struct conf_field *find_field(const char *key, size_t n)
{
	for (const struct conf_field *f = fields; f->key; f++)
		if (strlen(f->key) == n && !strncmp(f->key, key, n))
			return f;
	return NULL;
}

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

/* Move the unknown keys of a file to `left_out`. */
static void leave_out(struct conf_node *root, json_t *left_out)
{
	size_t n = root->n;

	root->n = 0;
	for (size_t i = 0; i < n; i++) {
		struct conf_node *item = root->items[i];

		if (find_field(item->key, strlen(item->key))) {
			root->items[root->n++] = item;
			continue;
		}
		json_array_append_new(left_out, json_string(item->key));
		conf_node_free(item);
	}
}

/* A file for real mounts may have more keys than a simulation knows. */
static int load(struct fs_config *c, const char *file, json_t *left_out,
		struct err *err)
{
	_cleanup_conf_node_ struct conf_node *root = NULL;
	int r = conf_tree_load(file, &root, err);

	if (r == 0 && left_out && root->kind == CONF_KIND_MAPPING)
		leave_out(root, left_out);
	if (r == 0)
		r = conf_decode(root, file, fields, c, err);
	if (r < 0)
		err_prefix(err, "--fs-config of a simulation");
	return r;
}

static int set(struct fs_config *c, const char *text, struct err *err)
{
	size_t n = strcspn(text, "=");
	const struct conf_field *f = text[n] ? find_field(text, n) : NULL;
	struct err why = { 0 };
	int r;

	if (!f)
		return unknown(text, err);
	r = conf_set(f, c, text + n + 1, &why);
	return r < 0 ? err_set(err, r, "--fs %s: %s", text, why.text) : 0;
}

int sim_fs_read(struct fs_config *c, const char *file,
		const struct conf_list *settings, bool peers, json_t *left_out,
		struct err *err)
{
	char *const *text = settings->items;
	int r = fs_config_init(c);

	/* these are options of the user's, too */
	part_files_allow(true);
	if (r == 0 && file)
		r = load(c, file, left_out, err);
	for (size_t i = 0; r == 0 && i < settings->n; i++)
		r = set(c, text[i], err);
	part_files_allow(false);
	if (r == 0)
		r = fs_config_settle(c, fs_config_policy(c, peers), err);
	return r < 0 ? err_set(err, r, "%s", strerror(-r)) : 0;
}

void sim_fs_fini(struct fs_config *c)
{
	conf_free(fields, c);
}

static int one_tier(const struct fs_config *c, struct tiers *ret,
		    struct err *err)
{
	struct tier *t = &ret->v[ret->n++];

	t->sizes = malloc(sizeof(*t->sizes));
	if (!t->sizes)
		return err_set(err, -ENOMEM, "out of memory");
	t->sizes[t->n_sizes++] = c->cache_size;
	return tier_add_policies(t, c->cache_policy, err);
}

int sim_fs_tiers(const struct fs_config *c, struct tiers *ret, struct err *err)
{
	return c->tiers.n ? fs_config_tiers(c, ret, err)
			  : one_tier(c, ret, err);
}

json_t *sim_fs_json(const struct fs_config *c)
{
	return conf_json(fields, c);
}
