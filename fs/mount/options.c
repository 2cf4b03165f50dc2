/* SPDX-License-Identifier: MIT */
#include "fs/mount/options.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/conf/plugin_choice.h"
#include "common/tick.h"
#include "common/util.h"
#include "emu/profile/profile.h"
#include "fs/cache/policy.h"
#include "fs/layer/fault.h"
#include "fs/server/layer.h"
#include "fs/source/source.h"

static int check_fault(const void *object, struct err *err)
{
	const char *text = *(char *const *)object;
	struct fault_rule *rules;
	size_t n;
	int r = fault_rules_parse(text, strlen(text), &rules, &n, err);

	if (r == 0)
		fault_rules_free(rules, n);
	return r;
}

static int check_storage(const void *object, struct err *err)
{
	return profile_check(PROFILE_STORAGE, object, err);
}

static int check_layers(const void *object, struct err *err)
{
	return server_check_layers(*(char *const *)object, err);
}

static int check_policy(const void *object, struct err *err)
{
	return plugin_choice_check(policy_table, "cache policy", object, err);
}

static const struct conf_field fields[] = {
	{ "storage", CONF_STRING, offsetof(struct options, storage),
	  .check = check_storage, .short_opt = 's', .arg = "NAME|FILE",
	  .help = "storage profile (default: ideal, which adds nothing)" },
	{ "cache_policy", CONF_STRING, offsetof(struct options, cache_policy),
	  .check = check_policy, .short_opt = 'p',
	  .arg = "NAME[:KEY=VALUE,...]",
	  .help = "cache policy (default: lru; none caches nothing)" },
	{ "cache_size", CONF_CAPACITY, offsetof(struct options, cache_size),
	  .short_opt = 'c', .arg = "SIZE|P%",
	  .help = "capacity in bytes, or percent of the dataset's bytes "
		  "(default: auto, the lesser of 35% and half of the memory)" },
	{ "cache_metadata", CONF_BOOL, offsetof(struct options, cache_metadata),
	  .arg = "on|off",
	  .help = "the capacity includes the metadata of each object "
		  "(default: off)" },
	{ "group", CONF_STRING, offsetof(struct options, group),
	  .short_opt = 'g', .arg = "N|auto",
	  .help = "read N files with every read of the device; auto (or 0): "
		  "the groups of the pack (default: 1)" },
	{ "group_order", CONF_STRING, offsetof(struct options, group_order),
	  .arg = "ORDER",
	  .help = "which files form a group: sequential, random, diffclass or "
		  "a FILE (default: sequential)" },
	{ "group_buffer", CONF_SIZE, offsetof(struct options, group_buffer),
	  .arg = "SIZE",
	  .help = "memory for files that were fetched with their group and "
		  "not read yet (default: 64M, or two groups)" },
	{ "memory", CONF_SIZE, offsetof(struct options, memory), .arg = "SIZE",
	  .help = "memory for file contents outside the cache: in flight, "
		  "being read, group buffer (default: the lesser of 256M "
		  "and an eighth of the memory)" },
	{ "foreground", CONF_BOOL, offsetof(struct options, foreground),
	  .short_opt = 'f', .cli_only = true,
	  .help = "stay in the foreground" },
	{ "mount_options", CONF_STRING, offsetof(struct options, mount_options),
	  .short_opt = 'o', .arg = "OPT[,OPT]",
	  .help = "mount options, as mount(8) takes them; also any option "
		  "here as KEY=VALUE" },
	{ "replace", CONF_BOOL, offsetof(struct options, replace),
	  .cli_only = true,
	  .help = "replace a gpemu-fs that is mounted there" },
	{ "layers", CONF_STRING, offsetof(struct options, layers),
	  .check = check_layers, .arg = "LAYER[,LAYER]",
	  .help = "the stack of layers that a read passes, from the top "
		  "(default: " LAYERS_DEFAULT "; --list layer)" },
	{ "hit_path", CONF_STRING, offsetof(struct options, hit_path),
	  .arg = "PATH",
	  .help = "how cached files are read: auto, reply or passthrough "
		  "(default: auto)" },
	{ "transport", CONF_STRING, offsetof(struct options, transport),
	  .arg = "WAY",
	  .help = "transport of requests from the kernel: auto, dev "
		  "(/dev/fuse) or "
		  "uring (default: auto)" },
	{ "fault", CONF_LIST, offsetof(struct options, faults),
	  .item = CONF_STRING, .item_size = sizeof(char *),
	  .check = check_fault, .arg = "RULE[;RULE]",
	  .help = "make operations fail or wait, such as "
		  "op=read,every=100,errno=EIO; may be given several times" },
	{ "time_scale", CONF_DOUBLE, offsetof(struct options, time_scale),
	  .arg = "X", .min = 1e-6, .max = 1e6,
	  .help = "multiply every emulated duration by X (default: 1)" },
	{ "spin", CONF_DURATION, offsetof(struct options, spin),
	  .arg = "DURATION", .max = NS_PER_MS,
	  .help = "spin this long before a deadline instead of sleeping "
		  "(default: 120us)" },
	{ "keep_awake", CONF_BOOL, offsetof(struct options, keep_awake),
	  .arg = "on|off",
	  .help = "keep idle processors awake when a deadline is near, where "
		  "the system grants it (default: on)" },
	{ "selftest", CONF_BOOL, offsetof(struct options, selftest),
	  .cli_only = true,
	  .help = "compare the latency and throughput that a client sees with "
		  "the storage profile; SOURCE and MOUNTPOINT are optional" },
	{ "trace", CONF_STRING, offsetof(struct options, trace), .arg = "FILE",
	  .help = "write a line for each operation, for gpemu-cachesim" },
	{ "log", CONF_STRING, offsetof(struct options, log),
	  .arg = "stderr|syslog|FILE",
	  .help = "where messages go once mounted (default: stderr with -f, "
		  "else syslog)" },
	{ "log_level", CONF_STRING, offsetof(struct options, log_level),
	  .arg = "LEVEL",
	  .help = "error, warn, info or debug (default: info; debug with "
		  "-v)" },
	CLI_COMMON_FIELDS(struct options, common),
	{ 0 },
};

static const struct cli_kind kinds[] = {
	{ "layer", .table = layer_table },
	{ "policy", .table = policy_table },
	{ "source", .table = source_table },
	{ "storage", .print = profile_names_print, .which = PROFILE_STORAGE },
	{ 0 },
};

const struct cli_program options_program = {
	.name = "gpemu-fs",
	.args = "SOURCE MOUNTPOINT",
	.n_optional = 2,
	.summary = "Serve the dataset SOURCE (a directory, pack:FILE or "
		   "synth:DATASET) read-only at "
		   "MOUNTPOINT, behind an emulated storage device with a "
		   "cache.",
	.notes = "MOUNTPOINT/.gpemu/ holds stats, stats.prom, config and "
		 "control. Unmount with fusermount3 -u MOUNTPOINT, SIGTERM or "
		 "Ctrl-C; SIGHUP reads --config again, SIGUSR1 logs the stats. "
		 "--list layer, policy, source or storage lists the names.",
	.fields = fields,
	.kinds = kinds,
	.words = "mount_options",
};

int options_init(struct options *o)
{
	*o = (struct options){ .cache_size = { .fraction = UNITS_AUTO_FRACTION,
					       .yields = true },
			       .time_scale = NAN,
			       .spin = TICK_DEFAULT_SPIN_NS,
			       .keep_awake = true,
			       .storage = strdup("ideal"),
			       .cache_policy = strdup("lru"),
			       .layers = strdup(LAYERS_DEFAULT),
			       .hit_path = strdup("auto"),
			       .transport = strdup("auto"),
			       .group = strdup("1"),
			       .group_order = strdup("sequential"),
			       .log_level = strdup("info") };
	return o->storage && o->cache_policy && o->layers && o->hit_path &&
			       o->transport && o->group && o->group_order &&
			       o->log_level
		       ? 0
		       : -ENOMEM;
}

void options_fini(struct options *o)
{
	conf_free(fields, o);
}

static int check_layer(const struct options *o, const char *option,
		       const char *word, struct err *err)
{
	return options_has_word(o->layers, word)
		       ? 0
		       : err_set(err, -EINVAL,
				 "%s needs the layer '%s', which --layers "
				 "leaves out",
				 option, word);
}

int options_settle(struct options *o, struct err *err)
{
	enum log_level level;
	enum front_transport transport;
	enum hit_path path;
	int r;

	if (isnan(o->time_scale) && !o->selftest)
		o->time_scale = 1;
	if (log_level_parse(o->log_level, &level) < 0)
		return err_set(err, -EINVAL,
			       "--log-level is error, warn, info or debug, "
			       "not '%s'",
			       o->log_level);
	r = o->trace ? check_layer(o, "--trace", "trace", err) : 0;
	if (r == 0 && o->faults.n)
		r = check_layer(o, "--fault", "fault", err);
	if (r == 0 && strcmp(o->group, "1"))
		r = check_layer(o, "--group", "group", err);
	if (r == 0)
		r = hit_path_parse(o->hit_path, &path, err);
	return r < 0 ? r : front_transport_parse(o->transport, &transport, err);
}

enum log_level options_log_level(const struct options *o)
{
	enum log_level level = LOG_LEVEL_INFO;

	log_level_parse(o->log_level, &level);
	return o->common.verbose ? LOG_LEVEL_DEBUG : level;
}

bool options_log_is(const struct options *o, const char *word)
{
	const char *log = o->log ? o->log : o->foreground ? "stderr" : "syslog";

	return !strcmp(log, word);
}

static int absolute(char **path, const char *dir)
{
	char *full;

	if (!*path || **path == '/')
		return 0;
	if (asprintf(&full, "%s/%s", dir, *path) < 0)
		return -ENOMEM;
	free(*path);
	*path = full;
	return 0;
}

int options_absolute(struct options *o, const char *dir)
{
	int r = absolute(&o->common.config, dir);

	if (r == 0)
		r = absolute(&o->trace, dir);
	if (r == 0 && o->common.json && strcmp(o->common.json, "-"))
		r = absolute(&o->common.json, dir);
	if (r == 0 && profile_is_path(o->storage))
		r = absolute(&o->storage, dir);
	if (r == 0 && !options_log_is(o, "stderr") &&
	    !options_log_is(o, "syslog"))
		r = absolute(&o->log, dir);
	return r;
}

/* Source: mount(8), "filesystem-independent mount options" and COMMENT;
 * systemd.mount(5); nobootwait: Ubuntu's mountall. And ro: nobody writes to a
 * dataset here, but the kernel would also let nobody write to `control`.
 * nonempty is ours (fs/mount/mountpoint.h): libfuse 3 knows no such option. */
static bool for_others(const char *word)
{
	static const char *const words[] = {
		"auto",	      "noauto", "nofail",   "user",    "nouser",
		"users",      "owner",	"group",    "_netdev", "defaults",
		"nobootwait", "ro",	"nonempty",
	};
	static const char *const starts[] = { "x-", "X-", "comment=", "user=" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(word, words[i]))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
		if (!strncmp(word, starts[i], strlen(starts[i])))
			return true;
	return false;
}

bool options_has_word(const char *mount_options, const char *want)
{
	_cleanup_free_ char *copy = mount_options ? strdup(mount_options)
						  : NULL;
	char *save, *word;

	for (word = copy ? strtok_r(copy, ",", &save) : NULL; word;
	     word = strtok_r(NULL, ",", &save))
		if (!strcmp(word, want))
			return true;
	return false;
}

char *options_for_fuse(const struct options *o)
{
	_cleanup_free_ char *copy = o->mount_options ? strdup(o->mount_options)
						     : NULL;
	char *left = copy ? calloc(1, strlen(copy) + 2) : NULL;
	char *save, *word = left ? strtok_r(copy, ",", &save) : NULL;

	for (; word; word = strtok_r(NULL, ",", &save)) {
		if (for_others(word))
			continue;
		if (*left)
			strcat(left, ",");
		strcat(left, word);
	}
	if (left && !*left) {
		free(left);
		return NULL;
	}
	return left;
}
