/* SPDX-License-Identifier: MIT */
#include "loader/order/announce.h"

#include <errno.h>
#include <stdlib.h>

#include "common/util.h"

static bool find_inodes(struct announcer *a)
{
	if (!a->inodes)
		a->inodes = mount_inodes(a->mount, a->data);
	return a->inodes;
}

/* All ranks' accesses in an epoch, without the first `skip` of each. */
static int put_epoch(struct announcer *a, int fd, uint64_t epoch,
		     const struct announce_epochs *e, uint32_t *samples,
		     struct err *err)
{
	uint64_t world = a->schedule->c.world;
	uint64_t skip = epoch == e->first ? e->skips : 0;
	uint64_t n = (e->visits - skip) * world;
	int r = schedule_all(a->schedule, epoch, samples, err);

	if (r < 0)
		return r;
	for (uint64_t i = 0; i < n; i++)
		samples[i] = a->inodes[samples[skip * world + i]];
	return mount_announce(a->mount, fd, samples, n, err);
}

static int put_all(struct announcer *a, const struct mount_future *f,
		   const struct announce_epochs *e, struct err *err)
{
	const struct order_schedule *s = a->schedule;
	_cleanup_free_ uint32_t *samples =
		calloc(s->n * s->c.world, sizeof(*samples));
	_cleanup_close_ int fd = -1;
	int r = 0;

	if (!samples || !find_inodes(a))
		return err_set(err, -ENOMEM, "out of memory");
	fd = mount_open_future(a->mount, f, err);
	if (fd < 0)
		return fd;
	for (uint32_t i = 0; r == 0 && i < f->epochs; i++)
		r = put_epoch(a, fd, e->first + i, e, samples, err);
	return r;
}

int announce(struct announcer *a, const struct announce_epochs *e,
	     struct err *err)
{
	const struct schedule_config *c = &a->schedule->c;
	uint64_t most = MOUNT_MOST_ACCESSES / (e->visits * c->world);
	struct mount_future f = {
		.rank = (uint32_t)c->rank,
		.world = (uint32_t)c->world,
		.epochs = (uint32_t)MIN(e->n, most),
		.first = (uint32_t)(e->visits - e->skips),
		.rest = (uint32_t)e->visits,
		.continues = a->until > 0,
	};
	int r;

	if (!most)
		return err_set(err, -E2BIG,
			       "an epoch has more accesses than a mount "
			       "accepts");
	r = put_all(a, &f, e, err);
	if (r == 0)
		a->until = e->first + f.epochs;
	return r;
}

int announce_weights(struct announcer *a, struct err *err)
{
	_cleanup_free_ float *weight = NULL;
	int r = schedule_weights(a->schedule, &weight, err);

	if (r < 0 || !weight)
		return r;
	if (!find_inodes(a))
		return err_set(err, -ENOMEM, "out of memory");
	return mount_weigh(a->mount, a->inodes, weight, a->data->n, err);
}

void announcer_fini(struct announcer *a)
{
	free(a->inodes);
}
