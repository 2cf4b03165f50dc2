/* SPDX-License-Identifier: MIT */
#include "runner/run/run_shard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/rng.h"
#include "common/util.h"

/* arbitrary: more than there are machines */
enum { MOST = 100000 };

int shard_parse(const char *text, struct shard *ret, struct err *err)
{
	unsigned index, n;
	int end = 0;

	if (sscanf(text, "%6u/%6u%n", &index, &n, &end) != 2 || text[end] ||
	    text[0] < '0' || index < 1 || index > n || n > MOST)
		return err_set(err, -EINVAL,
			       "'%s' is not I/N, such as 2/4 for the second of "
			       "four shards",
			       text);
	*ret = (struct shard){ .index = index - 1, .n = n };
	return 0;
}

/* Deal the points of repetition `rep`, in an order of its own. */
static void deal(const struct shard *s, const struct workload *w, size_t rep,
		 uint32_t *order, bool *ret)
{
	struct rng rng = rng_stream(w->seed, "shard", rep);
	size_t first = rep * w->n_points;

	rng_permutation_u32(&rng, order, w->n_points);
	for (size_t i = 0; i < w->n_points; i++)
		ret[first + order[i]] = !s->n || (first + i) % s->n == s->index;
}

int shard_cells(const struct shard *s, const struct workload *w, bool **ret)
{
	_cleanup_free_ uint32_t *order = calloc(w->n_points, sizeof(*order));
	bool *mine = calloc(workload_n_cells(w), sizeof(*mine));

	for (size_t rep = 0; order && mine && rep < w->repetitions; rep++)
		deal(s, w, rep, order, mine);
	*ret = mine;
	return order && mine ? 0 : -ENOMEM;
}

size_t shard_n_cells(const struct shard *s, const struct workload *w)
{
	size_t n = workload_n_cells(w);

	return s->n ? (n + s->n - 1 - s->index) / s->n : n;
}
