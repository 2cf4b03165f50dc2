/* SPDX-License-Identifier: MIT */
#include "runner/cell/run_tiers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/plugin.h"
#include "common/util.h"
#include "runner/cell/run_machine.h"

#define BLANKS " \t\r\n"

/* [STORAGE:]POLICY:SIZE; anything else is left out. */
static int add_tier(struct run_tiers *t, const char *word, size_t n)
{
	struct run_tier *v = reallocarray(t->v, t->n + 1, sizeof(*v));
	char *text = strndup(word, n), *size, *policy;

	if (v)
		t->v = v;
	if (!v || !text) {
		free(text);
		return -ENOMEM;
	}
	size = strrchr(text, ':');
	if (!size || units_parse_capacity(size + 1, &v[t->n].size) < 0) {
		free(text);
		return 0;
	}
	*size = 0;
	policy = text + plugin_last(text);
	v[t->n].text = text;
	v[t->n].policy = policy;
	v[t->n].storage = NULL;
	if (policy > text) {
		policy[-1] = 0;
		v[t->n].storage = strcmp(text, "dram") ? text : NULL;
	}
	t->n++;
	return 0;
}

static int add_tiers(struct run_tiers *t, const json_t *text)
{
	const char *s = json_string_value(text);
	int r = 0;

	while (r == 0 && s && *(s += strspn(s, BLANKS))) {
		size_t n = strcspn(s, BLANKS);

		r = add_tier(t, s, n);
		s += n;
	}
	return r;
}

static int add_lone(struct run_tiers *t, const struct workload *w,
		    const json_t *fs)
{
	char text[200];
	int n = snprintf(text, sizeof(text), "%s:%s",
			 config_text(w, fs, "fs", "cache_policy"),
			 config_text(w, fs, "fs", "cache_size"));

	return add_tier(t, text, MIN((size_t)n, sizeof(text) - 1));
}

int run_tiers_of(const struct workload *w, const json_t *fs,
		 struct run_tiers *ret)
{
	const json_t *tier = json_object_get(fs, "tier");
	int r;

	*ret = (struct run_tiers){ 0 };
	r = tier ? add_tiers(ret, tier) : add_lone(ret, w, fs);
	for (size_t i = 0; r == 0 && i < json_array_size(tier); i++)
		r = add_tiers(ret, json_array_get(tier, i));
	return r;
}

void run_tiers_fini(struct run_tiers *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->v[i].text);
	free(t->v);
	*t = (struct run_tiers){ 0 };
}
