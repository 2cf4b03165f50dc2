/* SPDX-License-Identifier: MIT */
/*
 * Builds the cell of a point: the configuration of each mount and job is
 * `base`, overridden by the keys of the mount or job, overridden by the axes.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/json.h"
#include "common/util.h"
#include "runner/spec/run_variables.h"

size_t workload_n_cells(const struct workload *w)
{
	return w->n_points * w->repetitions;
}

/* `base` overridden by `over`; either may be NULL. */
static json_t *merged(const struct conf_node *base,
		      const struct conf_node *over)
{
	json_t *j = base ? workload_value(base) : json_object();
	json_auto_t *more = over ? workload_value(over) : NULL;

	if (j && more)
		json_object_update(j, more);
	return j;
}

static int init_mounts(const struct workload *w, struct cell *cell)
{
	const struct mount_spec *specs = w->mounts.items;

	cell->n_mounts = MAX(w->mounts.n, 1u);
	cell->mounts = calloc(cell->n_mounts, sizeof(*cell->mounts));
	for (size_t i = 0; cell->mounts && i < cell->n_mounts; i++) {
		const struct mount_spec *s = w->mounts.n ? &specs[i] : NULL;
		struct cell_mount *m = &cell->mounts[i];

		m->name = strdup(s ? s->name : "data");
		m->fs = merged(w->base[RUN_FS], s ? s->fs : NULL);
		/* recipes are not merged */
		m->dataset = s && s->dataset ? workload_value(s->dataset)
			     : w->dataset    ? workload_value(w->dataset)
					     : json_object();
		if (!m->name || !m->fs || !m->dataset)
			return -ENOMEM;
	}
	return cell->mounts ? 0 : -ENOMEM;
}

static size_t mount_index(const struct cell *cell, const char *name)
{
	size_t i = 0;

	while (name && strcmp(cell->mounts[i].name, name))
		i++;
	return i;
}

static int init_jobs(const struct workload *w, struct cell *cell)
{
	const struct job_spec *specs = w->jobs.items;

	cell->n_jobs = MAX(w->jobs.n, 1u);
	cell->jobs = calloc(cell->n_jobs, sizeof(*cell->jobs));
	for (size_t i = 0; cell->jobs && i < cell->n_jobs; i++) {
		const struct job_spec *s = w->jobs.n ? &specs[i] : NULL;
		struct cell_job *j = &cell->jobs[i];

		j->name = s ? s->name : "train";
		j->mount = mount_index(cell, s ? s->mount : NULL);
		j->start_ns = s ? s->start_ns : 0;
		j->train = merged(w->base[RUN_TRAIN], s ? s->train : NULL);
		j->exec = merged(w->base[RUN_EXEC], s ? s->exec : NULL);
		j->env = merged(w->base[RUN_ENV], s ? s->environment : NULL);
		if (!j->train || !j->exec || !j->env)
			return -ENOMEM;
	}
	return cell->jobs ? 0 : -ENOMEM;
}

static int init_servers(const struct workload *w, struct cell *cell)
{
	cell->store_only = workload_is_store_only(w);
	for (size_t i = 0; i < RUN_SERVERS; i++) {
		const struct conf_node *base = w->base[RUN_GPUD + i];

		cell->servers[i] = base ? workload_value(base) : NULL;
		if (base && !cell->servers[i])
			return -ENOMEM;
	}
	return 0;
}

/* A service without workers is none. */
static void drop_prepd(struct cell *cell)
{
	if (!cell->prepd || cell_prepd_workers(cell->prepd))
		return;
	json_decref(cell->prepd);
	cell->prepd = NULL;
}

static bool is_for(const struct setting *s, const char *name)
{
	return !s->n_target || util_is(s->target, s->n_target, name);
}

/* "synth:NAME,KEY=VALUE" as the mapping of the file would be. */
static int set_synth(json_t *to, const char *text)
{
	_cleanup_free_ char *copy = strdup(text);
	char *rest = copy, *word;
	int r = copy ? 0 : -ENOMEM;

	while (r == 0 && (word = strsep(&rest, ","))) {
		char *value = strchr(word, '=');

		if (value)
			*value++ = 0;
		r = json_object_set_new(to, value ? word : "synth",
					json_bytes(value ? value : word));
	}
	return r < 0 ? -ENOMEM : 0;
}

/* A whole dataset, in place of another. */
static int set_dataset(json_t *to, const struct conf_node *value)
{
	static const char synth[] = "synth:", pack[] = "pack:";
	const char *text = value->value;
	json_auto_t *j = NULL;

	json_object_clear(to);
	if (value->kind != CONF_KIND_SCALAR) {
		j = workload_value(value);
		return json_object_update(to, j) < 0 ? -ENOMEM : 0;
	}
	if (!strncmp(text, synth, strlen(synth)))
		return set_synth(to, text + strlen(synth));
	if (!strncmp(text, pack, strlen(pack)))
		return json_object_set_new(to, "pack",
					   json_bytes(text + strlen(pack)));
	return json_object_set_new(to, "dir", json_bytes(text)) < 0 ? -ENOMEM
								    : 0;
}

static int set(json_t *to, const struct setting *s)
{
	if (setting_is_whole(s))
		return set_dataset(to, s->value);
	return json_object_set_new(to, s->key, workload_value(s->value)) < 0
		       ? -ENOMEM
		       : 0;
}

static int apply(void *ctx, const struct setting *s)
{
	struct cell *cell = ctx;
	bool mount = s->program == RUN_FS || s->program == RUN_DATA;
	int r = 0;

	if (run_is_server(s->program))
		return set(cell->servers[s->program - RUN_GPUD], s);
	for (size_t i = 0; r == 0 && mount && i < cell->n_mounts; i++) {
		struct cell_mount *m = &cell->mounts[i];

		if (is_for(s, m->name))
			r = set(s->program == RUN_FS ? m->fs : m->dataset, s);
	}
	for (size_t i = 0; r == 0 && !mount && i < cell->n_jobs; i++) {
		struct cell_job *j = &cell->jobs[i];
		json_t *to = s->program == RUN_TRAIN  ? j->train
			     : s->program == RUN_EXEC ? j->exec
						      : j->env;

		if (is_for(s, j->name))
			r = set(to, s);
	}
	return r;
}

/* {node}, {fs.cache_size}: axes and settings within a text. */
static int expand(const struct workload *w, const struct cell *cell,
		  const json_t *keys, const json_t *value, json_t **ret)
{
	const char *text = json_string_value(value);
	_cleanup_free_ char *expanded = NULL;

	*ret = NULL;
	if (!text || !strchr(text, '{'))
		return 0;
	expanded = variables_expand_settings(w, cell->point, keys, text);
	*ret = expanded ? json_bytes(expanded) : NULL;
	return *ret ? 0 : -ENOMEM;
}

/* In the command, or its words, and in the environment, so that they are part
 * of the cell's key and of its record. */
static int expand_job(const struct workload *w, const struct cell *cell,
		      struct cell_job *job)
{
	json_t *command = json_object_get(job->exec, "command");
	json_t *value, *expanded;
	const char *key;
	size_t i;
	void *next;

	if (expand(w, cell, job->exec, command, &expanded) < 0)
		return -ENOMEM;
	if (expanded)
		json_object_set_new(job->exec, "command", expanded);
	json_array_foreach (command, i, value) {
		if (expand(w, cell, job->exec, value, &expanded) < 0)
			return -ENOMEM;
		if (expanded)
			json_array_set_new(command, i, expanded);
	}
	json_object_foreach_safe (job->env, next, key, value) {
		if (expand(w, cell, job->exec, value, &expanded) < 0)
			return -ENOMEM;
		if (expanded)
			json_object_set_new(job->env, key, expanded);
	}
	return 0;
}

static int expand_jobs(const struct workload *w, struct cell *cell)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < cell->n_jobs; i++)
		r = expand_job(w, cell, &cell->jobs[i]);
	return r;
}

/* The number of GPUs tried by --find-max-gpus. */
static int set_gpus(const struct workload *w, struct cell *cell)
{
	char text[24];
	int r = 0;

	snprintf(text, sizeof(text), "%" PRIu64, w->gpus);
	for (size_t i = 0; r == 0 && w->gpus && i < cell->n_jobs; i++)
		r = json_object_set_new(cell->jobs[i].train, "gpus",
					json_string(text));
	return r < 0 ? -ENOMEM : 0;
}

/* --- several nodes -------------------------------------------------------- */

/* The nodes that have a copy of mount `i`. */
static uint64_t nodes_of(const struct cell *cell, size_t i)
{
	uint64_t nodes = 1;

	for (size_t k = 0; k < cell->n_jobs; k++)
		if (cell->jobs[k].mount == i)
			nodes = MAX(nodes, cell->jobs[k].nodes);
	return nodes;
}

/* Append a copy of a mount; of one of several nodes with its number. */
static int add_mount(struct cell *cell, const struct cell_mount *from,
		     uint64_t node, uint64_t nodes)
{
	size_t at = cell->n_mounts++;
	struct cell_mount *m = &cell->mounts[at];

	m->name = nodes < 2 ? strdup(from->name)
			    : util_text("%s-%" PRIu64, from->name, node);
	if (nodes > 1) {
		m->first = at - node;
		m->nodes = nodes;
	}
	m->fs = json_deep_copy(from->fs);
	m->dataset = json_deep_copy(from->dataset);
	return m->name && m->fs && m->dataset ? 0 : -ENOMEM;
}

static void free_mounts(struct cell_mount *m, size_t n)
{
	for (size_t i = 0; m && i < n; i++) {
		free(m[i].name);
		json_decref(m[i].dataset);
		json_decref(m[i].fs);
	}
	free(m);
}

bool cell_job_is_simulated(const struct cell_job *job)
{
	const char *text =
		json_string_value(json_object_get(job->train, "simulate"));
	const struct conf_field field = { "simulate", CONF_BOOL, 0 };
	bool on = false;

	if (text && !cell_is_exec(job))
		conf_set(&field, &on, text, NULL);
	return on;
}

bool cell_is_simulated(const struct cell *cell)
{
	size_t n = 0;

	for (size_t k = 0; k < cell->n_jobs; k++)
		n += cell_job_is_simulated(&cell->jobs[k]);
	return n == cell->n_jobs;
}

/* More than gpemu-train accepts count as one; it will refuse them. Simulated
 * ones have no mounts. */
static void read_nodes(struct cell_job *j)
{
	const char *text =
		json_string_value(json_object_get(j->train, "nodes"));
	uint64_t n = text && !cell_is_exec(j) ? strtoull(text, NULL, 10) : 1;

	if (n > CELL_NODES_MAX || cell_job_is_simulated(j))
		n = 1;
	j->nodes = MAX(n, 1);
}

/* Each node of a job has its own mount. */
static int spread(struct cell *cell)
{
	struct cell_mount *one = cell->mounts;
	size_t n_one = cell->n_mounts, n = 0, at = 0;
	int r = 0;

	for (size_t k = 0; k < cell->n_jobs; k++)
		read_nodes(&cell->jobs[k]);
	for (size_t i = 0; i < n_one; i++) {
		n += nodes_of(cell, i);
		/* a single node has no peers; a simulation refuses them */
		if (nodes_of(cell, i) == 1 && cell_has_peers(&one[i]) &&
		    !cell_is_simulated(cell))
			json_object_del(one[i].fs, "peers");
		if (cell_is_simulated(cell))
			cell_unwritable(one[i].fs);
	}
	if (n == n_one)
		return 0;
	cell->mounts = calloc(n, sizeof(*cell->mounts));
	cell->n_mounts = 0;
	for (size_t i = 0; r == 0 && cell->mounts && i < n_one; i++) {
		uint64_t nodes = nodes_of(cell, i);

		for (uint64_t k = 0; r == 0 && k < nodes; k++)
			r = add_mount(cell, &one[i], k, nodes);
	}
	/* from the last: the index of a copy is not taken for that of a mount
	 */
	for (size_t i = n_one, end = n; cell->mounts && i-- > 0; end = at) {
		at = end - nodes_of(cell, i);
		for (size_t k = 0; k < cell->n_jobs; k++)
			if (cell->jobs[k].mount == i)
				cell->jobs[k].mount = at;
	}
	free_mounts(one, n_one);
	return cell->mounts ? r : -ENOMEM;
}

int workload_configure(const struct workload *w, size_t index, struct cell *ret)
{
	int r;

	*ret = (struct cell){ .point = index % w->n_points,
			      .repetition = index / w->n_points };
	ret->seed = w->seed + ret->repetition;
	r = init_mounts(w, ret);
	if (r == 0)
		r = init_jobs(w, ret);
	if (r == 0)
		r = init_servers(w, ret);
	if (r == 0)
		r = workload_each_at(w, ret->point, apply, ret);
	if (r == 0)
		drop_prepd(ret);
	if (r == 0)
		r = expand_jobs(w, ret);
	if (r == 0)
		r = set_gpus(w, ret);
	if (r == 0)
		r = spread(ret);
	if (r < 0)
		cell_free(ret);
	return r;
}

void cell_free(struct cell *cell)
{
	free_mounts(cell->mounts, cell->n_mounts);
	for (size_t i = 0; cell->jobs && i < cell->n_jobs; i++) {
		json_decref(cell->jobs[i].train);
		json_decref(cell->jobs[i].exec);
		json_decref(cell->jobs[i].env);
	}
	free(cell->jobs);
	for (size_t i = 0; i < RUN_SERVERS; i++)
		json_decref(cell->servers[i]);
	memset(cell->servers, 0, sizeof(cell->servers));
	cell->mounts = NULL;
	cell->jobs = NULL;
}
