/* SPDX-License-Identifier: MIT */
#include "runner/run_merge.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/util.h"
#include "runner/cell/run_cell.h"
#include "runner/result/run_study.h"

/* arbitrary: enough to see which part is missing */
enum { MISSING_SHOWN = 8 };

struct merge {
	struct study *studies;
	size_t n;
	struct runner *to; /* of the first study, with the folder to fill */
	size_t n_missing, n_failed;
};

/* Of the first folder where the cell has run well, else of the first where it
 * has failed; NULL: it has not run. */
static json_t *find_record(const struct merge *m, const struct cell *cell,
			   bool *ret_ok)
{
	json_t *record = NULL;

	*ret_ok = false;
	for (size_t i = 0; !record && i < m->n; i++)
		record = cell_record(&m->studies[i].r, cell);
	*ret_ok = record != NULL;
	for (size_t i = 0; !record && i < m->n; i++)
		record = cell_any_record(&m->studies[i].r, cell);
	return record;
}

static void say_missing(const struct merge *m, const struct cell *cell)
{
	char label[90];

	workload_label(m->to->w, cell->point, label, sizeof(label));
	if (m->n_missing <= MISSING_SHOWN)
		log_error("no folder has a record of %s, repetition %zu", label,
			  cell->repetition + 1);
}

static int merge_cell(struct merge *m, size_t index, struct err *err)
{
	_cleanup_free_ char *path = NULL;
	json_auto_t *record = NULL;
	_cleanup_(cell_free) struct cell cell = { 0 };
	bool ok;
	int code = workload_cell(m->to->w, index, m->to->mounted, &cell);

	if (code < 0)
		return code;
	path = runner_path(m->to, "records", cell.id, "json");
	record = find_record(m, &cell, &ok);
	m->n_missing += !record;
	m->n_failed += record && !ok;
	if (!record)
		say_missing(m, &cell);
	else
		code = path ? json_replace(record, path, err) : -ENOMEM;
	return code;
}

static int merge_cells(struct merge *m, struct err *err)
{
	size_t n = workload_n_cells(m->to->w);
	int code = study_write(m->to, err);

	for (size_t i = 0; code == 0 && i < n; i++)
		code = merge_cell(m, i, err);
	if (m->n_missing)
		log_error("%zu of %zu cells have no record: run their shards "
			  "again, which resumes them",
			  m->n_missing, n);
	if (m->n_failed)
		log_error("%zu of %zu cells failed; logs are in the folders "
			  "that were merged",
			  m->n_failed, n);
	return code;
}

static int open_studies(struct merge *m, char *const *folders, struct err *err)
{
	int code = 0;

	for (size_t i = 0; code == 0 && i < m->n; i++) {
		code = study_open(&m->studies[i], folders[i], err);
		if (code == 0 && i > 0)
			code = study_same(&m->studies[0], &m->studies[i], err);
	}
	return code;
}

/* Fill the folder of `to`, and report it. */
static int merge_to(struct merge *m, const struct run_options *o,
		    bool *ret_failed, json_t **ret_summary, struct err *err)
{
	int code = stop_init(&m->to->stop, err);

	if (code == 0)
		code = runner_open(m->to, err);
	if (code == 0)
		code = merge_cells(m, err);
	if (code == 0)
		code = experiment_report(m->to, o->quiet, ret_failed,
					 ret_summary, err);
	*ret_failed = *ret_failed || m->n_missing || m->n_failed;
	return code;
}

int merge_folders(char *const *folders, const struct run_options *o,
		  bool *ret_failed, json_t **ret_summary, struct stop *ret_stop,
		  struct err *err)
{
	struct merge m = { 0 };
	struct runner to;
	int code;

	while (folders[m.n])
		m.n++;
	m.studies = calloc(m.n + 1, sizeof(*m.studies));
	if (!m.studies)
		return -ENOMEM;
	for (size_t i = 0; i < m.n; i++)
		m.studies[i].r =
			(struct runner){ .lock_fd = -1, .stop.fd = -1 };
	code = open_studies(&m, folders, err);
	to = (struct runner){ .w = &m.studies[0].w,
			      .mounted = m.studies[0].r.mounted,
			      .out = strdup(o->output),
			      .lock_fd = -1,
			      .stop.fd = -1 };
	m.to = &to;
	if (code == 0)
		code = to.out ? merge_to(&m, o, ret_failed, ret_summary, err)
			      : -ENOMEM;
	*ret_stop = to.stop;
	runner_fini(&to);
	for (size_t i = 0; i < m.n; i++)
		study_close(&m.studies[i]);
	free(m.studies);
	return code;
}
