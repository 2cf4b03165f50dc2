/* SPDX-License-Identifier: MIT */
#include "sched/live/group.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "common/util.h"
#include "emu/node/turns.h"
#include "sched/core/interleave.h"

static uint32_t number_of(const struct live *l, const struct job *job)
{
	return (uint32_t)(job - l->jobs);
}

bool group_stays(const struct live *l, uint32_t which)
{
	const struct job *group[GROUP_MAX];
	size_t n = job_group(&l->jobs[which], group);
	uint32_t own = l->live[which].group;

	for (size_t i = 1; i < n; i++)
		if (!own || l->live[number_of(l, group[i])].group != own)
			return false;
	return true;
}

bool group_is_idle(const struct live *l, uint32_t which)
{
	const struct job *group[GROUP_MAX];
	size_t n = job_group(&l->jobs[which], group);

	for (size_t i = 0; i < n; i++)
		if (l->live[number_of(l, group[i])].process.state !=
		    PROCESS_NONE)
			return false;
	return true;
}

void group_join(struct live *l, uint32_t which)
{
	const struct job *group[GROUP_MAX];
	size_t n = job_group(&l->jobs[which], group);
	uint32_t *own = &l->live[which].group;

	for (size_t i = 1; i < n && !*own; i++)
		*own = l->live[number_of(l, group[i])].group;
	if (n > 1 && !*own)
		*own = ++l->last_group;
}

const struct live_job *group_holder(const struct live *l, uint32_t which)
{
	const struct live_job *p = &l->live[which];

	for (size_t i = 0; p->group && i < l->n_active; i++) {
		const struct live_job *q = &l->live[l->active[i]];

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
	const struct job *group[GROUP_MAX];
	size_t n = job_group(&l->jobs[which], group);
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
