/* SPDX-License-Identifier: MIT */
/*
 * A machine with GPUs: their number and the links between them. Rates are for
 * one direction; 0: no such link, or no limit.
 */
#ifndef GPEMU_EMU_NODE_PROFILE_NODE_H
#define GPEMU_EMU_NODE_PROFILE_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "emu/gpu/gpus.h"
#include "emu/profile/profile.h"

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

/* The price of the whole node, used or not. */
struct node_price {
	double usd_per_hour;
	char *source; /* NULL: the profile has no price */
};

/* The power at the wall: with all GPUs idle, and with all busy. */
struct node_power {
	double idle_w, full_w;
	char *source; /* NULL: the profile has no power */
};

struct node_profile {
	char *name;
	char *source;
	char *notes;
	bool verified; /* all numbers were checked at the source */
	uint64_t gpus;
	char *gpu;	/* a GPU profile; NULL: none for this GPU */
	uint64_t cores; /* physical, for --cores */
	uint64_t memory_bytes;
	struct node_pcie pcie;
	struct node_link nvlink, nic;
	struct node_price price;
	struct node_power power;
};

PROFILE_DECLARE(node);

/* The GPU of a job that names none: the node's (all 0: no node), that of
 * $GPEMU_GPU_PROFILE, which came with the job, or one like those. */
const char *node_gpu(const struct node_profile *p);

/* USD for this time; < 0: no price. */
double node_cost_usd(const struct node_profile *p, double seconds);
/*
 * kWh for this time with `busy` GPUs computing on average, interpolated between
 * idle and full. < 0: no power.
 */
double node_energy_kwh(const struct node_profile *p, double seconds,
		       double busy);

/*
 * The link of the all-reduce: NVLink if the node has it, else PCIe, else a link
 * of `host_bytes_per_s`, the rate from host to GPU. With `nodes` > 1 all
 * traffic crosses the network: the slower rate and the longer latency apply.
 * -ENODEV with a text: no network between nodes.
 */
int node_peer_link(const struct node_profile *p, double host_bytes_per_s,
		   uint64_t nodes, double *ret_bytes_per_s,
		   uint64_t *ret_latency_ns, struct err *err);

/*
 * The links of c->n GPUs in the node, and the all-reduce of the model over all
 * `nodes`. A profile of all zeros is a single node without limits.
 */
int node_links(const struct node_profile *p, const struct gpu_profile *gpu,
	       const struct gpu_model *m, uint64_t nodes, struct gpus_config *c,
	       struct err *err);

#endif
