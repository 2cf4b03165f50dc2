/* SPDX-License-Identifier: MIT */
/*
 * A machine with GPUs: how many, and the links between them. Rates are for
 * one direction; 0: not there, or no limit.
 */
#ifndef GPEMU_EMU_NODE_PROFILE_NODE_H
#define GPEMU_EMU_NODE_PROFILE_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/conf/conf.h"
#include "common/err.h"
#include "emu/gpu/gpus.h"

struct node_link {
	double gb_per_s; /* 10^9 bytes */
	uint64_t latency_ns;
	char *source;
};

struct node_pcie {
	double gpu_gb_per_s;  /* host to a GPU at most; 0: the GPU's profile */
	double root_gb_per_s; /* host to the GPUs of a root; 0: no limit */
	uint64_t gpus_per_root; /* 0: all */
	double peer_gb_per_s;	/* GPU to GPU; 0: as host to GPU */
	uint64_t latency_ns;	/* GPU to GPU */
	char *source;
};

/* What the whole node costs while it is there, used or not. */
struct node_price {
	double usd_per_hour;
	char *source; /* NULL: the profile has no price */
};

/* What it draws at the wall: with all GPUs idle, with all of them busy. */
struct node_power {
	double idle_w, full_w;
	char *source; /* NULL: the profile has no power */
};

struct node_profile {
	char *name;
	char *source;
	char *notes;
	bool verified; /* every number was read at its source */
	uint64_t gpus;
	char *gpu;	/* a GPU profile; NULL: there is none of this one */
	uint64_t cores; /* physical, for --cores */
	uint64_t memory_bytes;
	struct node_pcie pcie;
	struct node_link nvlink, nic;
	struct node_price price;
	struct node_power power;
};

/* By name or path; free with node_profile_free, failed or not. */
int node_profile_load(const char *name, struct node_profile *ret,
		      struct err *err);
/* From bytes; `name` starts the error texts. */
int node_profile_parse(const char *bytes, size_t n, const char *name,
		       struct node_profile *ret, struct err *err);
void node_profile_free(struct node_profile *p);
/* All of it, as in the file; NULL: no memory. */
json_t *node_profile_json(const struct node_profile *p);

/* USD for so long; < 0: no price. */
double node_cost_usd(const struct node_profile *p, double seconds);
/*
 * kWh for so long with `busy` GPUs computing on average: between idle and full
 * in proportion to the node's GPUs. < 0: no power.
 */
double node_energy_kwh(const struct node_profile *p, double seconds,
		       double busy);

/*
 * The link that gradients take: NVLink where there is one, else PCIe, else a
 * link of `host_bytes_per_s`, the rate from host to GPU. With `nodes` > 1 the
 * network is in the way of all of it: the slower of the two, with the longer
 * latency. -ENODEV with a text: nodes that no network connects.
 */
int node_peer_link(const struct node_profile *p, double host_bytes_per_s,
		   uint64_t nodes, double *ret_bytes_per_s,
		   uint64_t *ret_latency_ns, struct err *err);

/*
 * The links of c->n GPUs in such a node, and what they reduce of the model over
 * all `nodes`. A profile that is all 0 is a node without limits, alone.
 */
int node_links(const struct node_profile *p, const struct gpu_profile *gpu,
	       const struct gpu_model *m, uint64_t nodes, struct gpus_config *c,
	       struct err *err);

#endif
