/* SPDX-License-Identifier: MIT */
#include "runner/page/run_html_score.h"

#include "runner/page/run_html.h"

static const char *const classes[VERDICT_STATES] = {
	[VERDICT_PASS] = "pass",
	[VERDICT_FAIL] = "fail",
	[VERDICT_UNDECIDED] = "open",
	[VERDICT_NOT_REPRODUCED] = "not",
};

void html_verdict(FILE *f, enum evidence_kind kind, enum verdict_state state)
{
	html_badge(f, classes[state], verdict_word(kind, state));
}

void html_score_badge(FILE *f, const struct score *s, const char *text)
{
	html_badge(f,
		   classes[score_in(s, VERDICT_FAIL)	    ? VERDICT_FAIL
			   : score_in(s, VERDICT_UNDECIDED) ? VERDICT_UNDECIDED
							    : VERDICT_PASS],
		   text);
}

void html_score(FILE *f, const struct score *s)
{
	if (!score_n(s))
		return;
	fputs("<div class=\"wide\"><table class=\"fit\">\n<thead><tr><th>Kind "
	      "of evidence"
	      "</th><th class=\"n\">Checks</th><th class=\"n\">Passed</th>"
	      "<th class=\"n\">Failed</th><th class=\"n\">Undecided</th>"
	      "<th class=\"n\">Not reproduced</th></tr></thead>\n<tbody>\n",
	      f);
	for (int k = 0; k < EVIDENCE_KINDS; k++) {
		if (!score_of(s, k))
			continue;
		fprintf(f, "<tr><td>%s</td><td class=\"n\">%zu</td>",
			evidence_about(k), score_of(s, k));
		for (int v = 0; v < VERDICT_STATES; v++)
			fprintf(f, "<td class=\"n\">%zu</td>", s->n[k][v]);
		fputs("</tr>\n", f);
	}
	fputs("</tbody>\n</table></div>\n", f);
}

void html_note(FILE *f, const char *label, const char *text)
{
	if (!text[0])
		return;
	fputs("<br><small>", f);
	html_printf(f, "%s%s", label, text);
	fputs("</small>", f);
}
