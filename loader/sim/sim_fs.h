/* SPDX-License-Identifier: MIT */
/*
 * The options of gpemu-fs that a simulation knows: struct fs_config. Those that
 * it does not know are unknown keys: none that would change the times is
 * silently left out.
 */
#ifndef GPEMU_LOADER_SIM_SIM_FS_H
#define GPEMU_LOADER_SIM_SIM_FS_H

#include <jansson.h>

#include "fs/config/fs_config.h"

/*
 * The defaults, then what `file` has (a configuration of gpemu-fs; NULL: none),
 * then each KEY=VALUE of `settings` (char *). `peers`: the caches are
 * partitioned. `left_out`: an array to which unknown keys of `file` are
 * appended, instead of refused; or NULL. -EINVAL with a text, -ENOMEM; as
 * open(2). Free with sim_fs_fini, failed or not.
 */
int sim_fs_read(struct fs_config *c, const char *file,
		const struct conf_list *settings, bool peers, json_t *left_out,
		struct err *err);
void sim_fs_fini(struct fs_config *c);
/* The caches; a policy and a size are one tier. tiers_fini even after an error.
 * -EINVAL with a text, -ENOMEM. */
int sim_fs_tiers(const struct fs_config *c, struct tiers *ret, struct err *err);
json_t *sim_fs_json(const struct fs_config *c);

#endif
