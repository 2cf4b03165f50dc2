/* SPDX-License-Identifier: MIT */
/* An expression: a tree or an error with its position, and a number or a reason
 * for its absence. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "runner/spec/run_expr.h"

/* Names of one letter have the value 1, those of two are absent; `*` has three
 * labels. */
static int value(void *ctx, const struct expr_ref *ref, size_t i, double *ret)
{
	size_t n = strlen(ref->name);

	(void)ctx;
	*ret = (double)i + 1;
	return n == 2 ? -ENOENT : i < 3 ? 0 : -ERANGE;
}

static int check(void *ctx, const struct expr_ref *ref, struct err *err)
{
	(void)err;
	PROMISED(ref->offset < *(size_t *)ctx && ref->name[0]);
	for (size_t i = 0; i < ref->n_selects; i++)
		PROMISED(ref->selects[i].label[0] &&
			 (!ref->selects[i].axis || ref->selects[i].axis[0]));
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *text = strndup((const char *)data, n);
	size_t length = strlen(text), at = 0;
	struct err err = { 0 };
	struct expr_result r;
	const char *missing;
	struct expr *e;
	int code = expr_parse(text, &e, &at, &err);

	if (code < 0) {
		PROMISED(code == -EINVAL && err.text[0] && at <= length);
		free(text);
		return 0;
	}
	PROMISED(expr_each(e, check, &length, NULL) == 0);
	code = expr_eval(e, value, NULL, &r, &missing);
	PROMISED(code == 0 || code == -EDOM || (code == -ENOENT && missing));
	for (size_t i = 0; code == 0 && i < r.n_sides; i++)
		PROMISED(isfinite(r.side[i]) && (i == 0 || r.op[i]));
	PROMISED(code < 0 || r.holds == expr_holds(&r));
	expr_free(e);
	free(text);
	return 0;
}
