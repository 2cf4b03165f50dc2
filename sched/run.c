/* SPDX-License-Identifier: MIT */
/* gpemu-sched run: a policy over real jobs, beside its simulation. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "common/json.h"
#include "common/log.h"
#include "common/units.h"
#include "common/util.h"
#include "sched/command.h"
#include "sched/live/live.h"
#include "sched/sim.h"

struct options {
	struct driver_options d;
	char *policy, *placement, *output;
	uint64_t step_ns, grace_ns, retries;
	double time_scale;
	char *mount, *gpu_server;
	bool leases;
	char **command; /* of the jobs, in argv; NULL: none */
};

CONF_CHECK(check_policy, plugin_choice_check, schedule_table, "policy")
CONF_CHECK(check_placement, plugin_choice_check, placement_table, "placement")

static const struct conf_field fields[] = {
	INPUT_TRACE_FIELDS(struct options, d.input),
	INPUT_CLUSTER_FIELDS(struct options, d.input),
	{ CONF_KEY(policy, CONF_STRING, struct options), .check = check_policy,
	  .short_opt = 'p', .arg = "NAME",
	  .help = "scheduling policy (default: fifo)" },
	{ CONF_KEY(placement, CONF_STRING, struct options),
	  .check = check_placement, .arg = "NAME",
	  .help = "placement: GPUs and cores of a job (default: "
		  "proportional)" },
	{ CONF_KEY(output, CONF_STRING, struct options), .short_opt = 'o',
	  .arg = "DIR", .cli_only = true,
	  .help = "folder of the run: its state, and each job's log, record "
		  "and checkpoints" },
	{ "step", CONF_DURATION, offsetof(struct options, step_ns),
	  .arg = "DURATION",
	  .help = "work of a step, for classes without a speed" },
	{ CONF_KEY(time_scale, CONF_DOUBLE, struct options), .min = 1e-6,
	  .max = 1e6, .arg = "X",
	  .help = "wall seconds per second, also of the jobs (1)" },
	{ CONF_KEY(retries, CONF_UINT, struct options), .max = 1e6, .arg = "N",
	  .help = "start a job that fails up to N more times (0)" },
	{ "grace", CONF_DURATION, offsetof(struct options, grace_ns), .min = 1,
	  .max = 1e15, .arg = "DURATION",
	  .help = "wall time that a job has to end after SIGTERM (1m)" },
	{ CONF_KEY(leases, CONF_BOOL, struct options), .arg = "on|off",
	  .help = "change cores and caches of jobs while they run; off: "
		  "restart these jobs (default on)" },
	{ CONF_KEY(mount, CONF_STRING, struct options), .arg = "MOUNTPOINT",
	  .help = "gpemu-fs of each job, as in m/{job}: its cache gets the "
		  "memory of the job" },
	{ CONF_KEY(gpu_server, CONF_STRING, struct options), .arg = "SOCKET",
	  .help = "gpemu-gpud of each node, as in gpud-{node}.sock, or of all "
		  "nodes: jobs get the GPUs, or shares of them, that the "
		  "placement chooses" },
	DRIVER_FIELDS(struct options),
	{ 0 },
};

static const struct cli_program program = {
	.name = "gpemu-sched run",
	.args = "-- PROGRAM [OPTION...]",
	.summary = "Run the jobs of a trace as processes, gpemu-train with "
		   "these options, when and where a policy decides; print the "
		   "result beside that of the event clock.",
	.notes = "--trace, a cluster (--cluster or --nodes) and --output are "
		 "required. In the options {class}, {job}, {cores}, {gpu} and "
		 "{node} stand for the job's class, its number, its CPUs, the "
		 "model of its GPUs, and their node. After an interruption or "
		 "a kill, the same command with the same --output continues.",
	.fields = fields,
	.kinds = input_kinds,
	.settle = driver_settle,
};

/* --- the folder ----------------------------------------------------------- */

/* Made if missing. Other users may not write there: a link that they put there
 * would lead logs, records and checkpoints to other files. */
static int make_own(const char *dir, struct err *err)
{
	struct stat st;
	int r = mkdir(dir, 0755);

	if (r < 0 && errno == EEXIST)
		r = lstat(dir, &st);
	else if (r == 0)
		return 0;
	if (r == 0 && S_ISLNK(st.st_mode) && util_follows(st.st_uid))
		r = stat(dir, &st);
	if (r < 0)
		return err_set(err, -errno, "%s: %s", dir, strerror(errno));
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(err, -EACCES,
			       "%s: not a folder that this user alone can "
			       "write to",
			       dir);
	return 0;
}

/* With `jobs` in it. The lock is dropped with the descriptor; processes that
 * are started do not have it. */
static int open_folder(const char *dir, int *ret_lock, struct err *err)
{
	_cleanup_free_ char *jobs = NULL, *lock = NULL;
	_cleanup_close_ int fd = -1;
	struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct flock holder = all;

	int r = asprintf(&jobs, "%s/jobs", dir) < 0 ||
				asprintf(&lock, "%s/lock", dir) < 0
			? -ENOMEM
			: make_own(dir, err);

	if (r == 0)
		r = make_own(jobs, err);
	if (r < 0)
		return r;
	/* who may read a file can lock it */
	fd = open(lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(err, -errno, "%s: %s", lock, strerror(errno));
	if (fcntl(fd, F_SETLK, &all) < 0) {
		fcntl(fd, F_GETLK, &holder);
		return err_set(err, -EBUSY,
			       "%s: another gpemu-sched runs there (process "
			       "%d)",
			       dir, (int)holder.l_pid);
	}
	*ret_lock = TAKE_FD(fd);
	return 0;
}

/* What a command that goes on must repeat: its options, and what they name. */
static json_t *identity(const struct options *o, const struct sched_workload *w,
			const struct cluster *c)
{
	json_t *j = conf_json(fields, o), *words = json_array();
	double work_ns = 0, gpus = 0;
	_cleanup_free_ char *text = NULL;
	json_t *as_read;

	for (size_t i = 0; i < w->n; i++) {
		work_ns += w->jobs[i].work_ns;
		gpus += w->jobs[i].n_gpus;
	}
	for (char **word = o->command; *word; word++)
		json_array_append_new(words, json_bytes(*word));
	json_object_set_new(j, "command", words);
	/* what a record shows of the run is no part of it */
	json_object_del(j, "per_job");
	json_object_set_new(
		j, "content of the trace",
		json_pack("[f,f,f]", work_ns, gpus,
			  w->n ? (double)w->jobs[w->n - 1].arrival_ns : 0.));
	json_object_set_new(j, "content of the cluster",
			    json_pack("[I,I,I,I]", (json_int_t)c->n,
				      (json_int_t)c->whole.gpu_milli,
				      (json_int_t)c->whole.cpu_milli,
				      (json_int_t)c->whole.memory_mib));
	/* numbers as a file has them */
	text = json_text(j);
	as_read = text ? json_loads(text, 0, NULL) : NULL;
	json_decref(j);
	return as_read;
}

/* --- results -------------------------------------------------------------- */

/* The policy on the event clock, and live. */
enum { SIMULATED, LIVE, N_CELLS };

static int make_cells(struct sched_sim *sim, const struct options *o,
		      struct err *err)
{
	static const char *const clocks[] = { ", simulated", ", live" };
	int r = 0;

	sim->cells = calloc(N_CELLS, sizeof(*sim->cells));
	if (!sim->cells)
		return -ENOMEM;
	sim->n_cells = N_CELLS;
	for (size_t i = 0; r >= 0 && i < N_CELLS; i++)
		r = driver_cell(&sim->cells[i], o->policy, o->placement,
				clocks[i], err);
	return MIN(r, 0);
}

/* arbitrary: more than starts of processes take from jobs of minutes */
#define FAR .2

static void check_lengths(const struct sched_sim *sim)
{
	double ratio = sim->cells[LIVE].result.all.run_s /
		       sim->cells[SIMULATED].result.all.run_s;

	if (fabs(ratio - 1) > FAR)
		log_warn("jobs ran %.2f times as long as simulated: is --step "
			 "the time of a step? Process starts and other load "
			 "count, too",
			 ratio);
}

/* Takes over the jobs. */
static int live_result(struct live *l, struct sched_sim *sim)
{
	struct sched_sim_cell *c = &sim->cells[LIVE];
	double gpus = (double)sim->cluster->whole.gpu_milli / GPU_MILLI;
	int r;

	c->jobs = TAKE_PTR(l->run.jobs);
	c->history = l->history;
	l->history = (struct history){ 0 };
	c->result.gpus = gpus;
	r = result_make(sim->workload, c->jobs, &c->result);
	if (r == 0)
		r = result_replay(sim->workload, sim->cluster, &c->history,
				  &c->result);
	if (r < 0)
		return r;
	c->result.decisions = l->run.decisions;
	c->result.n_decisions = l->run.n_decisions;
	c->result.n_events = l->run.n_events;
	if (c->result.makespan_s > 0)
		c->result.utilisation =
			l->use_ns / NS_PER_S / (gpus * c->result.makespan_s);
	c->done = true;
	check_lengths(sim);
	return 0;
}

static int write_record(const struct options *o, const struct sched_sim *sim,
			const struct live *l, struct err *err)
{
	json_auto_t *results = report_json(sim, o->d.per_job);
	json_t *words = json_array(), *names = json_array(), *j;
	const struct sched_workload *w = sim->workload;

	for (char **word = o->command; *word; word++)
		json_array_append_new(words, json_bytes(*word));
	for (size_t i = 0; i < l->run.n; i++)
		if (l->live[i].failed)
			json_array_append_new(names,
					      json_bytes(w->jobs[i].name));
	j = json_pack("{s:s,s:o,s:o,s:b,s:I,s:I,s:[O],s:[O]}", "kind", "LIVE",
		      "command", words, "failed", names, "resumed", l->resumed,
		      "leases", (json_int_t)l->n_leases, "storage_changes",
		      (json_int_t)l->n_storage, "results",
		      json_array_get(results, LIVE), "simulated",
		      json_array_get(results, SIMULATED));
	input_describe(j, w, sim->cluster);
	return input_record(j, fields, o, &o->d.common, err);
}

/* --- from options to results ---------------------------------------------- */

static int run_both(const struct options *o, struct sched_sim *sim,
		    struct live *l, struct err *err)
{
	json_auto_t *same = identity(o, sim->workload, sim->cluster);
	struct live_config config = {
		.of = sim_run_config(sim, &sim->cells[LIVE]),
		.workload = sim->workload,
		.time_scale = o->time_scale,
		.step_ns = o->step_ns,
		.grace_ns = o->grace_ns,
		.retries = o->retries,
		.leases = o->leases,
		.mount = o->mount,
		.gpu_server = o->gpu_server,
		.progress = o->d.progress_mode,
		.dir = o->output,
		.command = o->command,
		.identity = same,
	};
	int r;

	if (!same)
		return -ENOMEM;
	/* also a check of the policy, before anything starts */
	progress_init(&sim->bar, "jobs", sim->workload->n, PROGRESS_OFF);
	r = sim_run(sim, &sim->cells[SIMULATED], err);
	if (r == 0)
		r = live_init(l, &config, err);
	if (r == 0)
		r = live_run(l, err);
	return r;
}

static int run_schedule(const void *options, struct cluster *c,
			struct sched_workload *w, struct err *err)
{
	const struct options *o = options;
	struct sched_sim sim = driver_sim(&o->d, c, w);
	_cleanup_close_ int lock = -1;
	struct live l = { .stop = { .fd = -1 } };
	int r = make_cells(&sim, o, err);

	if (r == 0)
		r = driver_check(&o->d, &sim, err);
	if (r == 0)
		r = open_folder(o->output, &lock, err);
	if (r == 0)
		r = run_both(o, &sim, &l, err);
	if (r == 0)
		r = live_result(&l, &sim);
	if (r == 0 && (!o->d.common.json || strcmp(o->d.common.json, "-")))
		driver_tables(&o->d.charts, &sim, "LIVE and SIMULATED");
	if (r == 0 && o->d.common.json)
		r = write_record(o, &sim, &l, err);
	if (r == 0)
		r = driver_draw(&o->d.charts, &sim, err);
	if (r == 0 && l.n_failed)
		r = err_set(err, -EIO, "%" PRIu64 " of %zu jobs failed",
			    l.n_failed, l.run.n);
	live_fini(&l);
	sim_fini(&sim);
	return r;
}

/* The words behind "--", of which there are `argc` less; NULL: none. */
static char **cut_command(int *argc, char **argv)
{
	for (int i = 1; i < *argc; i++)
		if (!strcmp(argv[i], "--")) {
			*argc = i;
			return argv[i + 1] ? &argv[i + 1] : NULL;
		}
	return NULL;
}

static int check_run(const void *options, struct err *err)
{
	const struct options *o = options;

	if (!o->output)
		return err_set(err, -EINVAL,
			       "no folder for the run: give --output DIR");
	if (!o->command)
		return err_set(err, -EINVAL,
			       "no command of the jobs: give it after --, as "
			       "in -- gpemu-train --loader null");
	return 0;
}

int command_run(int argc, char **argv)
{
	static const struct driver driver = { .program = &program,
					      .check = check_run,
					      .run = run_schedule };
	struct options o = { .policy = strdup("fifo"),
			     .placement = strdup("proportional"),
			     .time_scale = 1,
			     .grace_ns = 60 * NS_PER_S,
			     .leases = true,
			     .command = cut_command(&argc, argv) };

	return driver_command(&driver, &o, argc, argv);
}
