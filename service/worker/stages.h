/* SPDX-License-Identifier: MIT */
/* The loader's own stages on a worker: the dataset, the order of an epoch, and
 * the pipeline, as a trainer's definition and the worker's options say. */
#ifndef GPEMU_SERVICE_WORKER_STAGES_H
#define GPEMU_SERVICE_WORKER_STAGES_H

#include "common/tick.h"
#include "loader/dataset/format_open.h"
#include "loader/dataset/mount.h"
#include "loader/order/schedule.h"
#include "loader/pipeline/pipeline.h"
#include "loader/options/train_data.h"
#include "loader/options/train_prep.h"

/* The worker's own; 0 and NULL: as gpemu-train. */
struct stages_options {
	const char *data; /* trainers get what is at or below it */
	const char *loader;
	uint64_t workers, cores, queue_depth, prefetch;
	double time_scale;
};

struct stages {
	struct train_options options;
	struct train_choice choice;
	struct train_prep prep;
	struct dataset data;
	struct format_result how;
	struct dataset_mount mount;
	struct order_schedule schedule;
};

/* -EINVAL and others, with a text. Free with stages_close, failed or not;
 * `s` must not move until then. */
int stages_open(struct stages *s, const char *definition,
		const struct stages_options *own, struct err *err);
void stages_close(struct stages *s);

/* The order of an epoch, in s->schedule.order; of a worker that has an order
 * of its own (SPLIT_OFF), `pass` from 0. */
int stages_order(struct stages *s, uint64_t epoch, struct err *err);
void stages_own_order(struct stages *s, uint64_t epoch, uint64_t worker,
		      uint64_t pass);
struct pipeline_config stages_pipeline(struct stages *s, struct tick *tick);

#endif
