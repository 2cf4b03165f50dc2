/* SPDX-License-Identifier: MIT */
/* The servers of a cell: its mounts, its gpemu-gpud, its preparation service,
 * its object store. */
#include "runner/cell/run_server.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/json.h"
#include "common/log.h"
#include "common/system/memory.h"
#include "common/system/walk.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "runner/cell/run_record.h"
#include "runner/run/run_dataset.h"
#include "runner/run/run_remove.h"

/* Of gpemu-fs and gpemu-s3. arbitrary: a million files are scanned in a few
 * seconds */
#define SCAN_TIMEOUT_NS (60 * NS_PER_S)
/* arbitrary: of mounts on this machine, which dial each other as they start */
#define PEERS_TIMEOUT_NS (30 * NS_PER_S)
#define PEERS_INTERVAL_MS 10
/* they may have requests in their timer queues */
#define TIMERS_GRACE_NS (10 * NS_PER_S)
/* Of gpemu-gpud and gpemu-prepd. arbitrary: they listen, read a profile or
 * dial, which takes milliseconds */
#define START_TIMEOUT_NS (10 * NS_PER_S)
/* arbitrary: they only write their records */
#define RECORD_GRACE_NS (5 * NS_PER_S)

int run_init_server(struct run *run, struct run_server *s,
		    enum run_program program, const char *dir, const char *name)
{
	s->program = program;
	s->child.pidfd = -1;
	run->servers[run->n_servers++] = s;
	if (!dir)
		return 0;
	s->record = util_join(dir, name);
	return s->record ? 0 : -ENOMEM;
}

int run_start_server(struct run *run, struct run_server *s, uint64_t timeout_ns,
		     struct err *err)
{
	_cleanup_(child_ready_fini) struct child_ready ready = { .fd = -1 };
	const char *name = run_program_name(s->program);
	char *env[COMMAND_ARGS + 2];
	int status = 0, code = child_ready_init(&ready, err);

	env[0] = ready.env;
	memcpy(env + 1, s->command.env, sizeof(s->command.env));
	if (code == 0)
		code = child_start(&s->child, s->command.argv, env, run->log_fd,
				   run->log_fd, err);
	if (code < 0)
		return code;
	code = child_wait_ready(&s->child, &run->r->stop, &ready, timeout_ns,
				&status);
	if (code == -ECHILD)
		return failure_blame(
			&run->failure, name, " before it was ready", NULL,
			status, &run->before,
			status == EXIT_STATUS_NOT_NOW ? -ENODEV : -EIO, err);
	return code < 0 ? err_set(err, code, "%s: %s", name, strerror(-code))
			: 0;
}

void run_end_server(struct run_server *s, uint64_t grace_ns)
{
	if (s->child.pid > 0)
		child_end(&s->child, grace_ns);
	if (!s->record)
		return;
	json_read(s->record, &s->stats, NULL);
	unlink(s->record);
}

/* --- the page cache --------------------------------------------------- */

enum { WARM_CHUNK = 1 << 20 };

struct warming {
	char *buf; /* NULL: only add up */
	uint64_t bytes;
	struct stop *stop;
	int dirfd;
};

/* Its bytes; read errors are left to the mount. */
static uint64_t warm_bytes(int dirfd, const char *path, char *buf)
{
	struct stat st;
	_cleanup_close_ int fd = util_open_file(dirfd, path, O_NOFOLLOW, &st);
	uint64_t bytes = 0;
	ssize_t n;

	while (fd >= 0 && (n = read(fd, buf, WARM_CHUNK)) > 0)
		bytes += (uint64_t)n;
	return bytes;
}

static int warm_file(void *ctx, const char *path, const struct walk_entry *e,
		     struct err *err)
{
	struct warming *w = ctx;

	(void)err;
	if (S_ISREG(e->mode))
		w->bytes += w->buf ? warm_bytes(w->dirfd, path, w->buf)
				   : e->bytes;
	return stop_came(w->stop) ? -EINTR : 0;
}

/* Sum the bytes of all files; with a buffer also read them. */
static int warm_tree(struct warming *w, char *buf, struct err *err)
{
	struct walk walk = { .flags = WALK_HIDDEN | WALK_FILES | WALK_FOLLOW,
			     .ctx = w,
			     .file = warm_file };

	int r;

	w->buf = buf;
	w->bytes = 0;
	r = walk_tree(&walk, w->dirfd, "", err);
	if (r != -ELOOP)
		return r;
	/* the mount does not follow a loop, either */
	if (err)
		*err = (struct err){ 0 };
	walk.flags &= ~(unsigned)WALK_FOLLOW;
	w->bytes = 0;
	return walk_tree(&walk, w->dirfd, "", err);
}

/*
 * The bytes of the emulated device come from a real one, which must not be
 * slower: read all files below `folder` into the page cache. 3 GB that are
 * already cached take a second. A folder larger than half of the memory is
 * skipped with a warning, because the page cache would not keep it. -EINTR:
 * stopped by a signal. -errno.
 */
static int warm_folder(const char *folder, struct stop *stop, struct err *err)
{
	uint64_t memory = memory_limit();
	_cleanup_free_ char *buf = malloc(WARM_CHUNK);
	_cleanup_close_ int fd =
		open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct warming w = { .stop = stop, .dirfd = fd };
	char size[UNITS_TEXT];
	int r = fd < 0 ? -errno : buf ? warm_tree(&w, NULL, err) : -ENOMEM;

	if (r == 0 && w.bytes > memory / 2) {
		log_warn("%s: %s do not fit into the page cache: where the "
			 "real device is slower than the emulated one, its "
			 "time counts",
			 folder, units_human_size((double)w.bytes, size));
		return 0;
	}
	if (r == 0)
		r = warm_tree(&w, buf, err);
	if (r < 0 && r != -EINTR) {
		err_set(err, r, "%s", strerror(-r));
		err_prefix(err, "%s", folder);
	}
	return r;
}

/* --- mounts ----------------------------------------------------------- */

int run_start_mount(struct run *run, size_t i, struct err *err)
{
	struct run_mount *m = &run->mounts[i];
	struct err why;
	int code;

	if (mkdir(m->mnt, 0700) < 0 && errno != EEXIST)
		return err_set(err, -errno, "%s: %s", m->mnt, strerror(errno));
	if (m->scratch && mkdir(m->scratch, 0700) < 0)
		return err_set(err, -errno, "%s: %s", m->scratch,
			       strerror(errno));
	code = network_enter(&run->network, (uint32_t)i, err);
	if (code < 0)
		return code;
	code = run_start_server(run, &m->server, SCAN_TIMEOUT_NS, err);
	return network_leave(&run->network, code < 0 ? &why : err) < 0 ? -EIO
								       : code;
}

/* NULL: it cannot be read. */
static json_t *read_stats(const struct run_mount *m)
{
	_cleanup_free_ char *path = util_join(m->mnt, ".gpemu/stats");
	json_t *stats = NULL;

	if (path)
		json_read(path, &stats, NULL);
	return stats;
}

static bool has_all_peers(const struct run_mount *m)
{
	json_auto_t *stats = read_stats(m);
	const json_t *peer = json_object_get(stats, "peer");
	json_t *each;
	size_t i;

	json_array_foreach (json_object_get(peer, "peers"), i, each)
		if (!json_is_true(json_object_get(each, "connected")))
			return false;
	return peer;
}

/* What a job reads before its mount knows the others comes from storage. */
static int await_peers(struct run *run, size_t i, struct err *err)
{
	uint64_t end = tick_wall() + PEERS_TIMEOUT_NS;
	int code = 0;

	if (!cell_has_peers(&run->cell->mounts[i]))
		return 0;
	while (code == 0 && !has_all_peers(&run->mounts[i])) {
		if (stop_came(&run->r->stop))
			code = -EINTR;
		else if (tick_wall() > end)
			code = -ETIMEDOUT;
		poll(NULL, 0, PEERS_INTERVAL_MS);
	}
	return code < 0 ? err_set(err, code, "the peers of mount %s: %s",
				  run->cell->mounts[i].name, strerror(-code))
			: 0;
}

int run_start_mounts(struct run *run, struct err *err)
{
	const struct cell *cell = run->cell;
	int code = 0;

	if (!run->mounted)
		return 0;
	for (size_t i = 0; code == 0 && i < cell->n_mounts; i++)
		if (dataset_is_folder(cell->mounts[i].dataset))
			code = warm_folder(run->mounts[i].folder, &run->r->stop,
					   err);
	for (size_t i = 0; code == 0 && i < cell->n_mounts; i++)
		code = run_start_mount(run, i, err);
	for (size_t i = 0; code == 0 && i < cell->n_mounts; i++)
		code = await_peers(run, i, err);
	return code;
}

/* Clean up after a daemon that died or hung. */
static void detach(const char *mnt)
{
	struct child child;
	char *argv[] = { (char *)"/usr/bin/fusermount3", (char *)"-uz",
			 (char *)mnt, NULL };

	if (umount2(mnt, MNT_DETACH) == 0 ||
	    child_start(&child, argv, NULL, STDERR_FILENO, STDERR_FILENO,
			NULL) < 0)
		return;
	/* SCAN_TIMEOUT_NS is more than enough: it queries the kernel and exits
	 */
	struct stop none = { .fd = -1 };
	int status;

	if (child_wait(&child, &none, TIMERS_GRACE_NS, &status) < 0)
		child_end(&child, 0);
}

void run_end_mounts(struct run *run)
{
	for (size_t i = 0; run->mounted && i < run->cell->n_mounts; i++) {
		struct run_mount *m = &run->mounts[i];

		run_end_server(&m->server, TIMERS_GRACE_NS);
		if (child_is_mounted(m->mnt))
			detach(m->mnt);
		rmdir(m->mnt);
		if (m->scratch)
			run_remove(m->scratch);
	}
}

/* What takes the place of the mounts' stats. */
static void read_simulated_stats(struct run *run)
{
	for (size_t i = 0; i < run->cell->n_jobs; i++) {
		struct run_mount *m = &run->mounts[run->cell->jobs[i].mount];
		json_auto_t *record = NULL;

		if (m->stats || !cell_job_is_simulated(&run->cell->jobs[i]) ||
		    json_read(run->jobs[i].record, &record, NULL) < 0)
			continue;
		m->stats = json_incref(json_object_get(record, "fs"));
	}
}

void run_read_mount_stats(struct run *run)
{
	if (!run->mounted)
		read_simulated_stats(run);
	for (size_t i = 0; run->mounted && i < run->cell->n_mounts; i++) {
		struct run_mount *m = &run->mounts[i];

		/* without statistics the member, and metrics on it, are absent
		 */
		if (m->server.child.pid > 0)
			m->stats = read_stats(m);
	}
}

/* --- gpemu-gpud ------------------------------------------------------- */

int run_init_gpud(struct run *run, struct err *err)
{
	struct run_server *g = &run->gpud;
	int code;

	if (!run->cell->gpud)
		return 0;
	code = run_init_server(run, g, RUN_GPUD, run->r->scratch, "gpud.json");
	return code < 0 ? code
			: command_gpud(&g->command, run->r, run->cell,
				       g->record, err);
}

int run_start_gpud(struct run *run, struct err *err)
{
	_cleanup_free_ char *socket = command_socket(run->r);

	if (!run->cell->gpud)
		return 0;
	if (!socket)
		return -ENOMEM;
	if (strlen(socket) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return err_set(err, -ENAMETOOLONG,
			       "%s: path too long for a socket; set TMPDIR to "
			       "a shorter folder",
			       socket);
	return run_start_server(run, &run->gpud, START_TIMEOUT_NS, err);
}

void run_end_gpud(struct run *run)
{
	run_end_server(&run->gpud, RECORD_GRACE_NS);
}

/* --- gpemu-prepd ------------------------------------------------------ */

/*
 * One dispatcher and some workers on loopback addresses, with a key that only
 * this cell knows. They start after the mounts, which they read, and end before
 * them.
 */

static int init_part(struct run *run, uint32_t i)
{
	struct run_prepd *p = &run->prepd;
	struct run_server *part = &p->parts[i];
	char name[32];
	int code;

	snprintf(name, sizeof(name), "%" PRIu32 ".json", i);
	code = run_init_server(run, part, RUN_PREPD, p->folder, name);
	return code < 0 ? code
			: command_prepd(&part->command, run->r, run->cell, i,
					&p->network, part->record);
}

int run_init_prepd(struct run *run, struct err *err)
{
	struct run_prepd *p = &run->prepd;
	uint32_t n;
	int code;

	if (!run->cell->prepd)
		return 0;
	n = (uint32_t)cell_prepd_workers(run->cell->prepd) + 1;
	p->folder = util_join(run->r->scratch, "prepd");
	if (!p->folder)
		return -ENOMEM;
	if (mkdir(p->folder, 0700) < 0 && errno != EEXIST)
		return err_set(err, -errno, "%s: %s", p->folder,
			       strerror(errno));
	code = network_open(&p->network, n, NETWORK_LOOPBACK, p->folder,
			    &run->r->stop, err);
	if (code < 0)
		return code;
	p->parts = calloc(n, sizeof(*p->parts));
	if (!p->parts)
		return -ENOMEM;
	p->n = n;
	for (uint32_t i = 0; code == 0 && i < n; i++)
		code = init_part(run, i);
	return code;
}

int run_start_prepd(struct run *run, struct err *err)
{
	struct run_prepd *p = &run->prepd;
	int code = 0;

	for (size_t i = 0; code == 0 && i < p->n; i++)
		code = run_start_server(run, &p->parts[i], START_TIMEOUT_NS,
					err);
	return code;
}

/* Counters and seconds of a worker, added to those of all. */
static void add_up(json_t *sum, const json_t *worker)
{
	static const char *const keys[] = { "batches", "batches_made", "made_s",
					    "cpu_s", "bytes_sent" };

	run_add_numbers(sum, worker, keys, ARRAY_SIZE(keys));
}

/* null: it wrote none, because it died; then the cell failed. */
static json_t *record_of(const struct run_server *part)
{
	return part->stats ? json_incref(part->stats) : json_null();
}

static json_t *status_of(const struct run_prepd *p)
{
	json_t *workers = json_array();
	json_t *status = json_pack("{s:o, s:o}", "dispatcher",
				   record_of(&p->parts[0]), "workers", workers);

	for (size_t i = 1; status && i < p->n; i++) {
		json_t *one = record_of(&p->parts[i]);

		add_up(status, one);
		json_array_append_new(workers, one);
	}
	return status;
}

void run_end_prepd(struct run *run)
{
	struct run_prepd *p = &run->prepd;

	if (!p->n)
		return;
	/* the workers first: they would dial a dispatcher that has gone */
	for (size_t i = p->n; i-- > 0;)
		run_end_server(&p->parts[i], RECORD_GRACE_NS);
	p->status = status_of(p);
}

void run_fini_prepd(struct run *run)
{
	struct run_prepd *p = &run->prepd;

	free(p->parts);
	network_close(&p->network);
	if (p->folder)
		rmdir(p->folder);
	free(p->folder);
	json_decref(p->status);
}

/* --- gpemu-s3 --------------------------------------------------------- */

/* It serves the dataset of the first mount, at a loopback address, with a key
 * that only this cell knows. */

static int make_secret(char secret[STORE_SECRET], struct err *err)
{
	uint8_t bytes[STORE_SECRET / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return err_set(err, -errno, "getrandom: %s", strerror(errno));
	for (size_t i = 0; i < (STORE_SECRET - 1) / 2; i++)
		snprintf(secret + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

int run_init_s3(struct run *run, struct err *err)
{
	struct run_s3 *s = &run->s3;
	int code;

	if (!run->cell->s3)
		return 0;
	code = run_init_server(run, &s->server, RUN_S3, run->r->scratch,
			       "s3.json");
	if (code == 0)
		code = make_secret(s->store.secret, err);
	if (code == 0)
		code = network_open(&s->network, 1, NETWORK_LOOPBACK, NULL,
				    &run->r->stop, err);
	if (code < 0)
		return code;
	network_address(&s->network, 0, s->store.address);
	return command_s3(&s->server.command, run->r, run->cell, &s->store,
			  s->server.record, err);
}

int run_start_s3(struct run *run, struct err *err)
{
	const struct cell *cell = run->cell;
	int code = 0;

	if (!cell->s3)
		return 0;
	if (dataset_is_folder(cell->mounts[0].dataset))
		code = warm_folder(run->mounts[0].folder, &run->r->stop, err);
	return code < 0 ? code
			: run_start_server(run, &run->s3.server,
					   SCAN_TIMEOUT_NS, err);
}

void run_end_s3(struct run *run)
{
	run_end_server(&run->s3.server, TIMERS_GRACE_NS);
}

void run_fini_s3(struct run *run)
{
	network_close(&run->s3.network);
}
