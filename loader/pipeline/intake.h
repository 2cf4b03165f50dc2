/* SPDX-License-Identifier: MIT */
/*
 * Where a trainer's batches come from: a pipeline of this process (here),
 * batches that a service makes (loader/engine/remote.h; without workers and pin
 * stage), or both at once.
 *
 *	order: | first batches | the others |
 *	             |               |
 *	          service         pipeline
 *	             '---> turns <---'
 *	                     |
 *	                intake_next
 *
 * Each batch of an epoch is dealt to one of them, so each sample is prepared
 * once. They are taken by turns, as many as were dealt, so that both end
 * together; but if one has no batch now, and the other has, from the other. If
 * neither has, the one whose turn it is is awaited. Source of the turns:
 * fastflow.h.
 *
 * One thread, the consumer, calls everything here but intake_interrupt and
 * intake_set_cores.
 */
#ifndef GPEMU_LOADER_PIPELINE_INTAKE_H
#define GPEMU_LOADER_PIPELINE_INTAKE_H

#include <jansson.h>

#include "loader/engine/remote.h"
#include "loader/pipeline/pipeline.h"
#include "loader/pipeline/sift.h"

struct intake_config {
	/* With an engine whose batches are made elsewhere there is none. With
	 * both each has half of `pin_budget`. */
	struct pipeline_config pipeline;
	const struct engine_ops *remote; /* NULL: nothing is received */
	const void *remote_options;
	const struct remote_service *service;
	/* The last of the transforms runs here, in so many threads (finish.h),
	 * on what is received; 0: not. */
	uint32_t last_threads;
	/* Of the batches of an epoch, received: 0..1. < 0: not known until
	 * intake_settle. An epoch then begins with `alone` batches that are
	 * prepared here; when they are taken, intake_receive or intake_settle
	 * must follow, and after intake_receive intake_settle, at any time. */
	double part;
	uint64_t alone;
	enum sift sift; /* what becomes of samples that cannot be used */
};

struct intake;

/* As pipeline_new and remote_ops.open; -E2BIG, -EPERM, -ENOMEM: no memory for
 * the batches. With a text. */
int intake_new(const struct intake_config *c, struct intake **ret,
	       struct err *err);
void intake_free(struct intake *i);

/* As pipeline_begin. */
void intake_begin(struct intake *i, uint64_t epoch, const uint32_t *order,
		  uint64_t n);
/* The rest of the epoch is received, until intake_settle. */
void intake_receive(struct intake *i);
/* The part of what is left of this epoch, and of later ones. Batches on their
 * way from the service stay so; in all by up to a split more or less. */
void intake_settle(struct intake *i, double part);

/* Each as that of pipeline.h; of both, where there are both. */
int intake_set_cores(struct intake *i, uint32_t n);
int intake_next(struct intake *i, uint64_t idle, uint64_t until,
		struct delivery *ret, struct err *err);
bool intake_ready(struct intake *i);
uint64_t intake_left(const struct intake *i);
void intake_release(struct intake *i, struct delivery *d);
int intake_lend(struct intake *i, struct delivery *d, struct loan **ret);
uint32_t intake_loans(const struct intake *i);
void intake_interrupt(struct intake *i);
void intake_join(struct intake *i);
void intake_work(struct intake *i, struct work *ret);
uint64_t intake_pinned(struct intake *i);
/* What was received, for the record; NULL: nothing can be, or no memory. */
json_t *intake_service_json(struct intake *i);

#endif
