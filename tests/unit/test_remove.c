/* SPDX-License-Identifier: MIT */
/* rm -r in folders where others may write. */
#include "tests/unit/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner/run/run_remove.h"

enum { N_FILES = 40, N_ROUNDS = 400 };

static char top[] = "/tmp/gpemu-remove-XXXXXX";

static void make_folder(const char *name)
{
	char path[64];

	assert_int_equal(mkdir(name, 0700), 0);
	for (int i = 0; i < N_FILES; i++) {
		snprintf(path, sizeof(path), "%s/%d", name, i);
		close(open(path, O_WRONLY | O_CREAT, 0600));
	}
}

static int n_there(const char *name)
{
	char path[64];
	int n = 0;

	for (int i = 0; i < N_FILES; i++) {
		snprintf(path, sizeof(path), "%s/%d", name, i);
		n += access(path, F_OK) == 0;
	}
	return n;
}

static void all_of_a_folder_goes(void **state)
{
	(void)state;
	make_folder("kept");
	assert_int_equal(mkdir("tree", 0700), 0);
	make_folder("tree/a");
	make_folder("tree/a/b");
	assert_int_equal(symlink("../kept", "tree/link"), 0);
	assert_int_equal(mkfifo("tree/a/pipe", 0600), 0);
	run_remove("tree");
	assert_int_equal(access("tree", F_OK), -1);
	assert_int_equal(n_there("kept"), N_FILES);
	run_remove("tree"); /* is not there */
	assert_int_equal(symlink("kept", "link"), 0);
	run_remove("link");
	assert_int_equal(faccessat(AT_FDCWD, "link", F_OK, AT_SYMLINK_NOFOLLOW),
			 -1);
	assert_int_equal(n_there("kept"), N_FILES);
	run_remove("kept/0");
	assert_int_equal(n_there("kept"), N_FILES - 1);
	run_remove("kept");
	assert_int_equal(access("kept", F_OK), -1);
}

/* Somebody replaces a folder with a link, and restores the folder. */
static void *swap(void *arg)
{
	bool *stop = arg;

	while (!__atomic_load_n(stop, __ATOMIC_ACQUIRE))
		renameat2(AT_FDCWD, "tree/a", AT_FDCWD, "link",
			  RENAME_EXCHANGE);
	return NULL;
}

static void no_link_leads_out_meanwhile(void **state)
{
	int n = N_FILES;

	(void)state;
	make_folder("kept");
	for (int i = 0; n == N_FILES && i < N_ROUNDS; i++) {
		bool stop = false;
		pthread_t thread;

		assert_int_equal(mkdir("tree", 0700), 0);
		make_folder("tree/a");
		assert_int_equal(symlink("../kept", "link"), 0);
		assert_int_equal(pthread_create(&thread, NULL, swap, &stop), 0);
		run_remove("tree");
		__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
		pthread_join(thread, NULL);
		n = n_there("kept");
		run_remove("tree");
		run_remove("link");
	}
	run_remove("kept");
	assert_int_equal(n, N_FILES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_of_a_folder_goes),
		cmocka_unit_test(no_link_leads_out_meanwhile),
	};
	int r;

	if (!mkdtemp(top) || chdir(top) < 0)
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(top);
	return r;
}
