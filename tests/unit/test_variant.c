/* SPDX-License-Identifier: MIT */
/* Models by sequence length and precision. */
#include "tests/unit/test.h"

#include <string.h>

#include "common/util.h"
#include "emu/profile/precision.h"
#include "emu/profile/variant.h"

#define MODEL(name) "  " name ": {parameters: 5, rows: [[1, 1, 2]]}\n"

static const char yaml[] =
	"name: G\nsource: test\nprecision: fp32\nmemory_mib: 1000\n"
	"usable_memory: 0.9\nsample_bytes: 100\n"
	"pinned: {base_ms: 1, per_sample_ms: 0.5, source: s}\n"
	"pin_copy: {base_ms: 2, per_sample_ms: 0.25, source: "
	"s}\nmodels:\n" MODEL("gpt:seq128") MODEL("gpt:seq128:bf16")
		MODEL("gpt:seq128:tp4") MODEL("net")
			MODEL("net:bf16:channels_last") MODEL("sequel");

static void variants(void **state)
{
	static const struct {
		const char *name;
		uint64_t sequence;
		const char *precision, *found; /* or the error's text */
	} want[] = {
		{ "net", 0, NULL, "net" },
		{ "net", 0, "", "net" },
		{ "net", 0, "fp32", "net" },
		{ "gpt", 128, NULL, "gpt:seq128" },
		{ "gpt:seq128", 0, "bf16", "gpt:seq128:bf16" },
		{ "gpt:seq128:bf16", 128, "bf16", "gpt:seq128:bf16" },
		{ "gpt:tp4", 128, "fp32", "gpt:seq128:tp4" },
		{ "net:channels_last", 0, "bf16", "net:bf16:channels_last" },
		{ "sequel", 0, "fp32", "sequel" },
	}, bad[] = {
		{ "net", 0, "bf16",
		  "G: net was not measured in bf16 (the profile: fp32)" },
		{ "net", 0, "fp12",
		  "unknown precision 'fp12'; did you mean 'fp32'? (known: fp32 tf32 amp fp16 bf16 "
		  "fp8)" },
		{ "gpt:seq128", 64, NULL,
		  "--sequence-length 64: differs from that of --model gpt:seq128" },
		{ "gpt", 64, NULL, "G: unknown model 'gpt:seq64'" },
	};
	struct gpu_profile p;
	struct err err = { 0 };

	(void)state;
	if (gpu_profile_parse(yaml, strlen(yaml), "t.yaml", &p, &err) < 0)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		const struct gpu_model *m =
			variant_find(&p, want[i].name, want[i].sequence,
				     want[i].precision, &err);

		if (!m)
			fail_msg("%s", err.text);
		assert_string_equal(m->name, want[i].found);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		err = (struct err){ 0 };
		assert_null(variant_find(&p, bad[i].name, bad[i].sequence,
					 bad[i].precision, &err));
		if (strncmp(err.text, bad[i].found, strlen(bad[i].found)))
			fail_msg("'%s', not '%s'", err.text, bad[i].found);
	}
	gpu_profile_free(&p);
}

/* Source: MLPerf Storage, Rules.md: Llama 3 8B has 15 GB of model and 90 GB of
 * optimiser in a checkpoint (GiB, 8.03e9 parameters). */
static void bytes_of_a_parameter(void **state)
{
	const struct precision *p = precision_find("bf16", NULL);
	double gib = 8.03e9 / (1 << 30);

	(void)state;
	assert_true((int)(p->weight * gib + .5) == 15);
	assert_true((int)((p->master + 8) * gib + .5) == 90);
	assert_int_equal(precision_find("amp", NULL)->gradient, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(variants),
		cmocka_unit_test(bytes_of_a_parameter),
	};

	return cmocka_run_group_tests_name("variant", tests, NULL, NULL);
}
