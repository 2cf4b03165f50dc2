/* SPDX-License-Identifier: MIT */
#include "runner/page/run_report.h"

#include <inttypes.h>
#include <string.h>

#include "common/json.h"
#include "common/tick.h"
#include "common/replace.h"
#include "common/util.h"
#include "common/version.h"
#include "runner/spec/run_expect.h"
#include "runner/page/run_html.h"
#include "runner/page/run_html_score.h"
#include "runner/result/run_origins.h"
#include "runner/page/run_rules.h"
#include "runner/page/run_warnings.h"

/* --- head ------------------------------------------------------------- */

static void head(const struct result *res, const struct verdicts *v, FILE *f)
{
	const struct workload *w = res->r->w;
	size_t failed = 0;
	char text[80];

	for (size_t i = 0; i < w->n_points; i++)
		failed += res->n_failed[i];
	html_head(f, w->name, w->question);
	if (w->figure) {
		html_text(f, w->figure);
		fputs("</p>\n<p>", f);
	}
	snprintf(text, sizeof(text), "%zu of %zu checks passed",
		 score_in(&v->score, VERDICT_PASS), v->n);
	if (!v->n)
		html_badge(f, "none", "no expectations");
	else
		html_score_badge(f, &v->score, text);
	snprintf(text, sizeof(text), "%zu of %zu runs are missing", failed,
		 workload_n_cells(w));
	if (failed)
		html_badge(f, "fail", text);
	if (origins_mixed(res->origins))
		html_badge(f, "fail",
			   "mixed runs: made on different versions or hosts");
	fputs("</p>\n</header>\n<main>\n", f);
}

/* --- verdicts --------------------------------------------------------- */

static void verdicts(const struct verdicts *v, FILE *f)
{
	if (!v->n)
		return;
	fputs("<h2>Verdicts</h2>\n", f);
	html_score(f, &v->score);
	fputs("<div class=\"wide\"><table class=\"fig\">\n<thead><tr>"
	      "<th>Expected</th><th>Kind</th><th>At</th><th>Found</th>"
	      "<th>95&nbsp;% interval</th><th></th></tr></thead>\n<tbody>\n",
	      f);
	for (size_t i = 0; i < v->n; i++) {
		const struct verdict *one = &v->items[i];

		fputs("<tr><td>", f);
		html_text(f, one->check);
		fprintf(f, "</td><td class=\"k\">%s</td><td class=\"a\">",
			evidence_name(one->kind));
		html_text(f, one->at);
		fputs("</td><td class=\"found\">", f);
		html_text(f, one->numbers);
		fputs("</td><td class=\"i\">", f);
		html_text(f, one->n == 1 ? "one run" : one->interval);
		fputs("</td><td>", f);
		html_verdict(f, one->kind, one->state);
		html_note(f, "", one->note);
		fputs("</td></tr>\n", f);
	}
	fputs("</tbody>\n</table></div>\n", f);
}

/* --- table ------------------------------------------------------------ */

static void table_head(const struct result *res, FILE *f)
{
	const struct workload *w = res->r->w;

	fputs("<thead><tr>", f);
	for (size_t a = 0; a < w->n_axes; a++) {
		fputs("<th>", f);
		html_text(f, w->axes[a].name);
		fputs("</th>", f);
	}
	for (size_t i = 0; i < res->n_columns; i++) {
		const struct metric *m = res->metrics[i];

		fputs("<th class=\"n\">", f);
		html_text(f, m->label ? m->label : m->name);
		fputs("<small>", f);
		html_text(f, m->unit);
		fputs("</small></th>", f);
	}
	if (conf_node_get(w->root, "rules"))
		fprintf(f,
			"<th class=\"n\">AU enough<small>&ge; %.3g %%</small>"
			"</th>",
			100 * w->rules.au.fraction);
	fputs("<th class=\"n\">runs</th></tr></thead>\n<tbody>\n", f);
}

static void number_cell(const struct spread *s, FILE *f)
{
	char text[3 * RESULT_TEXT + 4], *range;

	result_spread(text, sizeof(text), s);
	range = strchr(text, ' ');
	if (range)
		*range++ = 0;
	fprintf(f, "<td class=\"n\">%s", text);
	if (range)
		fprintf(f, "<br><small>%s</small>", range);
	fputs("</td>", f);
}

static void table(const struct result *res, FILE *f)
{
	const struct workload *w = res->r->w;

	fputs("<h2>Results</h2>\n<div class=\"wide\"><table>\n", f);
	table_head(res, f);
	for (size_t i = 0; i < w->n_points; i++) {
		fputs("<tr>", f);
		for (size_t a = 0; a < w->n_axes; a++) {
			fputs("<td>", f);
			html_text(f, workload_at(w, i, a)->label);
			fputs("</td>", f);
		}
		for (size_t m = 0; m < res->n_columns; m++)
			number_cell(result_at(res, i, res->metrics[m]), f);
		if (result_enough(res, i))
			fprintf(f, "<td class=\"n\">%s</td>",
				result_enough(res, i));
		fprintf(f, "<td class=\"n\">%zu", res->n_ok[i]);
		if (res->n_failed[i])
			fprintf(f, "<br>%zu failed", res->n_failed[i]);
		fputs("</td></tr>\n", f);
	}
	fputs("</tbody>\n</table></div>\n<p>", f);
	result_explain(res, f);
	fputs("</p>\n", f);
}

/* --- plots ------------------------------------------------------------ */

static void plots(const struct result *res, FILE *f)
{
	const struct plot *p = res->r->w->plots.items;

	for (size_t i = 0; i < res->r->w->plots.n; i++) {
		_cleanup_free_ char *path =
			runner_path(res->r, "plots", p[i].name, "svg");
		char prefix[32];

		if (i == 0)
			fputs("<h2>Plots</h2>\n", f);
		snprintf(prefix, sizeof(prefix), "plot%zu", i);
		fputs("<figure>\n", f);
		if (!path || html_svg(f, path, prefix, p[i].name) < 0)
			html_printf(f, "%s was not drawn.", p[i].name);
		fputs("</figure>\n", f);
	}
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

static void one_bar(const struct result_parts *p, double longest, FILE *f)
{
	double rest = p->total, all = 0;
	double part[RESULT_PARTS + 1];
	char seconds[24];

	for (size_t k = 0; k < RESULT_PARTS; k++)
		rest -= p->seconds[k];
	for (size_t k = 0; k <= RESULT_PARTS; k++) {
		part[k] = MAX(k < RESULT_PARTS ? p->seconds[k] : rest, 0);
		all += part[k];
	}
	/* leave space for the number behind the longest bar */
	fprintf(f,
		"<div class=\"track\"><div class=\"bar\" "
		"style=\"width:%.2f%%\">",
		80 * p->total / (double)p->n / longest);
	for (size_t k = 0; k <= RESULT_PARTS; k++) {
		double share = all > 0 ? 100 * part[k] / all : 0;

		if (share < .05)
			continue;
		fprintf(f,
			"<i class=\"p%zu\" style=\"width:%.2f%%\" "
			"title=\"%s: %.1f %%\">",
			k, share, part_names[k], share);
		if (share >= 9)
			fprintf(f, "%.0f&#8239;%%", share);
		fputs("</i>", f);
	}
	result_number(seconds, sizeof(seconds), p->total / (double)p->n);
	fprintf(f, "</div><span>%s&nbsp;s</span></div>\n", seconds);
}

static void where_time_went(const struct result *res, FILE *f)
{
	const struct workload *w = res->r->w;
	double longest = 0;
	char label[120];

	for (size_t i = 0; i < w->n_points; i++)
		if (res->parts[i].n)
			longest = MAX(longest, res->parts[i].total /
						       (double)res->parts[i].n);
	if (longest <= 0)
		return;
	fputs("<h2>Where the time went</h2>\n<p>Time of the GPU per epoch "
	      "after the first, mean over all runs, in emulated "
	      "seconds.</p>\n<div class=\"key\">",
	      f);
	for (size_t k = 0; k <= RESULT_PARTS; k++)
		fprintf(f, "<span><i class=\"p%zu\"></i>%s</span>", k,
			part_names[k]);
	fputs("</div>\n<div class=\"bars\">\n", f);
	for (size_t i = 0; i < w->n_points; i++) {
		if (!res->parts[i].n)
			continue;
		workload_label(w, i, label, sizeof(label));
		fputs("<div>", f);
		html_text(f, label);
		fputs("</div>", f);
		one_bar(&res->parts[i], longest, f);
	}
	fputs("</div>\n", f);
}

/* --- setup ------------------------------------------------------------ */

static void term(FILE *f, const char *name)
{
	fputs("<dt>", f);
	html_text(f, name);
	fputs("</dt><dd>", f);
}

static void node_item(FILE *f, const char *name, const struct conf_node *node)
{
	json_auto_t *j = node ? workload_value(node) : NULL;

	if (!j)
		return;
	term(f, name);
	html_json(f, j);
	fputs("</dd>\n", f);
}

static void axes(const struct workload *w, FILE *f)
{
	for (size_t a = 0; a < w->n_axes; a++) {
		term(f, w->axes[a].name);
		for (size_t i = 0; i < w->axes[a].n_points; i++)
			html_printf(f, "%s%s", i ? ", " : "",
				    w->axes[a].points[i].label);
		fputs("</dd>\n", f);
	}
}

static void setup(const struct result *res, FILE *f)
{
	static const char *const orders[] = { "random within a repetition",
					      "interleaved", "as listed" };
	const struct workload *w = res->r->w;
	_cleanup_free_ char *text = NULL;
	size_t n;
	FILE *to;

	fputs("<h2>Setup</h2>\n<dl>\n", f);
	node_item(f, "dataset", w->dataset);
	node_item(f, "base: fs", w->base.fs);
	node_item(f, "base: train", w->base.train);
	node_item(f, "base: exec", w->base.exec);
	node_item(f, "base: gpud", w->base.gpud);
	node_item(f, "base: prepd", w->base.prepd);
	node_item(f, "base: s3", w->base.s3);
	node_item(f, "mounts", conf_node_get(w->root, "mounts"));
	node_item(f, "jobs", conf_node_get(w->root, "jobs"));
	axes(w, f);
	term(f, "repetitions");
	fprintf(f,
		"%" PRIu64 ", seeds from %" PRIu64 ", %" PRIu64
		" warm-up runs of each point</dd>\n",
		w->repetitions, w->seed, w->warmup);
	term(f, "time scale");
	fprintf(f, "%.9g wall seconds per emulated second</dd>\n",
		w->time_scale);
	term(f, "order of runs");
	fprintf(f, "%s</dd>\n</dl>\n", orders[w->order]);
	to = open_memstream(&text, &n);
	if (!to)
		return;
	result_provenance(res, to);
	fclose(to);
	fputs("<pre>", f);
	html_text(f, text);
	fputs("</pre>\n", f);
}

/* --- provenance ------------------------------------------------------- */

static void published(const struct workload *w, FILE *f)
{
	const struct published *p = w->published.items;

	for (size_t i = 0; i < w->published.n; i++) {
		term(f, p[i].name);
		html_text(f, p[i].source);
		if (p[i].doubt) {
			fputs("<br><strong>Doubtful:</strong> ", f);
			html_text(f, p[i].doubt);
		}
		fputs("</dd>\n", f);
	}
}

static void profiles(const struct workload *w, FILE *f)
{
	const char *name;
	json_t *p;

	if (!json_object_size(w->profiles))
		return;
	fputs("<div class=\"wide\"><table>\n<thead><tr><th>Profile</th>"
	      "<th>Hash</th><th>Source</th></tr></thead>\n<tbody>\n",
	      f);
	json_object_foreach (w->profiles, name, p) {
		fputs("<tr><td>", f);
		html_text(f, name);
		fputs("</td><td><code>", f);
		html_text(f, json_string_value(json_object_get(p, "hash")));
		fputs("</code></td><td>", f);
		html_text(f, json_string_value(json_object_get(p, "source")));
		fputs("</td></tr>\n", f);
	}
	fputs("</tbody>\n</table></div>\n", f);
}

/* The load of the machine over all runs. */
static void load(const struct result *res, FILE *f)
{
	size_t i, n = json_array_size(res->records), again = 0;
	_cleanup_free_ double *share = calloc(n + 1, sizeof(*share));
	struct spread s;
	json_t *r;

	if (!share || !n)
		return;
	json_array_foreach (res->records, i, r) {
		share[i] = 100 * json_get_number(json_object_get(r, "host"),
						 "other_cpu_share");
		again += json_integer_value(json_object_get(
				 json_object_get(r, "cell"), "attempts")) > 1;
	}
	s = stats_spread(share, n);
	term(f, "other load");
	fprintf(f,
		"other programs took %.1f %% of the CPUs (median of %zu runs; "
		"at most %.1f %%); %zu runs were repeated because other load "
		"took more than %.3g %% of their time or delayed their "
		"timers</dd>\n",
		s.median, n, s.max, again, 100 * res->r->w->noise.fraction);
}

static void commands(const struct result *res, FILE *f)
{
	json_t *list = json_object_get(json_object_get(res->first, "cell"),
				       "commands");
	json_t *command, *word;
	size_t i, k;

	fputs("<details><summary>Commands of one run</summary><pre>", f);
	json_array_foreach (list, i, command) {
		json_array_foreach (command, k, word)
			html_printf(f, "%s%s", k ? " " : "",
				    json_string_value(word));
		fputc('\n', f);
	}
	fputs("</pre></details>\n", f);
}

static void file(const struct workload *w, FILE *f)
{
	_cleanup_fclose_ FILE *from = util_open_stream(w->path);
	char line[512];

	if (!from)
		return;
	fputs("<details><summary>The workload file</summary><pre>", f);
	while (fgets(line, sizeof(line), from))
		html_text(f, line);
	fputs("</pre></details>\n", f);
}

static void provenance(const struct result *res, FILE *f)
{
	char now[32];

	tick_utc(now);
	fputs("<h2>Provenance</h2>\n<dl>\n", f);
	published(res->r->w, f);
	term(f, "runs");
	html_json(f, res->origins);
	fputs("</dd>\n", f);
	term(f, "report of");
	html_printf(f, "%s, by gpemu %s", now, GPEMU_VERSION);
	fputs("</dd>\n", f);
	load(res, f);
	term(f, "files");
	html_printf(f, "%s/records, results.csv, summary.json, plots",
		    res->r->out);
	fputs("</dd>\n</dl>\n", f);
	profiles(res->r->w, f);
	commands(res, f);
	file(res->r->w, f);
}

static void report_html(const struct result *res, const struct verdicts *v,
			FILE *f)
{
	json_auto_t *warnings = warnings_json(res->records);
	struct rules rules;

	head(res, v, f);
	verdicts(v, f);
	warnings_html(warnings, f);
	table(res, f);
	plots(res, f);
	where_time_went(res, f);
	rules_of(&rules, res);
	rules_html(&rules, res->r, f);
	setup(res, f);
	provenance(res, f);
	fputs("</main>\n</body>\n</html>\n", f);
}

int report_write(const struct result *res, const struct verdicts *v,
		 struct err *err)
{
	struct replace file;
	FILE *f;
	int code = replace_open(&file, res->r->out, "report.html", &f, err);

	if (code < 0)
		return code;
	report_html(res, v, f);
	return replace_close(&file, f, 0, err);
}
