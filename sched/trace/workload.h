/* SPDX-License-Identifier: MIT */
/*
 * A workload: jobs that arrive over time, read from a trace or generated.
 *
 * Formats are plug-ins: each recognises its files by their first line.
 */
#ifndef GPEMU_SCHED_TRACE_WORKLOAD_H
#define GPEMU_SCHED_TRACE_WORKLOAD_H

#include "common/plugin.h"
#include "common/text/rows.h"
#include "sched/core/job.h"

/* arbitrary: limits of a job that keep sums within 64 bits */
#define WORKLOAD_JOBS_MAX 10000000u
#define WORKLOAD_SECONDS_MAX 4e9  /* 127 years */
#define WORKLOAD_SECONDS_MIN 1e-9 /* of work */
#define WORKLOAD_GPUS_MAX 65536u

/* Numbers of names by hash: open addressing, 0 is a free slot, else a name has
 * the number before. */
struct name_index {
	uint32_t *slots;
	size_t n_slots; /* a power of two */
};

/* Lines of a trace of which there is something to say: those that are no job,
 * or jobs of which something was assumed. */
struct workload_count {
	const char *what; /* "never scheduled"; static */
	bool left_out;	  /* they are no jobs */
	uint64_t n;
	uint64_t line; /* of the first; 0: it has none */
};

enum { WORKLOAD_COUNTS_MAX = 16 };

/* What the jobs of a trace are read for: to run, for which they need work; or
 * for what they ask for only, which all have that were ever submitted. */
enum workload_use { WORKLOAD_RUNS, WORKLOAD_REQUESTS };

struct sched_workload {
	const char *format; /* of the trace; static */
	struct workload_count counts[WORKLOAD_COUNTS_MAX];
	size_t n_counts;
	/* The work of its jobs is a number of iterations, not ns, and the
	 * speeds with this name have their time; NULL: ns. */
	const char *iterations_of;
	struct sched_job *jobs; /* by arrival */
	size_t n, allocated;
	char **users, **classes; /* names */
	size_t n_users, users_allocated, n_classes, classes_allocated;
	struct name_index user_index, class_index;
	struct speed *speeds; /* their names are `models` */
	char **models;
	size_t n_speeds, n_models, speeds_allocated, models_allocated;
	struct name_index model_index;
};

struct trace_reader {
	struct sched_workload *w;
	/* where names of GPU models are looked up, and added */
	struct cluster *cluster;
	struct rows csv;
	enum workload_use use;
	struct span_set *spans; /* sched/trace/spans.h; NULL: none so far */
};

struct reader_ops {
	struct plugin plugin;
	/* The columns of the first line, by which it is known; or NULL. */
	const char *const *columns;
	int n_columns, n_required;
	/* No other columns are allowed: the format is our own. */
	bool closed;
	/* A row below the header: `at` is the column of each of `columns`, -1
	 * without it. -EINVAL with a text, -ENOMEM. */
	int (*row)(struct trace_reader *t, const int *at);
	/* Instead of both: whether the first bytes are of this format, and all
	 * of it. */
	bool (*knows)(const char *bytes, size_t n);
	int (*parse)(struct trace_reader *t);
};

extern const struct plugin *const reader_table[];

/*
 * Read a trace: from bytes, safe on any input, to run; or from a file, a name
 * of a trace that is shipped, or "-". Errors: "name:line:column: what". Free
 * with workload_fini, failed or not.
 */
int workload_parse(const char *bytes, size_t n, const char *name,
		   struct cluster *c, struct sched_workload *ret,
		   struct err *err);
int workload_load(const char *name, struct cluster *c, enum workload_use use,
		  struct sched_workload *ret, struct err *err);
void workload_fini(struct sched_workload *w);

/* Add `count` jobs; takes over what `job` owns, failed or not. -ENOMEM, -E2BIG.
 */
int workload_add(struct sched_workload *w, struct sched_job *job,
		 uint64_t count);
/* Count a line; `line`: its number, or 0. `what`, static, in the words of "12
 * lines left out: 10 never scheduled" and "2 still running at the end". */
void workload_count(struct sched_workload *w, const char *what, bool left_out,
		    uint64_t line);
/* What was counted, as a text of one line, malloc'ed: NULL if that is nothing,
 * or for lack of memory. */
char *workload_counts_text(const struct sched_workload *w);
/* The number of a name, new if need be. -ENOMEM. */
int workload_user(struct sched_workload *w, const char *name, uint32_t *ret);
int workload_class(struct sched_workload *w, const char *name, uint32_t *ret);
/* The speed of a model: new, with nothing but its name, if need be (-ENOMEM);
 * or NULL if there is none. */
int workload_speed(struct sched_workload *w, const char *name,
		   struct speed **ret);
const struct speed *workload_find_speed(const struct sched_workload *w,
					const char *name);
/* The user, the class and the name of a job, from these columns; "-", NULL
 * without one (-1). -ENOMEM. */
int workload_names(struct trace_reader *t, int user, int class, int name,
		   struct sched_job *job);
/* The GPUs of a job, a column called `what`, up to `max`, and its share of each
 * in thousandths; one whole GPU without the columns (-1). -EINVAL with a text.
 */
int workload_gpus(const struct trace_reader *t, const char *what, int gpus,
		  int share, uint64_t max, struct sched_job *job);
/* Its whole GPUs, and its iterations; neither may be 0. */
int workload_iterations(const struct trace_reader *t, const char *what,
			int gpus, int iterations, struct sched_job *job,
			uint64_t *ret);
/* A trace without a header, of words: `read` reads a job from its first row
 * on. */
int workload_words(struct trace_reader *t,
		   int (*read)(struct trace_reader *t, struct sched_job *job));
/* Names of GPU models in a column, separated by '|', as a mask. -EINVAL,
 * -ENOMEM. */
int workload_models(struct trace_reader *t, int at, uint64_t *ret);
/* Sort by arrival, number shapes. -ENOMEM. */
int workload_settle(struct sched_workload *w);
/* A job of one whole GPU, all else zero. */
struct sched_job workload_job(void);

/*
 * Speeds of models, a CSV row for each point, by bytes or by name; the jobs of
 * a class that has one get it, and their work, where it is counted in
 * iterations, becomes time. -EINVAL with a text: also of a class that has
 * none, where it is needed.
 */
int speeds_parse_csv(const char *bytes, size_t n, const char *name,
		     struct sched_workload *w, struct err *err);
int workload_bind(struct sched_workload *w, struct err *err);
int workload_speeds(struct sched_workload *w, const char *name,
		    struct err *err);

/* --- shipped files -------------------------------------------------------- */

/* Print the names of "job" (0), "cluster" (1) or "speed" (2) files. */
int workload_names_print(int kind, struct err *err);

/* --- clusters ------------------------------------------------------------- */

/* One or more like nodes: "[COUNT*]KEY=VALUE,..."; adds to `c`. -EINVAL with a
 * text. */
int nodes_parse(const char *text, struct cluster *c, struct err *err);
/* The nodes of a CSV file, path or name, or bytes; see gpemu-sched(1). */
int nodes_load(const char *name, struct cluster *c, struct err *err);
int nodes_parse_csv(const char *bytes, size_t n, const char *name,
		    struct cluster *c, struct err *err);

#endif
