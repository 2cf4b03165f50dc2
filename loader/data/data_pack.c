/* SPDX-License-Identifier: MIT */
/*
 * Packing: the files of a folder, group after group, then the index, then the
 * header. Everything goes to a temporary file beside OUT. Its header stays
 * empty until the rest is on disk, and the rename to OUT comes last. So OUT is
 * complete or absent after any interruption, and a leftover temporary file is
 * not a valid pack.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "common/program/cli.h"
#include "common/json.h"
#include "common/log.h"
#include "common/pack/pack.h"
#include "common/program/progress.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/replace.h"
#include "common/util.h"
#include "loader/data/data_command.h"
#include "loader/data/data_scan.h"
#include "common/program/interrupt.h"

struct options {
	struct cli_common common;
	uint64_t group;
	char *group_order;
	bool force;
	char *progress;
};

static const struct conf_field fields[] = {
	CLI_COMMON_FIELDS(struct options, common),
	{ CONF_KEY(group, CONF_UINT, struct options), .short_opt = 'g',
	  .arg = "N", .min = 1, .max = 4e9,
	  .help = "files per group (1: no grouping)" },
	{ CONF_KEY(group_order, CONF_STRING, struct options), .arg = "ORDER",
	  .help = "which files form a group: sequential, random, diffclass, or "
		  "a FILE with one path, or one JSON array of paths, per line "
		  "(sequential)" },
	{ CONF_KEY(force, CONF_BOOL, struct options), .cli_only = true,
	  .help = "replace OUT if it exists" },
	{ CONF_KEY(progress, CONF_STRING, struct options), .arg = "auto|on|off",
	  .help = "show a progress bar on stderr (auto: on a terminal)" },
	{ 0 },
};

static const struct cli_program program = {
	.name = "gpemu-data pack",
	.args = "SRC OUT",
	.n_args = 2,
	.summary = "Pack the files below SRC into one file OUT, group after "
		   "group, with an index and checksums.",
	.notes = "gpemu-fs pack:OUT serves it as the folder SRC; gpemu-data "
		 "stat OUT describes it. Every file is in one group; the last "
		 "group may be smaller. Each file larger than 4 MiB is a group "
		 "of its own.",
	.fields = fields,
};

/* arbitrary: large enough to make the cost of calls negligible */
enum { CHUNK = 1 << 20 };

struct packing {
	const struct options *o;
	const char *src, *out;
	enum progress_mode progress;
	struct data_scan scan;
	struct pack pack;
	struct grouping groups;
	bool stop; /* atomic: a signal arrived */
	int src_fd, fd;
	unsigned char *buf;
	XXH3_state_t *xxh;
	uint64_t at; /* bytes written so far */
};

static int by_path(const void *a, const void *b)
{
	const struct data_scan_file *x = a, *y = b;

	return grouping_compare(x->path, y->path);
}

static uint32_t find_file(const void *ctx, const char *path)
{
	const struct data_scan *s = ctx;
	struct data_scan_file key = { .path = (char *)path };
	struct data_scan_file *f =
		bsearch(&key, s->files, s->n, sizeof(*s->files), by_path);

	return f ? (uint32_t)(f - s->files) : UINT32_MAX;
}

/* Fills pack.files with their classes, ordered by path. */
static int list_files(struct packing *p, struct err *err)
{
	struct data_scan *s = &p->scan;
	int r = data_scan_read(p->src, s, err);

	if (r < 0)
		return r;
	if (!s->n)
		return err_set(err, -ENOENT, "%s: contains no files", p->src);
	if (s->n >= UINT32_MAX)
		return err_set(err, -E2BIG, "%s: too many files", p->src);
	qsort(s->files, s->n, sizeof(*s->files), by_path);
	p->pack.files = calloc(s->n, sizeof(*p->pack.files));
	p->pack.sorted = calloc(s->n, sizeof(*p->pack.sorted));
	if (!p->pack.files || !p->pack.sorted)
		return -ENOMEM;
	p->pack.n_files = (uint32_t)s->n;
	for (uint32_t i = 0; i < s->n; i++) {
		p->pack.files[i].path = s->files[i].path;
		p->pack.files[i].bytes = s->files[i].bytes;
		p->pack.sorted[i] = i;
	}
	p->pack.n_classes =
		pack_classify(p->pack.files, p->pack.sorted, p->pack.n_files);
	return 0;
}

/* Groups the files, and sorts pack.files by group. */
static int group_files(struct packing *p, struct err *err)
{
	uint32_t n = p->pack.n_files;
	_cleanup_free_ uint64_t *bytes = calloc(n, sizeof(*bytes));
	_cleanup_free_ uint32_t *class = calloc(n, sizeof(*class));
	struct pack_file *ordered = calloc(n, sizeof(*ordered));
	struct grouping_files files = { .n = n,
					.bytes = bytes,
					.class = class,
					.find = find_file,
					.ctx = &p->scan };
	int r = -ENOMEM;

	for (uint32_t i = 0; bytes && class && i < n; i++) {
		bytes[i] = p->pack.files[i].bytes;
		class[i] = p->pack.files[i].class;
	}
	if (bytes && class && ordered)
		r = grouping_new(&files, (uint32_t)MIN(p->o->group, UINT32_MAX),
				 p->o->group_order, p->o->common.seed,
				 &p->groups, err);
	if (r < 0) {
		free(ordered);
		return r;
	}
	for (uint32_t i = 0; i < n; i++)
		ordered[i] = p->pack.files[p->groups.file[i]];
	free(p->pack.files);
	p->pack.files = ordered;
	p->pack.n_groups = p->groups.n_groups;
	p->pack.first = TAKE_PTR(p->groups.first);
	p->pack.group_size = p->o->group;
	p->pack.seed = p->o->common.seed;
	snprintf(p->pack.order, sizeof(p->pack.order), "%s",
		 grouping_is_order(p->o->group_order) ? p->o->group_order
						      : "file");
	return 0;
}

static int write_at(struct packing *p, const unsigned char *v, size_t n,
		    uint64_t offset, struct err *err)
{
	while (n) {
		ssize_t r = pwrite(p->fd, v, n, (off_t)offset);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return err_set(err, -errno, "%s: %s", p->out,
				       strerror(errno));
		v += r;
		n -= (size_t)r;
		offset += (uint64_t)r;
	}
	return 0;
}

static int copy(struct packing *p, int fd, struct pack_file *f, struct err *err)
{
	uint64_t left = f->bytes;

	XXH3_64bits_reset(p->xxh);
	while (left) {
		ssize_t n =
			util_read_all(fd, p->buf, MIN(left, CHUNK), UTIL_HERE);
		int r;

		if (n < 0)
			return err_set(err, (int)n, "%s/%s: %s", p->src,
				       f->path, strerror((int)-n));
		if (n == 0)
			break;
		XXH3_64bits_update(p->xxh, p->buf, (size_t)n);
		r = write_at(p, p->buf, (size_t)n, p->at, err);
		if (r < 0)
			return r;
		p->at += (uint64_t)n;
		left -= (uint64_t)n;
	}
	f->sum = XXH3_64bits_digest(p->xxh);
	/* shorter or longer than listed: the groups were made from other
	 * sizes */
	if (left || read(fd, p->buf, 1) > 0)
		return err_set(err, -ESTALE, "%s/%s: changed during packing",
			       p->src, f->path);
	return 0;
}

static int pack_one(struct packing *p, struct pack_file *f, struct err *err)
{
	struct stat st;
	_cleanup_close_ int fd = util_open_file(p->src_fd, f->path, 0, &st);

	if (__atomic_load_n(&p->stop, __ATOMIC_RELAXED))
		return err_set(err, -EINTR, "interrupted: %s was not written",
			       p->out);
	if (fd < 0)
		return err_set(err, fd, "%s/%s: %s", p->src, f->path,
			       strerror(-fd));
	f->offset = p->at;
	/* packs are read-only */
	f->mode = st.st_mode & 0555;
	f->mtime_ns =
		units_time_ns(st.st_mtim.tv_sec, (uint32_t)st.st_mtim.tv_nsec);
	return copy(p, fd, f, err);
}

static int pack_all(struct packing *p, struct err *err)
{
	struct progress bar;
	int r = 0;

	progress_init(&bar, "files", p->pack.n_files, p->progress);
	p->at = PACK_HEADER_BYTES;
	for (uint32_t g = 0; r == 0 && g < p->pack.n_groups; g++) {
		p->at = (p->at + PACK_ALIGN - 1) / PACK_ALIGN * PACK_ALIGN;
		for (uint32_t i = p->pack.first[g];
		     r == 0 && i < p->pack.first[g + 1]; i++)
			r = pack_one(p, &p->pack.files[i], err);
		progress_update(&bar, p->pack.first[g + 1], NULL);
	}
	progress_end(&bar);
	return r;
}

/* Write the index; after it is on disk, the header that makes the file a
 * pack. */
static int seal(struct packing *p, struct err *err)
{
	_cleanup_free_ unsigned char *index = NULL;
	unsigned char header[PACK_HEADER_BYTES];
	struct pack_header h = { .index_offset = p->at };
	size_t n;
	int r = pack_write_index(&p->pack, &index, &n);

	if (r < 0)
		return r;
	h.index_bytes = n;
	h.index_sum = XXH3_64bits(index, n);
	r = write_at(p, index, n, p->at, err);
	if (r == 0 && fsync(p->fd) < 0)
		r = -errno;
	if (r == 0) {
		pack_write_header(&h, header);
		r = write_at(p, header, sizeof(header), 0, err);
	}
	if (r == 0 && fsync(p->fd) < 0)
		r = -errno;
	p->at += n;
	return r < 0 ? err_set(err, r, "%s: %s", p->out, strerror(-r)) : 0;
}

static int write_pack(struct packing *p, struct err *err)
{
	struct replace file;
	int r;

	if (!p->o->force && access(p->out, F_OK) == 0)
		return err_set(err, -EEXIST,
			       "%s: exists already: --force replaces it",
			       p->out);
	p->fd = replace_begin(&file, AT_FDCWD, p->out, 0666);
	if (p->fd < 0)
		return err_set(err, p->fd, "%s: %s", p->out, strerror(-p->fd));
	r = pack_all(p, err);
	if (r == 0)
		r = seal(p, err);
	r = replace_end(&file, r);
	return r < 0 ? err_set(err, r, "%s: %s", p->out, strerror(-r)) : 0;
}

static int run_packing(struct packing *p, struct err *err)
{
	int r = list_files(p, err);

	if (r == 0)
		r = group_files(p, err);
	if (r < 0)
		return r;
	p->src_fd = open(p->src, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->src_fd < 0)
		return err_set(err, -errno, "%s: %s", p->src, strerror(errno));
	p->buf = malloc(CHUNK);
	p->xxh = XXH3_createState();
	return p->buf && p->xxh ? write_pack(p, err) : -ENOMEM;
}

static int report(const struct packing *p, double seconds, struct err *err)
{
	char text[UNITS_TEXT];
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < p->pack.n_files; i++)
		bytes += p->pack.files[i].bytes;
	if (p->o->common.json) {
		json_auto_t *j = json_pack(
			"{s:o,s:s,s:o,s:o,s:o,s:I,s:I,s:I,s:I,s:I,s:f}",
			"gpemu", json_version(), "command", program.name,
			"config", conf_json(fields, p->o), "source",
			json_bytes(p->src), "pack", json_bytes(p->out), "files",
			(json_int_t)p->pack.n_files, "classes",
			(json_int_t)p->pack.n_classes, "groups",
			(json_int_t)p->pack.n_groups, "bytes",
			(json_int_t)bytes, "pack_bytes", (json_int_t)p->at,
			"seconds", seconds);
		int r = j ? json_write(j, p->o->common.json, err) : -ENOMEM;

		if (r < 0 || !strcmp(p->o->common.json, "-"))
			return r;
	}
	printf("%s: %u files in %u groups, %s, in %.1f s\n", p->out,
	       p->pack.n_files, p->pack.n_groups,
	       units_human_size((double)p->at, text), seconds);
	return 0;
}

static void stop(void *ctx)
{
	struct packing *p = ctx;

	__atomic_store_n(&p->stop, true, __ATOMIC_RELAXED);
}

static void fini(struct packing *p)
{
	if (p->fd >= 0)
		close(p->fd);
	if (p->src_fd >= 0)
		close(p->src_fd);
	XXH3_freeState(p->xxh);
	free(p->buf);
	grouping_free(&p->groups);
	pack_fini(&p->pack);
	data_scan_fini(&p->scan);
}

int data_pack_main(int argc, char **argv)
{
	struct options o = { .common = { .seed = 1 },
			     .group = 1,
			     .group_order = strdup("sequential"),
			     .progress = strdup("auto") };
	struct packing p = { .o = &o, .src_fd = -1, .fd = -1 };
	struct interrupt interrupt = { .fn = stop, .ctx = &p };
	struct err err = { 0 };
	uint64_t start = tick_wall();
	char *args[2];
	int r;

	cli_parse(&program, argc, argv, &o, args);
	p.src = args[0];
	p.out = args[1];
	r = progress_parse(o.progress, &p.progress, &err);
	if (r < 0) {
		cli_fail(r, &err);
		conf_free(fields, &o);
		return EXIT_STATUS_USAGE;
	}
	interrupt_block();
	r = interrupt_begin(&interrupt);
	if (r == 0)
		r = run_packing(&p, &err);
	interrupt_end(&interrupt);
	if (r == 0)
		r = report(&p, (double)(tick_wall() - start) / NS_PER_S, &err);
	fini(&p);
	conf_free(fields, &o);
	if (r < 0)
		err_set(&err, r, "%s", strerror(-r));
	return r < 0 ? cli_fail(r == -EINTR ? -ECANCELED : r, &err)
		     : EXIT_STATUS_DONE;
}
