/* SPDX-License-Identifier: MIT */
/*
 * gpemu-train: options, progress, messages; the run itself is session.h.
 *
 * Rooms, in the order in which a sample passes through them
 * (docs/architecture.md):
 *
 *	loader/dataset	the samples; loader/format: the files that hold them
 *	loader/order	the order of the samples
 *	loader/pipeline	workers, batches, the pin stage; loader/batching: which
 *			samples make a batch
 *	loader/staging	batches that other jobs made, and those for them
 *	loader/engine	reads
 *	loader/prep	transforms
 *	emu/gpu		copy, compute, all-reduce, optimiser
 *	loader/train	the steps and their dependencies
 *	loader/account	where the time went; loader/checkpoint: saved state
 *	loader/nodes	several nodes: their steps, their record
 *	loader/comm	the exchanges between them, over MPI
 *	loader/sim	--simulate: all of it on an event clock
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/program/progress.h"
#include "emu/profile/profile.h"
#include "common/program/interrupt.h"
#include "common/program/launcher.h"
#include "common/text/wrap.h"
#include "common/thread.h"
#include "common/word.h"
#include "loader/options/train_resolve.h"
#include "loader/options/train_table.h"
#include "loader/sim/simulate.h"
#include "loader/train/session.h"

struct run {
	struct session session;
	struct interrupt interrupt;
	struct progress progress;
	struct simulate simulate; /* --simulate */
	struct comm *comm; /* several ranks; NULL: this process is alone */
	char name[48];	   /* in front of its lines then */
};

/* Of several ranks one speaks for all: rank 0. */
static bool is_first(const struct run *run)
{
	return !run->comm || run->comm->rank == 0;
}

static void tell_note(void *ctx, enum log_level level, const char *text)
{
	struct run *run = ctx;

	if (is_first(run) || run->session.options.common.verbose)
		log_line(level, "%s", text);
}

static void tell_step(struct run *run)
{
	struct session *s = &run->session;

	progress_update(&run->progress, s->resume.point.step, NULL);
}

static void interrupted(void *ctx)
{
	session_interrupt(ctx);
}

static int start_run(struct run *run, struct err *err)
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
	while ((r = session_next(s, TICK_NEVER, &d, err)) == 0 &&
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
		      is_first(run) ? s->choice.progress : PROGRESS_OFF);
	if (!session_more(s) && is_first(run))
		log_warn("nothing left to do after %" PRIu64 " steps",
			 s->resume.point.step);
	while (r == 0 && session_more(s))
		r = train_one(run, err);
	progress_end(&run->progress);
	return r == -ECANCELED ? 0 : r;
}

/* --- several ranks -------------------------------------------------------- */

static void died(void *ctx, uint32_t rank)
{
	(void)ctx;
	log_error("rank %" PRIu32 " has died; the run ends", rank);
	_exit(EXIT_STATUS_FAILED);
}

/* What was started, and what MPI knows of it. */
static int check_ranks(const struct run *run, struct err *err)
{
	const struct train_options *o = &run->session.options;
	uint32_t ranks = run->comm->size, started = launcher_size();

	if (ranks == 1 && started > 1)
		return err_set(err, -ENOTCONN,
			       "%" PRIu32 " processes were started, but MPI "
			       "knows of one: srun needs --mpi=pmix "
			       "or pmi2; mpirun must belong to the "
			       "MPI that gpemu-train was built with",
			       started);
	if (o->nodes > 1 && o->nodes != ranks)
		return err_set(err, -EINVAL,
			       "--nodes %" PRIu64 ": but there are %" PRIu32
			       " ranks",
			       o->nodes, ranks);
	if (thread_cpus() == 1 && sysconf(_SC_NPROCESSORS_ONLN) > 1 &&
	    is_first(run))
		log_warn("each rank is bound to one of %ld CPUs: use mpirun "
			 "--bind-to none, or srun -c N",
			 sysconf(_SC_NPROCESSORS_ONLN));
	return 0;
}

/* Join the other ranks, if a launcher has started some. */
static int join_ranks(struct run *run, struct err *err)
{
	enum { AUTO, ON, OFF };
	static const char *const modes[] = { "auto", "on", "off" };
	struct train_options *o = &run->session.options;
	int mode = WORD_FIND(modes, "--mpi", o->mpi, err), r;
	uint32_t started = launcher_size();
	bool divided = o->world_size > 1; /* by the user */

	if (mode < 0)
		return mode;
	if (o->nodes > 1 && mode != OFF && started == 1)
		return comm_launch((uint32_t)o->nodes, run->session.report.argc,
				   run->session.report.argv, err);
	if (mode == OFF || (mode == AUTO && (divided || started == 1)))
		return 0;
	if (mode == AUTO && !launcher_connects())
		return err_set(err, -ENOTCONN,
			       "srun has started %" PRIu32 " processes that "
			       "cannot connect: it needs --mpi=pmix, or "
			       "--mpi=pmi2 for MPICH",
			       started);
	if (divided)
		return err_set(err, -EINVAL,
			       "--world-size: not with --mpi on, which knows "
			       "the number of ranks");
	r = comm_mpi_open(died, run, &run->comm, err);
	if (r < 0)
		return r;
	run->session.comm = run->comm;
	snprintf(run->name, sizeof(run->name), "gpemu-train: rank %" PRIu32,
		 run->comm->rank);
	log_init(run->name,
		 o->common.verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN);
	r = check_ranks(run, err);
	return r < 0 ? r
		     : train_options_join(o, run->comm->rank, run->comm->size,
					  err);
}

/* The training of this rank has ended, well or with `r`; so has that of the
 * others. Returns `r`, or the error of another rank. */
static int end_together(struct run *run, int r, struct err *err)
{
	struct report *report = &run->session.report;
	int status = r == -ECANCELED	   ? -EINTR
		     : r < 0		   ? r
		     : report->interrupted ? -ECANCELED
					   : 0;

	status = comm_end(run->comm, status, err);
	if (status < 0 && status != -ECANCELED)
		return status;
	report->interrupted = status == -ECANCELED;
	return session_collect(&run->session, err);
}

/* Print an error, unless it is that of another rank. */
static int fail_run(const struct run *run, int r, const struct err *err)
{
	const struct comm *c = run->comm;

	if (!is_first(run) && c->ended && c->ended_by != c->rank)
		return EXIT_STATUS_FAILED;
	return cli_fail(r, err);
}

/* --- the end -------------------------------------------------------------- */

/* Write the record and the summary. */
static int tell_results(struct run *run, struct err *err)
{
	const struct report *report = session_report(&run->session);
	const char *json = run->session.options.common.json;
	json_auto_t *j = NULL;
	struct wrap w;

	if (wrap_begin(&w, json && !strcmp(json, "-") ? stderr : stdout) < 0)
		return -ENOMEM;
	report_summary(report, w.f);
	wrap_end(&w);
	if (!json)
		return 0;
	j = report_json(report);
	return j ? json_write(j, json, err) : -ENOMEM;
}

/* The samples that could not be used, the first of them by name. */
static void tell_bad(const struct run *run, const struct report *report)
{
	const struct train_account *a = &report->total;
	json_auto_t *named = report_bad_samples(report);
	static const char *const what[] = {
		[SIFT_DROP] = "were left out of their batches",
		[SIFT_REPLACE] = "others took their place",
		[SIFT_ZEROS] = "zeros took their place",
	};
	enum sift sift = run->session.choice.bad.sift;
	const json_t *one;
	size_t i;

	if (!a->failed_samples)
		return;
	log_warn("%" PRIu64 " of %" PRIu64 " samples could not be used, and "
		 "%s:",
		 a->failed_samples, a->drawn_samples, what[sift]);
	json_array_foreach (named, i, one)
		log_warn("%s: %s",
			 json_string_value(json_object_get(one, "sample")),
			 json_string_value(json_object_get(one, "reason")));
}

/* The same, and what failed; returns the exit status. */
static int tell(struct run *run, struct err *err)
{
	struct session *s = &run->session;
	const struct report *report = session_report(s);
	int r = is_first(run) ? tell_results(run, err) : 0;

	if (r < 0)
		return cli_fail(r, err);
	if (is_first(run))
		tell_bad(run, report);
	if (report->total.work.bypassed_samples && is_first(run))
		log_warn(
			"%" PRIu64 " of %" PRIu64
			" reads of samples bypassed the mount of gpemu-fs, its "
			"storage and its cache: their files are on another "
			"file system (links that the mount does not follow? "
			"see --follow-links of gpemu-fs)",
			report->total.work.bypassed_samples,
			report->total.drawn_samples);
	if (report->interrupted && is_first(run))
		log_error("interrupted after %" PRIu64 " of %" PRIu64 " steps",
			  s->resume.point.step, s->n_steps);
	return report->interrupted ? EXIT_STATUS_FAILED : EXIT_STATUS_DONE;
}

/* --- a simulation --------------------------------------------------------- */

static int simulate(struct run *run, struct simulate *m, struct err *err)
{
	struct session *s = &run->session;
	int r = simulate_open(m, s, err);

	if (r < 0)
		return r;
	progress_init(&run->progress, "simulating", s->n_steps,
		      s->choice.progress);
	while (r == 0 && session_more(s)) {
		r = simulate_epoch(m, err);
		progress_update(&run->progress, s->resume.point.step, NULL);
	}
	progress_end(&run->progress);
	return r == 0 ? simulate_report(m, err) : r;
}

/* --- all of it ------------------------------------------------------------ */

/* All but the options, up to the end of training. */
static int work(struct run *run, struct err *err)
{
	struct session *s = &run->session;
	const char *json = s->options.common.json;
	int r = json && is_first(run) ? json_check(json, err) : 0;

	if (r == 0 && s->options.simulate)
		return simulate(run, &run->simulate, err);
	if (r == 0)
		r = session_open(s, err);
	if (r == 0)
		r = start_run(run, err);
	if (r == 0)
		r = train_all(run, err);
	return r == 0 ? session_close_logs(s, err) : r;
}

static int train(struct run *run)
{
	struct session *s = &run->session;
	struct err err = { 0 };
	bool usage;
	int r;

	run->simulate.left_out = json_array();
	r = simulate_options(&s->options, run->simulate.left_out, &err);
	if (r == 0 && !s->options.simulate)
		r = join_ranks(run, &err);
	usage = r == -EINVAL;

	if (r == 0) {
		r = train_options_resolve(&s->options, &s->choice, &err);
		usage = r < 0;
	}
	if (r == 0)
		r = work(run, &err);
	if (run->comm)
		r = end_together(run, r, &err);
	if (r == 0)
		return tell(run, &err);
	r = fail_run(run, r, &err);
	return usage ? EXIT_STATUS_USAGE : r;
}

/* --dump-config of a whole run, one with --data: refuse what the run would. */
static int settle_options(void *options, struct err *err)
{
	/* a copy: what follows from the options is not printed */
	struct train_options o = *(struct train_options *)options;
	/* the texts that the run replaces */
	char **own[] = { &o.format, &o.prep, &o.gpu, &o.checkpoint_dir };
	struct train_choice choice = { 0 };
	int r;

	/* what to leave out, the run itself finds */
	if (!o.common.dump_config || !o.data || o.approximate)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (*own[i] && !(*own[i] = strdup(*own[i])))
			return 0; /* the run itself will say so */
	o.together = o.nodes > 1 && strcmp(o.mpi, "off") != 0;
	r = simulate_options(&o, NULL, err);
	if (r == 0)
		r = train_options_resolve(&o, &choice, err);
	if (r == 0 && o.simulate)
		r = simulate_check(&o, &choice, err);
	train_choice_fini(&choice);
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		free(*own[i]);
	return r == -EINVAL ? r : 0; /* files may come to be */
}

int main(int argc, char **argv)
{
	static const struct cli_kind kinds[] = {
		{ "engine", engine_table, NULL },
		{ "order", order_table, NULL },
		{ "batching", batching_table, NULL },
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
		.notes = "Without --data, --loader null measures this machine "
			 "itself.",
		.fields = train_fields,
		.kinds = kinds,
		.settle = settle_options,
	};
	struct run run = { 0 };
	int status;

	session_init(&run.session);
	run.session.tell = tell_note;
	run.session.ctx = &run;
	run.session.report.argc = argc;
	run.session.report.argv = argv;
	cli_parse(&program, argc, argv, &run.session.options, NULL);
	status = train(&run);
	interrupt_end(&run.interrupt);
	simulate_close(&run.simulate);
	session_close(&run.session);
	comm_close(run.comm);
	return status;
}
