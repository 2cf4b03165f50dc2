/* SPDX-License-Identifier: MIT */
#include "sched/live/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"
#include "sched/live/argv.h"
#include "sched/live/held.h"
#include "sched/live/mount.h"
#include "sched/live/state.h"

/* --- who has what --------------------------------------------------------- */

bool lease_suits(const struct live *l, uint32_t which)
{
	return l->c.leases && !l->live[which].group && !l->jobs[which].mate;
}

static bool goes_on(const struct live *l, uint32_t which)
{
	const struct live_job *p = &l->live[which];

	return p->process.state == PROCESS_RUNS && !p->stopping &&
	       l->jobs[which].state == JOB_RUNNING && lease_suits(l, which) &&
	       held_same_gpus(l, which);
}

/* No more of either than before. */
static bool give(struct live *l, uint32_t which)
{
	const struct job *job = &l->jobs[which];
	struct live_job *p = &l->live[which];
	bool changed = false;

	for (size_t i = 0; i < p->n_held; i++) {
		const struct part *to = &job->parts[i];
		struct part *has = &p->held[i], was = *has;

		has->cpu_milli = MIN(was.cpu_milli, to->cpu_milli);
		has->memory_mib = MIN(was.memory_mib, to->memory_mib);
		if (!memcmp(has, &was, sizeof(was)))
			continue;
		cluster_give(&l->held, &was);
		cluster_take(&l->held, has);
		changed = true;
	}
	return changed;
}

static bool get(struct live *l, uint32_t which)
{
	const struct job *job = &l->jobs[which];
	struct live_job *p = &l->live[which];
	bool changed = false;

	for (size_t i = 0; i < p->n_held; i++) {
		const struct part *to = &job->parts[i];
		struct part *has = &p->held[i];

		if (!memcmp(has, to, sizeof(*to)))
			continue;
		cluster_give(&l->held, has);
		if (cluster_has(&l->held, to)) {
			*has = *to;
			changed = true;
		}
		cluster_take(&l->held, has);
	}
	return changed;
}

/* --- telling it ----------------------------------------------------------- */

static char *fifo_of(const struct live *l, uint32_t which)
{
	_cleanup_free_ char *folder = argv_folder(l, which);
	char *path;

	return folder && asprintf(&path, "%s/control", folder) >= 0 ? path
								    : NULL;
}

/* Reading as well, so that a job that is about to end is no error. */
static int tell_cores(struct live *l, uint32_t which)
{
	_cleanup_free_ char *path = fifo_of(l, which);
	_cleanup_close_ int fd = -1;
	char text[40];

	if (!path)
		return -ENOMEM;
	fd = open(path, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	snprintf(text, sizeof(text), "set cores %" PRIu32 "\n",
		 l->live[which].told_cores);
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

static void tell(struct live *l, uint32_t which)
{
	struct live_job *p = &l->live[which];
	uint32_t cores = argv_cores(p->held, p->n_held);
	uint64_t mib = 0;
	int r;

	for (size_t i = 0; i < p->n_held; i++)
		mib += p->held[i].memory_mib;
	if (argv_uses_cores(&l->c) && cores != p->told_cores) {
		p->told_cores = cores;
		l->n_leases++;
		r = tell_cores(l, which);
		/* it goes on with what it had */
		if (r < 0)
			log_warn("job %s: its cores could not be changed: %s",
				 l->jobs[which].name, strerror(-r));
	}
	/* else remote.h says how much */
	if (l->c.mount && l->cluster.remote_mib_s <= 0 && mib != p->told_mib) {
		char text[40];

		p->told_mib = mib;
		snprintf(text, sizeof(text), "resize %" PRIu64 "M\n", mib);
		mount_tell(l, which, "cache", text);
	}
}

int lease_begin(struct live *l, uint32_t which, char **ret_control)
{
	struct live_job *p = &l->live[which];

	/* the command line says the cores */
	p->told_cores = argv_cores(p->held, p->n_held);
	p->told_mib = UINT64_MAX;
	tell(l, which);
	if (!l->c.leases || !argv_uses_cores(&l->c))
		return 0;
	*ret_control = fifo_of(l, which);
	return *ret_control ? 0 : -ENOMEM;
}

int lease_all(struct live *l, struct err *err)
{
	bool changed = false;
	int r = 0;

	if (!l->c.leases)
		return 0;
	/* all give back before any gets */
	for (size_t i = 0; r == 0 && i < 2 * l->n_active; i++) {
		uint32_t which = l->active[i % l->n_active];

		if (!goes_on(l, which) ||
		    !(i < l->n_active ? give(l, which) : get(l, which)))
			continue;
		r = held_changed(l, which);
		changed = true;
	}
	/* a scheduler that is started again tells all of them again */
	if (r == 0 && changed)
		r = state_save(l, false, err);
	for (size_t i = 0; r == 0 && i < l->n_active; i++)
		if (goes_on(l, l->active[i]))
			tell(l, l->active[i]);
	return r;
}
