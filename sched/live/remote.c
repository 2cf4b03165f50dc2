/* SPDX-License-Identifier: MIT */
#include "sched/live/remote.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "common/units.h"
#include "common/util.h"
#include "sched/core/storage.h"
#include "sched/live/mount.h"

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
	struct job *job = &l->jobs[which];
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
	double most = .5 / (double)MAX(l->n_active, 1);

	return MAX(MIN(LEAST, most) * l->cluster.remote_mib_s,
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

	for (size_t i = 0; i < l->n_active; i++) {
		const struct job *job = &l->jobs[l->active[i]];

		if (job->state != JOB_RUNNING ||
		    !storage_reads(&l->cluster, job))
			continue;
		if (job->remote_mib_s < least)
			low += least;
		else
			others += job->remote_mib_s;
	}
	return others > 0 ? MIN((l->cluster.remote_mib_s - low) / others, 1)
			  : 1;
}

/* A process that is about to end keeps what it has: it waits for its reads. */
static struct wish wish_of(const struct live *l, uint32_t which, double part)
{
	const struct job *job = &l->jobs[which];
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
static void tell_all(struct live *l)
{
	double part = part_left(l);

	for (int gets = 0; gets < 2; gets++)
		for (size_t i = 0; i < l->n_active; i++) {
			uint32_t which = l->active[i];
			const struct live_job *p = &l->live[which];
			struct wish w = wish_of(l, which, part);

			if (!storage_reads(&l->cluster, &l->jobs[which]))
				continue;
			if (!gets) {
				w.cache = MIN(w.cache, p->told_cache);
				w.remote = MIN(w.remote, p->told_remote);
			}
			tell(l, which, w);
		}
}

static int share_out(struct live *l)
{
	int r = storage_split_cache(&l->cluster, l->schedule.ops->storage,
				    l->jobs, l->active, l->n_active);

	for (size_t i = 0; r == 0 && i < l->n_active; i++) {
		const struct job *job = &l->jobs[l->active[i]];

		if (job->state == JOB_RUNNING &&
		    storage_reads(&l->cluster, job)) {
			if (l->live[l->active[i]].told_cache == UINT64_MAX)
				start_looking(l, l->active[i]);
			look(l, l->active[i]);
		}
	}
	if (r == 0)
		r = storage_split_bandwidth(&l->cluster, l->jobs, l->active,
					    l->n_active);
	if (r == 0)
		tell_all(l);
	return r;
}

int remote_share(struct live *l)
{
	int r = l->cluster.remote_mib_s > 0 ? share_out(l) : 0;

	contention_see(&l->contention, &l->cluster, l->jobs, l->active,
		       l->n_active);
	for (size_t i = 0; r == 0 && i < l->n_active; i++) {
		struct job *job = &l->jobs[l->active[i]];
		double rate;

		if (job->state != JOB_RUNNING)
			continue;
		rate = contention_rate(&l->contention, &l->cluster, job);
		if (rate != job->rate)
			job_advance(job, l->now_ns);
		job->rate = rate;
	}
	return r;
}

void remote_end(struct live *l, uint32_t which)
{
	if (!storage_reads(&l->cluster, &l->jobs[which]))
		return;
	tell(l, which, nothing(l));
	/* what it had is gone */
	start_looking(l, which);
}
