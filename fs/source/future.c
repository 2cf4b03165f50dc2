/* SPDX-License-Identifier: MIT */
#include "fs/source/future.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/util.h"

struct future *future_new(const uint32_t v[FUTURE_FIELDS])
{
	uint64_t n = v[FUTURE_FIRST] +
		     (uint64_t)(v[FUTURE_EPOCHS] - 1) * v[FUTURE_REST];
	struct future *f =
		malloc(sizeof(*f) + n * v[FUTURE_WORLD] * sizeof(f->node[0]));

	if (f)
		*f = (struct future){ .refs = 1,
				      .rank = v[FUTURE_RANK],
				      .world = v[FUTURE_WORLD],
				      .first = v[FUTURE_FIRST],
				      .rest = v[FUTURE_REST],
				      .continues = v[FUTURE_FLAGS] &
						   FUTURE_CONTINUES,
				      .n = n };
	return f;
}

struct future *future_get(struct future *f)
{
	__atomic_fetch_add(&f->refs, 1, __ATOMIC_RELAXED);
	return f;
}

void future_put(struct future *f)
{
	if (f && __atomic_sub_fetch(&f->refs, 1, __ATOMIC_ACQ_REL) == 0)
		free(f);
}

void future_in_fini(struct future_in *in)
{
	future_put(in->future);
	*in = (struct future_in){ 0 };
}

static int check_head(const uint32_t v[FUTURE_FIELDS], bool magic,
		      struct err *err)
{
	uint64_t share = v[FUTURE_FIRST];

	if (!magic || v[FUTURE_VERSION] != FUTURE_IS_VERSION)
		return err_set(err, -EINVAL,
			       "not a list of future accesses of version %d",
			       FUTURE_IS_VERSION);
	if (!v[FUTURE_WORLD] || v[FUTURE_WORLD] > FUTURE_MOST_RANKS ||
	    v[FUTURE_RANK] >= v[FUTURE_WORLD])
		return err_set(err, -EINVAL,
			       "rank %" PRIu32 " of %" PRIu32
			       ": ranks count from 0, and there are at most %d",
			       v[FUTURE_RANK], v[FUTURE_WORLD],
			       FUTURE_MOST_RANKS);
	if (!v[FUTURE_EPOCHS] || !v[FUTURE_FIRST])
		return err_set(err, -EINVAL,
			       "a list without accesses: %" PRIu32
			       " epochs, %" PRIu32 " accesses in the first",
			       v[FUTURE_EPOCHS], v[FUTURE_FIRST]);
	if (v[FUTURE_FLAGS] & ~(uint32_t)FUTURE_CONTINUES)
		return err_set(err, -EINVAL,
			       "unknown flags %#" PRIx32 " (known: 1)",
			       v[FUTURE_FLAGS]);
	/* both factors have 32 bits */
	share += (uint64_t)(v[FUTURE_EPOCHS] - 1) * v[FUTURE_REST];
	if (share > FUTURE_MOST / v[FUTURE_WORLD])
		return err_set(err, -E2BIG,
			       "more than %d accesses of all ranks; announce "
			       "fewer epochs at a time",
			       FUTURE_MOST);
	return 0;
}

static int take_head(struct future_in *in, struct err *err)
{
	bool magic = !memcmp(in->head, FUTURE_MAGIC, 8);
	uint32_t v[FUTURE_FIELDS];
	int r;

	memcpy(v, in->head + 8, sizeof(v));
	for (int i = 0; i < FUTURE_FIELDS; i++)
		v[i] = le32toh(v[i]);
	r = check_head(v, magic, err);
	if (r < 0)
		return r;
	in->future = future_new(v);
	return in->future ? 0 : err_set(err, -ENOMEM, "out of memory");
}

/* Numbers that are complete: from inodes to nodes. */
static int check_list(struct future_in *in, const struct tree *t, uint64_t n,
		      struct err *err)
{
	struct future *f = in->future;

	for (; in->n_checked < n; in->n_checked++) {
		uint32_t *x = &f->node[in->n_checked];
		uint32_t node = le32toh(*x) - 1; /* 0: TREE_NONE */

		if (node != TREE_NONE &&
		    (node >= t->n_nodes || !S_ISREG(t->nodes[node].mode)))
			return err_set(err, -EINVAL,
				       "access %" PRIu64
				       ": no file has the inode number "
				       "%" PRIu32,
				       in->n_checked, node + 1);
		*x = node;
	}
	return 0;
}

static int take_bytes(struct future_in *in, const struct tree *t,
		      const unsigned char *bytes, size_t n, struct err *err)
{
	uint64_t most;
	size_t head = MIN(n, FUTURE_HEAD - MIN(in->bytes, FUTURE_HEAD));
	int r = 0;

	if (head) {
		memcpy(in->head + in->bytes, bytes, head);
		in->bytes += head;
		if (in->bytes == FUTURE_HEAD)
			r = take_head(in, err);
		bytes += head;
		n -= head;
	}
	if (r < 0 || !n)
		return r;
	most = in->future->n * in->future->world * sizeof(uint32_t);
	if (n > FUTURE_HEAD + most - in->bytes)
		return err_set(err, -EINVAL,
			       "more accesses than the header of the list "
			       "says");
	memcpy((unsigned char *)in->future->node + (in->bytes - FUTURE_HEAD),
	       bytes, n);
	in->bytes += n;
	return check_list(in, t, (in->bytes - FUTURE_HEAD) / sizeof(uint32_t),
			  err);
}

int future_take(struct future_in *in, const struct tree *t, uint64_t offset,
		const void *bytes, size_t n, struct future **ret,
		struct err *err)
{
	int r;

	*ret = NULL;
	if (offset == 0)
		future_in_fini(in);
	r = offset == in->bytes
		    ? take_bytes(in, t, bytes, n, err)
		    : err_set(err, -EINVAL,
			      "write the list from its start, in order");
	if (r == 0 && in->future &&
	    in->n_checked == in->future->n * in->future->world)
		*ret = TAKE_PTR(in->future);
	if (r < 0 || *ret)
		future_in_fini(in);
	return r;
}

int future_end(struct future_in *in, struct err *err)
{
	const struct future *f = in->future;
	uint64_t want = FUTURE_HEAD;
	int r = 0;

	if (f)
		want += f->n * f->world * sizeof(f->node[0]);
	if (in->bytes)
		r = err_set(err, -EINVAL,
			    "the list ends after %" PRIu64 " of %s%" PRIu64
			    " bytes, so it is not used: write all accesses "
			    "that its header announces",
			    in->bytes, f ? "" : "at least ", want);
	future_in_fini(in);
	return r;
}
