/* SPDX-License-Identifier: MIT */
#include "sched/live/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/log.h"
#include "common/system/control.h"
#include "common/units.h"
#include "common/util.h"
#include "sched/core/storage.h"
#include "sched/live/argv.h"

/* --- the gpemu-fs of a job ----------------------------------------------- */

/* A descriptor, or -errno. */
static int open_file(const struct live *l, uint32_t which, const char *name,
		     int flags)
{
	_cleanup_free_ char *mount = argv_words(l, which, l->c.mount);
	_cleanup_free_ char *dir = NULL;

	if (!mount || asprintf(&dir, "%s/.gpemu", mount) < 0)
		return -ENOMEM;
	return control_open(dir, name, flags);
}

int mount_tell(struct live *l, uint32_t which, const char *what,
	       const char *commands)
{
	_cleanup_close_ int fd = open_file(l, which, "control", O_WRONLY);
	int r = MIN(fd, 0);

	if (r == 0 && write(fd, commands, strlen(commands)) < 0)
		r = -errno;
	if (r == 0)
		return 0;
	progress_end(&l->bar);
	log_warn("job %s: its %s could not be changed: %s",
		 l->run.jobs[which].name, what,
		 r == -ENODEV ? "no gpemu-fs is mounted there" : strerror(-r));
	return r;
}

/* Bytes of which the reads so far found the objects cached, and not. -errno:
 * -ENODEV: no mount is there; -EBADMSG: what it says is not known. */
static int mount_counts(const struct live *l, uint32_t which,
			uint64_t *ret_hits, uint64_t *ret_misses)
{
	_cleanup_close_ int fd = open_file(l, which, "stats", O_RDONLY);
	json_auto_t *j = fd < 0 ? NULL : json_loadfd(fd, 0, NULL);
	json_int_t hits, misses;

	if (fd < 0)
		return fd;
	if (json_unpack(j, "{s:I,s:I}", "hit_bytes", &hits, "miss_bytes",
			&misses) < 0)
		return -EBADMSG;
	*ret_hits = (uint64_t)hits;
	*ret_misses = (uint64_t)misses;
	return 0;
}

/* Reads that say how much is cached, as a part of the dataset; fewer are
 * chance. arbitrary */
#define ENOUGH .01
/* A job whose data is cached but for a file that nobody has read yet needs some
 * bandwidth: this part of all. arbitrary */
#define LEAST .01
/* Bytes per s: gpemu-fs takes no smaller limit */
#define LEAST_BYTES 1000.

/* Hits and misses count from now on. */
static void start_looking(struct live *l, uint32_t which)
{
	struct live_job *p = &l->live[which];

	p->hit_share = 0;
	if (mount_counts(l, which, &p->seen_hits, &p->seen_misses) < 0)
		p->seen_hits = p->seen_misses = 0;
}

/* By the hits since the last look. */
static void look(struct live *l, uint32_t which)
{
	struct sched_job *job = &l->run.jobs[which];
	struct live_job *p = &l->live[which];
	uint64_t hits, misses, all;

	if (mount_counts(l, which, &hits, &misses) == 0) {
		/* its counters were reset, or it is another mount */
		if (hits < p->seen_hits || misses < p->seen_misses)
			p->seen_hits = p->seen_misses = 0;
		all = hits - p->seen_hits + misses - p->seen_misses;
		if ((double)all >= ENOUGH * job->dataset_mib * (double)MIB) {
			p->hit_share =
				(double)(hits - p->seen_hits) / (double)all;
			p->seen_hits = hits;
			p->seen_misses = misses;
		}
	}
	job->cached_mib = MIN(job->cache_mib, p->hit_share * job->dataset_mib);
}

/* Bytes of cache, and per second, at least LEAST_BYTES: 0 is no limit. */
struct wish {
	uint64_t cache, remote;
};

/* Of many jobs all have as much. */
static double least_mib_s(const struct live *l)
{
	double most = .5 / (double)MAX(l->run.n_active, 1);

	return MAX(MIN(LEAST, most) * l->run.cluster.remote_mib_s,
		   LEAST_BYTES / MIB);
}

/* For whom nothing runs. */
static struct wish nothing(const struct live *l)
{
	return (struct wish){ 0,
			      util_whole(ceil(least_mib_s(l) * (double)MIB)) };
}

/* Of what the policy gives, a part goes to those that must have the least. */
static double part_left(const struct live *l)
{
	double least = least_mib_s(l), low = 0, others = 0;

	for (size_t i = 0; i < l->run.n_active; i++) {
		const struct sched_job *job = &l->run.jobs[l->run.active[i]];

		if (job->state != JOB_RUNNING ||
		    !storage_reads(&l->run.cluster, job))
			continue;
		if (job->remote_mib_s < least)
			low += least;
		else
			others += job->remote_mib_s;
	}
	return others > 0 ? MIN((l->run.cluster.remote_mib_s - low) / others, 1)
			  : 1;
}

/* A process that is about to end keeps what it has: it waits for its reads. */
static struct wish wish_of(const struct live *l, uint32_t which, double part)
{
	const struct sched_job *job = &l->run.jobs[which];
	const struct live_job *p = &l->live[which];
	double remote = MAX(job->remote_mib_s * part, least_mib_s(l));

	if (p->stopping ||
	    (job->state != JOB_RUNNING && p->process.state != PROCESS_NONE))
		return (struct wish){ p->told_cache, p->told_remote };
	if (job->state != JOB_RUNNING)
		return nothing(l);
	return (struct wish){ util_whole(round(job->cache_mib * (double)MIB)),
			      util_whole(ceil(remote * (double)MIB)) };
}

/* One by one: a cache that cannot be that large leaves the limit in force. A
 * failure is warned of once, and tried again when the wish is another. */
static void tell(struct live *l, uint32_t which, struct wish w)
{
	struct live_job *p = &l->live[which];
	/* it was told something before, and goes on */
	bool runs = p->told_cache != UINT64_MAX && !p->stopping &&
		    p->process.state != PROCESS_NONE;
	bool changed = false;
	char text[100];

	if (w.remote != p->told_remote) {
		snprintf(text, sizeof(text), "set bandwidth %" PRIu64 "\n",
			 w.remote);
		changed |= mount_tell(l, which, "storage", text) == 0;
	}
	if (w.cache != p->told_cache) {
		snprintf(text, sizeof(text), "resize %" PRIu64 "\n", w.cache);
		changed |= mount_tell(l, which, "storage", text) == 0;
	}
	l->n_storage += changed && runs;
	p->told_cache = w.cache;
	p->told_remote = w.remote;
}

/* All give back before any gets. */
void remote_tell(struct live *l)
{
	double part = part_left(l);

	for (int gets = 0; gets < 2; gets++)
		for (size_t i = 0; i < l->run.n_active; i++) {
			uint32_t which = l->run.active[i];
			const struct live_job *p = &l->live[which];
			struct wish w = wish_of(l, which, part);

			if (!storage_reads(&l->run.cluster,
					   &l->run.jobs[which]))
				continue;
			if (!gets) {
				w.cache = MIN(w.cache, p->told_cache);
				w.remote = MIN(w.remote, p->told_remote);
			}
			tell(l, which, w);
		}
}

void remote_look(struct sched_run *run)
{
	struct live *l = live_of(run);

	for (size_t i = 0; i < run->n_active; i++) {
		uint32_t which = run->active[i];

		if (run->jobs[which].state != JOB_RUNNING ||
		    !storage_reads(&run->cluster, &run->jobs[which]))
			continue;
		if (l->live[which].told_cache == UINT64_MAX)
			start_looking(l, which);
		look(l, which);
	}
}

void remote_end(struct live *l, uint32_t which)
{
	if (!storage_reads(&l->run.cluster, &l->run.jobs[which]))
		return;
	tell(l, which, nothing(l));
	/* what it had is gone */
	start_looking(l, which);
}
