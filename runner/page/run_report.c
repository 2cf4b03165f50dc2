/* SPDX-License-Identifier: MIT */
/* What the report shows beside summary.json. */
#include "runner/page/run_report.h"

#include <inttypes.h>
#include <string.h>

#include "common/json.h"
#include "common/tick.h"
#include "common/util.h"
#include "runner/page/run_page.h"
#include "runner/page/run_warnings.h"
#include "runner/result/run_origins.h"
#include "runner/spec/run_expect.h"

/* What a function prints. */
static json_t *printed(const struct result *res,
		       void (*print)(const struct result *res, FILE *f))
{
	_cleanup_free_ char *s = NULL;
	size_t n;
	FILE *f = open_memstream(&s, &n);

	if (!f)
		return NULL;
	print(res, f);
	fclose(f);
	return json_stringn_nocheck(s, n);
}

/* --- head and verdicts ------------------------------------------------ */

static void add_head(json_t *doc, const struct result *res,
		     const struct verdicts *v)
{
	const struct workload *w = res->r->w;
	char passed[80];
	size_t failed = 0;

	for (size_t i = 0; i < w->n_points; i++)
		failed += res->n_failed[i];
	snprintf(passed, sizeof(passed), "%zu of %zu checks passed",
		 score_in(&v->score, VERDICT_PASS), v->n);
	json_object_set_new(doc, "name", json_string(w->name));
	json_object_set_new(doc, "title", json_string(w->question));
	json_object_set_new(doc, "passed",
			    v->n ? score_badge(&v->score, passed)
				 : json_pack("{s:s, s:s}", "class", "none",
					     "text", "no expectations"));
	if (failed)
		json_object_set_new(doc, "missing",
				    json_sprintf("%zu of %zu runs are missing",
						 failed, workload_n_cells(w)));
	json_object_set_new(doc, "mixed",
			    json_boolean(origins_mixed(res->origins)));
}

static void mark_verdicts(json_t *verdicts)
{
	json_t *one;
	size_t i;

	score_mark(verdicts);
	json_array_foreach (verdicts, i, one)
		if (json_integer_value(json_object_get(one, "n")) == 1)
			json_object_set_new(one, "interval",
					    json_string("one run"));
}

/* --- plots ------------------------------------------------------------ */

static json_t *plots_json(const struct runner *r)
{
	const struct plot *p = r->w->plots.items;
	json_t *plots = json_array();

	for (size_t i = 0; i < r->w->plots.n; i++) {
		_cleanup_free_ char *path =
			runner_path(r, "plots", p[i].name, "svg");
		char prefix[32];

		snprintf(prefix, sizeof(prefix), "plot%zu", i);
		json_array_append_new(
			plots,
			json_pack("{s:s, s:o?}", "name", p[i].name, "svg",
				  path ? page_svg(path, prefix, p[i].name)
				       : NULL));
	}
	return plots;
}

/* --- time ------------------------------------------------------------- */

static const char *const part_names[RESULT_PARTS + 1] = {
	"compute",
	"waits for reads",
	"waits for transforms",
	"waits for the pin stage",
	"waits for the copy",
	"all-reduce",
	"waits for the slowest GPU",
	"checkpoints",
	"waits for the host",
	"other",
};

/* [{k, width, title, text}] of a bar, without what is too small to be seen. */
static json_t *parts_json(const struct result_parts *p)
{
	double part[RESULT_PARTS + 1], rest = p->total, all = 0;
	json_t *parts = json_array();

	for (size_t k = 0; k < RESULT_PARTS; k++)
		rest -= p->seconds[k];
	for (size_t k = 0; k <= RESULT_PARTS; k++) {
		part[k] = MAX(k < RESULT_PARTS ? p->seconds[k] : rest, 0);
		all += part[k];
	}
	for (size_t k = 0; k <= RESULT_PARTS; k++) {
		double share = all > 0 ? 100 * part[k] / all : 0;

		if (share < .05)
			continue;
		json_array_append_new(
			parts,
			json_pack("{s:I, s:o, s:o, s:o?}", "k", (json_int_t)k,
				  "width", json_sprintf("%.2f", share), "title",
				  json_sprintf("%s: %.1f %%", part_names[k],
					       share),
				  "text",
				  share >= 9 ? json_sprintf("%.0f", share)
					     : NULL));
	}
	return parts;
}

static void add_time(json_t *doc, const struct result *res)
{
	json_t *bars = json_array(), *parts = json_array();
	char label[120], seconds[24];
	double longest = 0;

	for (size_t i = 0; i < res->r->w->n_points; i++)
		if (res->parts[i].n)
			longest = MAX(longest, res->parts[i].total /
						       (double)res->parts[i].n);
	for (size_t i = 0; longest > 0 && i < res->r->w->n_points; i++) {
		const struct result_parts *p = &res->parts[i];
		double mean = p->n ? p->total / (double)p->n : 0;

		if (!p->n)
			continue;
		workload_label(res->r->w, i, label, sizeof(label));
		result_number(seconds, sizeof(seconds), mean);
		/* leave space for the number behind the longest bar */
		json_array_append_new(
			bars,
			json_pack("{s:s, s:o, s:o, s:s}", "label", label,
				  "width",
				  json_sprintf("%.2f", 80 * mean / longest),
				  "parts", parts_json(p), "seconds", seconds));
	}
	for (size_t k = 0; k <= RESULT_PARTS; k++)
		json_array_append_new(parts, json_pack("{s:I, s:s}", "k",
						       (json_int_t)k, "name",
						       part_names[k]));
	json_object_set_new(doc, "bars", bars);
	json_object_set_new(doc, "parts", parts);
}

/* --- setup ------------------------------------------------------------ */

static void add_term(json_t *terms, const char *name, json_t *value)
{
	json_array_append_new(terms, json_pack("{s:s, s:o?}", "name", name,
					       "value", value));
}

static void add_node(json_t *terms, const char *name,
		     const struct conf_node *node)
{
	if (node)
		add_term(terms, name, workload_value(node));
}

static void add_axis(json_t *terms, const struct axis *axis)
{
	_cleanup_free_ char *s = NULL;
	size_t n;
	FILE *f = open_memstream(&s, &n);

	for (size_t i = 0; f && i < axis->n_points; i++)
		fprintf(f, "%s%s", i ? ", " : "", axis->points[i].label);
	if (!f)
		return;
	fclose(f);
	add_term(terms, axis->name, json_string(s));
}

static json_t *setup_json(const struct workload *w)
{
	static const char *const orders[] = { "random within a repetition",
					      "interleaved", "as listed" };
	json_t *terms = json_array();

	add_node(terms, "dataset", w->dataset);
	for (enum run_program p = RUN_FS; p < RUN_PROGRAMS; p++) {
		char name[32];

		snprintf(name, sizeof(name), "base: %s", run_program_word(p));
		add_node(terms, name, w->base[p]);
	}
	add_node(terms, "mounts", conf_node_get(w->root, "mounts"));
	add_node(terms, "jobs", conf_node_get(w->root, "jobs"));
	for (size_t a = 0; a < w->n_axes; a++)
		add_axis(terms, &w->axes[a]);
	add_term(terms, "repetitions",
		 json_sprintf("%" PRIu64 ", seeds from %" PRIu64 ", %" PRIu64
			      " warm-up runs of each point",
			      w->repetitions, w->seed, w->warmup));
	add_term(terms, "time scale",
		 json_sprintf("%.9g wall seconds per emulated second",
			      w->time_scale));
	add_term(terms, "order of runs", json_string(orders[w->order]));
	return terms;
}

/* --- provenance ------------------------------------------------------- */

static json_t *profiles_json(const struct workload *w)
{
	json_t *list = json_array(), *p;
	const char *name;

	json_object_foreach (w->profiles, name, p)
		json_array_append_new(
			list,
			json_pack("{s:s, s:O?, s:O?}", "name", name, "hash",
				  json_object_get(p, "hash"), "source",
				  json_object_get(p, "source")));
	return list;
}

/* The load of the machine over all runs; NULL: no runs. */
static json_t *load_json(const struct result *res)
{
	size_t i, n = json_array_size(res->records), again = 0;
	_cleanup_free_ double *share = calloc(n + 1, sizeof(*share));
	struct spread s;
	json_t *r;

	if (!share || !n)
		return NULL;
	json_array_foreach (res->records, i, r) {
		share[i] = 100 * json_get_number(json_object_get(r, "host"),
						 "other_cpu_share");
		again += json_integer_value(json_object_get(
				 json_object_get(r, "cell"), "attempts")) > 1;
	}
	s = stats_spread(share, n);
	return json_sprintf(
		"other programs took %.1f %% of the CPUs (median of %zu "
		"runs; at most %.1f %%); %zu runs were repeated because "
		"other load took more than %.3g %% of their time or "
		"delayed their timers",
		s.median, n, s.max, again, 100 * res->r->w->noise.fraction);
}

static void print_commands(const struct result *res, FILE *f)
{
	json_t *list = json_object_get(json_object_get(res->first, "cell"),
				       "commands");
	json_t *command, *word;
	size_t i, k;

	json_array_foreach (list, i, command) {
		json_array_foreach (command, k, word)
			fprintf(f, "%s%s", k ? " " : "",
				json_string_value(word));
		fputc('\n', f);
	}
}

static json_t *file_json(const char *path)
{
	_cleanup_free_ char *bytes = NULL;
	size_t n;

	return util_read_file(path, SIZE_MAX, &bytes, &n) < 0
		       ? NULL
		       : json_stringn_nocheck(bytes, n);
}

static json_t *report_json(const struct result *res, const struct verdicts *v,
			   const json_t *summary)
{
	const struct workload *w = res->r->w;
	json_t *doc = json_deep_copy(summary);
	char now[32];

	if (!doc)
		return NULL;
	tick_utc(now);
	add_head(doc, res, v);
	mark_verdicts(json_object_get(doc, "verdicts"));
	warnings_mark(json_object_get(doc, "warnings"));
	json_object_set_new(doc, "scores", score_rows(&v->score));
	json_object_set_new(doc, "table", result_table_json(res));
	json_object_set_new(doc, "explain", printed(res, result_explain));
	json_object_set_new(doc, "plots", plots_json(res->r));
	add_time(doc, res);
	json_object_set_new(doc, "setup", setup_json(w));
	json_object_set_new(doc, "provenance", printed(res, result_provenance));
	json_object_set_new(doc, "now", json_string(now));
	json_object_set_new(doc, "load", load_json(res));
	json_object_set_new(doc, "folder", json_bytes(res->r->out));
	json_object_set_new(doc, "profiles", profiles_json(w));
	json_object_set_new(doc, "commands", printed(res, print_commands));
	json_object_set_new(doc, "text", file_json(w->path));
	return doc;
}

int report_write(const struct result *res, const struct verdicts *v,
		 const json_t *summary, struct err *err)
{
	json_auto_t *doc = report_json(res, v, summary);

	return page_write(res->r->out, "report.html", "report", doc, err);
}
