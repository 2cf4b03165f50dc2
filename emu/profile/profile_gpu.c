/* SPDX-License-Identifier: MIT */
#include "emu/profile/profile_gpu.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/conf/conf.h"
#include "common/units.h"
#include "common/util.h"
#include "common/word.h"
#include "emu/profile/precision.h"
#include "emu/profile/profile.h"

/* --- the board ------------------------------------------------------------ */

#define BOARD_NUMBER(member, least, most)                                      \
	{                                                                      \
		CONF_KEY(member, CONF_DOUBLE, struct gpu_board), .min = least, \
								 .max = most   \
	}
static const struct conf_field board_fields[] = {
	{ CONF_KEY(brand, CONF_STRING, struct gpu_board) },
	BOARD_NUMBER(compute_capability, 1, 100),
	BOARD_NUMBER(cores, 1, 1e6),
	BOARD_NUMBER(power_limit_w, .001, 1e5),
	BOARD_NUMBER(power_idle_w, .001, 1e5),
	BOARD_NUMBER(power_min_w, .001, 1e5),
	BOARD_NUMBER(power_max_w, .001, 1e5),
	BOARD_NUMBER(temperature_c, 1, 200),
	BOARD_NUMBER(clock_mhz, 1, 1e5),
	BOARD_NUMBER(memory_clock_mhz, 1, 1e5),
	BOARD_NUMBER(video_clock_mhz, 1, 1e5),
	BOARD_NUMBER(clock_reasons, 1, 0x1p32),
	BOARD_NUMBER(memory_bus_bits, 1, 1e6),
	BOARD_NUMBER(pcie_generation, 1, 100),
	BOARD_NUMBER(pcie_width, 1, 32),
	{ CONF_KEY(ecc, CONF_BOOL, struct gpu_board) },
	{ CONF_KEY(mig, CONF_BOOL, struct gpu_board) },
	{ CONF_KEY(source, CONF_STRING, struct gpu_board), .required = true },
	{ 0 },
};

static int board_check(const void *object, struct err *err)
{
	const struct gpu_board *b = object;

	if (b->power_idle_w > 0 && b->power_idle_w > b->power_limit_w)
		return err_set(err, -EINVAL,
			       "power_idle_w is above power_limit_w");
	if (b->power_min_w > b->power_limit_w ||
	    (b->power_max_w > 0 && b->power_max_w < b->power_limit_w))
		return err_set(err, -EINVAL,
			       "power_limit_w is not within power_min_w and "
			       "power_max_w");
	return 0;
}

json_t *gpu_board_json(const struct gpu_board *b)
{
	json_t *j = conf_json(board_fields, b), *value;
	const char *key;
	void *next;

	json_object_del(j, "source");
	json_object_foreach_safe (j, next, key, value)
		if (!json_is_true(value) && !json_is_string(value) &&
		    !(json_number_value(value) > 0))
			json_object_del(j, key);
	return j;
}

double gpu_board_power_w(const struct gpu_board *b, double busy)
{
	return b->power_idle_w > 0
		       ? b->power_idle_w +
				 (b->power_limit_w - b->power_idle_w) * busy
		       : 0;
}

/* Bounds that no device reaches; they keep ns in uint64_t and sums finite. */
#define MAX_MS 1e9
#define MAX_MIB 1e9
#define MAX_BATCH 1048576
#define MAX_SAMPLE_BYTES 1e12 /* a batch of them is below 2^60 */

#define ROW_NUMBER(member, most, needed)                          \
	{                                                         \
		CONF_KEY(member, CONF_DOUBLE, struct gpu_row),    \
			.required = needed, .min = 0, .max = most \
	}
static const struct conf_field row_fields[] = {
	{ CONF_KEY(batch, CONF_UINT, struct gpu_row), .required = true,
	  .min = 1, .max = MAX_BATCH },
	ROW_NUMBER(forward_ms, MAX_MS, true),
	ROW_NUMBER(backward_ms, MAX_MS, true),
	ROW_NUMBER(transfer_ms, MAX_MS, false),
	ROW_NUMBER(peak_mib, MAX_MIB, false),
	ROW_NUMBER(persistent_mib, MAX_MIB, false),
	ROW_NUMBER(optimizer_ms, MAX_MS, false),
	ROW_NUMBER(spread_pct, 1e4, false),
	{ 0 },
};

static int check_row(const void *object, struct err *err)
{
	const struct gpu_row *row = object;

	if (row->persistent_mib > row->peak_mib)
		return err_set(err, -EINVAL,
			       "persistent_mib is above peak_mib");
	if (row->optimizer_ms > row->backward_ms)
		return err_set(err, -EINVAL,
			       "optimizer_ms is above backward_ms, of which "
			       "it is a part");
	return 0;
}

static const struct conf_field model_fields[] = {
	{ CONF_KEY(name, CONF_STRING, struct gpu_model) },
	{ CONF_KEY(notes, CONF_STRING, struct gpu_model) },
	{ CONF_KEY(source, CONF_STRING, struct gpu_model) },
	{ CONF_KEY(parameters, CONF_UINT, struct gpu_model), .required = true,
	  .min = 0, .max = 1e15 },
	{ CONF_KEY(sample_bytes, CONF_UINT, struct gpu_model), .min = 1,
	  .max = MAX_SAMPLE_BYTES },
	{ CONF_KEY(model_transfer_ms, CONF_DOUBLE, struct gpu_model), .min = 0,
	  .max = MAX_MS },
	{ CONF_KEY(host_ms, CONF_DOUBLE, struct gpu_model), .min = 0,
	  .max = MAX_MS },
	{ CONF_KEY(warmup_ms, CONF_LIST, struct gpu_model), .item = CONF_DOUBLE,
	  .item_size = sizeof(double), .min = 0, .max = MAX_MS },
	/* default: the last row's */
	{ CONF_KEY(last_batch, CONF_UINT, struct gpu_model), .min = 1,
	  .max = MAX_BATCH },
	{ CONF_KEY(last_is_limit, CONF_BOOL, struct gpu_model) },
	{ CONF_KEY(tolerance_pct, CONF_DOUBLE, struct gpu_model), .min = 0,
	  .max = 100 },
	{ CONF_KEY(tolerance_points, CONF_UINT, struct gpu_model), .min = 0,
	  .max = MAX_BATCH },
	{ CONF_KEY(rows, CONF_LIST, struct gpu_model), .required = true,
	  .item = CONF_ROW, .item_size = sizeof(struct gpu_row),
	  .fields = row_fields, .check = check_row },
	{ 0 },
};
static const struct conf_field law_fields[] = {
	{ CONF_KEY(base_ms, CONF_DOUBLE, struct gpu_law), .required = true,
	  .min = 0, .max = MAX_MS },
	{ CONF_KEY(per_sample_ms, CONF_DOUBLE, struct gpu_law),
	  .required = true, .min = 0, .max = MAX_MS },
	{ CONF_KEY(source, CONF_STRING, struct gpu_law), .required = true },
	{ 0 },
};
#define COPY_NUMBER(member)                                           \
	{                                                             \
		CONF_KEY(member, CONF_DOUBLE, struct gpu_copies_row), \
			.required = true, .min = 0, .max = MAX_MS     \
	}
static const struct conf_field copies_row_fields[] = {
	{ CONF_KEY(bytes, CONF_UINT, struct gpu_copies_row), .required = true,
	  .min = 1, .max = 1e15 },
	COPY_NUMBER(pageable_ms),
	COPY_NUMBER(pinned_ms),
	COPY_NUMBER(pin_copy_ms),
	{ 0 },
};
static const struct conf_field copies_fields[] = {
	{ CONF_KEY(rows, CONF_LIST, struct gpu_copies), .required = true,
	  .item = CONF_ROW, .item_size = sizeof(struct gpu_copies_row),
	  .fields = copies_row_fields },
	{ CONF_KEY(source, CONF_STRING, struct gpu_copies), .required = true },
	{ 0 },
};
static const struct conf_field jump_fields[] = {
	{ CONF_KEY(bytes, CONF_UINT, struct gpu_jump), .required = true,
	  .min = 1, .max = 1e15 },
	{ CONF_KEY(source, CONF_STRING, struct gpu_jump), .required = true },
	{ 0 },
};
static const struct conf_field noise_model_fields[] = {
	{ CONF_KEY(name, CONF_STRING, struct gpu_noise_model) },
	{ CONF_KEY(cv_pct, CONF_DOUBLE, struct gpu_noise_model),
	  .required = true, .min = 0, .max = 100 },
	{ 0 },
};
static const struct conf_field noise_fields[] = {
	{ CONF_KEY(models, CONF_MAP, struct gpu_noise), .required = true,
	  .item_size = sizeof(struct gpu_noise_model),
	  .fields = noise_model_fields },
	{ CONF_KEY(source, CONF_STRING, struct gpu_noise), .required = true },
	{ 0 },
};

static const struct conf_field fields[] = {
	{ CONF_KEY(name, CONF_STRING, struct gpu_profile), .required = true },
	{ CONF_KEY(aliases, CONF_LIST, struct gpu_profile), .item = CONF_STRING,
	  .item_size = sizeof(char *) },
	{ CONF_KEY(source, CONF_STRING, struct gpu_profile), .required = true },
	{ CONF_KEY(notes, CONF_STRING, struct gpu_profile) },
	{ CONF_KEY(precision, CONF_STRING, struct gpu_profile),
	  .check = precision_check },
	{ CONF_KEY(memory_mib, CONF_DOUBLE, struct gpu_profile),
	  .required = true, .min = 1, .max = MAX_MIB },
	{ CONF_KEY(usable_memory, CONF_DOUBLE, struct gpu_profile), .min = 0.01,
	  .max = 1 },
	{ CONF_KEY(sample_bytes, CONF_UINT, struct gpu_profile),
	  .required = true, .min = 1, .max = MAX_SAMPLE_BYTES },
	{ CONF_KEY(pinned, CONF_RECORD, struct gpu_profile),
	  .fields = law_fields },
	{ CONF_KEY(pin_copy, CONF_RECORD, struct gpu_profile),
	  .fields = law_fields },
	{ CONF_KEY(copies, CONF_RECORD, struct gpu_profile),
	  .fields = copies_fields },
	{ CONF_KEY(transfer_jump, CONF_RECORD, struct gpu_profile),
	  .fields = jump_fields },
	{ CONF_KEY(noise, CONF_RECORD, struct gpu_profile),
	  .fields = noise_fields },
	{ CONF_KEY(board, CONF_RECORD, struct gpu_profile),
	  .fields = board_fields, .check = board_check },
	{ CONF_KEY(models, CONF_MAP, struct gpu_profile), .required = true,
	  .item_size = sizeof(struct gpu_model), .fields = model_fields },
	{ 0 },
};

static int check_model(const struct gpu_model *m, const struct conf_node *node,
		       const char *name, struct err *err)
{
	const struct gpu_row *row = m->rows.items;
	const struct conf_node *rows = conf_node_get(node, "rows");

	if (!m->rows.n)
		return conf_node_error(rows, name, err, "no rows");
	for (size_t i = 1; i < m->rows.n; i++)
		if (row[i].batch <= row[i - 1].batch)
			return conf_node_error(rows->items[i], name, err,
					       "batch sizes must ascend");
	if (m->last_batch && row[m->rows.n - 1].batch != m->last_batch)
		return conf_node_error(conf_node_get(node, "last_batch"), name,
				       err,
				       "last_batch must be the last row's");
	return 0;
}

/* Copies are a table, or laws. */
static int check_head(const void *object, const struct conf_node *root,
		      const char *name, struct err *err)
{
	const struct gpu_profile *p = object;
	const struct gpu_copies_row *row = p->copies.rows.items;
	const struct conf_node *copies = conf_node_get(root, "copies");

	if (copies &&
	    (p->pinned.source || p->pin_copy.source || p->transfer_jump.bytes))
		return conf_node_error(copies, name, err,
				       "copies stand instead of pinned, "
				       "pin_copy and transfer_jump");
	if (copies && !p->copies.rows.n)
		return conf_node_error(copies, name, err, "no rows");
	for (size_t i = 1; i < p->copies.rows.n; i++)
		if (row[i].bytes <= row[i - 1].bytes)
			return conf_node_error(copies, name, err,
					       "bytes must ascend");
	return 0;
}

static int check_gpu(const void *object, const struct conf_node *root,
		     const char *name, struct err *err)
{
	const struct gpu_profile *p = object;
	const struct gpu_model *m = p->models.items;
	const struct conf_node *models = conf_node_get(root, "models");
	int r = check_head(object, root, name, err);
	bool bad = r < 0;

	r = err_also(err, r);
	if (r == 0 && !p->models.n)
		return conf_node_error(models, name, err, "no models");
	for (size_t i = 0; r == 0 && i < p->models.n; i++) {
		r = check_model(&m[i], models->items[i], name, err);
		bad = bad || r < 0;
		r = err_also(err, r);
	}
	return bad ? -EINVAL : 0;
}

static double law_ms(const struct gpu_profile *p, const struct gpu_law *law,
		     double bytes)
{
	return law->base_ms +
	       law->per_sample_ms * bytes / (double)p->sample_bytes;
}

static double way_ms(const struct gpu_copies_row *row, enum gpu_copy how)
{
	return how == GPU_COPY_PAGEABLE ? row->pageable_ms
	       : how == GPU_COPY_PINNED ? row->pinned_ms
					: row->pin_copy_ms;
}

static double table_ms(const struct gpu_copies *c, enum gpu_copy how,
		       double bytes)
{
	const struct gpu_copies_row *row = c->rows.items;
	size_t n = c->rows.n, i = 0;
	double a, b;

	while (i < n && (double)row[i].bytes < bytes)
		i++;
	if (i == 0)
		return way_ms(&row[0], how);
	a = way_ms(&row[i - 1], how);
	if (i == n)
		return a * bytes / (double)row[n - 1].bytes;
	b = way_ms(&row[i], how);
	return a + (b - a) * (bytes - (double)row[i - 1].bytes) /
			   (double)(row[i].bytes - row[i - 1].bytes);
}

/* Copies of a model without measured ones. */
static double link_ms(const struct gpu_profile *p, double bytes)
{
	if (bytes <= 0)
		return 0;
	return fmin(p->copies.rows.n
			    ? table_ms(&p->copies, GPU_COPY_PAGEABLE, bytes)
			    : law_ms(p, &p->pinned, bytes),
		    MAX_MS);
}

/* Where no copy was measured: what the link takes. */
static void fill_copies(const struct gpu_profile *p, struct gpu_model *m)
{
	struct gpu_row *row = m->rows.items;

	for (size_t i = 0; i < m->rows.n; i++)
		m->copies_measured |= row[i].transfer_ms > 0;
	for (size_t i = 0; !m->copies_measured && i < m->rows.n; i++)
		row[i].transfer_ms =
			link_ms(p, (double)row[i].batch *
					   (double)gpu_sample_bytes(p, m));
	if (m->model_transfer_ms <= 0)
		m->model_transfer_ms =
			link_ms(p, (double)m->parameters * sizeof(float));
}

static bool fill_law(struct gpu_law *law)
{
	if (!law->source)
		law->source = strdup("not given: such a copy takes no time");
	return law->source;
}

/* Of the head: all memory is usable, copies take no time. -ENOMEM. */
static int fill_head(struct gpu_profile *p)
{
	if (p->usable_memory <= 0)
		p->usable_memory = 1;
	return p->copies.rows.n ||
			       (fill_law(&p->pinned) && fill_law(&p->pin_copy))
		       ? 0
		       : -ENOMEM;
}

static int fill_defaults(struct gpu_profile *p)
{
	struct gpu_model *m = p->models.items;

	for (size_t i = 0; i < p->models.n; i++) {
		const struct gpu_row *row = m[i].rows.items;

		m[i].last_batch = row[m[i].rows.n - 1].batch;
		fill_copies(p, &m[i]);
	}
	return fill_head(p);
}

PROFILE_FUNCTIONS(gpu, PROFILE_GPU, check_gpu, fill_defaults(ret), 0)

int gpu_profile_load_head(const char *name, struct gpu_profile *ret,
			  struct err *err)
{
	struct conf_field head[ARRAY_SIZE(fields)];
	int r;

	memcpy(head, fields, sizeof(fields));
	for (struct conf_field *f = head; f->key; f++)
		if (!strcmp(f->key, "models"))
			f->required = false;
	*ret = (struct gpu_profile){ 0 };
	r = profile_load(PROFILE_GPU, name, head, check_head, ret, err);
	return r == 0 ? fill_head(ret) : r;
}

void gpu_profile_free_models(struct gpu_profile *p)
{
	static const struct conf_field models[] = {
		{ CONF_KEY(models, CONF_MAP, struct gpu_profile),
		  .item_size = sizeof(struct gpu_model),
		  .fields = model_fields },
		{ 0 },
	};

	conf_free(models, p);
}

const struct gpu_model *gpu_profile_model(const struct gpu_profile *p,
					  const char *name, struct err *err)
{
	const struct gpu_model *m = p->models.items;
	size_t own = strcspn(name, ":"); /* without its variant */
	struct word_list words = WORD_LIST(name, strlen(name));

	for (size_t i = 0; i < p->models.n; i++)
		if (!strcmp(m[i].name, name))
			return &m[i];
	for (int alike = 1; alike >= 0; alike--)
		for (size_t i = 0; i < p->models.n; i++)
			if (alike == (own && !strncmp(m[i].name, name, own)))
				word_list_add(&words, m[i].name);
	err_set(err, -ENOENT, "%s: unknown model '%s'%s (known: %s)", p->name,
		name, words.hint, words.known);
	return NULL;
}

/* --- the table ------------------------------------------------------------ */

/* The rows between which `batch` lies, and the position between them (0: a, 1:
 * b). */
struct place {
	const struct gpu_row *a, *b;
	double t;
};

static size_t rows_up_to(const struct gpu_row *row, size_t n, double batch)
{
	size_t lo = 0;

	while (lo < n) {
		size_t mid = lo + (n - lo) / 2;

		if ((double)row[mid].batch <= batch)
			lo = mid + 1;
		else
			n = mid;
	}
	return lo;
}

static struct place find_rows(const struct gpu_row *row, size_t n, double batch)
{
	static const struct gpu_row nothing; /* no samples, no time */
	size_t hi, lo;

	if (n == 1)
		return (struct place){ &nothing, row,
				       batch / (double)row->batch };
	hi = MIN(MAX(rows_up_to(row, n, batch), 1), n - 1);
	lo = hi - 1;
	return (struct place){
		.a = &row[lo],
		.b = &row[hi],
		.t = (batch - (double)row[lo].batch) /
		     ((double)row[hi].batch - (double)row[lo].batch),
	};
}

/* An extrapolated line may fall below zero: clamp. */
static double line(const struct place *p, double a, double b)
{
	return fmax(0, a + (b - a) * p->t);
}

static uint64_t ms_to_ns(double ms)
{
	return (uint64_t)llround(fmin(ms, MAX_MS * 1e3) * 1e6);
}

/* --- copies --------------------------------------------------------------- */

uint64_t gpu_sample_bytes(const struct gpu_profile *p,
			  const struct gpu_model *m)
{
	return m->sample_bytes ? m->sample_bytes : p->sample_bytes;
}

uint64_t gpu_delivered_bytes(const struct gpu_profile *p,
			     const struct gpu_model *m, uint64_t prepared,
			     uint64_t read)
{
	if (read)
		return prepared ? prepared : read;
	return prepared && !m->sample_bytes ? prepared : gpu_sample_bytes(p, m);
}

uint64_t gpu_profile_jump_batch(const struct gpu_profile *p,
				const struct gpu_model *m)
{
	return p->transfer_jump.bytes
		       ? (p->transfer_jump.bytes - 1) / gpu_sample_bytes(p, m)
		       : 0;
}

/* Like find, but among the rows on the same side of the jump as `bytes`, if
 * any. */
static struct place find_transfer(const struct gpu_profile *p,
				  const struct gpu_model *m, double bytes)
{
	uint64_t jump = gpu_profile_jump_batch(p, m);
	double batch = bytes / (double)gpu_sample_bytes(p, m);
	const struct gpu_row *row = m->rows.items;
	size_t n = m->rows.n, below = rows_up_to(row, n, (double)jump);

	if (below == 0 || below == n)
		return find_rows(row, n, batch);
	return bytes < (double)p->transfer_jump.bytes
		       ? find_rows(row, below, batch)
		       : find_rows(row + below, n - below, batch);
}

/* Far beyond the table, the slope between two rows would be noise. */
static double pageable_ms(const struct gpu_profile *p,
			  const struct gpu_model *m, double bytes)
{
	struct place at = find_transfer(p, m, bytes);

	if (at.t <= 1)
		return line(&at, at.a->transfer_ms, at.b->transfer_ms);
	return at.b->transfer_ms * bytes /
	       (double)(at.b->batch * gpu_sample_bytes(p, m));
}

static uint64_t copy_ns(const struct gpu_profile *p, const struct gpu_model *m,
			enum gpu_copy how, double bytes)
{
	const struct gpu_law *law = how == GPU_COPY_PINNED ? &p->pinned
							   : &p->pin_copy;

	if (bytes <= 0)
		return 0;
	if (p->copies.rows.n)
		return ms_to_ns(table_ms(&p->copies, how, bytes));
	if (how == GPU_COPY_PAGEABLE)
		return ms_to_ns(pageable_ms(p, m, bytes));
	return ms_to_ns(law_ms(p, law, bytes));
}

uint64_t gpu_copy_ns(const struct gpu_profile *p, const struct gpu_model *m,
		     enum gpu_copy how, uint64_t bytes)
{
	return copy_ns(p, m, how, (double)bytes);
}

uint64_t gpu_model_transfer_ns(const struct gpu_model *m)
{
	return ms_to_ns(m->model_transfer_ms);
}

double gpu_link_bytes_per_s(const struct gpu_profile *p)
{
	const struct gpu_copies_row *row = p->copies.rows.items;
	size_t n = p->copies.rows.n;

	if (n)
		return row[n - 1].pinned_ms > 0
			       ? (double)row[n - 1].bytes * 1e3 /
					 row[n - 1].pinned_ms
			       : 0;
	return p->pinned.per_sample_ms > 0
		       ? (double)p->sample_bytes * 1e3 / p->pinned.per_sample_ms
		       : 0;
}

/* --- a step --------------------------------------------------------------- */

static enum gpu_origin origin_of(const struct gpu_model *m,
				 const struct place *p, uint64_t batch)
{
	const struct gpu_row *row = m->rows.items;

	if (batch == p->a->batch || batch == p->b->batch)
		return GPU_MEASURED;
	if (batch < row[0].batch || batch > row[m->rows.n - 1].batch)
		return GPU_EXTRAPOLATED;
	return GPU_INTERPOLATED;
}

void gpu_profile_cost(const struct gpu_profile *p, const struct gpu_model *m,
		      uint64_t batch, struct gpu_cost *ret)
{
	struct place at = find_rows(m->rows.items, m->rows.n, (double)batch);
	const struct gpu_row *a = at.a, *b = at.b;
	double bytes = (double)batch * (double)gpu_sample_bytes(p, m);

	*ret = (struct gpu_cost){
		.origin = origin_of(m, &at, batch),
		.forward_ns = ms_to_ns(line(&at, a->forward_ms, b->forward_ms)),
		.backward_ns =
			ms_to_ns(line(&at, a->backward_ms, b->backward_ms)),
		.transfer_pageable_ns = copy_ns(p, m, GPU_COPY_PAGEABLE, bytes),
		.transfer_pinned_ns = copy_ns(p, m, GPU_COPY_PINNED, bytes),
		.pin_copy_ns = copy_ns(p, m, GPU_COPY_TO_PINNED, bytes),
		.spread_pct = line(&at, a->spread_pct, b->spread_pct),
		.peak_mib = line(&at, a->peak_mib, b->peak_mib),
		.persistent_mib =
			line(&at, a->persistent_mib, b->persistent_mib),
	};
	if (gpu_model_optimizer_given(m))
		ret->optimizer_ns = MIN(
			ret->backward_ns,
			ms_to_ns(line(&at, a->optimizer_ms, b->optimizer_ms)));
}

uint64_t gpu_profile_estimated_batch(const struct gpu_profile *p,
				     const struct gpu_model *m)
{
	double usable = p->usable_memory * p->memory_mib;
	uint64_t lo = 0, hi = MAX_BATCH;

	while (lo < hi) {
		uint64_t mid = hi - (hi - lo) / 2;
		struct gpu_cost cost;

		gpu_profile_cost(p, m, mid, &cost);
		if (cost.peak_mib <= usable)
			lo = mid;
		else
			hi = mid - 1;
	}
	return lo;
}

uint64_t gpu_profile_largest_batch(const struct gpu_profile *p,
				   const struct gpu_model *m)
{
	const struct gpu_row *row = m->rows.items;
	uint64_t estimated = gpu_profile_estimated_batch(p, m);

	if (p->resized || row[m->rows.n - 1].peak_mib > p->memory_mib)
		return estimated;
	return m->last_is_limit ? m->last_batch : MAX(m->last_batch, estimated);
}

int gpu_memory_check(const void *object, struct err *err)
{
	uint64_t bytes = *(const uint64_t *)object;

	return bytes == 0 || bytes >= MIB
		       ? 0
		       : err_set(err, -EINVAL,
				 "%" PRIu64 " bytes are less than 1M", bytes);
}

void gpu_profile_resize(struct gpu_profile *p, double memory_mib)
{
	p->memory_mib = memory_mib;
	p->resized = true;
}

const char *gpu_model_batches(const struct gpu_model *m,
			      char buf[GPU_BATCHES_TEXT])
{
	enum { FEW = 6 };
	const struct gpu_row *row = m->rows.items;
	int n = 0;

	if (m->rows.n > FEW) {
		snprintf(buf, GPU_BATCHES_TEXT,
			 "%" PRIu64 " to %" PRIu64 " (%zu rows)", row[0].batch,
			 m->last_batch, m->rows.n);
		return buf;
	}
	for (size_t i = 0; i < m->rows.n; i++)
		n += snprintf(buf + n, (size_t)(GPU_BATCHES_TEXT - n),
			      "%s%" PRIu64, i ? ", " : "", row[i].batch);
	return buf;
}

bool gpu_model_optimizer_given(const struct gpu_model *m)
{
	const struct gpu_row *row = m->rows.items;

	for (size_t i = 0; i < m->rows.n; i++)
		if (row[i].optimizer_ms <= 0)
			return false;
	return true;
}

bool gpu_model_memory_given(const struct gpu_model *m)
{
	const struct gpu_row *row = m->rows.items;

	return row[m->rows.n - 1].peak_mib > 0;
}

/* Of the rows, which for a normal distribution is its coefficient of variation;
 * 0: not given. */
static double mean_spread(const struct gpu_model *m)
{
	const struct gpu_row *row = m->rows.items;
	double sum = 0;

	for (size_t i = 0; i < m->rows.n; i++)
		sum += row[i].spread_pct;
	return m->rows.n ? sum / (double)m->rows.n : 0;
}

int gpu_profile_noise(const struct gpu_profile *p, const struct gpu_model *m,
		      double *ret, struct err *err)
{
	const struct gpu_noise_model *n = p->noise.models.items;
	char known[ERR_LIST] = "";

	for (size_t i = 0; i < p->noise.models.n; i++) {
		err_list(known, n[i].name);
		if (strcmp(n[i].name, m->name))
			continue;
		*ret = n[i].cv_pct / 100;
		return 0;
	}
	if (mean_spread(m) > 0) {
		*ret = mean_spread(m) / 100;
		return 0;
	}
	return err_set(err, -ENODATA,
		       "%s: the jitter of %s was not measured (measured: %s); "
		       "give a number",
		       p->name, m->name, known[0] ? known : "none");
}

const char *gpu_origin_name(enum gpu_origin origin)
{
	static const char *const names[] = {
		[GPU_MEASURED] = "measured",
		[GPU_INTERPOLATED] = "interpolated",
		[GPU_EXTRAPOLATED] = "extrapolated",
	};

	return names[origin];
}
