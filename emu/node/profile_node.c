/* SPDX-License-Identifier: MIT */
#include "emu/node/profile_node.h"

#include <errno.h>
#include <stdlib.h>

#include "common/util.h"
#include "emu/gpu/gpus.h"
#include "emu/profile/profile.h"
#include "emu/profile/profile_gpu.h"

/* Bounds that no link reaches. */
#define MAX_GB_PER_S 1e6
#define MAX_LATENCY 1e9

static const struct conf_field link_fields[] = {
	{ CONF_KEY(gb_per_s, CONF_DOUBLE, struct node_link), .required = true,
	  .min = 0, .max = MAX_GB_PER_S },
	{ "latency", CONF_DURATION, offsetof(struct node_link, latency_ns),
	  .min = 0, .max = MAX_LATENCY },
	{ CONF_KEY(source, CONF_STRING, struct node_link), .required = true },
	{ 0 },
};
static const struct conf_field pcie_fields[] = {
	{ CONF_KEY(gpu_gb_per_s, CONF_DOUBLE, struct node_pcie), .min = 0,
	  .max = MAX_GB_PER_S },
	{ CONF_KEY(root_gb_per_s, CONF_DOUBLE, struct node_pcie), .min = 0,
	  .max = MAX_GB_PER_S },
	{ CONF_KEY(gpus_per_root, CONF_UINT, struct node_pcie), .min = 0,
	  .max = GPUS_MAX },
	{ CONF_KEY(peer_gb_per_s, CONF_DOUBLE, struct node_pcie), .min = 0,
	  .max = MAX_GB_PER_S },
	{ "latency", CONF_DURATION, offsetof(struct node_pcie, latency_ns),
	  .min = 0, .max = MAX_LATENCY },
	{ CONF_KEY(source, CONF_STRING, struct node_pcie), .required = true },
	{ 0 },
};
static int check_power(const void *object, struct err *err)
{
	const struct node_power *p = object;

	return p->full_w < p->idle_w
		       ? err_set(err, -EINVAL, "full_w is below idle_w")
		       : 0;
}

/* arbitrary: bounds that no node reaches */
static const struct conf_field price_fields[] = {
	{ CONF_KEY(usd_per_hour, CONF_DOUBLE, struct node_price),
	  .required = true, .min = 0, .max = 1e6 },
	{ CONF_KEY(source, CONF_STRING, struct node_price), .required = true },
	{ 0 },
};
static const struct conf_field power_fields[] = {
	{ CONF_KEY(idle_w, CONF_DOUBLE, struct node_power), .required = true,
	  .min = 0, .max = 1e6 },
	{ CONF_KEY(full_w, CONF_DOUBLE, struct node_power), .required = true,
	  .min = 0, .max = 1e6 },
	{ CONF_KEY(source, CONF_STRING, struct node_power), .required = true },
	{ 0 },
};
static const struct conf_field fields[] = {
	PROFILE_HEAD(struct node_profile),
	{ CONF_KEY(gpus, CONF_UINT, struct node_profile), .required = true,
	  .min = 1, .max = GPUS_MAX },
	{ CONF_KEY(gpu, CONF_STRING, struct node_profile) },
	{ CONF_KEY(cores, CONF_UINT, struct node_profile), .required = true,
	  .min = 1, .max = 4096 },
	{ "memory", CONF_SIZE, offsetof(struct node_profile, memory_bytes),
	  .required = true, .min = 1, .max = 1e18 },
	{ CONF_KEY(pcie, CONF_RECORD, struct node_profile), .required = true,
	  .fields = pcie_fields },
	{ CONF_KEY(nvlink, CONF_RECORD, struct node_profile),
	  .fields = link_fields },
	{ CONF_KEY(nic, CONF_RECORD, struct node_profile),
	  .fields = link_fields },
	{ CONF_KEY(price, CONF_RECORD, struct node_profile),
	  .fields = price_fields },
	{ CONF_KEY(power, CONF_RECORD, struct node_profile),
	  .fields = power_fields, .check = check_power },
	{ 0 },
};

PROFILE_FUNCTIONS(node, PROFILE_NODE, NULL, 0, 0)

const char *node_gpu(const struct node_profile *p)
{
	const char *given = secure_getenv("GPEMU_GPU_PROFILE");

	if (p->gpu)
		return p->gpu;
	return given && given[0] ? given : GPU_DEFAULT;
}

double node_cost_usd(const struct node_profile *p, double seconds)
{
	return p->price.source ? p->price.usd_per_hour * seconds / 3600 : -1;
}

double node_energy_kwh(const struct node_profile *p, double seconds,
		       double busy)
{
	double share = MIN(busy / (double)p->gpus, 1);
	double watts =
		p->power.idle_w + (p->power.full_w - p->power.idle_w) * share;

	return p->power.source ? watts * seconds / 3.6e6 : -1;
}

int node_peer_link(const struct node_profile *p, double host_bytes_per_s,
		   uint64_t nodes, double *ret_bytes_per_s,
		   uint64_t *ret_latency_ns, struct err *err)
{
	double rate = host_bytes_per_s;
	uint64_t latency = p->pcie.latency_ns;

	if (p->pcie.gpu_gb_per_s > 0)
		rate = MIN(rate, p->pcie.gpu_gb_per_s * 1e9);
	if (p->pcie.peer_gb_per_s > 0)
		rate = p->pcie.peer_gb_per_s * 1e9;
	if (p->nvlink.gb_per_s > 0) {
		rate = p->nvlink.gb_per_s * 1e9;
		latency = p->nvlink.latency_ns;
	}
	if (nodes > 1) {
		if (p->nic.gb_per_s <= 0)
			return err_set(err, -ENODEV,
				       "%s: the node has no nic, but several "
				       "nodes have to exchange gradients",
				       p->name);
		rate = MIN(rate, p->nic.gb_per_s * 1e9);
		latency = MAX(latency, p->nic.latency_ns);
	}
	*ret_bytes_per_s = rate;
	*ret_latency_ns = latency;
	return 0;
}

int node_links(const struct node_profile *p, const struct gpu_profile *gpu,
	       const struct gpu_model *m, uint64_t nodes, struct gpus_config *c,
	       struct err *err)
{
	if (!p->name)
		nodes = 1;
	c->slot_bytes_per_s = p->pcie.gpu_gb_per_s * 1e9;
	c->root_bytes_per_s = p->pcie.root_gb_per_s * 1e9;
	c->gpus_per_root = (uint32_t)p->pcie.gpus_per_root;
	c->reduce.ranks = (uint32_t)(c->n * nodes);
	c->reduce.bytes = m->parameters * sizeof(float);
	return node_peer_link(p, gpu_link_bytes_per_s(gpu), nodes,
			      &c->reduce.bytes_per_s, &c->reduce.latency_ns,
			      err);
}
