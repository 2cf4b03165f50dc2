/* SPDX-License-Identifier: MIT */
/* gpemu-prepd worker: its options, and the record. */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "common/conf/plugin_choice.h"
#include "common/json.h"
#include "common/log.h"
#include "common/program/cli.h"
#include "common/program/interrupt.h"
#include "common/program/notify.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/node/cores.h"
#include "emu/node/profile_node.h"
#include "emu/profile/profile.h"
#include "loader/engine/engine.h"
#include "service/prepd.h"
#include "service/worker/serve.h"

/* --- what it may read ----------------------------------------------------- */

/* Which files a process may read. */

/*
 * Landlock, and not openat2(2) with RESOLVE_BENEATH: it holds for whoever opens
 * a file in the process, io_uring and libraries included.
 * Source: Documentation/userspace-api/landlock.rst
 */

#define READS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)

static int allow_reads(int rules, const char *path)
{
	_cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);
	struct landlock_path_beneath_attr beneath = { .parent_fd = fd };
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	beneath.allowed_access =
		S_ISDIR(st.st_mode) ? READS : LANDLOCK_ACCESS_FS_READ_FILE;
	return syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH,
		       &beneath, 0) < 0
		       ? -errno
		       : 0;
}

/*
 * From now on this thread, and those that it starts, read only files and
 * folders below `paths`, whatever links lead there; one that does not exist is
 * left out. For good. -ENOTSUP: this kernel cannot (Landlock, Linux 5.13);
 * other -errno.
 */
static int confine_reads(const char *const *paths, size_t n)
{
	const struct landlock_ruleset_attr attr = { .handled_access_fs =
							    READS };
	_cleanup_close_ int rules =
		(int)syscall(SYS_landlock_create_ruleset, &attr,
			     sizeof(attr.handled_access_fs), 0);
	int r = 0;

	if (rules < 0)
		/* not built in, not enabled, or a filter of a container */
		return errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM
			       ? -ENOTSUP
			       : -errno;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = allow_reads(rules, paths[i]);
	/* else only root may give up rights for good */
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	if (r == 0 && syscall(SYS_landlock_restrict_self, rules, 0) < 0)
		r = -errno;
	return r;
}

struct options {
	struct cli_common common;
	char *dispatcher, *listen, *advertise, *key, *nic, *data, *loader;
	uint64_t workers, cores, queue_depth, prefetch, timeout_ns, drain_ns;
	uint64_t share_window;
	double time_scale;
};

#define FIELD(key, type, member) key, type, offsetof(struct options, member)

CONF_CHECK(check_engine, plugin_choice_check, engine_table, "engine")

static const struct conf_field fields[] = {
	{ FIELD("dispatcher", CONF_STRING, dispatcher),
	  .check = prepd_check_address, .arg = "HOST:PORT",
	  .help = "the dispatcher (default 127.0.0.1:7070)" },
	{ FIELD("listen", CONF_STRING, listen), .check = prepd_check_address,
	  .arg = "HOST:PORT",
	  .help = "where trainers connect (default 127.0.0.1:7071)" },
	{ FIELD("advertise", CONF_STRING, advertise),
	  .check = prepd_check_address, .arg = "HOST:PORT",
	  .help = "address under which trainers reach it (default: --listen)" },
	{ FIELD("key", CONF_STRING, key), .arg = "FILE",
	  .help = "the secret of dispatcher, workers and trainers, at least 32 "
		  "bytes (default, on one machine: ~/.config/gpemu/key, made "
		  "on first use)" },
	{ FIELD("nic", CONF_STRING, nic), PROFILE_NAME(node),
	  .arg = "NAME|FILE",
	  .help = "node profile whose network card carries the batches "
		  "(default: no limit)" },
	{ FIELD("data", CONF_STRING, data), .arg = "DIR|FILE",
	  .help = "read datasets only at or below DIR: the path that the "
		  "trainer names, if it is there, else DIR itself (required "
		  "with --key; default: any path, for trainers of your own)" },
	{ FIELD("loader", CONF_STRING, loader), .check = check_engine,
	  .arg = "ENGINE[:KEY=VALUE,...]",
	  .help = "read engine (--list engine; default async)" },
	{ FIELD("workers", CONF_UINT, workers), .max = 1024, .arg = "N",
	  .help = "threads that read and transform, for each job; 0 (default): "
		  "one per CPU" },
	{ FIELD("cores", CONF_UINT, cores), .max = CORES_MAX, .arg = "N",
	  .help = "virtual cores, for jobs with --prep emulated; 0: as "
		  "--workers" },
	{ FIELD("queue_depth", CONF_UINT, queue_depth), .max = 32768,
	  .arg = "N",
	  .help = "reads in flight over all threads; 0 (default): as "
		  "gpemu-train" },
	{ FIELD("prefetch", CONF_UINT, prefetch), .max = 4096, .arg = "N",
	  .help = "batches prefetched per thread or virtual core; 0 (default): "
		  "as gpemu-train" },
	{ FIELD("share_window", CONF_SIZE, share_window), .min = 1, .max = 1e15,
	  .arg = "SIZE",
	  .help = "memory for the latest batches of a shared job: slower "
		  "trainers skip older ones (default 256M)" },
	{ FIELD("timeout", CONF_DURATION, timeout_ns), .arg = "TIME",
	  .min = NS_PER_MS, .max = 3600. * NS_PER_S,
	  .help = "time limit of a message; the connection of a slower one is "
		  "closed (default 10s)" },
	{ FIELD("drain", CONF_DURATION, drain_ns), .arg = "TIME",
	  .max = 86400. * NS_PER_S,
	  .help = "wall time after SIGTERM to finish its splits (default "
		  "30s)" },
	{ FIELD("time_scale", CONF_DOUBLE, time_scale), .min = 1e-6, .max = 1e3,
	  .arg = "X", .help = "wall seconds per emulated second" },
	CLI_COMMON_FIELDS(struct options, common),
	{ 0 },
};

static const struct cli_kind kinds[] = {
	{ "engine", .table = engine_table },
	{ "node", .print = profile_names_print, .which = PROFILE_NODE },
	{ 0 },
};

static const struct cli_program program = {
	.name = "gpemu-prepd worker",
	.summary = "Prepare batches for trainers, as directed by the "
		   "dispatcher of a preparation service.",
	.notes = "SIGTERM ends it when the trainers have its batches; a second "
		 "one at once.",
	.fields = fields,
	.kinds = kinds,
};

struct interrupted {
	struct serve *s;
	uint64_t drain_ns;
};

static void interrupted(void *ctx)
{
	const struct interrupted *i = ctx;

	serve_drain(i->s, i->drain_ns);
}

static int limit_card(const char *name, struct nic *nic, struct err *err)
{
	struct node_profile p = { 0 };
	int r = node_profile_load(name, &p, err);

	if (r == 0 && p.nic.gb_per_s <= 0)
		r = err_set(err, -ENODEV, "--nic %s: the node has no nic",
			    name);
	if (r == 0)
		nic_limit(nic, p.nic.gb_per_s * 1e9, p.nic.latency_ns);
	node_profile_free(&p);
	return r;
}

static int write_record(const struct options *o, const struct serve *s,
			struct err *err)
{
	json_auto_t *j = NULL;

	if (!o->common.json)
		return 0;
	j = serve_json(s);
	if (j)
		json_add_real(j, "cpu_s", (double)tick_cpu() / NS_PER_S);
	if (j)
		json_object_set_new(j, "config", conf_json(fields, o));
	return j ? json_write(j, o->common.json, err) : -ENOMEM;
}

static int serve_until_stopped(const struct options *o, struct serve *s,
			       struct err *err)
{
	struct interrupted ctx = { s, o->drain_ns };
	struct interrupt interrupt = { .fn = interrupted, .ctx = &ctx };
	int r = interrupt_begin(&interrupt);

	if (r < 0)
		return err_set(err, r, "%s", strerror(-r));
	log_info("listening at %s", o->listen);
	r = serve_run(s, err);
	interrupt_end(&interrupt);
	return r == 0 ? write_record(o, s, err) : r;
}

static int find_all(const struct options *o, struct serve_config *c,
		    struct access *access, struct addr *dispatcher,
		    struct addr *listen, struct err *err)
{
	int r = 0;

	if (o->key && !o->data)
		r = err_set(err, -EINVAL,
			    "--key needs --data: everyone with the key may "
			    "read what is there");
	if (r == 0)
		r = access_init(access, o->key, err);
	if (r == 0)
		r = access_find(access, o->dispatcher, dispatcher, err);
	if (r == 0)
		r = access_find(access, o->listen, listen, err);
	if (r == 0 && o->nic)
		r = limit_card(o->nic, access->nic, err);
	if (r == 0 && o->common.json)
		r = json_check(o->common.json, err);
	if (r == 0 && strlen(c->address) > SERVE_ADDRESS)
		r = err_set(err, -EINVAL, "--advertise: more than %d bytes",
			    SERVE_ADDRESS);
	return r;
}

/* The folder of --data. */
static char *folder_of(const char *data)
{
	char *path = realpath(data, NULL), *slash = path;
	struct stat st;

	if (path && stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
		slash = strrchr(path, '/');
		slash[slash == path] = 0;
	}
	return path;
}

/* What a trainer names, a link there, or an error in the worker: nothing else
 * is read from now on. Names are found and keys are read before. */
static int confine(const struct options *o, struct err *err)
{
	_cleanup_free_ char *data = o->data ? folder_of(o->data) : NULL,
			    *profiles = NULL;
	const char *paths[] = { NULL, NULL,
				/* CPUs, and memory that a cgroup has */
				"/sys", "/proc/meminfo", "/proc/stat",
				"/proc/self/cgroup", "/proc/self/mountinfo" };
	int r;

	if (!o->data)
		return 0;
	if (!data)
		return err_set(err, -errno, "--data %s: %s", o->data,
			       strerror(errno));
	r = profile_database(&profiles, err);
	if (r < 0)
		return r;
	paths[0] = data;
	paths[1] = profiles;
	r = confine_reads(paths, ARRAY_SIZE(paths));
	if (r == -ENOTSUP) {
		log_warn("this kernel has no Landlock: links below %s may "
			 "lead out of it",
			 o->data);
		return 0;
	}
	return r < 0 ? err_set(err, r, "Landlock: %s", strerror(-r)) : 0;
}

static int run_worker(const struct options *o)
{
	struct access access = { 0 };
	struct addr dispatcher = { 0 }, listen = { 0 };
	struct err err = { 0 };
	struct tick *tick = tick_new(o->time_scale, TICK_DEFAULT_SPIN_NS);
	struct serve_config c = {
		.tick = tick,
		.access = &access,
		.dispatcher = &dispatcher,
		.listen = &listen,
		.address = o->advertise ? o->advertise : o->listen,
		.timeout_ns = o->timeout_ns,
		.window_bytes = o->share_window,
		.registered = notify_ready,
		.options = { .data = o->data,
			     .loader = o->loader,
			     .workers = o->workers,
			     .cores = o->cores,
			     .queue_depth = o->queue_depth,
			     .prefetch = o->prefetch,
			     .time_scale = o->time_scale },
	};
	struct serve *s = NULL;
	int r = tick ? find_all(o, &c, &access, &dispatcher, &listen, &err)
		     : -ENOMEM;

	if (r == 0)
		r = confine(o, &err);
	interrupt_block();
	if (r == 0)
		r = serve_new(&c, &s, &err);
	if (r == 0)
		r = serve_until_stopped(o, s, &err);
	serve_free(s);
	addr_fini(&listen);
	addr_fini(&dispatcher);
	access_fini(&access);
	tick_free(tick);
	return r < 0 ? cli_fail(r, &err) : EXIT_STATUS_DONE;
}

int prepd_worker_main(int argc, char **argv)
{
	struct options o = { .dispatcher = strdup("127.0.0.1:7070"),
			     .listen = strdup("127.0.0.1:7071"),
			     .loader = strdup("async"),
			     /* arbitrary: tens of batches of images */
			     .share_window = 256 << 20,
			     .timeout_ns = 10 * NS_PER_S,
			     .drain_ns = 30 * NS_PER_S,
			     .time_scale = 1 };
	int status;

	cli_parse(&program, argc, argv, &o, NULL);
	status = run_worker(&o);
	conf_free(fields, &o);
	return status;
}
