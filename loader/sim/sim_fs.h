/* SPDX-License-Identifier: MIT */
/*
 * The options of gpemu-fs that a simulation knows, with the same names and
 * meanings. Those that it does not know are unknown keys: none that would
 * change the times is silently left out.
 */
#ifndef GPEMU_LOADER_SIM_SIM_FS_H
#define GPEMU_LOADER_SIM_SIM_FS_H

#include <jansson.h>
#include <stdbool.h>

#include "common/conf/conf.h"
#include "common/units.h"
#include "fs/cache/tier.h"

struct sim_fs {
	char *storage, *cache_policy, *tier_admit;
	struct units_capacity cache_size;
	struct conf_list tiers; /* of char * */
	char *nic;		/* NULL: no limit */
	bool cache_metadata;
	uint64_t prefetch, prefetch_depth;
};

/*
 * The defaults, then what `file` has (a configuration of gpemu-fs; NULL: none),
 * then each KEY=VALUE of `settings` (char *). `peers`: the caches are
 * partitioned. -EINVAL with a text, -ENOMEM; as
 * open(2). Free with sim_fs_fini, failed or not.
 */
int sim_fs_read(struct sim_fs *o, const char *file,
		const struct conf_list *settings, bool peers, struct err *err);
void sim_fs_fini(struct sim_fs *o);
/* The caches; a policy and a size are one tier. tiers_fini even after an error.
 * -EINVAL with a text, -ENOMEM. */
int sim_fs_tiers(const struct sim_fs *o, struct tiers *ret, struct err *err);
json_t *sim_fs_json(const struct sim_fs *o);

#endif
