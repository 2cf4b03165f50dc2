/* SPDX-License-Identifier: MIT */
#include "runner/run_suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/system/mkdir_all.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "runner/cell/run_estimate.h"
#include "runner/page/run_page.h"
#include "runner/run_loop.h"

static const struct conf_field fields[] = {
	{ CONF_KEY(name, CONF_STRING, struct suite), .required = true },
	{ CONF_KEY(question, CONF_STRING, struct suite), .required = true },
	{ "budget", CONF_DURATION, offsetof(struct suite, budget_ns),
	  .min = NS_PER_S, .max = 7 * 24 * 3600.0 * NS_PER_S },
	{ CONF_KEY(workloads, CONF_LIST, struct suite), .item = CONF_STRING,
	  .item_size = sizeof(char *), .required = true },
	{ 0 },
};

/* --- the file --------------------------------------------------------- */

bool suite_is(const char *path)
{
	_cleanup_conf_node_ struct conf_node *root = NULL;

	return conf_tree_load(path, &root, NULL) == 0 &&
	       conf_node_get(root, "workloads") != NULL;
}

static int finish_suite(struct suite *s, struct err *err)
{
	const struct conf_node *list = conf_node_get(s->root, "workloads");
	int r = conf_decode(s->root, s->path, fields, s, err);
	char *const *files = s->workloads.items;

	if (r < 0)
		return r;
	if (!workload_is_name(s->name))
		return conf_node_error(conf_node_get(s->root, "name"), s->path,
				       err, WORKLOAD_NAME_RULE);
	if (!s->workloads.n)
		return conf_node_error(
			list, s->path, err,
			"workloads is empty: list at least one file");
	for (size_t i = 0; i < s->workloads.n; i++)
		for (size_t k = 0; k < i; k++)
			if (!strcmp(files[i], files[k]))
				return conf_node_error(list->items[i], s->path,
						       err, "'%s' twice",
						       files[i]);
	return 0;
}

int suite_parse(const char *bytes, size_t n, const char *path,
		struct suite *ret, struct err *err)
{
	int r;

	*ret = (struct suite){ .path = strdup(path) };
	r = ret->path ? conf_tree_parse(bytes, n, path, &ret->root, err)
		      : -ENOMEM;
	return r == 0 ? finish_suite(ret, err) : r;
}

static int suite_load(const char *path, struct suite *ret, struct err *err)
{
	int r;

	*ret = (struct suite){ .path = strdup(path) };
	r = ret->path ? conf_tree_load(path, &ret->root, err) : -ENOMEM;
	return r == 0 ? finish_suite(ret, err) : r;
}

void suite_print_keys(FILE *f)
{
	conf_print_keys(fields, &(struct suite){ 0 }, f);
}

void suite_free(struct suite *s)
{
	conf_free(fields, s);
	conf_node_free(s->root);
	free(s->path);
	*s = (struct suite){ 0 };
}

/* --- the workloads ---------------------------------------------------- */

/* Two that share a name would share a folder. */
static int check_names(const struct suite *s, const struct suite_part *parts,
		       size_t i, struct err *err)
{
	const struct conf_node *list = conf_node_get(s->root, "workloads");
	const char *name = parts[i].e.w.name;
	bool taken = !strcmp(name, s->name);

	for (size_t k = 0; k < i; k++)
		taken = taken ||
			(parts[k].e.w.name && !strcmp(name, parts[k].e.w.name));
	return taken ? conf_node_error(list->items[i], s->path, err,
				       "%s: another workload of the list is "
				       "called '%s'; names must differ",
				       parts[i].path, name)
		     : 0;
}

/* -EINVAL ends it all; another error is this workload's own. */
static int open_part(const struct suite *s, struct suite_part *parts, size_t i,
		     const struct run_options *o, struct err *err)
{
	const struct conf_node *list = conf_node_get(s->root, "workloads");
	const char *file = ((char *const *)s->workloads.items)[i];
	struct suite_part *p = &parts[i];
	struct err why = { 0 };
	int code;

	p->path = util_beside(s->path, file);
	if (!p->path)
		return -ENOMEM;
	if (access(p->path, R_OK) < 0)
		return conf_node_error(list->items[i], s->path, err, "%s: %s",
				       p->path, strerror(errno));
	if (suite_is(p->path))
		return conf_node_error(list->items[i], s->path, err,
				       "%s is itself a list of workloads; "
				       "lists cannot be nested",
				       p->path);
	code = workload_load(p->path, o->overrides, &p->e.w, err);
	if (code == 0)
		code = check_names(s, parts, i, err);
	if (code == 0 && o->output &&
	    asprintf(&p->out, "%s/%s", o->output, p->e.w.name) < 0)
		code = -ENOMEM;
	workload_free(&p->e.w);
	if (code < 0)
		return code;
	code = experiment_open(&p->e, p->path, p->out, o, &why);
	if (code == 0 || code == -EINVAL || p->e.r.stop.signal)
		return code < 0 ? err_set(err, code, "%s", why.text) : 0;
	log_error("%s", why.text);
	p->failed = true;
	p->error = strdup(why.text);
	return p->error ? 0 : -ENOMEM;
}

/* The time of all cells, including those with an earlier record. */
static double time_of(const struct suite_part *p, uint64_t begin)
{
	double now = (double)(tick_wall() - begin) / NS_PER_S;
	double all = json_get_number(p->summary, "wall_seconds");

	return MAX(now, all);
}

/* 0 even on failure; -EINTR: stopped by a signal. */
static int run_part(struct suite_part *p, const struct run_options *o)
{
	uint64_t begin = tick_wall();
	struct err err = { 0 };
	int code = experiment_run(&p->e, o, &p->failed, &p->summary, &err);

	if (p->e.r.stop.signal)
		return -EINTR;
	if (code < 0) {
		log_error("%s: %s", p->path,
			  err.text[0] ? err.text : strerror(-code));
		p->failed = true;
		p->error = strdup(err.text[0] ? err.text : strerror(-code));
	}
	p->seconds = time_of(p, begin);
	p->rows = suite_rows(p->summary);
	score_add_json(&p->score, json_object_get(p->summary, "verdicts"));
	return p->rows ? 0 : -ENOMEM;
}

static int run_parts(const struct suite *s, struct suite_part *parts,
		     const struct run_options *o)
{
	struct run_options quiet = *o;
	int code = 0;

	quiet.quiet = true; /* the tables are in the reports */
	for (size_t i = 0; code == 0 && i < s->workloads.n; i++) {
		fprintf(stderr, "gpemu-run: workload %zu of %zu: %s\n", i + 1,
			s->workloads.n, parts[i].path);
		if (parts[i].error)
			parts[i].rows = json_array();
		else
			code = run_part(&parts[i], &quiet);
	}
	return code;
}

/* --- results ---------------------------------------------------------- */

struct outcome {
	const struct suite *s;
	const struct suite_part *parts;
};

static void print_all(const void *ctx, size_t width, FILE *f)
{
	const struct outcome *o = ctx;

	suite_print(o->s, o->parts, width, f);
}

static int write_page(const char *out, const struct suite *s,
		      const struct suite_part *parts, struct err *err)
{
	json_auto_t *doc = suite_page_json(s, parts, out);

	return page_write(out, "report.html", "suite", doc, err);
}

static int report(const struct suite *s, const struct suite_part *parts,
		  const struct run_options *o, struct err *err)
{
	_cleanup_free_ char *out = o->output ? strdup(o->output)
					     : util_join("results", s->name);
	_cleanup_free_ char *summary = out ? util_join(out, "summary.json")
					   : NULL;
	json_auto_t *j = suite_json(s, parts);
	int code;

	if (!j || !summary)
		return -ENOMEM;
	code = mkdir_all(out, 0777, err);
	if (code == 0)
		code = json_replace(j, summary, err);
	if (code == 0 && o->common.json)
		code = json_write(j, o->common.json, err);
	if (code == 0)
		code = page_print(out, "table.txt", o->quiet, print_all,
				  &(struct outcome){ s, parts }, err);
	if (code == 0)
		code = write_page(out, s, parts, err);
	if (code == 0 && !o->quiet)
		printf("\nreport    %s/report.html\n", out);
	return code;
}

/* --- check ------------------------------------------------------------ */

static int check_part(struct suite_part *p, double *ret_s, struct err *err)
{
	struct runner *r = &p->e.r;
	_cleanup_free_ size_t *todo = NULL;
	char text[UNITS_TEXT] = "";
	struct estimate e = { 0 };
	size_t n = 0;
	int code;

	if (p->error) {
		printf("%-22s %s\n", r->w->name, p->error);
		return 0;
	}
	code = loop_list(r, LOOP_NEW, &todo, &n);
	if (code == 0)
		code = estimate_run(r, todo, n, &e, err);
	estimate_fini(&e);
	if (code < 0)
		return code;
	*ret_s += e.seconds;
	printf("%-22s %7zu %7zu %10s", r->w->name, workload_n_cells(r->w), n,
	       e.n_unknown + e.n_itself < n
		       ? units_human_duration(e.seconds * NS_PER_S, text)
		       : "-");
	if (e.n_itself)
		printf("  plus %zu simulated", e.n_itself);
	if (e.n_unknown)
		printf("  plus %zu without an estimate", e.n_unknown);
	fputc('\n', stdout);
	return 0;
}

static int check_suite(const struct suite *s, struct suite_part *parts,
		       struct err *err)
{
	char text[UNITS_TEXT];
	double seconds = 0;
	int code = 0;

	printf("%s: %s\n\n%-22s %7s %7s %10s\n", s->name, s->question,
	       "workload", "cells", "to run", "time");
	for (size_t i = 0; code == 0 && i < s->workloads.n; i++)
		code = check_part(&parts[i], &seconds, err);
	if (code < 0)
		return code;
	printf("%-22s %7s %7s %10s", "all", "", "",
	       units_human_duration(seconds * NS_PER_S, text));
	if (s->budget_ns)
		printf("  of %s",
		       units_human_duration((double)s->budget_ns, text));
	fputc('\n', stdout);
	return 0;
}

/* --- all -------------------------------------------------------------- */

static int work(const struct suite *s, struct suite_part *parts,
		const struct run_options *o, bool only_check, int *ret_status,
		struct err *err)
{
	struct suite_total total;
	int code = 0;

	for (size_t i = 0; code == 0 && i < s->workloads.n; i++)
		code = open_part(s, parts, i, o, err);
	if (code == 0 && only_check)
		return check_suite(s, parts, err);
	for (size_t i = 0; code == 0 && o->dry_run && i < s->workloads.n; i++)
		if (!parts[i].error)
			code = experiment_dry_run(&parts[i].e);
	if (code < 0 || o->dry_run)
		return code;
	code = run_parts(s, parts, o);
	if (code == 0)
		code = report(s, parts, o, err);
	total = suite_sum(s, parts);
	if (total.n_failed || total.over)
		*ret_status = EXIT_STATUS_FAILED;
	else if (total.n_undecided)
		*ret_status = EXIT_STATUS_UNDECIDED;
	return code;
}

static void free_part(struct suite_part *p, struct stop *ret_stop)
{
	if (p->e.r.stop.signal)
		*ret_stop = p->e.r.stop;
	experiment_close(&p->e);
	free(p->path);
	free(p->out);
	free(p->error);
	json_decref(p->summary);
	json_decref(p->rows);
}

int suite_main(const char *path, const struct run_options *o, bool only_check,
	       struct stop *ret_stop)
{
	struct suite s;
	struct err err = { 0 };
	int code = suite_load(path, &s, &err), status = EXIT_STATUS_DONE;
	struct suite_part *parts = calloc(s.workloads.n + 1, sizeof(*parts));

	if (!parts)
		code = -ENOMEM;
	for (size_t i = 0; parts && i < s.workloads.n; i++)
		parts[i].e.r = (struct runner){ .lock_fd = -1, .stop.fd = -1 };
	if (code == 0)
		code = work(&s, parts, o, only_check, &status, &err);
	for (size_t i = 0; parts && i < s.workloads.n; i++)
		free_part(&parts[i], ret_stop);
	if (ret_stop->signal)
		log_error("stopped by %s; finished cells are kept",
			  strsignal(ret_stop->signal));
	if (code < 0 && !ret_stop->signal)
		status = cli_fail(code, &err);
	free(parts);
	suite_free(&s);
	return status;
}
