/* SPDX-License-Identifier: MIT */
/* Verdicts in HTML. */
#ifndef GPEMU_RUNNER_PAGE_RUN_HTML_SCORE_H
#define GPEMU_RUNNER_PAGE_RUN_HTML_SCORE_H

#include "runner/result/run_score.h"

/* The word of a verdict, in a box. */
void html_verdict(FILE *f, enum evidence_kind kind, enum verdict_state state);
/* The box of `text` that says how all went: fails, else is undecided. */
void html_score_badge(FILE *f, const struct score *s, const char *text);
/* A table with a row for each kind that has checks. */
void html_score(FILE *f, const struct score *s);
/* A small second line "label text"; nothing without a text. */
void html_note(FILE *f, const char *label, const char *text);

#endif
