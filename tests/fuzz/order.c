/* SPDX-License-Identifier: MIT */
/* An order as text: each epoch has every sample once, or declares that it may
 * not. */
#include <string.h>

#include "loader/order/order_text.h"
#include "tests/fuzz/file.h"

enum { SAMPLES = 4, EPOCHS = 4 };

static void check_epoch(struct order_text *t, uint64_t epoch)
{
	uint32_t order[SAMPLES], seen = 0;
	struct err err = { 0 };

	if (order_text_fill(t, epoch, order, &err) < 0) {
		PROMISED(err.text[0]);
		return;
	}
	for (int i = 0; i < SAMPLES; i++) {
		PROMISED(order[i] < SAMPLES);
		seen |= 1u << order[i];
	}
	PROMISED(order_text_repeats(t) || seen == (1u << SAMPLES) - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static char names[] = "a/1\0a/\n2\0b\\c\0d";
	static uint64_t path[SAMPLES] = { 0, 4, 9, 13 };
	const struct dataset d = { .n = SAMPLES, .names = names, .path = path };
	struct order_text *t = NULL;
	struct err err = { 0 };
	char name[32];
	int r;

	fuzz_file(data, n, name);
	r = order_text_open(name, SAMPLES, n % 2 ? &d : NULL, &t, &err);
	PROMISED(r == 0 || (r < 0 && err.text[0]));
	for (uint64_t e = 0; r == 0 && e < EPOCHS; e++)
		check_epoch(t, e);
	if (r == 0)
		order_text_close(t);
	return 0;
}
