/* SPDX-License-Identifier: MIT */
#include "loader/train/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "common/json.h"
#include "common/util.h"
#include "emu/gpu/device.h"
#include "emu/node/cores.h"
#include "loader/account/observe.h"
#include "loader/nodes/agree.h"
#include "loader/options/train_resolve.h"
#include "loader/options/train_table.h"
#include "loader/train/session_open.h"
#include "loader/train/session_stages.h"
#include "loader/train/session_state.h"
#include "loader/train/train.h"

/*
 * --- the ceiling ----------------------------------------------------------
 *
 * The rig's ceiling: the rate of a run whose data is always ready.
 */

/* arbitrary: enough steps for an average, short enough not to be noticed before
 * a training run */
enum { CEILING_STEPS = 20 };
#define CEILING_WALL_NS (NS_PER_S / 2)
/* A step of a second takes a microsecond: the least that --time-scale allows */
#define CEILING_FREE 1e-6

extern const struct engine_ops engine_null;
extern const struct prep_ops prep_none;

static int train(struct train *t, const struct pipeline_config *c,
		 struct err *err)
{
	const struct intake_config from = { .pipeline = *c };
	struct delivery d;
	struct gpu_step s;
	int r = intake_new(&from, &t->intake, err);

	if (r < 0)
		return r;
	train_begin(t, 0, NULL,
		    (uint64_t)CEILING_STEPS * t->batch * t->gpus->n);
	while ((r = train_next(t, TICK_NEVER, &d, err)) == 0 &&
	       (r = train_step(t, &d, &s, err)) == 0)
		;
	r = train_end(t, r);
	intake_free(t->intake);
	return r;
}

static int run_job(const struct device_job *job,
		   const struct pipeline_config *c, struct train_account *a,
		   struct err *err)
{
	_cleanup_free_ struct train *t = calloc(1, sizeof(*t));
	struct device *d = device_local_new();
	struct observed seen = { .account = a };
	uint64_t load;
	int r = t && d ? device_start(d, job, &load, err)
		       : err_set(err, -ENOMEM, "out of memory");

	if (r == 0) {
		t->tick = job->tick;
		t->device = d;
		t->gpus = job->gpus;
		t->batch = job->batch;
		t->pinned = job->pinned;
		observers_add(&t->observers, &observe_account, &seen);
		r = train(t, c, err);
	}
	device_close(d);
	return r;
}

/* The steps at a time scale. */
static int measure(struct device_job *job, struct pipeline_config *c,
		   double scale, struct train_account *ret, struct err *err)
{
	int r;

	job->tick = c->tick = tick_new(scale, TICK_DEFAULT_SPIN_NS);
	if (!job->tick)
		return err_set(err, -ENOMEM, "out of memory");
	r = run_job(job, c, ret, err);
	tick_free(job->tick);
	return r;
}

/*
 * Runs the same job on local GPUs with the engine `null`, in batches of `batch`
 * samples of `sample_bytes`, for a few steps. The time scale makes them last
 * about half a wall second, but is never slower than `time_scale`. Then the
 * same steps once more as fast as the rig can: the wall time of its own work.
 */
static int ceiling_measure(const struct device_job *like, uint32_t batch,
			   uint64_t sample_bytes, double time_scale,
			   struct ceiling *ret, struct err *err)
{
	_cleanup_free_ struct train_account *a = malloc(sizeof(*a));
	struct device_job job = *like;
	double ns = (double)device_local_ns(&job, job.batch * sample_bytes) *
		    CEILING_STEPS;
	struct pipeline_config c = { .engine = &engine_null,
				     .prep = &prep_none,
				     .batch = batch,
				     .sample_bytes = sample_bytes };
	int r;

	if (!a)
		return err_set(err, -ENOMEM, "out of memory");
	job.load = false;
	ret->time_scale = MIN(time_scale, (double)CEILING_WALL_NS / ns);
	r = measure(&job, &c, ret->time_scale, a, err);
	if (r < 0)
		return r;
	ret->samples_per_s = account_samples_per_s(a);
	ret->au = account_au(a);
	ret->steps = a->steps;
	r = measure(&job, &c, CEILING_FREE, a, err);
	ret->samples_per_wall_s = account_samples_per_s(a) / CEILING_FREE;
	return r;
}

/*
 * --- offloading -----------------------------------------------------------
 *
 * --offload of a training run.
 */

/* What the rates of the run depend on. The workers of a service are known by
 * their dispatcher. */
static int name_profile(struct session *s, struct err *err)
{
	const struct train_options *o = &s->options;
	const struct train_choice *c = &s->choice;
	const struct pipeline_config *p = &s->config;
	_cleanup_free_ char *prep =
		plugin_choice_text(&c->prep->plugin, c->prep_choice.options);
	_cleanup_free_ char *loader =
		plugin_choice_text(&c->engine->plugin, c->local_choice.options);

	if (!prep || !loader)
		return err_set(err, -ENOMEM, "out of memory");
	s->offload_key[0] =
		util_text("%s %s %s %" PRIu64 ", %s, %u workers, %u cores, %zu "
			  "samples of %" PRIu64 " bytes in %s",
			  prep, o->prep_profile ? o->prep_profile : "",
			  o->prep_output, o->image_size, loader, p->workers,
			  p->cores, s->data.n, s->data.bytes, s->data.root);
	s->offload_key[1] = util_text("%s, batch %u, %" PRIu64 " x %s",
				      s->model->name, p->batch, o->gpus,
				      s->gpu.name);
	s->offload_key[2] = util_text("%s, %g bytes/s, %s", o->dispatcher,
				      s->way[0].service.nic_bytes_per_s,
				      o->last_step);
	return s->offload_key[0] && s->offload_key[1] && s->offload_key[2]
		       ? 0
		       : err_set(err, -ENOMEM, "out of memory");
}

/* In session_start, after the ceiling; `n`: samples of the first epoch.
 * -EINVAL: they are too few to measure; -ENOMEM. */
static int session_open_offload(struct session *s, uint64_t n, struct err *err)
{
	const struct train_options *o = &s->options;
	uint64_t batch = s->config.batch, batches = (n + batch - 1) / batch;
	struct offload_config c = {
		.tick = s->tick,
		.part = s->choice.part,
		.gpu = s->report.ceiling.samples_per_s,
		.per_step = s->choice.parallel == GPUS_DP ? 1 : o->gpus,
		.virtual = s->choice.prep->cost,
		.cache = o->offload_cache,
		.n_ways = s->n_ways,
	};
	int r = 0;

	c.way[0] = FASTFLOW_BATCH;
	for (uint32_t i = 0; i < s->n_ways; i++)
		c.way[i] = s->way[i].split;
	if (o->offload_cache)
		r = name_profile(s, err);
	c.key = (struct fastflow_key){ .pipeline = s->offload_key[0],
				       .model = s->offload_key[1],
				       .remote = s->offload_key[2] };
	if (r < 0)
		return r;
	offload_init(&s->offload, &c);
	if (batches >= offload_needs(&s->offload))
		return 0;
	return err_set(err, -EINVAL,
		       "--offload auto measures on %s%d steps, and the first "
		       "epoch has %" PRIu64 ": give a RATIO, none or all",
		       s->offload.part < 0 ? "2 x " : "", FASTFLOW_STEPS,
		       batches / c.per_step);
}

static void session_close_offload(struct session *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(s->offload_key); i++)
		free(s->offload_key[i]);
	for (uint32_t i = 0; i < s->n_ways; i++)
		free(s->way[i].job);
}

/* As many as prepare batches here; no more than batches that can come at
 * once. */
static uint32_t last_threads(const struct session *s)
{
	const struct remote_ops *ops = s->choice.remote->remote;
	uint64_t most = ops->n_buffers(s->choice.loader_choice.options);

	return (uint32_t)MIN(MAX(s->options.workers, 1), most);
}

/* As intake_new. */
static int session_open_intake(struct session *s,
			       const struct pipeline_config *c,
			       struct intake **ret, struct err *err)
{
	const struct session_way *w = &s->way[s->offload.way];
	const struct intake_config i = {
		.sift = s->choice.bad.sift,
		.pipeline = *c,
		.remote = s->choice.remote,
		.remote_options = s->choice.loader_choice.options,
		.service = &w->service,
		.last_threads = w->split == FASTFLOW_LAST ? last_threads(s) : 0,
		.part = offload_part(&s->offload),
		.alone = offload_alone(&s->offload),
	};

	return intake_new(&i, ret, err);
}

/* A batch was taken for the next step. */
static void session_offload_taken(struct session *s, const struct delivery *d)
{
	struct err err = { 0 };

	if (offload_taken(&s->offload, s->intake, d, &s->account->work, &err) <
	    0)
		session_tell(s, LOG_LEVEL_WARN, "--offload-cache: %s",
			     err.text);
}

void session_init(struct session *s)
{
	*s = (struct session){ .data.dirfd = -1 };
	resume_init(&s->resume);
	pthread_mutex_init(&s->lock, NULL);
	train_options_init(&s->options);
}

/* --- starting ------------------------------------------------------------- */

int session_ceiling(struct session *s, struct err *err)
{
	const struct train_options *o = &s->options;
	bool needed = o->analyze || s->choice.part < 0;

	if (s->report.ceiling.steps || (!o->ceiling && !needed))
		return 0;
	return ceiling_measure(&s->job,
			       (uint32_t)train_pipeline_batch(o, &s->choice),
			       s->node.beside.sample_bytes, o->time_scale,
			       &s->report.ceiling, err);
}

/* Without files the order is unused, unless it is to be written. */
static int make_order(struct session *s, uint64_t epoch, struct err *err)
{
	if (!engine_has_samples(s->choice.engine) && !s->options.dump_order)
		return 0;
	return schedule_fill(&s->schedule, epoch, err);
}

static int analyze_first(struct session *s, struct err *err)
{
	const struct train_options *o = &s->options;
	uint64_t n =
		MIN(s->schedule.n, o->analyze_steps * train_step_samples(o));
	int r;

	if (!s->choice.engine->next)
		return err_set(err, -EINVAL,
			       "--analyze needs a dataset, and an engine that "
			       "reads it");
	r = session_ceiling(s, err);
	if (r == 0)
		r = make_order(s, 0, err);
	if (r < 0)
		return r;
	return analyze(&s->config, &s->mount, s->schedule.order, n,
		       s->report.ceiling.samples_per_s, &s->stop,
		       &s->report.analysis, err);
}

static int open_intake(struct session *s, struct err *err)
{
	struct pipeline_config c;
	struct intake *i;
	int r;

	pthread_mutex_lock(&s->lock);
	c = s->config;
	pthread_mutex_unlock(&s->lock);
	r = session_open_intake(s, &c, &i, err);
	if (r < 0)
		return r;
	s->train.intake = i;
	pthread_mutex_lock(&s->lock);
	s->intake = i;
	/* the command may have come before the pipeline existed */
	if (s->config.cores != c.cores)
		intake_set_cores(i, s->config.cores);
	/* the interrupt may have come before the pipeline existed */
	if (atomic_load(&s->stop))
		intake_interrupt(i);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

static void close_intake(struct session *s)
{
	struct intake *i = s->intake;

	pthread_mutex_lock(&s->lock);
	s->intake = NULL;
	pthread_mutex_unlock(&s->lock);
	s->train.intake = NULL;
	intake_free(i);
}

static void close_staging(struct session *s)
{
	struct staging *staging;

	pthread_mutex_lock(&s->lock);
	staging = TAKE_PTR(s->staging);
	pthread_mutex_unlock(&s->lock);
	staging_free(staging);
}

static int start_device(struct session *s, struct err *err)
{
	int r = device_start(s->device, &s->job, &s->node.model_transfer_ns,
			     err);

	return r == -ECANCELED ? err_set(err, r,
					 "interrupted while waiting for the "
					 "GPU")
			       : r;
}

struct pipeline_config session_pipeline(struct session *s)
{
	const struct train_options *o = &s->options;
	const struct train_choice *choice = &s->choice;
	struct pipeline_config c =
		train_data_pipeline(o, choice, &s->prep, &s->mount, &s->data);

	if (choice->local_choice.plugin)
		c.engine_options = choice->local_choice.options;
	c.batching = choice->batching;
	c.batching_options = choice->batching_choice.options;
	c.sample_bytes = s->node.beside.sample_bytes;
	c.pin = o->pin ? &s->gpu : NULL;
	c.pin_direct = o->pin_direct;
	c.pin_inline = o->pin_inline;
	c.pin_budget = o->pin_budget;
	c.tick = s->tick;
	c.trace = s->timeline.trace;
	c.gpus = choice->parallel == GPUS_DP ? 1 : (uint32_t)o->gpus;
	c.superbatch = (uint32_t)o->superbatch;
	c.direct = s->direct;
	c.address = s->address;
	return c;
}

/* On the thread of the commands. -ENOTSUP: there are none apart from the
 * workers.
 */
static int set_cores(struct session *s, uint32_t n, struct err *err)
{
	int r = 0;

	if (n < 1 || n > CORES_MAX)
		return err_set(err, -ERANGE, "set cores: 1 to %d", CORES_MAX);
	pthread_mutex_lock(&s->lock);
	s->config.cores = n;
	if (s->intake)
		r = intake_set_cores(s->intake, n);
	if (!s->cores_set)
		s->cores_set = json_array();
	json_array_append_new(s->cores_set,
			      json_pack("{s:f, s:I}", "at_s",
					(double)tick_now(s->tick) / NS_PER_S,
					"cores", (json_int_t)n));
	pthread_mutex_unlock(&s->lock);
	return r < 0 ? err_set(err, r, "set cores: %s", strerror(-r)) : 0;
}

/* set cores N */
static int run_command(void *ctx, char *line, struct err *err)
{
	char *state, *verb = strtok_r(line, " \t\r", &state);
	char *key = strtok_r(NULL, " \t\r", &state);
	char *value = strtok_r(NULL, " \t\r", &state);
	double n;

	if (!verb)
		return 0;
	if (!value || strtok_r(NULL, " \t\r", &state) || strcmp(verb, "set") ||
	    strcmp(key, "cores"))
		return err_set(err, -EINVAL,
			       "unknown command: use 'set cores N'");
	if (units_parse_double(value, &n) < 0 || !(n >= 1 && n <= UINT32_MAX) ||
	    n != (double)(uint32_t)n)
		return err_set(err, -EINVAL,
			       "set cores: '%s' is not a number of cores",
			       value);
	return set_cores(ctx, (uint32_t)n, err);
}

static void command_failed(void *ctx, const struct err *err)
{
	session_tell(ctx, LOG_LEVEL_WARN, "%s", err->text);
}

static int take_commands(struct session *s, struct err *err)
{
	const struct commands_config c = { .path = s->options.control,
					   .run = run_command,
					   .failed = command_failed,
					   .ctx = s };

	return commands_new(&c, &s->commands, err);
}

int session_start(struct session *s, struct err *err)
{
	const struct train_options *o = &s->options;
	int r = 0;

	s->tick = tick_new(o->time_scale, TICK_DEFAULT_SPIN_NS);
	if (!s->tick)
		return err_set(err, -ENOMEM, "out of memory");
	if (o->keep_awake)
		tick_keep_awake(s->tick); /* where permitted */
	s->bad = (struct bad_samples){ .data = &s->data,
				       .allowed = &s->choice.bad,
				       .option = o->bad_samples };
	s->train.tick = s->job.tick = s->sync.card.tick = s->tick;
	s->config = session_pipeline(s);
	if (o->analyze)
		r = analyze_first(s, err);
	if (r == 0 && o->control)
		r = take_commands(s, err);
	if (r == 0)
		r = resume_start(&s->resume, s->tick, &s->gpu, s->model, err);
	if (r == 0 && s->choice.part < 0)
		r = session_ceiling(s, err);
	if (r == 0)
		r = session_open_offload(s, session_epoch_samples(s), err);
	if (r == 0 && !o->coordinate)
		r = open_intake(s, err);
	if (r == 0)
		r = start_device(s, err);
	if (r < 0 || !o->coordinate)
		return r;
	/* the others do not wait for this job until it has its GPU */
	r = session_join_jobs(s, err);
	return r == 0 ? open_intake(s, err) : r;
}

void session_interrupt(struct session *s)
{
	pthread_mutex_lock(&s->lock);
	atomic_store(&s->stop, true);
	if (s->intake)
		intake_interrupt(s->intake);
	if (s->staging)
		staging_stop(s->staging);
	device_interrupt(s->device);
	pthread_mutex_unlock(&s->lock);
}

static uint64_t pinned_bytes(struct session *s)
{
	uint64_t now = s->intake ? intake_pinned(s->intake) : 0;

	return MAX(now, s->pinned_bytes);
}

/* What the closed one has counted is kept. */
static int reopen_intake(struct session *s, struct err *err)
{
	json_t *service = intake_service_json(s->intake);

	s->pinned_bytes = pinned_bytes(s);
	if (service) {
		s->services = s->services ? s->services : json_array();
		json_array_append_new(s->services, service);
	}
	close_intake(s);
	s->ended = open_intake(s, err); /* without it no epoch can begin */
	return s->ended;
}

/* --- announcing ----------------------------------------------------------- */

/* Does this process read files, of a mount? */
static bool reads_files(const struct session *s)
{
	return s->choice.engine->next && !s->choice.remote &&
	       !s->data.n_containers && s->mount.dir;
}

/* To the mount, which samples the order draws more often: at each epoch, as a
 * file of weights may change. A failure is a notice: its cache then knows
 * nothing new of it. */
static void announce_importance(struct session *s)
{
	struct err err = { 0 };
	int r = 0;

	if (s->choice.order->weigh && reads_files(s) && mount_weighs(&s->mount))
		r = announce_weights(&s->announcer, &err);
	if (r < 0 && r != -EACCES)
		session_tell(s, LOG_LEVEL_WARN,
			     "the mount does not know the weights of the "
			     "samples: %s",
			     err.text);
}

/* To the mount, what this run has yet to read. A failure is a notice: the mount
 * then only fetches what is read. */
static void announce_rest(struct session *s)
{
	const struct checkpoint_point *p = &s->resume.point;
	uint64_t batch = train_step_samples(&s->options);
	uint64_t steps = session_steps(s, s->schedule.n);
	uint64_t left = p->epoch_step + s->n_steps - p->step;
	const struct announce_epochs e = {
		.first = p->epoch,
		.n = (left + steps - 1) / steps,
		.visits = MIN(s->schedule.n, steps * batch),
		.skips = p->epoch_step * batch,
	};
	struct err err = { 0 };
	int r = -EACCES;

	if (reads_files(s) && mount_foresees(&s->mount))
		r = announce(&s->announcer, &e, &err);
	if (r < 0 && r != -EACCES)
		session_tell(s, LOG_LEVEL_WARN, "no prefetching: %s", err.text);
	if (r < 0)
		s->announcer.until = UINT64_MAX;
}

/* --- an epoch ------------------------------------------------------------- */

bool session_more(const struct session *s)
{
	const struct checkpoint_point *p = &s->resume.point;

	return p->step < s->n_steps && p->epoch < s->options.epochs;
}

uint64_t session_epoch_samples(const struct session *s)
{
	const struct checkpoint_point *p = &s->resume.point;
	uint64_t batch = train_step_samples(&s->options), n = s->schedule.n;
	uint64_t steps = session_steps(s, n) - p->epoch_step;

	return MIN(n - p->epoch_step * batch,
		   MIN(steps, s->n_steps - p->step) * batch);
}

int session_begin(struct session *s, struct err *err)
{
	uint64_t epoch = s->resume.point.epoch;
	struct train_account *a;
	int r = s->ended;

	s->checkpoints = resume_stats(&s->resume);
	s->cpu_ns = tick_cpu();
	if (r == 0)
		r = mount_mark_epoch(&s->mount, err);
	s->announcer.mount = &s->mount;
	s->announcer.schedule = &s->schedule;
	s->announcer.data = &s->data;
	if (r == 0)
		announce_importance(s);
	if (r == 0 && epoch >= s->announcer.until)
		announce_rest(s);
	if (r == 0)
		r = make_order(s, epoch, err);
	/* all nodes begin together */
	if (r == 0)
		r = comm_exchange(s->comm, NULL, NULL, 0, err);
	if (r == 0 && offload_begin(&s->offload))
		r = reopen_intake(s, err);
	if (r < 0)
		return r;
	a = calloc(1, sizeof(*a));
	if (!a)
		return err_set(err, -ENOMEM, "out of memory");
	s->account = s->report.epoch[s->report.n_epochs++] = a;
	s->observed.account = a;
	visited_filter(&s->resume.visited, s->schedule.order, s->schedule.n);
	s->hits_known = mount_hits(&s->mount, &s->hits);
	bad_samples_begin(&s->bad, s->schedule.n);
	s->n_left = session_epoch_samples(s);
	train_begin(&s->train, epoch, s->schedule.order, s->n_left);
	return 0;
}

int session_next(struct session *s, uint64_t until, struct delivery *ret,
		 struct err *err)
{
	/* with stages (--loader null) a batch is there at the first call */
	int r = s->n_left ? session_load_stage(s, err) : 0;

	if (r == 0)
		r = train_next(&s->train, until, ret, err);
	if (r != 0)
		return r;
	s->n_left -= ret->n + ret->left_out;
	session_offload_taken(s, ret);
	r = bad_samples_add(&s->bad, ret, err);
	if (r < 0)
		session_release(s, ret, NULL);
	return r;
}

int session_step(struct session *s, struct delivery *d, struct gpu_step *ret,
		 struct err *err)
{
	int r = train_step(&s->train, d, ret, err);

	return r < 0 ? r : session_network_stage(s, err);
}

int session_release(struct session *s, struct delivery *d, struct err *err)
{
	return train_release(&s->train, d, err);
}

int session_lend(struct session *s, struct delivery *d, struct loan **ret)
{
	return intake_lend(s->intake, d, ret);
}

uint32_t session_loans(const struct session *s)
{
	return intake_loans(s->intake);
}

static int end_epoch(struct session *s, int r)
{
	r = train_end(&s->train, r);
	intake_work(s->intake, &s->account->work);
	return r;
}

/* Drop batches that were read or are being read. */
static int cut_short(struct session *s, struct err *err)
{
	intake_interrupt(s->intake);
	end_epoch(s, -ECANCELED);
	return reopen_intake(s, err);
}

/* Add what the loop does not see. */
static void complete_account(struct session *s)
{
	struct checkpoint_stats now = resume_stats(&s->resume);
	struct train_account *a = TAKE_PTR(s->account);
	struct mount_hits hits = { 0 };

	a->checkpoints = now.n - s->checkpoints.n;
	a->checkpoint_bytes = now.bytes - s->checkpoints.bytes;
	a->checkpoint_ns = now.write_ns - s->checkpoints.write_ns;
	a->on_mount = s->hits_known && mount_hits(&s->mount, &hits);
	if (a->on_mount) {
		a->hits = hits.hits - s->hits.hits;
		a->misses = hits.misses - s->hits.misses;
	}
	a->cpu_ns = tick_cpu() - s->cpu_ns;
	account_merge(&s->report.total, a);
	if (s->report.n_epochs > 1)
		account_merge(&s->report.warm, a);
}

int session_end(struct session *s, int r, struct err *err)
{
	uint64_t epoch = s->account->epoch;

	if (r == 0 && s->n_left == 0)
		r = -ENODATA;
	r = train_flush(&s->train, r, err);
	r = r == 0 ? cut_short(s, err) : end_epoch(s, r);
	if (r == 0 && session_more(s) && s->resume.point.epoch == epoch)
		resume_next_epoch(&s->resume);
	/* a server drops the steps of a client that leaves */
	if (r == -ECANCELED && !s->device->ops->shared) {
		int saved = resume_save_rest(&s->resume, err);

		r = saved < 0 ? saved : r;
	}
	if (r == -ECANCELED || !session_more(s)) {
		int end = resume_end(&s->resume, s->tick, err);

		r = end < 0 ? end : r;
	}
	if (r < 0 || !session_more(s)) {
		staging_leave(s->staging);
		turns_leave(&s->turns);
	}
	complete_account(s);
	s->report.interrupted = r == -ECANCELED;
	s->ended = r;
	return r;
}

/* --- afterwards ----------------------------------------------------------- */

const struct report *session_report(struct session *s)
{
	struct report *r = &s->report;

	pthread_mutex_lock(&s->lock);
	json_decref(r->cores_set);
	r->cores_set = json_deep_copy(s->cores_set);
	pthread_mutex_unlock(&s->lock);
	r->options = &s->options;
	r->choice = &s->choice;
	r->gpu = &s->gpu;
	r->model = s->model;
	r->prep = &s->prep;
	r->node = &s->node;
	r->pinned_bytes = pinned_bytes(s);
	r->tick = s->tick;
	r->mount = &s->mount;
	r->resume = &s->resume;
	r->device = s->device;
	r->staging = s->staging;
	r->comm = s->comm;
	r->sync = s->train.sync;
	r->data = &s->data;
	r->bad = &s->bad;
	r->how = &s->how;
	r->offload = s->options.dispatcher ? &s->offload : NULL;
	if (s->intake) {
		json_decref(r->service);
		r->service = intake_service_json(s->intake);
		if (r->service && s->services)
			json_object_set(r->service, "earlier", s->services);
	}
	return r;
}

int session_collect(struct session *s, struct err *err)
{
	struct report *p = &s->report;
	_cleanup_free_ struct train_account **a = NULL;
	json_auto_t *own = NULL;

	if (s->comm->size == 1)
		return 0;
	session_report(s);
	a = calloc(p->n_epochs + 2, sizeof(*a));
	if (!a) /* fails on all ranks */
		return collect(s->comm, NULL, 0, NULL, &p->nodes, err);
	own = report_node_json(p);
	/* an interrupted rank may have fewer epochs */
	a[0] = &p->total;
	a[1] = &p->warm;
	for (size_t i = 0; i < p->n_epochs; i++)
		a[2 + i] = p->epoch[i];
	return collect(s->comm, a, p->n_epochs + 2, own, &p->nodes, err);
}

void session_close(struct session *s)
{
	commands_free(s->commands);
	close_intake(s);
	session_close_offload(s);
	close_staging(s);
	device_close(s->device);
	resume_close(&s->resume);
	session_close_logs(s, NULL);
	tick_free(s->tick);
	mount_fini(&s->mount);
	dataset_close(&s->data);
	format_result_fini(&s->how);
	gpu_profile_free(&s->gpu);
	schedule_close(&s->schedule);
	announcer_fini(&s->announcer);
	free(s->address);
	free(s->holder);
	train_prep_close(&s->prep);
	train_node_close(&s->node);
	for (size_t i = 0; i < s->report.n_epochs; i++)
		free(s->report.epoch[i]);
	free(s->report.epoch);
	json_decref(s->report.nodes);
	json_decref(s->report.simulated);
	json_decref(s->report.cores_set);
	json_decref(s->cores_set);
	json_decref(s->report.service);
	json_decref(s->services);
	sync_fini(&s->sync);
	train_choice_fini(&s->choice);
	conf_free(train_fields, &s->options);
	pthread_mutex_destroy(&s->lock);
}
