/* SPDX-License-Identifier: MIT */
#include "fs/control/ctl.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/json.h"
#include "common/log.h"
#include "common/thread.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "common/word.h"
#include "emu/profile/profile.h"
#include "fs/cache/tier.h"
#include "fs/control/warm.h"
#include "fs/layer/layer_fault.h"
#include "fs/layer/trace.h"
#include "net/nic.h"

/*
 * --- metrics --------------------------------------------------------------
 *
 * The statistics as Prometheus text.
 */

static void print_label(FILE *f, const char *value)
{
	for (; *value; value++) {
		if (strchr("\"\\\n", *value))
			fputc('\\', f);
		fputc(*value == '\n' ? 'n' : *value, f);
	}
}

static void print_value(FILE *f, const char *name, const char *labels,
			json_t *v)
{
	if (json_is_number(v))
		fprintf(f, "gpemu_fs_%s%s %.17g\n", name, labels,
			json_number_value(v));
}

static void print_group(FILE *f, const char *name, json_t *group)
{
	const char *key;
	json_t *v;

	json_object_foreach (group, key, v) {
		if (!json_is_number(v) && !json_is_boolean(v))
			continue;
		fprintf(f,
			"# TYPE gpemu_fs_%s_%s gauge\n"
			"gpemu_fs_%s_%s %.17g\n",
			name, key, name, key,
			json_is_true(v) ? 1. : json_number_value(v));
	}
}

/* Counts of each of a list: "gpemu_fs_KIND_COUNT{ID="1",LABEL="..."} 5". A
 * member without `id` is named by its place. */
struct prom_list {
	const char *key, *kind, *id, *label;
	const char *const *counts; /* ended by NULL */
};

static void print_list(FILE *f, json_t *stats, const struct prom_list *l)
{
	json_t *list = json_object_get(stats, l->key), *one, *id;
	size_t i;

	for (const char *const *count = l->counts; *count; count++) {
		fprintf(f, "# TYPE gpemu_fs_%s_%s gauge\n", l->kind, *count);
		json_array_foreach (list, i, one) {
			id = json_object_get(one, l->id);
			fprintf(f, "gpemu_fs_%s_%s{%s=\"%lld\",%s=\"", l->kind,
				*count, l->id,
				id ? (long long)json_integer_value(id)
				   : (long long)i + 1,
				l->label);
			print_label(f, json_get_text(one, l->label));
			fprintf(f, "\"} %lld\n",
				(long long)json_integer_value(
					json_object_get(one, *count)));
		}
	}
}

static const struct prom_list faults = {
	"faults", "fault", "id", "rule",
	(const char *const[]){ "matched", "fired", "held", NULL }
};
static const struct prom_list tiers = {
	"tiers", "tier", "tier", "storage",
	(const char *const[]){ "capacity_bytes", "used_bytes", "objects",
			       "hits", "misses", "evictions", NULL }
};

/* `stats`: as ctl_stats returns them. Every number is a gauge: `reset` clears
 * even the counters. */
static void ctl_prom(FILE *f, json_t *stats)
{
	const char *storage =
		json_string_value(json_object_get(stats, "storage"));
	const char *key, *kind, *stat;
	json_t *v, *group, *number;

	fprintf(f,
		"# TYPE gpemu_fs_info gauge\n"
		"gpemu_fs_info{policy=\"%s\",storage=\"",
		json_string_value(json_object_get(stats, "policy")));
	/* JSON cannot express a path that is not UTF-8 */
	print_label(f, storage ? storage : "");
	fputs("\"} 1\n", f);
	json_object_foreach (stats, key, v) {
		if (!json_is_number(v))
			continue;
		fprintf(f, "# TYPE gpemu_fs_%s gauge\n", key);
		print_value(f, key, "", v);
	}
	print_group(f, "requests", json_object_get(stats, "requests"));
	print_group(f, "links", json_object_get(stats, "links"));
	print_group(f, "warm", json_object_get(stats, "warm"));
	print_group(f, "trace", json_object_get(stats, "trace"));
	print_group(f, "peer", json_object_get(stats, "peer"));
	print_group(f, "prefetch", json_object_get(stats, "prefetch"));
	fprintf(f, "# TYPE gpemu_fs_latency_us gauge\n");
	json_object_foreach (json_object_get(stats, "latency_us"), kind,
			     group) {
		json_object_foreach (group, stat, number) {
			char labels[80];

			snprintf(labels, sizeof(labels),
				 "{kind=\"%s\",stat=\"%s\"}", kind, stat);
			print_value(f, "latency_us", labels, number);
		}
	}
	print_list(f, stats, &tiers);
	print_list(f, stats, &faults);
}

/*
 * The network card in the control files, for the rank that trains on this node:
 * its gradients pass the same card as the traffic of the caches.
 *
 *	control	reduce ID WALL_NS BYTES BYTES_PER_S LATENCY_NS
 *		A bucket of gradients (net/nic.h). ID: of the rank, any
 *		number; WALL_NS: CLOCK_MONOTONIC, when it can pass.
 *	nic	{"gb_per_s", "latency_us", "time_scale", "sent_bytes",
 *		"received_bytes", "delay_ns": {ID: how much later its buckets
 *		are reduced than alone on the card}}; {} without a card
 */

struct line {
	uint64_t id, wall_ns, bytes;
	double bytes_per_s;
	uint64_t latency_ns;
};

/* arbitrary: bounds that no link reaches, and whose sums fit */
static const struct conf_field reduce_words[] = {
	{ "ID", CONF_UINT, offsetof(struct line, id), .max = 1e15 },
	{ "WALL_NS", CONF_UINT, offsetof(struct line, wall_ns), .max = 1e18 },
	{ "BYTES", CONF_UINT, offsetof(struct line, bytes), .min = 1,
	  .max = GRADIENTS_BYTES },
	{ "BYTES_PER_S", CONF_DOUBLE, offsetof(struct line, bytes_per_s),
	  .min = 1e3, .max = 1e15 },
	{ "LATENCY_NS", CONF_UINT, offsetof(struct line, latency_ns),
	  .max = 3600e9 },
};

/* Later than any step that a rank can know of. arbitrary */
#define MOST_AHEAD_NS (3600 * NS_PER_S)

/* The command `reduce` with its arguments. -EINVAL, and as nic_reduce; with a
 * text. */
static int ctl_reduce(struct ctl *ctl, char *args, struct err *err)
{
	struct line l = { 0 };
	char *save, *word = strtok_r(args, " \t\r", &save);
	struct gradients_bucket b;
	uint64_t now;
	int r = 0;

	if (!ctl->nic)
		return err_set(err, -ENODEV, "reduce: the mount has no --nic");
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(reduce_words); i++) {
		if (!word)
			return err_set(err, -EINVAL,
				       "use: reduce ID WALL_NS BYTES "
				       "BYTES_PER_S LATENCY_NS");
		r = conf_set(&reduce_words[i], &l, word, err);
		word = strtok_r(NULL, " \t\r", &save);
	}
	if (r < 0)
		return r;
	now = tick_now(server_tick(ctl->server));
	b = (struct gradients_bucket){
		.ready_ns = tick_of_wall(server_tick(ctl->server), l.wall_ns),
		.bytes = l.bytes,
		.bytes_per_s = l.bytes_per_s,
		.latency_ns = l.latency_ns,
	};
	if (word || b.ready_ns > now + MOST_AHEAD_NS)
		return err_set(err, -EINVAL, "reduce: %s",
			       word ? "too many words"
				    : "more than an hour ahead");
	r = nic_reduce(ctl->nic, l.id, &b, now);
	return r < 0 ? err_set(err, r, "reduce: %s", strerror(-r)) : 0;
}

/* NULL: no memory. */
static json_t *ctl_nic_json(struct ctl *ctl)
{
	struct nic_delay delay[GRADIENTS_CHAINS];
	json_t *delays;
	int n;

	if (!ctl->nic)
		return json_object();
	n = nic_delays(ctl->nic, delay);
	if (n < 0)
		return NULL;
	delays = json_object();
	for (int i = 0; i < n; i++) {
		char id[24];

		snprintf(id, sizeof(id), "%" PRIu64, delay[i].id);
		json_add_integer(delays, id, delay[i].ns);
	}
	return json_pack("{s:f, s:f, s:f, s:I, s:I, s:o}", "gb_per_s",
			 ctl->nic->out.bytes_per_s / 1e9, "latency_us",
			 (double)ctl->nic->latency_ns / NS_PER_US, "time_scale",
			 tick_scale(server_tick(ctl->server)), "sent_bytes",
			 (json_int_t)__atomic_load_n(&ctl->nic->sent,
						     __ATOMIC_RELAXED),
			 "received_bytes",
			 (json_int_t)__atomic_load_n(&ctl->nic->received,
						     __ATOMIC_RELAXED),
			 "delay_ns", delays);
}

/* The faults in the control files. */

static int clear(struct ctl *ctl, const char *id, struct err *err)
{
	const struct conf_field field = { "id", CONF_UINT, 0, .min = 1,
					  .max = UINT32_MAX };
	uint64_t number = 0;
	int r = id[0] ? conf_set(&field, &number, id, err) : 0;

	return r < 0 ? err_set(err, r,
			       "no fault with the id %s; stats lists them", id)
		     : server_fault_clear(ctl->server, (uint32_t)number, err);
}

/* The command `fault` with its arguments: "add RULE", "clear [ID]". */
static int ctl_fault(struct ctl *ctl, char *args, struct err *err)
{
	char *verb = util_trim(args), *rest = verb + strcspn(verb, " \t");
	size_t n = (size_t)(rest - verb);

	rest = util_trim(rest);
	if (n == 3 && !strncmp(verb, "add", n) && rest[0])
		return server_fault_add(ctl->server, rest, err);
	if (n == 5 && !strncmp(verb, "clear", n))
		return clear(ctl, rest, err);
	return err_set(err, -EINVAL, "use: fault add RULE, fault clear [ID]");
}

/* Under the options' lock: set the option "fault", if there is one, to the
 * rules in force. -ENOMEM. */
static int ctl_fault_refresh(struct ctl *ctl)
{
	const struct conf_field *f = ctl->fields;
	struct conf_list *list, fresh;
	int r;

	while (f->key && strcmp(f->key, "fault"))
		f++;
	if (!f->key)
		return 0;
	const struct conf_field one[2] = { *f, { 0 } };

	r = server_fault_texts(ctl->server, &fresh);
	list = (struct conf_list *)((char *)ctl->options + f->offset);
	conf_free(one, ctl->options);
	*list = fresh;
	return r;
}

/* arbitrary: a control write is a few lines */
enum { MAX_COMMAND = 4096 };

/* arbitrary: takes a millisecond of a thread that also serves others */
enum { MOST_PIECE = 128 << 10 };

/* arbitrary: the stats, some KiB, open ten thousand times */
enum { MOST_TEXT = 64 << 20 };

#define DUMP_LINE (JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(12))

static const char *const names[CTL_N_FILES] = {
	[CTL_STATS] = "stats",	 [CTL_STATS_PROM] = "stats.prom",
	[CTL_CONFIG] = "config", [CTL_CONTROL] = "control",
	[CTL_GROUPS] = "groups", [CTL_NIC] = "nic",
	[CTL_FUTURE] = "future", [CTL_IMPORTANCE] = "importance",
};

const char *ctl_name(enum ctl_file file)
{
	return names[file];
}

bool ctl_writable(enum ctl_file file)
{
	return file == CTL_CONTROL || file == CTL_FUTURE ||
	       file == CTL_IMPORTANCE;
}

uint32_t ctl_mode(enum ctl_file file)
{
	switch (file) {
	case CTL_STATS:
	case CTL_STATS_PROM: return 0444;
	case CTL_CONTROL:
	case CTL_FUTURE:
	case CTL_IMPORTANCE: return 0600;
	default: return 0400;
	}
}

bool ctl_is_long(enum ctl_file file)
{
	return file == CTL_GROUPS;
}

enum ctl_file ctl_lookup(const char *name)
{
	int i = WORD_FIND(names, "file", name, NULL);

	return i < 0 ? CTL_N_FILES : (enum ctl_file)i;
}

/* --- reading ------------------------------------------------------------ */

void ctl_set_transport(struct ctl *ctl, const char *word)
{
	__atomic_store_n(&ctl->transport, word, __ATOMIC_RELEASE);
}

json_t *ctl_stats(struct ctl *ctl)
{
	json_t *stats = server_stats(ctl->server);
	const char *transport =
		__atomic_load_n(&ctl->transport, __ATOMIC_ACQUIRE);

	if (stats && transport)
		json_add_text(stats, "transport", transport);

	if (stats)
		json_add_integer(stats, "control_bytes",
				 __atomic_load_n(&ctl->text_bytes,
						 __ATOMIC_RELAXED));
	if (stats && ctl->add_stats)
		ctl->add_stats(ctl->add_ctx, stats);
	if (stats && ctl->warm)
		json_object_set_new(stats, "warm", warm_json(ctl->warm));
	if (stats && ctl->trace)
		json_object_set_new(stats, "trace", trace_json(ctl->trace));
	return stats;
}

static int write_file(struct ctl *ctl, enum ctl_file file, FILE *f)
{
	int r = 0;

	if (file == CTL_CONFIG) {
		pthread_mutex_lock(ctl->lock);
		r = ctl_fault_refresh(ctl);
		if (r == 0)
			r = conf_dump(ctl->fields, ctl->options, f);
		pthread_mutex_unlock(ctl->lock);
		return r;
	}
	if (ctl_writable(file) || ctl_is_long(file))
		return 0;
	json_auto_t *stats = file == CTL_NIC ? ctl_nic_json(ctl)
					     : ctl_stats(ctl);

	if (!stats)
		return -ENOMEM;
	if (file == CTL_STATS_PROM)
		ctl_prom(f, stats);
	else if (json_dumpf(stats, f,
			    JSON_INDENT(2) | JSON_REAL_PRECISION(12)) < 0 ||
		 fputc('\n', f) == EOF)
		r = -ENOMEM;
	return r;
}

/* A list is logged item by item: the length of a line is limited. */
void ctl_log_stats(struct ctl *ctl)
{
	json_auto_t *stats = ctl_stats(ctl);
	const char *key;
	json_t *v, *item;
	size_t i;

	json_object_foreach (stats, key, v) {
		if (!json_is_array(v)) {
			_cleanup_free_ char *text = json_dumps(v, DUMP_LINE);

			log_info("stats: %s %s", key, text ? text : "?");
			continue;
		}
		json_array_foreach (v, i, item) {
			_cleanup_free_ char *text = json_dumps(item, DUMP_LINE);

			log_info("stats: %s[%zu] %s", key, i,
				 text ? text : "?");
		}
	}
}

/* A text is never refused while it is the only one. */
static int take_room(struct ctl *ctl, size_t n)
{
	uint64_t all =
		__atomic_add_fetch(&ctl->text_bytes, n, __ATOMIC_RELAXED);

	if (all <= MOST_TEXT || all == n)
		return 0;
	__atomic_fetch_sub(&ctl->text_bytes, n, __ATOMIC_RELAXED);
	return -ENFILE;
}

int ctl_read(struct ctl *ctl, enum ctl_file file, char **ret, size_t *ret_n)
{
	_cleanup_free_ char *text = NULL;
	FILE *f = open_memstream(&text, ret_n);
	int r;

	if (!f)
		return -ENOMEM;
	r = write_file(ctl, file, f);
	if (fclose(f) || r < 0)
		return r < 0 ? r : -ENOMEM;
	r = take_room(ctl, *ret_n);
	if (r == 0)
		*ret = TAKE_PTR(text);
	return r;
}

void ctl_free(struct ctl *ctl, char *text, size_t n)
{
	if (text)
		__atomic_fetch_sub(&ctl->text_bytes, n, __ATOMIC_RELAXED);
	free(text);
}

int ctl_read_at(struct ctl *ctl, enum ctl_file file, uint64_t offset, size_t n,
		char **ret, size_t *ret_n)
{
	if (!ctl_is_long(file))
		return -EINVAL;
	return server_read_groups(ctl->server, offset, MIN(n, MOST_PIECE), ret,
				  ret_n);
}

int ctl_write(struct ctl *ctl, enum ctl_file file, const void *writer,
	      uint64_t offset, const char *bytes, size_t n, struct err *err)
{
	if (file == CTL_IMPORTANCE)
		return server_importance(ctl->server, bytes, n, err);
	return file == CTL_FUTURE ? server_future(ctl->server, writer, offset,
						  bytes, n, err)
				  : ctl_command(ctl, bytes, n, err);
}

bool ctl_ends(enum ctl_file file)
{
	return file == CTL_FUTURE;
}

int ctl_end(struct ctl *ctl, const void *writer, struct err *err)
{
	return server_future_end(ctl->server, writer, err);
}

/* --- commands ----------------------------------------------------------- */

/* Moves `*from` into the option, which owns it from then on. */
static void take_text(struct ctl *ctl, char **option, char **from)
{
	LOCK_SCOPE(ctl->lock);
	free(*option);
	*option = TAKE_PTR(*from);
}

int ctl_check_file(const char *path, struct err *err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "%s: not a regular file", path);
	return 0;
}

static int set_storage(struct ctl *ctl, const char *value, struct err *err)
{
	bool is_path = profile_is_path(value);
	_cleanup_free_ char *name = NULL;
	int r = 0;

	if (is_path && *value != '/' && ctl->dir) {
		name = util_text("%s/%s", ctl->dir, value);
	} else {
		name = strdup(value);
	}
	if (!name)
		return err_set(err, -ENOMEM, "out of memory");
	if (is_path)
		r = ctl_check_file(name, err);
	if (r == 0)
		r = server_set_storage(ctl->server, name, err);
	if (r == 0)
		take_text(ctl, ctl->storage, &name);
	return r;
}

/* -EINVAL: the cache is not a single policy and size. */
static int check_no_tiers(const struct ctl *ctl, struct err *err)
{
	return ctl->tiers && ctl->tiers->n
		       ? err_set(err, -EINVAL,
				 "the cache has tiers: use set tier NUMBER "
				 "[STORAGE:]POLICY:SIZE")
		       : 0;
}

static int set_policy(struct ctl *ctl, const char *value, struct err *err)
{
	_cleanup_free_ char *name = strdup(value);
	int r = name ? check_no_tiers(ctl, err)
		     : err_set(err, -ENOMEM, "out of memory");

	if (r == 0)
		r = server_set_cache(ctl->server, value, ctl->cache_size, err);
	if (r == 0)
		take_text(ctl, ctl->cache_policy, &name);
	return r;
}

static int change_size(struct ctl *ctl, const char *value, bool keep,
		       struct err *err)
{
	struct units_capacity size;
	int r = check_no_tiers(ctl, err);

	if (r < 0)
		return r;
	if (units_parse_capacity(value, &size) < 0)
		return err_set(err, -EINVAL, "'%s' is not a cache size", value);
	r = tier_check_size(&size, err);
	if (r < 0)
		return r;
	r = keep ? server_resize_cache(ctl->server, &size, err)
		 : server_set_cache(ctl->server, *ctl->cache_policy, &size,
				    err);
	if (r < 0)
		return r;
	LOCK_SCOPE(ctl->lock);
	*ctl->cache_size = size;
	return 0;
}

static int set_size(struct ctl *ctl, const char *value, struct err *err)
{
	return change_size(ctl, value, false, err);
}

static int set_bandwidth(struct ctl *ctl, const char *value, struct err *err)
{
	uint64_t bytes_per_s;

	if (units_parse_size(value, &bytes_per_s) < 0)
		return err_set(err, -EINVAL,
			       "'%s' is not a number of bytes per second",
			       value);
	return server_set_bandwidth(ctl->server, bytes_per_s, err);
}

static int any_storage(const void *storage, struct err *err)
{
	(void)storage;
	(void)err;
	return 0;
}

/* *ret: tier `number`, from 1: as it is now, and as `text` asks for. */
static int parse_tier(const struct ctl *ctl, unsigned long number,
		      const char *text, struct tiers *ret, struct err *err)
{
	size_t n = ctl->tiers ? ctl->tiers->n : 0;
	int r;

	if (number < 1 || number > n)
		return err_set(err, -EINVAL, "no tier %lu: the cache has %zu",
			       number, n);
	r = tiers_parse(((char **)ctl->tiers->items)[number - 1], false,
			any_storage, ret, err);
	if (r == 0)
		r = tiers_parse(text, false, any_storage, ret, err);
	if (r < 0)
		return r;
	if (ret->n != 2)
		return err_set(err, -EINVAL, "give one tier, not '%s'", text);
	return strcmp(tier_storage(&ret->v[0]), tier_storage(&ret->v[1]))
		       ? err_set(err, -EINVAL,
				 "the storage of tier %lu is %s; to change it "
				 "to %s, unmount and mount again",
				 number, tier_storage(&ret->v[0]),
				 tier_storage(&ret->v[1]))
		       : 0;
}

/* "NUMBER [STORAGE:]POLICY:SIZE" */
static int set_tier(struct ctl *ctl, const char *value, struct err *err)
{
	_cleanup_(tiers_fini) struct tiers t = { 0 };
	_cleanup_free_ char *text = NULL;
	unsigned long number;
	char *rest;
	int r;

	errno = 0;
	number = strtoul(value, &rest, 10);
	if (errno || rest == value || !strchr(" \t", *rest))
		return err_set(err, -EINVAL,
			       "use: set tier NUMBER [STORAGE:]POLICY:SIZE");
	r = parse_tier(ctl, number, rest, &t, err);
	if (r == 0 && !(text = tier_text(&t.v[1])))
		r = err_set(err, -ENOMEM, "out of memory");
	if (r == 0)
		r = server_set_tier(ctl->server, (unsigned)number - 1,
				    t.v[1].policies[0].text, t.v[1].sizes, err);
	if (r == 0)
		take_text(ctl, &((char **)ctl->tiers->items)[number - 1],
			  &text);
	return r;
}

static int set(struct ctl *ctl, const char *key, char *value, struct err *err)
{
	static const char *const keys[] = { "storage", "cache_policy",
					    "cache_size", "tier", "bandwidth" };
	static int (*const setters[])(struct ctl *, const char *,
				      struct err *) = { set_storage, set_policy,
							set_size, set_tier,
							set_bandwidth };
	int i;

	if (!key || !*(value = util_trim(value)))
		return err_set(err, -EINVAL, "use: set KEY VALUE");
	i = WORD_FIND(keys, "setting", key, err);
	return i < 0 ? i : setters[i](ctl, value, err);
}

static int warm(struct ctl *ctl, char *list, struct err *err)
{
	list = util_trim(list);
	if (!*list || !ctl->warm)
		return err_set(err, -EINVAL, "use: warm all|GLOB|/LIST");
	return warm_begin(ctl->warm, list, err);
}

static int run_line(struct ctl *ctl, char *line, struct err *err)
{
	enum { RESET, EPOCH, DROP_CACHE, SET, FAULT, WARM, REDUCE, RESIZE };
	static const char *const words[] = {
		[RESET] = "reset",	     [EPOCH] = "epoch",
		[DROP_CACHE] = "drop-cache", [SET] = "set",
		[FAULT] = "fault",	     [WARM] = "warm",
		[REDUCE] = "reduce",	     [RESIZE] = "resize",
	};
	char *save, *word = strtok_r(line, " \t\r", &save);
	char *key;
	int i = word ? WORD_FIND(words, "command", word, err) : 0;

	if (!word || i < 0)
		return i;
	/* these take the rest of the line, with blanks, as one argument */
	if (i == WARM)
		return warm(ctl, save, err);
	if (i == FAULT)
		return ctl_fault(ctl, save, err);
	if (i == REDUCE)
		return ctl_reduce(ctl, save, err);
	if (i == RESIZE)
		return change_size(ctl, util_trim(save), true, err);
	key = strtok_r(NULL, " \t\r", &save);
	if (i == SET)
		return set(ctl, key, save, err);
	if (key)
		return err_set(err, -EINVAL, "%s takes no argument", word);
	return i == EPOCH   ? server_epoch(ctl->server, err)
	       : i == RESET ? server_reset(ctl->server, err)
			    : server_drop_cache(ctl->server, err);
}

bool ctl_may_wait(enum ctl_file file, const char *text, size_t n)
{
	static const char *const words[] = { "set", "warm", "resize" };
	const char *end = text + n;

	if (file != CTL_CONTROL)
		return true;
	while (text < end && n <= MAX_COMMAND) { /* longer: fails */
		const char *eol = memchr(text, '\n', (size_t)(end - text));

		while (text < end && strchr(" \t\r", *text))
			text++;
		for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
			size_t len = strlen(words[i]);

			if ((size_t)(end - text) >= len &&
			    !memcmp(text, words[i], len))
				return true;
		}
		text = eol ? eol + 1 : end;
	}
	return false;
}

int ctl_command(struct ctl *ctl, const char *text, size_t n, struct err *err)
{
	char copy[MAX_COMMAND + 1];
	char *save, *line;
	int r = 0;

	if (n > MAX_COMMAND)
		return err_set(err, -EMSGSIZE,
			       "a command of more than %d bytes", MAX_COMMAND);
	if (memchr(text, 0, n))
		return err_set(err, -EINVAL, "a command with a NUL byte");
	memcpy(copy, text, n);
	copy[n] = 0;
	for (line = strtok_r(copy, "\n", &save); line && r == 0;
	     line = strtok_r(NULL, "\n", &save))
		r = run_line(ctl, line, err);
	return r;
}
