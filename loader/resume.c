/* SPDX-License-Identifier: MIT */
#include "loader/resume.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "common/json.h"
#include "common/units.h"
#include "common/util.h"
#include "loader/train_node.h"

/* --- the same run? -------------------------------------------------------- */

static json_t *hex(uint64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "%016" PRIx64, v);
	return json_string(text);
}

/* What two parts of a run have in common, by option; NULL: no memory. */
static json_t *identity(const struct train_options *o, const struct schedule *s)
{
	return json_pack(
		"{s:o, s:s, s:I, s:I, s:b, s:I, s:s, s:I, s:I, s:o, s:I, "
		"s:I}",
		"dataset", hex(schedule_fingerprint(s)), "--model", o->model,
		"--batch", (json_int_t)o->batch, "--gpus", (json_int_t)o->gpus,
		"--drop-last", o->drop_last, "--seed",
		(json_int_t)o->common.seed, "--order",
		s->replay ? "replayed" : s->c.order->plugin.name,
		"--order-window", (json_int_t)o->order_window, "--order-page",
		(json_int_t)o->order_page, "--replay-order",
		s->replay ? hex(order_text_hash(s->replay)) : json_null(),
		"--rank", (json_int_t)o->rank, "--world-size",
		(json_int_t)o->world_size);
}

static int check_same_run(const char *name, const json_t *theirs, json_t *ours,
			  struct err *err)
{
	const json_t *value;
	const char *key;

	json_object_foreach (ours, key, value) {
		const json_t *other = json_object_get(theirs, key);
		_cleanup_free_ char *a = NULL, *b = NULL;

		if (other && json_equal(other, value))
			continue;
		if (!strcmp(key, "dataset"))
			return err_set(err, -EINVAL,
				       "%s was written by a run on another "
				       "dataset, or with other groups",
				       name);
		a = other ? json_dumps(other, JSON_ENCODE_ANY) : NULL;
		b = json_dumps(value, JSON_ENCODE_ANY);
		return err_set(err, -EINVAL,
			       "%s was written by a run with %s %s, and this "
			       "one has %s",
			       name, key, a ? a : "unknown", b ? b : "another");
	}
	return 0;
}

/* --- finding the point ---------------------------------------------------- */

/* Can a run stand there? Then as many samples of its epoch are left as its
 * steps left. */
static bool is_possible(const struct resume *r,
			const struct checkpoint_point *p,
			const uint8_t *visited)
{
	uint64_t n = 0;

	for (size_t i = 0; i < r->visited.n_bytes; i++)
		n += (unsigned)__builtin_popcount(visited[i]);
	return p->epoch_step < r->steps &&
	       n <= p->epoch_step * train_step_samples(r->o);
}

/* The point is that of the file. */
static int go_on_from(struct resume *r, const char *name, json_t *ours,
		      struct err *err)
{
	struct checkpoint_point p = { 0 };
	_cleanup_free_ uint8_t *visited = NULL;
	struct checkpoint_head head;
	uint64_t wall = tick_wall();
	int e = checkpoint_read(r->dirfd, name, &head, &p, &visited);

	if (e < 0)
		return e;
	wall = tick_wall() - wall;
	e = check_same_run(name, p.run, ours, err);
	json_decref(p.run);
	p.run = NULL;
	if (e == 0 && (head.visited_bytes != r->visited.n_bytes ||
		       !is_possible(r, &p, visited)))
		e = -EPROTO;
	if (e < 0)
		return e;
	if (visited && r->visited.bits)
		memcpy(r->visited.bits, visited, r->visited.n_bytes);
	p.run = r->point.run;
	r->point = p;
	r->from = json_pack("{s:s, s:I, s:I, s:I, s:I, s:f}", "checkpoint",
			    name, "step", (json_int_t)p.step, "epoch",
			    (json_int_t)p.epoch, "epoch_step",
			    (json_int_t)p.epoch_step, "bytes",
			    (json_int_t)(sizeof(head) + head.visited_bytes +
					 head.state_bytes),
			    "read_wall_seconds", (double)wall / NS_PER_S);
	return r->from ? 0 : -ENOMEM;
}

/* From the newest that is whole. */
static int find_point(struct resume *r, struct err *err)
{
	const char *dir = r->o->checkpoint_dir;
	_cleanup_free_ uint64_t *steps = NULL;
	char name[CHECKPOINT_NAME];
	size_t n = 0;
	int e = checkpoint_list(r->dirfd, &steps, &n);

	if (e == 0 && n == 0) {
		err_set(&r->notice, 0,
			"%s: no checkpoint to resume from; the run begins at "
			"its beginning",
			dir);
		return 0;
	}
	for (size_t i = n; i-- > 0;) {
		checkpoint_name(steps[i], name);
		e = go_on_from(r, name, r->point.run, err);
		if (e != -EBADMSG && e != -EPROTO)
			break;
		err_set(&r->notice, 0,
			"%s/%s: damaged; an older checkpoint is used", dir,
			name);
	}
	if (e == -EBADMSG || e == -EPROTO)
		return err_set(err, e, "%s: every checkpoint is damaged", dir);
	if (e < 0) {
		err_set(err, e, "%s: %s", name, strerror(-e));
		err_prefix(err, "%s", dir);
	}
	return e;
}

/* Is there none? Else those of two runs would get mixed up. */
static int check_empty(struct resume *r, struct err *err)
{
	_cleanup_free_ uint64_t *steps = NULL;
	size_t n = 0;
	int e = checkpoint_list(r->dirfd, &steps, &n);

	if (e == 0 && n == 0)
		return 0;
	if (e < 0)
		return err_set(err, e, "%s: %s", r->o->checkpoint_dir,
			       strerror(-e));
	return err_set(err, -EEXIST,
		       "%s has checkpoints of another run: go on from them "
		       "with --resume, or name an empty folder",
		       r->o->checkpoint_dir);
}

static int open_dir(struct resume *r, struct err *err)
{
	const char *dir = r->o->checkpoint_dir;

	if (mkdir(dir, 0777) < 0 && errno != EEXIST)
		return err_set(err, -errno, "%s: %s", dir, strerror(errno));
	r->dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->dirfd < 0)
		return err_set(err, -errno, "%s: %s", dir, strerror(errno));
	if (flock(r->dirfd, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, errno == EWOULDBLOCK ? -EBUSY : -errno,
			       "%s: another run has its checkpoints there",
			       dir);
	return 0;
}

int resume_open(struct resume *r, const struct train_options *o,
		const struct schedule *schedule, uint64_t steps,
		struct err *err)
{
	int e;

	*r = (struct resume){ .o = o,
			      .dirfd = -1,
			      .steps = steps,
			      .point = { .log_bytes = -1 } };
	e = visited_init(&r->visited, schedule->c.data, err);
	if (e < 0)
		return e;
	if (o->checkpoint_dir) {
		r->point.run = identity(o, schedule);
		if (!r->point.run)
			return err_set(err, -ENOMEM, "out of memory");
		e = open_dir(r, err);
		if (e == 0)
			e = o->resume ? find_point(r, err)
				      : check_empty(r, err);
	}
	if (e == 0 && o->dump_samples)
		e = visited_log(&r->visited, o->dump_samples,
				r->point.log_bytes, err);
	return e;
}

void resume_close(struct resume *r)
{
	checkpoint_free(r->checkpoint);
	visited_fini(&r->visited);
	json_decref(r->point.run);
	json_decref(r->from);
	if (r->dirfd >= 0)
		close(r->dirfd);
	*r = (struct resume){ .dirfd = -1 };
}

/* --- going on ------------------------------------------------------------- */

/* The state leaves the device at the speed at which the largest batch that
 * was measured enters it. */
static uint64_t copy_ns(const struct gpu_profile *gpu,
			const struct gpu_model *model, bool pinned,
			uint64_t bytes)
{
	struct gpu_cost c;
	double ns;

	gpu_profile_cost(gpu, model, model->last_batch, &c);
	ns = (double)(pinned ? c.transfer_pinned_ns : c.transfer_pageable_ns);
	ns /= (double)(model->last_batch * gpu->sample_bytes);
	return (uint64_t)(ns * (double)bytes);
}

int resume_start(struct resume *r, struct tick *tick,
		 const struct gpu_profile *gpu, const struct gpu_model *model,
		 struct err *err)
{
	const struct train_options *o = r->o;
	/* weights and momentum of SGD, in fp32 */
	uint64_t bytes = o->checkpoint_size ? o->checkpoint_size
					    : 2 * 4 * model->parameters;
	struct checkpoint_config c = {
		.dir = o->checkpoint_dir,
		.dirfd = r->dirfd,
		.async = !strcmp(o->checkpoint, "async"),
		.state_bytes = bytes,
		.visited_bytes = r->visited.n_bytes,
		.keep = o->checkpoint_keep,
		.tick = tick,
		.copy_ns = copy_ns(gpu, model, o->pin, bytes),
		.seed = o->common.seed,
		.log_fd = r->visited.log ? fileno(r->visited.log) : -1,
	};

	r->state_bytes = bytes;
	if (!o->checkpoint_every)
		return 0;
	return checkpoint_new(&c, &r->checkpoint, err);
}

void resume_take(struct resume *r, const struct delivery *d, struct account *a)
{
	double bits = visited_class_bits(&r->visited, d);

	a->distinct_samples +=
		visited_add(&r->visited, r->point.epoch, r->point.step, d);
	if (bits < 0)
		return;
	a->class_bits += bits;
	a->n_class_bits++;
}

void resume_next_epoch(struct resume *r)
{
	r->point.epoch++;
	r->point.epoch_step = 0;
	visited_clear(&r->visited);
}

bool resume_step(struct resume *r)
{
	r->point.step++;
	if (++r->point.epoch_step == r->steps)
		resume_next_epoch(r);
	return r->checkpoint && r->point.step % r->o->checkpoint_every == 0;
}

int resume_save(struct resume *r, struct err *err)
{
	int e = visited_flush(&r->visited, &r->point.log_bytes, err);

	if (e == 0)
		e = checkpoint_save(r->checkpoint, &r->point, r->visited.bits,
				    err);
	if (e == 0)
		r->last_step = r->point.step;
	return e;
}

int resume_end(struct resume *r, struct tick *tick, struct err *err)
{
	uint64_t start = tick_now(tick);
	int e = r->checkpoint ? checkpoint_drain(r->checkpoint, err) : 0;
	int flushed = visited_flush(&r->visited, &r->point.log_bytes, err);

	r->tail_ns = r->checkpoint ? tick_now(tick) - start : 0;
	return e < 0 ? e : flushed;
}

struct checkpoint_stats resume_stats(const struct resume *r)
{
	return r->checkpoint ? checkpoint_stats(r->checkpoint)
			     : (struct checkpoint_stats){ 0 };
}

json_t *resume_json(const struct resume *r)
{
	struct checkpoint_stats s = resume_stats(r);
	double wall = (double)s.write_wall_ns / NS_PER_S;
	double mib = (double)s.bytes / (double)MIB;

	if (!r->checkpoint)
		return json_null();
	return json_pack("{s:s, s:o, s:I, s:I, s:I, s:I, s:f, s:f, s:f}",
			 "mode", r->o->checkpoint, "dir",
			 json_bytes(r->o->checkpoint_dir), "state_bytes",
			 (json_int_t)r->state_bytes, "written", (json_int_t)s.n,
			 "bytes", (json_int_t)s.bytes, "last_step",
			 (json_int_t)r->last_step, "write_wall_seconds", wall,
			 "write_mib_per_wall_s", wall > 0 ? mib / wall : 0.,
			 "tail_s", (double)r->tail_ns / NS_PER_S);
}
