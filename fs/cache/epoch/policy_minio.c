/* SPDX-License-Identifier: MIT */
/*
 * MinIO: fill once, never evict. Under one random pass per epoch that hits
 * exactly the cached share, which is the most that any policy can (CoorDL,
 * Mohan et al., "Analyzing and Mitigating Data Stalls in DNN Training",
 * VLDB 2021, section 4.1).
 *
 * No hook at all: the cache lets in what fits, and nobody is given up.
 */
#include "fs/cache/policy.h"

const struct policy_ops policy_minio = {
	.plugin = { .name = "minio",
		    .summary = "fill once, never evict (CoorDL's MinIO)" },
};
