/* SPDX-License-Identifier: MIT */
/* Verdicts counted by kind of evidence. */
#ifndef GPEMU_RUNNER_RESULT_RUN_SCORE_H
#define GPEMU_RUNNER_RESULT_RUN_SCORE_H

#include <jansson.h>
#include <stdio.h>

#include "runner/spec/run_evidence.h"

enum verdict_state {
	VERDICT_PASS,
	VERDICT_FAIL,
	/* the interval holds the limit, a run was disturbed, or there is no
	 * value: neither pass nor fail */
	VERDICT_UNDECIDED,
	/* a published claim that we contradict, with a reason */
	VERDICT_NOT_REPRODUCED,
	VERDICT_STATES,
};

struct score {
	size_t n[EVIDENCE_KINDS][VERDICT_STATES];
};

/* "pass", "fail", "undecided", "not reproduced". */
const char *verdict_state_name(enum verdict_state state);
/* As people read it: PASS, and REPRODUCED only of a kind that shows it. */
const char *verdict_word(enum evidence_kind kind, enum verdict_state state);

void score_add(struct score *s, enum evidence_kind kind,
	       enum verdict_state state);
/* Add the verdicts of a summary: [{kind, verdict}]. */
void score_add_json(struct score *s, const json_t *verdicts);
void score_add_all(struct score *s, const struct score *other);
/* The two of one of these; -EINVAL: it has none. */
int score_parse(const json_t *verdict, enum evidence_kind *ret_kind,
		enum verdict_state *ret_state);
/* The number in a state, of all kinds. */
size_t score_in(const struct score *s, enum verdict_state state);
/* In any state, of all kinds. */
size_t score_n(const struct score *s);

/* Room for score_text. */
enum { SCORE_TEXT = 320 };
/* "11 of 13 checks passed: self 5 of 6, ...; 1 failed, 1 undecided". */
void score_text(const struct score *s, char *buf, size_t n);
/* A line for each kind that has checks; nothing without checks. */
void score_print(const struct score *s, FILE *f);
/* {KIND: {pass, fail, undecided, not reproduced}} of the kinds with checks. */
json_t *score_json(const struct score *s);

/* For pages: [{about, checks, states: [N, ...]}] of the kinds with checks. */
json_t *score_rows(const struct score *s);
/* Add to each of [{kind, verdict}] its word, and the class of its badge. */
void score_mark(json_t *verdicts);
/* {class, text}: the badge that says how all went: fails, else is undecided. */
json_t *score_badge(const struct score *s, const char *text);

struct verdict {
	char *check;	/* the expectation */
	char *at;	/* labels of the point; "": everywhere */
	char *numbers;	/* "12.3 < 15.2", or the missing value */
	char *ours;	/* "12.3": the mean over the repetitions */
	char *wanted;	/* "< 15.2"; "" if the check itself says it */
	char *interval; /* "12.1 to 12.5"; "" of one repetition */
	char *note;	/* why it is undecided or not reproduced; or "" */
	enum evidence_kind kind;
	enum verdict_state state;
	double low, high; /* of the interval; NaN of one repetition */
	size_t n;	  /* repetitions that were judged */
	size_t needed;	  /* undecided: to decide; SIZE_MAX: never; else 0 */
};

struct verdicts {
	struct verdict *items;
	size_t n;
	struct score score;
};

#endif
