/* SPDX-License-Identifier: MIT */
/*
 * Coordinated preparation, as the user asks for it and as the record has it:
 * NAME:jobs=N,size=SIZE,wait=TIME.
 */
#ifndef GPEMU_LOADER_STAGING_COORDINATE_H
#define GPEMU_LOADER_STAGING_COORDINATE_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"
#include "loader/staging/area_file.h"
#include "loader/staging/staging.h"

struct coordinate {
	char name[AREA_NAME + 1];
	uint64_t jobs;
	uint64_t size;	  /* bytes; 0: as many batches as the jobs make */
	uint64_t wait_ns; /* 0: no limit */
};

/* -EINVAL with a text. */
int coordinate_parse(const char *text, struct coordinate *ret, struct err *err);
/* For `check` of a conf_field. */
int coordinate_check(const void *object, struct err *err);

/* {"name","jobs","bytes","bytes_high_water","batches_made","batches_used",
 * "batches_taken_over","jobs_died","join_wall_seconds"}. */
json_t *coordinate_json(const char *name, const struct staging_stats *s);
void coordinate_summary(const char *name, const struct staging_stats *s,
			FILE *f);

#endif
