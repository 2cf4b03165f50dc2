/* SPDX-License-Identifier: MIT */
/*
 * Applies the rules in force (fs/layer/fault.h) to operations, and holds some:
 *
 *	no rule fires	on to the layer below, at once
 *	errno alone	answered, at once
 *	delay, stuck	a hold. The first of these ends it:
 *			  its time is over     goes on, or fails with the errno
 *			  the rule is cleared  goes on as if without a rule
 *			  a signal arrives     EINTR
 *			  the server stops     ECONNABORTED
 *
 * No thread sleeps for a hold: its time is a timer of the fetcher's queue.
 * Without rules an operation costs one load of an integer.
 *
 * A hold has up to two references: one of the table of holds, which is also the
 * right to end it, and one of its timer. The timer cannot be cancelled; it does
 * nothing if the hold has ended before.
 *
 * To end a hold, a thread removes it from the table under the lock and answers
 * without the lock. An answer may free the operation, so the table's key is the
 * client: libfuse keeps that while it reports a signal.
 */
#include "fs/layer/layer_fault.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/thread.h"
#include "common/tick.h"
#include "common/util.h"
#include "fs/layer/fault.h"
#include "fs/server/handle.h"
#include "fs/server/hash.h"
#include "fs/server/stack.h"

/* Fault rules in force, with their counts of matches. Plain lists; the owner
 * locks them. */

struct fault_live {
	struct fault_rule rule;
	uint32_t id;
	uint64_t matched, fired;
	uint64_t hidden_matched, hidden_fired; /* before the last reset */
	uint64_t held;
	struct fault_live *prev, *next; /* utlist */
};

/* The joint decision of all rules on an operation. */
struct verdict {
	int error;
	uint64_t delay_ns;
	bool stuck;    /* for delay_ns, or for ever when that is 0 */
	uint32_t rule; /* id of the rule that holds it; 0: none */
};

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

/* Parse rules (fs/layer/fault.h); they have no ids yet. -EINVAL, -ENOMEM; with
 * a text. */
static int fault_live_parse(const char *text, struct fault_live **ret,
			    struct err *err)
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

static void fault_live_free(struct fault_live *rules)
{
	struct fault_live *l, *next;

	DL_FOREACH_SAFE (rules, l, next) {
		fault_rule_fini(&l->rule);
		free(l);
	}
}

/* Every rule counts the operation if it matches; returns their decision. */
static struct verdict fault_live_judge(struct fault_live *rules, unsigned op,
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

/* May a rule still fire on an operation on `path`? */
static bool fault_live_may(const struct fault_live *rules, unsigned op,
			   const char *path)
{
	const struct fault_live *l;
	bool may = false;

	DL_FOREACH (rules, l)
		may |= !fault_is_over(&l->rule, l->matched, l->fired) &&
		       fault_matches(&l->rule, op, path);
	return may;
}

struct faults {
	unsigned n_rules; /* atomic */
	/* guards the list of rules and their texts; taken first, never by the
	 * timing thread. A change of these needs both locks */
	pthread_mutex_t change_lock;
	/* guards all below; under it only the locks of the timer queue and of
	 * libfuse are taken. A reset takes it under the server's lock */
	pthread_mutex_t lock;
	struct fault_live *rules; /* utlist, in the order of their ids */
	uint32_t last_id;
	struct hold *held; /* uthash by client */
	bool stopping;
};

struct hold {
	struct fetch wait; /* its timer, in the fetcher's queue */
	struct layer *layer;
	void *client;
	uint32_t rule;		   /* id of the rule that holds it */
	int error;		   /* its result when its time is over */
	unsigned refs;		   /* atomic */
	bool held;		   /* in the table */
	struct read_request *read; /* this or metadata is set */
	struct fetch *metadata;
	struct hold *next; /* list of holds that end now; NULL before */
	UT_hash_handle hh;
};

static int faulty_init(struct layer *l, struct err *err)
{
	struct faults *f = l->state;

	(void)err;
	pthread_mutex_init(&f->change_lock, NULL);
	tick_mutex_init(&f->lock);
	return 0;
}

static void faulty_fini(struct layer *l)
{
	struct faults *f = l->state;

	fault_live_free(f->rules);
	pthread_mutex_destroy(&f->lock);
	pthread_mutex_destroy(&f->change_lock);
}

static struct fault_live *rule_of(const struct faults *f, uint32_t id)
{
	struct fault_live *l;

	DL_SEARCH_SCALAR(f->rules, l, id, id);
	return l;
}

/* --- holds -------------------------------------------------------------- */

static void hold_put(struct hold *h)
{
	if (__atomic_sub_fetch(&h->refs, 1, __ATOMIC_ACQ_REL) == 0)
		free(h);
}

/* Under the lock: the table's reference passes to the caller. */
static void take_out(struct faults *f, struct hold *h)
{
	struct fault_live *l = rule_of(f, h->rule);

	HASH_DEL(f->held, h);
	h->held = false;
	if (l)
		l->held--;
}

/* Without the lock: answer it, or let it continue as if it arrived at `now`. */
static void end(const struct hold *h, int error, uint64_t now)
{
	struct fetch *f = h->metadata;
	struct read_request *r = h->read;

	if (f) {
		f->error = error;
		f->arrival = now;
		/* this may be the timing thread */
		f->here = false;
		if (error)
			f->done(f, false);
		else
			layer_metadata(h->layer, f);
	} else if (error) {
		layer_answer(h->layer, r, &(struct answer){ .error = error });
	} else {
		r->arrival = now;
		/* and the source may compute bytes */
		r->later = true;
		layer_read(h->layer, r);
	}
}

static void end_all(struct hold *list, int error)
{
	while (list) {
		struct hold *next = list->next;

		end(list, error, tick_now(list->layer->server->c.tick));
		hold_put(list);
		list = next;
	}
}

static void time_is_over(struct fetch *wait, bool stopping)
{
	struct hold *h = container_of(wait, struct hold, wait);
	struct faults *f = h->layer->state;
	bool mine;

	pthread_mutex_lock(&f->lock);
	mine = h->held;
	if (mine)
		take_out(f, h);
	stopping |= f->stopping;
	pthread_mutex_unlock(&f->lock);
	if (mine) {
		end(h, stopping ? -ECONNABORTED : h->error, wait->deadline);
		hold_put(h);
	}
	hold_put(h);
}

/* All holds of `rule` (0: of any), in order of arrival. */
static struct hold *take_out_of(struct faults *f, uint32_t rule)
{
	struct hold *h, *next, *list = NULL, **end = &list;

	HASH_ITER (hh, f->held, h, next) {
		if (rule && h->rule != rule)
			continue;
		take_out(f, h);
		*end = h;
		end = &h->next;
	}
	return list;
}

static void faulty_stop(struct layer *l)
{
	struct faults *f = l->state;
	struct hold *list;

	pthread_mutex_lock(&f->lock);
	f->stopping = true;
	list = take_out_of(f, 0);
	pthread_mutex_unlock(&f->lock);
	end_all(list, -ECONNABORTED);
}

static void faulty_interrupt(struct layer *l, void *client)
{
	struct faults *f = l->state;
	struct hold *h;

	pthread_mutex_lock(&f->lock);
	HASH_FIND_PTR(f->held, &client, h);
	if (h)
		take_out(f, h);
	pthread_mutex_unlock(&f->lock);
	end_all(h, -EINTR);
}

/* --- applying rules ----------------------------------------------------- */

/* Under the lock. 0, -ENOMEM, -ECONNABORTED: not held. */
static int hold(struct layer *l, const struct verdict *v,
		const struct hold *what)
{
	struct faults *f = l->state;
	struct hold *h = malloc(sizeof(*h));
	bool timed = v->delay_ns;
	int r = 0;

	if (!h)
		return -ENOMEM;
	*h = *what;
	h->layer = l;
	h->rule = v->rule;
	h->error = v->error;
	h->refs = 1 + timed;
	h->held = true;
	h->wait.done = time_is_over;
	if (!HASH_TRY_ADD(f->held, client, h)) {
		free(h);
		return -ENOMEM;
	}
	/* if it fires at once, it waits for the lock */
	if (timed)
		r = fetch_wait(l->server->fetcher, &h->wait,
			       h->wait.arrival + v->delay_ns);
	if (r < 0) {
		HASH_DEL(f->held, h);
		free(h);
		return r == -ECANCELED ? -ECONNABORTED : r;
	}
	rule_of(f, h->rule)->held++;
	return 0;
}

/*
 * `path` NULL: that of `node`.
 * 0: the operation continues; 1: it is held; < 0: it fails with that. The check
 * is under the lock, because a signal before the insertion finds no hold.
 */
static int apply_rules(struct layer *l, enum storage_op op, uint32_t node,
		       const char *path, const struct hold *what)
{
	struct faults *f = l->state;
	struct server *s = l->server;
	struct verdict v = { 0 };
	char buf[PATH_MAX];
	int r;

	LOCK_SCOPE(&f->lock);
	if (!path && tree_path(s->c.tree, node, buf, sizeof(buf)) == 0)
		path = buf;
	if (path)
		v = fault_live_judge(f->rules, op, path, s->c.seed);
	r = v.error;
	if (f->stopping)
		r = -ECONNABORTED;
	else if (v.rule && s->is_interrupted && s->is_interrupted(what->client))
		r = -EINTR;
	else if (v.rule)
		r = hold(l, &v, what);
	return r == 0 && v.rule ? 1 : r;
}

static bool any(const struct faults *f)
{
	return __atomic_load_n(&f->n_rules, __ATOMIC_RELAXED);
}

static void faulty_read(struct layer *l, struct read_request *r)
{
	struct hold what = { .wait.arrival = r->arrival,
			     .client = r->client,
			     .read = r };
	int error;

	if (!any(l->state) || !r->client) {
		layer_read(l, r);
		return;
	}
	error = apply_rules(l, STORAGE_READ, r->handle->node, NULL, &what);
	if (error < 0)
		layer_answer(l, r, &(struct answer){ .error = error });
	else if (error == 0)
		layer_read(l, r);
}

static void faulty_metadata(struct layer *l, struct fetch *f)
{
	struct hold what = { .wait.arrival = f->arrival,
			     .client = f->client,
			     .metadata = f };
	int error;

	if (!any(l->state) || !f->client) {
		layer_metadata(l, f);
		return;
	}
	error = apply_rules(l, f->op, f->node, f->path, &what);
	if (error == 0) {
		layer_metadata(l, f);
	} else if (error < 0) {
		f->error = error;
		f->done(f, false);
	}
}

/* --- for the front and the control files -------------------------------- */

static bool faulty_watches(struct layer *layer, uint32_t node)
{
	struct faults *f = layer->state;
	char path[PATH_MAX];
	bool may = false;

	if (!any(f))
		return layer_watches(layer, node);
	if (node == TREE_NONE)
		return true;
	if (tree_path(layer->server->c.tree, node, path, sizeof(path)) == 0) {
		pthread_mutex_lock(&f->lock);
		may = fault_live_may(f->rules, STORAGE_READ, path);
		pthread_mutex_unlock(&f->lock);
	}
	return may || layer_watches(layer, node);
}

/* NULL with a text: the mount has no such layer. */
static struct layer *layer_of(struct server *s, struct err *err)
{
	struct layer *l = stack_layer(s, &layer_fault);

	if (!l)
		err_set(err, -EINVAL,
			"the mount has no layer 'fault': add it to --layers "
			"and mount again");
	return l;
}

int server_fault_add(struct server *s, const char *text, struct err *err)
{
	struct layer *layer = layer_of(s, err);
	struct fault_live *fresh, *l;
	struct faults *f;
	unsigned n = 0;
	int r = layer ? fault_live_parse(text, &fresh, err) : -EINVAL;

	if (r < 0)
		return r;
	f = layer->state;
	r = server_enter(s, err);
	if (r < 0) {
		fault_live_free(fresh);
		return r;
	}
	pthread_mutex_lock(&f->change_lock);
	DL_FOREACH (fresh, l) {
		l->id = ++f->last_id;
		n++;
	}
	pthread_mutex_lock(&f->lock);
	DL_CONCAT(f->rules, fresh);
	__atomic_fetch_add(&f->n_rules, n, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&f->lock);
	pthread_mutex_unlock(&f->change_lock);
	server_leave(s);
	return 0;
}

/* Under both locks: remove the rule with that id (0: all); returns a list. */
static struct fault_live *take_rules(struct faults *f, uint32_t id)
{
	struct fault_live *l, *next, *taken = NULL;

	DL_FOREACH_SAFE (f->rules, l, next) {
		if (id && l->id != id)
			continue;
		DL_DELETE(f->rules, l);
		DL_APPEND(taken, l);
		__atomic_fetch_sub(&f->n_rules, 1, __ATOMIC_RELAXED);
	}
	return taken;
}

int server_fault_clear(struct server *s, uint32_t id, struct err *err)
{
	struct layer *l = layer_of(s, err);
	struct fault_live *taken;
	struct faults *f;
	struct hold *list;
	int r = l ? server_enter(s, err) : -EINVAL;

	if (r < 0)
		return r;
	f = l->state;
	pthread_mutex_lock(&f->change_lock);
	pthread_mutex_lock(&f->lock);
	list = take_out_of(f, id);
	taken = take_rules(f, id);
	pthread_mutex_unlock(&f->lock);
	if (id && !taken)
		r = err_set(err, -ENOENT,
			    "no fault with the id %u; stats lists them", id);
	fault_live_free(taken);
	pthread_mutex_unlock(&f->change_lock);
	end_all(list, 0);
	server_leave(s);
	return r;
}

int server_fault_texts(struct server *s, struct conf_list *ret)
{
	struct layer *layer = stack_layer(s, &layer_fault);
	struct faults *f;
	struct fault_live *l;
	char **texts;
	size_t n = 0;
	int r = 0;

	*ret = (struct conf_list){ 0 };
	if (!layer)
		return 0;
	f = layer->state;
	pthread_mutex_lock(&f->change_lock);
	DL_COUNT(f->rules, l, n);
	texts = calloc(n ? n : 1, sizeof(*texts));
	n = 0;
	DL_FOREACH (f->rules, l)
		if (texts && !(texts[n++] = strdup(l->rule.text)))
			r = -ENOMEM;
	pthread_mutex_unlock(&f->change_lock);
	*ret = (struct conf_list){ .items = texts, .n = n };
	return texts ? r : -ENOMEM;
}

static void faulty_reset(struct layer *layer)
{
	struct faults *f = layer->state;
	struct fault_live *l;

	LOCK_SCOPE(&f->lock);
	DL_FOREACH (f->rules, l) {
		l->hidden_matched = l->matched;
		l->hidden_fired = l->fired;
	}
}

struct counts {
	uint64_t matched, fired, held;
};

/* The counts of all rules, in their order. */
static void take_counts(struct faults *f, struct counts *ret)
{
	struct fault_live *l;

	LOCK_SCOPE(&f->lock);
	DL_FOREACH (f->rules, l)
		*ret++ = (struct counts){
			.matched = l->matched - l->hidden_matched,
			.fired = l->fired - l->hidden_fired,
			.held = l->held,
		};
}

/* A record per rule, in the layer's part and in the mount's stats. */
static void faulty_json(struct layer *layer, json_t *stats, json_t *part)
{
	_cleanup_free_ struct counts *counts = NULL;
	struct faults *f = layer->state;
	json_t *j = json_array();
	struct fault_live *l;
	size_t n = 0, i = 0;

	pthread_mutex_lock(&f->change_lock);
	DL_COUNT(f->rules, l, n);
	counts = calloc(n + 1, sizeof(*counts));
	if (counts)
		take_counts(f, counts);
	DL_FOREACH (counts ? f->rules : NULL, l) {
		const struct counts *c = &counts[i++];

		json_array_append_new(
			j, json_pack("{s:I, s:s, s:I, s:I, s:I}", "id",
				     (json_int_t)l->id, "rule", l->rule.text,
				     "matched", (json_int_t)c->matched, "fired",
				     (json_int_t)c->fired, "held",
				     (json_int_t)c->held));
	}
	pthread_mutex_unlock(&f->change_lock);
	json_object_set(part, "faults", j);
	json_object_set_new(stats, "faults", j);
}

const struct layer_ops layer_fault = {
	.plugin = { .name = "fault",
		    .summary = "make operations fail or wait (--fault)",
		    .state_size = sizeof(struct faults) },
	.rank = LAYER_REQUEST,
	.init = faulty_init,
	.fini = faulty_fini,
	.stop = faulty_stop,
	.read = faulty_read,
	.metadata = faulty_metadata,
	.watches = faulty_watches,
	.interrupt = faulty_interrupt,
	.reset = faulty_reset,
	.json = faulty_json,
};
