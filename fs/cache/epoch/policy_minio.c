/* SPDX-License-Identifier: MIT */
/*
 * MinIO: fill once, never evict. With one random pass per epoch the hit ratio
 * is exactly the cached share, the most that any policy can reach (CoorDL,
 * Mohan et al., "Analyzing and Mitigating Data Stalls in DNN Training", VLDB
 * 2021, section 4.1).
 *
 * No hooks: the cache admits what fits, and there is never a victim.
 */
#include "fs/cache/policy.h"

const struct policy_ops policy_minio = {
	.plugin = { .name = "minio",
		    .summary = "fill once, never evict (CoorDL's MinIO)" },
};
