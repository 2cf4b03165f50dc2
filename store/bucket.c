/* SPDX-License-Identifier: MIT */
/*
 * Reads wait in a queue for one of the transfers, of which there are as many as
 * connections. A transfer that is to be tried again keeps its place while it
 * waits, so that a store that asks to slow down gets fewer requests. One thread
 * drives all of them; it sleeps in curl_multi_poll.
 */
#include "store/bucket.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hist.h"
#include "common/json.h"
#include "common/percent.h"
#include "common/rng.h"
#include "common/thread.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "store/account.h"
#include "store/transfer.h"

/* arbitrary: half a minute of a store that does not answer; where none has
 * answered yet it may be the wrong address, which the user is waiting to hear
 */
enum { MOST_TRIES = 10, FIRST_TRIES = 3 };
/* Sources: the times of AWS's retries ("standard": at most 20 s), from a first
 * one of the order of a request. */
#define BACK_OFF_NS (100 * NS_PER_MS)
#define MOST_BACK_OFF_NS (20 * NS_PER_S)
/* 1000 objects, of which each may have a key of 3 KiB */
enum { MOST_PAGE = 8 << 20 };

struct bucket {
	struct account account;
	char *name, *prefix; /* "" or "a/b/" */
	char *base;	     /* of URLs: of the bucket, */
	char *objects;	     /* and of its keys */
	CURLM *multi;
	struct transfer *transfers;
	unsigned n_transfers, n_used; /* the thread's */
	unsigned tries;		      /* of a request, at most */
	struct rng rng;		      /* the thread's */
	bool answered;		      /* the thread's: some request was */
	uint64_t page_ns;	      /* of the thread that lists */
	pthread_t thread;
	bool started;
	pthread_mutex_t lock; /* guards the rest */
	bool stopping;
	int cancel_fd; /* -1: none */
	struct bucket_read *first, *last;
	uint64_t requests, retries, bytes;
	uint64_t connection_errors, errors[600]; /* by status */
	struct hist first_byte;
};

/* --- names -------------------------------------------------------------- */

/* Source: Amazon S3 user guide, "Bucket naming rules". */
static bool is_bucket(const char *s, size_t n)
{
	return n >= 3 && n <= 63 && s[0] != '.' && s[0] != '-' &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-.") >= n;
}

int bucket_split(const char *url, char **ret_name, char **ret_prefix,
		 struct err *err)
{
	const char *name = url, *prefix;
	size_t n;
	bool slash;

	if (strncmp(url, "//", 2) != 0)
		return err_set(err, -EINVAL, "expected s3://BUCKET[/PREFIX]");
	name += 2;
	n = strcspn(name, "/");
	prefix = name + n + (name[n] == '/');
	if (!is_bucket(name, n))
		return err_set(err, -EINVAL,
			       "a bucket has 3 to 63 lowercase letters, "
			       "digits, dots and hyphens");
	slash = *prefix && prefix[strlen(prefix) - 1] != '/';
	*ret_name = strndup(name, n);
	if (!*ret_name ||
	    asprintf(ret_prefix, "%s%s", prefix, slash ? "/" : "") < 0) {
		free(*ret_name);
		*ret_name = *ret_prefix = NULL;
		return err_set(err, -ENOMEM, "out of memory");
	}
	return 0;
}

/* With an endpoint of the user's the bucket is in the path, which needs no name
 * of a host; a name with dots is none that a certificate of AWS has. */
static char *base_of(const struct account *a, const char *name)
{
	const char *more = strncmp(a->region, "cn-", 3) ? "" : ".cn";
	char *base;
	int n;

	if (a->endpoint)
		n = asprintf(&base, "%s/%s/", a->endpoint, name);
	else if (strchr(name, '.'))
		n = asprintf(&base, "https://s3.%s.amazonaws.com%s/%s/",
			     a->region, more, name);
	else
		n = asprintf(&base, "https://%s.s3.%s.amazonaws.com%s/", name,
			     a->region, more);
	return n < 0 ? NULL : base;
}

static char *objects_of(const char *base, const char *prefix)
{
	char *url;
	size_t n;
	FILE *f = open_memstream(&url, &n);

	if (!f)
		return NULL;
	fputs(base, f);
	percent_encode(prefix, false, f);
	return fclose(f) ? NULL : url;
}

/* --- the thread --------------------------------------------------------- */

static void count(struct bucket *b, struct transfer *t, int error)
{
	curl_off_t first = 0, before = 0;
	long status = 0;

	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(t->easy, CURLINFO_STARTTRANSFER_TIME_T, &first);
	curl_easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &before);
	b->answered |= status != 0;
	LOCK_SCOPE(&b->lock);
	b->requests++;
	b->retries += t->tries > 1;
	b->bytes += t->got;
	if (error == 0 && first > before)
		hist_add(&b->first_byte,
			 (uint64_t)(first - before) * NS_PER_US);
	else if (status >= 300 && status < 600)
		b->errors[status]++;
	else if (error)
		b->connection_errors++;
}

/* What a page's caller wants to know. */
static void fill_page(const struct transfer *t)
{
	struct transfer_page *p =
		container_of(t->read, struct transfer_page, read);

	p->got = t->got;
	p->status = 0;
	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &p->status);
	memcpy(p->text, t->text, sizeof(p->text));
	memcpy(p->region, t->region, sizeof(p->region));
	answer_error(t->body, t->n_body, &p->error);
}

static void fill_times(const struct transfer *t, struct bucket_read *r)
{
	curl_off_t before = 0, first = 0, last = 0;

	r->status = 0;
	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &r->status);
	curl_easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &before);
	curl_easy_getinfo(t->easy, CURLINFO_STARTTRANSFER_TIME_T, &first);
	curl_easy_getinfo(t->easy, CURLINFO_TOTAL_TIME_T, &last);
	first = MAX(first, before);
	r->first_ns = (uint64_t)(first - before) * NS_PER_US;
	r->last_ns = (uint64_t)(MAX(last, first) - before) * NS_PER_US;
}

/* The transfer is free again. */
static void end(struct bucket *b, struct transfer *t, int error)
{
	struct bucket_read *r = t->read;

	fill_times(t, r);
	if (!r->object.key)
		fill_page(t);
	t->read = NULL;
	b->n_used--;
	r->done(r, error);
}

static void send_off(struct bucket *b, struct transfer *t)
{
	int r = transfer_prepare(t, &b->account,
				 t->read->object.key ? b->objects : b->base);

	t->due = 0;
	t->tries++;
	if (r == 0 && curl_multi_add_handle(b->multi, t->easy) != CURLM_OK)
		r = -ENOMEM;
	if (r < 0)
		end(b, t, r);
}

static void back_off(struct bucket *b, struct transfer *t)
{
	uint64_t most = MIN(BACK_OFF_NS << (t->tries - 1), MOST_BACK_OFF_NS);

	t->due = tick_wall() + rng_below(&b->rng, most) + 1;
}

static void finish_transfer(struct bucket *b, struct transfer *t, CURLcode code)
{
	bool again;
	int error = transfer_outcome(t, code, &again);

	curl_multi_remove_handle(b->multi, t->easy);
	count(b, t, error);
	if (again &&
	    t->tries < MIN(b->tries, b->answered ? MOST_TRIES : FIRST_TRIES))
		back_off(b, t);
	else
		end(b, t, error);
}

static void finish_all(struct bucket *b)
{
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(b->multi, &left))) {
		CURLcode code = m->data.result;
		struct transfer *t = NULL;

		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &t);
		finish_transfer(b, t, code);
	}
}

/* The next read in the queue; NULL: there is none. */
static struct bucket_read *take_read(struct bucket *b)
{
	struct bucket_read *r;

	LOCK_SCOPE(&b->lock);
	r = b->first;
	if (r)
		b->first = r->next;
	return r;
}

static void start_new(struct bucket *b)
{
	struct bucket_read *r;

	for (unsigned i = 0; i < b->n_transfers; i++) {
		struct transfer *t = &b->transfers[i];

		if (t->read)
			continue;
		r = take_read(b);
		if (!r)
			return;
		t->read = r;
		t->tries = 0;
		b->n_used++;
		send_off(b, t);
	}
}

/* Try again what is due. Milliseconds until the next is. */
static int start_due(struct bucket *b)
{
	uint64_t now = tick_wall(), next = TICK_NEVER;

	for (unsigned i = 0; i < b->n_transfers; i++) {
		struct transfer *t = &b->transfers[i];

		if (!t->read || !t->due)
			continue;
		if (t->due <= now)
			send_off(b, t);
		else
			next = MIN(next, t->due);
	}
	return tick_ms_until(next);
}

/* Sleep until a transfer moves or is due, or there is a new read. */
static void rest(struct bucket *b, int wait)
{
	struct curl_waitfd cancel = { .fd = -1, .events = CURL_WAIT_POLLIN };

	pthread_mutex_lock(&b->lock);
	cancel.fd = b->cancel_fd;
	pthread_mutex_unlock(&b->lock);
	curl_multi_poll(b->multi, &cancel, cancel.fd >= 0, wait, NULL);
	if (!cancel.revents)
		return;
	LOCK_SCOPE(&b->lock);
	b->stopping = true;
}

static bool stopping(struct bucket *b)
{
	LOCK_SCOPE(&b->lock);
	return b->stopping;
}

/* Are there both a read and a transfer for it? */
static bool can_start(struct bucket *b)
{
	LOCK_SCOPE(&b->lock);
	return b->first && b->n_used < b->n_transfers;
}

static void cancel_all(struct bucket *b)
{
	struct bucket_read *r;

	for (unsigned i = 0; i < b->n_transfers; i++) {
		struct transfer *t = &b->transfers[i];

		if (!t->read)
			continue;
		if (!t->due)
			curl_multi_remove_handle(b->multi, t->easy);
		end(b, t, -ECANCELED);
	}
	while ((r = take_read(b)))
		r->done(r, -ECANCELED);
}

static void *run_transfers(void *arg)
{
	struct bucket *b = arg;
	int running, wait;

	while (!stopping(b)) {
		start_new(b);
		curl_multi_perform(b->multi, &running);
		finish_all(b);
		wait = start_due(b);
		if (!can_start(b)) /* a read that comes from here on wakes it */
			rest(b, wait);
	}
	cancel_all(b);
	return NULL;
}

/* --- life --------------------------------------------------------------- */

static int start_transfers(struct bucket *b, unsigned connections)
{
	int r = 0;

	b->base = base_of(&b->account, b->name);
	b->objects = b->base ? objects_of(b->base, b->prefix) : NULL;
	b->multi = curl_multi_init();
	b->transfers = calloc(connections, sizeof(*b->transfers));
	if (!b->objects || !b->multi || !b->transfers)
		return -ENOMEM;
	curl_multi_setopt(b->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS,
			  (long)connections);
	curl_multi_setopt(b->multi, CURLMOPT_MAXCONNECTS, (long)connections);
	b->rng = rng_stream(tick_wall(), "store", 0);
	while (r == 0 && b->n_transfers < connections)
		r = transfer_init(&b->transfers[b->n_transfers++], &b->account);
	if (r == 0)
		r = thread_start(&b->thread, NULL, run_transfers, b);
	b->started = r == 0;
	return r;
}

int bucket_open(const char *url, unsigned connections, struct bucket **ret,
		struct err *err)
{
	struct bucket *b = calloc(1, sizeof(*b));
	int r;

	if (!b || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
		free(b);
		return err_set(err, -ENOMEM, "out of memory");
	}
	b->tries = MOST_TRIES;
	b->cancel_fd = -1;
	pthread_mutex_init(&b->lock, NULL);
	r = bucket_split(url, &b->name, &b->prefix, err);
	if (r == 0)
		r = account_find(&b->account, err);
	if (r == 0) {
		r = start_transfers(b, connections);
		if (r < 0)
			err_set(err, r, "s3:%s: %s", url, strerror(-r));
	}
	if (r < 0)
		bucket_free(b);
	else
		*ret = b;
	return r;
}

void bucket_free(struct bucket *b)
{
	if (!b)
		return;
	if (b->started) {
		bucket_cancel(b);
		pthread_join(b->thread, NULL);
	}
	for (unsigned i = 0; i < b->n_transfers; i++)
		transfer_fini(&b->transfers[i]);
	curl_multi_cleanup(b->multi);
	curl_global_cleanup();
	pthread_mutex_destroy(&b->lock);
	account_fini(&b->account);
	free(b->transfers);
	free(b->name);
	free(b->prefix);
	free(b->base);
	free(b->objects);
	free(b);
}

void bucket_tries(struct bucket *b, unsigned most)
{
	b->tries = most;
}

void bucket_cancel_on(struct bucket *b, int fd)
{
	LOCK_SCOPE(&b->lock);
	b->cancel_fd = fd;
}

void bucket_cancel(struct bucket *b)
{
	pthread_mutex_lock(&b->lock);
	b->stopping = true;
	pthread_mutex_unlock(&b->lock);
	curl_multi_wakeup(b->multi);
}

const char *bucket_base(const struct bucket *b)
{
	return b->base;
}

/* --- reads -------------------------------------------------------------- */

void bucket_start(struct bucket *b, struct bucket_read *r)
{
	bool ended;

	r->next = NULL;
	pthread_mutex_lock(&b->lock);
	ended = b->stopping;
	if (!ended) {
		if (b->first)
			b->last->next = r;
		else
			b->first = r;
		b->last = r;
	}
	pthread_mutex_unlock(&b->lock);
	if (ended)
		r->done(r, -ECANCELED);
	else
		curl_multi_wakeup(b->multi);
}

/* A read that its caller waits for. */
struct waiter {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool done;
	int error;
};

struct awaited {
	struct bucket_read read;
	struct waiter waiter;
};

static void wake(struct waiter *w, int error)
{
	LOCK_SCOPE(&w->lock);
	w->done = true;
	w->error = error;
	pthread_cond_signal(&w->wake);
}

static int wait_for(struct waiter *w)
{
	pthread_mutex_lock(&w->lock);
	while (!w->done)
		pthread_cond_wait(&w->wake, &w->lock);
	pthread_mutex_unlock(&w->lock);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	return w->error;
}

static void wake_reader(struct bucket_read *r, int error)
{
	wake(&container_of(r, struct awaited, read)->waiter, error);
}

int bucket_wait(struct bucket *b, struct bucket_read *r)
{
	struct awaited a = { .read = *r,
			     .waiter = { PTHREAD_MUTEX_INITIALIZER,
					 PTHREAD_COND_INITIALIZER, false, 0 } };

	a.read.done = wake_reader;
	bucket_start(b, &a.read);
	return wait_for(&a.waiter);
}

/* --- listings ----------------------------------------------------------- */

struct listing {
	struct transfer_page page;
	struct waiter waiter;
};

static void wake_lister(struct bucket_read *r, int error)
{
	struct transfer_page *p = container_of(r, struct transfer_page, read);

	wake(&container_of(p, struct listing, page)->waiter, error);
}

/* The names in order, as they are signed. */
static char *query_of(const char *prefix, const char *token)
{
	char *query;
	size_t n;
	FILE *f = open_memstream(&query, &n);

	if (!f)
		return NULL;
	if (*token) {
		fputs("continuation-token=", f);
		percent_encode(token, true, f);
		fputc('&', f);
	}
	fputs("encoding-type=url&list-type=2&prefix=", f);
	percent_encode(prefix, true, f);
	return fclose(f) ? NULL : query;
}

static int explain(const struct bucket *b, const struct transfer_page *p,
		   int error, struct err *err)
{
	const struct answer_error *e = &p->error;

	if (error == -ENOMEM || error == -ECANCELED)
		return err_set(err, error, "%s: %s", b->base, strerror(-error));
	if (!p->status)
		return err_set(err, error, "%s: %s", b->base,
			       p->text[0] ? p->text : strerror(-error));
	if (p->status == 404)
		return err_set(err, -ENOENT, "%s: no such bucket", b->base);
	if (p->status == 301 && p->region[0])
		return err_set(err, -EINVAL,
			       "%s: the bucket is in another region: set "
			       "AWS_REGION=%s",
			       b->base, p->region);
	if (p->status == 403)
		return err_set(err, -EACCES, "%s: access denied: %s: %s",
			       b->base, e->code, e->message);
	return err_set(err, error, "%s: HTTP status %ld: %s: %s", b->base,
		       p->status, e->code[0] ? e->code : strerror(-error),
		       e->message);
}

/* One page into `buf`. */
static int get_page(struct bucket *b, struct answer_page *page, char *buf,
		    struct err *err)
{
	_cleanup_free_ char *query = query_of(b->prefix, page->token);
	struct listing l = {
		.page = { .read = { .n = MOST_PAGE,
				    .buf = buf,
				    .done = wake_lister },
			  .query = query },
		.waiter = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER,
			    false, 0 },
	};
	int r;

	if (!query)
		return err_set(err, -ENOMEM, "out of memory");
	bucket_start(b, &l.page.read);
	r = wait_for(&l.waiter);
	b->page_ns = l.page.read.last_ns;
	if (r < 0)
		return explain(b, &l.page, r, err);
	r = answer_page(buf, l.page.got, page, err);
	if (r == -EBADMSG)
		err_prefix(err, "%s", b->base);
	return r;
}

struct keys {
	const struct bucket *bucket;
	int (*found)(void *ctx, const struct answer_object *o);
	void *ctx;
	uint64_t n;
};

/* A server may list what was not asked for. */
static int found_key(void *ctx, const struct answer_object *o)
{
	struct keys *k = ctx;
	size_t n = strlen(k->bucket->prefix);
	struct answer_object below = *o;

	if (strncmp(o->key, k->bucket->prefix, n) != 0)
		return -EPROTO;
	k->n++;
	below.key += n;
	return *below.key ? k->found(k->ctx, &below) : 0;
}

static int list_pages(struct bucket *b, uint64_t pages,
		      struct answer_page *page, char *buf, struct err *err)
{
	char before[ANSWER_TOKEN + 1] = "";
	uint64_t n = 0;
	int r;

	do {
		r = get_page(b, page, buf, err);
		/* it would never end: any circle of tokens is seen, as those
		 * of pages 1, 2, 4, 8... are kept (Brent 1980) */
		if (r == 0 && page->token[0] && !strcmp(before, page->token))
			r = err_set(err, -EPROTO,
				    "%s: the listing repeats itself", b->base);
		n++;
		if (!(n & (n - 1)))
			memcpy(before, page->token, sizeof(before));
	} while (r == 0 && page->token[0] && n != pages);
	return r;
}

int bucket_list(struct bucket *b, uint64_t pages,
		int (*found)(void *ctx, const struct answer_object *o),
		void *ctx, struct err *err)
{
	struct keys keys = { .bucket = b, .found = found, .ctx = ctx };
	struct answer_page page = { .found = found_key, .ctx = &keys };
	_cleanup_free_ char *buf = malloc(MOST_PAGE);
	int r = buf ? list_pages(b, pages, &page, buf, err) : -ENOMEM;

	if (r == 0 && !keys.n && b->prefix[0])
		r = err_set(err, -ENOENT, "%s: no objects below %s", b->base,
			    b->prefix);
	return r < 0 ? err_set(err, r, "%s: %s", b->base,
			       r == -EPROTO ? "it lists other keys than were "
					      "asked for"
					    : strerror(-r))
		     : 0;
}

uint64_t bucket_page_ns(const struct bucket *b)
{
	return b->page_ns;
}

/* --- stats -------------------------------------------------------------- */

json_t *bucket_stats(struct bucket *b)
{
	json_t *errors = json_object();
	char name[8];

	LOCK_SCOPE(&b->lock);
	for (int i = 0; i < (int)ARRAY_SIZE(b->errors); i++) {
		if (!b->errors[i])
			continue;
		snprintf(name, sizeof(name), "%d", i);
		json_add_integer(errors, name, b->errors[i]);
	}
	if (b->connection_errors)
		json_add_integer(errors, "connection", b->connection_errors);
	return json_pack("{s:I, s:I, s:I, s:o, s:o}", "requests",
			 (json_int_t)b->requests, "retries",
			 (json_int_t)b->retries, "bytes", (json_int_t)b->bytes,
			 "first_byte_us", hist_json(&b->first_byte, NS_PER_US),
			 "errors", errors);
}
