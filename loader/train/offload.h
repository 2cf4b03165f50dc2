/* SPDX-License-Identifier: MIT */
/*
 * --offload: which part of the batches a preparation service makes. If it is
 * not given, the first epoch measures what FastFlow decides from (fastflow.h),
 * on steps that are a part of the training:
 *
 *	here	the GPU takes batches that are prepared here: L, P
 *	there	it takes batches that are received: R, O
 *	settled	the rest of the run, as decided; without `there` if the GPU
 *		hardly waited
 *
 * G is known before, from the ceiling. There are two ways to receive them, of
 * which FASTFLOW_BATCH is one of FastFlow's splits; with FASTFLOW_LAST the last
 * of the transforms runs here. Where both are allowed the second is measured as
 * the second epoch begins, `there`; from then on one of them is used, but for
 * the rest of that epoch, which keeps its way. Times on the CPU are those of
 * this process in all, and of its virtual cores.
 */
#ifndef GPEMU_LOADER_TRAIN_OFFLOAD_H
#define GPEMU_LOADER_TRAIN_OFFLOAD_H

#include <jansson.h>
#include <stdio.h>

#include "common/tick.h"
#include "loader/pipeline/intake.h"
#include "service/decide/fastflow_cache.h"

enum { OFFLOAD_WAYS = 2 };

struct offload_config {
	const struct tick *tick;
	double part;	   /* of the batches; < 0: to be measured */
	double gpu;	   /* G, in samples/s */
	uint64_t per_step; /* batches of a step */
	bool virtual;	   /* transforms run on virtual cores */
	const char *cache; /* a file; NULL: none */
	struct fastflow_key key;
	enum fastflow_split way[OFFLOAD_WAYS]; /* that are allowed */
	uint32_t n_ways;		       /* 0: nothing is received */
};

enum offload_phase { OFFLOAD_HERE, OFFLOAD_THERE, OFFLOAD_SETTLED };

struct offload {
	struct offload_config c; /* borrowed */
	enum offload_phase phase;
	double part;  /* < 0: not known yet */
	uint32_t way; /* of c.way, for the intake */
	bool measured, cached;
	struct fastflow_profile profile; /* samples/s; ns */
	struct fastflow_decision decision;
	uint64_t n_here, n_there; /* batches, in all */
	/* of the phase: batches; samples since the warm-up, which ended then */
	uint64_t n, n_samples, since_ns, since_cpu_ns;
};

/* Settled at once if the part is given, or the file has a profile. */
void offload_init(struct offload *o, const struct offload_config *c);
/* Batches that an epoch begins with, of which all are prepared here; and how
 * many it needs to measure. */
uint64_t offload_alone(const struct offload *o);
uint64_t offload_needs(const struct offload *o);
/* The part that the intake begins with, as intake_config. */
double offload_part(const struct offload *o);
/* An epoch begins: what an earlier one has not measured, this one does. Has the
 * way changed? Then the intake must be opened anew. */
bool offload_begin(struct offload *o);
/*
 * A batch was taken from `i`, for the step that is next. Adds the work done
 * here to `work`, where a measurement ends. -errno with a text, as
 * fastflow_cache_put: the profile was not kept.
 */
int offload_taken(struct offload *o, struct intake *i, const struct delivery *d,
		  struct work *work, struct err *err);
/* The record's `offload`; NULL: no memory. */
json_t *offload_json(const struct offload *o);
/* One line for people. */
void offload_summary(const struct offload *o, FILE *f);
/* Lines about what was received, the record's `service`; NULL: none. */
void offload_service_summary(const json_t *service, FILE *f);

#endif
