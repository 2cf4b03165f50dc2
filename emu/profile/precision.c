/* SPDX-License-Identifier: MIT */
#include "emu/profile/precision.h"

#include <errno.h>
#include <string.h>

#include "common/util.h"
#include "common/word.h"

static const struct precision known[] = {
	{ "fp32", 4, 4, 0 }, { "tf32", 4, 4, 0 }, /* of matrix products; stored
						     as fp32 */
	{ "amp", 4, 4, 0 },			  /* autocast */
	{ "fp16", 2, 2, 4 }, { "bf16", 2, 2, 4 }, { "fp8", 2, 2, 4 },
};

const struct precision *precision_find(const char *name, struct err *err)
{
	struct word_list words = WORD_LIST(name, strlen(name));

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (!strcmp(known[i].name, name))
			return &known[i];
		word_list_add(&words, known[i].name);
	}
	word_unknown(&words, "precision", err);
	return NULL;
}

int precision_check(const void *object, struct err *err)
{
	return precision_find(*(char *const *)object, err) ? 0 : -EINVAL;
}
