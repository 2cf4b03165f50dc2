/* SPDX-License-Identifier: MIT */
/* The pure parts of the preparation service: messages, splits, workers, the
 * journal, and what a trainer has of an epoch. */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/rng.h"
#include "common/util.h"
#include "net/wire.h"
#include "service/client/sweep.h"
#include "service/core/journal.h"
#include "service/core/registry.h"

/* --- splits --------------------------------------------------------------- */

/* A million splits, taken by three workers at random, of which one is lost
 * now and then: each is assigned at most once. */
static void a_split_is_assigned_once(void **state)
{
	struct rng rng = rng_stream(1, "splits", 0);
	struct splits s;
	uint32_t assigned = 0, split;
	uint64_t worker = 3;

	(void)state;
	assert_int_equal(splits_init(&s, SPLIT_DYNAMIC, 100001, 8, 1, NULL, 0),
			 0);
	assert_int_equal(s.n, 12501);
	assert_int_equal(splits_samples(&s, s.n - 1), 1);
	while (splits_next(&s, worker, &split) == 0) {
		assert_int_equal(splits_assign(&s, split, worker), 0);
		assert_int_equal(splits_assign(&s, split, 1), -EINVAL);
		assigned++;
		if (rng_below(&rng, 4) == 0)
			splits_done(&s, split);
		if (rng_below(&rng, 100) == 0)
			splits_lose(&s, worker);
		worker = 1 + rng_below(&rng, 3);
	}
	assert_int_equal(assigned, s.n);
	for (worker = 1; worker <= 3; worker++)
		splits_lose(&s, worker);
	assert_int_equal(s.n_done + s.n_lost, s.n);
	assert_true(s.n_done > s.n / 5);
	splits_fini(&s);
}

static void static_splits_stay_with_their_worker(void **state)
{
	const uint64_t slot[] = { 7, 5, 6 };
	struct splits s;
	uint32_t split;

	(void)state;
	assert_int_equal(splits_init(&s, SPLIT_STATIC, 100, 5, 2, slot, 3), 0);
	assert_int_equal(s.n, 10);
	assert_int_equal(splits_next(&s, 9, &split), -ENODATA);
	for (uint32_t i = 1; i < 10; i += 3) {
		assert_int_equal(splits_next(&s, 5, &split), 0);
		assert_int_equal(split, i);
		splits_assign(&s, split, 5);
	}
	assert_int_equal(splits_next(&s, 5, &split), -ENODATA);
	/* what it has not taken is lost with it */
	assert_int_equal(splits_next(&s, 7, &split), 0);
	splits_assign(&s, split, 7);
	assert_true(splits_has(&s, 7));
	assert_false(splits_has(&s, 9));
	assert_int_equal(splits_lose(&s, 7), 4);
	assert_false(splits_has(&s, 7));
	for (uint32_t i = 1; i < 10; i += 3) {
		assert_true(splits_has(&s, 5));
		splits_done(&s, i);
	}
	assert_false(splits_has(&s, 5));
	assert_int_equal(splits_lose(&s, 7), 0);
	assert_int_equal(splits_next(&s, 7, &split), -ENODATA);
	splits_fini(&s);
}

static void too_many_splits_are_refused(void **state)
{
	struct splits s;

	(void)state;
	assert_int_equal(splits_init(&s, SPLIT_DYNAMIC, UINT32_MAX, 1, 1, NULL,
				     0),
			 -EINVAL);
	splits_fini(&s);
	assert_int_equal(splits_init(&s, SPLIT_DYNAMIC, 10, 0, 1, NULL, 0),
			 -EINVAL);
	splits_fini(&s);
	/* nothing is split */
	assert_int_equal(splits_init(&s, SPLIT_OFF, UINT32_MAX, 1, 1, NULL, 0),
			 0);
	splits_fini(&s);
}

/* --- workers -------------------------------------------------------------- */

static void a_silent_worker_is_gone(void **state)
{
	struct registry *r = calloc(1, sizeof(*r));
	uint64_t old;

	(void)state;
	r->timeout_ns = 100;
	assert_int_equal(registry_due(r), UINT64_MAX);
	assert_int_equal(registry_add(r, 1, "a:1", 0, &old), 0);
	assert_int_equal(registry_add(r, 2, "b:1", 50, &old), 0);
	assert_int_equal(old, 0);
	assert_int_equal(registry_due(r), 100);
	assert_int_equal(registry_expired(r, 99), 0);
	registry_beat(r, 1, 90);
	assert_int_equal(registry_expired(r, 149), 0);
	assert_int_equal(registry_expired(r, 150), 2);
	registry_remove(r, 2);
	assert_null(registry_find(r, 2));
	assert_int_equal(registry_expired(r, 190), 1);
	registry_fini(r);
	free(r);
}

static void a_process_at_the_same_address_is_another_worker(void **state)
{
	struct registry *r = calloc(1, sizeof(*r));
	uint64_t old;

	(void)state;
	r->timeout_ns = 100;
	registry_add(r, 1, "a:1", 0, &old);
	assert_int_equal(registry_add(r, 1, "a:1", 0, &old), 0);
	assert_int_equal(old, 0);
	assert_int_equal(registry_add(r, 2, "a:1", 0, &old), 0);
	assert_int_equal(old, 1);
	registry_remove(r, old);
	assert_int_equal(r->n, 1);
	/* one that is expected has no address yet */
	assert_int_equal(registry_expect(r, 3, 500), 0);
	assert_int_equal(registry_add(r, 3, "c:1", 550, &old), 0);
	assert_int_equal(old, 0);
	for (uint64_t i = 10; r->n < REGISTRY_MOST; i++)
		assert_int_equal(registry_expect(r, i, 0), 0);
	assert_int_equal(registry_expect(r, 9, 0), -ENOSPC);
	assert_int_equal(registry_add(r, 9, "d:1", 0, &old), -ENOSPC);
	registry_fini(r);
	free(r);
}

/* --- the journal ---------------------------------------------------------- */

static const struct msg events[] = {
	{ .type = PREPD_JOB,
	  .job = 4,
	  .role = SPLIT_DYNAMIC,
	  .count = 2,
	  .split = 3,
	  .rest = "definition",
	  .n_rest = 10 },
	{ .type = PREPD_EPOCH, .job = 4, .epoch = 1, .a = 50 },
	{ .type = PREPD_SPLIT, .job = 4, .epoch = 1, .split = 0, .id = 11 },
	{ .type = PREPD_SPLIT, .job = 4, .epoch = 1, .split = 1, .id = 12 },
	{ .type = PREPD_DONE, .job = 4, .epoch = 1, .split = 0 },
	{ .type = PREPD_SPLIT, .job = 4, .epoch = 1, .split = 2, .id = 11 },
	{ .type = PREPD_LOST, .id = 12 },
	{ .type = PREPD_SPLIT, .job = 4, .epoch = 1, .split = 3, .id = 12 },
};

static void check_book(const struct book *b)
{
	const struct job *j = book_find(b, 4);
	const uint8_t want[] = { SPLIT_DONE, SPLIT_LOST, SPLIT_ASSIGNED,
				 SPLIT_ASSIGNED, SPLIT_FREE };

	assert_int_equal(b->n, 1);
	assert_non_null(j);
	assert_string_equal(j->definition, "definition");
	assert_int_equal(j->epoch, 1);
	assert_int_equal(j->splits.n, 9);
	assert_memory_equal(j->splits.state, want, sizeof(want));
	assert_int_equal(j->splits.owner[2], 11);
	assert_int_equal(j->splits.owner[3], 12);
	assert_int_equal(j->splits.n_lost, 1);
	assert_int_equal(j->splits.n_done, 1);
}

/* Number 0 is none: the dispatcher would wait for it in vain. */
static void nobody_is_no_worker(void **state)
{
	const struct msg job = { .type = PREPD_JOB,
				 .job = 5,
				 .role = SPLIT_STATIC,
				 .count = 2,
				 .split = 3 };
	const unsigned char slots[16] = { 7 };
	struct msg split = events[2], epoch = events[1];
	struct book b = { 0 };

	(void)state;
	assert_int_equal(book_apply(&b, &events[0]), 0);
	assert_int_equal(book_apply(&b, &events[1]), 0);
	split.id = 0;
	assert_int_equal(book_apply(&b, &split), -EPROTO);
	assert_int_equal(book_apply(&b, &job), 0);
	epoch.job = 5;
	epoch.rest = slots;
	epoch.n_rest = 16;
	assert_int_equal(book_apply(&b, &epoch), -EPROTO);
	epoch.n_rest = 8;
	assert_int_equal(book_apply(&b, &epoch), 0);
	book_fini(&b);
}

static int copy_event(void *ctx, const struct msg *event)
{
	return book_apply(ctx, event);
}

/* How trainers share a job, and whose turn it is in its rounds. */
static void a_shared_job_is_kept(void **state)
{
	const unsigned char slots[24] = { [0] = 7, [8] = 9, [16] = 8 };
	struct msg job = { .type = PREPD_JOB,
			   .job = 5,
			   .role = SPLIT_OFF,
			   .count = 2,
			   .split = 3,
			   .share = SHARE_ROUNDS,
			   .a = 64,
			   .b = 4,
			   .rest = "definition",
			   .n_rest = 10 };
	const struct msg epoch = { .type = PREPD_EPOCH,
				   .job = 5,
				   .epoch = 1,
				   .a = 50,
				   .rest = slots,
				   .n_rest = sizeof(slots) };
	struct book b = { 0 }, copy = { 0 };
	const struct job *j;

	(void)state;
	assert_int_equal(book_apply(&b, &job), 0);
	assert_int_equal(book_apply(&b, &epoch), 0);
	assert_int_equal(book_dump(&b, copy_event, &copy), 0);
	j = book_find(&copy, 5);
	assert_true(book_job_equals(j, &job));
	assert_int_equal(j->splits.n_slots, 3);
	assert_int_equal(j->splits.slot[1], 9);
	assert_false(splits_has(&j->splits, 9));
	job.b = 5;
	assert_false(book_job_equals(j, &job));
	job.b = 4;
	job.n_rest--;
	assert_false(book_job_equals(j, &job));
	book_fini(&b);
	book_fini(&copy);
}

static void write_journal(const char *path)
{
	struct journal j;
	struct book b = { 0 };
	struct err err = { 0 };

	assert_int_equal(journal_open(&j, path, &b, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		assert_int_equal(book_apply(&b, &events[i]), 0);
		assert_int_equal(journal_put(&j, &events[i]), 0);
	}
	assert_int_equal(journal_sync(&j), 0);
	check_book(&b);
	journal_close(&j);
	book_fini(&b);
}

static int open_journal(const char *path, struct book *b, uint64_t *ret_cut)
{
	struct journal j;
	struct err err = { 0 };
	int r = journal_open(&j, path, b, &err);

	*ret_cut = j.cut;
	journal_close(&j);
	return r;
}

static void a_journal_leads_to_the_same_book(void **state)
{
	struct book b = { 0 };
	uint64_t cut;

	(void)state;
	write_journal("journal");
	/* twice: it is rewritten when it is opened */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(open_journal("journal", &b, &cut), 0);
		assert_int_equal(cut, 0);
		check_book(&b);
		book_fini(&b);
	}
	unlink("journal");
}

static void a_journal_has_one_dispatcher(void **state)
{
	struct journal j;
	struct book b = { 0 }, other = { 0 };
	struct err err = { 0 };
	uint64_t cut;

	(void)state;
	assert_int_equal(journal_open(&j, "journal", &b, &err), 0);
	assert_int_equal(open_journal("journal", &other, &cut), -EBUSY);
	journal_close(&j);
	assert_int_equal(open_journal("journal", &other, &cut), 0);
	unlink("journal");
}

/* Killed at any byte: what is whole counts. */
static void an_incomplete_tail_is_cut_off(void **state)
{
	struct book b = { 0 };
	struct stat st;
	uint64_t cut;

	(void)state;
	write_journal("journal");
	assert_int_equal(stat("journal", &st), 0);
	unlink("journal");
	for (off_t n = 0; n < st.st_size; n += 23) {
		write_journal("journal");
		assert_int_equal(truncate("journal", n), 0);
		assert_int_equal(open_journal("journal", &b, &cut), 0);
		assert_true(b.n <= 1);
		book_fini(&b);
		unlink("journal");
	}
	write_journal("journal");
	assert_int_equal(truncate("journal", st.st_size - PREPD_HEAD), 0);
	/* zeros of a machine that stopped */
	assert_int_equal(truncate("journal", st.st_size + 100), 0);
	assert_int_equal(open_journal("journal", &b, &cut), 0);
	assert_true(cut > 0);
	assert_int_equal(b.job[0]->splits.state[3], SPLIT_FREE);
	assert_int_equal(b.job[0]->splits.state[2], SPLIT_ASSIGNED);
	book_fini(&b);
	unlink("journal");
}

static void damage_is_an_error(void **state)
{
	struct book b = { 0 };
	unsigned char byte;
	uint64_t cut;
	int fd;

	(void)state;
	/* in the middle, and in a length */
	for (off_t at = JOURNAL_START; at < JOURNAL_START + 40; at += 3) {
		write_journal("journal");
		fd = open("journal", O_RDWR);
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= 0xa5;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		close(fd);
		assert_int_equal(open_journal("journal", &b, &cut), -EBADMSG);
		book_fini(&b);
		unlink("journal");
	}
	fd = open("journal", O_RDWR | O_CREAT, 0600);
	assert_int_equal(write(fd, "not a journal at all", 20), 20);
	close(fd);
	assert_int_equal(open_journal("journal", &b, &cut), -EBADMSG);
	unlink("journal");
}

/* Of its records: the file's own has not changed. */
static void a_journal_of_another_version_says_so(void **state)
{
	unsigned char record[PREPD_HEAD], start[16];
	struct book b = { 0 };
	struct err err = { 0 };
	struct journal j;
	int fd;

	(void)state;
	write_journal("journal");
	fd = open("journal", O_RDWR);
	/* one record, of the version before */
	msg_encode(&events[1], record);
	record[2]--;
	wire_put(start, PREPD_HEAD, 4);
	wire_put(start + 4, ~(uint32_t)PREPD_HEAD, 4);
	wire_put(start + 8,
		 XXH3_64bits_withSeed(record, PREPD_HEAD, PREPD_HEAD), 8);
	assert_int_equal(ftruncate(fd, JOURNAL_START), 0);
	assert_int_equal(pwrite(fd, start, 16, JOURNAL_START), 16);
	assert_int_equal(pwrite(fd, record, PREPD_HEAD, JOURNAL_START + 16),
			 PREPD_HEAD);
	close(fd);
	assert_int_equal(journal_open(&j, "journal", &b, &err),
			 -EPROTONOSUPPORT);
	assert_non_null(strstr(err.text, "different version"));
	journal_close(&j);
	book_fini(&b);
	unlink("journal");
}

/* --- what a trainer has --------------------------------------------------- */

enum { SAMPLES = 23, BATCH = 4, PER_SPLIT = 2 };

struct made {
	unsigned char bytes[1024];
	struct msg m;
};

/* Batch `c` of the order, in reverse. */
static void make_batch(struct made *ret, const uint32_t *order, uint64_t c)
{
	uint32_t n = (uint32_t)MIN(BATCH, SAMPLES - c * BATCH);
	size_t size = msg_batch_head(n) + n * 3;
	struct msg m = { .type = PREPD_BATCH,
			 .epoch = 5,
			 .split = (uint32_t)(c / PER_SPLIT),
			 .c = c,
			 .count = n };

	memset(ret, 0, sizeof(*ret));
	msg_encode(&m, ret->bytes);
	for (uint32_t i = 0; i < n; i++) {
		const struct msg_sample s = { order[c * BATCH + n - 1 - i], 0,
					      3, i % 2 };

		msg_batch_put(ret->bytes + PREPD_HEAD, i, &s);
	}
	assert_int_equal(msg_decode(ret->bytes, size, &ret->m), 0);
	for (uint32_t i = 0; i < n; i++) {
		struct msg_sample s = msg_batch_sample(&ret->m, i);

		assert_true(s.bytes == 3 && s.bypassed == i % 2);
	}
	assert_int_equal(msg_decode(ret->bytes, size - 1, &m), -EPROTO);
	assert_int_equal(msg_decode(ret->bytes, size + 1, &m), -EPROTO);
}

static void begin_sweep(struct sweep *s, uint32_t order[SAMPLES])
{
	for (uint32_t i = 0; i < SAMPLES; i++)
		order[i] = (i * 7 + 3) % SAMPLES;
	assert_int_equal(sweep_init(s, SPLIT_DYNAMIC, 5, order, SAMPLES,
				    SAMPLES, BATCH, PER_SPLIT),
			 0);
}

static void each_batch_counts_once(void **state)
{
	uint32_t order[SAMPLES];
	struct sweep s;
	struct made b;

	(void)state;
	begin_sweep(&s, order);
	for (uint64_t c = 6; c-- > 0;) {
		make_batch(&b, order, c);
		assert_int_equal(sweep_batch(&s, &b.m), 0);
		assert_int_equal(sweep_batch(&s, &b.m), -EEXIST);
	}
	assert_int_equal(s.left, 0);
	assert_int_equal(s.n_done, 3);
	assert_int_equal(s.done[0], 2);
	assert_int_equal(sweep_lose(&s, 1), 0);
	sweep_fini(&s);
}

static void a_batch_of_other_samples_is_refused(void **state)
{
	uint32_t order[SAMPLES], other[SAMPLES];
	struct sweep s;
	struct made b;

	(void)state;
	begin_sweep(&s, order);
	memcpy(other, order, sizeof(other));
	other[BATCH + 1] = order[0];
	make_batch(&b, other, 1);
	assert_int_equal(sweep_batch(&s, &b.m), -EPROTO);
	other[BATCH + 1] = SAMPLES;
	make_batch(&b, other, 1);
	assert_int_equal(sweep_batch(&s, &b.m), -EPROTO);
	make_batch(&b, order, 1);
	b.m.c = 2;
	b.m.split = 1;
	assert_int_equal(sweep_batch(&s, &b.m), -EPROTO);
	b.m.c = 1;
	assert_int_equal(sweep_batch(&s, &b.m), -EPROTO);
	b.m.split = 0;
	b.m.c = UINT64_MAX / 2;
	assert_int_equal(sweep_batch(&s, &b.m), -EPROTO);
	assert_int_equal(s.left, SAMPLES);
	sweep_fini(&s);
}

static void lost_samples_are_counted(void **state)
{
	uint32_t order[SAMPLES];
	struct sweep s;
	struct made b;

	(void)state;
	begin_sweep(&s, order);
	/* the last split has 4 + 3 samples; the 3 are there */
	make_batch(&b, order, 5);
	assert_int_equal(sweep_batch(&s, &b.m), 0);
	assert_int_equal(sweep_lose(&s, 2), 4);
	assert_int_equal(sweep_lose(&s, 2), 0);
	make_batch(&b, order, 4);
	assert_int_equal(sweep_batch(&s, &b.m), -ESTALE);
	make_batch(&b, order, 0);
	assert_int_equal(sweep_batch(&s, &b.m), 0);
	assert_int_equal(sweep_lose(&s, 0), 4);
	assert_int_equal(sweep_lose(&s, 99), 0);
	assert_int_equal(s.left, 8);
	assert_int_equal(s.n_lost, 8);
	sweep_fini(&s);
}

static void what_is_cut_off_is_done(void **state)
{
	uint32_t order[SAMPLES];
	struct sweep s;
	struct made b;

	(void)state;
	/* up to the end of a split; the others are no longer to be made */
	begin_sweep(&s, order);
	make_batch(&b, order, 0);
	assert_int_equal(sweep_batch(&s, &b.m), 0);
	assert_int_equal(sweep_cut(&s, 3), 8);
	assert_int_equal(s.left, 4);
	assert_int_equal(s.n_done, 2);
	assert_int_equal(s.done[0], 1);
	assert_int_equal(s.done[1], 2);
	make_batch(&b, order, 2);
	assert_int_equal(sweep_batch(&s, &b.m), -ESTALE);
	assert_int_equal(sweep_lose(&s, 1), 0);
	make_batch(&b, order, 1);
	assert_int_equal(sweep_batch(&s, &b.m), 0);
	assert_int_equal(s.left, 0);
	assert_int_equal(s.n_done, 3);
	sweep_fini(&s);
	/* what came stays, and with it what is before */
	begin_sweep(&s, order);
	make_batch(&b, order, 5);
	assert_int_equal(sweep_batch(&s, &b.m), 0);
	assert_int_equal(sweep_cut(&s, 0), SAMPLES);
	assert_int_equal(s.left, SAMPLES - 3);
	sweep_fini(&s);
	/* what was lost stays lost */
	begin_sweep(&s, order);
	assert_int_equal(sweep_lose(&s, 1), 8);
	assert_int_equal(sweep_cut(&s, 0), 16);
	assert_int_equal(s.left, 8);
	assert_int_equal(s.n_lost, 8);
	sweep_fini(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_split_is_assigned_once),
		cmocka_unit_test(static_splits_stay_with_their_worker),
		cmocka_unit_test(too_many_splits_are_refused),
		cmocka_unit_test(a_silent_worker_is_gone),
		cmocka_unit_test(
			a_process_at_the_same_address_is_another_worker),
		cmocka_unit_test(nobody_is_no_worker),
		cmocka_unit_test(a_shared_job_is_kept),
		cmocka_unit_test(a_journal_leads_to_the_same_book),
		cmocka_unit_test(a_journal_has_one_dispatcher),
		cmocka_unit_test(an_incomplete_tail_is_cut_off),
		cmocka_unit_test(damage_is_an_error),
		cmocka_unit_test(a_journal_of_another_version_says_so),
		cmocka_unit_test(each_batch_counts_once),
		cmocka_unit_test(a_batch_of_other_samples_is_refused),
		cmocka_unit_test(what_is_cut_off_is_done),
		cmocka_unit_test(lost_samples_are_counted),
	};
	char dir[] = "/tmp/gpemu-service-XXXXXX";
	int status;

	if (!mkdtemp(dir) || chdir(dir) < 0)
		return 1;
	status = cmocka_run_group_tests(tests, NULL, NULL);
	if (chdir("/") == 0)
		rmdir(dir);
	return status;
}
