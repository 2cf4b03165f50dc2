/* SPDX-License-Identifier: MIT */
#include "fs/measure/points.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/json.h"
#include "common/units.h"
#include "common/util.h"

const double point_quantiles[POINT_QUANTILES] = {
	0,  .01, .05, .1,  .2,	.3,  .4,   .45,	 .5,   .6,    .7,
	.8, .9,	 .95, .97, .98, .99, .995, .998, .999, .9995, 1,
};

static const char *const names[POINT_N_KINDS] = {
	"random", "sequential", "get", "lookup", "open", "readdir", "kept"
};

static void add_point(struct points *p, enum point_kind kind, uint64_t bytes,
		      uint64_t depth, uint64_t most)
{
	if (bytes * depth <= most && p->n < POINTS_MAX)
		p->point[p->n++] = (struct point){ .kind = kind,
						   .bytes = bytes,
						   .depth = depth };
}

void points_all(struct points *ret, uint64_t most)
{
	static const uint64_t sizes[] = {
		4, 16, 64, 128, 256, 1024, 4096, 16384
	};

	*ret = (struct points){ 0 };
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		add_point(ret, POINT_RANDOM, sizes[i] * KIB, 1, most);
	for (uint64_t depth = 2; depth <= 256; depth *= 2)
		add_point(ret, POINT_RANDOM, 4 * KIB, depth, most);
	for (uint64_t depth = 2; depth <= 64; depth *= 2) {
		add_point(ret, POINT_RANDOM, 128 * KIB, depth, most);
		add_point(ret, POINT_RANDOM, POINTS_PIECE, depth, most);
	}
	add_point(ret, POINT_RANDOM, POINTS_BETWEEN, 64, most);
	add_point(ret, POINT_RANDOM, 16 * MIB, 2, most);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i += 2)
		add_point(ret, POINT_SEQUENTIAL, sizes[i] * KIB, 1, most);
	for (int kind = POINT_LOOKUP; kind <= POINT_KEPT; kind++)
		add_point(ret, kind, 0, 1, most);
}

/* `share` of the bytes, and of the requests `n`; fewer where they do not fit.
 */
static void add_gets(struct points *p, uint64_t size, uint64_t depth,
		     uint64_t n, double share)
{
	add_point(p, POINT_GET, size, depth, UINT64_MAX);
	p->point[p->n - 1].want = MIN(n, (uint64_t)(share / (double)size));
}

/* The largest power of two that is at most `most`. */
static uint64_t power_below(double most)
{
	uint64_t size = 1;

	while ((double)size * 2 <= most)
		size *= 2;
	return size;
}

/*
 * Reads one at a time, for the first byte and the rate of a connection; then
 * several, for the rate of all. The shares are arbitrary, but that most reads
 * are short: these give the quantiles, and cost the least.
 */
void points_bucket(struct points *ret, uint64_t requests, uint64_t bytes,
		   uint64_t page, uint64_t largest)
{
	double most = (double)bytes;
	uint64_t n_large = MAX(MIN(requests / 60, (uint64_t)64), (uint64_t)4);
	uint64_t large = power_below(fmin(fmin((double)largest, 8 * MIB),
					  .3 * most / (double)n_large));
	uint64_t at_once[3], n = 0;

	*ret = (struct points){ 0 };
	add_point(ret, POINT_READDIR, 0, 1, UINT64_MAX);
	ret->point[0].want =
		MIN(MIN(requests / 20, (uint64_t)100),
		    (uint64_t)(.1 * most) / MAX(page, (uint64_t)1));
	ret->point[0].want = MAX(ret->point[0].want, (uint64_t)1);
	add_gets(ret, MIN(4 * KIB, large), 1, requests / 2, .05 * most);
	if (large > 64 * KIB)
		add_gets(ret, 64 * KIB, 1, requests / 10, .05 * most);
	if (large > MIB)
		add_gets(ret, MIB, 1, requests / 20, .15 * most);
	if (large > 4 * KIB)
		add_gets(ret, large, 1, n_large, .3 * most);
	for (uint64_t i = 0, depth = 4; i < 3; i++, depth *= 4) {
		at_once[i] = MIN(4 * depth, requests / 6);
		if (at_once[i] < 3 * depth)
			at_once[i] = 0;
		n += at_once[i];
	}
	large = power_below(fmin((double)large, .35 * most / (double)n));
	for (uint64_t i = 0, depth = 4; i < 3; i++, depth *= 4)
		if (at_once[i])
			add_gets(ret, large, depth, at_once[i], .35 * most);
}

void point_fill(struct point *p, const struct hist *h, uint64_t n, uint64_t ns)
{
	p->n = n;
	p->mean_ns = hist_mean(h);
	p->per_s = ns ? (double)n * (double)NS_PER_S / (double)ns : 0;
	for (int i = 0; i < POINT_QUANTILES; i++)
		p->ns[i] = hist_quantile(h, point_quantiles[i]);
}

const char *point_text(const struct point *p, char buf[POINT_TEXT])
{
	char size[UNITS_TEXT];

	if (p->kind > POINT_GET)
		snprintf(buf, POINT_TEXT, "%s", names[p->kind]);
	else
		snprintf(buf, POINT_TEXT, "%s %s, depth %" PRIu64,
			 names[p->kind],
			 units_human_size((double)p->bytes, size), p->depth);
	return buf;
}

static struct point *find_point(struct points *p, enum point_kind kind,
				uint64_t bytes, uint64_t depth)
{
	for (size_t i = 0; i < p->n; i++) {
		struct point *at = &p->point[i];

		if (at->kind == kind && at->bytes == bytes &&
		    at->depth == depth)
			return at;
	}
	return NULL;
}

const struct point *points_find(const struct points *p, enum point_kind kind,
				uint64_t bytes, uint64_t depth)
{
	const struct point *at =
		find_point((struct points *)p, kind, bytes, depth);

	return at && at->n ? at : NULL;
}

/* --- the state file ------------------------------------------------------- */

static int kind_of(const char *name)
{
	for (int i = 0; i < POINT_N_KINDS; i++)
		if (!strcmp(names[i], name))
			return i;
	return -EINVAL;
}

static int take_point(struct points *p, const json_t *j)
{
	const char *name;
	json_int_t bytes, depth, n;
	json_t *ns;
	double per_s, mean, rest = 0;
	struct point *at;
	int kind;

	if (json_unpack((json_t *)j, "{s:s, s:I, s:I, s:I, s:F, s:F, s:o, s?F}",
			"kind", &name, "bytes", &bytes, "depth", &depth, "n",
			&n, "per_s", &per_s, "mean_ns", &mean, "ns", &ns,
			"rest_ns", &rest) < 0 ||
	    (kind = kind_of(name)) < 0 || n < 1 ||
	    !(kind == POINT_KEPT ? per_s >= 0 : per_s > 0) || !(mean >= 0) ||
	    !(rest >= 0) || json_array_size(ns) != POINT_QUANTILES)
		return -EINVAL;
	at = find_point(p, kind, (uint64_t)bytes, (uint64_t)depth);
	if (!at)
		return 0; /* one that another version measured */
	for (size_t i = 0; i < POINT_QUANTILES; i++) {
		at->ns[i] = json_number_value(json_array_get(ns, i));
		if (!(at->ns[i] >= 0))
			return -EINVAL;
	}
	at->n = (uint64_t)n;
	at->per_s = per_s;
	at->mean_ns = mean;
	at->rest_ns = rest;
	return 0;
}

static int take_line(struct points *p, const char *text, const char *what,
		     unsigned number)
{
	json_auto_t *j = json_loads(text, 0, NULL);
	const char *was;

	if (!j)
		return -EINVAL;
	if (number > 1)
		return take_point(p, j);
	was = json_string_value(json_object_get(j, "measure"));
	if (!was)
		return -EINVAL;
	return !strcmp(was, what) ? 0 : -EXDEV;
}

/* Does a file that has no whole line begin as a state file does? */
static bool is_begun(const char *text, size_t n)
{
	static const char head[] = "{\"measure\": ";

	return !strncmp(text, head, MIN(n, sizeof(head) - 1));
}

/* A line that a killed run left unfinished is cut off. */
static int take_lines(struct points *p, FILE *f, const char *file,
		      const char *what, struct err *err)
{
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	unsigned number = 0;
	off_t whole = 0;
	ssize_t n;

	while ((n = getline(&line, &size, f)) > 0 && line[n - 1] == '\n') {
		int r = take_line(p, line, what, ++number);

		/* of one that never began: its options may have been wrong */
		if (r == -EXDEV && (n = getline(&line, &size, f)) < 0) {
			number = 0;
			break;
		}
		if (r == -EXDEV)
			return err_set(err, -EINVAL,
				       "%s is of another measurement than %s: "
				       "name another --state",
				       file, what);
		if (r < 0)
			return err_set(err, r, "%s:%u: not a measured point",
				       file, number);
		whole = ftello(f);
	}
	if (!number && n > 0 && !is_begun(line, (size_t)n))
		return err_set(err, -EINVAL,
			       "%s: not a state file: name another --state",
			       file);
	if (ftruncate(fileno(f), whole) < 0 || fseeko(f, whole, SEEK_SET) < 0)
		return -errno;
	return (int)number;
}

/* O_NONBLOCK: a pipe would wait for what never comes. */
static int open_state(const char *file, FILE **ret)
{
	_cleanup_close_ int fd =
		open(file, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK,
		     0666);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	*ret = fdopen(fd, "a+");
	if (!*ret)
		return -ENOMEM;
	TAKE_FD(fd);
	rewind(*ret);
	return 0;
}

int points_resume(struct points *p, const char *file, const char *what,
		  FILE **ret, struct err *err)
{
	FILE *f = NULL;
	int r = open_state(file, &f);

	*ret = NULL;
	if (r < 0)
		return err_set(err, r, "%s: %s", file, strerror(-r));
	r = take_lines(p, f, file, what, err);
	if (r == 0) {
		json_auto_t *head = json_pack("{s:s}", "measure", what);

		r = head ? 0 : -ENOMEM;
		if (r == 0) {
			json_dumpf(head, f, 0);
			fputc('\n', f);
			r = util_flush(f);
		}
	}
	if (r < 0) {
		fclose(f);
		return err_set(err, r, "%s: %s", file, strerror(-r));
	}
	*ret = f;
	return 0;
}

int point_save(const struct point *p, FILE *f)
{
	json_t *ns = json_array();
	json_auto_t *j = json_pack("{s:s, s:I, s:I, s:I, s:f, s:f, s:f, s:o}",
				   "kind", names[p->kind], "bytes",
				   (json_int_t)p->bytes, "depth",
				   (json_int_t)p->depth, "n", (json_int_t)p->n,
				   "per_s", p->per_s, "mean_ns", p->mean_ns,
				   "rest_ns", p->rest_ns, "ns", ns);

	for (int i = 0; i < POINT_QUANTILES; i++)
		json_array_append_new(ns, json_real(p->ns[i]));
	if (!j || json_dumpf(j, f, 0) < 0 || fputc('\n', f) < 0 || fflush(f))
		return errno ? -errno : -EIO;
	return 0;
}
