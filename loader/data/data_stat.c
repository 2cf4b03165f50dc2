/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "common/program/cli.h"
#include "common/json.h"
#include "common/log.h"
#include "common/pack/pack.h"
#include "common/thread.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "loader/data/data_command.h"
#include "emu/image/image_piece.h"
#include "loader/data/data_recipe.h"
#include "loader/data/data_scan.h"
#include "loader/data/data_work.h"
#include "loader/prep/planes.h"
#include "loader/prep/unusable.h"

struct options {
	struct cli_common common;
	char *dataset;
	bool decode, verify, groups;
	uint64_t jobs;
	char *progress;
};

static const struct conf_field fields[] = {
	CLI_COMMON_FIELDS(struct options, common),
	{ CONF_KEY(dataset, CONF_STRING, struct options), .short_opt = 'd',
	  .arg = "NAME|FILE",
	  .help = "compare with the sizes of this dataset profile" },
	{ CONF_KEY(decode, CONF_BOOL, struct options),
	  .help = "decode every file and count the broken ones; exit 1 if "
		  "there are any" },
	{ CONF_KEY(verify, CONF_BOOL, struct options),
	  .help = "of a pack: check the checksum of every file; exit 1 if one "
		  "is wrong" },
	{ CONF_KEY(groups, CONF_BOOL, struct options),
	  .help = "of a pack: print its groups, one JSON array of paths per "
		  "line" },
	{ CONF_KEY(jobs, CONF_UINT, struct options), .short_opt = 'j',
	  .arg = "N", .max = 1024,
	  .help = "threads for --decode; 0: one per processor (0)" },
	{ CONF_KEY(progress, CONF_STRING, struct options), .arg = "auto|on|off",
	  .help = "show a progress bar on stderr (auto: on a terminal)" },
	{ 0 },
};

static const struct cli_program program = {
	.name = "gpemu-data stat",
	.args = "DIR|PACK",
	.n_args = 1,
	.summary = "Count and measure the files below DIR, or those of a pack.",
	.fields = fields,
};

/* The results of --decode. */
struct decoded {
	uint64_t good, broken;
	uint64_t pixels; /* of the good images */
	double worst_padding;
	uint64_t padding_bytes;
	double seconds;
	char first_broken[256];
};

struct stat_run {
	struct options *o;
	const char *dir;
	enum progress_mode progress;
	struct data_scan scan;
	uint64_t *sizes; /* sorted */
	uint64_t bytes;
	bool has_profile;
	struct dataset_profile profile;
	pthread_mutex_t lock;
	struct decoded decoded; /* lock */
};

struct worker {
	struct planes planes;
	struct decoded decoded;
};

static void worker_fini(void *worker, void *ctx)
{
	struct worker *w = worker;
	struct stat_run *s = ctx;
	struct decoded *all = &s->decoded, *d = &w->decoded;

	pthread_mutex_lock(&s->lock);
	all->good += d->good;
	all->pixels += d->pixels;
	all->padding_bytes += d->padding_bytes;
	all->worst_padding = MAX(all->worst_padding, d->worst_padding);
	/* the first broken file by path, over all threads */
	if (d->broken &&
	    (!all->broken || strcmp(d->first_broken, all->first_broken) < 0))
		memcpy(all->first_broken, d->first_broken,
		       sizeof(all->first_broken));
	all->broken += d->broken;
	pthread_mutex_unlock(&s->lock);
	planes_fini(&w->planes);
}

static int decode_item(void *worker, void *ctx, uint64_t i, struct err *err)
{
	struct worker *w = worker;
	struct stat_run *s = ctx;
	struct decoded *d = &w->decoded;
	_cleanup_free_ uint8_t *bytes = NULL;
	_cleanup_free_ char *path = NULL;
	size_t n, padding;
	int r;

	if (asprintf(&path, "%s/%s", s->dir, s->scan.files[i].path) < 0)
		return -ENOMEM;
	r = data_scan_file_read(path, &bytes, &n, err);
	if (r < 0)
		return r;
	r = planes_header(&w->planes, bytes, n);
	if (r == 0)
		r = planes_decode(&w->planes, PLANES_EIGHTHS, 0,
				  w->planes.height);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		if (!d->broken++)
			snprintf(d->first_broken, sizeof(d->first_broken),
				 "%s: %s", s->scan.files[i].path,
				 unusable_text(r));
		return 0;
	}
	padding = image_jpeg_padding(bytes, n);
	d->good++;
	d->pixels += (uint64_t)w->planes.width * w->planes.height;
	d->padding_bytes += padding;
	d->worst_padding = MAX(d->worst_padding, (double)padding / (double)n);
	return 0;
}

static int decode_all(struct stat_run *s, struct err *err)
{
	struct data_work w = {
		.label = "decode",
		.unit = "files",
		.n = s->scan.n,
		.n_threads = (unsigned)s->o->jobs,
		.progress = s->progress,
		.worker_size = sizeof(struct worker),
		.fini = worker_fini,
		.item = decode_item,
	};
	uint64_t start = tick_wall();
	int r = data_work_run(&w, s, NULL, err);

	s->decoded.seconds = (double)(tick_wall() - start) / NS_PER_S;
	return r;
}

static int gather(struct stat_run *s, struct err *err)
{
	int r = data_scan_read(s->dir, &s->scan, err);

	if (r < 0)
		return r;
	if (s->scan.n == 0)
		return err_set(err, -ENOENT, "%s: contains no files", s->dir);
	s->sizes = calloc(s->scan.n, sizeof(*s->sizes));
	if (!s->sizes)
		return -ENOMEM;
	for (uint64_t i = 0; i < s->scan.n; i++) {
		s->sizes[i] = s->scan.files[i].bytes;
		s->bytes += s->sizes[i];
	}
	data_sizes_sort(s->sizes, s->scan.n);
	if (s->o->dataset) {
		r = dataset_profile_load(s->o->dataset, &s->profile, err);
		s->has_profile = r == 0;
	}
	if (r == 0 && s->o->decode)
		r = decode_all(s, err);
	return r;
}

static double here(const struct stat_run *s, int decile)
{
	return data_sizes_quantile(s->sizes, s->scan.n, decile / 10.0);
}

static double there(const struct stat_run *s, int decile)
{
	return dataset_profile_quantile(&s->profile, decile / 10.0);
}

static double deviation(const struct stat_run *s, int decile)
{
	double want = there(s, decile);

	return want > 0 ? here(s, decile) / want - 1 : 0;
}

static void print_deciles(const struct stat_run *s)
{
	printf("\n%8s %12s", "decile", "bytes");
	if (s->has_profile)
		printf(" %12.12s %9s", s->profile.name, "deviation");
	putchar('\n');
	for (int i = 1; i <= DATA_DECILES; i++) {
		printf("%6d %% %12.0f", i * 10, here(s, i));
		if (s->has_profile)
			printf(" %12.0f %+7.2f %%", there(s, i),
			       deviation(s, i) * 100);
		putchar('\n');
	}
}

static void print_decoded(const struct stat_run *s)
{
	const struct decoded *d = &s->decoded;

	printf("\n%-8s %12" PRIu64 "\n", "images", d->good);
	printf("%-8s %12" PRIu64, "broken", d->broken);
	if (d->broken)
		printf("  first: %s", d->first_broken);
	putchar('\n');
	if (d->good)
		printf("%-8s %12.0f\n", "pixels",
		       (double)d->pixels / (double)d->good);
	printf("%-8s %11.2f%% of a file at most\n", "padding",
	       d->worst_padding * 100);
	printf("%-8s %12.0f images/s\n", "decoded",
	       d->seconds > 0 ? (double)d->good / d->seconds : 0);
}

static void print_all(const struct stat_run *s)
{
	char text[UNITS_TEXT];
	double mean = (double)s->bytes / (double)s->scan.n;

	printf("%-8s %12zu\n", "files", s->scan.n);
	printf("%-8s %12zu\n", "samples", data_scan_samples(&s->scan));
	printf("%-8s %12" PRIu64 "\n", "classes", s->scan.folders);
	printf("%-8s %12" PRIu64 "  %s\n", "bytes", s->bytes,
	       units_human_size((double)s->bytes, text));
	printf("%-8s %12" PRIu64 "\n", "min", s->sizes[0]);
	printf("%-8s %12.0f\n", "mean", mean);
	printf("%-8s %12" PRIu64 "\n", "max", s->sizes[s->scan.n - 1]);
	print_deciles(s);
	if (s->o->decode)
		print_decoded(s);
}

static json_t *profile_json(const struct stat_run *s)
{
	json_t *deciles = json_array(), *off = json_array();

	for (int i = 1; i <= DATA_DECILES; i++) {
		json_array_append_new(deciles, json_real(there(s, i)));
		json_array_append_new(off, json_real(deviation(s, i)));
	}
	return json_pack("{s:s,s:o,s:o,s:f}", "name", s->profile.name,
			 "deciles_bytes", deciles, "deviation", off,
			 "mean_bytes", dataset_profile_mean(&s->profile));
}

static json_t *decoded_json(const struct decoded *d)
{
	return json_pack("{s:I,s:I,s:I,s:f,s:I,s:f}", "images",
			 (json_int_t)d->good, "broken", (json_int_t)d->broken,
			 "pixels", (json_int_t)d->pixels, "padding_max",
			 d->worst_padding, "padding_bytes",
			 (json_int_t)d->padding_bytes, "seconds", d->seconds);
}

static int write_record(const struct stat_run *s, struct err *err)
{
	uint64_t n = s->scan.n;
	json_auto_t *j = json_pack(
		"{s:o,s:s,s:o,s:o,s:I,s:I,s:I,s:I,s:I,s:f,s:I,s:o,s:o*,s:o*"
		"}",
		"gpemu", json_version(), "command", program.name, "config",
		conf_json(fields, s->o), "directory", json_bytes(s->dir),
		"files", (json_int_t)n, "samples",
		(json_int_t)data_scan_samples(&s->scan), "classes",
		(json_int_t)s->scan.folders, "bytes", (json_int_t)s->bytes,
		"min_bytes", (json_int_t)s->sizes[0], "mean_bytes",
		(double)s->bytes / (double)n, "max_bytes",
		(json_int_t)s->sizes[n - 1], "deciles_bytes",
		data_sizes_deciles(s->sizes, n), "profile",
		s->has_profile ? profile_json(s) : NULL, "decode",
		s->o->decode ? decoded_json(&s->decoded) : NULL);

	if (!j)
		return err_set(err, -ENOMEM, "the record: out of memory");
	return json_write(j, s->o->common.json, err);
}

static int finish_stat(struct stat_run *s, int r, struct err *err)
{
	const char *json = s->o->common.json;

	if (r == 0 && json)
		r = write_record(s, err);
	if (r < 0)
		return cli_fail(r, err);
	if (!json || strcmp(json, "-"))
		print_all(s);
	return s->decoded.broken ? EXIT_STATUS_FAILED : EXIT_STATUS_DONE;
}

/* --- a pack --------------------------------------------------------------- */

/* arbitrary: large enough to make the cost of calls negligible */
enum { CHUNK = 1 << 20 };

static int sum_of(int fd, const struct pack_file *f, unsigned char *buf,
		  uint64_t *ret)
{
	XXH3_state_t *state = XXH3_createState();
	uint64_t at = 0;
	int r = state ? 0 : -ENOMEM;

	if (r == 0)
		XXH3_64bits_reset(state);
	while (r == 0 && at < f->bytes) {
		ssize_t n = util_read_all(fd, buf, MIN(f->bytes - at, CHUNK),
					  (int64_t)(f->offset + at));

		if (n <= 0) {
			r = n ? (int)n : -ESTALE;
			break;
		}
		XXH3_64bits_update(state, buf, (size_t)n);
		at += (uint64_t)n;
	}
	if (r == 0)
		*ret = XXH3_64bits_digest(state);
	XXH3_freeState(state);
	return r;
}

static int verify_pack(const struct stat_run *s, int fd, const struct pack *p,
		       struct err *err)
{
	_cleanup_free_ unsigned char *buf = malloc(CHUNK);
	const char *first = NULL;
	uint32_t broken = 0;
	int r = buf ? 0 : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < p->n_files; i++) {
		uint64_t sum = 0;

		r = sum_of(fd, &p->files[i], buf, &sum);
		if (r < 0)
			return err_set(err, r, "%s: %s: %s", s->dir,
				       p->files[i].path, strerror(-r));
		if (sum == p->files[i].sum)
			continue;
		if (!broken++)
			first = p->files[i].path;
	}
	if (broken)
		return err_set(err, -EBADMSG,
			       "%s: the checksums of %u of %u files do not "
			       "match the index; first: %s",
			       s->dir, broken, p->n_files, first);
	return r;
}

static void print_groups(const struct pack *p)
{
	for (uint32_t g = 0; g < p->n_groups; g++) {
		for (uint32_t i = p->first[g]; i < p->first[g + 1]; i++)
			grouping_print_path(stdout, p->files[i].path,
					    i == p->first[g]);
		grouping_print_end(stdout);
	}
}

static uint64_t largest_group(const struct pack *p)
{
	uint64_t most = 0;

	for (uint32_t g = 0; g < p->n_groups; g++) {
		uint64_t bytes = 0;

		for (uint32_t i = p->first[g]; i < p->first[g + 1]; i++)
			bytes += p->files[i].bytes;
		most = MAX(most, bytes);
	}
	return most;
}

static void print_pack(const struct stat_run *s, const struct pack *p,
		       const uint64_t *sizes)
{
	char text[UNITS_TEXT];
	double mean = (double)p->file_bytes / (double)p->n_files;

	printf("%-8s %12u\n", "files", p->n_files);
	printf("%-8s %12u\n", "classes", p->n_classes);
	printf("%-8s %12" PRIu64 "  %s\n", "bytes", p->file_bytes,
	       units_human_size((double)p->file_bytes, text));
	printf("%-8s %12u  of %" PRIu64 " files, %s, seed %" PRIu64 "\n",
	       "groups", p->n_groups, p->group_size, p->order, p->seed);
	printf("%-8s %12" PRIu64 "  %s, the largest\n", "group",
	       largest_group(p),
	       units_human_size((double)largest_group(p), text));
	printf("%-8s %12" PRIu64 "\n", "min", sizes[0]);
	printf("%-8s %12.0f\n", "mean", mean);
	printf("%-8s %12" PRIu64 "\n", "max", sizes[p->n_files - 1]);
	printf("\n%8s %12s\n", "decile", "bytes");
	for (int i = 1; i <= DATA_DECILES; i++)
		printf("%6d %% %12.0f\n", i * 10,
		       data_sizes_quantile(sizes, p->n_files, i / 10.0));
	if (s->o->verify)
		printf("\n%-8s %12u\n", "verified", p->n_files);
}

static int write_pack(const struct stat_run *s, const struct pack *p,
		      const uint64_t *sizes, struct err *err)
{
	json_auto_t *j = json_pack(
		"{s:o,s:o,s:I,s:I,s:I,s:I,s:I,s:s,s:I,s:I,s:I,s:I,s:o,s:b}",
		"gpemu", json_version(), "pack", json_bytes(s->dir), "version",
		(json_int_t)PACK_VERSION, "files", (json_int_t)p->n_files,
		"classes", (json_int_t)p->n_classes, "groups",
		(json_int_t)p->n_groups, "group_size",
		(json_int_t)p->group_size, "group_order", p->order, "seed",
		(json_int_t)p->seed, "bytes", (json_int_t)p->file_bytes,
		"min_bytes", (json_int_t)sizes[0], "max_bytes",
		(json_int_t)sizes[p->n_files - 1], "deciles_bytes",
		data_sizes_deciles(sizes, p->n_files), "verified",
		s->o->verify);

	if (!j)
		return err_set(err, -ENOMEM, "the record: out of memory");
	return json_write(j, s->o->common.json, err);
}

static int describe_pack(const struct stat_run *s, struct err *err)
{
	const char *json = s->o->common.json;
	_cleanup_(pack_fini) struct pack p;
	_cleanup_close_ int fd = -1;
	_cleanup_free_ uint64_t *sizes = NULL;
	int r = pack_open(s->dir, &fd, &p, err);

	if (r == 0 && s->o->verify)
		r = verify_pack(s, fd, &p, err);
	if (r < 0)
		return r;
	if (s->o->groups) {
		print_groups(&p);
		return 0;
	}
	sizes = calloc((size_t)p.n_files + 1, sizeof(*sizes));
	if (!sizes)
		return -ENOMEM;
	for (uint32_t i = 0; i < p.n_files; i++)
		sizes[i] = p.files[i].bytes;
	if (!p.n_files)
		return err_set(err, -ENOENT, "%s: contains no files", s->dir);
	data_sizes_sort(sizes, p.n_files);
	if (json)
		r = write_pack(s, &p, sizes, err);
	if (r == 0 && (!json || strcmp(json, "-")))
		print_pack(s, &p, sizes);
	return r;
}

static int wrong_use(const char *text)
{
	log_error("%s", text);
	return EXIT_STATUS_USAGE;
}

static int stat_pack(const struct stat_run *s, struct err *err)
{
	int r;

	if (s->o->decode || s->o->dataset)
		return wrong_use("--decode and --dataset need a folder: mount "
				 "the pack with gpemu-fs");
	r = describe_pack(s, err);
	if (r < 0)
		err_set(err, r, "%s", strerror(-r));
	return r < 0 ? cli_fail(r, err) : EXIT_STATUS_DONE;
}

/* --- the command ---------------------------------------------------------- */

static bool is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static int stat_folder(struct stat_run *s, struct err *err)
{
	if (s->o->verify || s->o->groups)
		return wrong_use("--verify and --groups need a pack");
	return finish_stat(s, gather(s, err), err);
}

int data_stat_main(int argc, char **argv)
{
	struct options o = { .progress = strdup("auto") };
	struct stat_run s = { .o = &o, .lock = PTHREAD_MUTEX_INITIALIZER };
	struct err err = { 0 };
	char *args[1];
	int r;

	cli_parse(&program, argc, argv, &o, args);
	s.dir = args[0];
	r = progress_parse(o.progress, &s.progress, &err);
	if (r < 0) {
		cli_fail(r, &err);
		conf_free(fields, &o);
		return EXIT_STATUS_USAGE;
	}
	if (o.jobs == 0)
		o.jobs = thread_cpus();
	r = is_file(s.dir) ? stat_pack(&s, &err) : stat_folder(&s, &err);
	data_scan_fini(&s.scan);
	free(s.sizes);
	dataset_profile_free(&s.profile);
	conf_free(fields, &o);
	return r;
}
