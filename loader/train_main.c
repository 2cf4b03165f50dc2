/* SPDX-License-Identifier: MIT */
/* gpemu-train: options, set-up, the loop over epochs, the record. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/progress.h"
#include "common/util.h"
#include "emu/profile.h"
#include "loader/dataset.h"
#include "loader/direct.h"
#include "loader/extents.h"
#include "loader/interrupt.h"
#include "loader/mount.h"
#include "loader/report.h"
#include "loader/resume.h"
#include "loader/schedule.h"
#include "loader/step_log.h"
#include "loader/train.h"
#include "loader/train_data.h"
#include "loader/train_options.h"
#include "loader/train_prep.h"

struct run {
	struct train_options options;
	struct train_choice choice;
	struct train_prep prep;
	struct gpu_profile gpu;
	const struct gpu_model *model;
	struct dataset data;
	struct format_result how;
	struct mount mount;
	struct tick *tick;
	struct pipeline *_Atomic pipeline;
	atomic_bool stop; /* interrupted */
	struct train train;
	struct trace *trace; /* NULL: not asked for */
	FILE *step_log;	     /* NULL: not asked for */
	struct interrupt interrupt;
	struct progress progress;
	struct schedule schedule;
	struct resume resume;
	uint32_t direct;   /* as struct engine_config */
	uint64_t *address; /* as struct flow_config */
	uint64_t n_steps;  /* of the whole run */
	bool failure_named;
	struct report report;
};

static const char *why(int error)
{
	switch (error) {
	case -ESTALE: return "its size changed since the dataset was listed";
	case -EBADMSG: return "broken: not a whole image";
	default: return strerror(-error);
	}
}

static uint64_t steps_of(const struct run *run, uint64_t samples)
{
	uint64_t batch = run->options.batch;

	return run->options.drop_last ? samples / batch
				      : (samples + batch - 1) / batch;
}

/* Samples of the epoch that are left, given the steps that are left. */
static uint64_t epoch_samples(const struct run *run)
{
	const struct checkpoint_point *p = &run->resume.point;
	uint64_t batch = run->options.batch, n = run->schedule.n;
	uint64_t steps = steps_of(run, n) - p->epoch_step;

	return MIN(n - p->epoch_step * batch,
		   MIN(steps, run->n_steps - p->step) * batch);
}

static void taken(void *ctx, const struct delivery *d)
{
	struct run *run = ctx;

	resume_take(&run->resume, d);
}

static bool stepped(void *ctx)
{
	struct run *run = ctx;
	struct worker_failures f = pipeline_failures(run->pipeline);
	bool save = resume_step(&run->resume);
	char name[512];

	progress_update(&run->progress, run->resume.point.step, NULL);
	if (f.n == 0 || run->failure_named)
		return save;
	run->failure_named = true;
	progress_end(&run->progress);
	log_warn("%s: %s; it counts as zeros",
		 dataset_name(&run->data, f.sample, name, sizeof(name)),
		 why(f.error));
	return save;
}

static int save(void *ctx, struct err *err)
{
	struct run *run = ctx;

	return resume_save(&run->resume, err);
}

static void interrupted(void *ctx)
{
	struct run *run = ctx;
	struct pipeline *p;

	atomic_store(&run->stop, true);
	p = run->pipeline;
	if (p)
		pipeline_interrupt(p);
}

static int load_gpu(struct run *run, struct err *err)
{
	const struct train_options *o = &run->options;
	int r = gpu_profile_load(o->gpu, &run->gpu, err);

	if (r < 0)
		return r;
	run->model = gpu_profile_model(&run->gpu, o->model, err);
	if (!run->model)
		return -ENOENT;
	return gpu_check_batch(&run->gpu, run->model, o->batch, o->extrapolate,
			       err);
}

/* Once the samples are known. */
static int plan(struct run *run, uint64_t n, struct err *err)
{
	const struct train_options *o = &run->options;
	const struct dataset *d = &run->data;
	struct schedule_config c = {
		.order = run->choice.order,
		.in = { .seed = o->common.seed,
			.n = n,
			.group = d->group,
			.n_groups = d->n_groups,
			.size = d->size,
			.batch = (uint32_t)o->batch,
			.window = (uint32_t)o->order_window,
			.page_bytes = o->order_page },
		.data = d->n ? d : NULL,
		.rank = o->rank,
		.world = o->world_size,
		.drop_last = o->drop_last,
		.replay = o->replay_order,
		.dump = o->dump_order,
	};
	uint64_t steps;
	int r = schedule_open(&c, &run->schedule, err);

	if (r < 0)
		return r;
	steps = steps_of(run, run->schedule.n);
	if (steps == 0)
		return err_set(err, -EINVAL,
			       "%" PRIu64 " samples do not fill a batch of "
			       "%" PRIu64 ", and --drop-last leaves it out",
			       run->schedule.n, o->batch);
	run->n_steps = steps * o->epochs;
	if (o->max_steps)
		run->n_steps = MIN(run->n_steps, o->max_steps);
	r = resume_open(&run->resume, o, &run->schedule, steps, err);
	if (run->resume.notice.text[0])
		log_warn("%s", run->resume.notice.text);
	return r;
}

static int load_data(struct run *run, struct err *err)
{
	const struct train_options *o = &run->options;
	int r;

	if (!run->choice.engine->next)
		return plan(run, o->samples, err);
	r = train_data_open(o, &run->choice, &run->data, &run->how, err);
	if (run->how.not_kept.text[0])
		log_info("no index is kept: %s", run->how.not_kept.text);
	mount_find(o->data, &run->mount);
	if (r == 0 && run->choice.order->by_group && !run->data.group)
		r = mount_groups(&run->mount, o->data, &run->data, err);
	return r < 0 ? r : plan(run, run->data.n, err);
}

/* Without files nobody looks at the order, unless it is to be written. */
static int make_order(struct run *run, uint64_t epoch, struct err *err)
{
	if (!run->choice.engine->next && !run->options.dump_order)
		return 0;
	return schedule_fill(&run->schedule, epoch, err);
}

static int analyze_first(struct run *run, const struct pipeline_config *c,
			 struct err *err)
{
	const struct train_options *o = &run->options;
	uint64_t n = MIN(run->schedule.n, o->analyze_steps * o->batch);
	int r;

	if (!run->choice.engine->next)
		return err_set(err, -EINVAL,
			       "--analyze needs a dataset, and an engine that "
			       "reads it");
	r = make_order(run, 0, err);
	if (r < 0)
		return r;
	return analyze(c, &run->mount, run->schedule.order, n,
		       run->report.ceiling.samples_per_s, &run->stop,
		       &run->report.analysis, err);
}

/* How the dataset is read, as far as its file system allows it. */
static int set_reading(struct run *run, struct err *err)
{
	struct train_options *o = &run->options;
	int r = 0;

	if (!run->choice.engine->next)
		return 0;
	if (o->direct)
		r = direct_begin(&run->data, &run->direct, err);
	if (r == -EOPNOTSUPP) {
		log_warn("--direct on: %s; it is used", err->text);
		o->direct = false;
		r = 0;
	}
	if (r == 0 && o->sort_extents)
		r = extents_find(&run->data, &run->address, err);
	if (r == -EOPNOTSUPP) {
		log_debug("--sort-extents: %s", err->text);
		o->sort_extents = false;
		r = 0;
	}
	return r;
}

static int start(struct run *run, struct err *err)
{
	const struct train_options *o = &run->options;
	struct pipeline_config c = {
		.data = &run->data,
		.engine = run->choice.engine,
		.prep = run->choice.prep,
		.pin = o->pin ? &run->gpu.pin_copy : NULL,
		.trace = run->trace,
		.pin_budget = o->pin_budget,
		.seed = o->common.seed,
		.workers = (uint32_t)o->workers,
		.queue_depth = (uint32_t)o->queue_depth,
		.batch = (uint32_t)o->batch,
		.superbatch = (uint32_t)o->superbatch,
		.prefetch = (uint32_t)o->prefetch,
		.direct = run->direct,
		.address = run->address,
		.prep_config = &run->prep.config,
		.cores = run->prep.cores,
	};
	int r;

	run->train = (struct train){
		.trace = run->trace,
		.step_log = run->step_log,
		.gpu = &run->gpu,
		.model = run->model,
		.transfer = run->choice.transfer,
		.pinned = o->pin,
		.taken = taken,
		.stepped = stepped,
		.save = save,
		.ctx = run,
	};
	r = train_ceiling(&run->train, c.batch, o->time_scale,
			  &run->report.ceiling, err);
	if (r < 0)
		return r;
	interrupt_block();
	run->tick = tick_new(o->time_scale, TICK_DEFAULT_SPIN_NS);
	if (!run->tick)
		return err_set(err, -ENOMEM, "out of memory");
	c.tick = run->train.tick = run->tick;
	run->interrupt = (struct interrupt){ .fn = interrupted, .ctx = run };
	r = interrupt_begin(&run->interrupt);
	if (r == 0 && o->analyze)
		r = analyze_first(run, &c, err);
	if (r == 0)
		r = resume_start(&run->resume, run->tick, &run->gpu, run->model,
				 err);
	if (r == 0)
		r = pipeline_new(&c, &run->train.pipeline, err);
	if (r < 0)
		return r;
	run->pipeline = run->train.pipeline;
	/* or was it before there was a pipeline? */
	if (atomic_load(&run->stop))
		pipeline_interrupt(run->pipeline);
	return 0;
}

static int open_logs(struct run *run, struct err *err)
{
	const struct train_options *o = &run->options;
	int r = 0;

	if (o->trace)
		r = trace_open(o->trace, &run->trace, err);
	if (r == 0 && o->steps)
		r = step_log_open(o->steps, &run->step_log, err);
	return r;
}

/* Once nobody writes to them any more. */
static int close_logs(struct run *run, struct err *err)
{
	int r = step_log_close(run->step_log, run->options.steps, err);

	run->step_log = NULL;
	if (r == 0)
		r = trace_close(run->trace, err);
	else
		trace_close(run->trace, NULL);
	run->trace = NULL;
	return r;
}

/* Those since `before`. */
static void count_checkpoints(const struct run *run,
			      const struct checkpoint_stats *before,
			      struct account *a)
{
	struct checkpoint_stats now = resume_stats(&run->resume);

	a->checkpoints = now.n - before->n;
	a->checkpoint_bytes = now.bytes - before->bytes;
	a->checkpoint_ns = now.write_ns - before->write_ns;
}

static int train_one(struct run *run, uint64_t epoch, struct account *a,
		     struct err *err)
{
	struct mount_hits from = { 0 }, to = { 0 };
	struct checkpoint_stats done = resume_stats(&run->resume);
	uint64_t cpu = tick_cpu(), n = epoch_samples(run);
	int r = mount_mark_epoch(&run->mount, err);
	bool counted;

	if (r < 0)
		return r;
	r = make_order(run, epoch, err);
	if (r < 0)
		return r;
	visited_filter(&run->resume.visited, run->schedule.order,
		       run->schedule.n);
	counted = mount_hits(&run->mount, &from);
	r = train_epoch(&run->train, epoch, run->schedule.order, n, a, err);
	a->on_mount = counted && mount_hits(&run->mount, &to);
	if (a->on_mount) {
		a->hits = to.hits - from.hits;
		a->misses = to.misses - from.misses;
	}
	a->cpu_ns = tick_cpu() - cpu;
	if (r == -ECANCELED || run->resume.point.step == run->n_steps) {
		int end = resume_end(&run->resume, run->tick, err);

		r = end < 0 ? end : r;
	}
	count_checkpoints(run, &done, a);
	return r;
}

static int train_all(struct run *run, struct err *err)
{
	struct report *report = &run->report;
	int r = 0;

	/* now that all threads that would inherit it have been started */
	tick_urgent(run->tick);
	progress_init(&run->progress, "training", run->n_steps,
		      run->choice.progress);
	report->epoch = calloc(run->options.epochs, sizeof(struct account *));
	if (!report->epoch)
		return err_set(err, -ENOMEM, "out of memory");
	if (run->resume.point.step >= run->n_steps)
		log_warn("nothing is left to do after %" PRIu64 " steps",
			 run->resume.point.step);
	while (r == 0 && run->resume.point.step < run->n_steps) {
		struct account *a = calloc(1, sizeof(*a));

		if (!a)
			return err_set(err, -ENOMEM, "out of memory");
		report->epoch[report->n_epochs++] = a;
		r = train_one(run, run->resume.point.epoch, a, err);
		account_merge(&report->total, a);
		if (report->n_epochs > 1)
			account_merge(&report->warm, a);
	}
	progress_end(&run->progress);
	if (r == -ECANCELED) {
		report->interrupted = true;
		r = 0;
	}
	return r;
}

/* Record and summary; returns the exit status. */
static int tell(struct run *run, struct err *err)
{
	const char *json = run->options.common.json;
	struct worker_failures f = pipeline_failures(run->pipeline);
	bool failed = f.n || run->report.interrupted;
	char name[512];

	report_summary(&run->report,
		       json && !strcmp(json, "-") ? stderr : stdout);
	if (json) {
		json_auto_t *j = report_json(&run->report);
		int r = j ? json_write(j, json, err) : -ENOMEM;

		if (r < 0)
			return cli_fail(r, err);
	}
	if (f.n)
		log_error("%" PRIu64 " samples of %" PRIu64
			  " could not be used, first %s: %s",
			  f.n, run->report.total.samples + f.n,
			  dataset_name(&run->data, f.sample, name,
				       sizeof(name)),
			  why(f.error));
	if (run->report.interrupted)
		log_error("interrupted after %" PRIu64 " of %" PRIu64 " steps",
			  run->resume.point.step, run->n_steps);
	return failed ? EXIT_STATUS_FAILED : EXIT_STATUS_DONE;
}

static int train(struct run *run)
{
	struct err err = { 0 };
	int r = train_options_resolve(&run->options, &run->choice, &err);

	if (r < 0) {
		log_error("%s", err.text);
		return EXIT_STATUS_USAGE;
	}
	r = load_gpu(run, &err);
	if (r == 0)
		r = train_prep_open(&run->options, &run->choice, &run->prep,
				    &err);
	if (r == 0)
		r = load_data(run, &err);
	if (r == 0)
		r = set_reading(run, &err);
	if (r == 0)
		r = open_logs(run, &err);
	if (r == 0)
		r = start(run, &err);
	if (r == 0)
		r = train_all(run, &err);
	if (r == 0)
		r = close_logs(run, &err);
	if (r < 0)
		return cli_fail(r, &err);
	run->report.options = &run->options;
	run->report.gpu = &run->gpu;
	run->report.model = run->model;
	run->report.prep = &run->prep;
	run->report.pinned_bytes = pipeline_pinned(run->pipeline);
	run->report.tick = run->tick;
	run->report.mount = &run->mount;
	run->report.resume = &run->resume;
	run->report.data = &run->data;
	run->report.how = &run->how;
	return tell(run, &err);
}

static void fini(struct run *run)
{
	interrupt_end(&run->interrupt);
	pipeline_free(run->pipeline);
	resume_close(&run->resume);
	close_logs(run, NULL);
	tick_free(run->tick);
	mount_fini(&run->mount);
	dataset_close(&run->data);
	format_result_fini(&run->how);
	gpu_profile_free(&run->gpu);
	schedule_close(&run->schedule);
	free(run->address);
	train_prep_close(&run->prep);
	for (size_t i = 0; i < run->report.n_epochs; i++)
		free(run->report.epoch[i]);
	free(run->report.epoch);
	conf_free(train_fields, &run->options);
}

int main(int argc, char **argv)
{
	static const struct cli_kind kinds[] = {
		{ "engine", engine_table, NULL },
		{ "order", order_table, NULL },
		{ "format", format_table, NULL },
		{ "prep", prep_table, NULL },
		{ "gpu", .print = profile_names_print, .which = PROFILE_GPU },
		{ "prep_profile", .print = profile_names_print,
		  .which = PROFILE_PREP },
		{ 0 },
	};
	static const struct cli_program program = {
		.name = "gpemu-train",
		.summary = "Load, preprocess and feed a dataset to an emulated "
			   "GPU, and tell where the time went.",
		.notes = "Without --data, --loader null measures the rig "
			 "itself.",
		.fields = train_fields,
		.kinds = kinds,
	};
	struct run run = { .data.dirfd = -1,
			   .resume.dirfd = -1,
			   .report = { .argc = argc, .argv = argv } };
	int status;

	train_options_init(&run.options);
	cli_parse(&program, argc, argv, &run.options, NULL);
	status = train(&run);
	fini(&run);
	return status;
}
