/* SPDX-License-Identifier: MIT */
#include "loader/train/resume.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "common/json.h"
#include "common/units.h"
#include "common/util.h"
#include "loader/dataset/mount.h"
#include "loader/options/train_model.h"
#include "loader/options/train_node.h"

/* rank-R/checkpoint-STEP.gpemu */
enum { FULL_NAME = 32 + CHECKPOINT_NAME };

static bool has_ranks(const struct resume *r)
{
	return r->o->world_size > 1;
}

/* --- comparing runs ------------------------------------------------------- */

static json_t *hex(uint64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "%016" PRIx64, v);
	return json_string(text);
}

json_t *resume_samples(const struct train_options *o,
		       const struct order_schedule *s)
{
	_cleanup_free_ char *order =
		plugin_choice_text(&s->c.order->plugin, s->c.in.options);

	if (!order)
		return NULL;
	return json_pack(
		"{s:o, s:I, s:I, s:b, s:I, s:s, s:o, s:I, s:I}", "dataset",
		hex(schedule_fingerprint(s)), "--batch", (json_int_t)o->batch,
		"--gpus", (json_int_t)o->gpus, "--drop-last", o->drop_last,
		"--seed", (json_int_t)o->common.seed, "--order",
		s->replay ? "replayed" : order, "--replay-order",
		s->replay ? hex(order_text_hash(s->replay)) : json_null(),
		"--rank", (json_int_t)o->rank, "--world-size",
		(json_int_t)o->world_size);
}

json_t *resume_identity(const struct train_options *o,
			const struct order_schedule *s)
{
	json_t *j = resume_samples(o, s);
	json_t *model = json_pack("{s:s, s:s?, s:I, s:s, s:s, s:I}", "--model",
				  o->model, "--precision", o->precision,
				  "--sequence-length",
				  (json_int_t)o->sequence_length, "--optimizer",
				  o->optimizer, "--parallel", o->parallel,
				  "--accumulate", (json_int_t)o->accumulate);

	if (json_object_update_new(j, model) == 0)
		return j;
	json_decref(j);
	return NULL;
}

/* A key that is missing is that of a later version. */
static int check_same_run(const char *name, const json_t *theirs, json_t *ours,
			  struct err *err)
{
	const json_t *value;
	const char *key;

	json_object_foreach (ours, key, value) {
		const json_t *other = json_object_get(theirs, key);
		_cleanup_free_ char *a = NULL, *b = NULL;

		if (!other || json_equal(other, value))
			continue;
		if (!strcmp(key, "dataset"))
			return err_set(err, -EINVAL,
				       "%s was written by a run on another "
				       "dataset or with other groups",
				       name);
		a = json_dumps(other, JSON_ENCODE_ANY);
		b = json_dumps(value, JSON_ENCODE_ANY);
		return err_set(err, -EINVAL,
			       "%s was written by a run with %s %s; this one "
			       "has %s",
			       name, key, a ? a : "unknown", b ? b : "another");
	}
	return 0;
}

/* --- finding the point ---------------------------------------------------- */

/* Can a run stand at this point? The visited samples must fit its steps, so
 * that enough samples are left for the rest of the epoch. */
static bool is_possible(const struct resume *r,
			const struct checkpoint_point *p,
			const uint8_t *visited)
{
	return p->epoch_step < r->steps &&
	       visited_count(&r->visited, visited) <=
		       p->epoch_step * train_step_samples(r->o);
}

/* Set the point from a checkpoint file. */
static int go_on_from(struct resume *r, uint64_t step, const char *name,
		      json_t *ours, struct err *err)
{
	char file[CHECKPOINT_NAME];
	struct checkpoint_point p = { 0 };
	_cleanup_free_ uint8_t *visited = NULL;
	struct checkpoint_head head;
	uint64_t wall = tick_wall();
	int e;

	checkpoint_name(step, file);
	e = checkpoint_read(r->dirfd, file, r->o->checkpoint_scale, &head, &p,
			    &visited);
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
	r->from = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:f, s:f}",
			    "checkpoint", name, "step", (json_int_t)p.step,
			    "epoch", (json_int_t)p.epoch, "epoch_step",
			    (json_int_t)p.epoch_step, "ranks",
			    (json_int_t)r->o->world_size, "bytes",
			    (json_int_t)(sizeof(head) + head.visited_bytes +
					 head.state_bytes),
			    "read_wall_seconds", (double)wall / NS_PER_S,
			    "read_s",
			    (double)wall / NS_PER_S / r->o->time_scale);
	return r->from ? 0 : -ENOMEM;
}

/* The checkpoint's name in the record and in messages. */
static void full_name(const struct resume *r, uint64_t rank, uint64_t step,
		      char ret[FULL_NAME])
{
	char file[CHECKPOINT_NAME], dir[32];

	checkpoint_name(step, file);
	ranks_name(rank, dir);
	snprintf(ret, FULL_NAME, "%s%s%s", has_ranks(r) ? dir : "",
		 has_ranks(r) ? "/" : "", file);
}

static bool is_damage(int e)
{
	return e == -EBADMSG || e == -EPROTO;
}

/* Does another rank have a whole checkpoint of the step, of this run? */
static int check_rank(const struct resume *r, uint64_t rank, uint64_t step,
		      struct err *err)
{
	_cleanup_close_ int fd = ranks_dir(&r->ranks, rank);
	_cleanup_free_ uint8_t *visited = NULL;
	json_auto_t *run = json_copy(r->point.run), *theirs = NULL;
	char file[CHECKPOINT_NAME], name[FULL_NAME];
	struct checkpoint_point p = { 0 };
	struct checkpoint_head head;
	int e;

	checkpoint_name(step, file);
	full_name(r, rank, step, name);
	e = fd < 0 ? fd
		   : checkpoint_read(fd, file, r->o->checkpoint_scale, &head,
				     &p, &visited);
	theirs = p.run;
	if (e == 0 && json_object_set_new(run, "--rank",
					  json_integer((json_int_t)rank)) < 0)
		e = -ENOMEM;
	if (e < 0)
		return err_set(err, e, "%s: %s", name,
			       is_damage(e) ? "damaged" : strerror(-e));
	return check_same_run(name, theirs, run, err);
}

/* Take the checkpoint of a step. This rank must have it whole, and so must all
 * others, unless they chose the step. */
static int take_step(struct resume *r, uint64_t step, struct err *err)
{
	char name[FULL_NAME];
	int e = 0;

	for (uint64_t i = 0; e == 0 && has_ranks(r) && i < r->o->world_size;
	     i++)
		if (i != r->o->rank && !ranks_follows(&r->ranks))
			e = check_rank(r, i, step, err);
	if (e < 0)
		return e;
	full_name(r, r->o->rank, step, name);
	e = go_on_from(r, step, name, r->point.run, err);
	if (e < 0 && e != -EINVAL)
		err_set(err, e, "%s: %s", name,
			is_damage(e) ? "damaged" : strerror(-e));
	return e;
}

/* The candidate steps, ascending. */
static int find_steps(struct resume *r, uint64_t **ret, size_t *n,
		      struct err *err)
{
	int e;

	if (has_ranks(r)) {
		e = ranks_check_ended(&r->ranks, err);
		return e < 0 ? e : ranks_complete(&r->ranks, ret, n, err);
	}
	e = checkpoint_list(r->dirfd, ret, n);
	return e < 0 ? err_set(err, e, "%s", strerror(-e)) : 0;
}

/* Take the newest whole checkpoint. */
static int take_newest(struct resume *r, struct err *err)
{
	_cleanup_free_ uint64_t *steps = NULL;
	size_t n = 0;
	int e = find_steps(r, &steps, &n, err);

	if (e < 0)
		return e;
	if (n == 0)
		err_set(&r->notice, 0,
			"%s: no checkpoint to resume from; the run starts from "
			"the beginning",
			r->o->checkpoint_dir);
	for (size_t i = n; i-- > 0;) {
		struct err why = { 0 };

		e = take_step(r, steps[i], &why);
		if (!is_damage(e))
			return e < 0 ? err_set(err, e, "%s", why.text) : 0;
		err_set(&r->notice, 0, "%s/%s; an older checkpoint is used",
			r->o->checkpoint_dir, why.text);
	}
	return e < 0 ? err_set(err, e, "all checkpoints are damaged") : 0;
}

/* Take the checkpoint that other ranks or the user chose. */
static int take_named(struct resume *r, struct err *err)
{
	int64_t step = r->o->resume_step;
	bool follows = has_ranks(r) && ranks_follows(&r->ranks);
	int e = 0;

	if (follows && step >= 0 && (uint64_t)step != r->ranks.step)
		return err_set(err, -EINVAL,
			       "other ranks resumed from step %" PRIu64,
			       r->ranks.step);
	if (follows)
		step = (int64_t)r->ranks.step;
	else if (has_ranks(r))
		e = ranks_check_ended(&r->ranks, err);
	return e == 0 && step ? take_step(r, (uint64_t)step, err) : e;
}

static int find_point(struct resume *r, struct err *err)
{
	bool named = r->o->resume_step >= 0 ||
		     (has_ranks(r) && ranks_follows(&r->ranks));
	int e = named ? take_named(r, err) : take_newest(r, err);

	if (e < 0)
		err_prefix(err, "%s", r->o->checkpoint_dir);
	return e;
}

/* Steps done again are saved again; until then, older checkpoints count. */
static int remove_newer(struct resume *r, struct err *err)
{
	_cleanup_free_ uint64_t *steps = NULL;
	size_t n = 0;
	int e = checkpoint_list(r->dirfd, &steps, &n);

	while (e == 0 && n && steps[n - 1] > r->point.step)
		e = checkpoint_remove(r->dirfd, steps[--n]);
	if (e == 0 && fsync(r->dirfd) < 0)
		e = -errno;
	return e < 0 ? err_set(err, e, "%s: %s", r->o->checkpoint_dir,
			       strerror(-e))
		     : 0;
}

/* Let the other ranks know where this rank stands. */
static int settle_resume(struct resume *r, struct err *err)
{
	int e = 0;

	if (r->o->resume && r->o->checkpoint_every)
		e = remove_newer(r, err);
	if (e == 0 && r->o->resume && has_ranks(r))
		e = ranks_join(&r->ranks, r->point.step, err);
	ranks_unlock(&r->ranks);
	return e;
}

/* Check that there are no checkpoints, so that those of two runs do not mix. */
static int check_empty(struct resume *r, struct err *err)
{
	_cleanup_free_ uint64_t *steps = NULL;
	size_t n = 0;
	int e = checkpoint_list(r->dirfd, &steps, &n);

	if (e == 0 && n == 0 && !r->ranks.agreed)
		return 0;
	if (e < 0)
		return err_set(err, e, "%s: %s", r->o->checkpoint_dir,
			       strerror(-e));
	return err_set(err, -EEXIST,
		       "%s has checkpoints of another run: continue from them "
		       "with --resume, or name an empty folder",
		       r->o->checkpoint_dir);
}

static int open_dir(struct resume *r, struct err *err)
{
	const struct train_options *o = r->o;
	const char *dir = o->checkpoint_dir;
	struct stat st;

	/* it would lead to a folder of one's own, where files are removed */
	if (lstat(dir, &st) == 0 && S_ISLNK(st.st_mode) &&
	    !util_follows(st.st_uid))
		return err_set(err, -EACCES, "%s: another user's link", dir);
	if (mkdir(dir, 0777) < 0 && errno != EEXIST)
		return err_set(err, -errno, "%s: %s", dir, strerror(errno));
	if (has_ranks(r))
		return ranks_open(&r->ranks, dir, o->rank, o->world_size,
				  &r->dirfd, err);
	r->dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->dirfd < 0)
		return err_set(err, -errno, "%s: %s", dir, strerror(errno));
	if (flock(r->dirfd, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, errno == EWOULDBLOCK ? -EBUSY : -errno,
			       "%s: another run has its checkpoints there",
			       dir);
	return ranks_check_none(r->dirfd, dir, err);
}

/* A part of the state takes the time of the whole only where the storage takes
 * each byte for several, or really writes while fewer seconds count for more.
 */
static int check_scale(const struct train_options *o, struct err *err)
{
	struct dataset_mount m;
	json_auto_t *stats = NULL;
	double scale = o->checkpoint_scale, theirs = 1;

	mount_find(o->checkpoint_dir, &m);
	stats = mount_stats(&m);
	mount_fini(&m);
	if (stats)
		theirs = json_real_value(
			json_object_get(stats, "writable_scale"));
	if (stats ? scale == theirs : scale == 1 || scale == o->time_scale)
		return 0;
	return stats ? err_set(err, -EINVAL,
			       "--checkpoint-scale %g, but the mount of %s has "
			       "--writable-scale %g; give both the same",
			       scale, o->checkpoint_dir, theirs)
		     : err_set(err, -EINVAL,
			       "--checkpoint-scale %g: %s is no mount of "
			       "gpemu-fs, so a write takes its real time; give "
			       "--time-scale %g as well",
			       scale, o->checkpoint_dir, scale);
}

void resume_init(struct resume *r)
{
	*r = (struct resume){ .dirfd = -1,
			      .ranks = { .dirfd = -1, .file = -1 } };
}

int resume_open(struct resume *r, const struct train_options *o,
		const struct order_schedule *schedule, uint64_t steps,
		struct err *err)
{
	int e;

	resume_init(r);
	r->o = o;
	r->steps = steps;
	r->point.log_bytes = -1;
	e = visited_init(&r->visited, schedule->c.data,
			 schedule_repeats(schedule), err);
	if (e < 0)
		return e;
	if (o->checkpoint_dir) {
		r->point.run = resume_identity(o, schedule);
		if (!r->point.run)
			return err_set(err, -ENOMEM, "out of memory");
		e = open_dir(r, err);
		if (e == 0)
			e = check_scale(o, err);
		r->ranks.first = o->together && o->rank == 0;
		if (e == 0)
			e = o->resume ? find_point(r, err)
				      : check_empty(r, err);
	}
	if (e == 0 && o->dump_samples)
		e = visited_log(&r->visited, o->dump_samples,
				r->point.log_bytes, err);
	return e == 0 && o->checkpoint_dir ? settle_resume(r, err) : e;
}

void resume_close(struct resume *r)
{
	checkpoint_free(r->checkpoint);
	visited_fini(&r->visited);
	json_decref(r->point.run);
	json_decref(r->from);
	ranks_close(&r->ranks);
	if (r->dirfd >= 0)
		close(r->dirfd);
	resume_init(r);
}

/* --- continuing ----------------------------------------------------------- */

int resume_check(const struct train_options *o, const struct gpu_profile *gpu,
		 const struct gpu_model *model, struct err *err)
{
	if (!o->checkpoint_every || train_model_state_bytes(o, model))
		return 0;
	return err_set(err, -ENODATA,
		       "%s has no number of parameters for %s; give the size "
		       "of a checkpoint with --checkpoint-size",
		       gpu->name, model->name);
}

struct checkpoint_config resume_config(struct resume *r,
				       const struct gpu_profile *gpu,
				       const struct gpu_model *model)
{
	const struct train_options *o = r->o;
	uint64_t bytes = train_model_state_bytes(o, model);

	r->state_bytes = bytes;
	return (struct checkpoint_config){
		.dir = o->checkpoint_dir,
		.dirfd = r->dirfd,
		.async = !strcmp(o->checkpoint, "async"),
		.state_bytes =
			(uint64_t)ceil((double)bytes * o->checkpoint_scale),
		.scale = o->checkpoint_scale,
		.visited_bytes = r->visited.n_bytes,
		.keep = o->checkpoint_keep,
		.ranks = has_ranks(r) ? &r->ranks : NULL,
		.copy_ns = gpu_copy_ns(
			gpu, model,
			o->pin ? GPU_COPY_PINNED : GPU_COPY_PAGEABLE, bytes),
		.seed = o->common.seed,
		.log_fd = r->visited.log ? fileno(r->visited.log) : -1,
	};
}

int resume_start(struct resume *r, struct tick *tick,
		 const struct gpu_profile *gpu, const struct gpu_model *model,
		 struct err *err)
{
	struct checkpoint_config c = resume_config(r, gpu, model);

	c.tick = tick;
	if (!r->o->checkpoint_every)
		return 0;
	return checkpoint_new(&c, &r->checkpoint, err);
}

void resume_take(struct resume *r, const struct delivery *d,
		 struct train_account *a)
{
	double bits = visited_class_bits(&r->visited, d);

	r->taken = true;
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
	r->taken = false;
	r->unsaved = true;
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
	r->unsaved = false;
	return e;
}

int resume_save_rest(struct resume *r, struct err *err)
{
	if (!r->checkpoint || !r->unsaved || r->taken || has_ranks(r))
		return 0;
	if (r->point.step % r->o->accumulate) /* gradients would be lost */
		return 0;
	return resume_save(r, err);
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
	return r->checkpoint  ? checkpoint_stats(r->checkpoint)
	       : r->simulated ? r->simulated->stats
			      : (struct checkpoint_stats){ 0 };
}

static const struct hist *times(const struct resume *r)
{
	return r->checkpoint ? checkpoint_times(r->checkpoint)
			     : &r->simulated->times;
}

/* Of the whole state, emulated. */
static double mib_per_s(const struct resume *r,
			const struct checkpoint_stats *s)
{
	double mib = (double)s->bytes / (double)MIB / r->o->checkpoint_scale;

	return s->write_ns ? mib * NS_PER_S / (double)s->write_ns : 0;
}

json_t *resume_json(const struct resume *r)
{
	struct checkpoint_stats s = resume_stats(r);
	double wall = (double)s.write_wall_ns / NS_PER_S;
	double mib = (double)s.bytes / (double)MIB;

	if (!r->checkpoint && !r->simulated)
		return json_null();
	return json_pack(
		"{s:s, s:o, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:o, "
		"s:o, s:f, s:f}",
		"mode", r->o->checkpoint, "dir",
		r->simulated ? json_null() : json_bytes(r->o->checkpoint_dir),
		"state_bytes", (json_int_t)r->state_bytes, "written",
		(json_int_t)s.n, "bytes", (json_int_t)s.bytes, "last_step",
		(json_int_t)r->last_step, "write_wall_seconds", wall,
		"write_mib_per_wall_s", wall > 0 ? mib / wall : 0., "tail_s",
		(double)r->tail_ns / NS_PER_S, "stall_ms",
		hist_json(&r->stalls, NS_PER_MS), "write_ms",
		hist_json(times(r), NS_PER_MS), "mib_per_s", mib_per_s(r, &s),
		"scale", r->o->checkpoint_scale);
}

void resume_print(const struct resume *r, FILE *f)
{
	struct checkpoint_stats s = resume_stats(r);
	double mib = (double)r->state_bytes / (double)MIB;

	if (!s.n)
		return;
	fprintf(f, "Checkpoints: %llu of %.4g MiB, each written in ",
		(unsigned long long)s.n, mib);
	if (s.write_ns)
		fprintf(f, "%.3g s (%.0f MiB/s)",
			hist_mean(times(r)) / NS_PER_S, mib_per_s(r, &s));
	else /* by a device that takes none */
		fputs("no time", f);
	fprintf(f, " and stalling the GPU for %.3g s.\n",
		hist_mean(&r->stalls) / NS_PER_S);
}
