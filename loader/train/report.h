/* SPDX-License-Identifier: MIT */
/* The results of a training run: the record, and a summary for people. */
#ifndef GPEMU_LOADER_TRAIN_REPORT_H
#define GPEMU_LOADER_TRAIN_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "emu/gpu/device.h"
#include "loader/account/account.h"
#include "loader/account/analyze.h"
#include "loader/dataset/format_open.h"
#include "loader/dataset/mount.h"
#include "loader/train/bad_samples.h"
#include "loader/nodes/sync.h"
#include "loader/train/resume.h"
#include "loader/train/offload.h"
#include "loader/options/train_node.h"
#include "loader/options/train_options.h"
#include "loader/options/train_prep.h"

/* The rig's ceiling: the rate of a run whose data is always ready. */
struct ceiling {
	double samples_per_s, au;
	uint64_t steps;
	double time_scale;
	double samples_per_wall_s; /* with emulated durations of next to nothing
				    */
};

struct report {
	int argc;
	char **argv;
	const struct train_options *options;
	const struct train_choice *choice;
	const struct gpu_profile *gpu;
	const struct gpu_model *model;
	const struct train_prep *prep;
	const struct train_node *node;
	const struct tick *tick;
	const struct dataset_mount *mount;
	const struct dataset *data;
	const struct bad_samples *bad;
	const struct format_result *how; /* valid if data was opened */
	struct ceiling ceiling;
	uint64_t pinned_bytes; /* peak of locked memory */
	struct err unpinned;   /* why --pin auto does not pin; or no text */
	struct train_account **epoch; /* n_epochs */
	size_t n_epochs;
	struct train_account total;
	struct train_account warm; /* all epochs but the first */
	struct analysis analysis;  /* samples 0: not requested */
	const struct resume *resume;
	const struct device *device;
	struct staging *staging; /* NULL: shared with no other jobs */
	const struct comm *comm; /* the ranks */
	const struct sync *sync; /* NULL: they have no steps together */
	json_t *nodes; /* the parts of all nodes; NULL: there is one, or those
			* of the others were not collected */
	json_t *simulated; /* the mounts of a simulation; NULL: a real run */
	json_t *cores_set; /* of the virtual cores, when; NULL: never */
	json_t *service;   /* of --loader service; NULL: of another */
	const struct offload *offload; /* the same */
	bool interrupted;
};

/* This node's part of a run on several; NULL: no memory. */
json_t *report_node_json(const struct report *r);
/* As bad_samples_json; the first ones of all nodes. */
json_t *report_bad_samples(const struct report *r);
/* The record; NULL: no memory. */
json_t *report_json(const struct report *r);

/* A table with a line per epoch, and a sentence on the bottleneck. */
void report_summary(const struct report *r, FILE *f);

#endif
