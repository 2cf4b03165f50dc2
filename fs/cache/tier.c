/* SPDX-License-Identifier: MIT */
#include "fs/cache/tier.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/conf/part.h"
#include "common/util.h"
#include "common/word.h"

#define DRAM "dram"
#define BLANKS " \t\r\n"

int tier_admit_parse(const char *word, enum tier_admit *ret, struct err *err)
{
	static const char *const words[] = {
		[TIER_ADMIT_EVERY] = "every",
		[TIER_ADMIT_FIRST] = "first",
	};

	return WORD_INTO(words, "tier admission", word, ret, err);
}

const struct policy_ops *tier_policy_ops(const struct tier_policy *p)
{
	return container_of(p->choice.plugin, const struct policy_ops, plugin);
}

const char *tier_storage(const struct tier *t)
{
	return t->storage ? t->storage : DRAM;
}

char *tier_text(const struct tier *t)
{
	const struct tier_policy *p = &t->policies[0];
	const struct plugin *plugin = p->choice.plugin;
	const char *path = part_path(plugin);
	char size[UNITS_TEXT], *text;
	int n = asprintf(&text, "%s:%s%s:%s", tier_storage(t),
			 path ? path : plugin->name,
			 p->text + strlen(plugin->name),
			 units_exact_capacity(&t->sizes[0], size));

	return n < 0 ? NULL : text;
}

static int add_policy(void *ctx, const char *text, struct err *err)
{
	struct tier *t = ctx;
	struct tier_policy *v =
		reallocarray(t->policies, t->n_policies + 1, sizeof(*v));
	struct tier_policy *p;
	int r;

	if (!v)
		return -ENOMEM;
	t->policies = v;
	p = &v[t->n_policies++];
	p->text = NULL;
	r = plugin_choose(policy_table, "cache policy", text, &p->choice, err);
	if (r < 0)
		return r;
	p->text = plugin_choice_text(p->choice.plugin, p->choice.options);
	return p->text ? 0 : -ENOMEM;
}

int tier_add_policies(struct tier *t, const char *list, struct err *err)
{
	return plugin_choice_each(policy_table, list, add_policy, t, err);
}

static int bad_size(const char *word, struct err *err)
{
	char size[UNITS_TEXT];

	if (units_size_hint(word, size))
		return err_set(err, -EINVAL,
			       "'%s' is not a size: write %s (units are powers "
			       "of 1024)",
			       word, size);
	return err_set(err, -EINVAL,
		       "'%s' is not a cache size such as 35%% or 8G", word);
}

int tier_add_sizes(struct tier *t, const char *list, struct err *err)
{
	_cleanup_free_ char *copy = strdup(list);
	char *rest = copy, *word;

	if (!copy)
		return -ENOMEM;
	while ((word = strsep(&rest, ","))) {
		struct units_capacity *v =
			reallocarray(t->sizes, t->n_sizes + 1, sizeof(*v));

		if (!v)
			return -ENOMEM;
		t->sizes = v;
		if (units_parse_capacity(word, &v[t->n_sizes]) < 0)
			return bad_size(word, err);
		t->n_sizes++;
	}
	return 0;
}

int tier_check_size(const void *capacity, struct err *err)
{
	/* arbitrary: less than any sample of a dataset */
	enum { LEAST_BYTES = 1024 };
	const struct units_capacity *c = capacity;

	if (c->fraction >= 0 || c->bytes == 0 || c->bytes >= LEAST_BYTES)
		return 0;
	return err_set(err, -EINVAL,
		       "%" PRIu64 " bytes hold no sample: write %" PRIu64
		       "M, or %" PRIu64 "%% of the dataset",
		       c->bytes, c->bytes, MIN(c->bytes, 100));
}

static int set_storage(struct tier *t, const char *name,
		       int (*check)(const void *storage, struct err *err),
		       struct err *err)
{
	if (!strcmp(name, DRAM))
		return 0;
	t->storage = strdup(name);
	return t->storage ? check(&t->storage, err) : -ENOMEM;
}

/* A size that shrinks to fit the memory does not define a tier's share. */
static int check_sizes(const struct tier *t, bool lists, struct err *err)
{
	int r = lists ? 0 : tier_check_size(t->sizes, err);

	for (size_t i = 0; i < t->n_sizes; i++)
		if (t->sizes[i].yields)
			return err_set(err, -EINVAL,
				       "a tier needs a size such as 35%% or "
				       "8G, not auto");
	return r;
}

static int set_policies(struct tier *t, const char *list, bool lists,
			struct err *err)
{
	if (!lists &&
	    (list[plugin_choice_length(list)] || !strcmp(list, "all")))
		return err_set(err, -EINVAL, "name one policy, not '%s'", list);
	return tier_add_policies(t, list, err);
}

static int set_sizes(struct tier *t, const char *list, bool lists,
		     struct err *err)
{
	int r = !lists && strchr(list, ',')
			? err_set(err, -EINVAL, "give one size, not '%s'", list)
			: tier_add_sizes(t, list, err);

	return r == 0 ? check_sizes(t, lists, err) : r;
}

/* The words of one tier; *ret_at: the wrong word. */
static int parse_words(char *word, bool lists,
		       int (*check)(const void *storage, struct err *err),
		       struct tier *t, const char **ret_at, struct err *err)
{
	char *size = strrchr(word, ':'), *policy;
	int r = 0;

	*ret_at = word;
	if (!size)
		return err_set(err, -EINVAL,
			       "'%s' is not [STORAGE:]POLICY:SIZE such as "
			       "nvme:lru:50%%",
			       word);
	*size++ = 0;
	policy = word + plugin_last(word);
	if (policy > word) {
		policy[-1] = 0;
		r = set_storage(t, word, check, err);
	}
	if (r == 0) {
		*ret_at = policy;
		r = set_policies(t, policy, lists, err);
	}
	if (r == 0) {
		*ret_at = size;
		r = set_sizes(t, size, lists, err);
	}
	return r;
}

int tiers_parse(const char *text, bool lists,
		int (*check)(const void *storage, struct err *err),
		struct tiers *ret, struct err *err)
{
	size_t at = strspn(text, BLANKS), n;

	if (!text[at])
		return err_set(
			err, -EINVAL,
			"column 1: no tier; write one such as nvme:lru:50%%");
	for (; text[at]; at += n + strspn(text + at + n, BLANKS)) {
		_cleanup_free_ char *word = NULL;
		const char *wrong;
		int r;

		n = strcspn(text + at, BLANKS);
		if (ret->n == TIERS_MAX)
			return err_set(err, -EINVAL,
				       "column %zu: more than %d tiers", at + 1,
				       TIERS_MAX);
		word = strndup(text + at, n);
		if (!word)
			return err_set(err, -ENOMEM, "out of memory");
		ret->v[ret->n] = (struct tier){ 0 };
		r = parse_words(word, lists, check, &ret->v[ret->n++], &wrong,
				err);
		if (r < 0) {
			err_set(err, r, "%s", strerror(-r));
			err_prefix(err, "column %zu",
				   at + (size_t)(wrong - word) + 1);
			return r;
		}
	}
	return 0;
}

void tiers_fini(struct tiers *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free(t->v[i].storage);
		for (size_t p = 0; p < t->v[i].n_policies; p++) {
			plugin_choice_fini(&t->v[i].policies[p].choice);
			free(t->v[i].policies[p].text);
		}
		free(t->v[i].policies);
		free(t->v[i].sizes);
	}
	*t = (struct tiers){ 0 };
}
