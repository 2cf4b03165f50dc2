/* SPDX-License-Identifier: MIT */
/*
 * The network card of a node, which its gradients share with the traffic of its
 * caches. The card belongs to the mount under the dataset (--peers, --nic).
 *
 * The rank books the buckets of a step (`reduce` in .gpemu/control) as soon as
 * it knows when they can pass. At the time at which they would be reduced
 * without other traffic it reads by how much they are late (.gpemu/nic), and
 * waits for that, again and again, as more may come meanwhile. Without other
 * traffic the delay is 0, and the step ends as modelled, to the ns.
 */
#ifndef GPEMU_LOADER_NODES_CARD_H
#define GPEMU_LOADER_NODES_CARD_H

#include "common/tick.h"
#include "emu/gpu/collective.h"
#include "loader/dataset/mount.h"

struct card {
	const struct mount *mount; /* NULL: no card */
	struct tick *tick;	   /* set before card_reduce */
	uint64_t id;
	uint64_t delay_ns; /* of all steps so far */
};

/*
 * Find the card of a mount, which stays in use. 0: *ret is it, or there is
 * none. -EINVAL: another time scale, or not a card of `gb_per_s` (10^9 bytes)
 * as this node's; -EACCES: the mount of another user; as json_read; with a
 * text. No card then.
 */
int card_find(const struct mount *m, double time_scale, double gb_per_s,
	      struct card *ret, struct err *err);
/*
 * Book the buckets of c for the passes, whose times count from `base`, and wait
 * until they are reduced: at `reduced` or, by *ret_delay, later. Errors of the
 * mount's files, with a text.
 */
int card_reduce(struct card *card, const struct collective *c,
		const struct collective_pass *pass, size_t n, uint64_t base,
		uint64_t reduced, uint64_t *ret_delay, struct err *err);

#endif
