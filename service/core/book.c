/* SPDX-License-Identifier: MIT */
#include "service/core/book.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "net/wire.h"

static void job_free(struct job *j)
{
	for (int i = 0; i < REGISTRY_MOST; i++)
		free(j->worker[i].why);
	free(j->definition);
	splits_fini(&j->splits);
	free(j);
}

void book_fini(struct book *b)
{
	while (b->n)
		job_free(b->job[--b->n]);
}

struct job *book_find(const struct book *b, uint64_t job)
{
	for (uint32_t i = 0; i < b->n; i++)
		if (b->job[i]->id == job)
			return b->job[i];
	return NULL;
}

struct job *book_epoch(const struct book *b, uint64_t job, uint64_t epoch)
{
	struct job *j = book_find(b, job);

	return j && j->begun && j->epoch == epoch ? j : NULL;
}

/* Trainers that share have batches, and no splits. */
static bool share_fits(const struct msg *m)
{
	switch (m->share) {
	case SHARE_NONE: return !m->a && !m->b;
	case SHARE_WINDOW: return !m->a && !m->b && m->role == SPLIT_OFF;
	case SHARE_ROUNDS:
		return m->b && m->b <= PREPD_CONSUMERS && m->role == SPLIT_OFF;
	default: return false;
	}
}

bool book_job_fits(const struct msg *m)
{
	return m->role < SPLIT_MODES && m->job && m->count && m->split &&
	       share_fits(m);
}

struct msg book_job_msg(const struct job *j)
{
	return (struct msg){ .type = PREPD_JOB,
			     .job = j->id,
			     .id = j->number,
			     .role = (uint8_t)j->mode,
			     .count = j->batch,
			     .split = j->per_split,
			     .share = j->share.how,
			     .a = j->share.bucket,
			     .b = j->share.consumers,
			     .rest = j->definition,
			     .n_rest = strlen(j->definition) };
}

bool book_job_equals(const struct job *j, const struct msg *m)
{
	return m->job == j->id && m->role == j->mode && m->count == j->batch &&
	       m->split == j->per_split && m->share == j->share.how &&
	       m->a == j->share.bucket && m->b == j->share.consumers &&
	       m->n_rest == strlen(j->definition) &&
	       !memcmp(m->rest, j->definition, m->n_rest);
}

static int add_job(struct book *b, const struct msg *e)
{
	struct job *j;

	if (book_find(b, e->job) || !book_job_fits(e))
		return -EPROTO;
	if (b->n == BOOK_JOBS)
		return -ENOSPC;
	j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	*j = (struct job){ .id = e->job,
			   .number = e->id,
			   .mode = (enum split_mode)e->role,
			   .batch = e->count,
			   .per_split = e->split,
			   .share = { (enum share_how)e->share, (uint32_t)e->b,
				      e->a },
			   .definition = msg_text(e) };
	if (!j->definition) {
		free(j);
		return -ENOMEM;
	}
	b->job[b->n++] = j;
	return 0;
}

static int begin_epoch(struct book *b, const struct msg *e)
{
	struct job *j = book_find(b, e->job);
	uint32_t n = (uint32_t)(e->n_rest / 8);
	struct wire w = { .at = e->rest, .left = e->n_rest };
	_cleanup_free_ uint64_t *slot = calloc(n + 1, sizeof(*slot));
	struct splits s;
	int r;

	if (!j || e->a == 0 || e->a > UINT32_MAX)
		return -EPROTO;
	if (!slot)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		if (!(slot[i] = wire_get(&w, 8)))
			return -EPROTO;
	r = splits_init(&s, j->mode, e->a, j->batch, j->per_split, slot, n);
	if (r < 0) {
		splits_fini(&s);
		return r == -EINVAL ? -EPROTO : r;
	}
	splits_fini(&j->splits);
	j->splits = s;
	j->epoch = e->epoch;
	j->begun = true;
	return 0;
}

static int lose(struct book *b, const struct msg *e)
{
	for (uint32_t i = 0; i < b->n; i++)
		if (!e->job || b->job[i]->id == e->job)
			splits_lose(&b->job[i]->splits, e->id);
	return 0;
}

static int drop_job(struct book *b, uint64_t job)
{
	for (uint32_t i = 0; i < b->n; i++) {
		if (b->job[i]->id != job)
			continue;
		job_free(b->job[i]);
		b->job[i] = b->job[--b->n];
		return 0;
	}
	return -EPROTO;
}

int book_apply(struct book *b, const struct msg *e)
{
	struct job *j = book_epoch(b, e->job, e->epoch);
	int r = -EPROTO;

	switch (e->type) {
	case PREPD_JOB: return add_job(b, e);
	case PREPD_EPOCH: return begin_epoch(b, e);
	case PREPD_LOST: return lose(b, e);
	case PREPD_DROP: return drop_job(b, e->job);
	case PREPD_SPLIT:
		r = j && e->id ? splits_assign(&j->splits, e->split, e->id)
			       : -EPROTO;
		break;
	case PREPD_DONE:
		r = j ? splits_done(&j->splits, e->split) : -EPROTO;
		break;
	default: break;
	}
	return r < 0 ? -EPROTO : 0;
}

typedef int (*put_fn)(void *ctx, const struct msg *event);

/* What is assigned or done, after what was lost. */
static int dump_splits(const struct job *j, put_fn put, void *ctx)
{
	const struct splits *s = &j->splits;
	struct msg e = { .job = j->id, .epoch = j->epoch };
	int r = 0;

	for (uint32_t i = 0; r >= 0 && i < s->n; i++) {
		if (s->state[i] == SPLIT_FREE || s->state[i] == SPLIT_LOST)
			continue;
		e.type = s->state[i] == SPLIT_DONE ? PREPD_DONE : PREPD_SPLIT;
		e.split = i;
		e.id = s->state[i] == SPLIT_DONE ? 0 : s->owner[i];
		r = put(ctx, &e);
	}
	return r;
}

/* What was lost: assigned to its workers again, then these are lost. */
static int dump_lost(const struct job *j, put_fn put, void *ctx)
{
	const struct splits *s = &j->splits;
	int r = 0;

	for (uint32_t i = 0; r >= 0 && i < s->n; i++) {
		struct msg e = { .type = PREPD_SPLIT,
				 .job = j->id,
				 .epoch = j->epoch,
				 .split = i,
				 .id = s->owner[i] };

		if (s->state[i] == SPLIT_LOST)
			r = put(ctx, &e);
	}
	for (uint32_t i = 0; r >= 0 && i < s->n; i++) {
		struct msg e = { .type = PREPD_LOST,
				 .job = j->id,
				 .id = s->owner[i] };

		if (s->state[i] == SPLIT_LOST &&
		    (i == 0 || s->state[i - 1] != SPLIT_LOST ||
		     s->owner[i - 1] != s->owner[i]))
			r = put(ctx, &e);
	}
	return r;
}

static int dump_job(const struct job *j, put_fn put, void *ctx)
{
	const struct splits *s = &j->splits;
	_cleanup_free_ unsigned char *slots = malloc(s->n_slots * 8 + 1);
	unsigned char *at = slots;
	struct msg job = book_job_msg(j);
	struct msg epoch = { .type = PREPD_EPOCH,
			     .job = j->id,
			     .epoch = j->epoch,
			     .a = s->samples,
			     .rest = slots,
			     .n_rest = s->n_slots * 8 };
	int r;

	if (!slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_slots; i++)
		at = wire_put(at, s->slot[i], 8);
	r = put(ctx, &job);
	if (r < 0 || !j->begun)
		return r;
	r = put(ctx, &epoch);
	if (r >= 0)
		r = dump_lost(j, put, ctx);
	return r < 0 ? r : dump_splits(j, put, ctx);
}

int book_dump(const struct book *b, put_fn put, void *ctx)
{
	int r = 0;

	for (uint32_t i = 0; r >= 0 && i < b->n; i++)
		r = dump_job(b->job[i], put, ctx);
	return r < 0 ? r : 0;
}
