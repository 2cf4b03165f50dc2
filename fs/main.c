/* SPDX-License-Identifier: MIT */
/*
 * gpemu-fs: from the command line to a serving mount and back.
 *
 *	parent                         daemon
 *	  | fork ----------------------> scan the source, start the server,
 *	  |                              mount, serve
 *	  | wait for a byte in a pipe <- the kernel's INIT was answered
 *	  | exit 0                       stderr -> syslog, on it goes
 *	  | or the pipe closes: exit with the daemon's status, whose message
 *	  | went to the stderr that both still share
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/log.h"
#include "common/tick.h"
#include "common/util.h"
#include "emu/profile.h"
#include "fs/fault.h"
#include "fs/front.h"
#include "fs/mountpoint.h"

struct options {
	struct cli_common common;
	char *storage, *cache_policy, *mount_options, *hit_path;
	struct units_capacity cache_size;
	char *group, *group_order;
	uint64_t group_buffer;
	struct conf_list faults; /* of char * */
	double time_scale;
	uint64_t spin;
	bool foreground;
};

static int check_fault(const void *object, struct err *err)
{
	const char *text = *(char *const *)object;
	struct fault_rule *rules;
	size_t n;
	int r = fault_rules_parse(text, strlen(text), &rules, &n, err);

	if (r == 0)
		fault_rules_free(rules, n);
	return r;
}

static const struct conf_field fields[] = {
	{ "storage", CONF_STRING, offsetof(struct options, storage),
	  .short_opt = 's', .arg = "NAME|FILE",
	  .help = "storage profile (default: ideal, which adds nothing)" },
	{ "cache_policy", CONF_STRING, offsetof(struct options, cache_policy),
	  .short_opt = 'p', .arg = "NAME",
	  .help = "cache policy (default: lru; none caches nothing)" },
	{ "cache_size", CONF_CAPACITY, offsetof(struct options, cache_size),
	  .short_opt = 'c', .arg = "SIZE|P%",
	  .help = "capacity in bytes, or percent of the dataset's bytes "
		  "(default: 35%)" },
	{ "group", CONF_STRING, offsetof(struct options, group),
	  .short_opt = 'g', .arg = "N|auto",
	  .help = "read N files with every read of the device; auto (or 0): "
		  "the groups of the pack (default: 1)" },
	{ "group_order", CONF_STRING, offsetof(struct options, group_order),
	  .arg = "ORDER",
	  .help = "which files make a group: sequential, random, diffclass or "
		  "a FILE (default: sequential)" },
	{ "group_buffer", CONF_SIZE, offsetof(struct options, group_buffer),
	  .arg = "SIZE",
	  .help = "memory for files that were read with their group and that "
		  "nobody asked for yet (default: 64M, or two groups)" },
	{ "foreground", CONF_BOOL, offsetof(struct options, foreground),
	  .short_opt = 'f', .cli_only = true,
	  .help = "stay in the foreground" },
	{ "mount_options", CONF_STRING, offsetof(struct options, mount_options),
	  .short_opt = 'o', .arg = "OPT[,OPT]",
	  .help = "mount options, as mount(8) takes them" },
	{ "hit_path", CONF_STRING, offsetof(struct options, hit_path),
	  .arg = "PATH",
	  .help = "how cached files are read: auto, reply or passthrough "
		  "(default: auto)" },
	{ "fault", CONF_LIST, offsetof(struct options, faults),
	  .item = CONF_STRING, .item_size = sizeof(char *),
	  .check = check_fault, .arg = "RULE[;RULE]",
	  .help = "make operations fail or wait, such as "
		  "op=read,every=100,errno=EIO; may be given several times" },
	{ "time_scale", CONF_DOUBLE, offsetof(struct options, time_scale),
	  .arg = "X", .min = 1e-6, .max = 1e6,
	  .help = "multiply every emulated duration by X (default: 1)" },
	{ "spin", CONF_DURATION, offsetof(struct options, spin),
	  .arg = "DURATION", .max = NS_PER_MS,
	  .help = "spin this long before a deadline instead of sleeping "
		  "(default: 120us)" },
	CLI_COMMON_FIELDS(struct options, common),
	{ 0 },
};

static const struct cli_kind kinds[] = {
	{ "policy", .table = policy_table },
	{ "source", .table = source_table },
	{ "storage", .print = profile_names_print, .which = PROFILE_STORAGE },
	{ 0 },
};

static const struct cli_program program = {
	.name = "gpemu-fs",
	.args = "SOURCE MOUNTPOINT",
	.n_args = 2,
	.summary = "Serve the dataset SOURCE (a directory) read-only at "
		   "MOUNTPOINT, behind an emulated storage device with a "
		   "cache.",
	.notes = "MOUNTPOINT/.gpemu/ holds stats, stats.prom, config and "
		 "control. Unmount with fusermount3 -u MOUNTPOINT, SIGTERM or "
		 "Ctrl-C. --list policy, source or storage shows what there "
		 "is.",
	.fields = fields,
	.kinds = kinds,
};

/* All that a mount is made of; torn down in the order of `fini`. */
struct mount {
	struct options o;
	const struct source_ops *source;
	void *source_state;
	struct tree tree;
	struct tick *tick;
	struct server *server;
	pthread_mutex_t options_lock;
	struct group_map *groups;
	struct ctl ctl;
	struct front *front;
	char *mountpoint;
	enum hit_path hit_path;
	int ready_fd; /* the daemon's end of the pipe, or -1 */
};

static int start_source(struct mount *m, const char *spec, struct err *err)
{
	const char *colon = strchr(spec, ':');
	_cleanup_free_ char *word = NULL;
	const struct plugin *p = NULL;
	const char *arg = spec;
	int r;

	if (colon && access(spec, F_OK) < 0) {
		word = strndup(spec, (size_t)(colon - spec));
		p = word ? plugin_find(source_table, "source", word, err)
			 : NULL;
		arg = colon + 1;
	} else {
		p = plugin_find(source_table, "source", "dir", err);
	}
	if (!p)
		return err_set(err, -EINVAL, "no such source");
	m->source = container_of(p, const struct source_ops, plugin);
	m->source_state = calloc(1, p->state_size);
	if (!m->source_state || tree_init(&m->tree, 0555, 0) < 0)
		return err_set(err, -ENOMEM, "out of memory");
	r = m->source->init(m->source_state, arg, err);
	if (r == 0)
		r = m->source->scan(m->source_state, &m->tree, err);
	if (r == 0 && !m->tree.n_files)
		log_warn("%s: no files in it", spec);
	return r;
}

static int start_groups(struct mount *m, struct err *err)
{
	const struct conf_field field = { "group", CONF_UINT, 0,
					  .max = UINT32_MAX - 1 };
	uint64_t size = 0;

	if (strcmp(m->o.group, "auto") &&
	    conf_set(&field, &size, m->o.group, err) < 0) {
		err_prefix(err, "--group");
		return -EINVAL;
	}
	if (size == 1)
		return 0;
	if (size == 0)
		return group_map_of_source(m->source, m->source_state, &m->tree,
					   &m->groups, err);
	return group_map_new(&m->tree, (uint32_t)size, m->o.group_order,
			     m->o.common.seed, &m->groups, err);
}

static int start_server(struct mount *m, struct err *err)
{
	struct server_config c = { .source = m->source,
				   .source_state = m->source_state,
				   .tree = &m->tree,
				   .storage = m->o.storage,
				   .cache_policy = m->o.cache_policy,
				   .cache_size = m->o.cache_size,
				   .seed = m->o.common.seed,
				   .groups = m->groups,
				   .group_buffer = m->o.group_buffer };
	int r;

	m->tick = tick_new(m->o.time_scale, m->o.spin);
	if (!m->tick)
		return err_set(err, -ENOMEM, "out of memory");
	c.tick = m->tick;
	r = server_new(&c, &m->server, err);
	for (size_t i = 0; r == 0 && i < m->o.faults.n; i++)
		r = server_fault_add(m->server, ((char **)m->o.faults.items)[i],
				     err);
	return r;
}

/* The kernel has taken us into service: let the parent go. */
static void ready(void *ctx)
{
	struct mount *m = ctx;
	int null;

	if (m->ready_fd < 0)
		return;
	log_to_syslog();
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; null >= 0 && fd <= 2; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
	if (write(m->ready_fd, "", 1) < 0)
		log_warn("nobody waited for the mount");
	close(m->ready_fd);
	m->ready_fd = -1;
}

static int start_front(struct mount *m, const char *source, struct err *err)
{
	m->ctl = (struct ctl){ .server = m->server,
			       .fields = fields,
			       .options = &m->o,
			       .storage = &m->o.storage,
			       .cache_policy = &m->o.cache_policy,
			       .cache_size = &m->o.cache_size,
			       .lock = &m->options_lock };
	struct front_config c = { .server = m->server,
				  .ctl = &m->ctl,
				  .source = source,
				  .mountpoint = m->mountpoint,
				  .options = m->o.mount_options,
				  .hit_path = m->hit_path,
				  .ready = ready,
				  .ctx = m };

	return front_new(&c, &m->front, err);
}

/* Signals are for the main thread: what it starts inherits the mask. */
static void block_signals(bool block)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(block ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

static void fini(struct mount *m)
{
	if (m->server)
		server_stop(m->server); /* answers what still waits */
	front_free(m->front);
	server_free(m->server);
	if (m->source_state)
		m->source->fini(m->source_state);
	free(m->source_state);
	group_map_free(m->groups);
	tree_fini(&m->tree);
	tick_free(m->tick);
	conf_free(fields, &m->o);
	free(m->mountpoint);
}

/* The whole life of the mount; returns the exit status. */
static int serve(struct mount *m, char **args)
{
	struct err err = { 0 };
	int r = start_source(m, args[0], &err);

	if (r == 0)
		r = start_groups(m, &err);
	block_signals(true);
	if (r == 0)
		r = start_server(m, &err);
	if (r == 0)
		r = start_front(m, args[0], &err);
	block_signals(false);
	if (r == 0) {
		if (chdir("/") < 0)
			log_warn("chdir /: %s", strerror(errno));
		r = front_loop(m->front);
		if (r < 0)
			err_set(&err, r, "%s: %s", m->mountpoint, strerror(-r));
		front_unmount(m->front);
	}
	return r < 0 ? cli_fail(r, &err) : EXIT_STATUS_DONE;
}

/* The parent's side: 0 when the daemon serves, else what it ended with. */
static int wait_for_daemon(pid_t pid, int fd)
{
	char byte;
	int status;
	ssize_t n;

	do
		n = read(fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n == 1)
		return EXIT_STATUS_DONE;
	if (waitpid(pid, &status, 0) == pid && WIFEXITED(status))
		return WEXITSTATUS(status);
	log_error("the daemon died before it could serve");
	return EXIT_STATUS_FAILED;
}

static int daemonise(struct mount *m, char **args)
{
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0 || (pid = fork()) < 0) {
		log_error("cannot start a daemon: %s", strerror(errno));
		return EXIT_STATUS_NOT_NOW;
	}
	if (pid) {
		close(fds[1]);
		return wait_for_daemon(pid, fds[0]);
	}
	close(fds[0]);
	m->ready_fd = fds[1];
	setsid();
	return serve(m, args);
}

int main(int argc, char **argv)
{
	struct mount m = { .ready_fd = -1,
			   .options_lock = PTHREAD_MUTEX_INITIALIZER,
			   .o = { .cache_size = { .fraction = .35 },
				  .time_scale = 1,
				  .spin = TICK_DEFAULT_SPIN_NS } };
	struct err err = { 0 };
	char *args[2];
	int r;

	m.o.storage = strdup("ideal");
	m.o.cache_policy = strdup("lru");
	m.o.hit_path = strdup("auto");
	m.o.group = strdup("1");
	m.o.group_order = strdup("sequential");
	cli_parse(&program, argc, argv, &m.o, args);
	r = hit_path_parse(m.o.hit_path, &m.hit_path, &err);
	if (r < 0) {
		log_error("%s", err.text);
		fini(&m);
		return EXIT_STATUS_USAGE;
	}
	r = mountpoint_prepare(args[1], m.o.mount_options, &m.mountpoint, &err);
	if (r < 0)
		r = cli_fail(r, &err);
	else
		r = m.o.foreground ? serve(&m, args) : daemonise(&m, args);
	fini(&m);
	return r;
}
