/* SPDX-License-Identifier: MIT */
/* The verdicts of a summary, a row for each check. */
#include <string.h>

#include "common/json.h"
#include "common/util.h"
#include "runner/result/run_result.h"
#include "runner/result/run_score.h"
#include "runner/run_suite.h"

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
			json_object_set_new(
				row, "doubt",
				json_string(json_get_text(p, "doubt")));
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
