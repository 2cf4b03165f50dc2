/* SPDX-License-Identifier: MIT */
/* Rules of faults: the text of a rule parses to the same rule. */
#include <string.h>

#include "fs/layer/fault.h"
#include "tests/fuzz/fuzz.h"

static const char *const paths[] = { ".", "a", "n01/a.jpg", "a/b/c/d/e" };

static void check_rule(const struct fault_rule *a)
{
	struct fault_rule *again = NULL;
	struct err err = { 0 };
	uint64_t fired = 0;
	size_t n = 0;

	PROMISED(fault_rules_parse(a->text, strlen(a->text), &again, &n,
				   &err) == 0);
	PROMISED(n == 1 && !strcmp(again->text, a->text));
	PROMISED(again->ops == a->ops && again->error == a->error &&
		 again->delay_ns == a->delay_ns && again->stuck == a->stuck);
	PROMISED(a->delay_ns <= FAULT_MAX_DELAY_NS);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		PROMISED(fault_matches(a, 3, paths[i]) ==
			 fault_matches(again, 3, paths[i]));
	for (uint64_t k = 1; k < 20; k++)
		fired += fault_fires(a, 1, k, fired);
	PROMISED(fired <= a->count);
	fault_rules_free(again, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct fault_rule *rules = NULL;
	struct err err = { 0 };
	size_t n_rules = 0;
	int r = fault_rules_parse((const char *)data, n, &rules, &n_rules,
				  &err);

	PROMISED(r == 0 || (r < 0 && err.text[0]));
	for (size_t i = 0; r == 0 && i < n_rules; i++)
		check_rule(&rules[i]);
	if (r == 0)
		fault_rules_free(rules, n_rules);
	return 0;
}
