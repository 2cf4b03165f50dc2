/* SPDX-License-Identifier: MIT */
/* A training run: loader/train/session.h behind the public header. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "common/json.h"
#include "common/units.h"
#include "common/util.h"
#include "common/version.h"
#include "include/gpemu.h"
#include "lib/options.h"
#include "lib/private.h"
#include "loader/engine/engine.h"
#include "loader/options/train_resolve.h"
#include "loader/pipeline/buffer.h"
#include "loader/train/session.h"
#include "loader/train/session_open.h"

/*
 * --- an engine of the program ---------------------------------------------
 *
 * Adapts a user's engine (gpemu.h) to the loader (loader/engine/engine.h).
 *
 * Validates all calls of a user's engine: a reported sample must have been
 * taken, a returned one must have been read and lie in its buffer, and error
 * codes are mapped to those of the loader.
 */

struct own_engine {
	struct engine_ops ops; /* for the loader */
	struct gpemu_engine engine;
};

struct slot {
	struct gpemu_fetch fetch; /* the engine's view */
	struct engine_fetch *own; /* NULL: not in flight */
	bool done;
};

/* The state of an instance, one per worker. */
struct gpemu_feed {
	const struct gpemu_engine *engine;
	struct feed *feed;
	struct slot *slot; /* depth */
	unsigned depth, n_out;
	uint32_t direct;
	bool canceled;	   /* the engine got -ECANCELED */
	atomic_bool stray; /* a sample was reported that was not taken */
	void *state;	   /* NULL: the engine's init was not called */
};

int gpemu_feed_take(struct gpemu_feed *feed, int wait, struct gpemu_fetch **ret)
{
	struct engine_fetch *x;
	struct slot *s;
	int r;

	if (wait && feed->n_out)
		return -EINVAL;
	r = feed_take(feed->feed, wait, &x);
	feed->canceled |= r == -ECANCELED;
	if (r < 0)
		return r;
	s = &feed->slot[x->slot];
	s->own = x;
	s->done = false;
	s->fetch = (struct gpemu_fetch){
		.dirfd = x->dirfd,
		.path = feed_path(feed->feed, x),
		.fd = x->fd,
		.offset_bytes = x->offset,
		.size_bytes = x->size,
		.buffer = x->buf,
		.buffer_bytes = buffer_room(x->size, feed->direct),
		.data = x->buf,
		.slot = x->slot,
		.user = s->fetch.user,
	};
	feed->n_out++;
	*ret = &s->fetch;
	return 0;
}

void gpemu_feed_done(struct gpemu_feed *feed, struct gpemu_fetch *fetch,
		     int64_t result)
{
	struct slot *s = container_of(fetch, struct slot, fetch);

	if (!s->own) {
		atomic_store(&feed->stray, true);
		return;
	}
	s->own->data = fetch->data;
	feed_done(feed->feed, s->own, result < -MAX_ERRNO ? -EIO : result);
	s->done = true;
}

static int init_own(void *state, const struct engine_config *c, struct err *err)
{
	const struct own_engine *own =
		container_of(c->ops, struct own_engine, ops);
	const struct gpemu_engine *e = &own->engine;
	struct gpemu_engine_config config = { .depth = c->depth,
					      .direct_bytes = c->direct };
	struct gpemu_feed *f = state;
	char text[512] = "";
	int r;

	f->engine = e;
	f->depth = c->depth;
	f->direct = c->direct;
	f->slot = calloc(c->depth, sizeof(*f->slot));
	if (f->slot)
		f->state = calloc(1, e->state_bytes + 1);
	if (!f->state)
		return err_set(err, -ENOMEM, "out of memory");
	r = e->init ? e->init(f->state, &config, text, sizeof(text)) : 0;
	if (r > 0)
		r = -EINVAL;
	if (r < -MAX_ERRNO)
		r = -EIO;
	return r < 0 ? err_set(err, r, "engine %s: %s", e->name,
			       text[0] ? text : strerror(-r))
		     : 0;
}

static void fini(void *state)
{
	struct gpemu_feed *f = state;

	if (f->state && f->engine->fini)
		f->engine->fini(f->state);
	free(f->state);
	free(f->slot);
}

/* The slot returned by the engine, or NULL and an error text. */
static struct slot *returned(struct gpemu_feed *f,
			     const struct gpemu_fetch *fetch, const char **ret)
{
	struct slot *s = NULL;
	size_t at;

	for (unsigned i = 0; !s && i < f->depth; i++)
		if (fetch == &f->slot[i].fetch)
			s = &f->slot[i];
	*ret = NULL;
	if (!s || !s->own) {
		*ret = "returned a sample that it had not taken";
		return NULL;
	}
	at = (size_t)((char *)s->own->data - (char *)s->own->buf);
	if (atomic_load(&f->stray))
		*ret = "reported a sample that it had not taken";
	else if (!s->done)
		*ret = "returned a sample whose read has not ended";
	else if (s->own->error == 0 &&
		 (at > s->fetch.buffer_bytes ||
		  s->own->size > s->fetch.buffer_bytes - at))
		*ret = "returned a sample that is not in its buffer";
	return *ret ? NULL : s;
}

/* Map the result of next() to an error of the loader. */
static int code(int r)
{
	/* For the loader these mean "stopped" and "end of the epoch". */
	if (r == -ECANCELED || r == -ENODATA)
		return -EIO;
	return r < 0 ? r : -EINVAL;
}

static int next_own(void *state, struct feed *feed, struct engine_fetch **ret,
		    struct err *err)
{
	struct gpemu_feed *f = state;
	const struct gpemu_engine *e = f->engine;
	struct gpemu_fetch *fetch = NULL;
	const char *wrong;
	char text[512] = "";
	struct slot *s;
	int r;

	f->feed = feed;
	r = e->next(f->state, f, &fetch, text, sizeof(text));
	if (r == -ECANCELED && f->canceled)
		return r;
	if (r < -MAX_ERRNO)
		r = -EIO;
	if (r != 0)
		return err_set(err, code(r), "engine %s: %s", e->name,
			       text[0] ? text : strerror(r < 0 ? -r : EINVAL));
	s = returned(f, fetch, &wrong);
	if (!s)
		return err_set(err, -EINVAL, "engine %s: %s", e->name, wrong);
	/* a failed sample becomes zeros from the start of the buffer */
	if (s->own->error < 0)
		s->own->data = s->own->buf;
	*ret = TAKE_PTR(s->own);
	f->n_out--;
	return 0;
}

/* -EINVAL with a text: the struct is invalid. `ret` must not move while its
 * `ops` are in use. */
static int own_engine_init(struct own_engine *ret,
			   const struct gpemu_engine *engine, struct err *err)
{
	unsigned known = GPEMU_ENGINE_WHOLE_BATCHES | GPEMU_ENGINE_ANY_ORDER |
			 GPEMU_ENGINE_DIRECT;
	const char *wrong = NULL;

	/* a smaller struct would be older than version 1 */
	if (engine->struct_bytes < sizeof(*engine))
		wrong = "struct_bytes is not sizeof(struct gpemu_engine)";
	else if (!engine->name || !engine->name[0])
		wrong = "the engine has no name";
	else if (!engine->next)
		wrong = "the engine has no next()";
	else if (engine->flags & ~known)
		wrong = "the engine has unknown flags";
	if (wrong)
		return err_set(err, -EINVAL, "engine: %s", wrong);
	ret->engine = *engine;
	ret->ops = (struct engine_ops){
		.plugin = { .name = engine->name,
			    .summary = engine->summary ? engine->summary : "",
			    .state_size = sizeof(struct gpemu_feed) },
		.whole_batches = engine->flags & GPEMU_ENGINE_WHOLE_BATCHES,
		.any_order = engine->flags & GPEMU_ENGINE_ANY_ORDER,
		.can_direct = engine->flags & GPEMU_ENGINE_DIRECT,
		.init = init_own,
		.fini = fini,
		.next = next_own,
	};
	return 0;
}

struct gpemu {
	struct session session;
	struct own_engine own;
	char **argv; /* for the record; ended by NULL */
	struct err err;
	FILE *notes_file;
	char *notes; /* notes_file's */
	size_t notes_bytes;
	struct gpemu_info info;
	bool in_epoch, held;
	int last;	/* in an epoch: 0, or the reason for its end */
	struct err why; /* its text, valid after the epoch too */
	struct delivery delivery;
	struct gpemu_batch batch;
	struct gpemu_sample *samples; /* of the largest batch */
};

const char *gpemu_version(void)
{
	return GPEMU_RELEASE;
}

void lib_tell(int r, const struct err *err, char *error, size_t n)
{
	if (error && n)
		snprintf(error, n, "%s",
			 err->text[0] ? err->text : strerror(-r));
}

struct gpemu_step lib_step(const struct gpu_step *s)
{
	return (struct gpemu_step){
		.copy_start_ns = s->copy_start,
		.copy_end_ns = s->copy_end,
		.compute_start_ns = s->compute_start,
		.compute_end_ns = s->compute_end,
		.data_wait_ns = s->data_wait_ns,
		.transfer_stall_ns = s->transfer_stall_ns + s->host_stall_ns,
		.barrier_wait_ns = s->barrier_wait_ns,
		.allreduce_ns = s->allreduce_ns,
		.step_end_ns = s->step_end,
		.optimizer_ns = s->optimizer_ns,
	};
}

/* Keeps the text; returns r. */
static int fail_loader(struct gpemu *g, int r, const struct err *err)
{
	lib_tell(r, err, g->err.text, sizeof(g->err.text));
	return r;
}

static int misuse(struct gpemu *g, int r, const char *text)
{
	struct err err = { 0 };

	return fail_loader(g, err_set(&err, r, "%s", text), &err);
}

/* --- opening and closing -------------------------------------------------- */

static void note(void *ctx, enum log_level level, const char *text)
{
	struct gpemu *g = ctx;

	if (level > LOG_LEVEL_WARN)
		return;
	fprintf(g->notes_file, "%s\n", text);
	fflush(g->notes_file);
}

/* The command in the record. */
static int keep_options(struct gpemu *g, const char *const options[])
{
	int n = 0;

	while (options && options[n])
		n++;
	g->argv = calloc((size_t)n + 2, sizeof(*g->argv));
	if (!g->argv || !(g->argv[0] = strdup("libgpemu")))
		return -ENOMEM;
	for (int i = 0; i < n; i++)
		if (!(g->argv[i + 1] = strdup(options[i])))
			return -ENOMEM;
	g->session.report.argc = n + 1;
	g->session.report.argv = g->argv;
	return 0;
}

static int adopt(struct gpemu *g, const struct gpemu_engine *engine,
		 const char *const options[], struct err *err)
{
	struct session *s = &g->session;
	int r;

	if (!engine)
		return 0;
	if (options_have(options, "loader"))
		return err_set(err, -EINVAL,
			       "loader: gpemu_open was given an engine, too; "
			       "give only one of them");
	r = own_engine_init(&g->own, engine, err);
	if (r < 0)
		return r;
	free(s->options.loader);
	s->options.loader = strdup(engine->name);
	s->choice.engine = &g->own.ops;
	return s->options.loader ? 0 : -ENOMEM;
}

static void fill_shape(struct gpemu_info *info, const struct session *s)
{
	uint32_t side = s->prep.config.side, rows = s->prep.int64_rows;
	size_t bytes = s->prep.sample_bytes;

	if (!bytes)
		return;
	if (rows) {
		info->type = GPEMU_INT64;
		info->shape[0] = rows;
		info->shape[1] = (uint32_t)(bytes / rows / sizeof(int64_t));
		return;
	}
	info->type = s->prep.config.output == PREP_UINT8 ? GPEMU_UINT8
							 : GPEMU_FP32;
	info->shape[0] = 3;
	info->shape[1] = info->shape[2] = side;
}

static int fill_info(struct gpemu *g, struct err *err)
{
	const struct session *s = &g->session;
	bool can_lend;
	int r = session_can_lend(s, &can_lend, err);

	g->info = (struct gpemu_info){
		.n_samples = s->data.n ? s->data.n : s->options.samples,
		.n_batches = session_epoch_batches(s),
		.n_classes = MAX(s->data.n_classes, 1),
		.batch =
			(uint32_t)train_pipeline_batch(&s->options, &s->choice),
		.n_kept = r == 0 && can_lend,
	};
	fill_shape(&g->info, s);
	g->samples = calloc(g->info.batch, sizeof(*g->samples));
	return r == 0 && !g->samples ? -ENOMEM : r;
}

static int open_run(struct gpemu *g, const char *const options[],
		    const struct gpemu_engine *engine, struct err *err)
{
	struct session *s = &g->session;
	int r = keep_options(g, options);

	g->notes_file = open_memstream(&g->notes, &g->notes_bytes);
	if (r < 0 || !g->notes_file)
		return -ENOMEM;
	s->tell = note;
	s->ctx = g;
	r = options_set(&s->options, options, NULL, err);
	if (r == 0)
		r = adopt(g, engine, options, err);
	if (r == 0)
		r = train_options_resolve(&s->options, &s->choice, err);
	if (r == 0)
		r = session_open(s, err);
	if (r == 0)
		r = fill_info(g, err);
	return r < 0 ? r : session_start(s, err);
}

static void free_run(struct gpemu *g)
{
	session_close(&g->session);
	if (g->notes_file)
		fclose(g->notes_file);
	free(g->notes);
	for (char **a = g->argv; a && *a; a++)
		free(*a);
	free(g->argv);
	free(g->samples);
	free(g);
}

int gpemu_new(struct gpemu **ret)
{
	struct gpemu *g = calloc(1, sizeof(*g));

	*ret = g;
	if (!g)
		return -ENOMEM;
	session_init(&g->session);
	return 0;
}

int gpemu_start(struct gpemu *g, const char *const options[],
		const struct gpemu_engine *engine)
{
	struct err err = { 0 };
	int r = open_run(g, options, engine, &err);

	return r < 0 ? fail_loader(g, r, &err) : 0;
}

int gpemu_open(const char *const options[], const struct gpemu_engine *engine,
	       struct gpemu **ret, char *error, size_t n)
{
	const struct err none = { 0 };
	struct gpemu *g;
	int r = gpemu_new(&g);

	*ret = NULL;
	if (r == 0)
		r = gpemu_start(g, options, engine);
	if (r == 0) {
		*ret = g;
		return 0;
	}
	lib_tell(r, g ? &g->err : &none, error, n);
	if (g)
		free_run(g);
	return r;
}

int gpemu_close(struct gpemu *g)
{
	int r = 0, logs;

	if (!g)
		return 0;
	if (g->in_epoch) {
		gpemu_interrupt(g);
		g->last = -ECANCELED;
		r = gpemu_end_epoch(g, NULL);
	}
	logs = session_close_logs(&g->session, NULL);
	free_run(g);
	return r == 0 || r == -ECANCELED ? logs : r;
}

const char *gpemu_error(const struct gpemu *g)
{
	return g->err.text;
}

const char *gpemu_notes(const struct gpemu *g)
{
	return g->notes ? g->notes : "";
}

const struct gpemu_info *gpemu_info(const struct gpemu *g)
{
	return &g->info;
}

/* --- an epoch ------------------------------------------------------------- */

int gpemu_begin_epoch(struct gpemu *g, uint64_t *ret)
{
	struct session *s = &g->session;
	struct err err = { 0 };
	int r;

	if (g->in_epoch)
		return misuse(g, -EBUSY, "an epoch is running: end it first");
	if (s->ended < 0)
		return fail_loader(g, s->ended, &g->why);
	if (!session_more(s))
		return 0;
	tick_thread(); /* another one may have opened the run */
	if (ret)
		*ret = s->resume.point.epoch;
	r = session_begin(s, &err);
	if (r < 0)
		return fail_loader(g, r, &err);
	g->in_epoch = true;
	g->last = 0;
	g->why = err;
	return 1;
}

/* Are the samples evenly spaced? Then where they begin is the batch's data. */
static void find_data(struct gpemu *g)
{
	const struct place *place = g->delivery.place;
	uint32_t n = g->delivery.n;
	ptrdiff_t stride;
	char *data;

	if (!place || !place[0].n)
		return;
	data = (char *)place[0].data;
	stride = n > 1 ? (const char *)place[1].data - data
		       : (ptrdiff_t)place[0].n;
	/* one in the place of others, not what emulation makes of all */
	if (stride == 0 && !g->session.choice.prep->cost)
		return;
	for (uint32_t i = 0; i < n; i++)
		if (stride < 0 || place[i].n != place[0].n ||
		    place[i].data != data + i * stride)
			return;
	g->batch.data = data;
	g->batch.stride_bytes = (size_t)stride;
}

static void fill_batch(struct gpemu *g)
{
	const struct dataset *d = &g->session.data;
	const struct place *place = g->delivery.place;

	g->batch = (struct gpemu_batch){
		.n = g->delivery.n,
		.samples = place ? g->samples : NULL,
		.ready_ns = g->delivery.ready_ns,
	};
	for (uint32_t i = 0; place && i < g->batch.n; i++)
		g->samples[i] = (struct gpemu_sample){
			.data = place[i].data,
			.size_bytes = place[i].n,
			.path = dataset_path(d, place[i].sample),
			.index = place[i].sample,
			.label = d->label[place[i].sample],
			.error = place[i].error,
		};
	find_data(g);
}

/* The emulated time `wall_ns` from now. */
static uint64_t until(const struct gpemu *g, uint64_t wall_ns)
{
	const struct tick *tick = g->session.tick;
	double at = (double)tick_now(tick) + (double)wall_ns / tick_scale(tick);

	/* arbitrary: a year is for good, and far from an overflow */
	return wall_ns < 365 * 86400 * NS_PER_S && at < (double)TICK_NEVER
		       ? (uint64_t)at
		       : TICK_NEVER;
}

int gpemu_next(struct gpemu *g, const struct gpemu_batch **ret)
{
	return gpemu_next_within(g, UINT64_MAX, ret);
}

int gpemu_next_within(struct gpemu *g, uint64_t timeout_ns,
		      const struct gpemu_batch **ret)
{
	int r;

	if (!g->in_epoch)
		return misuse(g, -EINVAL,
			      "no epoch is running: begin one first");
	if (g->held)
		return misuse(g, -EBUSY,
			      "a batch is held: submit or release it first");
	if (session_loans(&g->session) > g->info.n_kept)
		return misuse(g, -EBUSY,
			      "more than one batch is kept: drop one first");
	r = g->last;
	if (r == 0)
		r = session_next(&g->session, until(g, timeout_ns),
				 &g->delivery, &g->why);
	if (r > 0)
		return misuse(g, -EAGAIN, "no batch is ready yet");
	g->last = r == -EAGAIN ? -EIO : r;
	if (g->last == -ENODATA)
		return 0;
	if (g->last < 0)
		return fail_loader(g, g->last, &g->why);
	g->held = true;
	fill_batch(g);
	*ret = &g->batch;
	return 1;
}

static int check_held(struct gpemu *g, const struct gpemu_batch *batch)
{
	if (g->held && batch == &g->batch)
		return 0;
	return misuse(g, -EINVAL,
		      "not the batch that gpemu_next returned last");
}

int gpemu_keep(struct gpemu *g, const struct gpemu_batch *batch,
	       struct gpemu_memory **ret)
{
	struct loan *loan;
	int r = check_held(g, batch);

	if (r < 0)
		return r;
	if (!g->info.n_kept)
		return misuse(g, -ENOBUFS,
			      "the run has no memory to keep a batch in");
	if (g->delivery.loan)
		return misuse(g, -EBUSY, "the batch was kept before");
	r = session_lend(&g->session, &g->delivery, &loan);
	if (r < 0)
		return misuse(g, r, strerror(-r));
	*ret = (struct gpemu_memory *)loan;
	return 0;
}

/* gpemu_memory is the public name of a loan. */
void gpemu_drop(struct gpemu_memory *memory)
{
	loan_end((struct loan *)memory);
}

int gpemu_submit(struct gpemu *g, const struct gpemu_batch *batch,
		 struct gpemu_step *ret)
{
	struct gpu_step s = { 0 };
	int r = check_held(g, batch);

	if (r < 0)
		return r;
	g->held = false;
	r = session_step(&g->session, &g->delivery, &s, &g->why);
	if (ret) {
		*ret = lib_step(&s);
		/* of its own batch, not necessarily the current one */
		ret->fetch_stall_ns = g->session.train.now.stalls.fetch_ns;
		ret->pin_stall_ns = g->session.train.now.stalls.pin_ns;
	}
	if (r == 0)
		return 0;
	g->last = r;
	return fail_loader(g, r, &g->why);
}

int gpemu_release(struct gpemu *g, const struct gpemu_batch *batch)
{
	struct err err = { 0 };
	int r = check_held(g, batch);

	if (r < 0)
		return r;
	g->held = false;
	r = session_release(&g->session, &g->delivery, &err);
	return r < 0 ? fail_loader(g, r, &err) : 0;
}

/* As in the record: the mean over several GPUs. */
static void fill_epoch(const struct train_account *a, struct gpemu_epoch *ret)
{
	*ret = (struct gpemu_epoch){
		.epoch = a->epoch,
		.steps = a->steps,
		.samples = a->samples,
		.failed_samples = a->failed_samples,
		.data_bytes = a->bytes,
		.elapsed_ns = a->elapsed_ns,
		.compute_ns = account_mean(a, a->all.compute_ns),
		.data_wait_ns = account_mean(a, a->all.data_wait_ns),
		.fetch_stall_ns = account_mean(a, a->all.fetch_stall_ns),
		.prep_stall_ns = account_mean(a, a->all.prep_stall_ns),
		.pin_stall_ns = account_mean(a, a->all.pin_stall_ns),
		.transfer_stall_ns = account_mean(
			a, a->all.transfer_stall_ns + a->all.host_stall_ns),
		.checkpoint_stall_ns = a->checkpoint_stall_ns,
		.utilisation = account_au(a),
	};
}

int gpemu_end_epoch(struct gpemu *g, struct gpemu_epoch *ret)
{
	struct session *s = &g->session;
	struct err err = { 0 };
	int r;

	if (!g->in_epoch)
		return misuse(g, -EINVAL,
			      "no epoch is running: begin one first");
	if (g->held)
		gpemu_release(g, &g->batch);
	r = session_end(s, g->last, &err);
	g->in_epoch = false;
	if (ret)
		fill_epoch(s->report.epoch[s->report.n_epochs - 1], ret);
	if (r != g->last || err.text[0])
		g->why = err;
	return r < 0 ? fail_loader(g, r, &g->why) : 0;
}

void gpemu_interrupt(struct gpemu *g)
{
	session_interrupt(&g->session);
}

/* --- the rest ------------------------------------------------------------- */

int gpemu_record(struct gpemu *g, char **ret)
{
	struct session *s = &g->session;
	struct err err = { 0 };
	json_auto_t *j = NULL;
	int r;

	if (g->in_epoch)
		return misuse(g, -EBUSY, "an epoch is running: end it first");
	r = session_ceiling(s, &err);
	if (r < 0)
		return fail_loader(g, r, &err);
	j = report_json(session_report(s));
	*ret = j ? json_text(j) : NULL;
	return *ret ? 0 : fail_loader(g, -ENOMEM, &err);
}

uint64_t gpemu_now_ns(const struct gpemu *g)
{
	return tick_now(g->session.tick);
}
