/* SPDX-License-Identifier: MIT */
#include "fs/mount/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "common/json.h"
#include "common/program/notify.h"
#include "common/tick.h"
#include "common/util.h"
#include "emu/profile/profile_storage.h"
#include "fs/control/jobs.h"
#include "fs/mount/mountpoint.h"
#include "fs/setup/signals.h"
#include "fs/control/warm.h"
#include "fs/upper/upper.h"

static int start_server(struct mount *m, struct err *err)
{
	struct setup_more more = { .seed = m->o.common.seed,
				   .writable_scale = m->o.writable_scale };
	int r = 0;

	if (m->o.peers) {
		r = options_peers(&m->o, &m->peers, err);
		more.peers = &m->peers;
	}
	return r == 0 ? setup_server(&m->setup, &m->o.base, &more, err) : r;
}

/* From here on messages go to the target of --log. */
static void switch_log(struct mount *m)
{
	int r;

	/* a reload may already be running */
	pthread_mutex_lock(&m->options_lock);
	log_set_level(setup_log_level(&m->o.base, m->o.common.verbose));
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

static int start_upper(struct mount *m, const char *spec, struct err *err)
{
	const char *dir = m->o.writable;
	uint64_t capacity = m->o.capacity;
	struct rlimit files;
	int r;

	if (!dir)
		return 0;
	if (!capacity)
		capacity = server_storage(m->setup.server)->capacity.bytes;
	r = setup_check_writable(&m->setup, dir, spec, err);
	if (r < 0)
		return r;
	if (setup_overlap(m->mountpoint, dir))
		return err_set(err, -EINVAL,
			       "--writable %s: it and the mount point %s must "
			       "not contain each other",
			       dir, m->mountpoint);
	/* each file that a client has open takes a descriptor */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	r = upper_new(dir, &m->setup.tree, &m->upper, err);
	if (r == 0 && capacity)
		r = upper_limit(m->upper, capacity, m->o.writable_scale, err);
	if (r < 0 && m->upper)
		err_prefix(err, "--writable %s", dir);
	return r;
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
	r = warm_new(m->setup.server, &m->warm);
	if (r == 0)
		r = jobs_new(&m->jobs);
	if (r < 0)
		return err_set(err, r, "cannot start: %s", strerror(-r));
	m->fuse_options = options_for_fuse(&m->o);
	m->ctl = (struct ctl){ .server = m->setup.server,
			       .fields = options_program.fields,
			       .options = &m->o,
			       .storage = &m->o.base.fs.storage,
			       .cache_policy = &m->o.base.fs.cache_policy,
			       .cache_size = &m->o.base.fs.cache_size,
			       .tiers = &m->o.base.fs.tiers,
			       .lock = &m->options_lock,
			       .dir = m->start_dir,
			       .warm = m->warm,
			       .trace = m->setup.trace,
			       .nic = m->o.base.fs.nic ? m->peers.nic : NULL };
	struct front_config c = { .server = m->setup.server,
				  .ctl = &m->ctl,
				  .upper = m->upper,
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
	if (m->setup.server)
		server_stop(m->setup.server);
	/* a job may wait for the mount, and uses all that is freed below */
	front_disconnect(m->front);
	jobs_free(m->jobs);
	warm_free(m->warm);
	front_free(m->front);
	upper_free(m->upper);
	setup_fini(&m->setup);
	peer_net_fini(&m->peers);
	options_fini(&m->o);
	free(m->mountpoint);
	free(m->fuse_options);
	free(m->start_dir);
}

int mount_serve(struct mount *m, const char *source)
{
	struct err err = { 0 };
	int r = setup_source(&m->setup, source,
			     setup_has_word(m->o.mount_options, "allow_other"),
			     m->o.base.follow_links, &err);

	signals_block();
	if (r == 0)
		r = start_server(m, &err);
	if (r == 0)
		r = start_upper(m, source, &err);
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
