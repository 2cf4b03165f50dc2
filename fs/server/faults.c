/* SPDX-License-Identifier: MIT */
/*
 * A hold has up to two references: one of the table of those held, which is
 * also the right to end it, and one of its timer, which cannot be taken back
 * and finds nothing to do when somebody else was first.
 *
 * Who ends a hold takes it out of the table under the lock and answers
 * without it. An answer may free the operation, so only its client, which
 * libfuse keeps while it tells of a signal, can be looked up.
 */
#include "fs/server/faults.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include <utlist.h>

#include "common/tick.h"
#include "common/util.h"
#include "fs/layer/fault.h"
#include "fs/server/hash.h"
#include "fs/server/server_trace.h"

struct fault_live {
	struct fault_rule rule;
	uint32_t id;
	uint64_t matched, fired;
	uint64_t hidden_matched, hidden_fired; /* before the last reset */
	uint64_t held;
	struct fault_live *prev, *next;
};

struct hold {
	struct fetch wait; /* for the time, of the fetcher's queue */
	struct server *server;
	void *client;
	uint32_t rule;		   /* id of who holds it */
	int error;		   /* what it ends with when its time is over */
	unsigned refs;		   /* atomic */
	bool held;		   /* in the table */
	struct read_request *read; /* one of the two */
	struct fetch *metadata;
	struct hold *next; /* of those that end now; NULL before */
	UT_hash_handle hh;
};

/* What the rules together want of an operation. */
struct verdict {
	int error;
	uint64_t delay_ns;
	bool stuck;    /* for delay_ns, or for ever when that is 0 */
	uint32_t rule; /* who holds it; 0: nobody */
};

void faults_init(struct faults *f,
		 void (*read)(struct server *s, struct read_request *r),
		 void (*metadata)(struct server *s, struct fetch *f))
{
	*f = (struct faults){ .read = read, .metadata = metadata };
	pthread_mutex_init(&f->change_lock, NULL);
	tick_mutex_init(&f->lock);
}

static void rules_free(struct fault_live *rules)
{
	struct fault_live *l, *next;

	DL_FOREACH_SAFE (rules, l, next) {
		fault_rule_fini(&l->rule);
		free(l);
	}
}

void faults_fini(struct faults *f)
{
	rules_free(f->rules);
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

/* Under the lock: the caller has the table's reference now. */
static void take_out(struct faults *f, struct hold *h)
{
	struct fault_live *l = rule_of(f, h->rule);

	HASH_DEL(f->held, h);
	h->held = false;
	if (l)
		l->held--;
}

/* Without the lock: answer, or let it go on as one that arrives at `now`. */
static void end(const struct hold *h, int error, uint64_t now)
{
	struct fetch *f = h->metadata;
	struct read_request *r = h->read;

	if (f) {
		f->error = error;
		f->arrival = now;
		if (error)
			f->done(f, false);
		else
			h->server->faults.metadata(h->server, f);
	} else if (error) {
		trace_refused(h->server, r, error);
	} else {
		r->arrival = now;
		h->server->faults.read(h->server, r);
	}
}

static void end_all(struct hold *list, int error)
{
	while (list) {
		struct hold *next = list->next;

		end(list, error, tick_now(list->server->c.tick));
		hold_put(list);
		list = next;
	}
}

static void time_is_over(struct fetch *wait, bool stopping)
{
	struct hold *h = container_of(wait, struct hold, wait);
	struct faults *f = &h->server->faults;
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

/* All that `rule` holds (0: all there are), in the order they came. */
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

void faults_stop(struct faults *f)
{
	struct hold *list;

	pthread_mutex_lock(&f->lock);
	f->stopping = true;
	list = take_out_of(f, 0);
	pthread_mutex_unlock(&f->lock);
	end_all(list, -ECONNABORTED);
}

void server_interrupt(struct server *s, void *client)
{
	struct faults *f = &s->faults;
	struct hold *h;

	if (!gate_enter(&s->gate)) /* it ends anyway */
		return;
	pthread_mutex_lock(&f->lock);
	HASH_FIND_PTR(f->held, &client, h);
	if (h)
		take_out(f, h);
	pthread_mutex_unlock(&f->lock);
	end_all(h, -EINTR);
	gate_leave(&s->gate);
}

/* --- meeting a rule ----------------------------------------------------- */

/* Under the lock: every rule counts what it matches and says what it wants. */
static struct verdict judge(struct server *s, enum storage_op op, uint32_t node)
{
	struct faults *f = &s->faults;
	struct verdict v = { 0 };
	struct fault_live *l;
	char path[PATH_MAX];

	if (tree_path(s->c.tree, node, path, sizeof(path)) < 0)
		return v;
	DL_FOREACH (f->rules, l) {
		const struct fault_rule *r = &l->rule;

		if (!fault_matches(r, op, path) ||
		    !fault_fires(r, s->c.seed, ++l->matched, l->fired))
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

/* Under the lock. 0, -ENOMEM, -ECONNABORTED: not held. */
static int hold(struct server *s, const struct verdict *v,
		const struct hold *what)
{
	struct faults *f = &s->faults;
	struct hold *h = malloc(sizeof(*h));
	bool timed = v->delay_ns;
	int r = 0;

	if (!h)
		return -ENOMEM;
	*h = *what;
	h->server = s;
	h->rule = v->rule;
	h->error = v->error;
	h->refs = 1 + timed;
	h->held = true;
	h->wait.done = time_is_over;
	if (!HASH_TRY_ADD(f->held, client, h)) {
		free(h);
		return -ENOMEM;
	}
	/* should it fire at once, it waits for the lock */
	if (timed)
		r = fetch_wait(s->fetcher, &h->wait,
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
 * 0: the operation goes on; 1: it is held; < 0: it fails with that. A signal
 * that came before it was in the table found nothing there.
 */
static int meet(struct server *s, enum storage_op op, uint32_t node,
		const struct hold *what)
{
	struct faults *f = &s->faults;
	struct verdict v;
	int r;

	pthread_mutex_lock(&f->lock);
	v = judge(s, op, node);
	r = v.error;
	if (f->stopping)
		r = -ECONNABORTED;
	else if (v.rule && s->is_interrupted && s->is_interrupted(what->client))
		r = -EINTR;
	else if (v.rule)
		r = hold(s, &v, what);
	pthread_mutex_unlock(&f->lock);
	return r == 0 && v.rule ? 1 : r;
}

bool faults_meet_read(struct server *s, struct read_request *r)
{
	struct hold what = { .wait.arrival = r->arrival,
			     .client = r->client,
			     .read = r };
	int error;

	if (!r->client || !server_may_fault(s))
		return false;
	error = meet(s, STORAGE_READ, r->handle->node, &what);
	if (error < 0)
		trace_refused(s, r, error);
	return error;
}

bool faults_meet_metadata(struct server *s, struct fetch *f)
{
	struct hold what = { .wait.arrival = f->arrival,
			     .client = f->client,
			     .metadata = f };
	int error;

	if (!f->client || !server_may_fault(s))
		return false;
	error = meet(s, f->op, f->node, &what);
	if (error < 0) {
		f->error = error;
		f->done(f, false);
	}
	return error;
}

/* --- for the front and the control files -------------------------------- */

bool server_may_fault(const struct server *s)
{
	return __atomic_load_n(&s->faults.n_rules, __ATOMIC_RELAXED);
}

void server_on_interrupt(struct server *s, bool (*is_interrupted)(void *client))
{
	s->is_interrupted = is_interrupted;
}

bool server_read_may_fault(struct server *s, uint32_t node)
{
	struct faults *f = &s->faults;
	struct fault_live *l;
	char path[PATH_MAX];
	bool may = false;

	if (!server_may_fault(s) ||
	    tree_path(s->c.tree, node, path, sizeof(path)) < 0)
		return false;
	pthread_mutex_lock(&f->lock);
	DL_FOREACH (f->rules, l)
		may |= !fault_is_over(&l->rule, l->matched, l->fired) &&
		       fault_matches(&l->rule, STORAGE_READ, path);
	pthread_mutex_unlock(&f->lock);
	return may;
}

static int begin_change(struct server *s, struct err *err)
{
	int r = server_enter(s, err);

	if (r == 0)
		pthread_mutex_lock(&s->faults.change_lock);
	return r;
}

static void end_change(struct server *s)
{
	pthread_mutex_unlock(&s->faults.change_lock);
	server_leave(s);
}

/* A list of n without rules and ids yet; NULL: no memory. */
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

int server_fault_add(struct server *s, const char *text, struct err *err)
{
	struct faults *f = &s->faults;
	struct fault_live *fresh, *l;
	struct fault_rule *rules;
	size_t n, i = 0;
	int r = fault_rules_parse(text, strlen(text), &rules, &n, err);

	if (r < 0)
		return r;
	fresh = lives_new(n);
	if (!fresh) {
		fault_rules_free(rules, n);
		return err_set(err, -ENOMEM, "out of memory");
	}
	DL_FOREACH (fresh, l)
		l->rule = rules[i++];
	free(rules);
	r = begin_change(s, err);
	if (r < 0) {
		rules_free(fresh);
		return r;
	}
	DL_FOREACH (fresh, l)
		l->id = ++f->last_id;
	pthread_mutex_lock(&f->lock);
	DL_CONCAT(f->rules, fresh);
	__atomic_fetch_add(&f->n_rules, (unsigned)n, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&f->lock);
	end_change(s);
	return 0;
}

/* Under the locks: those with that id, 0: all; a list. */
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
	struct faults *f = &s->faults;
	struct fault_live *taken;
	struct hold *list;
	int r = begin_change(s, err);

	if (r < 0)
		return r;
	pthread_mutex_lock(&f->lock);
	list = take_out_of(f, id);
	taken = take_rules(f, id);
	pthread_mutex_unlock(&f->lock);
	if (id && !taken)
		r = err_set(err, -ENOENT, "no fault has the id %u", id);
	rules_free(taken);
	pthread_mutex_unlock(&f->change_lock);
	end_all(list, 0);
	gate_leave(&s->gate);
	return r;
}

int server_fault_texts(struct server *s, struct conf_list *ret)
{
	struct faults *f = &s->faults;
	struct fault_live *l;
	char **texts;
	size_t n = 0;
	int r = 0;

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

void faults_reset(struct faults *f)
{
	struct fault_live *l;

	pthread_mutex_lock(&f->lock);
	DL_FOREACH (f->rules, l) {
		l->hidden_matched = l->matched;
		l->hidden_fired = l->fired;
	}
	pthread_mutex_unlock(&f->lock);
}

struct counts {
	uint64_t matched, fired, held;
};

/* Of all rules there are, in their order. */
static void take_counts(struct faults *f, struct counts *ret)
{
	struct fault_live *l;

	pthread_mutex_lock(&f->lock);
	DL_FOREACH (f->rules, l)
		*ret++ = (struct counts){
			.matched = l->matched - l->hidden_matched,
			.fired = l->fired - l->hidden_fired,
			.held = l->held,
		};
	pthread_mutex_unlock(&f->lock);
}

json_t *faults_json(struct faults *f)
{
	_cleanup_free_ struct counts *counts = NULL;
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
	return j;
}
