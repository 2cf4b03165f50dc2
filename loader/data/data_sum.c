/* SPDX-License-Identifier: MIT */
/*
 * One checksum per file, of a folder or of the files that a folder would have
 * to hold. This checks the synthetic dataset of a mount against its generator,
 * without the mount.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

#include "common/program/cli.h"
#include "common/pack/pack.h"
#include "common/util.h"
#include "emu/image/synth.h"
#include "loader/data/data_command.h"
#include "loader/data/data_scan.h"

struct options {
	struct cli_common common;
};

static const struct conf_field fields[] = {
	CLI_COMMON_FIELDS(struct options, common),
	{ 0 },
};

static const struct cli_program program = {
	.name = "gpemu-data sum",
	.args = "DIR|synth:SPEC|pack:FILE",
	.n_args = 1,
	.summary = "Print the XXH3 checksum (64 bits) and the path of each "
		   "file, sorted by path: of the files below DIR, of those "
		   "that gpemu-fs generates for synth:SPEC, or as recorded in "
		   "the index of pack:FILE.",
	.fields = fields,
};

/* arbitrary: large enough to make the cost of calls negligible */
enum { CHUNK = 1 << 20 };

struct sum {
	XXH3_state_t *state;
	uint8_t *buf;
};

static void print(const struct sum *s, const char *path)
{
	printf("%016" PRIx64 "  %s\n", (uint64_t)XXH3_64bits_digest(s->state),
	       path);
}

static int sum_file(struct sum *s, const char *dir, const char *path,
		    struct err *err)
{
	_cleanup_free_ char *full = NULL;
	_cleanup_close_ int fd = -1;
	struct stat st;
	ssize_t n;

	if (asprintf(&full, "%s/%s", dir, path) < 0)
		return -ENOMEM;
	fd = util_open_file(AT_FDCWD, full, 0, &st);
	if (fd < 0)
		return err_set(err, fd, "%s: %s", full, strerror(-fd));
	XXH3_64bits_reset(s->state);
	while ((n = util_read_all(fd, s->buf, CHUNK, UTIL_HERE)) > 0)
		XXH3_64bits_update(s->state, s->buf, (size_t)n);
	if (n < 0)
		return err_set(err, (int)n, "%s: %s", full, strerror((int)-n));
	print(s, path);
	return 0;
}

static int by_path(const void *a, const void *b)
{
	const struct data_scan_file *x = a, *y = b;

	return grouping_compare(x->path, y->path);
}

static int sum_folder(struct sum *s, const char *dir, struct err *err)
{
	struct data_scan scan;
	int r = data_scan_read(dir, &scan, err);

	if (r == 0 && !scan.n)
		r = err_set(err, -ENOENT, "%s: contains no files", dir);
	if (r == 0)
		qsort(scan.files, scan.n, sizeof(*scan.files), by_path);
	for (uint64_t i = 0; r == 0 && i < scan.n; i++)
		r = sum_file(s, dir, scan.files[i].path, err);
	data_scan_fini(&scan);
	return r;
}

static int sum_synth(struct sum *s, const char *spec, struct err *err)
{
	struct synth *synth;
	int r = synth_open(spec, &synth, err);
	const struct dataset_files *d;
	char path[DATASET_FILES_PATH];

	if (r < 0)
		return r;
	r = synth_prepare(synth, err);
	d = synth_files(synth);
	for (uint64_t i = 0; r == 0 && i < d->files; i++) {
		uint64_t size = synth_size(synth, i), n;

		XXH3_64bits_reset(s->state);
		for (uint64_t at = 0; at < size; at += n) {
			n = MIN(size - at, CHUNK);
			synth_read(synth, i, at, s->buf, n);
			XXH3_64bits_update(s->state, s->buf, n);
		}
		dataset_files_path(d, i, path);
		print(s, path);
	}
	synth_close(synth);
	return r;
}

static int sum_pack(const char *path, struct err *err)
{
	_cleanup_(pack_fini) struct pack p;
	_cleanup_close_ int fd = -1;
	int r = pack_open(path, &fd, &p, err);

	for (uint32_t i = 0; r == 0 && i < p.n_files; i++)
		printf("%016" PRIx64 "  %s\n", p.files[p.sorted[i]].sum,
		       p.files[p.sorted[i]].path);
	return r;
}

int data_sum_main(int argc, char **argv)
{
	struct options o = { 0 };
	struct sum s = { .state = XXH3_createState(), .buf = malloc(CHUNK) };
	struct err err = { 0 };
	char *args[1];
	int r = 0;

	cli_parse(&program, argc, argv, &o, args);
	if (!s.state || !s.buf)
		r = err_set(&err, -ENOMEM, "out of memory");
	else if (!strncmp(args[0], "synth:", 6))
		r = sum_synth(&s, args[0] + 6, &err);
	else if (!strncmp(args[0], "pack:", 5))
		r = sum_pack(args[0] + 5, &err);
	else
		r = sum_folder(&s, args[0], &err);
	free(s.buf);
	XXH3_freeState(s.state);
	conf_free(fields, &o);
	return r < 0 ? cli_fail(r, &err) : EXIT_STATUS_DONE;
}
