/* SPDX-License-Identifier: MIT */
/* Every layout of traces: it reads a good trace of its kind to the end, the
 * same from memory and through a window of a few bytes, and reports damage. */
#include "tests/unit/test.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cachesim/layout.h"
#include "common/conf/plugin_choice.h"
#include "common/util.h"
#include "fs/layer/trace.h"

/* Three requests of two objects; a new layout needs a row. */
static const struct sample {
	const char *layout, *text;
	size_t n;
} samples[] = {
#define TEXT(s) s, sizeof(s) - 1
	{ "mount", TEXT(TRACE_MAGIC "1\n#sizes 10,20\n" TRACE_COLUMNS "\n"
				    "0.1,read,1,10,0,10,1,miss,1,2,,10,a\n"
				    "0.2,read,2,20,0,20,2,miss,1,2,,20,b\n"
				    "0.3,read,1,10,0,10,3,hit,1,2,,10,a\n") },
	{ "csv", TEXT("\xef\xbb\xbf"
		      "id,size\r\n# x\r\na,10\r\n\"b\",20\r\na,10") },
	{ "oracleGeneral",
	  TEXT("\0\0\0\0\1\0\0\0\0\0\0\0\n\0\0\0\2\0\0\0\0\0\0\0"
	       "\1\0\0\0\2\0\0\0\0\0\0\0\24\0\0\0\xff\xff\xff\xff\xff\xff\xff"
	       "\xff"
	       "\2\0\0\0\1\0\0\0\0\0\0\0\n\0\0\0\xff\xff\xff\xff\xff\xff\xff"
	       "\xff") },
	{ "twitter",
	  TEXT("0,a,1,9,1,get,0\n1,b,1,19,1,gets,0\n2,a,1,9,1,get,0\n") },
	{ "msr",
	  TEXT("1,h,0,Read,4095,2,1\n2,h,0,Write,0,9,1\n3,h,0,Read,0,9,1\n") },
	{ "ibm", TEXT("1 REST.GET.OBJECT a 10\n2 REST.GET.OBJECT b 20 0 19\n"
		      "3  REST.GET.OBJECT  a 10 \n") },
	{ "mooncake", TEXT("{\"hash_ids\": [7], \"timestamp\": 0}\r\n\n"
			   "{\"timestamp\": 1, \"hash_ids\": [8]}\n"
			   "{\"hash_ids\": [7]}") },
};

/* `grain`: 0 for memory. */
static int read_it(const struct layout_ops *ops, const void *bytes, size_t n,
		   size_t grain, struct sim_trace *t, struct err *err)
{
	const struct plugin *const table[] = { &ops->plugin, NULL };
	int fd = memfd_create("trace", MFD_CLOEXEC), r;
	struct plugin_choice c;
	struct sim_input in;

	assert_int_equal(write(fd, bytes, n), n);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(
		plugin_choose(table, "layout", ops->plugin.name, &c, err), 0);
	if (grain) {
		r = sim_input_open_fd(&in, fd, grain, "x", err);
	} else {
		close(fd);
		r = sim_input_open_memory(&in, bytes, n, "x", err);
	}
	if (r == 0)
		r = ops->read(&in, c.options, t, err);
	sim_input_close(&in);
	plugin_choice_fini(&c);
	return r;
}

static const struct sample *sample_of(const char *layout)
{
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
		if (!strcmp(samples[i].layout, layout))
			return &samples[i];
	fail_msg("no sample of layout %s", layout);
	return NULL;
}

static void the_window_changes_nothing(void **state)
{
	(void)state;
	for (size_t i = 0; layout_table[i]; i++) {
		const struct layout_ops *ops = container_of(
			layout_table[i], const struct layout_ops, plugin);
		const struct sample *s = sample_of(ops->plugin.name);

		for (size_t grain = 0; grain < 40; grain += 3) {
			struct sim_trace t = { 0 };
			struct err err = { 0 };

			if (read_it(ops, s->text, s->n, grain, &t, &err) < 0)
				fail_msg("%s: %s", s->layout, err.text);
			assert_int_equal(t.n_requests, 3);
			assert_int_equal(t.n_objects, 2);
			assert_int_equal(t.requests[0], t.requests[2]);
			assert_int_equal(t.n_files, 2);
			assert_int_equal(t.read.records - t.read.other_ops,
					 strcmp(s->layout, "msr") ? 3 : 2);
			sim_trace_fini(&t);
		}
	}
}

/* Neither a crash nor an error without a text. */
static void damage_is_reported_or_counted(void **state)
{
	(void)state;
	for (size_t i = 0; layout_table[i]; i++) {
		const struct layout_ops *ops = container_of(
			layout_table[i], const struct layout_ops, plugin);
		const struct sample *s = sample_of(ops->plugin.name);
		_cleanup_free_ char *own = malloc(s->n);
		size_t refused = 0;

		for (size_t at = 0; at < s->n; at++) {
			struct sim_trace t = { 0 };
			struct err err = { 0 };
			int r;

			memcpy(own, s->text, s->n);
			own[at] ^= 0x55;
			r = read_it(ops, own, s->n, at % 2 ? 5 : 0, &t, &err);
			assert_true(r == 0 || err.text[0]);
			refused += r < 0;
			sim_trace_fini(&t);
		}
		assert_true(refused > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_window_changes_nothing),
		cmocka_unit_test(damage_is_reported_or_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
