/* SPDX-License-Identifier: MIT */
/* A checkpoint whose header gets the right checksum. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "loader/checkpoint/checkpoint_file.h"
#include "tests/fuzz/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct checkpoint_head *head = malloc(CHECKPOINT_HEAD);
	struct checkpoint_point point = { 0 };
	uint8_t *whole = calloc(1, CHECKPOINT_HEAD + n), *visited = NULL;
	char name[32];
	int r;

	PROMISED(head && whole);
	memcpy(whole, data, n);
	memcpy(head, whole, CHECKPOINT_HEAD);
	head->head_hash = checkpoint_head_hash(head);
	memcpy(whole, head, CHECKPOINT_HEAD);
	fuzz_file(whole, n % 3 ? CHECKPOINT_HEAD + n : n, name);
	r = checkpoint_read(AT_FDCWD, name, 1, head, &point, &visited);
	PROMISED(r <= 0);
	if (r == 0)
		PROMISED(json_is_object(point.run) &&
			 head->visited_bytes + head->state_bytes <= n);
	else
		PROMISED(!point.run && !visited);
	json_decref(point.run);
	free(visited);
	free(whole);
	free(head);
	return 0;
}
