/* SPDX-License-Identifier: MIT */
#include "fs/cache/cache_stack.h"

void cache_stack_fini(struct cache_stack *s)
{
	for (size_t k = 0; k < s->n; k++)
		cache_free(s->c[k]);
	s->n = 0;
}

size_t cache_stack_access(struct cache_stack *s, const struct cache_object *o)
{
	enum cache_result r = CACHE_REJECTED;
	bool admitted = false; /* by a tier above */
	struct cache_entry *e;

	for (size_t k = 0; k < s->n; k++) {
		if (admitted && s->admit == TIER_ADMIT_FIRST)
			r = cache_access_only(s->c[k], o) ? CACHE_HIT
							  : CACHE_REJECTED;
		else
			r = cache_access(s->c[k], o, &e);
		if (r == CACHE_HIT)
			return k;
		admitted = admitted || r == CACHE_ADMITTED;
	}
	return s->n;
}

size_t cache_stack_peek(const struct cache_stack *s, uint64_t key)
{
	size_t k = 0;

	while (k < s->n && !cache_peek(s->c[k], key))
		k++;
	return k;
}
