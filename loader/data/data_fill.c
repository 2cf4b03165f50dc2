/* SPDX-License-Identifier: MIT */
#include "loader/data/data_fill.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "common/tick.h"
#include "common/replace.h"
#include "common/util.h"
#include "emu/image/image.h"
#include "loader/data/data_scan.h"
#include "loader/data/data_work.h"

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

static int run(struct fill *f, unsigned n_threads, enum progress_mode progress,
	       struct err *err)
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

int data_fill(const struct data_recipe *recipe, const char *dir,
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
	r = run(&f, n_threads, progress, err);
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

int data_fill_clear(const char *dir, struct err *err)
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
