/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/statvfs.h>

#include "common/program/progress.h"
#include "common/replace.h"
#include "common/tick.h"
#include "emu/image/image.h"
#include "loader/data/data_command.h"
#include "common/program/cli.h"
#include "common/json.h"
#include "common/log.h"
#include "common/system/mkdir_all.h"
#include "common/thread.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/profile/profile.h"
#include "loader/data/data_recipe.h"
#include "loader/data/data_scan.h"
#include "loader/data/data_work.h"

/*
 * --- contents -------------------------------------------------------------
 *
 * Writing the files of a recipe into a folder, on several threads.
 */

struct data_fill_counts {
	uint64_t files;	  /* written in this run */
	uint64_t bytes;	  /* bytes in them */
	uint64_t kept;	  /* kept from an earlier run */
	uint64_t encodes; /* attempts at a JPEG */
	uint64_t padding_bytes;
	double worst_padding;	   /* as a share of a file */
	uint64_t pool_ns, fill_ns; /* wall time */
};

enum {
	/* Textures to cut images from. measured: 0.3 s each to synthesise */
	PIECES_LEAST = 4,
	PIECES_MOST = 16,
	FILES_PER_PIECE = 50,
	PIECE_WIDTH = 1536,
	PIECE_HEIGHT = 1152,
};

struct fill {
	const struct data_recipe *recipe;
	struct dataset_files files;
	const uint64_t *sizes;
	const char *dir;
	int dir_fd;
	struct image_pool pool;
	struct data_scan sources; /* files of --from, shuffled */
	pthread_mutex_t lock;
	struct data_fill_counts counts; /* lock */
};

struct worker {
	struct image image;
	uint8_t *bytes; /* for content random */
	size_t capacity;
	struct data_fill_counts counts;
};

static bool is_jpeg(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot && (!strcasecmp(dot, ".jpg") || !strcasecmp(dot, ".jpeg"));
}

/* The pictures of --from, in the seed's order; skips other files. */
static int find_sources(struct fill *f, struct err *err)
{
	struct rng rng = rng_stream(f->recipe->seed, "data.from", 0);
	struct data_scan *s = &f->sources;
	uint64_t n = 0;
	int r = data_scan_read(f->recipe->from, s, err);

	if (r < 0)
		return r;
	for (uint64_t i = 0; i < s->n; i++) {
		struct data_scan_file file = s->files[i];

		if (!is_jpeg(file.path))
			continue;
		s->files[i] = s->files[n];
		s->files[n++] = file;
	}
	if (n == 0)
		return err_set(err, -ENOENT,
			       "%s: contains no .jpg or .jpeg file",
			       f->recipe->from);
	for (uint64_t i = n; i > 1; i--) {
		uint64_t k = rng_below(&rng, i);
		struct data_scan_file file = s->files[k];

		s->files[k] = s->files[i - 1];
		s->files[i - 1] = file;
	}
	f->pool.n = (unsigned)MIN(f->pool.n, n);
	return 0;
}

static int load_texture(const char *path, struct image_texture *ret,
			struct err *err)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t n;
	int r = data_scan_file_read(path, &bytes, &n, err);

	if (r < 0)
		return r;
	r = image_texture_decode(bytes, n, ret);
	return r < 0 ? err_set(err, r, "%s: %s", path,
			       r == -EBADMSG ? "not a usable JPEG"
					     : strerror(-r))
		     : 0;
}

static int piece_item(void *worker, void *ctx, uint64_t i, struct err *err)
{
	struct fill *f = ctx;
	struct rng rng = rng_stream(f->recipe->seed, "data.texture", i);
	_cleanup_free_ char *path = NULL;
	struct image_texture t;
	int r;

	(void)worker;
	if (!f->recipe->from)
		r = image_texture_synthesise(PIECE_WIDTH, PIECE_HEIGHT, &rng,
					     &t);
	else if (asprintf(&path, "%s/%s", f->recipe->from,
			  f->sources.files[i].path) < 0)
		r = -ENOMEM;
	else
		r = load_texture(path, &t, err);
	return r < 0 ? r : image_piece_init(&f->pool.pieces[i], &t);
}

static int fill_pool(struct fill *f, unsigned n_threads,
		     enum progress_mode progress, struct err *err)
{
	struct data_work w = {
		.label = "textures",
		.unit = "textures",
		.n_threads = n_threads,
		.progress = progress,
		.worker_size = 1,
		.item = piece_item,
	};
	uint64_t n = f->recipe->files / FILES_PER_PIECE;
	int r = 0;

	f->pool.n = (unsigned)MIN(MAX(n, PIECES_LEAST), PIECES_MOST);
	f->pool.mirror = f->recipe->from;
	f->pool.pieces = calloc(f->pool.n, sizeof(*f->pool.pieces));
	if (!f->pool.pieces)
		return -ENOMEM;
	if (f->recipe->from)
		r = find_sources(f, err);
	if (r < 0)
		return r;
	w.n = f->pool.n;
	return data_work_run(&w, f, NULL, err);
}

static int worker_init(void *worker, void *ctx, struct err *err)
{
	struct worker *w = worker;
	struct fill *f = ctx;

	(void)err;
	return f->files.jpeg ? image_init(&w->image, &f->pool) : 0;
}

static void worker_fini(void *worker, void *ctx)
{
	struct worker *w = worker;
	struct fill *f = ctx;
	struct data_fill_counts *all = &f->counts;

	pthread_mutex_lock(&f->lock);
	all->files += w->counts.files;
	all->bytes += w->counts.bytes;
	all->kept += w->counts.kept;
	all->encodes += w->image.n_encodes;
	all->padding_bytes += w->image.padding_bytes;
	all->worst_padding = MAX(all->worst_padding, w->image.worst_padding);
	pthread_mutex_unlock(&f->lock);
	image_fini(&w->image);
	free(w->bytes);
}

/* Write under a name that loaders ignore, then rename. */
static int write_file(int dir_fd, const char *path, const uint8_t *v, size_t n)
{
	struct replace file;
	_cleanup_close_ int fd = replace_begin(&file, dir_fd, path, 0666);

	return fd < 0 ? fd : replace_end(&file, util_write_all(fd, v, n));
}

/* Content random: incompressible bytes. */
static int random_bytes(struct worker *w, const struct fill *f, uint64_t i,
			size_t n)
{
	if (n > w->capacity) {
		free(w->bytes);
		w->capacity = 0;
		w->bytes = malloc(n);
		if (!w->bytes)
			return -ENOMEM;
		w->capacity = n;
	}
	dataset_files_random(&f->files, i, 0, w->bytes, n);
	return 0;
}

static int file_item(void *worker, void *ctx, uint64_t i, struct err *err)
{
	struct worker *w = worker;
	struct fill *f = ctx;
	struct rng rng = rng_stream(f->recipe->seed, "data.file", i);
	size_t n = f->sizes[i];
	char path[DATASET_FILES_PATH];
	struct stat st;
	int r;

	dataset_files_path(&f->files, i, path);
	if (fstatat(f->dir_fd, path, &st, 0) == 0 && S_ISREG(st.st_mode) &&
	    (uint64_t)st.st_size == n) {
		w->counts.kept++;
		return 0;
	}
	r = f->files.jpeg ? image_make(&w->image, n, &rng, err)
			  : random_bytes(w, f, i, n);
	if (r < 0)
		return r;
	r = write_file(f->dir_fd, path,
		       f->files.jpeg ? w->image.bytes : w->bytes, n);
	if (r < 0)
		return err_set(err, r, "%s/%s: %s", f->dir, path, strerror(-r));
	w->counts.files++;
	w->counts.bytes += n;
	return 0;
}

static int make_folders(const struct fill *f, struct err *err)
{
	for (uint64_t i = 0; i < f->recipe->classes; i++) {
		char name[DATASET_FILES_PATH];

		dataset_files_folder(i, name);
		if (mkdirat(f->dir_fd, name, 0777) < 0 && errno != EEXIST)
			return err_set(err, -errno, "%s/%s: %s", f->dir, name,
				       strerror(errno));
	}
	return 0;
}

static int run_fill(struct fill *f, unsigned n_threads,
		    enum progress_mode progress, struct err *err)
{
	struct data_work w = {
		.label = "files",
		.unit = "files",
		.n = f->recipe->files,
		.n_threads = n_threads,
		.progress = progress,
		.worker_size = sizeof(struct worker),
		.init = worker_init,
		.fini = worker_fini,
		.item = file_item,
	};
	uint64_t start = tick_wall(), ready;
	int r = make_folders(f, err);

	if (r == 0 && f->files.jpeg)
		r = fill_pool(f, n_threads, progress, err);
	ready = tick_wall();
	if (r == 0)
		r = data_work_run(&w, f, NULL, err);
	f->counts.pool_ns = ready - start;
	f->counts.fill_ns = tick_wall() - ready;
	return r;
}

/*
 * Create the class folders and every file of `sizes` that is missing or has
 * another size. A file appears whole or not at all. The bytes depend on the
 * recipe alone, not on the number of threads. -EINTR: a signal came; -errno
 * with a text. `ret` is filled in either way.
 */
static int data_fill(const struct data_recipe *recipe, const char *dir,
		     const uint64_t *sizes, unsigned n_threads,
		     enum progress_mode progress, struct data_fill_counts *ret,
		     struct err *err)
{
	_cleanup_close_ int dir_fd =
		open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct fill f = { .recipe = recipe,
			  .files = data_recipe_files(recipe),
			  .sizes = sizes,
			  .dir = dir,
			  .dir_fd = dir_fd,
			  .lock = PTHREAD_MUTEX_INITIALIZER };
	int r;

	if (dir_fd < 0)
		return err_set(err, -errno, "%s: %s", dir, strerror(errno));
	r = run_fill(&f, n_threads, progress, err);
	for (unsigned i = 0; f.pool.pieces && i < f.pool.n; i++)
		image_piece_fini(&f.pool.pieces[i]);
	free(f.pool.pieces);
	data_scan_fini(&f.sources);
	*ret = f.counts;
	return r;
}

/* Accepts "class_0007/img_00001234.bin" and nothing that is only similar. */
static bool is_ours(const char *path)
{
	uint64_t class, number;
	char end[8] = "";
	int n = 0;

	return sscanf(path, "class_%" SCNu64 "/img_%" SCNu64 ".%7[A-Za-z]%n",
		      &class, &number, end, &n) == 3 &&
	       !path[n] && (!strcmp(end, "JPEG") || !strcmp(end, "bin"));
}

/* Remove the files and folders that any recipe made, and its record. */
static int data_fill_clear(const char *dir, struct err *err)
{
	_cleanup_close_ int dir_fd =
		open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct data_scan s;
	int r = data_scan_read(dir, &s, err);

	for (uint64_t i = 0; r == 0 && i < s.n; i++) {
		char *path = s.files[i].path;

		if (!is_ours(path))
			continue;
		if (unlinkat(dir_fd, path, 0) < 0) {
			r = err_set(err, -errno, "%s/%s: %s", dir, path,
				    strerror(errno));
			break;
		}
		/* the folder is removed after its last file, unless it has
		 * other files */
		*strchr(path, '/') = 0;
		unlinkat(dir_fd, path, AT_REMOVEDIR);
	}
	data_scan_fini(&s);
	return r;
}

enum {
	/* arbitrary: enough for a first look, 110 MB of ImageNet */
	DEFAULT_FILES = 1000,
};

struct options {
	struct cli_common common;
	struct data_recipe recipe;
	uint64_t jobs;
	bool force;
	char *progress;
};

#define RECIPE(member) offsetof(struct options, recipe.member)

static const struct conf_field fields[] = {
	CLI_COMMON_FIELDS(struct options, common),
	{ "dataset", CONF_STRING, RECIPE(dataset), .short_opt = 'd',
	  PROFILE_NAME(dataset), .arg = "NAME|FILE",
	  .help = "dataset profile whose file sizes to follow (imagenet)" },
	{ "files", CONF_UINT, RECIPE(files), .short_opt = 'n', .arg = "N",
	  .min = 1, .max = 4e9, .help = "number of files (1000)" },
	{ "classes", CONF_UINT, RECIPE(classes), .short_opt = 'c', .arg = "N",
	  .max = 1e6,
	  .help = "number of class folders; 0: as many as the profile has, "
		  "with 10 files each at least (0)" },
	{ "content", CONF_STRING, RECIPE(content), .arg = "jpeg|random",
	  .help = "content of the files (jpeg)" },
	{ "from", CONF_STRING, RECIPE(from), .arg = "DIR",
	  .help = "cut the images out of the JPEGs below DIR instead of "
		  "synthesising them" },
	{ "scale_bytes", CONF_DOUBLE, RECIPE(scale_bytes), .arg = "X",
	  .min = 1e-6, .max = 1e6,
	  .help = "multiply every size: 0.1 has the profile's shape in a "
		  "tenth of the bytes (1)" },
	{ CONF_KEY(jobs, CONF_UINT, struct options), .short_opt = 'j',
	  .arg = "N", .max = 1024,
	  .help = "threads; 0: one per processor (0)" },
	{ CONF_KEY(force, CONF_BOOL, struct options), .cli_only = true,
	  .help = "replace files that were made with other options, and write "
		  "next to files of others" },
	{ CONF_KEY(progress, CONF_STRING, struct options), .arg = "auto|on|off",
	  .help = "show a progress bar on stderr (auto: on a terminal)" },
	{ 0 },
};

static const struct cli_kind kinds[] = {
	{ "dataset", .print = profile_names_print, .which = PROFILE_DATASET },
	{ 0 },
};

static const struct cli_program program = {
	.name = "gpemu-data make",
	.args = "DIR",
	.n_args = 1,
	.summary = "Make a dataset in class folders, with the file sizes of a "
		   "dataset profile and real content.",
	.notes =
		"The same options and seed make the same bytes. An interrupted "
		"run continues where it stopped when it is started again.",
	.fields = fields,
	.kinds = kinds,
};

struct make {
	struct options *o;
	const char *dir;
	struct dataset_profile profile;
	uint64_t *sizes;
	uint64_t bytes;
	enum progress_mode progress;
	bool was_there;
	struct data_fill_counts counts;
};

/* Fill in what the options left out, from the profile or by default. */
static int complete_recipe(struct make *m, struct err *err)
{
	struct data_recipe *r = &m->o->recipe;
	int e = dataset_profile_load(r->dataset, &m->profile, err);

	if (e < 0)
		return e;
	r->seed = m->o->common.seed;
	if (r->classes == 0)
		r->classes = dataset_files_classes(&m->profile, r->files);
	if (m->o->jobs == 0)
		m->o->jobs = thread_cpus();
	e = data_recipe_sizes(r, &m->profile, &m->sizes, err);
	for (uint64_t i = 0; e == 0 && i < r->files; i++)
		m->bytes += m->sizes[i];
	return e;
}

static int check_space(const struct make *m, struct err *err)
{
	char need[UNITS_TEXT], have[UNITS_TEXT];
	struct statvfs st;
	double available;

	if (statvfs(m->dir, &st) < 0)
		return err_set(err, -errno, "%s: %s", m->dir, strerror(errno));
	available = (double)st.f_bavail * (double)st.f_frsize;
	if ((double)m->bytes <= available)
		return 0;
	return err_set(err, -ENOSPC,
		       "%s: the files need %s, and %s are free: make fewer "
		       "(--files) or smaller ones (--scale-bytes)",
		       m->dir, units_human_size((double)m->bytes, need),
		       units_human_size(available, have));
}

/* 1: the dataset is complete already. */
static int prepare(struct make *m, struct err *err)
{
	enum data_state state;
	bool force = m->o->force;
	int r = data_recipe_state(&m->o->recipe, m->dir, &state, err);

	if (r < 0)
		return r;
	if (state == DATA_COMPLETE)
		return 1;
	if (state == DATA_FOREIGN && !force)
		return err_set(err, -EEXIST,
			       "%s: not empty: choose another folder, or "
			       "--force to write next to its files",
			       m->dir);
	if (state == DATA_OTHER && !force)
		return err_set(
			err, -EEXIST,
			"%s: made with other options (see its " DATA_RECIPE_FILE
			"): choose another folder, or "
			"--force to replace it",
			m->dir);
	r = mkdir_all(m->dir, 0777, err);
	if (r == 0 && state == DATA_OTHER)
		r = data_fill_clear(m->dir, err);
	/* the files of an earlier run already use part of the space */
	if (r == 0 && state != DATA_INCOMPLETE)
		r = check_space(m, err);
	return r;
}

static int make(struct make *m, struct err *err)
{
	const struct data_recipe *recipe = &m->o->recipe;
	int r = prepare(m, err);

	m->was_there = r == 1;
	if (r != 0)
		return MIN(r, 0);
	r = data_recipe_write(recipe, m->dir, m->sizes, false, err);
	if (r == 0)
		r = data_fill(recipe, m->dir, m->sizes, (unsigned)m->o->jobs,
			      m->progress, &m->counts, err);
	if (r == 0)
		r = data_recipe_write(recipe, m->dir, m->sizes, true, err);
	return r;
}

static double seconds(const struct make *m)
{
	return (double)(m->counts.pool_ns + m->counts.fill_ns) / NS_PER_S;
}

static double per(double a, double b)
{
	return b > 0 ? a / b : 0;
}

static json_t *result_json(const struct make *m)
{
	const struct data_fill_counts *c = &m->counts;
	uint64_t n = m->o->recipe.files;

	data_sizes_sort(m->sizes, n);
	return json_pack(
		"{s:I,s:I,s:I,s:b,s:I,s:I,s:I,s:f,s:f,s:f,s:f,s:f,s:f,s:f,"
		"s:o}",
		"files", (json_int_t)n, "classes",
		(json_int_t)m->o->recipe.classes, "bytes", (json_int_t)m->bytes,
		"was_there", m->was_there, "files_written",
		(json_int_t)c->files, "bytes_written", (json_int_t)c->bytes,
		"files_kept", (json_int_t)c->kept, "seconds", seconds(m),
		"textures_s", (double)c->pool_ns / NS_PER_S, "files_per_s",
		per((double)c->files, (double)c->fill_ns / NS_PER_S),
		"mib_per_s",
		per((double)c->bytes / MIB, (double)c->fill_ns / NS_PER_S),
		"encodes_per_file", per((double)c->encodes, (double)c->files),
		"padding_mean", per((double)c->padding_bytes, (double)c->bytes),
		"padding_max", c->worst_padding, "deciles_bytes",
		data_sizes_deciles(m->sizes, n));
}

static int write_record(const struct make *m, struct err *err)
{
	json_auto_t *j = json_pack("{s:o,s:s,s:o,s:o,s:I,s:o}", "gpemu",
				   json_version(), "command", program.name,
				   "config", conf_json(fields, m->o),
				   "directory", json_bytes(m->dir), "seed",
				   (json_int_t)m->o->common.seed, "result",
				   result_json(m));

	if (!j)
		return err_set(err, -ENOMEM, "the record: out of memory");
	return json_write(j, m->o->common.json, err);
}

static void print_result(const struct make *m)
{
	const struct data_fill_counts *c = &m->counts;
	char bytes[UNITS_TEXT];

	printf("%s: %" PRIu64 " files in %" PRIu64 " classes, %s", m->dir,
	       m->o->recipe.files, m->o->recipe.classes,
	       units_human_size((double)m->bytes, bytes));
	if (m->was_there) {
		puts(", complete already");
		return;
	}
	printf(", made in %.1f s", seconds(m));
	if (c->kept)
		printf(" (%" PRIu64 " existed)", c->kept);
	printf(", %.0f files/s\n",
	       per((double)c->files, (double)c->fill_ns / NS_PER_S));
}

static int finish_make(struct make *m, int r, struct err *err)
{
	bool to_stdout = m->o->common.json && !strcmp(m->o->common.json, "-");

	if (r == -EINTR) {
		log_error("interrupted: %" PRIu64 " of %" PRIu64
			  " files are in %s; the same command continues from "
			  "there",
			  m->counts.files + m->counts.kept, m->o->recipe.files,
			  m->dir);
		return EXIT_STATUS_FAILED;
	}
	if (r == 0 && m->o->common.json)
		r = write_record(m, err);
	if (r < 0)
		return cli_fail(r, err);
	if (!to_stdout)
		print_result(m);
	return EXIT_STATUS_DONE;
}

static void check_usage(const struct make *m)
{
	const struct data_recipe *r = &m->o->recipe;
	bool jpeg = !strcmp(r->content, "jpeg");
	const char *text = NULL;

	if (!jpeg && strcmp(r->content, "random"))
		text = "--content is jpeg or random";
	else if (r->from && !jpeg)
		text = "--from makes JPEGs: leave out --content random";
	else if (r->classes > r->files)
		text = "--classes: more classes than files";
	if (!text)
		return;
	log_error("%s", text);
	exit(EXIT_STATUS_USAGE);
}

int data_make_main(int argc, char **argv)
{
	struct options o = {
		.common = { .seed = 1 },
		.recipe = { .dataset = strdup("imagenet"),
			    .content = strdup("jpeg"),
			    .files = DEFAULT_FILES,
			    .scale_bytes = 1 },
		.progress = strdup("auto"),
	};
	struct make m = { .o = &o };
	struct err err = { 0 };
	char *args[1];
	int r;

	cli_parse(&program, argc, argv, &o, args);
	m.dir = args[0];
	check_usage(&m);
	r = progress_parse(o.progress, &m.progress, &err);
	if (r < 0) {
		cli_fail(r, &err);
		conf_free(fields, &o);
		return EXIT_STATUS_USAGE;
	}
	r = complete_recipe(&m, &err);
	if (r == 0)
		r = make(&m, &err);
	r = finish_make(&m, r, &err);
	free(m.sizes);
	dataset_profile_free(&m.profile);
	conf_free(fields, &o);
	return r;
}
