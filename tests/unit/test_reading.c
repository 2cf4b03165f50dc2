/* SPDX-License-Identifier: MIT */
/* Information from file systems: physical addresses, units of O_DIRECT. */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"
#include "loader/pipeline/buffer.h"
#include "loader/dataset/reading.h"

enum { BYTES = 1 << 20 };

/* A container of three samples: at its start, 100 bytes on, at half of it. */
static void make(struct dataset *d, const char *folder)
{
	static char zeros[BYTES];
	char path[64];

	snprintf(path, sizeof(path), "%s/gpemu-reading-XXXXXX", folder);
	*d = (struct dataset){ .dirfd = -1, .n = 3, .n_containers = 1 };
	d->names = strdup("part");
	d->path = calloc(d->n, sizeof(*d->path));
	d->container = calloc(d->n, sizeof(*d->container));
	d->offset = calloc(d->n, sizeof(*d->offset));
	d->container_fd = calloc(1, sizeof(int));
	d->offset[1] = 100;
	d->offset[2] = BYTES / 2;
	d->container_fd[0] = mkstemp(path);
	assert_true(d->container_fd[0] >= 0);
	unlink(path);
	assert_int_equal(write(d->container_fd[0], zeros, BYTES), BYTES);
}

static void samples_have_the_addresses_of_their_bytes(void **state)
{
	_cleanup_free_ uint64_t *address = NULL;
	struct err err = { 0 };
	struct dataset d;
	int r;

	(void)state;
	make(&d, "/tmp");
	r = extents_find(&d, &address, &err);
	if (r == -EOPNOTSUPP) {
		print_message("skipped: %s\n", err.text);
	} else {
		assert_int_equal(r, 0);
		/* just written: only the query allocated them */
		assert_true(address[0] > 0);
		assert_int_equal(address[1], address[0] + 100);
		assert_true(address[2] != address[0]);
	}
	dataset_close(&d);
}

static void a_file_system_in_memory_has_no_addresses(void **state)
{
	uint64_t *address = NULL;
	struct err err = { 0 };
	struct dataset d;

	(void)state;
	if (access("/dev/shm", W_OK) < 0) {
		print_message("skipped: no /dev/shm\n");
		return;
	}
	make(&d, "/dev/shm");
	assert_int_equal(extents_find(&d, &address, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.text, "FIEMAP"));
	assert_null(address);
	dataset_close(&d);
}

static void containers_are_switched_or_left_alone(void **state)
{
	struct err err = { 0 };
	uint32_t unit = 0;
	struct dataset d;
	int r, flags;

	(void)state;
	make(&d, "/tmp");
	r = direct_begin(&d, &unit, &err);
	flags = fcntl(d.container_fd[0], F_GETFL);
	if (r < 0) {
		assert_int_equal(r, -EOPNOTSUPP);
		assert_false(flags & O_DIRECT);
	} else {
		assert_true(unit >= 512 && unit <= DIRECT_MAX &&
			    (unit & (unit - 1)) == 0);
		assert_true(flags & O_DIRECT);
	}
	dataset_close(&d);
	/* unreadable */
	make(&d, "/tmp");
	close(d.container_fd[0]);
	d.container_fd[0] = open("/dev/null", O_RDONLY | O_PATH);
	assert_int_equal(direct_begin(&d, &unit, &err), -EOPNOTSUPP);
	dataset_close(&d);
}

static void there_is_room_for_the_pieces_around_a_sample(void **state)
{
	(void)state;
	assert_int_equal(buffer_room(0, 0), 1);
	assert_int_equal(buffer_room(100, 0), 101);
	for (uint64_t size = 0; size < 3000; size += 7) {
		size_t room = buffer_room(size, 512);

		assert_int_equal(room % 512, 0);
		for (uint64_t at = 0; at < 512; at++)
			assert_true(room >= (at + size + 511) / 512 * 512);
		assert_true(room > size);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_have_the_addresses_of_their_bytes),
		cmocka_unit_test(a_file_system_in_memory_has_no_addresses),
		cmocka_unit_test(containers_are_switched_or_left_alone),
		cmocka_unit_test(there_is_room_for_the_pieces_around_a_sample),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
