/* SPDX-License-Identifier: MIT */
/* Checkpoints as files: whole, damaged, pruned; and the visited samples. */
#include "loader/options/train_table.h"
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "common/rng.h"
#include "common/util.h"
#include "loader/checkpoint/checkpoint.h"
#include "loader/train/resume.h"
#include "loader/checkpoint/visited.h"

enum { STATE = 10000, VISITED = 13, FILE_BYTES = 4096 + VISITED + STATE };

struct fixture {
	char dir[64];
	int dirfd;
	struct tick *tick;
	json_t *run;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	strcpy(f->dir, "/tmp/gpemu-checkpoint-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->dirfd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->tick = tick_new(1e-3, 0);
	f->run = json_pack("{s:s}", "--model", "resnet50");
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char name[CHECKPOINT_NAME];
	uint64_t *steps = NULL;
	size_t n = 0;

	checkpoint_list(f->dirfd, &steps, &n);
	for (size_t i = 0; i < n; i++) {
		checkpoint_name(steps[i], name);
		unlinkat(f->dirfd, name, 0);
	}
	free(steps);
	close(f->dirfd);
	assert_int_equal(rmdir(f->dir), 0);
	tick_free(f->tick);
	json_decref(f->run);
	free(f);
	return 0;
}

static struct checkpoint *new_checkpoint(const struct fixture *f, bool async,
					 uint64_t keep)
{
	struct checkpoint_config c = { .dir = f->dir,
				       .dirfd = f->dirfd,
				       .async = async,
				       .state_bytes = STATE,
				       .scale = 1,
				       .visited_bytes = VISITED,
				       .keep = keep,
				       .tick = f->tick,
				       .log_fd = -1 };
	struct checkpoint *ret;

	assert_int_equal(checkpoint_new(&c, &ret, NULL), 0);
	return ret;
}

static void save(struct fixture *f, struct checkpoint *c, uint64_t step)
{
	struct checkpoint_point p = { .step = step,
				      .epoch = step / 10,
				      .epoch_step = step % 10,
				      .log_bytes = (int64_t)step - 1,
				      .run = f->run };
	struct err err = { 0 };
	uint8_t visited[VISITED];

	memset(visited, (int)step, sizeof(visited));
	if (checkpoint_save(c, &p, visited, &err) < 0)
		fail_msg("%s", err.text);
	/* the saved state is not read again */
	memset(visited, 0xff, sizeof(visited));
}

static int read_back(const struct fixture *f, uint64_t step,
		     struct checkpoint_point *p, uint8_t **visited)
{
	struct checkpoint_head head;
	char name[CHECKPOINT_NAME];

	checkpoint_name(step, name);
	return checkpoint_read(f->dirfd, name, 1, &head, p, visited);
}

static void what_was_saved_is_read(void **state)
{
	struct fixture *f = *state;

	for (int async = 0; async < 2; async++) {
		struct checkpoint *c = new_checkpoint(f, async, 3);
		struct checkpoint_stats s;
		uint64_t *steps;
		size_t n;

		for (uint64_t step = 1; step <= 40; step++)
			save(f, c, step);
		assert_int_equal(checkpoint_drain(c, NULL), 0);
		s = checkpoint_stats(c);
		assert_int_equal(s.n, 40);
		assert_int_equal(s.bytes, 40 * FILE_BYTES);
		assert_true(s.write_ns > 0 && s.write_wall_ns > 0);
		checkpoint_free(c);
		assert_int_equal(checkpoint_list(f->dirfd, &steps, &n), 0);
		assert_int_equal(n, 3);
		for (size_t i = 0; i < n; i++) {
			struct checkpoint_point p;
			uint8_t *visited;

			assert_int_equal(steps[i], 38 + i);
			assert_int_equal(read_back(f, steps[i], &p, &visited),
					 0);
			assert_int_equal(p.step, steps[i]);
			assert_int_equal(p.epoch, steps[i] / 10);
			assert_int_equal(p.epoch_step, steps[i] % 10);
			assert_int_equal(p.log_bytes, steps[i] - 1);
			assert_true(json_equal(p.run, f->run));
			for (int k = 0; k < VISITED; k++)
				assert_int_equal(visited[k], steps[i]);
			json_decref(p.run);
			free(visited);
		}
		free(steps);
	}
}

/* Every byte changed, every length but the right one. */
static void what_is_damaged_is_not_used(void **state)
{
	struct fixture *f = *state;
	struct checkpoint *c = new_checkpoint(f, false, 0);
	struct checkpoint_point p;
	char name[CHECKPOINT_NAME], byte;
	uint8_t *visited;
	int fd;

	save(f, c, 7);
	checkpoint_free(c);
	checkpoint_name(7, name);
	fd = openat(f->dirfd, name, O_RDWR | O_CLOEXEC);
	for (off_t at = 0; at < FILE_BYTES; at += at < 4200 ? 1 : 97) {
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= 1 << at % 8;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		assert_int_equal(read_back(f, 7, &p, &visited), -EBADMSG);
		byte ^= 1 << at % 8;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	}
	assert_int_equal(ftruncate(fd, FILE_BYTES + 1), 0);
	assert_int_equal(read_back(f, 7, &p, &visited), -EBADMSG);
	for (off_t at = FILE_BYTES - 1; at >= 0; at -= 101) {
		assert_int_equal(ftruncate(fd, at), 0);
		assert_int_equal(read_back(f, 7, &p, &visited), -EBADMSG);
	}
	close(fd);
	assert_int_equal(read_back(f, 8, &p, &visited), -ENOENT);
}

/* A header with the right hash, but other contents. */
static void heads_of_another_making(void **state)
{
	static const char *const texts[] = {
		"",
		"{",
		"[]",
		"{}",
		"{\"step\":1}",
		"{\"step\":-1,\"epoch\":0,\"epoch_step\":0,\"log_bytes\":0,"
		"\"run\":{}}",
		"{\"step\":1,\"epoch\":0,\"epoch_step\":0,\"log_bytes\":0,"
		"\"run\":1}",
		"{\"step\":\"1\",\"epoch\":0,\"epoch_step\":0,"
		"\"log_bytes\":0,\"run\":{}}",
	};
	struct checkpoint_head h = { .magic = CHECKPOINT_MAGIC };
	struct rng rng = rng_stream(1, "heads", 0);
	struct checkpoint_point p;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		memset(h.json, 0, sizeof(h.json));
		strcpy(h.json, texts[i]);
		h.head_hash = checkpoint_head_hash(&h);
		assert_int_equal(checkpoint_head_parse(&h, &p), -EPROTO);
	}
	for (int i = 0; i < 200; i++) {
		rng_bytes_at(rng_u64(&rng), 0, h.json, sizeof(h.json));
		h.head_hash = checkpoint_head_hash(&h);
		assert_int_equal(checkpoint_head_parse(&h, &p), -EPROTO);
	}
}

static void names_that_are_none_are_passed_over(void **state)
{
	static const char *const names[] = { "checkpoint.tmp",
					     "checkpoint-1.gpemu",
					     "checkpoint-.gpemu",
					     "checkpoint-0000000001.gpemu~" };
	struct fixture *f = *state;
	uint64_t *steps;
	size_t n;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		close(openat(f->dirfd, names[i], O_CREAT | O_WRONLY | O_CLOEXEC,
			     0600));
	assert_int_equal(checkpoint_list(f->dirfd, &steps, &n), 0);
	assert_int_equal(n, 0);
	free(steps);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		unlinkat(f->dirfd, names[i], 0);
}

static void a_failed_write_is_told_once_it_is_known(void **state)
{
	struct fixture *f = *state;
	struct fixture gone = *f;
	struct err err = { 0 };
	struct checkpoint *c;

	gone.dirfd = -1;
	c = new_checkpoint(&gone, true, 1);
	save(&gone, c, 1);
	assert_int_equal(checkpoint_drain(c, &err), -EBADF);
	assert_non_null(strstr(err.text, "cannot write a checkpoint"));
	assert_int_equal(checkpoint_stats(c).n, 0);
	checkpoint_free(c);
}

/* Eight samples of one class; of two; of eight; 6 to 2. */
static void the_classes_of_a_batch_have_an_entropy(void **state)
{
	static const struct {
		uint32_t label[8];
		double bits;
	} batch[] = {
		{ { 7, 7, 7, 7, 7, 7, 7, 7 }, 0 },
		{ { 0, 9, 0, 9, 9, 0, 0, 9 }, 1 },
		{ { 7, 6, 5, 4, 3, 2, 1, 0 }, 3 },
		{ { 1, 1, 0, 1, 1, 1, 0, 1 }, 0.8112781 },
	};
	struct place place[8];
	struct delivery d = { .n = 8, .place = place };

	(void)state;
	for (uint32_t i = 0; i < 8; i++)
		place[i] = (struct place){ .sample = i };
	for (size_t i = 0; i < ARRAY_SIZE(batch); i++) {
		struct dataset data = { .n = 8,
					.n_classes = 10,
					.label = (uint32_t *)batch[i].label };
		struct visited v;

		assert_int_equal(visited_init(&v, &data, false, NULL), 0);
		for (int times = 0; times < 2; times++)
			assert_true(fabs(visited_class_bits(&v, &d) -
					 batch[i].bits) < 1e-6);
		visited_fini(&v);
	}
}

/* One class has none to tell apart; labels that are no classes are not
 * counted. */
static void without_classes_a_batch_has_no_entropy(void **state)
{
	uint32_t label[] = { 0, UINT32_MAX - 1 };
	struct place place[2] = { { .sample = 0 }, { .sample = 1 } };
	struct delivery d = { .n = 2, .place = place };
	struct dataset data = { .n = 2, .n_classes = 1, .label = label };
	struct visited v;

	(void)state;
	assert_int_equal(visited_init(&v, &data, false, NULL), 0);
	assert_true(visited_class_bits(&v, &d) == 0);
	visited_fini(&v);
	data.n_classes = UINT32_MAX;
	assert_int_equal(visited_init(&v, &data, false, NULL), 0);
	assert_true(visited_class_bits(&v, &d) < 0);
	visited_fini(&v);
	assert_int_equal(visited_init(&v, NULL, false, NULL), 0);
	assert_true(visited_class_bits(&v, &d) < 0);
	visited_fini(&v);
}

static void visited_samples_are_left_out(void **state)
{
	enum { N = 21 };
	struct dataset data = { .n = N };
	struct place place[3] = { { .sample = 20 },
				  { .sample = 0 },
				  { .sample = 8 } };
	struct delivery d = { .n = 3, .place = place };
	uint32_t order[N], n;
	struct visited v;

	(void)state;
	assert_int_equal(visited_init(&v, &data, false, NULL), 0);
	for (uint32_t i = 0; i < N; i++)
		order[i] = N - 1 - i;
	assert_int_equal(visited_filter(&v, order, N), N);
	assert_int_equal(visited_add(&v, 0, 0, &d), d.n);
	assert_int_equal(visited_add(&v, 0, 0, &d), 0);
	n = (uint32_t)visited_filter(&v, order, N);
	assert_int_equal(n, N - 3);
	for (uint32_t i = 0, sample = N - 1; i < n; i++, sample--) {
		while (sample == 20 || sample == 8)
			sample--;
		assert_int_equal(order[i], sample);
	}
	visited_clear(&v);
	assert_int_equal(visited_filter(&v, order, n), n);
	visited_fini(&v);
}

/* Of an order that repeats samples, as many visits as were made are left out:
 * the first ones of each. */
static void visits_are_counted_where_samples_repeat(void **state)
{
	struct dataset data = { .n = 4 };
	struct place place[3] = { { .sample = 1 },
				  { .sample = 1 },
				  { .sample = 3 } };
	struct delivery d = { .n = 3, .place = place };
	static const uint32_t epoch[] = { 1, 2, 1, 3, 1, 1, 3, 0 };
	static const uint32_t left[] = { 2, 1, 1, 3, 0 };
	uint32_t order[ARRAY_SIZE(epoch)];
	struct visited v;

	(void)state;
	assert_int_equal(visited_init(&v, &data, true, NULL), 0);
	assert_int_equal(visited_add(&v, 0, 0, &d), 2); /* 1 and 3 are new */
	assert_int_equal(visited_count(&v, v.bits), 3);
	for (int times = 0; times < 2; times++) {
		memcpy(order, epoch, sizeof(epoch));
		assert_int_equal(visited_filter(&v, order, ARRAY_SIZE(order)),
				 ARRAY_SIZE(left));
		assert_memory_equal(order, left, sizeof(left));
	}
	assert_int_equal(visited_add(&v, 0, 1, &d), 0);
	visited_clear(&v);
	assert_int_equal(visited_count(&v, v.bits), 0);
	visited_fini(&v);
}

extern const struct order_ops order_sequential;

/* A run of 13 steps of 8 samples an epoch, of which it has visited `n`, is
 * saved after `epoch_step` of them. Returns what a run that resumes from there
 * gets. */
static int save_and_resume(struct fixture *f, uint64_t epoch_step, uint32_t n)
{
	enum { STEPS = 13, BATCH = 8, SAMPLES = STEPS * BATCH };
	struct train_options o;
	struct gpu_profile gpu;
	struct place place[SAMPLES] = { { 0 } };
	struct delivery d = { .n = n, .place = place };
	uint64_t path[SAMPLES] = { 0 };
	uint64_t size[SAMPLES] = { 0 };
	char names[] = "a";
	struct dataset data = { .n = SAMPLES };
	struct schedule_config c = { .order = &order_sequential,
				     .in = { .n = SAMPLES },
				     .data = &data,
				     .world = 1 };
	struct order_schedule schedule;
	struct resume r;
	struct err err = { 0 };
	int ret;

	data.names = names;
	data.path = path;
	data.size = size;
	for (uint32_t i = 0; i < n; i++)
		place[i].sample = i;
	train_options_init(&o);
	o.batch = BATCH;
	o.gpus = 1;
	o.checkpoint_dir = strdup(f->dir);
	o.checkpoint_every = 1;
	o.checkpoint_size = 1;
	assert_int_equal(gpu_profile_load("v100", &gpu, &err), 0);
	assert_int_equal(schedule_open(&c, &schedule, &err), 0);
	assert_int_equal(resume_open(&r, &o, &schedule, STEPS, &err), 0);
	assert_int_equal(resume_start(&r, f->tick, &gpu,
				      gpu_profile_model(&gpu, o.model, &err),
				      &err),
			 0);
	visited_add(&r.visited, 0, 0, &d);
	r.point.step = 1;
	r.point.epoch_step = epoch_step;
	assert_int_equal(resume_save(&r, &err), 0);
	resume_close(&r);
	o.resume = true;
	ret = resume_open(&r, &o, &schedule, STEPS, &err);
	if (ret == 0)
		assert_int_equal(r.point.epoch_step, epoch_step);
	resume_close(&r);
	schedule_close(&schedule);
	gpu_profile_free(&gpu);
	conf_free(train_fields, &o);
	assert_int_equal(unlinkat(f->dirfd, "checkpoint-0000000001.gpemu", 0),
			 0);
	return ret;
}

static void a_point_where_no_run_stands_is_damage(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(save_and_resume(f, 0, 0), 0);
	assert_int_equal(save_and_resume(f, 3, 24), 0);
	assert_int_equal(save_and_resume(f, 12, 96), 0);
	assert_int_equal(save_and_resume(f, 3, 25), -EPROTO);
	assert_int_equal(save_and_resume(f, 13, 104), -EPROTO);
	assert_int_equal(save_and_resume(f, 100000, 0), -EPROTO);
	assert_int_equal(save_and_resume(f, UINT64_MAX >> 1, 0), -EPROTO);
}

static void a_piece_is_as_large_to_storage_whatever_the_scale(void **state)
{
	(void)state;
	assert_int_equal(checkpoint_piece(1), CHECKPOINT_PIECE);
	assert_int_equal(checkpoint_piece(.5), CHECKPOINT_PIECE / 2);
	assert_int_equal(checkpoint_piece(.01), 64 << 10);
	assert_int_equal(checkpoint_piece(.0001), CHECKPOINT_BLOCK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_piece_is_as_large_to_storage_whatever_the_scale),
		cmocka_unit_test_setup_teardown(what_was_saved_is_read, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_is_damaged_is_not_used,
						setup, teardown),
		cmocka_unit_test(heads_of_another_making),
		cmocka_unit_test_setup_teardown(
			names_that_are_none_are_passed_over, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_failed_write_is_told_once_it_is_known, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			a_point_where_no_run_stands_is_damage, setup, teardown),
		cmocka_unit_test(the_classes_of_a_batch_have_an_entropy),
		cmocka_unit_test(without_classes_a_batch_has_no_entropy),
		cmocka_unit_test(visited_samples_are_left_out),
		cmocka_unit_test(visits_are_counted_where_samples_repeat),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
