/* SPDX-License-Identifier: MIT */
#include "sched/trace/workload.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/util.h"

struct sched_job workload_job(void)
{
	return (struct sched_job){ .start_ns = UINT64_MAX,
				   .end_ns = UINT64_MAX,
				   .n_gpus = 1,
				   .gpu_milli = GPU_MILLI };
}

static void free_names(char **names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

void workload_fini(struct sched_workload *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->jobs[i].name);
	free(w->jobs);
	free(w->speeds);
	free(w->user_index.slots);
	free(w->class_index.slots);
	free(w->model_index.slots);
	free_names(w->models, w->n_models);
	free_names(w->users, w->n_users);
	free_names(w->classes, w->n_classes);
	*w = (struct sched_workload){ 0 };
}

/* That of the name, or a free one. */
static uint32_t *find_slot(const struct name_index *x, char *const *names,
			   const char *name)
{
	size_t i = XXH3_64bits(name, strlen(name)) & (x->n_slots - 1);

	while (x->slots[i] && strcmp(names[x->slots[i] - 1], name))
		i = (i + 1) & (x->n_slots - 1);
	return &x->slots[i];
}

/* At most half of the slots are taken. */
static int make_room(struct name_index *x, char *const *names, size_t n)
{
	struct name_index more = { .n_slots = x->n_slots ? 2 * x->n_slots
							 : 64 };

	if (2 * n < x->n_slots)
		return 0;
	more.slots = calloc(more.n_slots, sizeof(*more.slots));
	if (!more.slots)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		*find_slot(&more, names, names[i]) = (uint32_t)i + 1;
	free(x->slots);
	*x = more;
	return 0;
}

static int intern(char ***names, size_t *n, size_t *allocated,
		  struct name_index *index, const char *name, uint32_t *ret)
{
	uint32_t *slot;
	int r = make_room(index, *names, *n);

	if (r == 0)
		r = util_reserve(names, allocated, *n + 1, sizeof(**names));
	if (r < 0)
		return r;
	slot = find_slot(index, *names, name);
	if (!*slot) {
		(*names)[*n] = strdup(name);
		if (!(*names)[*n])
			return -ENOMEM;
		*slot = (uint32_t)(*n += 1);
	}
	*ret = *slot - 1;
	return 0;
}

int workload_user(struct sched_workload *w, const char *name, uint32_t *ret)
{
	return intern(&w->users, &w->n_users, &w->users_allocated,
		      &w->user_index, name, ret);
}

int workload_class(struct sched_workload *w, const char *name, uint32_t *ret)
{
	return intern(&w->classes, &w->n_classes, &w->classes_allocated,
		      &w->class_index, name, ret);
}

int workload_speed(struct sched_workload *w, const char *name,
		   struct speed **ret)
{
	uint32_t i;
	int r = intern(&w->models, &w->n_models, &w->models_allocated,
		       &w->model_index, name, &i);

	if (r == 0)
		r = util_reserve(&w->speeds, &w->speeds_allocated, i + 1u,
				 sizeof(*w->speeds));
	if (r < 0)
		return r;
	if (i == w->n_speeds)
		w->speeds[w->n_speeds++] =
			(struct speed){ .name = w->models[i] };
	*ret = &w->speeds[i];
	return 0;
}

const struct speed *workload_find_speed(const struct sched_workload *w,
					const char *name)
{
	uint32_t slot = 0;

	if (w->n_speeds)
		slot = *find_slot(&w->model_index, w->models, name);
	return slot ? &w->speeds[slot - 1] : NULL;
}

static int add_one(struct sched_workload *w, const struct sched_job *job,
		   uint64_t i, uint64_t count)
{
	struct sched_job *to = &w->jobs[w->n];
	int n = 0;

	*to = *job;
	to->name = NULL;
	if (!job->name)
		n = asprintf(&to->name, "%zu", w->n);
	else if (count == 1)
		to->name = strdup(job->name);
	else
		n = asprintf(&to->name, "%s-%llu", job->name,
			     (unsigned long long)i);
	if (n < 0 || !to->name)
		return -ENOMEM;
	w->n++;
	return 0;
}

int workload_add(struct sched_workload *w, struct sched_job *job,
		 uint64_t count)
{
	int r = 0;

	if (count > WORKLOAD_JOBS_MAX - w->n)
		r = -E2BIG;
	if (r == 0)
		r = util_reserve(&w->jobs, &w->allocated, w->n + count,
				 sizeof(*w->jobs));
	for (uint64_t i = 0; r == 0 && i < count; i++)
		r = add_one(w, job, i, count);
	free(job->name);
	job->name = NULL;
	return r;
}

/* --- lines that are no job, or not a whole one ---------------------------- */

void workload_count(struct sched_workload *w, const char *what, bool left_out,
		    uint64_t line)
{
	size_t i = 0;

	while (i < w->n_counts && strcmp(w->counts[i].what, what))
		i++;
	if (i == WORKLOAD_COUNTS_MAX)
		return;
	if (i == w->n_counts)
		w->counts[w->n_counts++] = (struct workload_count){
			.what = what, .left_out = left_out, .line = line
		};
	w->counts[i].n++;
}

static void print_counts(const struct sched_workload *w, bool left_out, FILE *f)
{
	const char *before = left_out ? "left out: " : "assumed: ";

	for (size_t i = 0; i < w->n_counts; i++) {
		const struct workload_count *c = &w->counts[i];

		if (c->left_out != left_out)
			continue;
		fprintf(f, "%s%" PRIu64 " %s", before, c->n, c->what);
		if (c->line)
			fprintf(f, " (%sline %" PRIu64 ")",
				c->n > 1 ? "the first in " : "", c->line);
		before = ", ";
	}
}

char *workload_counts_text(const struct sched_workload *w)
{
	char *text = NULL;
	size_t n;
	FILE *f = w->n_counts ? open_memstream(&text, &n) : NULL;

	if (!f)
		return NULL;
	fprintf(f, "%zu jobs; ", w->n);
	print_counts(w, true, f);
	for (size_t i = 1; i < w->n_counts; i++)
		if (w->counts[i].left_out != w->counts[0].left_out) {
			fputs("; ", f);
			break;
		}
	print_counts(w, false, f);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

int workload_models(struct trace_reader *t, int at, uint64_t *ret)
{
	_cleanup_free_ char *text = NULL;
	char *state, *name;
	int r = rows_text(&t->csv, at, &text);

	for (name = text ? strtok_r(text, "|", &state) : NULL; r == 0 && name;
	     name = strtok_r(NULL, "|", &state)) {
		int m = cluster_model(t->cluster, name);

		if (m == -E2BIG)
			return rows_error(&t->csv, &t->csv.f[at],
					  "%s: one model of GPUs too many, "
					  "there may be %d",
					  name, CLUSTER_MODELS_MAX);
		if (m < 0)
			return m;
		*ret |= 1ull << m;
	}
	return r;
}

int workload_names(struct trace_reader *t, int user, int class, int name,
		   struct sched_job *job)
{
	_cleanup_free_ char *user_of = NULL, *class_of = NULL;
	int r = rows_text(&t->csv, user, &user_of);

	if (r == 0)
		r = rows_text(&t->csv, class, &class_of);
	if (r == 0)
		r = workload_user(t->w, user_of ? user_of : "-", &job->user);
	if (r == 0)
		r = workload_class(t->w, class_of ? class_of : "-",
				   &job->class);
	return r == 0 ? rows_text(&t->csv, name, &job->name) : r;
}

int workload_gpus(const struct trace_reader *t, const char *what, int gpus,
		  int share, uint64_t max, struct sched_job *job)
{
	uint64_t n = 1, milli = GPU_MILLI;
	int r = gpus < 0 ? 0 : rows_count(&t->csv, gpus, what, max, &n);

	if (r == 0 && share >= 0)
		r = rows_count(&t->csv, share, "gpu_milli", GPU_MILLI, &milli);
	if (r < 0)
		return r;
	if (n && (!milli || (n > 1 && milli < GPU_MILLI)))
		return rows_error(&t->csv, &t->csv.f[share],
				  "gpu_milli: %" PRIu64 " of each of %" PRIu64
				  " GPUs; only a single GPU may be shared",
				  milli, n);
	job->n_gpus = (uint32_t)n;
	job->gpu_milli = n ? (uint32_t)milli : 0;
	return 0;
}

int workload_iterations(const struct trace_reader *t, const char *what,
			int gpus, int iterations, struct sched_job *job,
			uint64_t *ret)
{
	int r = rows_count(&t->csv, iterations, "iterations", 1ull << 40, ret);

	if (r == 0)
		r = workload_gpus(t, what, gpus, -1, WORKLOAD_GPUS_MAX, job);
	if (r == 0 && (!job->n_gpus || !*ret))
		r = rows_error(&t->csv,
			       &t->csv.f[job->n_gpus ? iterations : gpus],
			       "%s: must not be 0",
			       job->n_gpus ? "iterations" : what);
	return r;
}

int workload_words(struct trace_reader *t,
		   int (*read)(struct trace_reader *t, struct sched_job *job))
{
	/* the first line was read as columns */
	rows_rewind(&t->csv);
	while (rows_next_words(&t->csv)) {
		struct sched_job job = workload_job();
		int r = read(t, &job);

		if (r < 0) {
			free(job.name);
			return r;
		}
		r = workload_add(t->w, &job, 1);
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- order and shapes ----------------------------------------------------- */

/* mergesort keeps the order of equal ones; qsort of glibc need not. */
static int by_arrival(const void *a, const void *b)
{
	const struct sched_job *x = a, *y = b;

	if (x->arrival_ns != y->arrival_ns)
		return x->arrival_ns < y->arrival_ns ? -1 : 1;
	return x->shape < y->shape ? -1 : x->shape > y->shape;
}

#define COMPARE(x, y, member)                                      \
	do {                                                       \
		if ((x)->member != (y)->member)                    \
			return (x)->member < (y)->member ? -1 : 1; \
	} while (0)

static int by_shape(const void *a, const void *b)
{
	const struct sched_job *x = *(const struct sched_job *const *)a;
	const struct sched_job *y = *(const struct sched_job *const *)b;

	COMPARE(x, y, n_gpus);
	COMPARE(x, y, gpu_milli);
	COMPARE(x, y, cpu_milli);
	COMPARE(x, y, memory_mib);
	COMPARE(x, y, models);
	COMPARE(x, y, speed);
	return 0;
}

int workload_settle(struct sched_workload *w)
{
	_cleanup_free_ struct sched_job **order = NULL;
	uint32_t shape = 0;

	/* the row's number, until it becomes the shape */
	for (size_t i = 0; i < w->n; i++)
		w->jobs[i].shape = (uint32_t)i;
	if (w->n)
		qsort(w->jobs, w->n, sizeof(*w->jobs), by_arrival);
	order = malloc((w->n + 1) * sizeof(struct sched_job *));
	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < w->n; i++)
		order[i] = &w->jobs[i];
	if (w->n)
		qsort(order, w->n, sizeof(struct sched_job *), by_shape);
	for (size_t i = 0; i < w->n; i++) {
		if (i && by_shape(&order[i - 1], &order[i]))
			shape++;
		order[i]->shape = shape;
	}
	return 0;
}
