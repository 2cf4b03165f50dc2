/* SPDX-License-Identifier: MIT */
#include "runner/cell/run_combination.h"

#include <errno.h>
#include <stdlib.h>

#include "common/json.h"
#include "common/util.h"

struct combinations {
	struct runner *r;
	json_t *known; /* {"PROGRAM CONFIG": true} */
};

/* Where the file sets what is special about the point: the last axis of this
 * program, else its base. */
static const struct conf_node *place_of(const struct workload *w, size_t point,
					enum run_program program)
{
	const struct conf_node *place = program == RUN_FS      ? w->base.fs
					: program == RUN_TRAIN ? w->base.train
							       : w->base.gpud;

	for (size_t a = 0; a < w->n_axes; a++) {
		const struct axis_point *p = workload_at(w, point, a);

		for (size_t i = 0; i < p->n_settings; i++)
			if (p->settings[i].program == program)
				place = p->settings[i].value;
	}
	return place ? place : w->root;
}

static int check_one(struct combinations *c, size_t point,
		     enum run_program program, const json_t *config,
		     struct err *err)
{
	_cleanup_free_ char *text =
		json_dumps(config, JSON_COMPACT | JSON_SORT_KEYS);
	_cleanup_free_ char *key = NULL;
	const struct workload *w = c->r->w;
	struct err why = { 0 };
	char label[90];
	int code;

	if (!text || asprintf(&key, "%d %s", (int)program, text) < 0)
		return -ENOMEM;
	if (json_object_get(c->known, key))
		return 0;
	if (json_object_set_new(c->known, key, json_true()) < 0)
		return -ENOMEM;
	code = runner_check_config(c->r, program, config, &why);
	if (code != -EINVAL)
		return code < 0 ? err_set(err, code, "%s", why.text) : 0;
	workload_label(w, point, label, sizeof(label));
	return conf_node_error(place_of(w, point, program), w->path, err,
			       "%s: %s: %s", label, run_program_name(program),
			       why.text);
}

static int check_cell(struct combinations *c, const struct cell *cell,
		      struct err *err)
{
	int code = 0;

	for (size_t i = 0; code == 0 && i < cell->n_mounts; i++)
		code = check_one(c, cell->point, RUN_FS, cell->mounts[i].fs,
				 err);
	for (size_t i = 0; code == 0 && i < cell->n_jobs; i++)
		if (!cell_is_exec(&cell->jobs[i]))
			code = check_one(c, cell->point, RUN_TRAIN,
					 cell->jobs[i].train, err);
	if (code == 0 && cell->gpud)
		code = check_one(c, cell->point, RUN_GPUD, cell->gpud, err);
	return code;
}

int combination_check(struct runner *r, struct err *err)
{
	struct combinations c = { .r = r, .known = json_object() };
	int code = c.known ? 0 : -ENOMEM;

	for (size_t i = 0; code == 0 && i < r->w->n_points; i++) {
		struct cell cell;

		code = workload_configure(r->w, i, &cell);
		if (code < 0)
			break;
		code = check_cell(&c, &cell, err);
		cell_free(&cell);
	}
	json_decref(c.known);
	return code;
}
