/* SPDX-License-Identifier: MIT */
#include "loader/nodes/agree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/util.h"

static int compare_options(const struct comm *c, const json_t *first,
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
	return first && mine ? compare_options(c, first, mine, err)
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

/* --- one record ---------------------------------------------------------- */

/* A message: the number of accounts, the accounts, and JSON to its end. */
static void pack(struct train_account *const *account, uint64_t n,
		 const json_t *own, struct comm_blob *ret)
{
	_cleanup_free_ char *text = json_dumps(own, JSON_COMPACT);
	size_t head = sizeof(n) + n * sizeof(**account);
	size_t length = text ? strlen(text) : 0;
	uint8_t *to = text ? malloc(head + length) : NULL;

	*ret = (struct comm_blob){ to, head + length };
	if (!to)
		return;
	memcpy(to, &n, sizeof(n));
	for (uint64_t i = 0; i < n; i++)
		memcpy(to + sizeof(n) + i * sizeof(**account), account[i],
		       sizeof(**account));
	memcpy(to + head, text, length);
}

/* Add a rank's message. */
static int unpack(const struct comm_blob *b,
		  struct train_account *const *account, uint64_t n, bool join,
		  json_t *nodes)
{
	_cleanup_free_ struct train_account *a = malloc(sizeof(*a));
	const uint8_t *from = b->bytes;
	uint64_t n_its;
	size_t head;

	if (!a)
		return -ENOMEM;
	memcpy(&n_its, from, sizeof(n_its));
	head = sizeof(n_its) + n_its * sizeof(*a);
	for (uint64_t i = 0; join && i < MIN(n, n_its); i++) {
		memcpy(a, from + sizeof(n_its) + i * sizeof(*a), sizeof(*a));
		account_join(account[i], a);
	}
	return json_array_append_new(nodes,
				     json_loadb((const char *)from + head,
						b->n - head, 0, NULL)) < 0
		       ? -ENOMEM
		       : 0;
}

int collect(struct comm *c, struct train_account *const *account, size_t n,
	    const json_t *own, json_t **ret_nodes, struct err *err)
{
	_cleanup_free_ struct comm_blob *all = calloc(c->size, sizeof(*all));
	struct comm_blob mine = { 0 };
	json_auto_t *nodes = json_array();
	int r;

	/* a rank without memory for its message sends none, which fails */
	pack(account, n, own, &mine);
	r = comm_gather(c, &mine, all, err);
	free(mine.bytes);
	for (uint32_t i = 0; r == 0 && c->rank == 0 && i < c->size; i++) {
		r = unpack(&all[i], account, n, i > 0, nodes);
		free(all[i].bytes);
	}
	*ret_nodes = r == 0 && c->rank == 0 ? json_incref(nodes) : NULL;
	return r < 0 ? err_set(err, r, "out of memory") : 0;
}
