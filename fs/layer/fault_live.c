/* SPDX-License-Identifier: MIT */
#include "fs/layer/fault_live.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "common/util.h"

/* A list of n entries, without rules and ids yet; NULL: no memory. */
static struct fault_live *lives_new(size_t n)
{
	struct fault_live *list = NULL, *l, *next;

	for (; n; n--) {
		l = calloc(1, sizeof(*l));
		if (!l)
			break;
		DL_APPEND(list, l);
	}
	if (!n)
		return list;
	DL_FOREACH_SAFE (list, l, next)
		free(l);
	return NULL;
}

int fault_live_parse(const char *text, struct fault_live **ret, struct err *err)
{
	struct fault_rule *rules;
	struct fault_live *l;
	size_t n, i = 0;
	int r = fault_rules_parse(text, strlen(text), &rules, &n, err);

	if (r < 0)
		return r;
	*ret = lives_new(n);
	if (!*ret) {
		fault_rules_free(rules, n);
		return err_set(err, -ENOMEM, "out of memory");
	}
	DL_FOREACH (*ret, l)
		l->rule = rules[i++];
	free(rules);
	return 0;
}

void fault_live_free(struct fault_live *rules)
{
	struct fault_live *l, *next;

	DL_FOREACH_SAFE (rules, l, next) {
		fault_rule_fini(&l->rule);
		free(l);
	}
}

struct verdict fault_live_judge(struct fault_live *rules, unsigned op,
				const char *path, uint64_t seed)
{
	struct verdict v = { 0 };
	struct fault_live *l;

	DL_FOREACH (rules, l) {
		const struct fault_rule *r = &l->rule;

		if (!fault_matches(r, op, path) ||
		    !fault_fires(r, seed, ++l->matched, l->fired))
			continue;
		l->fired++;
		if (!v.error)
			v.error = r->error;
		if (r->delay_ns && !r->stuck && !v.stuck)
			v.delay_ns = MIN(v.delay_ns + r->delay_ns,
					 FAULT_MAX_DELAY_NS);
		if ((r->delay_ns || r->stuck) && !v.rule)
			v.rule = l->id;
		if (r->stuck && !v.stuck) {
			v.stuck = true;
			v.delay_ns = r->delay_ns;
			v.rule = l->id;
		}
	}
	return v;
}

bool fault_live_may(const struct fault_live *rules, unsigned op,
		    const char *path)
{
	const struct fault_live *l;
	bool may = false;

	DL_FOREACH (rules, l)
		may |= !fault_is_over(&l->rule, l->matched, l->fired) &&
		       fault_matches(&l->rule, op, path);
	return may;
}
