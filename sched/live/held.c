/* SPDX-License-Identifier: MIT */
#include "sched/live/held.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "common/util.h"
#include "emu/node/turns.h"
#include "sched/core/interleave.h"

/* --- groups --------------------------------------------------------------- */

static uint32_t number_of(const struct live *l, const struct sched_job *job)
{
	return (uint32_t)(job - l->run.jobs);
}

bool group_stays(const struct live *l, uint32_t which)
{
	const struct sched_job *group[GROUP_MAX];
	size_t n = job_group(&l->run.jobs[which], group);
	uint32_t own = l->live[which].group;

	for (size_t i = 1; i < n; i++)
		if (!own || l->live[number_of(l, group[i])].group != own)
			return false;
	return true;
}

bool group_is_idle(const struct live *l, uint32_t which)
{
	const struct sched_job *group[GROUP_MAX];
	size_t n = job_group(&l->run.jobs[which], group);

	for (size_t i = 0; i < n; i++)
		if (l->live[number_of(l, group[i])].process.state !=
		    PROCESS_NONE)
			return false;
	return true;
}

void group_join(struct live *l, uint32_t which)
{
	const struct sched_job *group[GROUP_MAX];
	size_t n = job_group(&l->run.jobs[which], group);
	uint32_t *own = &l->live[which].group;

	for (size_t i = 1; i < n && !*own; i++)
		*own = l->live[number_of(l, group[i])].group;
	if (n > 1 && !*own)
		*own = ++l->last_group;
}

const struct live_job *group_holder(const struct live *l, uint32_t which)
{
	const struct live_job *p = &l->live[which];

	for (size_t i = 0; p->group && i < l->run.n_active; i++) {
		const struct live_job *q = &l->live[l->run.active[i]];

		if (q != p && q->group == p->group && q->n_held)
			return q;
	}
	return NULL;
}

/* Each has a description of the file of its own, by which locks are told
 * apart. */
static int open_seat(int file, struct group_seat *s, size_t index)
{
	char path[40];
	int r;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	s->fd = open(path, O_RDWR | O_CLOEXEC);
	r = s->fd < 0 ? -errno : turns_enter(s->fd, index);
	return r;
}

int group_open(const struct live *l, uint32_t which,
	       struct group_seat ret[GROUP_MAX], struct err *err)
{
	const struct sched_job *group[GROUP_MAX];
	size_t n = job_group(&l->run.jobs[which], group);
	_cleanup_close_ int file = -1;
	uint8_t offsets[GROUP_MAX];
	int r = 0;

	for (size_t i = 0; i < GROUP_MAX; i++)
		ret[i] = (struct group_seat){ .fd = -1 };
	for (size_t i = 0; i < n; i++)
		ret[i].job = number_of(l, group[i]);
	if (n == 1)
		return 1;
	file = memfd_create("gpemu-turns", MFD_CLOEXEC);
	if (file < 0)
		return err_set(err, -errno, "turns: %s", strerror(errno));
	interleave_order(group, n, offsets);
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = open_seat(file, &ret[i], i);
		snprintf(ret[i].text, sizeof(ret[i].text),
			 "fd=%d,index=%zu,members=%zu,offset=%u", ret[i].fd, i,
			 n, offsets[i]);
	}
	return r < 0 ? err_set(err, r, "turns: %s", strerror(-r)) : (int)n;
}

void group_close(struct group_seat seats[GROUP_MAX])
{
	for (size_t i = 0; i < GROUP_MAX; i++)
		util_closep(&seats[i].fd);
}

/* --- what they hold ------------------------------------------------------- */

bool held_is_free(const struct live *l, const struct sched_job *job)
{
	for (size_t i = 0; i < job->n_parts; i++)
		if (!cluster_has(&l->held, &job->parts[i]))
			return false;
	return true;
}

static int remember(struct live *l, uint32_t which)
{
	const struct live_job *p = &l->live[which];
	struct sched_job of = { .parts = p->held, .n_parts = p->n_held };

	return history_begin(&l->history, which, &of, l->run.now_ns);
}

int held_take(struct live *l, uint32_t which)
{
	const struct sched_job *job = &l->run.jobs[which];
	struct live_job *p = &l->live[which];
	bool shared = group_holder(l, which);

	p->held = calloc(job->n_parts + 1, sizeof(*p->held));
	if (!p->held)
		return -ENOMEM;
	for (; p->n_held < job->n_parts; p->n_held++) {
		p->held[p->n_held] = job->parts[p->n_held];
		if (!shared)
			cluster_take(&l->held, &p->held[p->n_held]);
	}
	return remember(l, which);
}

int held_changed(struct live *l, uint32_t which)
{
	history_end(&l->history, which, l->run.now_ns);
	return remember(l, which);
}

void held_give(struct live *l, uint32_t which, uint64_t at_ns)
{
	struct live_job *p = &l->live[which];
	bool shared = group_holder(l, which);

	history_end(&l->history, which, at_ns);
	for (size_t i = 0; !shared && i < p->n_held; i++)
		cluster_give(&l->held, &p->held[i]);
	free(p->held);
	p->held = NULL;
	p->n_held = 0;
	p->group = 0;
}

bool held_same(const struct live *l, uint32_t which)
{
	const struct live_job *p = &l->live[which];

	return job_holds(&l->run.jobs[which], p->held, p->n_held);
}

bool held_same_gpus(const struct live *l, uint32_t which)
{
	const struct sched_job *job = &l->run.jobs[which];
	const struct live_job *p = &l->live[which];

	for (size_t i = 0; i < job->n_parts && i < p->n_held; i++) {
		const struct sched_part *a = &job->parts[i], *b = &p->held[i];

		if (a->node != b->node || a->gpus != b->gpus ||
		    a->gpu_milli != b->gpu_milli)
			return false;
	}
	return job->n_parts == p->n_held;
}
