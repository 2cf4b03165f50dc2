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
	{ "gb_per_s", CONF_DOUBLE, offsetof(struct node_link, gb_per_s),
	  .required = true, .min = 0, .max = MAX_GB_PER_S },
	{ "latency", CONF_DURATION, offsetof(struct node_link, latency_ns),
	  .min = 0, .max = MAX_LATENCY },
	{ "source", CONF_STRING, offsetof(struct node_link, source),
	  .required = true },
	{ 0 },
};
static const struct conf_field pcie_fields[] = {
	{ "gpu_gb_per_s", CONF_DOUBLE, offsetof(struct node_pcie, gpu_gb_per_s),
	  .min = 0, .max = MAX_GB_PER_S },
	{ "root_gb_per_s", CONF_DOUBLE,
	  offsetof(struct node_pcie, root_gb_per_s), .min = 0,
	  .max = MAX_GB_PER_S },
	{ "gpus_per_root", CONF_UINT, offsetof(struct node_pcie, gpus_per_root),
	  .min = 0, .max = GPUS_MAX },
	{ "peer_gb_per_s", CONF_DOUBLE,
	  offsetof(struct node_pcie, peer_gb_per_s), .min = 0,
	  .max = MAX_GB_PER_S },
	{ "latency", CONF_DURATION, offsetof(struct node_pcie, latency_ns),
	  .min = 0, .max = MAX_LATENCY },
	{ "source", CONF_STRING, offsetof(struct node_pcie, source),
	  .required = true },
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
	{ "usd_per_hour", CONF_DOUBLE,
	  offsetof(struct node_price, usd_per_hour), .required = true, .min = 0,
	  .max = 1e6 },
	{ "source", CONF_STRING, offsetof(struct node_price, source),
	  .required = true },
	{ 0 },
};
static const struct conf_field power_fields[] = {
	{ "idle_w", CONF_DOUBLE, offsetof(struct node_power, idle_w),
	  .required = true, .min = 0, .max = 1e6 },
	{ "full_w", CONF_DOUBLE, offsetof(struct node_power, full_w),
	  .required = true, .min = 0, .max = 1e6 },
	{ "source", CONF_STRING, offsetof(struct node_power, source),
	  .required = true },
	{ 0 },
};
static const struct conf_field fields[] = {
	PROFILE_HEAD(struct node_profile),
	{ "gpus", CONF_UINT, offsetof(struct node_profile, gpus),
	  .required = true, .min = 1, .max = GPUS_MAX },
	{ "gpu", CONF_STRING, offsetof(struct node_profile, gpu) },
	{ "cores", CONF_UINT, offsetof(struct node_profile, cores),
	  .required = true, .min = 1, .max = 4096 },
	{ "memory", CONF_SIZE, offsetof(struct node_profile, memory_bytes),
	  .required = true, .min = 1, .max = 1e18 },
	{ "pcie", CONF_RECORD, offsetof(struct node_profile, pcie),
	  .required = true, .fields = pcie_fields },
	{ "nvlink", CONF_RECORD, offsetof(struct node_profile, nvlink),
	  .fields = link_fields },
	{ "nic", CONF_RECORD, offsetof(struct node_profile, nic),
	  .fields = link_fields },
	{ "price", CONF_RECORD, offsetof(struct node_profile, price),
	  .fields = price_fields },
	{ "power", CONF_RECORD, offsetof(struct node_profile, power),
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
