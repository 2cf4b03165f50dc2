/* SPDX-License-Identifier: MIT */
#include "loader/checkpoint/visited.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "common/util.h"
#include "loader/order/order_text.h"

/* Of so many classes samples are counted. arbitrary: labels that are numbers of
 * something else may be larger, and no dataset has more classes */
enum { MOST_CLASSES = 1 << 24 };

static bool can_count(const struct dataset *data)
{
	return data->n_classes > 1 && data->n_classes <= MOST_CLASSES;
}

int visited_init(struct visited *v, const struct dataset *data, bool repeats,
		 struct err *err)
{
	*v = (struct visited){ .data = data, .repeats = repeats };
	if (!data)
		return 0;
	v->n_bytes = repeats ? data->n * sizeof(*v->skipped)
			     : (data->n + 7) / 8;
	if (repeats)
		v->skipped = calloc(data->n, sizeof(*v->skipped));
	v->bits = calloc(v->n_bytes, 1);
	if (can_count(data))
		v->count = calloc(data->n_classes, sizeof(*v->count));
	return v->bits && (v->skipped || !repeats) &&
			       (v->count || !can_count(data))
		       ? 0
		       : err_set(err, -ENOMEM, "out of memory");
}

void visited_fini(struct visited *v)
{
	if (v->log)
		fclose(v->log);
	free(v->bits);
	free(v->skipped);
	free(v->count);
	*v = (struct visited){ 0 };
}

static int log_failed(const struct visited *v, int r, struct err *err)
{
	r = r < 0 ? r : -EIO;
	return err_set(err, r, "%s: %s", v->log_path, strerror(-r));
}

int visited_log(struct visited *v, const char *path, int64_t keep,
		struct err *err)
{
	int r = util_output_stream(path, keep < 0 ? O_CREAT | O_TRUNC : 0,
				   &v->log);
	struct stat st;

	v->log_path = path;
	if (r < 0)
		return log_failed(v, r, err);
	if (keep < 0)
		return 0;
	if (fstat(fileno(v->log), &st) < 0)
		return log_failed(v, -errno, err);
	if (st.st_size < keep)
		return err_set(err, -ESTALE,
			       "%s: shorter than when the checkpoint was "
			       "written: not the log of that run",
			       path);
	if (ftruncate(fileno(v->log), keep) < 0 ||
	    fseeko(v->log, keep, SEEK_SET) < 0)
		return log_failed(v, -errno, err);
	return 0;
}

int visited_flush(struct visited *v, int64_t *ret_bytes, struct err *err)
{
	*ret_bytes = -1;
	if (!v->log)
		return 0;
	errno = 0;
	if (fflush(v->log) || ferror(v->log))
		return log_failed(v, -errno, err);
	*ret_bytes = ftello(v->log);
	return 0;
}

static uint32_t *counts(const struct visited *v)
{
	return (uint32_t *)(void *)v->bits;
}

/* One more visit. Was there none before? */
static bool mark(struct visited *v, uint32_t sample)
{
	uint8_t bit = (uint8_t)(1u << sample % 8);
	bool is_new;

	if (v->repeats)
		return counts(v)[sample]++ == 0;
	is_new = !(v->bits[sample / 8] & bit);
	v->bits[sample / 8] |= bit;
	return is_new;
}

uint32_t visited_add(struct visited *v, uint64_t epoch, uint64_t step,
		     const struct delivery *d)
{
	uint32_t n_new = 0;

	/* those left out of the batch, too: they will not come again */
	for (uint32_t i = 0; v->bits && i < d->n + d->n_failed; i++) {
		uint32_t sample = d->place[i].sample;
		bool is_bad = d->place[i].error < 0;

		n_new += mark(v, sample) && !is_bad;
		if (!v->log || is_bad)
			continue;
		fprintf(v->log, "%" PRIu64 " %" PRIu64 " %" PRIu32, epoch, step,
			sample);
		order_text_put_path(v->log, v->data, sample);
	}
	return n_new;
}

/* Of `same` samples of `n`. */
static double share_bits(uint32_t same, uint32_t n)
{
	double p = same / (double)n;

	return -p * log2(p);
}

double visited_class_bits(struct visited *v, const struct delivery *d)
{
	const uint32_t *label = v->data ? v->data->label : NULL;
	double bits = 0;

	if (!v->bits || d->n == 0)
		return -1;
	if (!v->count)
		return v->data->n_classes > 1 ? -1 : 0;
	for (uint32_t i = 0; i < d->n; i++)
		v->count[label[d->place[i].sample]]++;
	for (uint32_t i = 0; i < d->n; i++) {
		uint32_t *same = &v->count[label[d->place[i].sample]];

		if (*same && *same < d->n)
			bits += share_bits(*same, d->n);
		*same = 0;
	}
	return bits;
}

void visited_clear(struct visited *v)
{
	if (v->bits)
		memset(v->bits, 0, v->n_bytes);
}

uint64_t visited_count(const struct visited *v, const uint8_t *bits)
{
	uint64_t n = 0;

	for (size_t i = 0; !v->repeats && i < v->n_bytes; i++)
		n += (unsigned)__builtin_popcount(bits[i]);
	for (size_t i = 0; v->repeats && i < v->data->n; i++) {
		uint32_t times;

		memcpy(&times, bits + i * sizeof(times), sizeof(times));
		n += times;
	}
	return n;
}

/* Is this visit of the order one that was made? */
static bool was_made(const struct visited *v, uint32_t sample)
{
	if (!v->repeats)
		return v->bits[sample / 8] >> sample % 8 & 1;
	return v->skipped[sample]++ < counts(v)[sample];
}

uint64_t visited_filter(const struct visited *v, uint32_t *order, uint64_t n)
{
	uint64_t kept = 0;

	if (!v->bits)
		return n;
	if (v->repeats)
		memset(v->skipped, 0, v->data->n * sizeof(*v->skipped));
	for (uint64_t i = 0; i < n; i++)
		if (!was_made(v, order[i]))
			order[kept++] = order[i];
	return kept;
}
