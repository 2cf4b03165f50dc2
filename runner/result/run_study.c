/* SPDX-License-Identifier: MIT */
#include "runner/result/run_study.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/json.h"
#include "common/util.h"
#include "common/version.h"

/* --- write ------------------------------------------------------------ */

static int hashes_json(const struct runner *r, json_t *to)
{
	for (size_t i = 0; i < workload_n_cells(r->w); i++) {
		struct cell cell;
		char hash[17];

		if (workload_cell(r->w, i, r->mounted, &cell) < 0)
			return -ENOMEM;
		snprintf(hash, sizeof(hash), "%016" PRIx64, cell.hash);
		cell_free(&cell);
		if (json_array_append_new(to, json_string(hash)) < 0)
			return -ENOMEM;
	}
	return 0;
}

int study_write(const struct runner *r, struct err *err)
{
	const struct workload *w = r->w;
	_cleanup_free_ char *path = NULL;
	json_auto_t *cells = json_array(), *j = NULL;

	if (asprintf(&path, "%s/study.json", r->out) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	if (!cells || hashes_json(r, cells) < 0)
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
	_cleanup_free_ char *path = NULL;
	int code;

	*s = (struct study){ .r = { .lock_fd = -1, .stop.fd = -1 } };
	s->r.w = &s->w;
	s->r.out = strdup(folder);
	if (!s->r.out || asprintf(&path, "%s/study.json", folder) < 0)
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

/* The key at which two trees differ first, as "base.fs.storage". */
static bool find_difference(const json_t *a, const json_t *b, char *path,
			    size_t n)
{
	size_t used = strlen(path);
	const char *key;
	json_t *one;

	if (json_equal(a, b))
		return false;
	if (!json_is_object(a) || !json_is_object(b))
		return true;
	json_object_foreach ((json_t *)b, key, one)
		if (!json_object_get(a, key)) {
			snprintf(path + used, n - used, ".%s", key);
			return true;
		}
	json_object_foreach ((json_t *)a, key, one) {
		snprintf(path + used, n - used, ".%s", key);
		if (find_difference(one, json_object_get(b, key), path, n))
			return true;
	}
	path[used] = 0;
	return true;
}

/* "": there is no such file. */
static const char *hash_of(const json_t *files, const char *name)
{
	const char *hash = json_string_value(
		json_object_get(json_object_get(files, name), "hash"));

	return hash ? hash : "";
}

/* The name whose hash differs, or that one of them lacks; NULL: none. */
static const char *other_hash(const json_t *a, const json_t *b)
{
	const char *name;
	json_t *one;

	json_object_foreach ((json_t *)a, name, one)
		if (strcmp(hash_of(a, name), hash_of(b, name)) != 0)
			return name;
	return NULL;
}

static int same_hashes(const struct study *a, const struct study *b,
		       const char *what, const char *kind, struct err *err)
{
	const json_t *x = json_object_get(a->j, what);
	const json_t *y = json_object_get(b->j, what);
	const char *name = other_hash(x, y);

	if (!name)
		name = other_hash(y, x);
	return name ? err_set(err, -EINVAL,
			      "%s and %s: the %s %s differs, or one has none",
			      a->r.out, b->r.out, kind, name)
		    : 0;
}

int study_same(const struct study *a, const struct study *b, struct err *err)
{
	static const char *const numbers[] = { "gpemu", "repetitions", "seed",
					       "time_scale", "mounted" };
	char path[200] = "";
	int code;

	if (find_difference(json_object_get(a->j, "workload"),
			    json_object_get(b->j, "workload"), path,
			    sizeof(path)))
		return err_set(err, -EINVAL,
			       "%s and %s: their workloads differ in '%s'",
			       a->r.out, b->r.out, path[0] ? path + 1 : "");
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		json_t *x = json_object_get(a->j, numbers[i]);
		json_t *y = json_object_get(b->j, numbers[i]);
		_cleanup_free_ char *s = json_dumps(x, JSON_ENCODE_ANY);
		_cleanup_free_ char *t = json_dumps(y, JSON_ENCODE_ANY);

		if (!json_equal(x, y))
			return err_set(err, -EINVAL,
				       "%s and %s: %s is %s and %s", a->r.out,
				       b->r.out, numbers[i], s ? s : "-",
				       t ? t : "-");
	}
	code = same_hashes(a, b, "profiles", "profile", err);
	if (code == 0)
		code = same_hashes(a, b, "files", "file", err);
	if (code == 0 && !json_equal(json_object_get(a->j, "cells"),
				     json_object_get(b->j, "cells")))
		code = err_set(err, -EINVAL, "%s and %s: their cells differ",
			       a->r.out, b->r.out);
	return code;
}
