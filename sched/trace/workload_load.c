/* SPDX-License-Identifier: MIT */
/* Finds a trace, and the reader that knows it. */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "common/util.h"
#include "common/word.h"
#include "emu/profile/profile.h"
#include "sched/trace/spans.h"
#include "sched/trace/workload.h"

static const char *const kinds[] = { "job", "cluster", "speed" };

#define SUFFIX ".csv"

static int folder_of(const char *kind, char **ret, struct err *err)
{
	_cleanup_free_ char *root = NULL;
	const char *env = secure_getenv("GPEMU_PROFILES");
	int r = 0;

	if (env && env[0])
		root = strdup(env);
	else
		r = profile_beside_executable(
			"../profiles", "../share/gpemu/profiles", &root, err);
	if (r < 0)
		return r;
	return root && asprintf(ret, "%s/%s", root, kind) >= 0 ? 0 : -ENOMEM;
}

static int is_csv(const struct dirent *e)
{
	return util_ends_in(e->d_name, SUFFIX);
}

/* Call fn with the name of each. */
static int each_name(const char *folder, void (*fn)(void *ctx, const char *),
		     void *ctx)
{
	struct dirent **v;
	int n = scandir(folder, &v, is_csv, alphasort);

	if (n < 0)
		return errno == ENOENT ? 0 : -errno;
	for (int i = 0; i < n; i++) {
		v[i]->d_name[strlen(v[i]->d_name) - strlen(SUFFIX)] = 0;
		fn(ctx, v[i]->d_name);
		free(v[i]);
	}
	free(v);
	return 0;
}

static void print_name(void *ctx, const char *name)
{
	(void)ctx;
	puts(name);
}

static void list_name(void *ctx, const char *name)
{
	word_list_add(ctx, name);
}

int workload_names_print(int kind, struct err *err)
{
	_cleanup_free_ char *folder = NULL;
	int r = folder_of(kinds[kind], &folder, err);

	return r < 0 ? r : each_name(folder, print_name, NULL);
}

/* Of a shipped file. */
static int shipped_path(const char *kind, const char *name, char **ret,
			struct err *err)
{
	_cleanup_free_ char *folder = NULL, *path = NULL;
	struct word_list words = WORD_LIST(name, strlen(name));
	int r = folder_of(kind, &folder, err);

	if (r < 0)
		return r;
	if (asprintf(&path, "%s/%s" SUFFIX, folder, name) < 0)
		return -ENOMEM;
	if (access(path, F_OK) == 0) {
		*ret = TAKE_PTR(path);
		return 0;
	}
	each_name(folder, list_name, &words);
	return err_set(err, -ENOENT,
		       "%s: neither a file nor a shipped %s%s (known: %s)",
		       name,
		       !strcmp(kind, "job")	? "trace"
		       : !strcmp(kind, "speed") ? "table of speeds"
						: kind,
		       words.hint, words.known);
}

/* The path of a shipped file of `kind`, "job", "cluster" or "speed", by name;
 * or of a path as it is. Malloc'ed. -ENOENT with a text that lists the known
 * ones. */
static int workload_path(const char *kind, const char *name, char **ret,
			 struct err *err)
{
	struct stat st;

	/* a path, or a file that is there; folders are results, which are often
	 * named after what they are of */
	if (!strchr(name, '/') && strcmp(name, "-") &&
	    (stat(name, &st) < 0 || S_ISDIR(st.st_mode)))
		return shipped_path(kind, name, ret, err);
	*ret = strdup(strcmp(name, "-") ? name : "/dev/stdin");
	return *ret ? 0 : -ENOMEM;
}

/* --- formats -------------------------------------------------------------- */

static int parse_rows(const struct reader_ops *ops, struct trace_reader *t)
{
	int at[ROWS_COLUMNS_MAX], n = t->csv.n;
	int r = rows_header(&t->csv, ops->columns, ops->n_columns,
			    ops->n_required, at);

	if (r == 0 && ops->closed)
		r = rows_closed(&t->csv, ops->columns, ops->n_columns);
	while (r == 0 && rows_next(&t->csv)) {
		if (ops->closed && t->csv.n > n)
			return rows_error(&t->csv, &t->csv.f[n],
					  "a row of %d fields, but the header "
					  "has %d",
					  t->csv.n, n);
		r = ops->row(t, at);
	}
	return r;
}

/* Does the header have all the columns that this format needs? */
static bool has_columns(const struct reader_ops *ops, struct rows csv)
{
	int at[ROWS_COLUMNS_MAX];

	csv.err = NULL;
	return rows_header(&csv, ops->columns, ops->n_columns, ops->n_required,
			   at) == 0;
}

static const struct reader_ops *reader_of(const struct trace_reader *t,
					  const char *bytes, size_t n)
{
	for (size_t i = 0; reader_table[i]; i++) {
		const struct reader_ops *ops = container_of(
			reader_table[i], struct reader_ops, plugin);

		if (ops->knows ? ops->knows(bytes, n)
			       : has_columns(ops, t->csv))
			return ops;
	}
	return NULL;
}

static int unknown(struct trace_reader *t)
{
	char known[ERR_LIST] = "";

	for (size_t i = 0; reader_table[i]; i++)
		err_list(known, reader_table[i]->name);
	return rows_error(&t->csv, NULL,
			  "unknown format: the header has neither a column "
			  "work_s nor those of another format (known: %s); see "
			  "TRACES in gpemu-sched(1)",
			  known);
}

static int no_jobs(const struct trace_reader *t)
{
	_cleanup_free_ char *counts = workload_counts_text(t->w);

	return counts ? err_set(t->csv.err, -EINVAL, "%s: %s", t->csv.name,
				counts)
		      : err_set(t->csv.err, -EINVAL,
				"%s: has no jobs, only a header", t->csv.name);
}

/* Of the format `ops`, whose first line was read as columns. */
static int parse_as(const struct reader_ops *ops, struct trace_reader *t)
{
	int r = ops->parse ? ops->parse(t) : parse_rows(ops, t);

	if (r == 0)
		r = spans_end(t);
	spans_free(t->spans);
	if (r == -E2BIG)
		rows_error(&t->csv, NULL, "more than %u jobs: use a part of it",
			   WORKLOAD_JOBS_MAX);
	if (r == 0 && !t->w->n)
		r = no_jobs(t);
	return r == 0 ? workload_settle(t->w) : r;
}

static int parse_for(enum workload_use use, const char *bytes, size_t n,
		     const char *name, struct cluster *c,
		     struct sched_workload *ret, struct err *err)
{
	const char *end = bytes + n, *begin = rows_begin(bytes, end);
	struct trace_reader t = {
		.w = ret,
		.cluster = c,
		.use = use,
		.csv = { .name = name, .at = begin, .end = end, .err = err }
	};
	const struct reader_ops *ops;
	int r = 0;

	*ret = (struct sched_workload){ 0 };
	rows_next(&t.csv);
	ops = reader_of(&t, begin, (size_t)(end - begin));
	if (!ops)
		r = t.csv.n ? unknown(&t)
			    : err_set(err, -EINVAL,
				      "%s: empty: a trace has a header and a "
				      "row for each job",
				      name);
	if (r == 0) {
		ret->format = ops->plugin.name;
		r = parse_as(ops, &t);
	}
	return r < 0 ? err_set(err, r, "%s: %s", name, strerror(-r)) : 0;
}

int workload_parse(const char *bytes, size_t n, const char *name,
		   struct cluster *c, struct sched_workload *ret,
		   struct err *err)
{
	return parse_for(WORKLOAD_RUNS, bytes, n, name, c, ret, err);
}

/* arbitrary: more than any published trace; protects against a wrong file */
enum { FILE_MAX = 1 << 30 };

static int read_path(const char *path, char **ret, size_t *ret_n,
		     struct err *err)
{
	int r = util_read_file(path, FILE_MAX, ret, ret_n);

	return r < 0 ? err_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

int workload_load(const char *name, struct cluster *c, enum workload_use use,
		  struct sched_workload *ret, struct err *err)
{
	_cleanup_free_ char *path = NULL, *bytes = NULL;
	size_t n;
	int r = workload_path("job", name, &path, err);

	if (r == 0)
		r = read_path(path, &bytes, &n, err);
	*ret = (struct sched_workload){ 0 };
	return r < 0 ? r : parse_for(use, bytes, n, path, c, ret, err);
}

int nodes_load(const char *name, struct cluster *c, struct err *err)
{
	_cleanup_free_ char *path = NULL, *bytes = NULL;
	size_t n;
	int r = workload_path("cluster", name, &path, err);

	if (r == 0)
		r = read_path(path, &bytes, &n, err);
	return r < 0 ? r : nodes_parse_csv(bytes, n, path, c, err);
}

int workload_speeds(struct sched_workload *w, const char *name, struct err *err)
{
	_cleanup_free_ char *path = NULL, *bytes = NULL;
	size_t n;
	int r;

	if (!name && !w->iterations_of)
		return 0;
	/* those of the format are the shipped ones, whatever lies here */
	r = name ? workload_path("speed", name, &path, err)
		 : shipped_path("speed", w->iterations_of, &path, err);
	if (r == 0)
		r = read_path(path, &bytes, &n, err);
	if (r == 0)
		r = speeds_parse_csv(bytes, n, path, w, err);
	return r < 0 ? r : workload_bind(w, err);
}
