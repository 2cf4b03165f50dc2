/* SPDX-License-Identifier: MIT */
/* The part of a session before its start: profiles, dataset, logs. */
#include "loader/train/session_open.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "common/json.h"
#include "common/units.h"
#include "common/util.h"
#include "common/version.h"
#include "emu/gpu/pinned.h"
#include "loader/account/observer.h"
#include "loader/dataset/reading.h"
#include "loader/nodes/agree.h"
#include "loader/options/train_gpu.h"
#include "loader/options/train_job.h"
#include "loader/options/train_model.h"
#include "loader/pipeline/staged.h"
#include "loader/train/session_stages.h"
#include "loader/train/session_state.h"
#include "service/decide/pecan.h"

/*
 * --- --pin auto -----------------------------------------------------------
 *
 * A transformed batch has one size. Raw samples differ: the largest possible
 * batch counts, or a run could fail in the middle.
 */

static uint64_t sum(const uint64_t *v, uint64_t n)
{
	uint64_t bytes = 0;

	for (uint64_t i = 0; i < n; i++)
		bytes += v[i];
	return bytes;
}

/* Largest size of `batch` raw samples; at least `batch` times the mean. */
static int largest_raw(const struct dataset *d, uint64_t batch, uint64_t *ret)
{
	uint64_t n = MIN(batch, d->n);
	_cleanup_free_ uint64_t *size = malloc(d->n * sizeof(*size));

	if (!size)
		return -ENOMEM;
	memcpy(size, d->size, d->n * sizeof(*size));
	qsort(size, d->n, sizeof(*size), util_compare_u64);
	*ret = MAX(sum(size + d->n - n, n), d->bytes / d->n * batch);
	return 0;
}

/* The same if a sample has so many bytes; 0: as many as in the dataset. */
static int session_batch_bytes(const struct session *s, size_t sample_bytes,
			       uint64_t *ret, struct err *err)
{
	uint64_t batch = train_pipeline_batch(&s->options, &s->choice);

	*ret = sample_bytes * batch;
	return sample_bytes || largest_raw(&s->data, batch, ret) == 0
		       ? 0
		       : err_set(err, -ENOMEM, "out of memory");
}

/* Bytes of the largest possible batch of the pipeline. -ENOMEM. */
static int session_largest_batch(const struct session *s, uint64_t *ret,
				 struct err *err)
{
	const struct pipeline_config c = { .prep = s->choice.prep,
					   .prep_config = &s->prep.config };
	size_t bytes;
	int r = pipeline_sample_bytes(&c, &bytes, err);

	return r < 0 ? r : session_batch_bytes(s, bytes, ret, err);
}

int session_can_lend(const struct session *s, bool *ret, struct err *err)
{
	const struct train_options *o = &s->options;
	uint64_t windows = o->pin_direct ? o->superbatch : 1;
	/* what aligns a sample: a row of 64 bytes, or a block at both ends */
	uint64_t slack = train_pipeline_batch(o, &s->choice) *
			 (64 + 2 * (uint64_t)s->direct);
	uint64_t bytes;
	int r = 0;

	*ret = s->choice.engine->next && !s->choice.remote &&
	       !s->choice.prep->cost && !o->coordinate;
	if (!*ret || !o->pin)
		return 0;
	r = session_largest_batch(s, &bytes, err);
	*ret = r == 0 && 2 * windows * (bytes + slack) <= o->pin_budget;
	return r;
}

/*
 * Call after the dataset is open. If the limit is below `pin_budget`, sets it
 * to the limit; if not even one batch fits, clears `pin` and reports why to the
 * user and in the record. Does nothing with any other --pin. -ENOMEM.
 */
static int session_fit_pin(struct session *s, struct err *err)
{
	struct train_options *o = &s->options;
	struct err *why = &s->report.unpinned;
	/* of a service: each GPU's, and one that is received meanwhile */
	uint64_t least = s->choice.remote ? o->gpus + 1 : 1;
	uint32_t batch = (uint32_t)train_pipeline_batch(o, &s->choice);
	uint64_t bytes, room;
	int r;

	if (!o->pin_auto || !engine_has_samples(s->choice.engine) ||
	    o->simulate)
		return 0;
	room = pinned_room(o->pin_budget);
	if (room >= o->pin_budget)
		return 0;
	r = session_largest_batch(s, &bytes, err);
	if (r < 0)
		return r;
	if (s->choice.remote) /* what goes with the samples, or aligns them */
		bytes = MAX(s->choice.remote->remote->buffer_bytes(batch,
								   bytes),
			    bytes + 64 * batch);
	if (s->choice.remote && s->choice.engine->next)
		least *= 2; /* intake.h */
	if (least * bytes <= room) {
		o->pin_budget = room;
		return 0;
	}
	o->pin = false;
	err_set(why, -ENOMEM,
		"batches are not pinned: %s %llu KiB and %llu KiB may be "
		"locked; they are copied to the GPU at the pageable rate "
		"(raise `ulimit -l`, or use a smaller --batch)",
		least == 1 ? "one takes" : "the fewest take",
		(unsigned long long)(least * bytes + KIB - 1) / KIB,
		(unsigned long long)room / KIB);
	if (s->tell)
		s->tell(s->ctx, LOG_LEVEL_WARN, why->text);
	return 0;
}

/* --loader service of a training run: what its workers need. */

/* `last`: this process runs it; NULL: it runs none of the transforms. */
static int add_way(struct session *s, const struct prep_last *last,
		   uint64_t bytes, struct err *err)
{
	const struct train_options *o = &s->options;
	const struct node_profile *node = &s->node.profile;
	bool one_job = s->choice.remote->remote->one_job(
		s->choice.loader_choice.options);
	json_auto_t *job = train_job_json(o, &s->data, one_job, last);
	struct session_way *w = &s->way[s->n_ways++];

	w->job = job ? json_dumps(job, JSON_COMPACT) : NULL;
	if (!w->job)
		return err_set(err, -ENOMEM, "out of memory");
	w->split = last ? FASTFLOW_LAST : FASTFLOW_BATCH;
	w->service = (struct remote_service){
		.address = o->dispatcher,
		.key = o->service_key,
		.job = w->job,
		.rank = o->rank,
		.n_samples = s->data.n,
		.most_bytes = bytes,
	};
	if (o->node) {
		w->service.nic_bytes_per_s = node->nic.gb_per_s * 1e9;
		w->service.nic_latency_ns = node->nic.latency_ns;
	}
	return 0;
}

/* Would Pecan send samples without their last step? */
static bool pecan_parts(const struct session *s, size_t before)
{
	const double raw = (double)s->data.bytes / (double)MAX(s->data.n, 1);
	const struct pecan_transform last = {
		.size = (double)s->prep.sample_bytes /
			MAX(before ? (double)before : raw, 1),
		.commutes = true,
	};
	struct pecan_plan plan;

	return pecan_plan(&last, 1, &plan) == 0 && plan.n_remote == 0;
}

/* The one way without the last step, or both. */
static int add_ways(struct session *s, uint64_t bytes, struct err *err)
{
	const struct prep_last *last = s->choice.prep->last;
	enum last_step where = s->choice.last_step;
	size_t before;
	int r = 0;

	last->bytes(&s->prep.config, &before);
	if (where == LAST_PECAN)
		where = pecan_parts(s, before) ? LAST_HERE : LAST_THERE;
	if (where != LAST_HERE)
		r = add_way(s, NULL, bytes, err);
	if (r < 0 || where == LAST_THERE)
		return r;
	r = session_batch_bytes(s, before, &bytes, err);
	return r < 0 ? r : add_way(s, last, bytes, err);
}

/* In session_open, when the dataset is known: the ways in which they may make
 * batches. -ENOMEM. */
static int session_open_service(struct session *s, struct err *err)
{
	uint64_t bytes;
	int r = session_largest_batch(s, &bytes, err);

	if (r < 0)
		return r;
	return s->choice.last_step == LAST_THERE ? add_way(s, NULL, bytes, err)
						 : add_ways(s, bytes, err);
}

/* The training loop's observer that tracks progress (resume.h) and saves it: a
 * checkpoint is written while the GPUs stand still. */

/* Its ctx is the struct session. */
extern const struct observer observe_resume;

static void taken(void *ctx, const struct delivery *d)
{
	struct session *s = ctx;

	resume_take(&s->resume, d, s->account);
}

/* After the step is computed; no other begins before it is saved. */
static int save(struct session *s, struct device *d, struct err *err)
{
	int r = device_drain(d, err);
	uint64_t from = d->idle_ns;

	if (r < 0)
		return r;
	tick_wait(s->tick, from);
	r = resume_save(&s->resume, err);
	device_hold(d, tick_now(s->tick));
	hist_add(&s->resume.stalls, d->idle_ns - from);
	observers_held(&s->train.observers, "checkpoint", from,
		       d->idle_ns - from);
	return r;
}

static int after(void *ctx, struct device *d, struct err *err)
{
	struct session *s = ctx;

	return resume_step(&s->resume) ? save(s, d, err) : 0;
}

const struct observer observe_resume = {
	.taken = taken,
	.after = after,
};

/* The timeline and the log of steps of a session, if requested. */

/* Close with session_close_logs, failed or not. */
static int session_open_logs(struct session *s, struct err *err)
{
	const struct train_options *o = &s->options;
	int r = 0;

	if (o->trace)
		r = trace_open(o->trace, &s->timeline.trace, err);
	if (r == 0 && o->steps)
		r = step_log_open(o->steps, &s->step_log, err);
	trace_name_gpus(s->timeline.trace, (uint32_t)o->gpus);
	return r;
}

int session_close_logs(struct session *s, struct err *err)
{
	int r = step_log_close(s->step_log, s->options.steps, err);

	s->step_log = NULL;
	if (r == 0)
		r = trace_close(s->timeline.trace, err);
	else
		trace_close(s->timeline.trace, NULL);
	s->timeline.trace = NULL;
	return r;
}

void session_tell(struct session *s, enum log_level level, const char *fmt, ...)
{
	struct err text;
	va_list ap;

	if (!s->tell)
		return;
	va_start(ap, fmt);
	vsnprintf(text.text, sizeof(text.text), fmt, ap);
	va_end(ap);
	s->tell(s->ctx, level, text.text);
}

uint64_t session_steps(const struct session *s, uint64_t samples)
{
	uint64_t batch = train_step_samples(&s->options);

	return s->options.drop_last ? samples / batch
				    : (samples + batch - 1) / batch;
}

uint64_t session_epoch_batches(const struct session *s)
{
	uint64_t batch = train_pipeline_batch(&s->options, &s->choice);
	uint64_t n = session_steps(s, s->schedule.n) *
		     train_step_samples(&s->options);

	return (MIN(n, s->schedule.n) + batch - 1) / batch;
}

static int find_device(struct session *s, struct err *err)
{
	struct device *d;
	int r = train_gpu_open(&s->options, &d, err);

	if (r < 0)
		return r;
	pthread_mutex_lock(&s->lock);
	s->device = d;
	/* the interrupt may have come before the device existed */
	if (atomic_load(&s->stop))
		device_interrupt(d);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

static int load_gpu(struct session *s, struct err *err)
{
	const struct train_options *o = &s->options;
	int r = find_device(s, err);

	if (r == 0)
		r = train_gpu_load(o, &s->gpu, err);
	if (r < 0)
		return r;
	s->model = train_model_find(o, &s->gpu, err);
	if (!s->model)
		return -ENOENT;
	return resume_check(o, &s->gpu, s->model, err);
}

/* Several ranks: rank 0 chooses the checkpoint of all, the others follow. */
static int find_point(struct session *s, uint64_t steps, struct err *err)
{
	uint32_t rank = s->comm->rank;
	int r = 0;

	if (rank == 0)
		r = resume_open(&s->resume, &s->options, &s->schedule, steps,
				err);
	if (r == 0)
		r = comm_exchange(s->comm, NULL, NULL, 0, err);
	return r == 0 && rank ? resume_open(&s->resume, &s->options,
					    &s->schedule, steps, err)
			      : r;
}

/* Plan the run, given the number of samples. */
static int plan(struct session *s, uint64_t n, struct err *err)
{
	const struct train_options *o = &s->options;
	const struct dataset *d = &s->data;
	struct schedule_config c = train_data_schedule(o, &s->choice, d);
	uint64_t steps;
	int r;

	if (n && n < o->world_size && o->rank == 0)
		session_tell(s, LOG_LEVEL_WARN,
			     "%" PRIu64 " nodes share %" PRIu64 " samples: %s",
			     o->world_size, n,
			     o->drop_last ? "no node gets one"
					  : "each epoch repeats some of them");
	c.in.n = n;
	c.in.holder = s->holder;
	c.data = d->path ? d : NULL;
	c.whole = o->simulate;
	c.replay = o->replay_order;
	c.dump = o->dump_order;
	r = schedule_open(&c, &s->schedule, err);
	if (r < 0)
		return r;
	steps = session_steps(s, s->schedule.n);
	if (steps == 0)
		return err_set(
			err, -EINVAL,
			"%" PRIu64 " samples do not fill a batch of %" PRIu64
			": use a smaller --batch, or leave out --drop-last",
			s->schedule.n, train_step_samples(o));
	s->n_steps = steps * o->epochs;
	if (o->max_steps)
		s->n_steps = MIN(s->n_steps, o->max_steps);
	r = find_point(s, steps, err);
	if (s->resume.notice.text[0])
		session_tell(s, LOG_LEVEL_WARN, "%s", s->resume.notice.text);
	return r;
}

/* What its user should know of the dataset: once, not from each rank. */
static void tell_notes(struct session *s)
{
	for (size_t i = 0; !s->options.rank && i < s->data.notes.n; i++) {
		_cleanup_free_ char *text = note_text(&s->data.notes.note[i]);

		if (text)
			session_tell(s, LOG_LEVEL_WARN, "%s: %s",
				     s->options.data, text);
	}
}

static int load_data(struct session *s, struct err *err)
{
	const struct train_options *o = &s->options;
	int r;

	if (!engine_has_samples(s->choice.engine))
		return plan(s, o->samples, err);
	if (o->simulate) {
		tell_notes(s);
		return plan(s, s->data.n, err);
	}
	r = train_data_open(o, &s->choice, &s->data, &s->how, err);
	if (s->how.not_kept.text[0])
		session_tell(s, LOG_LEVEL_INFO, "the index is not kept: %s",
			     s->how.not_kept.text);
	if (r == 0)
		tell_notes(s);
	s->prep.config.token_bytes = s->data.token_bytes;
	mount_find(o->data, &s->mount);
	if (r == 0 && s->choice.order->by_group && !s->data.group &&
	    !s->data.n_containers)
		r = mount_groups(&s->mount, o->data, &s->data, err);
	if (r == 0 && s->choice.order->by_holder)
		r = mount_owners(&s->mount, &s->data, o->rank, o->world_size,
				 &s->holder, err);
	return r < 0 ? r : plan(s, s->data.n, err);
}

/* Set how the dataset is read, as far as its file system permits it. */
static int set_reading(struct session *s, struct err *err)
{
	struct train_options *o = &s->options;
	int r = 0;

	if (!s->choice.engine->next || o->simulate)
		return 0;
	if (s->data.bucket && (o->direct || o->analyze))
		return err_set(err, -EINVAL,
			       "%s: a bucket has no page cache, so there is "
			       "neither --direct nor --analyze",
			       o->data);
	if (o->direct)
		r = direct_begin(&s->data, &s->direct, err);
	if (r == -EOPNOTSUPP) {
		session_tell(s, LOG_LEVEL_WARN,
			     "--direct on: %s; the page cache is used",
			     err->text);
		o->direct = false;
		r = 0;
	}
	if (r == 0 && o->sort_extents && !s->data.bucket)
		r = extents_find(&s->data, &s->address, err);
	if (r == -EOPNOTSUPP) {
		session_tell(s, LOG_LEVEL_DEBUG, "--sort-extents: %s",
			     err->text);
		o->sort_extents = false;
		r = 0;
	}
	return r;
}

static void queued(void *ctx, uint64_t ahead)
{
	struct session *s = ctx;

	session_tell(
		s, LOG_LEVEL_WARN,
		"%s: no free memory on the GPU now; waiting behind %" PRIu64
		" more",
		s->options.gpu_server, ahead);
}

/* Set up the training loop and its observers. */
static void set_train(struct session *s)
{
	const struct train_options *o = &s->options;
	struct train *t = &s->train;

	s->job = (struct device_job){
		.gpu = &s->gpu,
		.model = s->model,
		.gpus = &s->node.gpus,
		.prep_gpu = s->node.prep_gpu,
		.batch = (uint32_t)o->batch,
		.accumulate = (uint32_t)o->accumulate,
		.pinned = o->pin,
		.inference = o->inference,
		.load = o->model_transfer,
		.jitter = s->node.jitter,
		.step = s->node.step_given ? &s->node.step : NULL,
		.seed = o->common.seed,
		.node = o->rank,
		.iterations =
			s->n_steps - MIN(s->resume.point.step, s->n_steps),
		.waiting_bytes = gpu_waiting_bytes(&s->node.beside, o->batch),
		.bucket_bytes = s->node.beside.bucket_bytes,
		.extrapolate = o->extrapolate,
		.queued = queued,
		.ctx = s,
	};
	*t = (struct train){
		.sync = t->sync,
		.device = s->device,
		.gpus = &s->node.gpus,
		.batch = (uint32_t)o->batch,
		.pinned = o->pin,
		.pad = { .multiple = o->pad_multiple,
			 .length = o->sequence_length,
			 .token_bytes = s->data.token_bytes },
	};
	observers_add(&t->observers, &observe_account, &s->observed);
	if (s->timeline.trace)
		observers_add(&t->observers, &observe_timeline, &s->timeline);
	if (s->step_log)
		observers_add(&t->observers, &observe_steps, s->step_log);
	observers_add(&t->observers, &observe_resume, s);
}

/* What the ranks have to have in common, or their steps are not those of one
 * run. */
static json_t *common(const struct session *s)
{
	const struct train_options *o = &s->options;
	json_t *j = resume_identity(o, &s->schedule);

	if (!j)
		return NULL;
	json_object_del(j, "--rank");
	if (json_object_update_new(
		    j,
		    json_pack("{s:s, s:I, s:I, s:f, s:b, s:I, s:I, s:I, "
			      "s:I, s:I}",
			      "version of gpemu", GPEMU_VERSION, "--epochs",
			      (json_int_t)o->epochs, "--max-steps",
			      (json_int_t)o->max_steps, "--time-scale",
			      o->time_scale, "--inference", o->inference,
			      "--checkpoint-every",
			      (json_int_t)o->checkpoint_every, "--fsdp-units",
			      (json_int_t)o->fsdp_units, "--fsdp-prefetch",
			      (json_int_t)o->fsdp_prefetch,
			      "number of GPUs that reduce gradients",
			      (json_int_t)s->node.gpus.reduce.ranks,
			      "step to resume from",
			      (json_int_t)s->resume.point.step)) < 0) {
		json_decref(j);
		return NULL;
	}
	return j;
}

/* The gradients pass the card of this node's mount, beside its caches. */
static int share_card(struct session *s, struct err *err)
{
	struct sync *sync = &s->sync;
	struct err why = { 0 };

	if (s->options.node &&
	    card_find(&s->mount, s->options.time_scale,
		      s->node.profile.nic.gb_per_s, &sync->card, &why) < 0)
		session_tell(s, LOG_LEVEL_WARN,
			     "the gradients do not share the network card of "
			     "the mount: %s",
			     why.text);
	return agree_any(s->comm, sync->card.mount, &sync->cards, err);
}

static int agree(struct session *s, struct err *err)
{
	const struct train_options *o = &s->options;
	struct collective *reduce = &s->node.gpus.reduce;
	json_auto_t *same = common(s);
	int r;

	if (s->comm->size == 1)
		return 0;
	r = agree_same(s->comm, same, err);
	if (r == 0)
		r = agree_link(s->comm, reduce, err);
	if (r < 0 || o->inference)
		return r;
	if (!o->node)
		session_tell(s, LOG_LEVEL_WARN,
			     "without --node there is no network between the "
			     "nodes: their all-reduce takes no time");
	r = sync_init(&s->sync, s->comm, reduce);
	s->train.sync = &s->sync;
	return r < 0 ? err_set(err, r, "out of memory") : share_card(s, err);
}

/* --- other jobs ----------------------------------------------------------- */

/* What jobs that share their batches have to have in common. */
static json_t *same_batches(const struct session *s)
{
	const struct train_options *o = &s->options;
	const struct coordinate *c = &s->choice.coordinate;
	_cleanup_free_ char *prep = plugin_choice_text(
		&s->choice.prep->plugin, s->choice.prep_choice.options);
	json_t *j = resume_samples(o, &s->schedule);

	if (!j || !prep ||
	    json_object_update_new(
		    j,
		    json_pack("{s:s, s:s, s:s, s:I, s:s?, s:f, s:I, s:I, s:I}",
			      "version of gpemu", GPEMU_VERSION, "--prep", prep,
			      "--prep-output", o->prep_output, "--image-size",
			      (json_int_t)o->image_size, "--prep-profile",
			      o->prep_profile, "--time-scale", o->time_scale,
			      "number of samples in a batch",
			      (json_int_t)train_pipeline_batch(o, &s->choice),
			      "jobs= of --coordinate", (json_int_t)c->jobs,
			      "size= of --coordinate", (json_int_t)c->size)) <
		    0) {
		json_decref(j);
		return NULL;
	}
	return j;
}

/* Two batches for each job, or one for each of its workers that own them and
 * one more, and two that are being used. */
static uint64_t usual_size(const struct session *s, uint64_t batch_bytes)
{
	uint64_t jobs = s->choice.coordinate.jobs;
	uint64_t each = s->choice.engine->whole_batches ? s->options.workers
							: 1;
	uint64_t least = (jobs + 2) * batch_bytes;

	/* arbitrary: many workers are no reason to take all of the memory */
	return MAX(MIN((jobs * (each + 1) + 2) * batch_bytes, GIB), least);
}

static int join_area(struct session *s, struct err *err)
{
	const struct coordinate *c = &s->choice.coordinate;
	uint64_t batch = train_pipeline_batch(&s->options, &s->choice);
	json_auto_t *same = same_batches(s);
	struct staging_config g = { .name = c->name,
				    .jobs = (uint32_t)c->jobs,
				    .wait_ns = c->wait_ns,
				    .same = same,
				    .tick = s->tick };
	struct staging *staging;
	int r = session_largest_batch(s, &g.largest, err);

	if (r == 0 && !same)
		r = err_set(err, -ENOMEM, "out of memory");
	if (r < 0)
		return r;
	g.largest = (staged_bytes(batch, g.largest) + PLAN_ALIGN - 1) &
		    ~(uint64_t)(PLAN_ALIGN - 1);
	g.bytes = c->size ? c->size : usual_size(s, g.largest);
	r = staging_join(&g, &staging, err);
	if (r < 0)
		return r;
	pthread_mutex_lock(&s->lock);
	s->staging = staging;
	if (atomic_load(&s->stop))
		staging_stop(staging);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

int session_join_jobs(struct session *s, struct err *err)
{
	const struct coordinate *c = &s->choice.coordinate;
	int r = join_area(s, err);

	if (r == 0) {
		session_tell(s, LOG_LEVEL_INFO,
			     "waiting for all %" PRIu64 " jobs of %s", c->jobs,
			     c->name);
		r = staging_begin(s->staging, err);
	}
	s->config.staging = s->staging;
	s->config.per_epoch = session_epoch_batches(s);
	if (r == -ECANCELED)
		return err_set(err, r,
			       "interrupted while waiting for the other jobs "
			       "of %s",
			       c->name);
	if (r < 0) {
		err_set(err, r, "%s: %s", c->name, strerror(-r));
		err_prefix(err, "--coordinate");
	}
	return r;
}

int session_open(struct session *s, struct err *err)
{
	const struct train_options *o = &s->options;
	int r;

	if (!s->comm) {
		comm_alone(&s->alone);
		s->comm = &s->alone;
	}
	r = load_gpu(s, err);
	if (r == 0)
		r = train_prep_open(o, &s->choice, &s->prep, err);
	if (r == 0)
		r = train_node_open(o, &s->choice, &s->gpu, s->model, &s->prep,
				    &s->node, err);
	/* check the memory before files are listed, then again with their
	 * sizes */
	if (r == 0)
		r = train_node_fit(o, &s->choice, &s->gpu, s->model, &s->prep,
				   &s->data, &s->node, err);
	if (r == 0)
		r = load_data(s, err);
	if (r == 0)
		r = train_node_fit(o, &s->choice, &s->gpu, s->model, &s->prep,
				   &s->data, &s->node, err);
	if (r == 0)
		r = set_reading(s, err);
	if (r == 0)
		r = session_fit_pin(s, err);
	if (r == 0 && s->choice.remote)
		r = session_open_service(s, err);
	if (r == 0)
		r = session_open_logs(s, err);
	if (r == 0)
		r = session_open_stages(s, err);
	if (r == 0)
		r = agree(s, err);
	if (r < 0)
		return r;
	s->report.epoch = calloc(o->epochs, sizeof(struct train_account *));
	if (!s->report.epoch)
		return err_set(err, -ENOMEM, "out of memory");
	set_train(s);
	return 0;
}
