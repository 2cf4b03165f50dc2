/* SPDX-License-Identifier: MIT */
#include "emu/gpu/gpus.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/util.h"
#include "common/word.h"
#include "emu/gpu/link.h"

/* --- sharded parameters --------------------------------------------------- */

/* One pass over the units, first to last. */
struct pass {
	const struct fsdp *f;
	uint64_t compute_ns, gather_ns, reduce_ns; /* of a unit */
	uint64_t compute; /* the device is busy until */
	uint64_t link;	  /* the link is busy until */
};

static uint64_t collective(const struct fsdp *f, uint64_t bytes)
{
	uint64_t hops = f->ranks - 1;

	return link_ns(f->bytes_per_s, bytes * hops / f->ranks) +
	       hops * f->latency_ns;
}

/*
 * Unit k may be gathered once unit k - 1 - prefetch is computed, that is, when
 * the computation of the next one begins. `here`: the first is there already.
 */
static void run_pass(struct pass *p, bool here)
{
	uint32_t n = p->f->units, ahead = p->f->prefetch + 1, gathered = 0;
	uint64_t end[FSDP_UNITS_MAX]; /* of unit k's computation */
	uint64_t at[FSDP_UNITS_MAX];  /* unit k's parameters are there */
	uint64_t start = p->compute;

	for (uint32_t k = 0; k < n; k++) {
		uint64_t ready;

		for (; gathered < n && gathered <= k + p->f->prefetch;
		     gathered++) {
			uint64_t from = gathered < ahead
						? start
						: end[gathered - ahead];

			if (gathered == 0 && here) {
				at[0] = start;
				continue;
			}
			p->link = MAX(p->link, from) + p->gather_ns;
			at[gathered] = p->link;
		}
		ready = MAX(p->compute, at[k]);
		p->compute = end[k] = ready + p->compute_ns;
		if (p->reduce_ns)
			p->link = MAX(p->link, end[k]) + p->reduce_ns;
	}
}

uint64_t fsdp_exposed_ns(const struct fsdp *f, uint64_t forward_ns,
			 uint64_t backward_ns)
{
	struct pass p = { .f = f };
	uint64_t alone;

	if (f->ranks < 2)
		return 0;
	p.compute_ns = forward_ns / f->units;
	p.gather_ns = collective(f, f->weight_bytes / f->units);
	run_pass(&p, false);
	alone = p.compute_ns * f->units;
	if (backward_ns) {
		p.compute_ns = backward_ns / f->units;
		p.reduce_ns = collective(f, f->gradient_bytes / f->units);
		run_pass(&p, true);
		alone += p.compute_ns * f->units;
	}
	return MAX(p.compute, p.link) - alone;
}

int gpus_parallel_parse(const char *s, enum gpus_parallel *ret, struct err *err)
{
	static const char *const words[] = {
		[GPUS_DDP] = "ddp", [GPUS_DP] = "dp", [GPUS_FSDP] = "fsdp"
	};

	return WORD_INTO(words, "--parallel", s, ret, err);
}

/* One thread drives all GPUs and copies the next batch afterwards. */
enum gpu_transfer gpus_transfer(const struct gpus_config *c)
{
	return c->parallel == GPUS_DP && c->n > 1 ? GPU_TRANSFER_BLOCKING
						  : c->transfer;
}

void gpus_init(struct gpus *g, const struct gpus_config *c, uint64_t now)
{
	g->config = *c;
	g->accumulates = false;
	g->config.transfer = gpus_transfer(c);
	for (uint32_t i = 0; i < c->n; i++) {
		gpu_init(&g->gpu[i], g->config.transfer, now);
		g->gpu[i].host_ns = c->host_ns;
		g->root[i] = (struct link){ c->root_bytes_per_s, now };
	}
}

struct gpus_part gpus_copy_of(const struct gpu_profile *p,
			      const struct gpu_model *m, uint64_t bytes,
			      bool pinned)
{
	enum gpu_copy how = pinned ? GPU_COPY_PINNED : GPU_COPY_PAGEABLE;

	return (struct gpus_part){ .copy_ns = gpu_copy_ns(p, m, how, bytes),
				   .copy_bytes = bytes };
}

struct gpus_part gpus_compute_of(const struct gpu_profile *p,
				 const struct gpu_model *m, uint32_t n,
				 uint64_t bytes)
{
	struct gpu_cost c;

	if (n == 0)
		return (struct gpus_part){ 0 };
	gpu_profile_cost(p, m, n, &c);
	return (struct gpus_part){
		.part_bytes = bytes,
		.forward_ns = c.forward_ns,
		.backward_ns = c.backward_ns - c.optimizer_ns,
		.optimizer_ns = c.optimizer_ns,
	};
}

void gpus_set_compute(struct gpus_part *part, double ns)
{
	part->forward_ns = (uint64_t)llround(ns / 3);
	part->backward_ns = (uint64_t)llround(ns) - part->forward_ns;
	part->optimizer_ns = 0;
}

uint32_t gpus_cut(uint32_t samples, uint32_t n, uint32_t i)
{
	uint64_t part = ((uint64_t)samples + n - 1) / n, from = part * i;

	return from < samples ? (uint32_t)MIN(part, samples - from) : 0;
}

static struct link *root_of(struct gpus *g, uint32_t i)
{
	uint32_t per = g->config.gpus_per_root;

	return &g->root[per ? i / per : 0];
}

/* When a copy of `bytes` to GPU i ends that takes `ns` without contention. */
static uint64_t send(struct gpus *g, uint32_t i, uint64_t at, uint64_t ns,
		     uint64_t bytes)
{
	uint64_t slot = link_ns(g->config.slot_bytes_per_s, bytes);
	uint64_t root = link_send(root_of(g, i), at, bytes);

	return MAX(at + MAX(ns, slot), root);
}

void gpus_copy(struct gpus *g, uint32_t i, uint64_t ready,
	       const struct gpus_part *part, struct gpu_step *ret)
{
	uint64_t at = MAX(ready, gpu_room(&g->gpu[i]));

	gpu_copy(&g->gpu[i], at,
		 send(g, i, at, part->copy_ns, part->copy_bytes), ret);
}

/* The transfers of DataParallel before and after the computation. */
static uint64_t scatter_ns(const struct gpus *g, uint32_t used,
			   const struct gpus_part *part)
{
	uint64_t bytes = 0;

	for (uint32_t i = 1; i < used; i++)
		bytes += part[i].part_bytes;
	return link_ns(g->config.reduce.bytes_per_s, bytes);
}

static uint64_t model_ns(const struct gpus *g, uint32_t used)
{
	const struct collective *c = &g->config.reduce;

	if (used < 2)
		return 0;
	return link_ns(c->bytes_per_s, 2 * c->bytes * (used - 1) / used) +
	       used * c->latency_ns;
}

/* Forward and backward, `before` and what else precedes them. */
static void compute_part(struct gpu *g, uint64_t before,
			 const struct gpus_part *part, struct gpu_step *step)
{
	gpu_compute(g, before + part->prep_ns + part->warmup_ns,
		    part->forward_ns + part->backward_ns, step);
	step->host_stall_ns += part->warmup_ns;
	step->prep_ns = part->prep_ns;
}

static uint64_t step_dp(struct gpus *g, uint32_t used,
			const struct gpus_part *part, struct gpu_step *step)
{
	uint64_t model = model_ns(g, used), slowest = 0, end;
	uint64_t before = scatter_ns(g, used, part) + model / 2;
	uint64_t after = g->config.inference ? 0 : model - model / 2;

	for (uint32_t i = 0; i < used; i++) {
		if (i)
			step[i] = step[0];
		compute_part(&g->gpu[i], before, &part[i], &step[i]);
		slowest = MAX(slowest, step[i].compute_end);
	}
	end = slowest + after;
	for (uint32_t i = 0; i < used; i++) {
		step[i].barrier_wait_ns = slowest - step[i].compute_end;
		step[i].allreduce_ns = before + end - slowest;
		if (i)
			step[i].barrier_wait_ns += part[0].optimizer_ns;
	}
	step[0].optimizer_ns = part[0].optimizer_ns;
	return end + part[0].optimizer_ns;
}

/* DistributedDataParallel: forward and backward; pass[i] of each GPU. */
static void compute(struct gpus *g, uint32_t used, const struct gpus_part *part,
		    struct gpu_step *step, struct collective_pass *pass,
		    struct gpus_reach *ret)
{
	*ret = (struct gpus_reach){ .accumulates = g->accumulates };
	for (uint32_t i = 0; i < used; i++) {
		compute_part(&g->gpu[i], 0, &part[i], &step[i]);
		step[i].allreduce_ns = part[i].sharded_ns;
		pass[i].end = step[i].compute_end + part[i].sharded_ns;
		pass[i].start = pass[i].end - part[i].backward_ns;
		ret->pass.start = MAX(ret->pass.start, pass[i].start);
		ret->pass.end = MAX(ret->pass.end, pass[i].end);
		ret->optimizer_ns =
			MAX(ret->optimizer_ns, part[i].optimizer_ns);
	}
}

/* From the end of the backward passes to the end of the step. */
static uint64_t finish_ddp(uint32_t used, const struct gpus_reach *all,
			   uint64_t reduced, struct gpu_step *step)
{
	for (uint32_t i = 0; i < used; i++) {
		step[i].barrier_wait_ns = all->pass.end - step[i].compute_end -
					  step[i].allreduce_ns;
		step[i].allreduce_ns += reduced - all->pass.end;
		step[i].optimizer_ns = all->optimizer_ns;
	}
	return reduced + all->optimizer_ns;
}

static uint64_t step_ddp(struct gpus *g, uint32_t used,
			 const struct gpus_part *part, struct gpu_step *step)
{
	struct collective_pass pass[GPUS_MAX] = { { 0 } };
	struct gpus_reach all;
	uint64_t reduced;

	compute(g, used, part, step, pass, &all);
	reduced =
		g->config.inference || g->accumulates
			? all.pass.end
			: collective_overlapped(&g->config.reduce, pass, used);
	return finish_ddp(used, &all, reduced, step);
}

/* All GPUs, also those without a part, end their step together. */
static uint64_t end_all(struct gpus *g, uint32_t used, uint64_t end,
			struct gpu_step *step)
{
	for (uint32_t i = 0; i < g->config.n; i++) {
		uint64_t idle = g->gpu[i].compute_end;

		if (i >= used)
			step[i] = (struct gpu_step){
				.copy_start = idle,
				.copy_end = idle,
				.compute_start = idle,
				.compute_end = idle,
				.barrier_wait_ns = end - idle,
			};
		gpu_end(&g->gpu[i], end, &step[i]);
	}
	return end;
}

uint64_t gpus_step(struct gpus *g, uint32_t used, const struct gpus_part *part,
		   struct gpu_step *step)
{
	bool dp = g->config.parallel == GPUS_DP && g->config.n > 1;

	return end_all(g, used,
		       dp ? step_dp(g, used, part, step)
			  : step_ddp(g, used, part, step),
		       step);
}

void gpus_compute(struct gpus *g, uint32_t used, const struct gpus_part *part,
		  struct gpu_step *step, struct gpus_reach *ret)
{
	struct collective_pass pass[GPUS_MAX];

	compute(g, used, part, step, pass, ret);
}

uint64_t gpus_reduced(struct gpus *g, uint32_t used,
		      const struct gpus_reach *all, uint64_t reduced,
		      struct gpu_step *step)
{
	return end_all(g, used, finish_ddp(used, all, reduced, step), step);
}

uint64_t gpus_load_model(struct gpus *g, uint64_t at, uint64_t ns,
			 uint64_t bytes)
{
	bool dp = g->config.parallel == GPUS_DP;
	uint64_t end = at;

	for (uint32_t i = 0; i < (dp ? 1 : g->config.n); i++) {
		uint64_t sent = send(g, i, at, ns, bytes);

		end = MAX(end, sent);
	}
	return end;
}

void gpus_hold(struct gpus *g, uint64_t until)
{
	for (uint32_t i = 0; i < g->config.n; i++)
		gpu_hold(&g->gpu[i], until);
}
