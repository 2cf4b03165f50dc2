/* SPDX-License-Identifier: MIT */
#include "workloads/run_cell.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "common/json.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"

/* arbitrary: a million files are scanned in a few seconds */
#define MOUNT_TIMEOUT_NS (60 * NS_PER_S)
/* gpemu-fs may have requests in its timer queue; gpemu-train flushes a record
 */
#define GRACE_NS (10 * NS_PER_S)

enum { MAX_ARGS = 20, N_COMMANDS = 2 };

/* A command line; owns its strings. */
struct command {
	char *argv[MAX_ARGS + 1];
	size_t n;
};

/* A run on its way; `mnt` is where gpemu-train finds the data. */
struct run {
	struct runner *r;
	const struct cell *cell;
	struct command fs, train;
	char *mnt;
	char *record; /* what gpemu-train writes */
	int log_fd;
	struct child fs_child;
	int exit_status; /* of gpemu-train; -1: it never ran */
	json_t *mount;	 /* statistics, or NULL */
};

/* --- commands --------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static int arg(struct command *c,
						     const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = c->n < MAX_ARGS ? vasprintf(&c->argv[c->n], fmt, ap) : -1;
	va_end(ap);
	if (n < 0) {
		c->argv[c->n] = NULL;
		return -ENOMEM;
	}
	c->n++;
	return 0;
}

static void command_fini(struct command *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->argv[i]);
}

static json_t *command_json(const struct command *c)
{
	json_t *j = json_array();

	for (size_t i = 0; i < c->n; i++)
		json_array_append_new(j, json_string(c->argv[i]));
	return j;
}

/* The part that both programs share: PROGRAM --config FILE --seed --time-scale
 */
static int command_start(struct run *run, struct command *c,
			 enum run_program program, const char *suffix)
{
	const struct runner *r = run->r;
	_cleanup_free_ char *path = runner_program(r, program);
	_cleanup_free_ char *config =
		runner_path(r, "configs", run->cell->id, suffix);

	if (!path || !config || arg(c, "%s", path) < 0 ||
	    arg(c, "--config") < 0 || arg(c, "%s", config) < 0 ||
	    arg(c, "--seed") < 0 || arg(c, "%" PRIu64, run->cell->seed) < 0 ||
	    arg(c, "--time-scale") < 0 || arg(c, "%.15g", r->w->time_scale) < 0)
		return -ENOMEM;
	return 0;
}

static int run_init(struct run *run, struct runner *r, const struct cell *cell)
{
	int code;

	*run = (struct run){ .r = r,
			     .cell = cell,
			     .log_fd = -1,
			     .exit_status = -1,
			     .fs_child.pidfd = -1 };
	code = r->mounted ? asprintf(&run->mnt, "%s/mnt", r->scratch)
			  : asprintf(&run->mnt, "%s", r->data);
	if (code < 0 ||
	    asprintf(&run->record, "%s/record.json", r->scratch) < 0)
		return -ENOMEM;
	code = command_start(run, &run->fs, RUN_FS, "fs.yaml");
	if (code == 0 &&
	    (arg(&run->fs, "-f") < 0 || arg(&run->fs, "%s", r->data) < 0 ||
	     arg(&run->fs, "%s", run->mnt) < 0))
		return -ENOMEM;
	if (code == 0)
		code = command_start(run, &run->train, RUN_TRAIN, "train.yaml");
	if (code == 0 &&
	    (arg(&run->train, "--progress") < 0 ||
	     arg(&run->train, "off") < 0 || arg(&run->train, "--json") < 0 ||
	     arg(&run->train, "%s", run->record) < 0 ||
	     arg(&run->train, "--data") < 0 ||
	     arg(&run->train, "%s", run->mnt) < 0))
		return -ENOMEM;
	return code;
}

static void run_fini(struct run *run)
{
	command_fini(&run->fs);
	command_fini(&run->train);
	free(run->mnt);
	free(run->record);
	json_decref(run->mount);
	if (run->log_fd >= 0)
		close(run->log_fd);
}

static void print_command(const struct command *c, FILE *f)
{
	for (size_t i = 0; i < c->n; i++)
		fprintf(f, "%s%s", i ? " " : "  ", c->argv[i]);
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
	int code = run_init(&run, (struct runner *)r, cell);

	if (code == 0) {
		fprintf(f, "%s\n", cell->id);
		if (r->mounted) {
			print_config("fs", cell->fs, f);
			print_command(&run.fs, f);
		}
		print_config("train", cell->train, f);
		print_command(&run.train, f);
	}
	run_fini(&run);
	return code;
}

/* --- mount ------------------------------------------------------------ */

static int start_mount(struct run *run, struct err *err)
{
	struct runner *r = run->r;
	int status = 0, code;

	if (mkdir(run->mnt, 0700) < 0 && errno != EEXIST)
		return err_set(err, -errno, "%s: %s", run->mnt,
			       strerror(errno));
	code = child_start(&run->fs_child, run->fs.argv, run->log_fd,
			   run->log_fd, err);
	if (code < 0)
		return code;
	code = child_wait_mount(&run->fs_child, &r->stop, run->mnt,
				MOUNT_TIMEOUT_NS, &status);
	if (code == -ECHILD)
		return err_set(err,
			       status == EXIT_STATUS_NOT_NOW ? -ENODEV : -EIO,
			       "gpemu-fs: exit status %d before it mounted",
			       status);
	return code < 0 ? err_set(err, code, "gpemu-fs: %s", strerror(-code))
			: 0;
}

/* What a daemon that died or hung left behind. */
static void detach(const char *mnt)
{
	struct child child;
	char *argv[] = { (char *)"/usr/bin/fusermount3", (char *)"-uz",
			 (char *)mnt, NULL };

	if (umount2(mnt, MNT_DETACH) == 0 ||
	    child_start(&child, argv, STDERR_FILENO, STDERR_FILENO, NULL) < 0)
		return;
	/* MOUNT_TIMEOUT_NS would do; it asks the kernel and ends at once */
	struct stop none = { .fd = -1 };
	int status;

	if (child_wait(&child, &none, GRACE_NS, &status) < 0)
		child_end(&child, 0);
}

static void end_mount(struct run *run)
{
	if (!run->r->mounted)
		return;
	child_end(&run->fs_child, GRACE_NS);
	if (child_is_mounted(run->mnt))
		detach(run->mnt);
	rmdir(run->mnt);
}

/* --- train ------------------------------------------------------------ */

static int train(struct run *run, struct err *err)
{
	struct runner *r = run->r;
	char limit[UNITS_TEXT];
	struct child child;
	int code = child_start(&child, run->train.argv, run->log_fd,
			       run->log_fd, err);

	if (code == 0)
		code = child_wait(&child, &r->stop, r->w->cell_timeout_ns,
				  &run->exit_status);
	if (code < 0)
		run->exit_status = child_end(&child, GRACE_NS);
	if (code == -ETIMEDOUT)
		return err_set(err, -EIO, "not done after cell_timeout, %s",
			       units_exact_duration(r->w->cell_timeout_ns,
						    limit));
	if (code < 0)
		return err_set(err, code, "gpemu-train: %s", strerror(-code));
	if (run->exit_status)
		return err_set(err, -EIO, "gpemu-train: exit status %d",
			       run->exit_status);
	return 0;
}

static void read_mount_stats(struct run *run)
{
	_cleanup_free_ char *path = NULL;

	if (!run->r->mounted ||
	    asprintf(&path, "%s/.gpemu/stats", run->mnt) < 0)
		return;
	/* no statistics, no member: the metrics on it are then absent */
	json_read(path, &run->mount, NULL);
}

static int write_configs(struct run *run, struct err *err)
{
	const struct runner *r = run->r;
	_cleanup_free_ char *fs =
		runner_path(r, "configs", run->cell->id, "fs.yaml");
	_cleanup_free_ char *train =
		runner_path(r, "configs", run->cell->id, "train.yaml");
	_cleanup_free_ char *log = runner_path(r, "logs", run->cell->id, "log");
	int code;

	if (!fs || !train || !log)
		return -ENOMEM;
	run->log_fd = open(
		log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
	if (run->log_fd < 0)
		return err_set(err, -errno, "%s: %s", log, strerror(errno));
	code = json_write(run->cell->fs, fs, err);
	return code < 0 ? code : json_write(run->cell->train, train, err);
}

/* The last line that a program wrote says more than its exit status. */
static void add_last_words(const struct run *run, struct err *err)
{
	_cleanup_free_ char *log =
		runner_path(run->r, "logs", run->cell->id, "log");
	_cleanup_fclose_ FILE *f = log ? fopen(log, "re") : NULL;
	char line[300], last[300] = "";

	while (f && fgets(line, sizeof(line), f))
		if (line[0] != '\n')
			strcpy(last, line);
	last[strcspn(last, "\n")] = 0;
	if (last[0]) {
		struct err why = *err;

		err->text[0] = 0;
		err_set(err, -EIO, "%.150s (%s)", why.text, last);
	}
}

static int execute(struct run *run, struct err *err)
{
	int code = write_configs(run, err);

	if (code < 0)
		return code;
	unlink(run->record);
	if (run->r->mounted)
		code = start_mount(run, err);
	if (code == 0) {
		code = train(run, err);
		read_mount_stats(run);
	}
	end_mount(run);
	return code;
}

/* --- record ----------------------------------------------------------- */

static json_t *axes_json(const struct workload *w, size_t point)
{
	json_t *j = json_object();

	for (size_t i = 0; i < w->n_axes; i++)
		json_object_set_new(
			j, w->axes[i].name,
			json_string(workload_at(w, point, i)->label));
	return j;
}

static json_t *cell_json(const struct run *run, const char *started,
			 double wall_seconds)
{
	const struct cell *c = run->cell;
	const struct workload *w = run->r->w;
	json_t *commands = json_array();
	char hash[17];

	snprintf(hash, sizeof(hash), "%016" PRIx64, c->hash);
	if (run->r->mounted)
		json_array_append_new(commands, command_json(&run->fs));
	json_array_append_new(commands, command_json(&run->train));
	return json_pack("{s:s, s:s, s:s, s:o, s:I, s:I, s:f, s:b, s:s, s:O, "
			 "s:O, s:o, s:i, s:s, s:f}",
			 "id", c->id, "hash", hash, "workload", w->name, "axes",
			 axes_json(w, c->point), "repetition",
			 (json_int_t)c->repetition + 1, "seed",
			 (json_int_t)c->seed, "time_scale", w->time_scale,
			 "mounted", run->r->mounted, "dataset", run->r->data,
			 "fs", c->fs, "train", c->train, "commands", commands,
			 "exit_status", run->exit_status, "started", started,
			 "wall_seconds", wall_seconds);
}

static int write_record(struct run *run, const char *failure, json_t *cell,
			struct err *err)
{
	_cleanup_free_ char *path =
		runner_path(run->r, "records", run->cell->id, "json");
	json_auto_t *record = NULL;

	if (json_read(run->record, &record, NULL) < 0 ||
	    !json_is_object(record)) {
		json_decref(record);
		record = json_object();
	}
	unlink(run->record);
	if (!path || !record || !cell ||
	    json_object_set_new(record, "status",
				json_string(failure ? "failed" : "ok")) < 0 ||
	    json_object_set_new(record, "failure",
				failure ? json_string(failure) : json_null()) <
		    0 ||
	    json_object_set(record, "cell", cell) < 0 ||
	    json_object_set_new(record, "mount",
				run->mount ? json_incref(run->mount)
					   : json_null()) < 0)
		return -ENOMEM;
	return json_write(record, path, err);
}

int cell_run(struct runner *r, const struct cell *cell, struct err *err)
{
	uint64_t start = tick_wall();
	struct run run;
	char started[32];
	int code, written;

	tick_utc(started);
	code = run_init(&run, r, cell);
	if (code == 0)
		code = execute(&run, err);
	if (code == 0 && access(run.record, R_OK) < 0)
		code = err_set(err, -EIO, "gpemu-train left no record");
	if (code < 0 && !r->stop.signal && code != -ENOMEM) {
		add_last_words(&run, err);
		code = -EIO;
	}
	if (code == 0 || code == -EIO) {
		json_auto_t *j =
			cell_json(&run, started,
				  (double)(tick_wall() - start) / NS_PER_S);

		written =
			write_record(&run, code < 0 ? err->text : NULL, j, err);
		code = written < 0 ? written : code;
	}
	run_fini(&run);
	return code;
}

json_t *cell_record(const struct runner *r, const struct cell *cell)
{
	_cleanup_free_ char *path = runner_path(r, "records", cell->id, "json");
	const char *status = "", *hash = "";
	json_t *record = NULL;
	char wanted[17];

	snprintf(wanted, sizeof(wanted), "%016" PRIx64, cell->hash);
	if (!path || json_read(path, &record, NULL) < 0)
		return NULL;
	if (json_unpack(record, "{s:s, s:{s:s}}", "status", &status, "cell",
			"hash", &hash) == 0 &&
	    !strcmp(status, "ok") && !strcmp(hash, wanted))
		return record;
	json_decref(record);
	return NULL;
}

/* --- probe ------------------------------------------------------------ */

int cell_probe_mount(struct runner *r, struct err *err)
{
	json_auto_t *nothing = json_object();
	struct cell cell = {
		.seed = 1, .id = "probe", .fs = nothing, .train = nothing
	};
	struct run run;
	int code;

	if (access("/dev/fuse", R_OK | W_OK) < 0)
		return err_set(err, -ENODEV, "/dev/fuse: %s", strerror(errno));
	code = run_init(&run, r, &cell);
	if (code == 0)
		code = write_configs(&run, err);
	if (code == 0)
		code = start_mount(&run, err);
	end_mount(&run);
	if (code == -ENODEV)
		add_last_words(&run, err);
	run_fini(&run);
	return code == -ENODEV || code == -EINTR ? code : 0;
}
