/* SPDX-License-Identifier: MIT */
/* The results of a list of workloads: on a terminal, as a page, as JSON. */
#include <string.h>

#include "common/tick.h"
#include "common/json.h"
#include "common/units.h"
#include "common/util.h"
#include "runner/result/run_result.h"
#include "runner/run/run_host.h"
#include "runner/result/run_origins.h"
#include "runner/run_suite.h"

/* --- the verdicts of a summary, a row for each check ------------------- */

/* Do the `n` verdicts from `i` on say the same under `key`? */
static bool is_same(const json_t *verdicts, size_t i, size_t n, const char *key)
{
	const char *first = json_get_text(json_array_get(verdicts, i), key);

	for (size_t k = i + 1; k < i + n; k++)
		if (strcmp(first,
			   json_get_text(json_array_get(verdicts, k), key)))
			return false;
	return true;
}

/* What the `n` verdicts from `i` on say under `key`: "a; b", each after its
 * point; or once, if `once` and all say the same. NULL: no memory. */
static char *join(const json_t *verdicts, size_t i, size_t n, const char *key,
		  bool once)
{
	bool single = n == 1 || (once && is_same(verdicts, i, n, key));
	const char *between = "";
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	for (size_t k = i; f && k < (single ? i + 1 : i + n); k++) {
		const json_t *one = json_array_get(verdicts, k);
		const char *at = json_get_text(one, "at"),
			   *value = json_get_text(one, key);

		if (!value[0])
			continue;
		fprintf(f, "%s%s%s%s", between, single ? "" : at,
			!single && at[0] ? ": " : "", value);
		between = "; ";
	}
	if (f)
		fclose(f);
	return text;
}

/* Of several verdicts the one that matters most. */
static enum verdict_state worst(const json_t *verdicts, size_t i, size_t n)
{
	static const enum verdict_state order[] = { VERDICT_FAIL,
						    VERDICT_UNDECIDED,
						    VERDICT_NOT_REPRODUCED };

	for (size_t s = 0; s < ARRAY_SIZE(order); s++)
		for (size_t k = i; k < i + n; k++)
			if (!strcmp(json_get_text(json_array_get(verdicts, k),
						  "verdict"),
				    verdict_state_name(order[s])))
				return order[s];
	return VERDICT_PASS;
}

/* The `n` verdicts from `i` on belong to one check. */
static json_t *verdict_row(const json_t *verdicts, size_t i, size_t n)
{
	_cleanup_free_ char *wanted = join(verdicts, i, n, "wanted", true);
	_cleanup_free_ char *ours = join(verdicts, i, n, "ours", false);
	_cleanup_free_ char *range = join(verdicts, i, n, "interval", false);
	_cleanup_free_ char *note = join(verdicts, i, n, "note", true);
	const json_t *first = json_array_get(verdicts, i);
	bool single = json_integer_value(json_object_get(first, "n")) == 1;

	if (!wanted || !ours || !range || !note)
		return NULL;
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "check",
			 json_get_text(first, "check"), "kind",
			 json_get_text(first, "kind"), "published", wanted,
			 "ours", ours, "interval",
			 range[0] ? range
			 : single ? "one run"
				  : "",
			 "verdict", verdict_state_name(worst(verdicts, i, n)),
			 "note", note, "doubt", "");
}

/* Published values without a check. */
static json_t *shown_row(const json_t *p)
{
	_cleanup_free_ char *theirs = NULL, *ours = NULL, *check = NULL;
	size_t size, i;
	FILE *to_theirs = open_memstream(&theirs, &size);
	FILE *to_ours = open_memstream(&ours, &size);
	char number[RESULT_TEXT];
	json_t *v;

	json_array_foreach (json_object_get(p, "values"), i, v) {
		const json_t *mine = json_object_get(v, "ours");

		if (!to_theirs || !to_ours)
			break;
		result_number(number, sizeof(number),
			      json_get_number(v, "published"));
		fprintf(to_theirs, "%s%s: %s", i ? "; " : "",
			json_get_text(v, "at"), number);
		result_number(number, sizeof(number), json_number_value(mine));
		fprintf(to_ours, "%s%s: %s", i ? "; " : "",
			json_get_text(v, "at"),
			json_is_number(mine) ? number : "-");
	}
	if (to_theirs)
		fclose(to_theirs);
	if (to_ours)
		fclose(to_ours);
	if (!theirs || !ours ||
	    asprintf(&check, "%s (%s)", json_get_text(p, "metric"),
		     json_get_text(p, "name")) < 0)
		return NULL;
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "check",
			 check, "kind", "", "published", theirs, "ours", ours,
			 "interval", "", "verdict", "shown", "note", "",
			 "doubt", json_get_text(p, "doubt"));
}

/* A check of published values shows the doubts about them. */
static void add_doubts(json_t *row, const json_t *published)
{
	char tail[120];
	json_t *p;
	size_t i;

	json_array_foreach (published, i, p) {
		const char *check = json_get_text(row, "check");

		snprintf(tail, sizeof(tail), " as published (%s)",
			 json_get_text(p, "name"));
		if (strlen(check) > strlen(tail) &&
		    !strcmp(check + strlen(check) - strlen(tail), tail))
			json_add_text(row, "doubt", json_get_text(p, "doubt"));
	}
}

json_t *suite_rows(const json_t *summary)
{
	const json_t *verdicts = json_object_get(summary, "verdicts");
	const json_t *published = json_object_get(summary, "published");
	json_t *rows = json_array(), *p;
	size_t n, i;

	for (i = 0; i < json_array_size(verdicts); i += n) {
		json_t *row;

		for (n = 1; i + n < json_array_size(verdicts); n++)
			if (!is_same(verdicts, i, n + 1, "check") ||
			    !is_same(verdicts, i, n + 1, "kind"))
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
		t.n_undecided += !parts[i].failed &&
				 score_in(&parts[i].score, VERDICT_UNDECIDED);
		score_add_all(&t.score, &parts[i].score);
	}
	t.over = s->budget_ns && t.seconds * NS_PER_S > (double)s->budget_ns;
	return t;
}

/* "4 of 5 checks passed: ...", or why there are none. */
static void part_text(const struct suite_part *p, char *buf, size_t n)
{
	const char *mixed = origins_mixed(json_object_get(p->summary, "runs"))
				    ? ", of mixed runs"
				    : "";
	char score[SCORE_TEXT];

	score_text(&p->score, score, sizeof(score));
	if (p->error)
		snprintf(buf, n, "%s", p->error);
	else
		snprintf(buf, n, "%s%s",
			 score_n(&p->score) ? score : "no checks", mixed);
}

static const char *part_verdict(const struct suite_part *p)
{
	if (p->failed)
		return "FAIL";
	if (score_in(&p->score, VERDICT_UNDECIDED))
		return "UNDECIDED";
	return score_n(&p->score) ? "PASS" : "-";
}

/* The reproduced figure, else the name. */
static const char *part_figure(const struct suite_part *p)
{
	return p->e.w.figure ? p->e.w.figure : p->e.w.name;
}

/* "2 of 3 workloads passed, 1 undecided" */
static void passed_text(const struct suite *s, const struct suite_total *t,
			char *buf, size_t n)
{
	size_t at = (size_t)snprintf(
		buf, n, "%zu of %zu workloads passed",
		s->workloads.n - t->n_failed - t->n_undecided, s->workloads.n);

	if (t->n_undecided && at < n)
		snprintf(buf + at, n - at, ", %zu undecided", t->n_undecided);
}

/* --- terminal --------------------------------------------------------- */

/* arbitrary: together they fit a terminal of 140 columns */
enum { CHECK_WIDTH = 46, KIND_WIDTH = 10, VALUE_WIDTH = 28, LINE_WIDTH = 140 };
/* of part_text */
enum { PART_TEXT = SCORE_TEXT + 100 };

static void column(FILE *f, const char *text, int width)
{
	int n = (int)strlen(text);

	if (n <= width)
		fprintf(f, "%-*s  ", width, text);
	else
		fprintf(f, "%.*s...  ", width - 3, text);
}

/* For a terminal that is too narrow for columns. */
static void print_narrow(const json_t *row, const char *verdict, FILE *f)
{
	const char *interval = json_get_text(row, "interval");

	fprintf(f,
		"  %s\n      %s, %s: published or expected %s, ours %s%s%s\n",
		json_get_text(row, "check"), verdict,
		json_get_text(row, "kind"), json_get_text(row, "published"),
		json_get_text(row, "ours"), *interval ? ", 95 % interval " : "",
		interval);
}

static void print_row(const json_t *row, size_t width, FILE *f)
{
	const char *note = json_get_text(row, "note");
	enum verdict_state state;
	enum evidence_kind kind;
	const char *verdict = score_parse(row, &kind, &state) < 0
				      ? "-"
				      : verdict_word(kind, state);

	if (width && width < LINE_WIDTH) {
		print_narrow(row, verdict, f);
		if (note[0])
			fprintf(f, "      %s\n", note);
		return;
	}
	fputs("  ", f);
	column(f, json_get_text(row, "check"), CHECK_WIDTH);
	column(f, json_get_text(row, "kind"), KIND_WIDTH);
	column(f, json_get_text(row, "published"), VALUE_WIDTH);
	column(f, json_get_text(row, "ours"), VALUE_WIDTH);
	column(f, json_get_text(row, "interval"), VALUE_WIDTH);
	fprintf(f, "%s%s%s\n", verdict, note[0] ? ": " : "", note);
}

static void print_head(FILE *f)
{
	column(f, "figure, check", CHECK_WIDTH + 2);
	column(f, "kind", KIND_WIDTH);
	column(f, "published or expected", VALUE_WIDTH);
	column(f, "ours", VALUE_WIDTH);
	column(f, "95 % interval", VALUE_WIDTH);
	fputs("verdict\n", f);
}

void suite_print(const struct suite *s, const struct suite_part *parts,
		 size_t width, FILE *f)
{
	struct suite_total t = suite_sum(s, parts);
	char text[UNITS_TEXT], budget[UNITS_TEXT], checks[PART_TEXT];
	json_t *row;
	size_t k;

	fprintf(f, "%s: %s\n\n", s->name, s->question);
	if (!width || width >= LINE_WIDTH)
		print_head(f);
	for (size_t i = 0; i < s->workloads.n; i++) {
		part_text(&parts[i], checks, sizeof(checks));
		fputc('\n', f);
		fprintf(f, "%s: %s, in %s\n  %s\n", part_figure(&parts[i]),
			part_verdict(&parts[i]),
			units_human_duration(parts[i].seconds * NS_PER_S, text),
			checks);
		json_array_foreach (parts[i].rows, k, row)
			print_row(row, width, f);
	}
	fputc('\n', f);
	score_print(&t.score, f);
	passed_text(s, &t, checks, sizeof(checks));
	fprintf(f, "%s%s, in %s", score_n(&t.score) ? "\n" : "", checks,
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
	char text[PART_TEXT];

	for (size_t i = 0; i < s->workloads.n; i++) {
		const struct suite_part *p = &parts[i];

		part_text(p, text, sizeof(text));
		json_array_append_new(
			all,
			json_pack("{s:s, s:o, s:s?, s:s, s:o, s:b, s:o?, s:o, "
				  "s:f, s:O?, s:O?}",
				  "workload", p->e.w.name, "file",
				  json_bytes(p->path), "figure", p->e.w.figure,
				  "question", p->e.w.question, "result",
				  json_bytes(text), "failed", p->failed,
				  "error", json_bytes(p->error), "folder",
				  json_bytes(p->e.r.out), "seconds", p->seconds,
				  "rows", p->rows, "summary", p->summary));
	}
	return json_pack("{s:o, s:s, s:s, s:f, s:f, s:b, s:I, s:I, s:o, "
			 "s:o, s:o}",
			 "gpemu", json_version(), "suite", s->name, "question",
			 s->question, "seconds", t.seconds, "budget_s",
			 (double)s->budget_ns / NS_PER_S, "over_budget", t.over,
			 "failed", (json_int_t)t.n_failed, "undecided",
			 (json_int_t)t.n_undecided, "score",
			 score_json(&t.score), "host", host_about(),
			 "workloads", all);
}

/* --- page ------------------------------------------------------------- */

static json_t *badge(const char *class, const char *text)
{
	return json_pack("{s:s, s:s}", "class", class, "text", text);
}

/* The link from the page in `out` to a report; both are below one folder. NULL:
 * there is none. */
static json_t *link_to(const struct suite_part *p, const char *out)
{
	size_t n = strlen(out);
	bool below = !strncmp(p->e.r.out, out, n) && p->e.r.out[n] == '/';

	return p->summary ? json_sprintf("%s%s/report.html", below ? "" : "../",
					 p->e.w.name)
			  : NULL;
}

static json_t *part_json(const struct suite_part *p, const char *out)
{
	const char *verdict = part_verdict(p);
	const char *class = !strcmp(verdict, "PASS")	    ? "pass"
			    : !strcmp(verdict, "FAIL")	    ? "fail"
			    : !strcmp(verdict, "UNDECIDED") ? "open"
							    : "none";
	json_t *rows = json_deep_copy(p->rows);
	char text[PART_TEXT], time[UNITS_TEXT];

	part_text(p, text, sizeof(text));
	score_mark(rows);
	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:s, s:o?, s:o?}",
			 "verdict", verdict, "class", class, "figure",
			 part_figure(p), "question", p->e.w.question, "result",
			 json_bytes(text), "time",
			 units_human_duration(p->seconds * NS_PER_S, time),
			 "link", link_to(p, out), "rows", rows);
}

json_t *suite_page_json(const struct suite *s, const struct suite_part *parts,
			const char *out)
{
	struct suite_total t = suite_sum(s, parts);
	char passed[120], took[120], time[UNITS_TEXT], budget[UNITS_TEXT] = "",
						       now[32];
	json_t *all = json_array();

	for (size_t i = 0; i < s->workloads.n; i++)
		json_array_append_new(all, part_json(&parts[i], out));
	passed_text(s, &t, passed, sizeof(passed));
	units_human_duration(t.seconds * NS_PER_S, time);
	if (s->budget_ns)
		units_human_duration((double)s->budget_ns, budget);
	snprintf(took, sizeof(took), "%s%s%s", time, budget[0] ? " of " : "",
		 budget);
	tick_utc(now);
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:s, s:o}",
			 "name", s->name, "title", s->question, "passed",
			 badge(t.n_failed      ? "fail"
			       : t.n_undecided ? "open"
					       : "pass",
			       passed),
			 "took", badge(t.over ? "fail" : "none", took),
			 "scores", score_rows(&t.score), "workloads", all,
			 "gpemu", json_version(), "now", now, "host",
			 host_about());
}
