/* SPDX-License-Identifier: MIT */
/*
 * gpemu-profile measure --storage: measures a folder or a file, whatever is
 * below it, or a bucket of an object store, and writes a storage profile
 * (fs/measure).
 */
#include "emu/tool/profile_tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/json.h"
#include "common/program/child.h"
#include "common/program/progress.h"
#include "common/units.h"
#include "common/util.h"
#include "common/version.h"
#include "fs/measure/fit.h"
#include "fs/measure/objects.h"
#include "fs/measure/probe.h"

struct options {
	struct cli_common common;
	bool is_bucket;
	char *storage, *output, *state, *against, *name;
	uint64_t space;	   /* of a folder, */
	double seconds;	   /* and a file */
	uint64_t requests; /* of a bucket, */
	uint64_t download; /* bytes */
};

#define OUTPUT_FIELDS                                                         \
	{ CONF_KEY(name, CONF_STRING, struct options), .arg = "NAME",         \
	  .help = "name of the profile (default: that of the output)" },      \
		PROFILE_TOOL_FILE(output, struct options, "the profile"),     \
		PROFILE_TOOL_FILE(against, struct options,                    \
				  "compare this profile with the device, by " \
				  "name or file"),                            \
		PROFILE_TOOL_FILE(                                            \
			state, struct options,                                \
			"state file with the measured points, from "          \
			"which a stopped run continues (default: the "        \
			"name of the output with .state)")

static const struct conf_field fields[] = {
	CLI_COMMON_FIELDS(struct options, common),
	{ CONF_KEY(storage, CONF_STRING, struct options), .arg = "PATH",
	  .help = "a folder, in which files are made and removed, or a file of "
		  "at least 16 MiB, which is only read" },
	{ CONF_KEY(space, CONF_SIZE, struct options), .arg = "SIZE", .min = 0,
	  .max = 1e15,
	  .help = "limit of bytes written into the folder; choose more than "
		  "the device's own cache (default 1G)" },
	{ CONF_KEY(seconds, CONF_DOUBLE, struct options), .arg = "S",
	  .min = .01, .max = 3600,
	  .help = "time per point, of some 40 points (default 2)" },
	OUTPUT_FIELDS,
	{ 0 },
};

static const struct conf_field bucket_fields[] = {
	CLI_COMMON_FIELDS(struct options, common),
	{ CONF_KEY(storage, CONF_STRING, struct options),
	  .arg = "s3://BUCKET[/PREFIX]",
	  .help = "objects below a prefix, which are only read, with the keys "
		  "and the endpoint that AWS's tools take" },
	{ CONF_KEY(requests, CONF_UINT, struct options), .arg = "N",
	  .min = POINTS_REQUESTS, .max = 1e9,
	  .help = "limit of requests, LIST and GET (default 2000)" },
	{ CONF_KEY(download, CONF_SIZE, struct options), .arg = "SIZE",
	  .min = POINTS_BYTES, .max = 1e15,
	  .help = "limit of bytes received (default 1G)" },
	OUTPUT_FIELDS,
	{ 0 },
};

/* What is measured: a folder or file, or a bucket. */
struct target {
	bool is_bucket;
	struct area area;
	struct objects objects;
};

static const char scheme[] = "s3:";

/* --- measuring ------------------------------------------------------------ */

static int measure(const struct options *o, struct target *t, struct point *p,
		   struct tick *tick, struct stop *stop, const char **why,
		   struct err *err)
{
	return t->is_bucket ? objects_probe(&t->objects, p, stop, err)
			    : probe(&t->area, p,
				    (uint64_t)(o->seconds * (double)NS_PER_S),
				    tick, stop, why, err);
}

static int measure_all(const struct options *o, struct target *t,
		       struct points *p, FILE *state, struct stop *stop,
		       struct err *err)
{
	struct tick *tick = tick_new(1, 0);
	char text[POINT_TEXT];
	const char *why = NULL;
	struct progress bar;
	int r = tick ? 0 : -ENOMEM;

	progress_init(&bar, "points", p->n, PROGRESS_AUTO);
	for (size_t i = 0; r == 0 && i < p->n; i++) {
		struct point *at = &p->point[i];

		progress_update(&bar, i, point_text(at, text));
		if (at->n)
			continue;
		r = measure(o, t, at, tick, stop, &why, err);
		if (r == 0)
			r = point_save(at, state);
		else if (r == -ENODATA)
			r = 0;
		if (r == 0 && stop_came(stop))
			r = -EINTR;
	}
	progress_end(&bar);
	tick_free(tick);
	if (r == 0 && why)
		fprintf(stderr, "gpemu-profile measure: not measured: %s\n",
			why);
	if (r == 0 && !t->is_bucket && !t->area.direct)
		fprintf(stderr,
			"gpemu-profile measure: %s has no O_DIRECT: reads may "
			"come from the page cache\n",
			o->storage);
	return r;
}

/* --- what a profile says of it -------------------------------------------- */

static double off(double model, double measured)
{
	return measured > 0 ? 100 * (model / measured - 1) : 0;
}

static json_t *compare_json(const struct point *m, const struct point *s)
{
	char text[POINT_TEXT];

	return json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}",
			 "point", point_text(m, text), "per_s", m->per_s,
			 "model_per_s", s->per_s, "p50_us",
			 m->ns[POINT_P50] / 1e3, "model_p50_us",
			 s->ns[POINT_P50] / 1e3, "p99_us",
			 m->ns[POINT_P99] / 1e3, "model_p99_us",
			 s->ns[POINT_P99] / 1e3, "rest_us", m->rest_ns / 1e3,
			 "model_rest_us", s->rest_ns / 1e3);
}

static int compare_points(const struct storage_profile *profile,
			  const struct points *p, json_t *rows)
{
	char text[POINT_TEXT], a[UNITS_TEXT], b[UNITS_TEXT];

	printf("%-28s %10s %7s %9s %7s %9s %7s\n", "measured, error of profile",
	       "ops/s", "", "p50", "", "p99", "");
	for (size_t i = 0; i < p->n; i++) {
		const struct point *m = &p->point[i];
		struct point s;

		if (!m->n)
			continue;
		if (predict_point(profile, m, &s) < 0)
			return -ENOMEM;
		printf("%-28s ", point_text(m, text));
		if (m->kind == POINT_KEPT)
			printf("%18s", "");
		else
			printf("%10.5g %+5.0f %%", m->per_s,
			       off(s.per_s, m->per_s));
		/* first bytes of several GETs wait for the bytes of others,
		 * which the model does not say */
		if (m->kind != POINT_GET || m->depth == 1)
			printf(" %9s %+5.0f %% %9s %+5.0f %%",
			       units_human_duration(m->ns[POINT_P50], a),
			       off(s.ns[POINT_P50], m->ns[POINT_P50]),
			       units_human_duration(m->ns[POINT_P99], b),
			       off(s.ns[POINT_P99], m->ns[POINT_P99]));
		putchar('\n');
		json_array_append_new(rows, compare_json(m, &s));
	}
	return 0;
}

static int notes_of(const struct options *o, const struct target *t, char **ret)
{
	const struct area *a = &t->area;
	char size[UNITS_TEXT];

	if (t->is_bucket)
		return asprintf(ret,
				"GETs of %zu objects of %s: the profile has "
				"what this machine sees, its network included. "
				"Not looked for: limits of requests a second, "
				"writes, prices.",
				t->objects.n, o->storage) < 0
			       ? -ENOMEM
			       : 0;
	return asprintf(ret,
			"Reads of %s, %s, in %s: the profile has what a "
			"program on this machine sees, its kernel and network "
			"included. Bursts and caches of the device that are "
			"larger than that are in it too.",
			units_human_size((double)a->bytes, size),
			a->direct ? "with O_DIRECT"
				  : "perhaps from the page cache, as there is "
				    "no O_DIRECT",
			a->folder ? "a file made for it" : o->storage) < 0
		       ? -ENOMEM
		       : 0;
}

static int source_of(char **ret)
{
	char date[32], host[65] = "";
	time_t now = time(NULL);
	struct tm tm;

	gethostname(host, sizeof(host) - 1);
	strftime(date, sizeof(date), "%F", localtime_r(&now, &tm));
	return asprintf(ret,
			"measured by gpemu-profile measure --storage (%s) on "
			"%s, on %s",
			GPEMU_VERSION, date, host) < 0
		       ? -ENOMEM
		       : 0;
}

static int write_profile(const struct options *o, const struct target *t,
			 const struct points *p, struct storage_profile **ret,
			 struct err *err)
{
	_cleanup_free_ char *source = NULL, *notes = NULL, *bytes = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&bytes, &n);
	int r = f ? source_of(&source) : -ENOMEM;

	if (r == 0)
		r = notes_of(o, t, &notes);
	if (r == 0)
		r = fit_write(p, &(struct fit_text){ o->name, source, notes },
			      f, err);
	if (f && fclose(f) && r == 0)
		r = -ENOMEM;
	/* what is written reads back */
	if (r == 0)
		r = storage_profile_parse(bytes, n, "measured", ret, err);
	if (r == 0 && o->output)
		r = profile_tool_save(bytes, n, o->output, err);
	return r;
}

static int finish_points(const struct options *o, const struct target *t,
			 const struct points *p, json_t **ret, struct err *err)
{
	struct storage_profile *profile = NULL;
	json_t *rows = json_array();
	int r = 0;

	*ret = json_pack("{s:s, s:o}", "storage", o->storage, "points", rows);
	if (o->output)
		r = write_profile(o, t, p, &profile, err);
	if (r == 0 && o->against) {
		storage_profile_free(TAKE_PTR(profile));
		r = storage_profile_load(o->against, &profile, err);
	}
	if (r == 0 && t->is_bucket)
		storage_profile_expose(profile);
	if (r == 0)
		r = compare_points(profile, p, rows);
	if (r == 0 && t->is_bucket) {
		uint64_t requests, bytes;

		objects_used(&t->objects, &requests, &bytes);
		json_add_integer(*ret, "requests", requests);
		json_add_integer(*ret, "bytes", bytes);
	}
	storage_profile_free(profile);
	return r;
}

static size_t n_measured(const struct points *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++)
		n += p->point[i].n > 0;
	return n;
}

/* A state is of this path, at `base`, with this limit alone. */
static int resume(const struct options *o, struct points *p, const char *base,
		  uint64_t bytes, FILE **ret_state, struct err *err)
{
	char what[512];
	size_t known;
	int r;

	snprintf(what, sizeof(what), "%s%s%s, %llu bytes", o->storage,
		 *base ? " at " : "", base, (unsigned long long)bytes);
	r = points_resume(p, o->state, what, ret_state, err);
	known = r == 0 ? n_measured(p) : 0;
	if (known)
		fprintf(stderr,
			"gpemu-profile measure: %zu of %zu points are taken "
			"from %s; remove it to measure them again\n",
			known, p->n, o->state);
	return r;
}

/* Before anything is sent: it may cost money. */
static void announce(const struct options *o)
{
	char size[UNITS_TEXT];

	fprintf(stderr,
		"gpemu-profile measure: at most %llu requests (GET, and up to "
		"6 %% of them LIST) and %s from %s; nothing is written\n",
		(unsigned long long)o->requests,
		units_human_size((double)o->download, size), o->storage);
}

static void report_used(const struct objects *b)
{
	uint64_t requests = 0, bytes = 0;
	char size[UNITS_TEXT];

	if (b->bucket)
		objects_used(b, &requests, &bytes);
	if (requests)
		fprintf(stderr,
			"gpemu-profile measure: requests sent: %llu, received: "
			"%s\n",
			(unsigned long long)requests,
			units_human_size((double)bytes, size));
}

/* Open what is measured, then its points. */
static int open_target(const struct options *o, struct stop *stop,
		       struct target *t, struct points *p, FILE **ret_state,
		       struct err *err)
{
	uint64_t sent, got;
	int r;

	if (t->is_bucket) {
		announce(o);
		r = objects_open(o->storage + strlen(scheme), o->requests, stop,
				 &t->objects, err);
		if (r < 0)
			return r;
		objects_used(&t->objects, &sent, &got);
		points_bucket(p, o->requests,
			      o->download - MIN(got, o->download / 2),
			      t->objects.page, t->objects.object[0].bytes);
		return resume(o, p, bucket_base(t->objects.bucket), o->download,
			      ret_state, err);
	}
	points_all(p, PROBE_BYTES);
	r = resume(o, p, "", o->space, ret_state, err);
	return r < 0 ? r : area_open(o->storage, o->space, stop, &t->area, err);
}

static int run_points(const struct options *o, bool is_bucket,
		      struct stop *stop, json_t **ret, struct err *err)
{
	struct target t = { .is_bucket = is_bucket,
			    .area = { .dirfd = -1, .fd = -1 } };
	struct points points = { 0 };
	FILE *state = NULL;
	int r = open_target(o, stop, &t, &points, &state, err);

	if (r == 0) {
		r = measure_all(o, &t, &points, state, stop, err);
		if (r == 0)
			r = finish_points(o, &t, &points, ret, err);
	}
	if (is_bucket) {
		report_used(&t.objects);
		objects_close(&t.objects);
	} else
		area_close(&t.area);
	if (state)
		fclose(state);
	/* one without a point would only stop the next try, of another path */
	if (r < 0 && state && !n_measured(&points))
		unlink(o->state);
	return r;
}

static int defaults_of(struct options *o)
{
	const char *out = o->output ? o->output : o->against;
	const char *slash = strrchr(out, '/');

	if (!o->state && asprintf(&o->state, "%s.state",
				  o->output ? o->output : "storage") < 0)
		o->state = NULL;
	if (!o->name)
		o->name = strndup(slash ? slash + 1 : out,
				  strcspn(slash ? slash + 1 : out, "."));
	return o->state && o->name ? 0 : -ENOMEM;
}

/* Is the --storage of a command line a bucket? */
static bool of_bucket(int argc, char **argv)
{
	static const char option[] = "--storage";

	for (int i = 1; i < argc; i++) {
		const char *value = argv[i] + strlen(option);

		if (strncmp(argv[i], option, strlen(option)) != 0)
			continue;
		if (*value != '=')
			value = i + 1 < argc ? argv[i + 1] : "";
		else
			value++;
		return !strncmp(value, scheme, strlen(scheme));
	}
	return false;
}

static int measure_storage(void *options, char **args, FILE *f, json_t **ret,
			   struct err *err)
{
	struct options *o = options;
	struct storage_profile *against = NULL;
	struct stop stop = { .fd = -1 };
	int r;

	(void)args;
	(void)f;
	if (!o->output && !o->against)
		return err_set(err, -EDOM, "--output or --against is missing");
	r = defaults_of(o);
	/* before minutes of measurements */
	if (r == 0 && o->against)
		r = storage_profile_load(o->against, &against, err);
	storage_profile_free(against);
	if (r == 0)
		r = stop_init(&stop, err);
	if (r == 0)
		r = run_points(o, o->is_bucket, &stop, ret, err);
	if (r == -EINTR && access(o->state, F_OK) < 0)
		fprintf(stderr, "gpemu-profile measure: stopped; nothing is "
				"measured yet\n");
	else if (r == -EINTR)
		fprintf(stderr,
			"gpemu-profile measure: stopped; the measured points "
			"are in %s, and the same command continues from "
			"there\n",
			o->state);
	if (r == -EINTR)
		stop_raise(&stop);
	stop_fini(&stop);
	return r;
}

int profile_tool_measure_storage(int argc, char **argv)
{
	static const struct cli_program programs[] = {
		{ .name = "gpemu-profile measure",
		  .summary =
			  "Measure the storage below a path, and write a "
			  "storage profile, or compare one with it. Options of "
			  "a bucket: --storage s3://x --help.",
		  .fields = fields },
		{ .name = "gpemu-profile measure",
		  .summary = "Measure a bucket of an object store, and write a "
			     "storage profile, or compare one with it.",
		  .fields = bucket_fields },
	};
	bool is_bucket = of_bucket(argc, argv);
	struct options o = { .is_bucket = is_bucket,
			     .space = 1024 * MIB,
			     .seconds = 2,
			     .requests = 2000,
			     .download = 1024 * MIB };

	return profile_tool_run(&programs[is_bucket], argc, argv, &o, NULL,
				measure_storage);
}
