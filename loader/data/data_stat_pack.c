/* SPDX-License-Identifier: MIT */
#include "loader/data/data_stat_pack.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

#include "common/json.h"
#include "common/pack/pack.h"
#include "common/units.h"
#include "common/util.h"
#include "common/version.h"
#include "loader/data/data_recipe.h"

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

static int verify(const struct data_stat_pack *s, int fd, const struct pack *p,
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
			return err_set(err, r, "%s: %s: %s", s->path,
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
			       s->path, broken, p->n_files, first);
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

static void print(const struct data_stat_pack *s, const struct pack *p,
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
	if (s->verify)
		printf("\n%-8s %12u\n", "verified", p->n_files);
}

static int write_record(const struct data_stat_pack *s, const struct pack *p,
			const uint64_t *sizes, struct err *err)
{
	json_auto_t *j = json_pack(
		"{s:{s:s},s:o,s:I,s:I,s:I,s:I,s:I,s:s,s:I,s:I,s:I,s:I,s:o,s:b}",
		"gpemu", "version", GPEMU_VERSION, "pack", json_bytes(s->path),
		"version", (json_int_t)PACK_VERSION, "files",
		(json_int_t)p->n_files, "classes", (json_int_t)p->n_classes,
		"groups", (json_int_t)p->n_groups, "group_size",
		(json_int_t)p->group_size, "group_order", p->order, "seed",
		(json_int_t)p->seed, "bytes", (json_int_t)p->file_bytes,
		"min_bytes", (json_int_t)sizes[0], "max_bytes",
		(json_int_t)sizes[p->n_files - 1], "deciles_bytes",
		data_sizes_deciles(sizes, p->n_files), "verified", s->verify);

	if (!j)
		return err_set(err, -ENOMEM, "the record: out of memory");
	return json_write(j, s->json, err);
}

int data_stat_pack(const struct data_stat_pack *s, struct err *err)
{
	_cleanup_(pack_fini) struct pack p;
	_cleanup_close_ int fd = -1;
	_cleanup_free_ uint64_t *sizes = NULL;
	int r = pack_open(s->path, &fd, &p, err);

	if (r == 0 && s->verify)
		r = verify(s, fd, &p, err);
	if (r < 0)
		return r;
	if (s->groups) {
		print_groups(&p);
		return 0;
	}
	sizes = calloc((size_t)p.n_files + 1, sizeof(*sizes));
	if (!sizes)
		return -ENOMEM;
	for (uint32_t i = 0; i < p.n_files; i++)
		sizes[i] = p.files[i].bytes;
	if (!p.n_files)
		return err_set(err, -ENOENT, "%s: contains no files", s->path);
	data_sizes_sort(sizes, p.n_files);
	if (s->json)
		r = write_record(s, &p, sizes, err);
	if (r == 0 && (!s->json || strcmp(s->json, "-")))
		print(s, &p, sizes);
	return r;
}
