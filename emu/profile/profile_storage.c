/* SPDX-License-Identifier: MIT */
#include "emu/profile/profile_storage.h"

#include <errno.h>
#include <math.h>

#include "common/units.h"
#include "common/util.h"
#include "emu/profile/profile.h"

static const char *const op_names[STORAGE_N_OPS] = {
	[STORAGE_OPEN] = "open",       [STORAGE_LOOKUP] = "lookup",
	[STORAGE_READDIR] = "readdir", [STORAGE_READ] = "read",
	[STORAGE_WRITE] = "write",     [STORAGE_SYNC] = "sync",
	[STORAGE_CREATE] = "create",   [STORAGE_REMOVE] = "remove",
	[STORAGE_RENAME] = "rename",
};

const char *storage_op_name(enum storage_op op)
{
	return op_names[op];
}

/* --- the profile ------------------------------------------------------ */

#define CLASS_TIME(key, member)                                              \
	{                                                                    \
		key, CONF_RECORD, offsetof(struct storage_class, member),    \
			.fields = dist_time_fields, .check = dist_time_check \
	}
#define SOURCED(type, at)                                          \
	{ "source", CONF_STRING, offsetof(type, at source),        \
	  .required = true },                                      \
	{                                                          \
		"verified", CONF_BOOL, offsetof(type, at verified) \
	}

/* 10^7 MB/s is 10 TB/s; 2^40: no device is wider. */
#define RATE(type, member)                                                  \
	{                                                                   \
		"mb_per_s", CONF_DOUBLE, offsetof(type, member), .min = 0,  \
								 .max = 1e7 \
	}

/* No device sorts a longer queue; it also bounds a counter in
 * fs/device/device.c. */
enum { MAX_REORDER = 1024 };

static const struct conf_field reorder_fields[] = {
	{ CONF_KEY(in_queue, CONF_UINT, struct storage_reorder),
	  .required = true, .min = 1, .max = MAX_REORDER },
	{ CONF_KEY(share, CONF_DOUBLE, struct storage_reorder),
	  .required = true, .min = 0, .max = 1 },
	{ 0 },
};

static const struct conf_field loaded_fields[] = {
	{ CONF_KEY(in_queue, CONF_UINT, struct storage_loaded),
	  .required = true, .min = 1, .max = MAX_REORDER },
	{ "size", CONF_SIZE, offsetof(struct storage_loaded, bytes),
	  .required = true, .min = 1, .max = 1099511627776.0 },
	{ CONF_KEY(quantiles, CONF_LIST, struct storage_loaded),
	  .item = CONF_ROW, .item_size = sizeof(struct dist_quantile),
	  .fields = dist_quantile_fields },
	{ 0 },
};

static int check_row(const void *object, struct err *err)
{
	const struct storage_loaded *row = object;

	return dist_check_quantiles(&row->quantiles, err);
}

static int check_loaded(const struct conf_list *l, struct err *err)
{
	const struct storage_loaded *v = l->items;

	for (size_t i = 0; i < l->n; i++) {
		bool next = i && v[i].in_queue == v[i - 1].in_queue;

		if (i ? v[i].in_queue < v[i - 1].in_queue ||
				    (next && v[i].bytes <= v[i - 1].bytes)
		      : v[i].in_queue != 1)
			return err_set(err, -EINVAL,
				       "loaded must start at in_queue 1 and "
				       "ascend, by in_queue and then by size");
	}
	return 0;
}

static int check_class(const void *object, struct err *err)
{
	const struct storage_class *c = object;
	const struct storage_reorder *v = c->reorder.items;

	for (size_t i = 0; i < c->reorder.n; i++)
		if (i ? v[i].in_queue <= v[i - 1].in_queue : v[i].in_queue != 1)
			return err_set(err, -EINVAL,
				       "reorder must start at 1 and ascend");
	if (c->settle_ns && (double)c->settle_ns > dist_time_mean(&c->seek))
		return err_set(err, -EINVAL,
			       "settle, the shortest seek, must not be longer "
			       "than the mean one");
	return check_loaded(&c->loaded, err);
}

static int check_unrated(const void *object, struct err *err)
{
	if (((const struct storage_class *)object)->mb_per_s > 0)
		return err_set(err, -EINVAL,
			       "mb_per_s is for writes; that of reads is in "
			       "channels");
	return check_class(object, err);
}

static int check_unloaded(const void *object, struct err *err)
{
	if (((const struct storage_class *)object)->loaded.n)
		return err_set(err, -EINVAL, "loaded is for reads");
	return check_class(object, err);
}

static int check_name_class(const void *object, struct err *err)
{
	int r = check_unrated(object, err);

	return r < 0 ? r : check_unloaded(object, err);
}

static const struct conf_field class_fields[] = {
	SOURCED(struct storage_class, ),
	CLASS_TIME("occupancy", occupancy),
	CLASS_TIME("latency", latency),
	CLASS_TIME("seek", seek),
	{ "rotation", CONF_DURATION,
	  offsetof(struct storage_class, rotation_ns), .min = 0,
	  .max = DIST_MAX_NS },
	{ "settle", CONF_DURATION, offsetof(struct storage_class, settle_ns),
	  .min = 0, .max = DIST_MAX_NS },
	{ CONF_KEY(reorder, CONF_LIST, struct storage_class), .item = CONF_ROW,
	  .item_size = sizeof(struct storage_reorder),
	  .fields = reorder_fields },
	{ CONF_KEY(slots, CONF_UINT, struct storage_class), .min = 0,
	  .max = 1000 },
	{ CONF_KEY(loaded, CONF_LIST, struct storage_class),
	  .item = CONF_RECORD, .item_size = sizeof(struct storage_loaded),
	  .fields = loaded_fields, .check = check_row },
	RATE(struct storage_class, mb_per_s),
	{ 0 },
};

#define CHUNK(key, member)                                                \
	{                                                                 \
		key, CONF_SIZE, offsetof(struct storage_profile, member), \
			.min = 0, .max = 1099511627776.0                  \
	}
static const struct conf_field time_fields[] = {
	{ CONF_KEY(bytes, CONF_SIZE, struct storage_time), .required = true,
	  .min = 1, .max = 1099511627776.0 },
	{ "time", CONF_DURATION, offsetof(struct storage_time, ns),
	  .required = true, .min = 0, .max = DIST_MAX_NS },
	{ 0 },
};

static int check_channels(const void *object, struct err *err)
{
	const struct conf_list *l =
		&((const struct storage_profile *)object)->channels.times;
	const struct storage_time *v = l->items;

	for (size_t i = 1; i < l->n; i++)
		if (v[i].bytes <= v[i - 1].bytes || v[i].ns < v[i - 1].ns)
			return err_set(err, -EINVAL,
				       "times must ascend, in bytes and time");
	return 0;
}

static const struct conf_field channels_fields[] = {
	SOURCED(struct storage_profile, channels.),
	{ "count", CONF_UINT, offsetof(struct storage_profile, channels.count),
	  .min = 0, .max = 65536 },
	RATE(struct storage_profile, channels.mb_per_s),
	CHUNK("stripe", channels.stripe_bytes),
	{ "times", CONF_LIST, offsetof(struct storage_profile, channels.times),
	  .item = CONF_ROW, .item_size = sizeof(struct storage_time),
	  .fields = time_fields },
	{ 0 },
};
static const struct conf_field link_fields[] = {
	SOURCED(struct storage_profile, link.),
	RATE(struct storage_profile, link.mb_per_s),
	{ 0 },
};
static const struct conf_field iops_fields[] = {
	SOURCED(struct storage_profile, iops.),
	{ "per_s", CONF_DOUBLE, offsetof(struct storage_profile, iops.per_s),
	  .min = 0, .max = 1e9 },
	{ "burst", CONF_UINT, offsetof(struct storage_profile, iops.burst),
	  .min = 1, .max = 1e9 },
	CHUNK("slot", iops.slot_bytes),
	{ 0 },
};
static const struct conf_field quota_fields[] = {
	SOURCED(struct storage_profile, quota.),
	{ "window", CONF_DURATION,
	  offsetof(struct storage_profile, quota.window_ns), .required = true,
	  .min = 1e3, .max = DIST_MAX_NS },
	{ "per_s", CONF_DOUBLE, offsetof(struct storage_profile, quota.per_s),
	  .min = 0, .max = 1e9 },
	RATE(struct storage_profile, quota.mb_per_s),
	{ 0 },
};
static const struct conf_field names_fields[] = {
	SOURCED(struct storage_profile, names.),
	{ "kept", CONF_DURATION,
	  offsetof(struct storage_profile, names.kept_ns), .required = true,
	  .min = 0, .max = DIST_MAX_NS },
	{ 0 },
};
static const struct conf_field prefix_fields[] = {
	SOURCED(struct storage_profile, prefix.),
	{ "reads_per_s", CONF_DOUBLE,
	  offsetof(struct storage_profile, prefix.reads_per_s), .min = 0,
	  .max = 1e9 },
	{ "writes_per_s", CONF_DOUBLE,
	  offsetof(struct storage_profile, prefix.writes_per_s), .min = 0,
	  .max = 1e9 },
	{ 0 },
};
static const struct conf_field capacity_fields[] = {
	SOURCED(struct storage_profile, capacity.),
	{ "size", CONF_SIZE, offsetof(struct storage_profile, capacity.bytes),
	  .required = true, .min = 4096, .max = STORAGE_MOST_CAPACITY },
	{ 0 },
};
/* 1,000 USD: arbitrary, far above any provider's */
#define PRICE(key, member)                                              \
	{                                                               \
		key, CONF_DOUBLE,                                       \
			offsetof(struct storage_profile, price.member), \
			.min = 0, .max = 1000                           \
	}
static const struct conf_field price_fields[] = {
	SOURCED(struct storage_profile, price.),
	PRICE("open_usd_per_1000", usd_per_1000[STORAGE_OPEN]),
	PRICE("lookup_usd_per_1000", usd_per_1000[STORAGE_LOOKUP]),
	PRICE("readdir_usd_per_1000", usd_per_1000[STORAGE_READDIR]),
	PRICE("read_usd_per_1000", usd_per_1000[STORAGE_READ]),
	PRICE("write_usd_per_1000", usd_per_1000[STORAGE_WRITE]),
	PRICE("sync_usd_per_1000", usd_per_1000[STORAGE_SYNC]),
	PRICE("create_usd_per_1000", usd_per_1000[STORAGE_CREATE]),
	PRICE("remove_usd_per_1000", usd_per_1000[STORAGE_REMOVE]),
	PRICE("usd_per_gib", usd_per_gib),
	PRICE("write_usd_per_gib", write_usd_per_gib),
	{ 0 },
};

/* arbitrary: bounds the memory of fs/device/device.c */
enum { MAX_UNITS = 65536 };

static int check_buffer(const void *object, struct err *err)
{
	const struct storage_profile *p = object;
	uint64_t n = p->buffer.bytes / p->buffer.unit_bytes;

	if (n < 1 || n > MAX_UNITS)
		return err_set(err, -EINVAL, "size must be 1 to %d times unit",
			       MAX_UNITS);
	return 0;
}

static const struct conf_field buffer_fields[] = {
	SOURCED(struct storage_profile, buffer.),
	{ "size", CONF_SIZE, offsetof(struct storage_profile, buffer.bytes),
	  .required = true, .min = 4096, .max = 1099511627776.0 },
	{ "unit", CONF_SIZE,
	  offsetof(struct storage_profile, buffer.unit_bytes), .required = true,
	  .min = 4096, .max = 1099511627776.0 },
	{ "in_client", CONF_BOOL,
	  offsetof(struct storage_profile, buffer.in_client) },
	{ 0 },
};
static const struct conf_field random_read_fields[] = {
	{ "size", CONF_SIZE, offsetof(struct storage_measured, bytes),
	  .required = true, .min = 512, .max = 1048576 },
	{ CONF_KEY(mb_per_s, CONF_DOUBLE, struct storage_measured),
	  .required = true, .min = 1e-3, .max = 1e7 },
	{ 0 },
};
#define CLASS(key, n, checked)                                             \
	{                                                                  \
		key, CONF_RECORD, offsetof(struct storage_profile, op[n]), \
			.fields = class_fields, .check = checked           \
	}
/* Omitted parts cost nothing; present parts must name their source. */
static const struct conf_field fields[] = {
	{ CONF_KEY(name, CONF_STRING, struct storage_profile),
	  .required = true },
	{ CONF_KEY(source, CONF_STRING, struct storage_profile),
	  .required = true },
	{ CONF_KEY(notes, CONF_STRING, struct storage_profile) },
	/* their offsets count from the whole profile */
	{ "channels", CONF_RECORD, 0, .fields = channels_fields,
	  .check = check_channels },
	{ "link", CONF_RECORD, 0, .fields = link_fields },
	{ "iops", CONF_RECORD, 0, .fields = iops_fields },
	{ "quota", CONF_RECORD, 0, .fields = quota_fields },
	{ "names", CONF_RECORD, 0, .fields = names_fields },
	{ "prefix", CONF_RECORD, 0, .fields = prefix_fields },
	{ "capacity", CONF_RECORD, 0, .fields = capacity_fields },
	{ "price", CONF_RECORD, 0, .fields = price_fields },
	CLASS("open", STORAGE_OPEN, check_name_class),
	CLASS("lookup", STORAGE_LOOKUP, check_name_class),
	CLASS("readdir", STORAGE_READDIR, check_name_class),
	CLASS("read", STORAGE_READ, check_unrated),
	{ "buffer", CONF_RECORD, 0, .fields = buffer_fields,
	  .check = check_buffer },
	CLASS("write", STORAGE_WRITE, check_unloaded),
	CLASS("sync", STORAGE_SYNC, check_name_class),
	CLASS("create", STORAGE_CREATE, check_name_class),
	CLASS("remove", STORAGE_REMOVE, check_name_class),
	CLASS("rename", STORAGE_RENAME, check_name_class),
	{ CONF_KEY(random_reads, CONF_LIST, struct storage_profile),
	  .item = CONF_ROW, .item_size = sizeof(struct storage_measured),
	  .fields = random_read_fields },
	{ 0 },
};

static void resolve(struct storage_profile *p)
{
	for (int i = 0; i < STORAGE_N_OPS; i++) {
		dist_time_resolve(&p->op[i].occupancy);
		dist_time_resolve(&p->op[i].latency);
		dist_time_resolve(&p->op[i].seek);
	}
}

static struct storage_profile *new_profile(void)
{
	struct storage_profile *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->iops.burst = 1;
	for (int i = 0; i < STORAGE_N_OPS; i++)
		p->op[i].slots = 1;
	return p;
}

static int finish_profile(struct storage_profile *p, int r,
			  struct storage_profile **ret)
{
	if (r < 0) {
		storage_profile_free(p);
		return r;
	}
	resolve(p);
	*ret = p;
	return 0;
}

int storage_profile_load(const char *name, struct storage_profile **ret,
			 struct err *err)
{
	struct storage_profile *p = new_profile();

	if (!p)
		return -ENOMEM;
	return finish_profile(
		p, profile_load(PROFILE_STORAGE, name, fields, NULL, p, err),
		ret);
}

int storage_profile_parse(const char *bytes, size_t n, const char *name,
			  struct storage_profile **ret, struct err *err)
{
	struct storage_profile *p = new_profile();

	if (!p)
		return -ENOMEM;
	return finish_profile(
		p, profile_parse(bytes, n, name, fields, NULL, p, err), ret);
}

void storage_profile_free(struct storage_profile *p)
{
	if (!p)
		return;
	conf_free(fields, p);
	free(p);
}

const struct storage_class *storage_class_of(const struct storage_profile *p,
					     enum storage_op op)
{
	/* a group that the profile has has a source */
	if (op < STORAGE_N_READING || p->op[op].source)
		return &p->op[op];
	return &p->op[op == STORAGE_WRITE ? STORAGE_READ : STORAGE_OPEN];
}

double storage_reordered(const struct storage_class *c, uint64_t n)
{
	const struct storage_reorder *v = c->reorder.items;
	size_t i = 1;

	if (c->reorder.n == 0)
		return 1;
	while (i < c->reorder.n && v[i].in_queue < n)
		i++;
	if (i == c->reorder.n)
		return v[i - 1].share;
	return v[i - 1].share +
	       (v[i].share - v[i - 1].share) * (double)(n - v[i - 1].in_queue) /
		       (double)(v[i].in_queue - v[i - 1].in_queue);
}

double storage_channel_ns(const struct storage_profile *p, double bytes)
{
	const struct storage_time *v = p->channels.times.items;
	double rate = p->channels.mb_per_s, at = 0, ns = 0;

	for (size_t i = 0; i < p->channels.times.n; i++) {
		double to = (double)v[i].bytes, end = (double)v[i].ns;

		if (bytes <= to)
			return ns + (end - ns) * (bytes - at) / (to - at);
		at = to;
		ns = end;
	}
	return ns + (rate > 0 ? (bytes - at) * 1000 / rate : 0);
}

static double loaded_row(const struct storage_loaded *v, double u)
{
	return u < 0 ? dist_quantiles_mean(&v->quantiles)
		     : dist_quantile(&v->quantiles, u);
}

/* Among the n rows of one depth. */
static double loaded_at(const struct storage_loaded *v, size_t n,
			uint64_t bytes, double u)
{
	size_t i = 1;
	double from, to, part;

	if (n == 1 || bytes <= v[0].bytes)
		return loaded_row(&v[0], u);
	while (i < n - 1 && v[i].bytes < bytes)
		i++;
	from = loaded_row(&v[i - 1], u);
	to = loaded_row(&v[i], u);
	part = (double)(bytes - v[i - 1].bytes) /
	       (double)(v[i].bytes - v[i - 1].bytes);
	/* the end of a longer one is not before that of a shorter one */
	return from + fmax(0, to - from) * part;
}

double storage_loaded_ns(const struct storage_class *c, uint64_t bytes,
			 uint64_t n, double u)
{
	const struct storage_loaded *v = c->loaded.items;
	size_t low = 0, low_end = 0, high = 0, end = 0;
	double from, to, a, b;

	/* the rows of the last depth below n, and of the next one */
	do {
		low = high;
		low_end = end;
		high = end;
		while (end < c->loaded.n && v[end].in_queue == v[high].in_queue)
			end++;
	} while (end < c->loaded.n && v[high].in_queue < n);
	to = loaded_at(v + high, end - high, bytes, u);
	if (low == high || n >= v[high].in_queue)
		return to;
	from = loaded_at(v + low, low_end - low, bytes, u);
	a = (double)v[low].in_queue;
	b = (double)v[high].in_queue;
	return from + (to - from) * ((double)n - a) / (b - a);
}

double storage_cost_usd(const struct storage_profile *p, enum storage_op op,
			uint64_t bytes)
{
	double usd = p->price.usd_per_1000[op] / 1000;

	if (op == STORAGE_WRITE && p->buffer.bytes)
		usd *= (double)bytes / (double)p->buffer.unit_bytes;
	if (op == STORAGE_READ)
		usd += p->price.usd_per_gib * (double)bytes / GIB;
	if (op == STORAGE_WRITE)
		usd += p->price.write_usd_per_gib * (double)bytes / GIB;
	return usd;
}

void storage_profile_expose(struct storage_profile *p)
{
	if (p->buffer.in_client)
		p->buffer.bytes = 0;
	if (p->prefix.reads_per_s > 0)
		p->iops.per_s = 0;
}

json_t *storage_profile_json(const struct storage_profile *p)
{
	return conf_json(fields, p);
}
