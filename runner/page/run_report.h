/* SPDX-License-Identifier: MIT */
/*
 * report.html: one page that holds all of an experiment - question, verdicts,
 * table, plots, where the time went, setup, provenance - and needs nothing
 * else: no network, no script, no other file.
 */
#ifndef GPEMU_RUNNER_PAGE_RUN_REPORT_H
#define GPEMU_RUNNER_PAGE_RUN_REPORT_H

#include "runner/result/run_verdict.h"

/* Write it to OUT/report.html, whole or not at all. The plots must have been
 * drawn; one that was not is left out. -errno. */
int report_write(const struct result *res, const struct verdicts *v,
		 struct err *err);
/* The same to a stream. */
void report_html(const struct result *res, const struct verdicts *v, FILE *f);

#endif
