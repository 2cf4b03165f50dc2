/* SPDX-License-Identifier: MIT */
#include "sched/live/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/replace.h"
#include "common/tick.h"
#include "common/util.h"
#include "sched/live/held.h"

enum { VERSION = 3 };

/* arbitrary: 73 years; sums of some stay within 64 bits */
#define TIME_END ((uint64_t)INT64_MAX / 4)
/* arbitrary: nine digits, as in the file of a process's end */
#define COUNT_MAX 999999999

/* arbitrary: 1 KiB for each of a hundred thousand jobs */
#define STATE_BYTES_MAX (100u << 20)

static const char *const states[] = {
	[JOB_ABSENT] = "absent",
	[JOB_WAITING] = "waiting",
	[JOB_RUNNING] = "running",
	[JOB_DONE] = "done",
};

static bool is_time(json_int_t ns, json_int_t least)
{
	return ns >= least && ns < (json_int_t)TIME_END;
}

/* --- the clock of a run that could not save its state ----------------------
 *
 * On a full disk no state says that the clock stands. DIR/clock is overwritten
 * in place, which needs no room: the time, and that of others, when it stopped;
 * -1 while it runs.
 */

#define CLOCK_FORMAT "%20" PRId64 " %20" PRId64 "\n"
enum { CLOCK_BYTES = 42 };

static int write_clock(const struct live *l, int64_t now_ns, int64_t real_ns,
		       struct err *err)
{
	_cleanup_free_ char *path = util_join(l->c.dir, "clock");
	_cleanup_close_ int fd = -1;
	char text[CLOCK_BYTES + 1];
	ssize_t k;

	if (!path)
		return err_set(err, -ENOMEM, "out of memory");
	snprintf(text, sizeof(text), CLOCK_FORMAT, now_ns, real_ns);
	fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
	k = fd < 0 ? -1 : write(fd, text, CLOCK_BYTES);
	if (k < 0 || fsync(fd) < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	return k == CLOCK_BYTES ? 0 : err_set(err, -EIO, "%s: short", path);
}

/* The clock stopped then, unless the state is newer. */
static void read_clock(struct live *l)
{
	_cleanup_free_ char *path = util_join(l->c.dir, "clock"), *text = NULL;
	uint64_t saved_ns = l->run.now_ns - l->away_ns;
	int64_t now, real;
	size_t n;

	if (!path || util_read_file(path, CLOCK_BYTES, &text, &n) < 0 ||
	    sscanf(text, "%" SCNd64 " %" SCNd64, &now, &real) != 2 ||
	    !is_time(now, (json_int_t)saved_ns) || real < 0)
		return;
	l->away_ns = (uint64_t)now - saved_ns;
	l->run.now_ns = (uint64_t)now;
	l->real_ns = real;
	l->unsaved = true;
}

/* --- writing -------------------------------------------------------------- */

static json_t *json_parts(const struct sched_part *parts, size_t n)
{
	json_t *a = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(
			a, json_pack("[I,I,I,I,I]", (json_int_t)parts[i].node,
				     (json_int_t)parts[i].gpus,
				     (json_int_t)parts[i].gpu_milli,
				     (json_int_t)parts[i].cpu_milli,
				     (json_int_t)parts[i].memory_mib));
	return a;
}

/* The first job of those who take turns with it, itself included. */
static json_int_t first_of_group(const struct live *l,
				 const struct sched_job *job)
{
	const struct sched_job *group[GROUP_MAX], *first = job;
	size_t n = job_group(job, group);

	for (size_t i = 1; i < n; i++)
		first = MIN(first, group[i]);
	return first - l->run.jobs;
}

/* UINT64_MAX, "not yet", is -1. */
static json_t *json_job(const struct live *l, size_t i)
{
	const struct sched_job *job = &l->run.jobs[i];
	const struct live_job *p = &l->live[i];

	return json_pack("{s:o,s:s,s:f,s:f,s:I,s:I,s:I,s:I,s:i,s:i,s:I,s:I,"
			 "s:b,s:I,s:I,s:o,s:o}",
			 "name", json_bytes(job->name), "state",
			 states[job->state], "done", job->done, "gpu_ns",
			 job->gpu_ns, "run_ns", (json_int_t)job->run_ns,
			 "since_ns", (json_int_t)job->since_ns, "start_ns",
			 (json_int_t)job->start_ns, "end_ns",
			 (json_int_t)job->end_ns, "preempted",
			 (int)job->n_preempted, "moved", (int)job->n_moved,
			 "processes", (json_int_t)p->n_ended, "failures",
			 (json_int_t)p->n_failed, "failed", p->failed, "with",
			 first_of_group(l, job), "group", (json_int_t)p->group,
			 "parts", json_parts(job->parts, job->n_parts), "held",
			 json_parts(p->held, p->n_held));
}

/* Of the history, by beginning. */
static json_t *json_runs(const struct history *h)
{
	json_t *a = json_array();

	for (size_t i = 0; i < h->n; i++) {
		const struct history_run *r = &h->runs[i];

		json_array_append_new(
			a,
			json_pack("[I,I,I,o]", (json_int_t)r->job,
				  (json_int_t)r->from_ns,
				  (json_int_t)r->until_ns,
				  json_parts(&h->parts[r->first], r->n_parts)));
	}
	return a;
}

int state_save(struct live *l, bool paused, struct err *err)
{
	_cleanup_free_ char *path = util_join(l->c.dir, "state.json");
	json_t *jobs = json_array();
	json_auto_t *j = NULL;
	int r;

	for (size_t i = 0; i < l->run.n; i++)
		json_array_append_new(jobs, json_job(l, i));
	j = json_pack("{s:i,s:O,s:b,s:I,s:I,s:f,s:o,s:o}", "version", VERSION,
		      "run", l->c.identity, "paused", paused, "now_ns",
		      (json_int_t)l->run.now_ns, "real_ns",
		      (json_int_t)l->real_ns, "use_ns", l->use_ns, "jobs", jobs,
		      "runs", json_runs(&l->history));
	if (!path || !j || json_array_size(jobs) != l->run.n)
		return err_set(err, -ENOMEM, "out of memory");
	r = json_replace(j, path, err);
	l->unsaved = r < 0;
	if (r == 0 && !l->clock_runs) {
		r = write_clock(l, -1, -1, err);
		l->clock_runs = r == 0;
	}
	return r;
}

int state_stop(struct live *l, struct err *err)
{
	struct err more = { 0 };
	int r = state_save(l, true, err);

	if (r < 0 &&
	    write_clock(l, (int64_t)l->run.now_ns, l->real_ns, &more) < 0)
		log_error("%s", more.text);
	return r;
}

/* --- reading -------------------------------------------------------------- */

static bool read_part(const json_t *j, struct sched_part *ret)
{
	static const json_int_t most[] = { UINT32_MAX, UINT32_MAX, GPU_MILLI,
					   UINT32_MAX, CLUSTER_MEMORY_MAX };
	json_int_t v[ARRAY_SIZE(most)];

	if (json_unpack((json_t *)j, "[I,I,I,I,I!]", &v[0], &v[1], &v[2], &v[3],
			&v[4]) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		if (v[i] < 0 || v[i] > most[i])
			return false;
	*ret = (struct sched_part){ .node = (uint32_t)v[0],
				    .gpus = (uint32_t)v[1],
				    .gpu_milli = (uint32_t)v[2],
				    .cpu_milli = (uint32_t)v[3],
				    .memory_mib = (uint64_t)v[4] };
	return true;
}

/* -EINVAL, -ENOMEM. */
static int read_parts(const json_t *a, const struct sched_job *job,
		      struct sched_part **ret, size_t *ret_n)
{
	size_t n = json_array_size(a);

	if (!json_is_array(a) || n > placement_parts(job))
		return -EINVAL;
	if (!n)
		return 0;
	*ret = calloc(n, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	for (; *ret_n < n; ++*ret_n)
		if (!read_part(json_array_get(a, *ret_n), &(*ret)[*ret_n]))
			return -EINVAL;
	return 0;
}

/* What the policy gave it, or an earlier job with whom it takes turns;
 * plan_apply checks that. */
static int take_parts(struct live *l, size_t i, const json_t *parts,
		      json_int_t with, struct err *err)
{
	_cleanup_free_ struct sched_part *p = NULL;
	size_t n = 0;
	int r = read_parts(parts, &l->run.jobs[i], &p, &n);

	plan_reset(&l->run.plan);
	if (with < 0 || with > (json_int_t)i)
		return -EINVAL;
	if (r == 0 && n && with < (json_int_t)i)
		r = plan_group(&l->run.plan, (uint32_t)i, (uint32_t)with);
	else if (r == 0 && n)
		r = plan_add(&l->run.plan, ACTION_START, (uint32_t)i, p, n);
	return r < 0 ? r
		     : plan_apply(&l->run.plan, &l->run.cluster, l->run.jobs,
				  l->run.n, l->run.jobs[i].since_ns, err);
}

static int take_held(struct live *l, size_t i, const json_t *held)
{
	struct live_job *p = &l->live[i];
	const struct live_job *with = group_holder(l, (uint32_t)i);
	int r = read_parts(held, &l->run.jobs[i], &p->held, &p->n_held);

	if (r == 0 && with && p->n_held)
		return with->n_held == p->n_held &&
				       !memcmp(with->held, p->held,
					       p->n_held * sizeof(*p->held))
			       ? 0
			       : -EINVAL;
	for (size_t k = 0; r == 0 && k < p->n_held; k++) {
		if (!cluster_has(&l->held, &p->held[k]))
			return -EINVAL;
		cluster_take(&l->held, &p->held[k]);
	}
	return r;
}

static int read_job(struct live *l, size_t i, json_t *j, struct err *err)
{
	struct sched_job *job = &l->run.jobs[i];
	struct live_job *p = &l->live[i];
	json_int_t run, since, start, end, processes, failures, with, group;
	const char *state;
	json_t *name, *parts, *held;
	json_auto_t *ours = json_bytes(job->name);
	int preempted, moved, failed, s = 0, r;

	if (json_unpack(j,
			"{s:o,s:s,s:F,s:F,s:I,s:I,s:I,s:I,s:i,s:i,s:I,s:I,s:b,"
			"s:I,s:I,s:o,s:o!}",
			"name", &name, "state", &state, "done", &job->done,
			"gpu_ns", &job->gpu_ns, "run_ns", &run, "since_ns",
			&since, "start_ns", &start, "end_ns", &end, "preempted",
			&preempted, "moved", &moved, "processes", &processes,
			"failures", &failures, "failed", &failed, "with", &with,
			"group", &group, "parts", &parts, "held", &held) < 0)
		return -EINVAL;
	if (!json_equal(name, ours))
		return err_set(err, -EINVAL,
			       "another trace: its job %zu is "
			       "not %s",
			       i, job->name);
	while (s <= JOB_DONE && strcmp(states[s], state))
		s++;
	if (s > JOB_DONE || !(job->done >= 0 && job->done <= 1) ||
	    !(job->gpu_ns >= 0) || !is_time(run, 0) || !is_time(since, 0) ||
	    !is_time(start, -1) || !is_time(end, -1) || preempted < 0 ||
	    moved < 0 || processes < 0 || processes >= COUNT_MAX ||
	    failures < 0 || failures > COUNT_MAX || group < 0 ||
	    group > COUNT_MAX ||
	    (s == JOB_DONE && end < (json_int_t)job->arrival_ns) ||
	    (s == JOB_RUNNING) != (json_array_size(parts) > 0) ||
	    ((s == JOB_ABSENT || s == JOB_DONE) && json_array_size(held)))
		return -EINVAL;
	job->run_ns = (uint64_t)run;
	job->since_ns = (uint64_t)since;
	job->start_ns = (uint64_t)start;
	job->end_ns = (uint64_t)end;
	job->n_preempted = (uint32_t)preempted;
	job->n_moved = (uint32_t)moved;
	p->n_ended = (uint32_t)processes;
	p->n_failed = (uint32_t)failures;
	p->failed = failed;
	p->group = (uint32_t)group;
	l->last_group = MAX(l->last_group, p->group);
	job->state = s == JOB_RUNNING ? JOB_WAITING : s;
	r = take_parts(l, i, parts, with, err);
	return r < 0 ? r : take_held(l, i, held);
}

/* Of a run, on nodes and GPUs that are there. */
static bool are_there(const struct cluster *c, const struct sched_part *p,
		      size_t n)
{
	for (size_t k = 0; k < n; k++)
		if (p[k].node >= c->n ||
		    p[k].gpus >> c->nodes[p[k].node].n_gpus)
			return false;
	return n;
}

/* The last run of a job goes on if its process has something. */
static int read_run(struct live *l, const json_t *j, uint64_t least_ns,
		    json_int_t now)
{
	_cleanup_free_ struct sched_part *parts = NULL;
	struct sched_job of = { 0 };
	json_int_t job, from, until;
	json_t *text;
	int r;

	if (json_unpack((json_t *)j, "[I,I,I,o!]", &job, &from, &until, &text) <
		    0 ||
	    job < 0 || job >= (json_int_t)l->run.n || from < 0 ||
	    from < (json_int_t)least_ns || from > now ||
	    (until != -1 && (until < from || until > now)) ||
	    (until == -1 && !l->live[job].n_held))
		return -EINVAL;
	r = read_parts(text, &l->run.jobs[job], &parts, &of.n_parts);
	if (r < 0 || !are_there(&l->run.cluster, parts, of.n_parts))
		return r < 0 ? r : -EINVAL;
	of.parts = parts;
	history_end(&l->history, (uint32_t)job, (uint64_t)from);
	r = history_begin(&l->history, (uint32_t)job, &of, (uint64_t)from);
	if (r == 0 && until != -1)
		history_end(&l->history, (uint32_t)job, (uint64_t)until);
	return r;
}

static int read_runs(struct live *l, const json_t *runs, json_int_t now,
		     struct err *err)
{
	struct history *h = &l->history;
	int r = json_is_array(runs) ? 0 : -EINVAL;

	for (size_t i = 0; r == 0 && i < json_array_size(runs); i++)
		r = read_run(l, json_array_get(runs, i),
			     h->n ? h->runs[h->n - 1].from_ns : 0, now);
	return r < 0 ? err_set(err, r, "damaged at its runs") : 0;
}

/* Jobs arrive in their order. */
static int read_jobs(struct live *l, json_t *jobs, struct err *err)
{
	if (json_array_size(jobs) != l->run.n)
		return err_set(err, -EINVAL,
			       "another trace: of %zu jobs; this one has %zu",
			       json_array_size(jobs), l->run.n);
	for (size_t i = 0; i < l->run.n; i++) {
		int r = read_job(l, i, json_array_get(jobs, i), err);
		bool here = l->run.jobs[i].state != JOB_ABSENT;

		if (r == 0 && here && l->run.n_arrived < i)
			r = -EINVAL;
		if (r < 0)
			return err_set(err, r, "damaged at job %s",
				       l->run.jobs[i].name);
		l->run.n_arrived += here;
		l->run.n_done += l->run.jobs[i].state == JOB_DONE;
		l->n_failed += l->live[i].failed;
		if (here && l->run.jobs[i].state != JOB_DONE)
			l->run.active[l->run.n_active++] = (uint32_t)i;
	}
	return 0;
}

/* Names the first key of the configuration that differs. */
static int check_same(const json_t *theirs, const json_t *ours, struct err *err)
{
	const json_t *value;
	const char *key;

	json_object_foreach ((json_t *)ours, key, value)
		if (!json_equal(json_object_get(theirs, key), value))
			return err_set(err, -EINVAL,
				       "of a run with another %s: name another "
				       "folder, or repeat that run's options",
				       key);
	return json_object_size(theirs) == json_object_size(ours) ? 0 : -EINVAL;
}

/* A clock that stood goes on from where it stood; one that ran, ran on, but
 * not past what a state can hold: with a small time scale, a day of wall time
 * is centuries. */
static void set_clock(struct live *l, uint64_t now_ns, int64_t real_ns,
		      bool paused)
{
	int64_t real = tick_realtime();
	double ns = (double)(real - real_ns) / l->c.time_scale;

	l->wall_ns = tick_wall();
	l->real_ns = real;
	l->run.now_ns = now_ns;
	if (paused || ns <= 0)
		return;
	ns = MIN(ns, (double)(TIME_END / 2 - MIN(now_ns, TIME_END / 2)));
	l->away_ns = (uint64_t)ns;
	l->run.now_ns += l->away_ns;
}

int state_parse(struct live *l, const char *bytes, size_t n, struct err *err)
{
	json_error_t where;
	json_auto_t *j = json_loadb(bytes, n, JSON_REJECT_DUPLICATES, &where);
	json_int_t now, real;
	json_t *identity, *jobs, *runs;
	int version, paused, r;

	if (!j)
		return err_set(err, -EINVAL, "damaged: line %d, column %d: %s",
			       where.line, where.column, where.text);
	if (json_unpack(j, "{s:i,s:o,s:b,s:I,s:I,s:F,s:o,s:o!}", "version",
			&version, "run", &identity, "paused", &paused, "now_ns",
			&now, "real_ns", &real, "use_ns", &l->use_ns, "jobs",
			&jobs, "runs", &runs) < 0 ||
	    version != VERSION || !is_time(now, 0) || real < 0 ||
	    !(l->use_ns >= 0) || !json_is_array(jobs))
		return err_set(err, -EINVAL, "damaged, or of another version");
	r = check_same(identity, l->c.identity, err);
	if (r == 0)
		r = read_jobs(l, jobs, err);
	if (r == 0)
		r = read_runs(l, runs, now, err);
	if (r < 0)
		return err_set(err, r, "damaged");
	for (size_t i = 0; i < l->run.n; i++) {
		const struct sched_job *job = &l->run.jobs[i];

		if (job->since_ns > (uint64_t)now ||
		    (job->state == JOB_DONE && job->end_ns > (uint64_t)now))
			return err_set(err, -EINVAL,
				       "damaged: job %s is ahead of its time",
				       job->name);
	}
	set_clock(l, (uint64_t)now, real, paused);
	return 0;
}

/* Folders of jobs are made after the first state was written. */
static bool has_jobs(const struct live *l)
{
	_cleanup_free_ char *path = NULL;
	const struct dirent *entry;
	bool found = false;
	DIR *dir;

	if (asprintf(&path, "%s/jobs", l->c.dir) < 0)
		return false;
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir)))
		found = entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return found;
}

int state_load(struct live *l, struct err *err)
{
	_cleanup_free_ char *path = util_join(l->c.dir, "state.json"),
			    *text = NULL;
	size_t n;
	int r;

	if (!path)
		return err_set(err, -ENOMEM, "out of memory");
	replace_sweep(path);
	r = util_read_file(path, STATE_BYTES_MAX, &text, &n);
	if (r == -ENOENT && has_jobs(l))
		return err_set(err, -EINVAL,
			       "%s has jobs, but no state: name another folder",
			       l->c.dir);
	if (r == -ENOENT)
		return r;
	if (r == 0)
		r = state_parse(l, text, n, err);
	if (r == 0) {
		read_clock(l);
		return 0;
	}
	err_set(err, r, "%s", strerror(-r));
	err_prefix(err, "%s", path);
	return r;
}
