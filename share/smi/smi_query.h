/* SPDX-License-Identifier: MIT */
/* nvidia-smi's queries: --query-gpu=FIELD,... --format=csv, and of processes
 * --query-compute-apps. */
#ifndef GPEMU_SHARE_SMI_SMI_QUERY_H
#define GPEMU_SHARE_SMI_SMI_QUERY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "common/err.h"
#include "share/smi/smi_field.h"

enum { SMI_COLUMNS = 512 }; /* arbitrary: all fields, twice */

struct smi_query {
	const struct smi_field *columns[SMI_COLUMNS];
	size_t n;
	bool processes; /* a row for each; else for each GPU */
	bool no_header, no_units;
};

/*
 * `ret->processes` says of what. Any texts; spaces around names are ignored.
 * -EINVAL with nvidia-smi's text: an unknown field or format; -E2BIG: too many.
 */
int smi_query_parse(struct smi_query *ret, const char *fields,
		    const char *format, struct err *err);
void smi_query_header(const struct smi_query *q, FILE *f);
/* `facts`: of smi_facts. */
void smi_query_rows(const struct smi_query *q, const json_t *facts, FILE *f);
/* The fields, as --help-query-gpu lists them. */
void smi_query_help(bool processes, FILE *f);

#endif
