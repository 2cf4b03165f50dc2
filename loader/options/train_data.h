/* SPDX-License-Identifier: MIT */
/* The dataset of a training run: from its options to the record. */
#ifndef GPEMU_LOADER_OPTIONS_TRAIN_DATA_H
#define GPEMU_LOADER_OPTIONS_TRAIN_DATA_H

#include <jansson.h>

#include "loader/dataset/format_open.h"
#include "loader/dataset/mount.h"
#include "loader/options/train_options.h"
#include "loader/options/train_prep.h"
#include "loader/order/schedule.h"
#include "loader/pipeline/pipeline.h"

/* Parse the named options. -EINVAL with a text. */
int train_data_resolve(const struct train_options *o, struct train_choice *ret,
		       struct err *err);
/* N or P%, and ",drop", ",replace" or ",zeros". -EINVAL with a text. */
int train_bad_parse(const char *text, struct train_bad *ret, struct err *err);
/* As format_open. */
int train_data_open(const struct train_options *o, const struct train_choice *c,
		    struct dataset *ret, struct format_result *ret_how,
		    struct err *err);
/* In which order its samples are read. `d` stays in use, as `options`. */
struct schedule_config train_data_schedule(const struct train_options *o,
					   const struct train_choice *c,
					   const struct dataset *d);
/* How: what a training run and a worker of the service have in common. */
struct pipeline_config train_data_pipeline(const struct train_options *o,
					   const struct train_choice *c,
					   const struct train_prep *prep,
					   const struct dataset_mount *m,
					   const struct dataset *d);
/* {"format","samples","classes","bytes","shards","groups","list_s",
 * "from_index","index","notes","tokens"}; of a simulation, which opens nothing,
 * {"samples","bytes","notes"}; null without a dataset. */
json_t *train_data_json(const struct dataset *d,
			const struct format_result *how);

#endif
