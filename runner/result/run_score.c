/* SPDX-License-Identifier: MIT */
#include "runner/result/run_score.h"

#include <errno.h>

#include "common/json.h"
#include "common/word.h"

static const char *const states[VERDICT_STATES] = {
	[VERDICT_PASS] = "pass",
	[VERDICT_FAIL] = "fail",
	[VERDICT_UNDECIDED] = "undecided",
	[VERDICT_NOT_REPRODUCED] = "not reproduced",
};

const char *verdict_state_name(enum verdict_state state)
{
	return states[state];
}

const char *verdict_word(enum evidence_kind kind, enum verdict_state state)
{
	static const char *const words[VERDICT_STATES] = { "PASS", "FAIL",
							   "UNDECIDED",
							   "NOT REPRODUCED" };

	return state == VERDICT_PASS && evidence_reproduces(kind)
		       ? "REPRODUCED"
		       : words[state];
}

void score_add(struct score *s, enum evidence_kind kind,
	       enum verdict_state state)
{
	s->n[kind][state]++;
}

int score_parse(const json_t *verdict, enum evidence_kind *ret_kind,
		enum verdict_state *ret_state)
{
	const char *kind = "", *state = "";
	int k, v;

	json_unpack((json_t *)verdict, "{s:s, s:s}", "kind", &kind, "verdict",
		    &state);
	k = evidence_find(kind, NULL);
	v = WORD_FIND(states, "verdict", state, NULL);
	if (k < 0 || v < 0)
		return -EINVAL;
	*ret_kind = (enum evidence_kind)k;
	*ret_state = (enum verdict_state)v;
	return 0;
}

void score_add_json(struct score *s, const json_t *verdicts)
{
	enum evidence_kind kind;
	enum verdict_state state;
	json_t *one;
	size_t i;

	json_array_foreach ((json_t *)verdicts, i, one)
		if (score_parse(one, &kind, &state) == 0)
			score_add(s, kind, state);
}

void score_add_all(struct score *s, const struct score *other)
{
	for (int k = 0; k < EVIDENCE_KINDS; k++)
		for (int v = 0; v < VERDICT_STATES; v++)
			s->n[k][v] += other->n[k][v];
}

/* Of a kind, in any state. */
static size_t score_of(const struct score *s, enum evidence_kind kind)
{
	size_t n = 0;

	for (int v = 0; v < VERDICT_STATES; v++)
		n += s->n[kind][v];
	return n;
}

size_t score_in(const struct score *s, enum verdict_state state)
{
	size_t n = 0;

	for (int k = 0; k < EVIDENCE_KINDS; k++)
		n += s->n[k][state];
	return n;
}

size_t score_n(const struct score *s)
{
	size_t n = 0;

	for (int k = 0; k < EVIDENCE_KINDS; k++)
		n += score_of(s, k);
	return n;
}

void score_text(const struct score *s, char *buf, size_t n)
{
	size_t all = score_n(s);
	size_t at = (size_t)snprintf(buf, n, "%zu of %zu checks passed",
				     score_in(s, VERDICT_PASS), all);
	const char *between = ": ";

	for (int k = 0; k < EVIDENCE_KINDS && at < n; k++) {
		if (!score_of(s, k))
			continue;
		at += (size_t)snprintf(buf + at, n - at, "%s%s %zu of %zu",
				       between, evidence_name(k),
				       s->n[k][VERDICT_PASS], score_of(s, k));
		between = ", ";
	}
	between = "; ";
	for (int v = VERDICT_FAIL; v < VERDICT_STATES && at < n; v++) {
		if (!score_in(s, v))
			continue;
		at += (size_t)snprintf(
			buf + at, n - at, "%s%zu %s", between, score_in(s, v),
			v == VERDICT_FAIL ? "failed" : states[v]);
		between = ", ";
	}
}

json_t *score_json(const struct score *s)
{
	json_t *j = json_object();

	for (int k = 0; j && k < EVIDENCE_KINDS; k++) {
		json_t *one;

		if (!score_of(s, k))
			continue;
		one = json_object();
		for (int v = 0; v < VERDICT_STATES; v++)
			json_add_integer(one, states[v], s->n[k][v]);
		json_object_set_new(j, evidence_name(k), one);
	}
	return j;
}

void score_print(const struct score *s, FILE *f)
{
	if (!score_n(s))
		return;
	fprintf(f, "%-16s  %6s  %6s  %6s  %9s  %14s\n", "kind of evidence",
		"checks", "passed", "failed", "undecided", "not reproduced");
	for (int k = 0; k < EVIDENCE_KINDS; k++)
		if (score_of(s, k))
			fprintf(f, "%-16s  %6zu  %6zu  %6zu  %9zu  %14zu\n",
				evidence_name(k), score_of(s, k),
				s->n[k][VERDICT_PASS], s->n[k][VERDICT_FAIL],
				s->n[k][VERDICT_UNDECIDED],
				s->n[k][VERDICT_NOT_REPRODUCED]);
}

/* --- pages ------------------------------------------------------------ */

static const char *const classes[VERDICT_STATES] = {
	[VERDICT_PASS] = "pass",
	[VERDICT_FAIL] = "fail",
	[VERDICT_UNDECIDED] = "open",
	[VERDICT_NOT_REPRODUCED] = "not",
};

json_t *score_rows(const struct score *s)
{
	json_t *rows = json_array();

	for (int k = 0; k < EVIDENCE_KINDS; k++) {
		json_t *n = json_array();

		for (int v = 0; v < VERDICT_STATES; v++)
			json_array_append_new(
				n, json_integer((json_int_t)s->n[k][v]));
		if (score_of(s, k))
			json_array_append_new(
				rows, json_pack("{s:s, s:I, s:O}", "about",
						evidence_about(k), "checks",
						(json_int_t)score_of(s, k),
						"states", n));
		json_decref(n);
	}
	return rows;
}

void score_mark(json_t *verdicts)
{
	json_t *one;
	size_t i;

	json_array_foreach (verdicts, i, one) {
		const char *word = "shown", *class = "none";
		enum evidence_kind kind;
		enum verdict_state state;

		if (score_parse(one, &kind, &state) == 0) {
			word = verdict_word(kind, state);
			class = classes[state];
		}
		json_add_text(one, "word", word);
		json_add_text(one, "class", class);
	}
}

json_t *score_badge(const struct score *s, const char *text)
{
	enum verdict_state state = score_in(s, VERDICT_FAIL) ? VERDICT_FAIL
				   : score_in(s, VERDICT_UNDECIDED)
					   ? VERDICT_UNDECIDED
					   : VERDICT_PASS;

	return json_pack("{s:s, s:s}", "class", classes[state], "text", text);
}
