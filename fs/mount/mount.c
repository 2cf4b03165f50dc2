/* SPDX-License-Identifier: MIT */
#include "fs/mount/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "common/json.h"
#include "common/program/notify.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "fs/control/jobs.h"
#include "fs/mount/mountpoint.h"
#include "fs/mount/signals.h"
#include "fs/control/warm.h"
#include "fs/layer/layer_fault.h"
#include "fs/layer/trace.h"
#include "fs/server/object.h"

/* Warns about links that are still links. */
static void report_links(const struct tree *t, const char *spec)
{
	const struct tree_links *l = &t->links;
	char path[PATH_MAX];

	if (!tree_links_left(l))
		return;
	if (tree_path(t, l->first, path, sizeof(path)) < 0)
		snprintf(path, sizeof(path), "%s", tree_name(t, l->first));
	log_warn("%s: symbolic links that stay links: %" PRIu64
		 " to no file or folder, %" PRIu64
		 " in a loop or to one folder too often, %" PRIu64
		 " out of the folders of --follow-links, whose targets are "
		 "read past this mount; the first is %s",
		 spec, l->dangling, l->loops, l->outside, path);
}

static int start_source(struct mount *m, const char *spec, struct err *err)
{
	const char *arg;
	int r;

	m->source = source_of(spec, &arg, err);
	if (!m->source)
		return -EINVAL;
	m->source_state = calloc(1, m->source->plugin.state_size);
	if (!m->source_state || tree_init(&m->tree) < 0)
		return err_set(err, -ENOMEM, "out of memory");
	m->tree.follow = m->o.follow_links;
	m->tree.shared = options_has_word(m->o.mount_options, "allow_other");
	r = m->source->init(m->source_state, arg, err);
	if (r == 0)
		r = m->source->scan(m->source_state, &m->tree, err);
	if (r == 0 && m->source->prepare)
		r = m->source->prepare(m->source_state, err);
	if (r == 0 && !m->tree.n_files)
		log_warn("%s: contains no files", spec);
	report_links(&m->tree, spec);
	if (m->tree.n_hidden)
		log_warn("%s: its own " CTL_DIR_NAME
			 " is hidden by the mount's",
			 spec);
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

/* Warns when the default cache size is reduced to fit the memory. */
static void report_capacity(const struct mount *m)
{
	unsigned n;
	uint64_t has = server_capacity(m->server, &n);
	/* each cache of --layers has this size */
	uint64_t want =
		n * units_capacity_bytes(&m->o.cache_size, m->tree.file_bytes);
	char wants[UNITS_TEXT], gets[UNITS_TEXT];

	if (m->o.tiers.n || !m->o.cache_size.yields || !has || has >= want)
		return;
	log_warn("the %s %s, half of the memory; 35%% of the dataset%s would "
		 "be %s (set --cache-size)",
		 n > 1 ? "caches have" : "cache has",
		 units_human_size((double)has, gets), n > 1 ? " for each" : "",
		 units_human_size((double)want, wants));
}

/* Warns about files that do not fit into the staging buffer. */
static void report_prefetch(const struct mount *m)
{
	uint64_t largest = 0, n = 0;
	char size[UNITS_TEXT], least[UNITS_TEXT];

	for (uint32_t i = 0; m->o.prefetch && i < m->tree.n_nodes; i++) {
		const struct tree_node *node = &m->tree.nodes[i];
		uint64_t bytes = MIN(node->bytes, OBJECT_EXTENT);

		if (!S_ISREG(node->mode) || bytes <= m->o.prefetch)
			continue;
		largest = MAX(largest, bytes);
		n++;
	}
	if (n)
		log_warn("--prefetch %s has no room for %" PRIu64 " of %" PRIu64
			 " files, which are not fetched ahead: give at least "
			 "%s",
			 units_exact_size(m->o.prefetch, size), n,
			 m->tree.n_files, units_exact_size(largest, least));
}

static int start_trace(struct mount *m, struct err *err)
{
	struct trace_config t = { .path = m->o.trace,
				  .tree = &m->tree,
				  .tick = m->tick,
				  .seed = m->o.common.seed };

	return m->o.trace ? trace_new(&t, &m->trace, err) : 0;
}

static int start_server(struct mount *m, struct err *err)
{
	struct server_config c = { .source = m->source,
				   .source_state = m->source_state,
				   .tree = &m->tree,
				   .storage = m->o.storage,
				   .cache_policy = m->o.cache_policy,
				   .cache_size = m->o.cache_size,
				   .tiers = &m->tiers,
				   .admit = options_admit(&m->o),
				   .bytes_in_source =
					   options_bytes_in_source(&m->o),
				   .cache_metadata = m->o.cache_metadata,
				   .seed = m->o.common.seed,
				   .layers = m->o.layers,
				   .groups = m->groups,
				   .group_buffer = m->o.group_buffer,
				   .prefetch_bytes = m->o.prefetch,
				   .prefetch_depth = m->o.prefetch_depth,
				   .memory = m->o.memory };

	int r;

	m->tick = tick_new(m->o.time_scale, m->o.spin);
	if (!m->tick)
		return err_set(err, -ENOMEM, "out of memory");
	if (m->o.keep_awake)
		tick_keep_awake(m->tick); /* where permitted */
	c.tick = m->tick;
	r = start_trace(m, err);
	if (r == 0)
		r = options_tiers(&m->o, &m->tiers, err);
	c.trace = m->trace;
	if (r == 0 && m->o.peers) {
		r = options_peers(&m->o, &m->peers, err);
		c.peers = &m->peers;
	}
	if (r == 0)
		r = server_new(&c, &m->server, err);
	if (r == 0) {
		report_capacity(m);
		report_prefetch(m);
	}
	for (size_t i = 0; r == 0 && i < m->o.faults.n; i++)
		r = server_fault_add(m->server, ((char **)m->o.faults.items)[i],
				     err);
	return r;
}

/* From here on messages go to the target of --log. */
static void switch_log(struct mount *m)
{
	int r;

	/* a reload may already be running */
	pthread_mutex_lock(&m->options_lock);
	log_set_level(options_log_level(&m->o));
	pthread_mutex_unlock(&m->options_lock);
	if (options_log_is(&m->o, "stderr"))
		return;
	if (options_log_is(&m->o, "syslog")) {
		log_to_syslog();
		return;
	}
	r = log_to_file(m->o.log);
	if (r < 0)
		log_error("--log %s: %s", m->o.log, strerror(-r));
}

/* A daemon detaches from its caller's terminal and releases the caller. false:
 * the caller was killed meanwhile, so the mount is not wanted. */
static bool release_caller(struct mount *m)
{
	int last = options_log_is(&m->o, "stderr") ? 1 : 2;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	bool waits;

	for (int fd = 0; null >= 0 && fd <= last; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
	waits = write(m->ready_fd, "", 1) == 1;
	close(m->ready_fd);
	m->ready_fd = -1;
	return waits;
}

/* The mount is usable. */
static void ready(void *ctx)
{
	struct mount *m = ctx;
	int r;

	switch_log(m);
	if (m->ready_fd >= 0 && !release_caller(m)) {
		log_warn("the process that started the mount has gone; "
			 "unmounting");
		kill(getpid(), SIGTERM);
		return;
	}
	__atomic_store_n(&m->ready, true, __ATOMIC_RELEASE);
	r = mount_notify(m, "READY=1\nMAINPID=%d\nSTATUS=serving %s",
			 (int)getpid(), m->mountpoint);
	if (r < 0)
		log_warn("NOTIFY_SOCKET: %s", strerror(-r));
}

static int start_front(struct mount *m, const char *source, struct err *err)
{
	enum front_transport transport;
	enum hit_path hit_path;
	int r = hit_path_parse(m->o.hit_path, &hit_path, err);

	if (r == 0)
		r = front_transport_parse(m->o.transport, &transport, err);
	if (r < 0)
		return r;
	r = warm_new(m->server, &m->warm);
	if (r == 0)
		r = jobs_new(&m->jobs);
	if (r < 0)
		return err_set(err, r, "cannot start: %s", strerror(-r));
	m->fuse_options = options_for_fuse(&m->o);
	m->ctl = (struct ctl){ .server = m->server,
			       .fields = options_program.fields,
			       .options = &m->o,
			       .storage = &m->o.storage,
			       .cache_policy = &m->o.cache_policy,
			       .cache_size = &m->o.cache_size,
			       .tiers = &m->o.tiers,
			       .lock = &m->options_lock,
			       .dir = m->start_dir,
			       .warm = m->warm,
			       .trace = m->trace,
			       .nic = m->o.nic ? m->peers.nic : NULL };
	struct front_config c = { .server = m->server,
				  .ctl = &m->ctl,
				  .jobs = m->jobs,
				  .source = source,
				  .mountpoint = m->mountpoint,
				  .options = m->fuse_options,
				  .hit_path = hit_path,
				  .transport = transport,
				  .ready = ready,
				  .ctx = m };

	/* the last check that can fail, before the old mount goes */
	if (m->o.replace)
		r = front_try(&c, err);
	if (r == 0 && m->o.replace)
		r = mountpoint_replace(m->mountpoint, err);
	return r < 0 ? r : front_new(&c, &m->front, err);
}

/* --- signals ------------------------------------------------------------ */

static void stop(void *ctx)
{
	struct mount *m = ctx;

	pthread_mutex_lock(&m->notify_lock);
	m->stopping = true;
	notify("STOPPING=1");
	pthread_mutex_unlock(&m->notify_lock);
	front_stop(m->front);
}

struct reload {
	struct job job;
	struct mount *mount;
};

static int reload_work(struct job *job)
{
	mount_reload(container_of(job, struct reload, job)->mount);
	return 0;
}

static void reload_done(struct job *job, int r)
{
	(void)job;
	(void)r;
}

static void reload_free(struct job *job)
{
	free(container_of(job, struct reload, job));
}

static void reload(void *ctx)
{
	struct reload *r = malloc(sizeof(*r));

	if (!r) {
		log_error("reload: out of memory");
		return;
	}
	r->job = (struct job){ .work = reload_work,
			       .done = reload_done,
			       .free = reload_free };
	r->mount = ctx;
	jobs_add(r->mount->jobs, &r->job);
}

static void dump(void *ctx)
{
	struct mount *m = ctx;

	ctl_log_stats(&m->ctl);
}

static int start_signals(struct mount *m, struct err *err)
{
	const struct signals_config c = {
		.stop = stop, .reload = reload, .dump = dump, .ctx = m
	};
	int r = signals_new(&c, &m->signals);

	return r < 0 ? err_set(err, r, "signals: %s", strerror(-r)) : 0;
}

/* --json: the stats at the end. */
static int write_record(struct mount *m, struct err *err)
{
	json_auto_t *stats = m->o.common.json ? ctl_stats(&m->ctl) : NULL;

	return stats ? json_write(stats, m->o.common.json, err) : 0;
}

/* --- start and stop ----------------------------------------------------- */

void mount_fini(struct mount *m)
{
	/* answer pending requests */
	jobs_stop(m->jobs);
	warm_stop(m->warm);
	if (m->server)
		server_stop(m->server);
	/* a job may wait for the mount, and uses all that is freed below */
	front_disconnect(m->front);
	jobs_free(m->jobs);
	warm_free(m->warm);
	front_free(m->front);
	server_free(m->server);
	tiers_fini(&m->tiers);
	peer_net_fini(&m->peers);
	trace_free(m->trace);
	if (m->source_state)
		m->source->fini(m->source_state);
	free(m->source_state);
	group_map_free(m->groups);
	tree_fini(&m->tree);
	tick_free(m->tick);
	options_fini(&m->o);
	free(m->mountpoint);
	free(m->fuse_options);
	free(m->start_dir);
}

int mount_serve(struct mount *m, const char *source)
{
	struct err err = { 0 };
	int r = start_source(m, source, &err);

	if (r == 0)
		r = start_groups(m, &err);
	signals_block();
	if (r == 0)
		r = start_server(m, &err);
	if (r == 0)
		r = start_front(m, source, &err);
	if (r == 0)
		r = start_signals(m, &err);
	if (r == 0) {
		if (chdir("/") < 0)
			log_warn("chdir /: %s", strerror(errno));
		r = front_loop(m->front);
		if (r < 0)
			err_set(&err, r, "%s: %s", m->mountpoint, strerror(-r));
		else
			r = write_record(m, &err);
		signals_free(m->signals);
		front_unmount(m->front);
	}
	return r < 0 ? cli_fail(r, &err) : EXIT_STATUS_DONE;
}
