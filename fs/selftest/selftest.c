/* SPDX-License-Identifier: MIT */
/*
 * The profile gives the lines. A mount of the ideal device measures the mount's
 * own latency and highest rate, which determine the scales. Then each line is
 * measured on a mount of the profile, and compared in emulated units.
 */
#include "fs/selftest/selftest.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/json.h"
#include "common/log.h"
#include "common/units.h"
#include "common/util.h"
#include "fs/mount/mountpoint.h"
#include "fs/selftest/selftest_line.h"

/*
 * The mounts of a self-test: one at a time, served by a child process.
 *
 *	this process                     child
 *	  | fork ------------------------> mount, serve
 *	  | watcher: waits for a signal    |
 *	  | a byte in the pipe <-----------+ it is usable
 *	  | client threads               <-> requests
 *	  | SIGTERM to the watcher, which
 *	  | forwards it ------------------> unmount, end
 *	  | wait for it
 *
 * So a normal end, Ctrl-C and SIGTERM take the same path. When the mount ends,
 * the client's pending calls fail, and the measurement ends. If the parent is
 * killed by SIGKILL, the kernel sends the child SIGTERM.
 */

struct selftest_mounter {
	const struct selftest_config *config;
	char *mountpoint;
	bool temporary; /* remove the mount point at the end */
	sigset_t signals, old_signals;
	pid_t pid;	     /* the serving child, or 0 */
	const char *storage; /* the mounted profile; NULL: none */
	double time_scale;
	pthread_t watcher;
	int stopping, interrupted; /* atomic */
};

/* Has a signal ended it? */
static bool selftest_interrupted(const struct selftest_mounter *m)
{
	return __atomic_load_n(&m->interrupted, __ATOMIC_RELAXED);
}

/* Prepare the mount point and take over this process's signals. -errno with a
 * text. */
static int selftest_mounter_init(struct selftest_mounter *m,
				 const struct selftest_config *config,
				 struct err *err)
{
	const char *tmp = getenv("TMPDIR");
	char *path = NULL;

	*m = (struct selftest_mounter){ .config = config };
	if (config->mountpoint)
		path = strdup(config->mountpoint);
	else if (asprintf(&path, "%s/gpemu-selftest.XXXXXX",
			  tmp && tmp[0] ? tmp : "/tmp") < 0)
		path = NULL;
	if (!path)
		return err_set(err, -ENOMEM, "out of memory");
	if (!config->mountpoint && !mkdtemp(path)) {
		err_set(err, -errno, "%s: %s", path, strerror(errno));
		free(path);
		return -EIO;
	}
	m->mountpoint = path;
	m->temporary = !config->mountpoint;
	sigemptyset(&m->signals);
	sigaddset(&m->signals, SIGINT);
	sigaddset(&m->signals, SIGTERM);
	sigaddset(&m->signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &m->signals, &m->old_signals);
	return 0;
}

static void *watch(void *arg)
{
	struct selftest_mounter *m = arg;
	int signal;

	sigwait(&m->signals, &signal);
	if (!__atomic_load_n(&m->stopping, __ATOMIC_ACQUIRE))
		__atomic_store_n(&m->interrupted, 1, __ATOMIC_RELAXED);
	kill(m->pid, SIGTERM);
	return NULL;
}

static void stop(struct selftest_mounter *m)
{
	int status;

	if (!m->pid)
		return;
	__atomic_store_n(&m->stopping, 1, __ATOMIC_RELEASE);
	pthread_kill(m->watcher, SIGTERM);
	pthread_join(m->watcher, NULL);
	while (waitpid(m->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		log_error("the process that served the mount died of signal %d",
			  WTERMSIG(status));
	m->pid = 0;
	m->storage = NULL;
}

/* Unmount, release everything. */
static void selftest_mounter_fini(struct selftest_mounter *m)
{
	struct err err = { 0 };
	char *path = NULL;

	if (!m->mountpoint)
		return;
	stop(m);
	/* if the child died, a dead mount is left: this clears it */
	if (mountpoint_prepare(m->mountpoint, "nonempty", false, &path, &err) <
	    0)
		log_error("%s", err.text);
	free(path);
	if (m->temporary && rmdir(m->mountpoint) < 0)
		log_error("%s: %s", m->mountpoint, strerror(errno));
	free(m->mountpoint);
	pthread_sigmask(SIG_SETMASK, &m->old_signals, NULL);
}

__attribute__((noreturn)) static void serve(struct selftest_mounter *m,
					    pid_t parent,
					    const struct selftest_mount *what)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(EXIT_STATUS_FAILED); /* the parent has ended */
	exit(m->config->serve(m->config->ctx, what));
}

/* Start the child; its end of the pipe is `fds[1]`. -errno. */
static int start_child(struct selftest_mounter *m, const int fds[2])
{
	struct selftest_mount what = { .storage = m->storage,
				       .time_scale = m->time_scale,
				       .source = m->config->source,
				       .mountpoint = m->mountpoint,
				       .ready_fd = fds[1] };
	pid_t parent = getpid();
	int r;

	fflush(NULL); /* else both processes write the buffered text */
	m->pid = fork();
	if (m->pid < 0) {
		m->pid = 0;
		return -errno;
	}
	if (!m->pid) {
		close(fds[0]);
		serve(m, parent, &what);
	}
	m->stopping = 0;
	r = -pthread_create(&m->watcher, NULL, watch, m);
	if (r < 0) {
		kill(m->pid, SIGTERM);
		waitpid(m->pid, NULL, 0);
		m->pid = 0;
	}
	return r;
}

/*
 * Make a fresh mount of this storage at this scale: the kernel has cached no
 * names of it yet. `storage` must stay valid. -EINTR (a signal), -EIO (reported
 * on stderr), -errno, with a text.
 */
static int selftest_mount_fresh(struct selftest_mounter *m, const char *storage,
				double time_scale, struct err *err)
{
	int fds[2], r;
	char byte;
	ssize_t n;

	stop(m);
	if (selftest_interrupted(m))
		return err_set(err, -EINTR, "interrupted by a signal");
	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set(err, -errno, "%s", strerror(errno));
	m->storage = storage;
	m->time_scale = time_scale;
	r = start_child(m, fds);
	close(fds[1]);
	if (r == 0) {
		do
			n = read(fds[0], &byte, 1);
		while (n < 0 && errno == EINTR);
		if (n != 1)
			r = selftest_interrupted(m) ? -EINTR : -EIO;
	}
	close(fds[0]);
	if (r == -EIO)
		return err_set(err, r, "no mount to test");
	if (r == -EINTR)
		return err_set(err, r, "interrupted by a signal");
	return r < 0 ? err_set(err, r, "cannot start: %s", strerror(-r)) : 0;
}

/*
 * 1 TB. Files are large, to spread random reads; one a folder, since the kernel
 * spends some 5 us on each entry of a listing; enough that each lookup has a
 * new name.
 */
#define DEFAULT_SOURCE "synth:unet3d,files=8192,classes=8192,content=random"

static const char IDEAL[] = "ideal";
enum {
	BASE_READS = 2000,
	/* load on the host delays a mount for some seconds; arbitrary: this
	 * many were enough so far */
	MAX_TRIES = 3,
};

struct test {
	struct selftest_config c;
	struct storage_profile *profile;
	struct selftest_mounter mounter;
	struct client_tree tree;
	struct line_base base;
	struct line *lines;
	size_t n_lines;
	FILE *out;
};

/* After a signal the client's calls fail: report the signal instead. */
static int measure(struct test *t, struct client_run *run, struct err *err)
{
	struct err why = { 0 };
	int r = client_measure(&t->tree, run, &why);

	if (selftest_interrupted(&t->mounter))
		return err_set(err, -EINTR, "interrupted by a signal");
	return r < 0 ? err_set(err, r, "%s", why.text) : 0;
}

/* The highest rate of the mount itself, for a line's clients. */
static int measure_ceiling(struct test *t, struct line *l, struct err *err)
{
	struct client_run run = { .load = l->load,
				  .n = l->kind == LINE_RATE ? 1000000 : 20000,
				  .limit_ns = NS_PER_S,
				  .seed = t->c.seed };
	int r = measure(t, &run, err);

	l->ceiling = run.rate;
	client_run_fini(&run);
	if (r == 0 && l->ceiling <= 0)
		return err_set(err, -EIO, "no read completed within a second");
	return r;
}

static bool has_files_for(const struct test *t, struct line *l)
{
	if (l->load.op != STORAGE_READ ||
	    client_n_files_of(&t->tree, l->load.bytes))
		return true;
	l->verdict = LINE_SKIPPED;
	l->why = "no file is long enough";
	return false;
}

static int measure_base(struct test *t, struct err *err)
{
	struct client_run run = {
		.load = { .op = STORAGE_READ, .bytes = 4 * KIB, .streams = 1 },
		.n = BASE_READS,
		.limit_ns = 5 * NS_PER_S,
		.seed = t->c.seed
	};
	int r = client_scan(t->mounter.mountpoint, &t->tree, err);

	if (r < 0)
		return r;
	t->base.n_files = t->tree.n_files;
	if (!client_n_files_of(&t->tree, run.load.bytes))
		return err_set(err, -EINVAL,
			       "%s: contains no file of 4 KiB or more",
			       t->c.source);
	r = measure(t, &run, err);
	t->base.read_ns = model_quantile(run.ns, run.n_done, .5);
	client_run_fini(&run);
	return r;
}

/* Plan all lines, on a mount of the ideal device. */
static int plan(struct test *t, struct err *err)
{
	int r = selftest_mount_fresh(&t->mounter, IDEAL, 1, err);

	if (r == 0)
		r = measure_base(t, err);
	for (size_t i = 0; r == 0 && i < t->n_lines; i++) {
		struct line *l = &t->lines[i];
		bool rate = l->kind == LINE_RATE || l->kind == LINE_STREAM;

		if (!has_files_for(t, l))
			continue;
		r = line_streams(l, t->profile, t->c.seed + 1);
		if (r == 0 && rate)
			r = measure_ceiling(t, l, err);
		if (r == 0)
			r = line_plan(l, t->profile, t->c.seed + 1,
				      t->c.time_scale);
		if (r == 0 && rate && l->want > l->ceiling / 2)
			log_warn("at a time scale of %g the device is faster "
				 "than the mount can follow (%.0f, the mount "
				 "alone %.0f); raise --time-scale",
				 l->time_scale, l->want, l->ceiling);
	}
	return r < 0 ? err_set(err, r, "%s", strerror(-r)) : 0;
}

/* Reuses the previous line's mount, except for lookups, whose names the kernel
 * has cached, for lines that need a fresh device, and for a second try. */
static int mount_for(struct test *t, const struct line *l, struct err *err)
{
	const struct selftest_mounter *m = &t->mounter;

	if (m->storage == t->c.storage && m->time_scale == l->time_scale &&
	    l->load.op != STORAGE_LOOKUP && l->kind != LINE_MEASURED &&
	    l->tries == 1)
		return 0;
	return selftest_mount_fresh(&t->mounter, t->c.storage, l->time_scale,
				    err);
}

static int try_line(struct test *t, struct line *l, struct err *err)
{
	double expected =
		l->kind == LINE_LATENCY
			? l->want * (double)l->n / (double)l->load.streams
			: (double)l->n * 1e9 / model_rate(t->profile, &l->load);
	int r;

	l->tries++;
	r = mount_for(t, l, err);
	if (r < 0)
		return r;
	if (l->kind == LINE_MEASURED)
		expected = model_mean_ns(t->profile, &l->load) * (double)l->n;
	l->run = (struct client_run){
		.load = l->load,
		.n = l->n,
		/* enough to detect a mount that is far too slow */
		.limit_ns =
			(uint64_t)(3 * expected * l->time_scale) + 2 * NS_PER_S,
		.seed = t->c.seed,
	};
	r = measure(t, &l->run, err);
	return r == 0 ? line_judge(l, t->profile, t->c.seed) : r;
}

/* Keeps the first try that passes, else the last. */
static int run_line(struct test *t, struct line *l, struct err *err)
{
	int r = try_line(t, l, err);

	while (r == 0 && l->verdict == LINE_MISS && l->tries < MAX_TRIES) {
		client_run_fini(&l->run);
		r = try_line(t, l, err);
	}
	return r;
}

static int run_lines(struct test *t, struct err *err)
{
	int r = 0;

	line_print_head(t->out, &t->c, t->c.source, &t->base);
	if (!t->n_lines)
		fprintf(t->out, "the profile adds no time to any operation\n");
	for (size_t i = 0; r == 0 && i < t->n_lines; i++) {
		struct line *l = &t->lines[i];

		if (l->verdict != LINE_SKIPPED)
			r = run_line(t, l, err);
		if (r == 0)
			line_print(t->out, l);
	}
	return r;
}

static int report(struct test *t, struct err *err)
{
	bool passed = true;
	json_t *j;
	int r;

	for (size_t i = 0; i < t->n_lines; i++)
		passed = passed && t->lines[i].verdict != LINE_MISS;
	if (t->c.json) {
		j = lines_json(&t->c, t->c.source, &t->base, t->lines,
			       t->n_lines, passed);
		r = j ? json_write(j, t->c.json, err) : -ENOMEM;
		json_decref(j);
		if (r < 0)
			return err_set(err, r, "%s", strerror(-r));
	}
	return passed ? 0 : 1;
}

int selftest_run(const struct selftest_config *config, struct err *err)
{
	struct test t = { .c = *config };
	int r = storage_profile_load(config->storage, &t.profile, err);

	if (!t.c.source)
		t.c.source = DEFAULT_SOURCE;
	t.out = t.c.json && !strcmp(t.c.json, "-") ? stderr : stdout;
	if (r == 0)
		r = lines_new(t.profile, &t.lines, &t.n_lines);
	if (r == 0)
		r = selftest_mounter_init(&t.mounter, &t.c, err);
	if (r == 0)
		r = plan(&t, err);
	if (r == 0)
		r = run_lines(&t, err);
	selftest_mounter_fini(&t.mounter);
	if (r == 0)
		r = report(&t, err);
	lines_free(t.lines, t.n_lines);
	client_tree_fini(&t.tree);
	storage_profile_free(t.profile);
	return r < 0 ? err_set(err, r, "%s", strerror(-r)) : r;
}
