/* SPDX-License-Identifier: MIT */
/*
 * gpemu-train: options, progress, messages; the run itself is session.h.
 *
 * Rooms, in the order in which a sample passes through them
 * (docs/architecture.md):
 *
 *	loader/dataset	the samples; loader/format: the files that hold them
 *	loader/order	the order of the samples
 *	loader/pipeline	workers, batches, the pin stage
 *	loader/engine	reads
 *	loader/prep	transforms
 *	emu/gpu		copy, compute, all-reduce, optimiser
 *	loader/train	the steps and their dependencies
 *	loader/account	where the time went; loader/checkpoint: saved state
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/program/progress.h"
#include "emu/profile/profile.h"
#include "common/program/interrupt.h"
#include "loader/train/session.h"

struct run {
	struct session session;
	struct interrupt interrupt;
	struct progress progress;
	bool failure_named;
};

static const char *why(int error)
{
	switch (error) {
	case -ESTALE: return "its size changed since the dataset was listed";
	case -EBADMSG: return "a broken or incomplete image";
	default: return strerror(-error);
	}
}

static void tell_note(void *ctx, enum log_level level, const char *text)
{
	(void)ctx;
	log_line(level, "%s", text);
}

static void tell_step(struct run *run)
{
	struct session *s = &run->session;
	struct worker_failures f = session_failures(s);
	char name[512];

	progress_update(&run->progress, s->resume.point.step, NULL);
	if (f.n == 0 || run->failure_named)
		return;
	run->failure_named = true;
	progress_end(&run->progress);
	log_warn("%s: %s; zeros take its place",
		 dataset_name(&s->data, f.sample, name, sizeof(name)),
		 why(f.error));
}

static void interrupted(void *ctx)
{
	session_interrupt(ctx);
}

static int start(struct run *run, struct err *err)
{
	struct session *s = &run->session;
	int r = session_ceiling(s, err);

	if (r < 0)
		return r;
	interrupt_block();
	run->interrupt = (struct interrupt){ .fn = interrupted, .ctx = s };
	r = interrupt_begin(&run->interrupt);
	return r < 0 ? r : session_start(s, err);
}

static int train_one(struct run *run, struct err *err)
{
	struct session *s = &run->session;
	struct delivery d;
	struct gpu_step step;
	int r = session_begin(s, err);

	if (r < 0)
		return r;
	while ((r = session_next(s, &d, err)) == 0 &&
	       (r = session_step(s, &d, &step, err)) == 0)
		tell_step(run);
	return session_end(s, r, err);
}

static int train_all(struct run *run, struct err *err)
{
	struct session *s = &run->session;
	int r = 0;

	/* after all threads that would inherit it have started */
	tick_urgent(s->tick);
	progress_init(&run->progress, "training", s->n_steps,
		      s->choice.progress);
	if (!session_more(s))
		log_warn("nothing left to do after %" PRIu64 " steps",
			 s->resume.point.step);
	while (r == 0 && session_more(s))
		r = train_one(run, err);
	progress_end(&run->progress);
	return r == -ECANCELED ? 0 : r;
}

/* Write the record and the summary; returns the exit status. */
static int tell(struct run *run, struct err *err)
{
	struct session *s = &run->session;
	const struct report *report = session_report(s);
	const char *json = s->options.common.json;
	struct worker_failures f = session_failures(s);
	bool failed = f.n || report->interrupted;
	char name[512];

	report_summary(report, json && !strcmp(json, "-") ? stderr : stdout);
	if (json) {
		json_auto_t *j = report_json(report);
		int r = j ? json_write(j, json, err) : -ENOMEM;

		if (r < 0)
			return cli_fail(r, err);
	}
	if (f.n)
		log_error("%" PRIu64 " samples of %" PRIu64
			  " could not be used, first %s: %s",
			  f.n, report->total.samples + f.n,
			  dataset_name(&s->data, f.sample, name, sizeof(name)),
			  why(f.error));
	if (report->interrupted)
		log_error("interrupted after %" PRIu64 " of %" PRIu64 " steps",
			  s->resume.point.step, s->n_steps);
	return failed ? EXIT_STATUS_FAILED : EXIT_STATUS_DONE;
}

static int train(struct run *run)
{
	struct session *s = &run->session;
	struct err err = { 0 };
	int r = train_options_resolve(&s->options, &s->choice, &err);

	if (r < 0) {
		log_error("%s", err.text);
		return EXIT_STATUS_USAGE;
	}
	r = s->options.common.json ? json_check(s->options.common.json, &err)
				   : 0;
	if (r == 0)
		r = session_open(s, &err);
	if (r == 0)
		r = start(run, &err);
	if (r == 0)
		r = train_all(run, &err);
	if (r == 0)
		r = session_close_logs(s, &err);
	return r < 0 ? cli_fail(r, &err) : tell(run, &err);
}

int main(int argc, char **argv)
{
	static const struct cli_kind kinds[] = {
		{ "engine", engine_table, NULL },
		{ "order", order_table, NULL },
		{ "format", format_table, NULL },
		{ "prep", prep_table, NULL },
		{ "gpu", .print = profile_names_print, .which = PROFILE_GPU },
		{ "node", .print = profile_names_print, .which = PROFILE_NODE },
		{ "prep_profile", .print = profile_names_print,
		  .which = PROFILE_PREP },
		{ 0 },
	};
	static const struct cli_program program = {
		.name = "gpemu-train",
		.summary = "Load, preprocess and feed a dataset to an emulated "
			   "GPU, and account for the time.",
		.notes = "Without --data, --loader null measures the rig "
			 "itself.",
		.fields = train_fields,
		.kinds = kinds,
	};
	struct run run = { 0 };
	int status;

	session_init(&run.session);
	run.session.tell = tell_note;
	run.session.report.argc = argc;
	run.session.report.argv = argv;
	cli_parse(&program, argc, argv, &run.session.options, NULL);
	status = train(&run);
	interrupt_end(&run.interrupt);
	session_close(&run.session);
	return status;
}
