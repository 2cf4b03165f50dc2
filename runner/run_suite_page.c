/* SPDX-License-Identifier: MIT */
/* The results of a list of workloads: on a terminal, as a page, as JSON. */
#include <string.h>

#include "common/tick.h"
#include "common/json.h"
#include "common/units.h"
#include "common/util.h"
#include "common/version.h"
#include "runner/run/run_host.h"
#include "runner/page/run_html.h"
#include "runner/result/run_origins.h"
#include "runner/result/run_result.h"
#include "runner/run_suite.h"

static const char *text_of(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s ? s : "";
}

/* --- rows ------------------------------------------------------------- */

/* "a; b"; with several verdicts, each prefixed with its point. */
static void join(FILE *f, const json_t *one, const char *key, bool several)
{
	const char *at = text_of(one, "at"), *value = text_of(one, key);

	if (ftell(f))
		fputs("; ", f);
	fprintf(f, "%s%s%s", several ? at : "", several && at[0] ? ": " : "",
		value);
}

/* Do the `n` verdicts from `i` on have the same expected value? */
static bool same_wanted(const json_t *verdicts, size_t i, size_t n)
{
	const char *first = text_of(json_array_get(verdicts, i), "wanted");

	for (size_t k = i + 1; k < i + n; k++)
		if (strcmp(first,
			   text_of(json_array_get(verdicts, k), "wanted")))
			return false;
	return true;
}

static json_t *row_new(const char *check, const char *published,
		       const char *ours, const char *verdict, const json_t *of)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s}", "check", check,
			 "published", published, "ours", ours, "verdict",
			 verdict, "doubt", text_of(of, "doubt"));
}

/* The `n` verdicts from `i` on belong to one check. */
static json_t *verdict_row(const json_t *verdicts, size_t i, size_t n)
{
	_cleanup_free_ char *wanted = NULL, *ours = NULL;
	const json_t *first = json_array_get(verdicts, i);
	size_t size, n_pass = 0;
	FILE *to_wanted = open_memstream(&wanted, &size);
	FILE *to_ours = open_memstream(&ours, &size);
	bool same = same_wanted(verdicts, i, n);

	for (size_t k = i; to_wanted && to_ours && k < i + n; k++) {
		const json_t *one = json_array_get(verdicts, k);

		n_pass += json_is_true(json_object_get(one, "pass"));
		if (k == i || !same)
			join(to_wanted, one, "wanted", !same);
		join(to_ours, one, "ours", n > 1);
	}
	if (to_wanted)
		fclose(to_wanted);
	if (to_ours)
		fclose(to_ours);
	return wanted && ours ? row_new(text_of(first, "check"), wanted, ours,
					n_pass == n ? "pass" : "fail", NULL)
			      : NULL;
}

/* Published values without a check. */
static json_t *shown_row(const json_t *p)
{
	_cleanup_free_ char *theirs = NULL, *ours = NULL, *check = NULL;
	size_t size, i;
	FILE *to_theirs = open_memstream(&theirs, &size);
	FILE *to_ours = open_memstream(&ours, &size);
	char number[24];
	json_t *v;

	json_array_foreach (json_object_get(p, "values"), i, v) {
		const json_t *mine = json_object_get(v, "ours");

		if (!to_theirs || !to_ours)
			break;
		result_number(
			number, sizeof(number),
			json_number_value(json_object_get(v, "published")));
		fprintf(to_theirs, "%s%s: %s", i ? "; " : "", text_of(v, "at"),
			number);
		result_number(number, sizeof(number), json_number_value(mine));
		fprintf(to_ours, "%s%s: %s", i ? "; " : "", text_of(v, "at"),
			json_is_number(mine) ? number : "-");
	}
	if (to_theirs)
		fclose(to_theirs);
	if (to_ours)
		fclose(to_ours);
	if (!theirs || !ours ||
	    asprintf(&check, "%s (%s)", text_of(p, "metric"),
		     text_of(p, "name")) < 0)
		return NULL;
	return row_new(check, theirs, ours, "shown", p);
}

/* A check of published values shows the doubts about them. */
static void add_doubts(json_t *row, const json_t *published)
{
	char tail[120];
	json_t *p;
	size_t i;

	json_array_foreach (published, i, p) {
		const char *check = text_of(row, "check");

		snprintf(tail, sizeof(tail), " as published (%s)",
			 text_of(p, "name"));
		if (strlen(check) > strlen(tail) &&
		    !strcmp(check + strlen(check) - strlen(tail), tail))
			json_object_set_new(row, "doubt",
					    json_string(text_of(p, "doubt")));
	}
}

json_t *suite_rows(const json_t *summary)
{
	const json_t *verdicts = json_object_get(summary, "verdicts");
	const json_t *published = json_object_get(summary, "published");
	json_t *rows = json_array(), *p;
	size_t n, i;

	for (i = 0; i < json_array_size(verdicts); i += n) {
		const char *check =
			text_of(json_array_get(verdicts, i), "check");
		json_t *row;

		for (n = 1; i + n < json_array_size(verdicts); n++)
			if (strcmp(check,
				   text_of(json_array_get(verdicts, i + n),
					   "check")))
				break;
		row = verdict_row(verdicts, i, n);
		add_doubts(row, published);
		json_array_append_new(rows, row);
	}
	json_array_foreach (published, i, p)
		if (!json_is_true(json_object_get(p, "judged")))
			json_array_append_new(rows, shown_row(p));
	return rows;
}

/* --- sums ------------------------------------------------------------- */

struct suite_total suite_sum(const struct suite *s,
			     const struct suite_part *parts)
{
	struct suite_total t = { 0 };

	for (size_t i = 0; i < s->workloads.n; i++) {
		t.seconds += parts[i].seconds;
		t.n_failed += parts[i].failed;
	}
	t.over = s->budget_ns && t.seconds * NS_PER_S > (double)s->budget_ns;
	return t;
}

/* "4 of 5 checks passed", or why there are none. */
static void part_text(const struct suite_part *p, char *buf, size_t n)
{
	const json_t *verdicts = json_object_get(p->summary, "verdicts"), *v;
	const char *mixed = origins_mixed(json_object_get(p->summary, "runs"))
				    ? ", of mixed runs"
				    : "";
	size_t passed = 0, i;

	json_array_foreach ((json_t *)verdicts, i, v)
		passed += json_is_true(json_object_get(v, "pass"));
	if (p->error)
		snprintf(buf, n, "%s", p->error);
	else if (!json_array_size(verdicts))
		snprintf(buf, n, "no checks%s", mixed);
	else
		snprintf(buf, n, "%zu of %zu checks passed%s", passed,
			 json_array_size(verdicts), mixed);
}

static const char *part_verdict(const struct suite_part *p)
{
	if (p->failed)
		return "FAIL";
	return json_array_size(json_object_get(p->summary, "verdicts")) ? "PASS"
									: "-";
}

/* The reproduced figure, else the name. */
static const char *part_figure(const struct suite_part *p)
{
	return p->e.w.figure ? p->e.w.figure : p->e.w.name;
}

/* --- terminal --------------------------------------------------------- */

/* arbitrary: together they fit a terminal of 120 columns */
enum { CHECK_WIDTH = 46, VALUE_WIDTH = 26 };

static void column(FILE *f, const char *text, int width)
{
	int n = (int)strlen(text);

	if (n <= width)
		fprintf(f, "%-*s  ", width, text);
	else
		fprintf(f, "%.*s...  ", width - 3, text);
}

static void print_row(const json_t *row, FILE *f)
{
	const char *verdict = text_of(row, "verdict");

	fputs("  ", f);
	column(f, text_of(row, "check"), CHECK_WIDTH);
	column(f, text_of(row, "published"), VALUE_WIDTH);
	column(f, text_of(row, "ours"), VALUE_WIDTH);
	fputs(!strcmp(verdict, "pass")	 ? "PASS\n"
	      : !strcmp(verdict, "fail") ? "FAIL\n"
					 : "-\n",
	      f);
}

void suite_print(const struct suite *s, const struct suite_part *parts, FILE *f)
{
	struct suite_total t = suite_sum(s, parts);
	char text[UNITS_TEXT], budget[UNITS_TEXT], checks[200];
	json_t *row;
	size_t k;

	fprintf(f, "%s: %s\n\n", s->name, s->question);
	column(f, "figure, check", CHECK_WIDTH + 2);
	column(f, "published or expected", VALUE_WIDTH);
	column(f, "ours", VALUE_WIDTH);
	fprintf(f, "%-7s  time\n", "verdict");
	for (size_t i = 0; i < s->workloads.n; i++) {
		part_text(&parts[i], checks, sizeof(checks));
		fputc('\n', f);
		column(f, part_figure(&parts[i]), CHECK_WIDTH + 2);
		column(f, checks, 2 * VALUE_WIDTH + 2);
		fprintf(f, "%-7s  %s\n", part_verdict(&parts[i]),
			units_human_duration(parts[i].seconds * NS_PER_S,
					     text));
		json_array_foreach (parts[i].rows, k, row)
			print_row(row, f);
	}
	fprintf(f, "\n%zu of %zu workloads passed, in %s",
		s->workloads.n - t.n_failed, s->workloads.n,
		units_human_duration(t.seconds * NS_PER_S, text));
	if (s->budget_ns)
		fprintf(f, " of %s%s",
			units_human_duration((double)s->budget_ns, budget),
			t.over ? ": too long" : "");
	fputc('\n', f);
}

/* --- JSON ------------------------------------------------------------- */

json_t *suite_json(const struct suite *s, const struct suite_part *parts)
{
	struct suite_total t = suite_sum(s, parts);
	json_t *all = json_array();
	char text[200];

	for (size_t i = 0; i < s->workloads.n; i++) {
		const struct suite_part *p = &parts[i];

		part_text(p, text, sizeof(text));
		json_array_append_new(
			all,
			json_pack("{s:s, s:o, s:s?, s:s, s:s, s:b, s:o?, s:o, "
				  "s:f, s:O?, s:O?}",
				  "workload", p->e.w.name, "file",
				  json_bytes(p->path), "figure", p->e.w.figure,
				  "question", p->e.w.question, "result", text,
				  "failed", p->failed, "error",
				  json_bytes(p->error), "folder",
				  json_bytes(p->e.r.out), "seconds", p->seconds,
				  "rows", p->rows, "summary", p->summary));
	}
	return json_pack("{s:{s:s}, s:s, s:s, s:f, s:f, s:b, s:I, s:o, s:o}",
			 "gpemu", "version", GPEMU_VERSION, "suite", s->name,
			 "question", s->question, "seconds", t.seconds,
			 "budget_s", (double)s->budget_ns / NS_PER_S,
			 "over_budget", t.over, "failed",
			 (json_int_t)t.n_failed, "host", host_about(),
			 "workloads", all);
}

/* --- page ------------------------------------------------------------- */

static void badge(FILE *f, const char *verdict)
{
	const char *kind = !strcmp(verdict, "PASS")   ? "pass"
			   : !strcmp(verdict, "FAIL") ? "fail"
						      : "none";

	html_badge(f, kind, verdict);
}

static void html_row(const json_t *row, FILE *f)
{
	const char *verdict = text_of(row, "verdict");
	const char *doubt = text_of(row, "doubt");

	fputs("<tr><td>", f);
	html_text(f, text_of(row, "check"));
	if (doubt[0]) {
		fputs("<br><small>Doubtful: ", f);
		html_text(f, doubt);
		fputs("</small>", f);
	}
	fputs("</td><td class=\"v\">", f);
	html_text(f, text_of(row, "published"));
	fputs("</td><td class=\"v\">", f);
	html_text(f, text_of(row, "ours"));
	fputs("</td><td>", f);
	badge(f, !strcmp(verdict, "pass")   ? "PASS"
		 : !strcmp(verdict, "fail") ? "FAIL"
					    : "shown");
	fputs("</td></tr>\n", f);
}

/* The link from the page in `out` to a report; both are below one folder. */
static void html_link(const struct suite_part *p, const char *out, FILE *f)
{
	size_t n = strlen(out);
	bool below = !strncmp(p->e.r.out, out, n) && p->e.r.out[n] == '/';

	fputs("<a href=\"", f);
	html_printf(f, "%s%s/report.html", below ? "" : "../", p->e.w.name);
	fputs("\">report</a>", f);
}

static void html_part(const struct suite_part *p, const char *out, FILE *f)
{
	char text[200], time[UNITS_TEXT];
	json_t *row;
	size_t k;

	part_text(p, text, sizeof(text));
	fputs("<section>\n<h2>", f);
	badge(f, part_verdict(p));
	fputc(' ', f);
	html_text(f, part_figure(p));
	fputs("</h2>\n<p>", f);
	html_text(f, p->e.w.question);
	fputs("<br>", f);
	html_text(f, text);
	html_printf(f, ", %s, ",
		    units_human_duration(p->seconds * NS_PER_S, time));
	if (p->summary)
		html_link(p, out, f);
	else
		fputs("no report", f);
	fputs("</p>\n", f);
	if (json_array_size(p->rows))
		fputs("<div class=\"wide\"><table class=\"fig\">\n<thead><tr>"
		      "<th>Check</th><th>Published or expected</th>"
		      "<th>Ours</th><th></th></tr></thead>\n<tbody>\n",
		      f);
	json_array_foreach (p->rows, k, row)
		html_row(row, f);
	fputs(json_array_size(p->rows) ? "</tbody>\n</table></div>\n</section>"
					 "\n"
				       : "</section>\n",
	      f);
}

/* The overview: one line per workload. */
static void html_overview(const struct suite *s, const struct suite_part *parts,
			  FILE *f)
{
	char text[200], time[UNITS_TEXT];

	fputs("<div class=\"wide\"><table>\n<thead><tr><th></th>"
	      "<th>Figure</th><th>Result</th><th class=\"n\">Time</th></tr>"
	      "</thead>\n<tbody>\n",
	      f);
	for (size_t i = 0; i < s->workloads.n; i++) {
		part_text(&parts[i], text, sizeof(text));
		fputs("<tr><td>", f);
		badge(f, part_verdict(&parts[i]));
		fputs("</td><td>", f);
		html_text(f, part_figure(&parts[i]));
		fputs("</td><td>", f);
		html_text(f, text);
		fputs("</td><td class=\"n\">", f);
		html_text(f, units_human_duration(parts[i].seconds * NS_PER_S,
						  time));
		fputs("</td></tr>\n", f);
	}
	fputs("</tbody>\n</table></div>\n", f);
}

void suite_html(const struct suite *s, const struct suite_part *parts,
		const char *out, FILE *f)
{
	struct suite_total t = suite_sum(s, parts);
	json_auto_t *host = host_about();
	char text[80], time[UNITS_TEXT], budget[UNITS_TEXT] = "", now[32];

	html_head(f, s->name, s->question);
	snprintf(text, sizeof(text), "%zu of %zu workloads passed",
		 s->workloads.n - t.n_failed, s->workloads.n);
	html_badge(f, t.n_failed ? "fail" : "pass", text);
	units_human_duration(t.seconds * NS_PER_S, time);
	if (s->budget_ns)
		units_human_duration((double)s->budget_ns, budget);
	snprintf(text, sizeof(text), "%s%s%s", time, budget[0] ? " of " : "",
		 budget);
	html_badge(f, t.over ? "fail" : "none", text);
	fputs("</p>\n</header>\n<main>\n", f);
	html_overview(s, parts, f);
	for (size_t i = 0; i < s->workloads.n; i++)
		html_part(&parts[i], out, f);
	tick_utc(now);
	fputs("<h2>Provenance</h2>\n<dl>\n<dt>gpemu</dt><dd>" GPEMU_VERSION
	      "</dd>\n<dt>page of</dt><dd>",
	      f);
	html_text(f, now);
	fputs("</dd>\n<dt>host</dt><dd>", f);
	html_json(f, host);
	fputs("</dd>\n<dt>time</dt><dd>wall time of all runs of a workload; "
	      "each report says what is real and what is "
	      "emulated</dd>\n</dl>\n</main>\n</body>\n</html>\n",
	      f);
}
