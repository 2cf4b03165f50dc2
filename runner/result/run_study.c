/* SPDX-License-Identifier: MIT */
#include "runner/result/run_study.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/json.h"
#include "common/util.h"
#include "common/version.h"
#include "runner/result/run_compare.h"

/* --- write ------------------------------------------------------------ */

static int hashes_json(const struct runner *r, json_t *to)
{
	for (size_t i = 0; i < workload_n_cells(r->w); i++) {
		_cleanup_(cell_free) struct cell cell = { 0 };
		char hash[17];

		if (workload_cell(r->w, i, r->mounted, &cell) < 0)
			return -ENOMEM;
		snprintf(hash, sizeof(hash), "%016" PRIx64, cell.hash);
		if (json_array_append_new(to, json_string(hash)) < 0)
			return -ENOMEM;
	}
	return 0;
}

int study_write(const struct runner *r, struct err *err)
{
	const struct workload *w = r->w;
	_cleanup_free_ char *path = util_join(r->out, "study.json");
	json_auto_t *cells = json_array(), *j = NULL;

	if (!path || !cells || hashes_json(r, cells) < 0)
		return -ENOMEM;
	j = json_pack("{s:s, s:o, s:o, s:I, s:I, s:f, s:b, s:O, s:O, s:O, s:O, "
		      "s:O}",
		      "gpemu", GPEMU_VERSION, "file", json_bytes(w->path),
		      "workload", workload_value(w->root), "repetitions",
		      (json_int_t)w->repetitions, "seed", (json_int_t)w->seed,
		      "time_scale", w->time_scale, "mounted", r->mounted,
		      "profiles", w->profiles, "files", w->files, "defaults",
		      w->defaults, "cells", cells, "overrides", w->overrides);
	return j ? json_replace(j, path, err) : -ENOMEM;
}

/* --- read ------------------------------------------------------------- */

static int parse_workload(struct study *s, const char *file, const json_t *tree,
			  struct err *err)
{
	/* JSON is YAML */
	_cleanup_free_ char *text = json_dumps(tree, JSON_COMPACT);

	return text ? workload_parse(text, strlen(text), file, &s->w, err)
		    : -ENOMEM;
}

static int take_hashes(struct workload *w, const json_t *cells)
{
	size_t n = workload_n_cells(w);

	if (json_array_size(cells) != n)
		return -EINVAL;
	w->hashes = calloc(n, sizeof(*w->hashes));
	for (size_t i = 0; w->hashes && i < n; i++) {
		const char *text = json_string_value(json_array_get(cells, i));

		if (!text || sscanf(text, "%16" SCNx64, &w->hashes[i]) != 1)
			return -EINVAL;
	}
	return w->hashes ? 0 : -ENOMEM;
}

static int take_members(struct study *s, struct err *err)
{
	struct workload *w = &s->w;
	json_t *tree, *profiles, *files, *defaults, *cells;
	json_int_t repetitions, seed;
	const char *file;
	int mounted, code;

	if (json_unpack(s->j, "{s:s, s:o, s:I, s:I, s:b, s:o, s:o, s:o, s:o}",
			"file", &file, "workload", &tree, "repetitions",
			&repetitions, "seed", &seed, "mounted", &mounted,
			"profiles", &profiles, "files", &files, "defaults",
			&defaults, "cells", &cells) < 0)
		return -EINVAL;
	code = parse_workload(s, file, tree, err);
	if (code < 0)
		return code;
	w->repetitions = (uint64_t)MAX(repetitions, 1);
	w->seed = (uint64_t)seed;
	w->time_scale = json_get_number(s->j, "time_scale");
	w->profiles = json_incref(profiles);
	w->files = json_incref(files);
	w->defaults = json_incref(defaults);
	s->r.mounted = mounted;
	return take_hashes(w, cells);
}

int study_open(struct study *s, const char *folder, struct err *err)
{
	_cleanup_free_ char *path = util_join(folder, "study.json");
	int code;

	*s = (struct study){ .r = { .lock_fd = -1, .stop.fd = -1 } };
	s->r.w = &s->w;
	s->r.out = strdup(folder);
	if (!s->r.out || !path)
		return -ENOMEM;
	code = json_read(path, &s->j, err);
	if (code == 0)
		code = take_members(s, err);
	return code < 0 ? err_set(err, code,
				  "%s: not a study of this gpemu-run", path)
			: 0;
}

void study_close(struct study *s)
{
	runner_fini(&s->r);
	workload_free(&s->w);
	json_decref(s->j);
	s->j = NULL;
}

/* --- compare ---------------------------------------------------------- */

/* What decides whether both have the same cells; NULL: no memory. */
static json_t *about(const struct study *s)
{
	static const char *const keys[] = { "workload",	   "gpemu",
					    "repetitions", "seed",
					    "time_scale",  "mounted" };
	json_t *j = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		json_object_set(j, keys[i], json_object_get(s->j, keys[i]));
	json_object_set_new(j, "profile",
			    compare_hashes(json_object_get(s->j, "profiles")));
	json_object_set_new(j, "file",
			    compare_hashes(json_object_get(s->j, "files")));
	json_object_set(j, "cells", json_object_get(s->j, "cells"));
	return j;
}

int study_same(const struct study *a, const struct study *b, struct err *err)
{
	json_auto_t *x = about(a), *y = about(b), *differs = json_array();
	const json_t *first;
	_cleanup_free_ char *s = NULL, *t = NULL;

	if (!x || !y || !differs)
		return -ENOMEM;
	compare_members(differs, "", x, y);
	first = json_array_get(differs, 0);
	if (!first)
		return 0;
	s = json_dumps(json_object_get(first, "a"), JSON_ENCODE_ANY);
	t = json_dumps(json_object_get(first, "b"), JSON_ENCODE_ANY);
	return err_set(err, -EINVAL, "%s and %s: %s is %.200s and %.200s",
		       a->r.out, b->r.out, json_get_text(first, "what"),
		       s ? s : "-", t ? t : "-");
}
