/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/thread.h"
#include "common/util.h"
#include "service/worker/task_own.h"

/*
 * --- batches that trainers share ------------------------------------------
 *
 * The batches of a job that several trainers share (service/decide/sweep.h),
 * each in a parcel of its own: the pipeline's windows are free for the next
 * ones, and a batch is copied and sealed once, under a key that is drawn here
 * and gone with the job. Its number is that in the sweep, so that no two
 * batches have the same one. For one thread, that of the worker's loop.
 */

struct shared {
	struct sweep *sweep; /* of struct task_batch */
	uint64_t job;
	struct seal_key key;
};

/* A connection that is sending it keeps its parcel. */
static void drop(void *element, void *ctx)
{
	struct task_batch *b = element;

	(void)ctx;
	parcel_put(b->parcel);
	free(b);
}

/* -ENOMEM. */
static int shared_new(uint64_t job, uint64_t limit_bytes, struct shared **ret)
{
	struct shared *w = calloc(1, sizeof(*w));
	int r = w ? sweep_new(limit_bytes, drop, NULL, &w->sweep) : -ENOMEM;

	if (r < 0) {
		free(w);
		return r;
	}
	w->job = job;
	seal_draw(&w->key);
	*ret = w;
	return 0;
}

/* NULL is allowed. */
static void shared_free(struct shared *w)
{
	if (!w)
		return;
	sweep_free(w->sweep);
	seal_forget(&w->key, sizeof(w->key));
	free(w);
}

/* For its trainers: what its parcels are sealed with. */
static const struct seal_key *shared_key(const struct shared *w)
{
	return &w->key;
}

/*
 * The next batch for a reader, until shared_add; NULL: there is none now. Its
 * `position` is its number, from 0; its samples are in its parcel alone. A
 * reader whose place is in a sweep that was longer begins anew.
 */
static const struct task_batch *shared_next(struct shared *w,
					    struct sweep_reader *at)
{
	void *element;

	if (at->next > sweep_made(w->sweep))
		at->next = at->n_read = 0;
	if (sweep_next(w->sweep, at, &element) < 0)
		return NULL;
	return element;
}

static size_t bytes_of(const struct delivery *d)
{
	size_t n = msg_batch_table(d->n);

	for (uint32_t i = 0; i < d->n; i++)
		n += d->place[i].n;
	return n;
}

/* The rest of a BATCH. */
static void fill_batch(unsigned char *rest, const struct delivery *d)
{
	size_t table = msg_batch_table(d->n);
	unsigned char *at = rest + table;

	memset(rest, 0, table);
	for (uint32_t i = 0; i < d->n; i++) {
		const struct place *p = &d->place[i];
		const struct msg_sample one = { p->sample, p->error, p->n,
						p->bypassed };

		msg_batch_put(rest, i, &one);
		if (p->n)
			memcpy(at, p->data, p->n);
		at += p->n;
	}
}

/* A sealed copy of the batch, for all readers. -EFBIG: larger than the window,
 * or than a frame; -ENOMEM. */
static int shared_add(struct shared *w, const struct task_batch *b)
{
	size_t bytes = bytes_of(&b->d);
	struct task_batch *copy;
	int r;

	if (bytes > PARCEL_MOST)
		return -EFBIG;
	copy = malloc(sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	*copy = *b;
	copy->d.place = NULL;
	copy->position = sweep_made(w->sweep);
	copy->parcel = parcel_new(bytes);
	r = copy->parcel ? sweep_extend(w->sweep, copy, sizeof(*copy) + bytes)
			 : -ENOMEM;
	if (r < 0) {
		drop(copy, NULL);
		return r;
	}
	/* only now its number is used up */
	fill_batch(parcel_body(copy->parcel), &b->d);
	parcel_seal(copy->parcel, &w->key, w->job, copy->position);
	return 0;
}

/* --- life ----------------------------------------------------------------- */

int task_new(const struct task_config *c, struct task **ret)
{
	struct task *t = calloc(1, sizeof(*t));
	int r = 0;

	if (!t)
		return -ENOMEM;
	t->c = *c;
	t->stages.data.dirfd = -1;
	t->definition = strdup(c->definition);
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->work, NULL);
	consumers_init(&t->consumers, &c->share);
	if (c->share.how == SHARE_WINDOW)
		r = shared_new(c->job, c->window_bytes, &t->shared);
	if (r == 0)
		r = t->definition ? thread_start(&t->thread, NULL, task_run, t)
				  : -ENOMEM;
	if (r == 0) {
		*ret = t;
		return 0;
	}
	shared_free(t->shared);
	free(t->definition);
	pthread_cond_destroy(&t->work);
	pthread_mutex_destroy(&t->lock);
	free(t);
	return r;
}

void task_stop(struct task *t)
{
	LOCK_SCOPE(&t->lock);
	t->stopping = true;
	t->n_acked = t->n_made = 0;
	consumers_reset(&t->consumers);
	if (t->pipeline)
		pipeline_interrupt(t->pipeline);
	pthread_cond_signal(&t->work);
}

bool task_is_over(struct task *t)
{
	LOCK_SCOPE(&t->lock);

	return t->over;
}

void task_free(struct task *t)
{
	if (!t)
		return;
	task_stop(t);
	pthread_join(t->thread, NULL);
	pipeline_free(t->pipeline);
	stages_close(&t->stages);
	shared_free(t->shared);
	buckets_free(t->buckets);
	splits_fini(&t->splits);
	free(t->split);
	free(t->batch);
	free(t->clock);
	free(t->definition);
	pthread_cond_destroy(&t->work);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

uint64_t task_job(const struct task *t)
{
	return t->c.job;
}

bool task_does(const struct task *t, const struct task_config *c)
{
	return (!t->c.number || !c->number || t->c.number == c->number) &&
	       strcmp(t->definition, c->definition) == 0 &&
	       t->c.mode == c->mode && t->c.batch == c->batch &&
	       t->c.per_split == c->per_split &&
	       t->c.share.how == c->share.how &&
	       t->c.share.consumers == c->share.consumers &&
	       t->c.share.bucket == c->share.bucket;
}

bool task_has_splits(const struct task *t)
{
	return t->c.mode != SPLIT_OFF;
}

/* --- splits --------------------------------------------------------------- */

static void fail_task(struct task *t, const char *why)
{
	t->failed = t->stopping = true;
	snprintf(t->err.text, sizeof(t->err.text), "%s", why);
	pthread_cond_signal(&t->work);
}

void task_epoch(struct task *t, uint64_t epoch, uint64_t n)
{
	pthread_mutex_lock(&t->lock);
	if (task_in_epoch(t, epoch)) {
		pthread_mutex_unlock(&t->lock);
		return;
	}
	splits_fini(&t->splits);
	free(TAKE_PTR(t->split));
	t->begun = true;
	t->epoch = epoch;
	t->samples = n;
	t->turn++;
	t->n_given = t->n_asked = 0;
	t->n_planned = 0;
	t->none = false;
	t->starved_ns = 0;
	t->n_acked = t->n_made = 0;
	consumers_reset(&t->consumers);
	t->spent_ns = 0;
	/* whose they are, the dispatcher knows */
	if (splits_init(&t->splits,
			t->c.mode == SPLIT_OFF ? SPLIT_OFF : SPLIT_DYNAMIC, n,
			t->c.batch, t->c.per_split, NULL, 0) < 0)
		fail_task(t, "out of memory for the splits of an epoch");
	t->split = calloc(t->splits.n + 1, sizeof(*t->split));
	if (!t->split)
		fail_task(t, "out of memory for the splits of an epoch");
	if (t->pipeline)
		pipeline_interrupt(t->pipeline);
	pthread_cond_signal(&t->work);
	pthread_mutex_unlock(&t->lock);
}

bool task_in_epoch(const struct task *t, uint64_t epoch)
{
	/* changed by this thread only */
	return t->begun && (t->c.share.how != SHARE_NONE || t->epoch == epoch);
}

/* Under the lock: batches that were given and are not made. */
static uint64_t n_ahead(const struct task *t)
{
	return t->n_planned - t->n_made;
}

uint32_t task_wants(struct task *t, uint64_t *ret_epoch)
{
	uint32_t n = 0;

	LOCK_SCOPE(&t->lock);
	if (t->begun && t->opened && !t->stopping && !t->over && !t->none &&
	    !t->n_asked && t->c.mode != SPLIT_OFF && n_ahead(t) < t->windows)
		n = (uint32_t)((t->windows - n_ahead(t) + t->c.per_split - 1) /
			       t->c.per_split);
	t->n_asked += n;
	*ret_epoch = t->epoch;
	return n;
}

void task_forget(struct task *t)
{
	LOCK_SCOPE(&t->lock);
	t->told = false;
	t->n_asked = 0;
}

/* Under the lock. The last split of an epoch may have fewer batches. */
static void give(struct task *t, uint32_t split)
{
	t->n_asked -= t->n_asked > 0;
	if (splits_assign(&t->splits, split, t->c.worker) < 0)
		return;
	t->split[t->n_given++] = split;
	t->n_planned += (splits_samples(&t->splits, split) + t->c.batch - 1) /
			t->c.batch;
	pthread_cond_signal(&t->work);
}

int task_split(struct task *t, uint64_t epoch, uint32_t split)
{
	int r = 0;

	LOCK_SCOPE(&t->lock);
	if (t->begun && t->epoch == epoch && !t->stopping) {
		if (split < t->splits.n)
			give(t, split);
		else
			r = -EPROTO;
	}
	return r;
}

void task_none(struct task *t, uint64_t epoch)
{
	LOCK_SCOPE(&t->lock);
	if (t->begun && t->epoch == epoch)
		t->none = true;
}

/* --- batches -------------------------------------------------------------- */

uint32_t task_consumers(const struct task *t)
{
	return t->consumers.n;
}

bool task_request(struct task *t, uint32_t i, uint64_t number)
{
	LOCK_SCOPE(&t->lock);

	return consumers_request(&t->consumers, i, number);
}

const struct task_batch *task_batch(struct task *t, uint32_t i, uint64_t number)
{
	const struct task_batch *b = NULL;
	uint64_t at;

	LOCK_SCOPE(&t->lock);
	at = number * t->consumers.n + i;
	if (at >= t->n_acked && at < t->n_made &&
	    consumers_may(&t->consumers, number))
		b = &t->batch[at % t->windows];
	return b;
}

int task_ack(struct task *t, uint32_t i, uint64_t number)
{
	int r;

	LOCK_SCOPE(&t->lock);
	r = consumers_ack(&t->consumers, i, number, t->n_made);
	while (r == 0 && t->n_acked < consumers_acked(&t->consumers))
		pipeline_release(t->pipeline,
				 &t->batch[t->n_acked++ % t->windows].d);
	return r;
}

uint64_t task_acked(const struct task *t, uint32_t i)
{
	return t->consumers.acked[i]; /* changed by this thread only */
}

bool task_is_shared(const struct task *t)
{
	return t->shared;
}

const struct seal_key *task_key(const struct task *t)
{
	return shared_key(t->shared);
}

/* What is ready goes into the window; false: nothing is. */
static bool move(struct task *t)
{
	const struct task_batch *b = task_batch(t, 0, t->n_acked);
	int r = b ? shared_add(t->shared, b) : 0;

	if (!b)
		return false;
	if (r < 0) {
		pthread_mutex_lock(&t->lock);
		fail_task(t, r == -EFBIG
				     ? "a batch is larger than --share-window"
				     : "out of memory for a batch to share");
		pthread_mutex_unlock(&t->lock);
		t->c.changed(t->c.ctx);
		return false;
	}
	task_ack(t, 0, t->n_acked + 1);
	return true;
}

const struct task_batch *task_shared(struct task *t, struct sweep_reader *at)
{
	const struct task_batch *b = shared_next(t->shared, at);

	while (!b && move(t))
		b = shared_next(t->shared, at);
	return b;
}

bool task_is_empty(struct task *t, uint64_t number)
{
	LOCK_SCOPE(&t->lock);

	return t->stopping || t->over ||
	       (t->none && n_ahead(t) == 0 && number >= t->n_made);
}

bool task_is_idle(struct task *t)
{
	LOCK_SCOPE(&t->lock);

	return t->c.mode == SPLIT_OFF || t->stopping || t->over ||
	       ((t->none || !t->n_asked) && n_ahead(t) == 0 &&
		t->n_acked == t->n_made);
}

uint64_t task_cost(struct task *t)
{
	uint64_t cost = 0;

	LOCK_SCOPE(&t->lock);
	if (t->n_made && t->n_parallel)
		cost = t->spent_ns / t->n_made / t->n_parallel;
	return cost;
}

void task_tell_again(struct task *t)
{
	LOCK_SCOPE(&t->lock);
	t->told = false;
}

char *task_failure(struct task *t)
{
	char *text = NULL;

	LOCK_SCOPE(&t->lock);
	if (t->failed && !t->told)
		text = strdup(t->err.text);
	t->told = t->told || text;
	return text;
}
