/* SPDX-License-Identifier: MIT */
#include "runner/cell/run_cell.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/json.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "runner/cell/run_record.h"
#include "runner/cell/run_server.h"
#include "runner/run/run_dataset.h"
#include "runner/run/run_identity.h"
#include "runner/run/run_remove.h"
#include "runner/cell/run_machine.h"
#include "runner/cell/run_profiles.h"

/* gpemu-fs may have requests in its timer queue; gpemu-train writes a record
 */
#define GRACE_NS (10 * NS_PER_S)

/* --- commands --------------------------------------------------------- */

/* What a loader reads without a mount: of a pack, the file. */
static const char *plain_path(const json_t *recipe, const char *source)
{
	bool pack = !dataset_is_synth(recipe) && !dataset_is_folder(recipe);

	return source + (pack ? strlen(DATASET_PACK) : 0);
}

static int init_mount(struct run *run, size_t i, struct err *err)
{
	const struct cell *cell = run->cell;
	struct run_mount *m = &run->mounts[i];
	int code =
		dataset_path(run->r, cell->mounts[i].dataset, &m->folder, err);

	if (code < 0)
		return code;
	if (!run->with_fs && !cell->store_only &&
	    dataset_is_synth(cell->mounts[i].dataset))
		return err_set(err, -ENODEV,
			       "%s is generated on read, which needs a mount",
			       m->folder);
	if (!run->mounted && cell->store_only)
		m->mnt = util_text("s3://%s", config_text(run->r->w, cell->s3,
							  "s3", "bucket"));
	else if (!run->mounted)
		m->mnt = strdup(plain_path(cell->mounts[i].dataset, m->folder));
	else if (cell->n_mounts == 1)
		m->mnt = util_join(run->r->scratch, "mnt");
	else
		m->mnt = util_text("%s/mnt-%s", run->r->scratch,
				   cell->mounts[i].name);
	if (!m->mnt || !run->mounted)
		return m->mnt ? 0 : -ENOMEM;
	if (command_has_scratch(&cell->mounts[i])) {
		m->scratch = command_writable(run->r, &cell->mounts[i]);
		if (!m->scratch)
			return -ENOMEM;
	}
	run_init_server(run, &m->server, RUN_FS, NULL, NULL);
	return command_mount(&m->server.command, run->r, cell, i, m->mnt,
			     &run->network, err);
}

/* Where a job reads: its mount, or those of its nodes, whose names end with the
 * node's number; gpemu-train replaces %r by that. */
static char *data_of(const struct run *run, const struct cell_job *spec)
{
	const char *mnt = run->mounts[spec->mount].mnt;

	if (!run->mounted || spec->nodes < 2)
		return strdup(mnt);
	return util_text("%.*s%%r", (int)strlen(mnt) - 1, mnt);
}

static int init_job(struct run *run, size_t i, struct err *err)
{
	const struct cell_job *spec = &run->cell->jobs[i];
	struct run_job *job = &run->jobs[i];
	_cleanup_free_ char *data = data_of(run, spec);

	job->child.pidfd = -1;
	job->exit_status = -1;
	job->record =
		util_text("%s/record-%s.json", run->r->scratch, spec->name);
	if (cell_is_exec(spec))
		job->errors =
			util_text("%s/stderr-%s", run->r->scratch, spec->name);
	if (!data || !job->record || (cell_is_exec(spec) && !job->errors))
		return -ENOMEM;
	return command_job(&job->command, run->r, run->cell, i, data,
			   job->record, &run->prepd.network, &run->s3.store,
			   err);
}

/* Each mount is a node, if gpemu-run chooses the peers of one. */
static int init_network(struct run *run, struct err *err)
{
	const struct cell *cell = run->cell;
	bool wanted = false;

	for (size_t i = 0; run->r->mounted && i < cell->n_mounts; i++)
		wanted |= cell_has_peers(&cell->mounts[i]);
	return network_open(&run->network,
			    wanted ? (uint32_t)cell->n_mounts : 0,
			    run->r->network, run->r->scratch, &run->r->stop,
			    err);
}

static int run_init(struct run *run, struct runner *r, const struct cell *cell,
		    struct err *err)
{
	bool simulated = cell_is_simulated(cell);
	uint64_t workers = cell->prepd ? cell_prepd_workers(cell->prepd) : 0;
	int code = 0;

	*run = (struct run){ .r = r,
			     .cell = cell,
			     .mounted = r->mounted && !simulated,
			     .with_fs = r->mounted || simulated,
			     .log_fd = -1 };
	run->mounts = calloc(cell->n_mounts, sizeof(*run->mounts));
	run->jobs = calloc(cell->n_jobs + 1, sizeof(*run->jobs));
	/* the mounts, gpemu-gpud, the object store, the dispatcher, workers */
	run->servers = calloc(cell->n_mounts + 3 + workers,
			      sizeof(struct run_server *));
	if (!run->mounts || !run->jobs || !run->servers)
		return -ENOMEM;
	code = init_network(run, err);
	for (size_t i = 0; code == 0 && i < cell->n_mounts; i++)
		code = init_mount(run, i, err);
	if (code == 0)
		code = run_init_prepd(run, err);
	if (code == 0)
		code = run_init_s3(run, err);
	for (size_t i = 0; code == 0 && i < cell->n_jobs; i++)
		code = init_job(run, i, err);
	return code == 0 ? run_init_gpud(run, err) : code;
}

static void remove_checkpoints(const struct run *run, size_t job)
{
	const struct cell_job *spec = &run->cell->jobs[job];
	_cleanup_free_ char *writable =
		run->mounted ? command_writable(run->r,
						&run->cell->mounts[spec->mount])
			     : NULL;
	_cleanup_free_ char *path = command_checkpoints(run->r, writable, spec);

	if (path && path[0])
		run_remove(path);
}

static void run_fini(struct run *run)
{
	for (size_t i = 0; i < run->n_servers; i++) {
		command_fini(&run->servers[i]->command);
		free(run->servers[i]->record);
		json_decref(run->servers[i]->stats);
	}
	free(run->servers);
	for (size_t i = 0; run->mounts && i < run->cell->n_mounts; i++) {
		free(run->mounts[i].mnt);
		free(run->mounts[i].folder);
		free(run->mounts[i].scratch);
		json_decref(run->mounts[i].stats);
	}
	for (size_t i = 0; run->jobs && i < run->cell->n_jobs; i++) {
		command_fini(&run->jobs[i].command);
		if (run->jobs[i].record)
			unlink(run->jobs[i].record);
		free(run->jobs[i].record);
		if (run->jobs[i].errors)
			unlink(run->jobs[i].errors);
		free(run->jobs[i].errors);
		remove_checkpoints(run, i);
	}
	free(run->mounts);
	free(run->jobs);
	watch_fini(&run->watch);
	run_fini_prepd(run);
	run_fini_s3(run);
	network_close(&run->network);
	failure_fini(&run->failure);
	if (run->log_fd >= 0)
		close(run->log_fd);
}

static void print_command(const struct command *c, FILE *f)
{
	fputs(" ", f);
	for (size_t i = 0; i < c->n_env; i++)
		fprintf(f, " %s", c->env[i]);
	for (size_t i = 0; i < c->n; i++)
		fprintf(f, " %s", c->argv[i]);
	fputc('\n', f);
}

static void print_config(const char *name, const json_t *config, FILE *f)
{
	const char *key;
	json_t *value;

	fprintf(f, "  %s:", name);
	json_object_foreach ((json_t *)config, key, value) {
		_cleanup_free_ char *text =
			json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
		fprintf(f, " %s=%s", key,
			json_is_string(value) ? json_string_value(value)
					      : text);
	}
	fputc('\n', f);
}

int cell_print(const struct runner *r, const struct cell *cell, FILE *f)
{
	struct run run;
	int code = run_init(&run, (struct runner *)r, cell, NULL);

	if (code == 0)
		fprintf(f, "%s\n", cell->id);
	for (size_t i = 0; code == 0 && run.with_fs && i < cell->n_mounts;
	     i++) {
		print_config("fs", cell->mounts[i].fs, f);
		if (run.mounted)
			print_command(&run.mounts[i].server.command, f);
	}
	for (size_t i = 0; code == 0 && i < RUN_SERVERS; i++) {
		enum run_program program = RUN_GPUD + i;

		if (cell->servers[i])
			print_config(run_program_word(program),
				     cell->servers[i], f);
		for (size_t k = 0; k < run.n_servers; k++)
			if (run.servers[k]->program == program)
				print_command(&run.servers[k]->command, f);
	}
	for (size_t i = 0; code == 0 && i < cell->n_jobs; i++) {
		if (!cell_is_exec(&cell->jobs[i]))
			print_config("train", cell->jobs[i].train, f);
		print_command(&run.jobs[i].command, f);
	}
	run_fini(&run);
	return code;
}

/* --- jobs ------------------------------------------------------------- */

static const char *job_program(const struct run *run, size_t i)
{
	return cell_is_exec(&run->cell->jobs[i]) ? run->jobs[i].command.argv[0]
						 : run_program_name(RUN_TRAIN);
}

static int start_job(struct run *run, struct run_job *job, struct err *err)
{
	_cleanup_close_ int fd =
		job->errors ? util_new_file(job->errors, O_APPEND) : -1;

	if (job->errors && fd < 0)
		return err_set(err, fd, "%s: %s", job->errors, strerror(-fd));
	job->begin_ns = job->end_ns = tick_wall();
	return child_start(&job->child, job->command.argv, job->command.env,
			   run->log_fd, fd < 0 ? run->log_fd : fd, err);
}

/* Start the jobs that are due; *ret_next: when the next one is due, or
 * TICK_NEVER. */
static int start_due(struct run *run, uint64_t begin, uint64_t *ret_next,
		     struct err *err)
{
	double scale = run->r->w->time_scale;

	*ret_next = TICK_NEVER;
	for (size_t i = 0; i < run->cell->n_jobs; i++) {
		struct run_job *job = &run->jobs[i];
		uint64_t due =
			begin +
			(uint64_t)(scale * (double)run->cell->jobs[i].start_ns);
		int code;

		if (job->started)
			continue;
		if (due > tick_wall()) {
			*ret_next = MIN(*ret_next, due);
			continue;
		}
		job->started = true;
		code = start_job(run, job, err);
		if (code < 0)
			return code;
	}
	return 0;
}

/* A child exited: a job or, behind them, a server. */
static int note_end(struct run *run, size_t index, int status, struct err *err)
{
	size_t n = run->cell->n_jobs;
	struct run_job *job;

	if (index >= n)
		return failure_blame(
			&run->failure,
			run_program_name(run->servers[index - n]->program),
			" while the jobs ran", NULL, status, &run->before, -EIO,
			err);
	job = &run->jobs[index];
	job->exit_status = status;
	job->end_ns = tick_wall();
	failure_append(job->errors, run->log_fd);
	return status ? failure_blame(&run->failure, job_program(run, index),
				      "", job->errors, status, &run->before,
				      -EIO, err)
		      : 0;
}

static size_t n_left(const struct run *run)
{
	size_t n = 0;

	for (size_t i = 0; i < run->cell->n_jobs; i++)
		n += run->jobs[i].child.pid > 0 || !run->jobs[i].started;
	return n;
}

/* Wait until all jobs have ended, one fails, or a mount dies. */
static int wait_jobs(struct run *run, struct child *const *children, size_t n,
		     struct err *err)
{
	struct runner *r = run->r;
	uint64_t begin = tick_wall(), next, now;
	uint64_t limit = begin + r->w->cell_timeout_ns;
	char text[UNITS_TEXT];
	int code = 0;

	while (code == 0 && n_left(run)) {
		size_t index = 0;
		int status = 0;

		code = start_due(run, begin, &next, err);
		if (code < 0)
			break;
		now = tick_wall();
		next = MIN(next,
			   MIN(limit, run->watch.last.wall_ns + WATCH_NS));
		code = child_wait_any(children, n, &r->stop,
				      next > now ? next - now : 1, &index,
				      &status);
		if (tick_wall() >= run->watch.last.wall_ns + WATCH_NS)
			watch_look(&run->watch, children, n);
		if (code == 0)
			code = note_end(run, index, status, err);
		else if (code == -ETIMEDOUT && tick_wall() >= limit)
			code = err_set(err, -EIO,
				       "not finished after cell_timeout, %s",
				       units_exact_duration(
					       r->w->cell_timeout_ns, text));
		else if (code == -ETIMEDOUT)
			code = 0;
	}
	return code;
}

static void add_cause(const struct run *run, int code, struct err *err)
{
	if (code < 0 && code != -ENOMEM && code != -EINTR)
		failure_add_cause(&run->failure, err);
}

static int run_jobs(struct run *run, struct err *err)
{
	size_t n_jobs = run->cell->n_jobs;
	size_t n = n_jobs + run->n_servers;
	_cleanup_free_ struct child **children = calloc(n, sizeof(*children));
	int code;

	if (!children)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		children[i] = i < n_jobs ? &run->jobs[i].child
					 : &run->servers[i - n_jobs]->child;
	watch_begin(&run->watch, children, n);
	code = wait_jobs(run, children, n, err);
	watch_look(&run->watch, children, n);
	if (code < 0)
		err_set(err, code, "%s", strerror(-code));
	add_cause(run, code, err);
	for (size_t i = 0; i < n_jobs; i++) {
		struct run_job *job = &run->jobs[i];

		if (job->child.pid <= 0)
			continue;
		job->exit_status = child_end(&job->child, GRACE_NS);
		job->end_ns = tick_wall();
		failure_append(job->errors, run->log_fd);
	}
	return code;
}

/* --- the cell --------------------------------------------------------- */

static int write_config(const struct run *run, const char *name,
			enum run_program program, const json_t *config,
			struct err *err)
{
	_cleanup_free_ char *path =
		command_config(run->r, run->cell, name, program);
	json_auto_t *options = cell_options(program, config);

	return path && options ? json_replace(options, path, err) : -ENOMEM;
}

static int write_configs(struct run *run, struct err *err)
{
	const struct runner *r = run->r;
	const struct cell *c = run->cell;
	_cleanup_free_ char *log = runner_path(r, "logs", c->id, "log");
	int code = 0;

	if (!log)
		return -ENOMEM;
	run->log_fd = util_new_file(log, O_APPEND);
	if (run->log_fd < 0)
		return err_set(err, run->log_fd, "%s: %s", log,
			       strerror(-run->log_fd));
	code = failure_init(&run->failure, r->scratch, TAKE_PTR(log), err);
	for (size_t i = 0; code == 0 && i < c->n_mounts; i++)
		code = write_config(run, c->mounts[i].name, RUN_FS,
				    c->mounts[i].fs, err);
	for (size_t i = 0; code == 0 && i < c->n_jobs; i++)
		code = write_config(run, c->jobs[i].name, RUN_TRAIN,
				    c->jobs[i].train, err);
	for (size_t i = 0; code == 0 && i < RUN_SERVERS; i++)
		if (c->servers[i])
			code = write_config(run, "", RUN_GPUD + i,
					    c->servers[i], err);
	return code;
}

static int execute(struct run *run, struct err *err)
{
	int code = write_configs(run, err);

	if (code < 0)
		return code;
	code = run_start_mounts(run, err);
	if (code == 0)
		code = run_start_gpud(run, err);
	if (code == 0)
		code = run_start_s3(run, err);
	if (code == 0)
		code = run_start_prepd(run, err);
	if (code < 0) {
		add_cause(run, code, err);
	} else {
		code = run_jobs(run, err);
		run_read_mount_stats(run);
	}
	run_end_prepd(run);
	run_end_s3(run);
	run_end_gpud(run);
	run_end_mounts(run);
	return code == 0 ? run_check_records(run, err) : code;
}

/* The key of the cell is that of the files before the change. */
static int check_changed(const struct run *run, struct err *err)
{
	const struct runner *r = run->r;
	json_auto_t *files = identity_of(r->w, run->cell, run->with_fs);
	json_auto_t *profiles = profiles_of(r->w, run->cell, run->with_fs);
	const char *name = identity_changed(files);

	if (!name)
		name = identity_changed(profiles);
	if (!files || !profiles)
		return -ENOMEM;
	return name ? err_set(err, -EIO,
			      "%s changed since gpemu-run started; run it "
			      "again",
			      name)
		    : 0;
}

/* Run it; `run` is to be freed with run_fini, whatever this returns. */
static int run_cell(struct run *run, struct runner *r, const struct cell *cell,
		    unsigned attempt, struct err *err)
{
	int code = run_init(run, r, cell, err);

	tick_utc(run->started);
	run->attempt = attempt;
	host_sample(&run->before);
	if (code == 0)
		code = execute(run, err);
	if (code == 0)
		code = check_changed(run, err);
	host_sample(&run->after);
	return code < 0 && !r->stop.signal && code != -ENOMEM ? -EIO : code;
}

int cell_run(struct runner *r, const struct cell *cell, unsigned attempt,
	     struct cell_outcome *ret, struct err *err)
{
	struct run run;
	int code, written;

	*ret = (struct cell_outcome){ 0 };
	code = run_cell(&run, r, cell, attempt, err);
	if (code == 0 || code == -EIO) {
		struct err why = { 0 };

		written = run_write_record(&run, code < 0 ? err->text : NULL,
					   &why);
		code = written < 0 ? err_set(err, written, "%s", why.text)
				   : code;
	}
	ret->disturbed = run.disturbed;
	ret->taken = watch_taken(&run.watch) + watch_taken_io(&run.watch);
	run_fini(&run);
	return code;
}

int cell_try(struct runner *r, const struct cell *cell, json_t **ret_record,
	     struct err *err)
{
	struct run run;
	int code = run_cell(&run, r, cell, 1, err);

	if (code == 0 && ret_record) {
		*ret_record = run_record(&run, NULL);
		code = *ret_record ? 0 : -ENOMEM;
	}
	run_fini(&run);
	return code;
}

/* --- probe ------------------------------------------------------------ */

int cell_probe_mount(struct runner *r, struct err *err)
{
	_cleanup_(cell_free) struct cell cell = { 0 };
	struct run run;
	int code;

	code = workload_cell(r->w, 0, true, &cell);
	if (code < 0)
		return code;
	if (!cell_is_simulated(&cell) && access("/dev/fuse", R_OK | W_OK) < 0)
		code = err_set(err, -ENODEV, "/dev/fuse: %s", strerror(errno));
	if (cell_is_simulated(&cell) || code < 0)
		return code;
	strcpy(cell.id, "probe");
	code = run_init(&run, r, &cell, err);
	json_object_clear(cell.mounts[0].fs);
	if (code == 0)
		code = write_configs(&run, err);
	if (code == 0)
		code = run_start_mount(&run, 0, err);
	run_end_mounts(&run);
	if (code == -ENODEV)
		add_cause(&run, code, err);
	run_fini(&run);
	return code == -ENODEV || code == -EINTR ? code : 0;
}
