/* SPDX-License-Identifier: MIT */
/* Mounts, jobs, commands and the preparation service of a workload: checks
 * before anything runs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/plugin.h"
#include "common/util.h"
#include "common/word.h"
#include "runner/spec/run_variables.h"
#include "runner/spec/run_workload.h"

int workload_each_setting(const struct workload *w,
			  int (*fn)(void *ctx, const struct setting *s,
				    struct err *err),
			  void *ctx, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < w->n_axes; i++) {
		for (size_t k = 0; k < w->axes[i].n_points; k++) {
			const struct axis_point *p = &w->axes[i].points[k];

			for (size_t s = 0; r == 0 && s < p->n_settings; s++)
				r = fn(ctx, &p->settings[s], err);
		}
	}
	return r;
}

/* Are all datasets generated on read? Then gpemu-data is not used. */
static bool workload_is_synth(const struct workload *w)
{
	return w->dataset && conf_node_get(w->dataset, "synth");
}

/* --- checks by the programs ------------------------------------------- */

struct asking {
	const struct workload *w;
	workload_check_fn check;
	void *ctx;
};

static int check_one(void *ctx, const struct setting *s, struct err *err)
{
	const struct asking *a = ctx;
	struct err why = { 0 };
	int r;

	if (s->program >= RUN_EXEC ||
	    (s->program == RUN_DATA && workload_is_synth(a->w)) ||
	    setting_is_whole(s))
		return 0;
	r = a->check(a->ctx, s, &why);
	if (r != -EINVAL)
		return r < 0 ? err_set(err, r, "%s", why.text) : 0;
	/* the error is in the key, or in its value */
	if (strstr(why.text, "unknown key"))
		return err_set(err, r, "%s:%u:%u: %s: %s",
			       conf_node_name(s->value, a->w->path), s->line,
			       s->column, run_program_name(s->program),
			       why.text);
	return conf_node_error(s->value, a->w->path, err, "%s: %s",
			       run_program_name(s->program), why.text);
}

static int check_map(struct asking *a, const struct conf_node *map,
		     enum run_program program, struct err *err)
{
	int r = 0;

	/* gpemu-data handles neither: one exists, the other needs no files */
	if (program == RUN_DATA && map &&
	    (conf_node_get(map, "dir") || conf_node_get(map, "synth")))
		return 0;
	for (size_t i = 0; r == 0 && map && i < map->n; i++) {
		struct setting s = { .program = program,
				     .key = map->items[i]->key,
				     .value = map->items[i],
				     .line = map->items[i]->key_line,
				     .column = map->items[i]->key_column };

		r = check_one(a, &s, err);
	}
	return r;
}

int workload_check(const struct workload *w, workload_check_fn check, void *ctx,
		   struct err *err)
{
	struct asking a = { .w = w, .check = check, .ctx = ctx };
	const struct mount_spec *m = w->mounts.items;
	const struct job_spec *j = w->jobs.items;
	int r = check_map(&a, w->dataset, RUN_DATA, err);

	for (enum run_program p = RUN_FS; r == 0 && p < RUN_EXEC; p++)
		r = check_map(&a, w->base[p], p, err);
	for (size_t i = 0; r == 0 && i < w->mounts.n; i++) {
		r = check_map(&a, m[i].dataset, RUN_DATA, err);
		if (r == 0)
			r = check_map(&a, m[i].fs, RUN_FS, err);
	}
	for (size_t i = 0; r == 0 && i < w->jobs.n; i++)
		r = check_map(&a, j[i].train, RUN_TRAIN, err);
	return r == 0 ? workload_each_setting(w, check_one, &a, err) : r;
}

/* --- commands --------------------------------------------------------- */

/* Is there any exec.KEY that can give {KEY} a value? */
struct defined {
	const char *key;
	size_t n;
	bool found;
};

static int look(void *ctx, const struct setting *s, struct err *err)
{
	struct defined *d = ctx;

	(void)err;
	d->found = d->found ||
		   (s->program == RUN_EXEC && util_is(d->key, d->n, s->key));
	return 0;
}

static bool has_key(const struct conf_node *map, const struct defined *d)
{
	for (size_t i = 0; map && i < map->n; i++)
		if (util_is(d->key, d->n, map->items[i]->key))
			return true;
	return false;
}

static bool is_defined(const struct workload *w, const char *key, size_t n)
{
	struct defined d = { .key = key, .n = n };
	const struct job_spec *j = w->jobs.items;

	d.found = variables_is_own(key, n) || has_key(w->base[RUN_EXEC], &d);
	for (size_t i = 0; i < w->jobs.n; i++)
		d.found = d.found || has_key(j[i].exec, &d);
	workload_each_setting(w, look, &d, NULL);
	return d.found;
}

static bool has_setting(const struct workload *w, const char *name)
{
	for (size_t i = 0; i < w->n_points; i++)
		if (!workload_setting(w, i, name))
			return false;
	return true;
}

/* {fs.cache_polcy}: the name of a setting, but nothing sets it. */
static int check_settings(const struct workload *w,
			  const struct conf_node *word, struct err *err)
{
	for (const char *s = word->value; (s = strchr(s, '{')); s++) {
		size_t n = strcspn(s + 1, "{}");
		_cleanup_free_ char *name = strndup(s + 1, n);
		struct setting what;

		if (!name)
			return err_set(err, -ENOMEM, "out of memory");
		if (s[n + 1] == '}' && workload_split_key(name, &what) &&
		    !has_setting(w, name))
			return conf_node_error(word, w->path, err,
					       "{%s}: no axis and no key of "
					       "the file sets this at every "
					       "point",
					       name);
	}
	return 0;
}

static int check_word(const struct workload *w, const struct conf_node *word,
		      struct err *err)
{
	const char *s = word->value, *name, *setting;
	size_t n;

	if (word->kind != CONF_KIND_SCALAR)
		return conf_node_error(word, w->path, err,
				       "a command is a line for sh, or a list "
				       "of words");
	while ((n = variables_next(s, &name))) {
		if (!is_defined(w, name, n) &&
		    (!variables_next_setting(w, 0, NULL, name - 1, &setting) ||
		     setting != name))
			return conf_node_error(word, w->path, err,
					       "{%.*s} is none of {mount} "
					       "{record} {bin} {share} {seed} "
					       "{time_scale} {gpud} {prepd} "
					       "{prepd_key}, the keys of exec, "
					       "and the axes",
					       (int)n, name);
		s = name + n;
	}
	return check_settings(w, word, err);
}

static int check_command(const struct workload *w,
			 const struct conf_node *command, struct err *err)
{
	int r = 0;

	if (!command || command->kind == CONF_KIND_SCALAR)
		return command ? check_word(w, command, err) : 0;
	if (!command->n)
		return conf_node_error(command, w->path, err,
				       "the command is empty");
	for (size_t i = 0; r == 0 && i < command->n; i++)
		r = check_word(w, command->items[i], err);
	return r;
}

/* --- the preparation service ------------------------------------------- */

/* How many, not the option of `gpemu-prepd worker` of that name. */
static const char N_WORKERS[] = "workers";
/* That option. */
static const char THREADS[] = "threads";

uint64_t cell_prepd_workers(const json_t *prepd)
{
	const char *n = json_string_value(json_object_get(prepd, N_WORKERS));

	return n ? strtoull(n, NULL, 10) : 1;
}

json_t *cell_options(enum run_program program, const json_t *config)
{
	json_t *j = json_copy((json_t *)config);
	json_t *threads = json_object_get(config, THREADS);

	if (program != RUN_PREPD)
		return j;
	json_object_del(j, N_WORKERS);
	if (threads && json_object_set(j, N_WORKERS, threads) < 0) {
		json_decref(j);
		return NULL;
	}
	json_object_del(j, THREADS);
	return j;
}

bool cell_has_service(const struct cell_job *job)
{
	const char *loader =
		json_string_value(json_object_get(job->train, "loader"));

	return loader && !cell_is_exec(job) && plugin_is(loader, "service");
}

static int check_workers(const struct workload *w, const struct conf_node *n,
			 struct err *err)
{
	const struct conf_field field = { N_WORKERS, CONF_UINT, 0,
					  .max = CELL_WORKERS_MAX };
	struct err why = { 0 };
	uint64_t value;

	if (!n)
		return 0;
	if (n->kind != CONF_KIND_SCALAR)
		return conf_node_error(n, w->path, err, "not a number");
	return conf_set(&field, &value, n->value, &why) < 0
		       ? conf_node_error(n, w->path, err, "%s: %s", N_WORKERS,
					 why.text)
		       : 0;
}

/* gpemu-train would be given two dispatchers. */
static bool is_of_service(const struct workload *w, const char *key)
{
	return w->base[RUN_PREPD] &&
	       (!strcmp(key, "dispatcher") || !strcmp(key, "service_key"));
}

static const char TWO[] = "gpemu-run itself sets this, as base has prepd";

static int check_dispatcher(const struct workload *w,
			    const struct conf_node *train, struct err *err)
{
	for (size_t i = 0; train && i < train->n; i++)
		if (is_of_service(w, train->items[i]->key))
			return workload_key_error(w, train->items[i], err, TWO);
	return 0;
}

/* --- axes ---------------------------------------------------------------- */

static int check_setting(void *ctx, const struct setting *s, struct err *err)
{
	const struct workload *w = ctx;

	if (s->program == RUN_EXEC && !strcmp(s->key, "command"))
		return check_command(w, s->value, err);
	if (s->program == RUN_PREPD && !strcmp(s->key, N_WORKERS))
		return check_workers(w, s->value, err);
	if (s->program == RUN_TRAIN && is_of_service(w, s->key))
		return err_set(err, -EINVAL, "%s:%u:%u: %s: %s",
			       conf_node_name(s->value, w->path), s->line,
			       s->column, s->key, TWO);
	return 0;
}

/* --- maps ------------------------------------------------------------- */

static int check_config(const struct workload *w, const struct conf_node *map,
			enum run_program program, struct err *err)
{
	if (!map)
		return 0;
	if (map->kind != CONF_KIND_MAPPING)
		return conf_node_error(map, w->path, err,
				       "%s must be a mapping", map->key);
	for (size_t i = 0; i < map->n; i++)
		if (workload_is_reserved(program, map->items[i]->key))
			return workload_key_error(w, map->items[i], err,
						  "gpemu-run itself sets "
						  "this");
	return 0;
}

static int check_loader(const struct workload *w, const struct conf_node *train,
			const struct conf_node *exec,
			const struct conf_node *environment, struct err *err)
{
	int r = check_config(w, train, RUN_TRAIN, err);

	if (r == 0)
		r = check_dispatcher(w, train, err);
	if (r == 0)
		r = check_config(w, exec, RUN_EXEC, err);
	if (r == 0)
		r = check_config(w, environment, RUN_ENV, err);
	if (r == 0 && exec)
		r = check_command(w, conf_node_get(exec, "command"), err);
	for (size_t i = 0; r == 0 && environment && i < environment->n; i++)
		if (environment->items[i]->kind != CONF_KIND_SCALAR)
			r = conf_node_error(environment->items[i], w->path, err,
					    "a variable is a text");
	return r;
}

/* The keys of gpemu-fs's synth:. gpemu-fs itself checks their values. */
static int check_synth(const struct workload *w, const struct conf_node *d,
		       struct err *err)
{
	static const char *const known[] = { "synth", "files",	 "classes",
					     "seed",  "content", "scale",
					     "size",  "size_sd" };

	for (size_t i = 0; i < d->n; i++) {
		if (WORD_FIND(known, "", d->items[i]->key, NULL) < 0)
			return workload_key_error(
				w, d->items[i], err,
				"synth goes only with files, classes, seed, "
				"content, scale, size and size_sd");
		if (d->items[i]->kind != CONF_KIND_SCALAR ||
		    strchr(d->items[i]->value, ','))
			return conf_node_error(d->items[i], w->path, err,
					       "not a word");
	}
	return 0;
}

static int check_dataset(const struct workload *w, const struct conf_node *d,
			 struct err *err)
{
	const struct conf_node *dir;

	if (!d)
		return 0;
	if (d->kind != CONF_KIND_MAPPING || !d->n)
		return conf_node_error(d, w->path, err,
				       "dataset must be a mapping: a recipe "
				       "for gpemu-data make, {dir: DIR}, or "
				       "{synth: NAME}");
	dir = conf_node_get(d, "dir");
	if (dir && (d->n > 1 || dir->kind != CONF_KIND_SCALAR))
		return conf_node_error(dir, w->path, err,
				       "dir takes a folder and no other keys");
	return conf_node_get(d, "synth") ? check_synth(w, d, err) : 0;
}

static bool sets_dataset(const struct axis_point *p)
{
	for (size_t k = 0; k < p->n_settings; k++)
		if (!p->settings[k].n_target &&
		    setting_is_whole(&p->settings[k]))
			return true;
	return false;
}

/* One dataset for all, or an axis of them. */
static int check_datasets(const struct workload *w, struct err *err)
{
	for (size_t i = 0; !w->dataset && i < w->n_axes; i++) {
		const struct axis *a = &w->axes[i];
		size_t n = 0;

		while (n < a->n_points && sets_dataset(&a->points[n]))
			n++;
		if (n == a->n_points)
			return 0;
	}
	if (!w->dataset)
		return conf_node_error(w->root, w->path, err,
				       "'dataset' is missing");
	return check_dataset(w, w->dataset, err);
}

static int check_job_mount(const struct workload *w, const struct job_spec *j,
			   const struct conf_node *node, struct err *err)
{
	const struct mount_spec *m = w->mounts.items;
	bool found = !j->mount;

	for (size_t i = 0; i < w->mounts.n; i++)
		found = found || !strcmp(m[i].name, j->mount);
	if (found)
		return 0;
	return conf_node_error(conf_node_get(node, "mount"), w->path, err,
			       "no mount '%s'", j->mount);
}

/* Names occur in keys, file names and commands. */
static int check_name(const struct workload *w, const struct conf_node *node,
		      struct err *err)
{
	if (workload_is_name(node->key))
		return 0;
	return workload_key_error(w, node, err,
				  "a name consists of a-z 0-9 - _");
}

int workload_check_jobs(const struct workload *w, struct err *err)
{
	const struct conf_node *mounts = conf_node_get(w->root, "mounts");
	const struct conf_node *jobs = conf_node_get(w->root, "jobs");
	const struct mount_spec *m = w->mounts.items;
	const struct job_spec *j = w->jobs.items;
	int r = 0;

	for (enum run_program p = RUN_FS; r == 0 && p < RUN_EXEC; p++)
		if (p != RUN_TRAIN) /* with its command, below */
			r = check_config(w, w->base[p], p, err);
	if (r == 0 && w->base[RUN_PREPD])
		r = check_workers(
			w, conf_node_get(w->base[RUN_PREPD], N_WORKERS), err);
	if (r == 0)
		r = check_loader(w, w->base[RUN_TRAIN], w->base[RUN_EXEC],
				 w->base[RUN_ENV], err);
	if (r == 0)
		r = check_datasets(w, err);
	for (size_t i = 0; r == 0 && i < w->mounts.n; i++) {
		r = check_name(w, mounts->items[i], err);
		if (r == 0)
			r = check_config(w, m[i].fs, RUN_FS, err);
		if (r == 0)
			r = check_dataset(w, m[i].dataset, err);
	}
	for (size_t i = 0; r == 0 && i < w->jobs.n; i++) {
		r = check_name(w, jobs->items[i], err);
		if (r == 0)
			r = check_job_mount(w, &j[i], jobs->items[i], err);
		if (r == 0)
			r = check_loader(w, j[i].train, j[i].exec,
					 j[i].environment, err);
	}
	return r == 0 ? workload_each_setting(w, check_setting, (void *)w, err)
		      : r;
}
