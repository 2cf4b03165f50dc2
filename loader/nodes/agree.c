/* SPDX-License-Identifier: MIT */
#include "loader/nodes/agree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/util.h"

static int compare(const struct comm *c, const json_t *first,
		   const json_t *mine, struct err *err)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)mine, key, value) {
		const json_t *other = json_object_get(first, key);
		_cleanup_free_ char *a = NULL, *b = NULL;

		if (other && json_equal(other, value))
			continue;
		a = other ? json_dumps(other, JSON_ENCODE_ANY) : NULL;
		b = json_dumps(value, JSON_ENCODE_ANY);
		return err_set(err, -EINVAL,
			       "all ranks need the same %s: rank 0 has %s, and "
			       "rank %" PRIu32 " has %s",
			       key, a ? a : "none", c->rank, b ? b : "another");
	}
	return 0;
}

int agree_same(struct comm *c, const json_t *mine, struct err *err)
{
	_cleanup_free_ char *text = json_dumps(mine, JSON_COMPACT);
	struct comm_blob b = { .bytes = text, .n = text ? strlen(text) : 0 };
	json_auto_t *first = NULL;
	int r = comm_bcast(c, &b, err);

	if (r < 0 || c->rank == 0)
		return r;
	first = json_loadb(b.bytes, b.n, 0, NULL);
	free(b.bytes);
	return first && mine ? compare(c, first, mine, err)
			     : err_set(err, -ENOMEM, "out of memory");
}

int agree_link(struct comm *c, struct collective *reduce, struct err *err)
{
	struct link {
		double bytes_per_s;
		uint64_t latency_ns;
	} mine = { reduce->bytes_per_s, reduce->latency_ns };
	_cleanup_free_ struct link *all = calloc(c->size, sizeof(*all));
	int r = comm_exchange(c, &mine, all, sizeof(mine), err);

	if (r == 0 && !all)
		r = err_set(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; r == 0 && i < c->size; i++) {
		reduce->bytes_per_s =
			MIN(reduce->bytes_per_s, all[i].bytes_per_s);
		reduce->latency_ns = MAX(reduce->latency_ns, all[i].latency_ns);
	}
	return r;
}

int agree_any(struct comm *c, bool mine, bool *ret, struct err *err)
{
	_cleanup_free_ bool *all = calloc(c->size, sizeof(*all));
	int r = comm_exchange(c, &mine, all, sizeof(mine), err);

	if (r == 0 && !all)
		r = err_set(err, -ENOMEM, "out of memory");
	*ret = false;
	for (uint32_t i = 0; r == 0 && i < c->size; i++)
		*ret |= all[i];
	return r;
}
