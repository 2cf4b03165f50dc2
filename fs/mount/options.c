/* SPDX-License-Identifier: MIT */
#include "fs/mount/options.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/conf/plugin_choice.h"
#include "common/tick.h"
#include "common/util.h"
#include "common/word.h"
#include "emu/profile/profile.h"
#include "fs/cache/policy.h"
#include "fs/layer/ahead.h"
#include "fs/layer/fault.h"
#include "fs/peer/peer_net.h"
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

int options_tier(const char *text, struct tiers *ret, struct err *err)
{
	return tiers_parse(text, false, check_storage, ret, err);
}

static int check_tier(const void *object, struct err *err)
{
	struct tiers t = { 0 };
	int r = options_tier(*(char *const *)object, &t, err);

	tiers_fini(&t);
	return r;
}

static int check_admit(const void *object, struct err *err)
{
	enum tier_admit admit;

	return tier_admit_parse(*(char *const *)object, &admit, err);
}

static int check_bytes(const void *object, struct err *err)
{
	static const char *const words[] = { "memory", "source" };
	int i = WORD_FIND(words, "location of cached bytes",
			  *(char *const *)object, err);

	return i < 0 ? i : 0;
}

static int check_layers(const void *object, struct err *err)
{
	return server_check_layers(*(char *const *)object, err);
}

static int check_policy(const void *object, struct err *err)
{
	return plugin_choice_check(policy_table, "cache policy", object, err);
}

static int check_peers(const void *object, struct err *err)
{
	return peer_net_check(*(char *const *)object, err);
}

static int check_nic(const void *object, struct err *err)
{
	return profile_check(PROFILE_NODE, object, err);
}

static const struct conf_field fields[] = {
	{ "storage", CONF_STRING, offsetof(struct options, storage),
	  .check = check_storage, .short_opt = 's', .arg = "NAME|FILE",
	  .help = "storage profile (default: ideal, which adds no time)" },
	{ "cache_policy", CONF_STRING, offsetof(struct options, cache_policy),
	  .check = check_policy, .short_opt = 'p',
	  .arg = "NAME[:KEY=VALUE,...]",
	  .help = "cache policy (default: lru, with --peers or --prefetch "
		  "minio; none caches nothing)" },
	{ "cache_size", CONF_CAPACITY, offsetof(struct options, cache_size),
	  .check = tier_check_size, .short_opt = 'c', .arg = "SIZE|P%",
	  .help = "capacity in bytes, or percent of the dataset's bytes "
		  "(default: auto, the lesser of 35% and half of the memory)" },
	{ "tier", CONF_LIST, offsetof(struct options, tiers),
	  .item = CONF_STRING, .item_size = sizeof(char *), .lone = true,
	  .check = check_tier, .arg = "[STORAGE:]POLICY:SIZE",
	  .help = "instead of -p and -c: the next cache tier, such as "
		  "nvme:lru:50%; a hit costs a read of STORAGE (default: dram, "
		  "no time)" },
	{ "tier_admit", CONF_STRING, offsetof(struct options, tier_admit),
	  .check = check_admit, .arg = "every|first",
	  .help = "an object that several tiers miss may enter every one of "
		  "them, or only the first that admits it (default: every)" },
	{ "cache_bytes", CONF_STRING, offsetof(struct options, cache_bytes),
	  .check = check_bytes, .arg = "memory|source",
	  .help = "keep the bytes of cached files in memory, or read them "
		  "from SOURCE again, so that a cache may be larger than "
		  "memory (default: memory)" },
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
	  .help = "group buffer: memory for files that were fetched with their "
		  "group and not read yet (default: 64M, or two groups)" },
	{ "prefetch", CONF_SIZE, offsetof(struct options, prefetch),
	  .arg = "SIZE",
	  .help = "staging buffer: fetch the samples that a loader announces "
		  "(.gpemu/future) before it reads them, up to so many bytes "
		  "(default: 0, none)" },
	{ "prefetch_depth", CONF_UINT, offsetof(struct options, prefetch_depth),
	  .arg = "N", .min = 1, .max = AHEAD_MOST_DEPTH,
	  .help = "how many of these fetches are in flight at once (default: "
		  "16)" },
	{ "memory", CONF_SIZE, offsetof(struct options, memory), .arg = "SIZE",
	  .help = "memory for file contents outside the cache: in flight, "
		  "being read, group buffer (default: the lesser of 256M "
		  "and an eighth of the memory)" },
	{ "follow_links", CONF_STRING, offsetof(struct options, follow_links),
	  .arg = "none|source|DIR[:DIR]",
	  .help = "serve what symbolic links lead to, if it is below SOURCE or "
		  "a DIR (default: /, anywhere; with allow_other source)" },
	{ "foreground", CONF_BOOL, offsetof(struct options, foreground),
	  .short_opt = 'f', .cli_only = true,
	  .help = "stay in the foreground" },
	{ "mount_options", CONF_STRING, offsetof(struct options, mount_options),
	  .short_opt = 'o', .arg = "OPT[,OPT]",
	  .help = "mount options, as mount(8) takes them; also any option "
		  "here as KEY=VALUE" },
	{ "read_only", CONF_BOOL, offsetof(struct options, read_only),
	  .arg = "on|off",
	  .help = "mount with ro: the kernel refuses every write, also "
		  "commands to .gpemu/control (default: off)" },
	{ "replace", CONF_BOOL, offsetof(struct options, replace),
	  .cli_only = true,
	  .help = "replace a gpemu-fs that is mounted there" },
	{ "layers", CONF_STRING, offsetof(struct options, layers),
	  .check = check_layers, .arg = "LAYER[,LAYER]",
	  .help = "the stack of layers that a read passes, from the top "
		  "(default: " LAYERS_DEFAULT "; --list layer)" },
	{ "peers", CONF_STRING, offsetof(struct options, peers),
	  .check = check_peers, .arg = "HOST:PORT,HOST:PORT[,...]",
	  .help = "the nodes of a partitioned cache, this one too: each keeps "
		  "its share of the dataset and gets the rest from the "
		  "others" },
	{ "node", CONF_UINT, offsetof(struct options, node), .arg = "I",
	  .max = PLACE_NODES - 1,
	  .help = "which of --peers this node is, from 0 (default: 0)" },
	{ "peer_key", CONF_STRING, offsetof(struct options, peer_key),
	  .arg = "FILE",
	  .help = "the secret of all nodes, at least 32 bytes (default, on one "
		  "machine: ~/.config/gpemu/key)" },
	{ "peer_timeout", CONF_DURATION, offsetof(struct options, peer_timeout),
	  .arg = "DURATION", .min = NS_PER_MS, .max = 3600. * NS_PER_S,
	  .help = "read from the storage if another node does not answer for "
		  "so long (default: 5s)" },
	{ "nic", CONF_STRING, offsetof(struct options, nic), .check = check_nic,
	  .arg = "NAME|FILE",
	  .help = "node profile whose network card the traffic of --peers "
		  "takes (default: no limit; --list node)" },
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
	  .item = CONF_STRING, .item_size = sizeof(char *), .lone = true,
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
	  .help = "destination of messages once mounted (default: stderr with "
		  "-f, else syslog)" },
	{ "log_level", CONF_STRING, offsetof(struct options, log_level),
	  .arg = "LEVEL",
	  .help = "error, warn, info or debug (default: info; debug with "
		  "-v)" },
	CLI_COMMON_FIELDS(struct options, common),
	{ 0 },
};

static const struct cli_kind kinds[] = {
	{ "layer", .table = layer_table },
	{ "node", .print = profile_names_print, .which = PROFILE_NODE },
	{ "policy", .table = policy_table },
	{ "source", .table = source_table },
	{ "storage", .print = profile_names_print, .which = PROFILE_STORAGE },
	{ 0 },
};

int options_init(struct options *o)
{
	*o = (struct options){ .cache_size = { .fraction = NAN },
			       .time_scale = NAN,
			       .spin = TICK_DEFAULT_SPIN_NS,
			       .keep_awake = true,
			       .peer_timeout = PEER_TIMEOUT_NS,
			       .prefetch_depth = AHEAD_DEPTH,
			       .storage = strdup("ideal"),
			       .tier_admit = strdup("every"),
			       .cache_bytes = strdup("memory"),
			       .layers = strdup(LAYERS_DEFAULT),
			       .hit_path = strdup("auto"),
			       .transport = strdup("auto"),
			       .group = strdup("1"),
			       .group_order = strdup("sequential"),
			       .log_level = strdup("info") };
	return o->storage && o->tier_admit && o->cache_bytes && o->layers &&
			       o->hit_path && o->transport && o->group &&
			       o->group_order && o->log_level
		       ? 0
		       : -ENOMEM;
}

void options_fini(struct options *o)
{
	conf_free(fields, o);
}

int options_tiers(const struct options *o, struct tiers *ret, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < o->tiers.n; i++)
		r = options_tier(((char **)o->tiers.items)[i], ret, err);
	return r;
}

enum tier_admit options_admit(const struct options *o)
{
	enum tier_admit admit = TIER_ADMIT_EVERY;

	tier_admit_parse(o->tier_admit, &admit, NULL);
	return admit;
}

bool options_bytes_in_source(const struct options *o)
{
	return !strcmp(o->cache_bytes, "source");
}

int options_no_cache(struct options *o)
{
	for (size_t i = 0; i < o->tiers.n; i++)
		free(((char **)o->tiers.items)[i]);
	free(o->tiers.items);
	free(o->cache_policy);
	o->tiers = (struct conf_list){ 0 };
	o->cache_size = (struct units_capacity){ .fraction = -1 };
	o->cache_policy = strdup("none");
	return o->cache_policy ? 0 : -ENOMEM;
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

static int settle_cache(struct options *o, struct err *err)
{
	bool sized = !isnan(o->cache_size.fraction);
	struct tiers t = { 0 };
	int r = options_tiers(o, &t, err);

	if (r == 0 && t.n && (o->cache_policy || sized))
		r = err_set(err, -EINVAL,
			    "--tier replaces --cache-policy and "
			    "--cache-size: leave those out");
	for (size_t i = 0; r == 0 && i < t.n; i++)
		if (tier_policy_ops(&t.v[i].policies[0])->bypass)
			r = err_set(err, -EINVAL,
				    "--tier: a tier with the policy %s caches "
				    "nothing: leave it out",
				    t.v[i].policies[0].text);
	tiers_fini(&t);
	if (r < 0 || o->tiers.n)
		return r;
	if (!sized)
		o->cache_size = (struct units_capacity){
			.fraction = UNITS_AUTO_FRACTION, .yields = true
		};
	/* a node keeps what it owns, or accesses first */
	if (!o->cache_policy)
		o->cache_policy =
			strdup(o->peers || o->prefetch ? "minio" : "lru");
	return o->cache_policy ? 0 : -ENOMEM;
}

static int settle_peers(const struct options *o, struct err *err)
{
	if (!o->peers)
		return 0;
	if (strcmp(o->group, "1"))
		return err_set(err, -EINVAL,
			       "--peers and --group: the files of a group "
			       "belong to different nodes; leave one out");
	if (o->replace)
		return err_set(err, -EINVAL,
			       "--peers and --replace: the old mount listens "
			       "at the address; unmount it first");
	return check_layer(o, "--peers", "peer", err);
}

static int settle(void *options, struct err *err)
{
	struct options *o = options;
	enum log_level level;
	enum front_transport transport;
	enum hit_path path;
	int r;

	if (isnan(o->time_scale) && !o->selftest)
		o->time_scale = 1;
	r = log_level_parse(o->log_level, &level, err);
	if (r == 0)
		r = settle_cache(o, err);
	if (r == 0 && o->trace)
		r = check_layer(o, "--trace", "trace", err);
	if (r == 0 && o->tiers.n)
		r = check_layer(o, "--tier", "cache", err);
	if (r == 0 && o->faults.n)
		r = check_layer(o, "--fault", "fault", err);
	if (r == 0 && strcmp(o->group, "1"))
		r = check_layer(o, "--group", "group", err);
	if (r == 0 && o->prefetch)
		r = check_layer(o, "--prefetch", "prefetch", err);
	if (r == 0)
		r = settle_peers(o, err);
	if (r == 0)
		r = hit_path_parse(o->hit_path, &path, err);
	return r < 0 ? r : front_transport_parse(o->transport, &transport, err);
}

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
		 "--list layer, node, policy, source or storage lists the "
		 "names.",
	.fields = fields,
	.kinds = kinds,
	.words = "mount_options",
	.settle = settle,
};

enum log_level options_log_level(const struct options *o)
{
	enum log_level level = LOG_LEVEL_INFO;

	log_level_parse(o->log_level, &level, NULL);
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

int options_set_tier(struct options *o, size_t i, const struct tier *t)
{
	char **items = o->tiers.items, *text = tier_text(t);

	if (!text)
		return -ENOMEM;
	free(items[i]);
	items[i] = text;
	return 0;
}

/* One tier in each item; makes its paths absolute, relative to `dir`. */
static int absolute_tiers(struct options *o, const char *dir)
{
	struct tiers t = { 0 };
	int r = options_tiers(o, &t, NULL);
	char **items = r == 0 && t.n ? reallocarray(o->tiers.items, t.n,
						    sizeof(*items))
				     : NULL;

	if (r == 0 && t.n && !items)
		r = -ENOMEM;
	for (size_t i = o->tiers.n; items && i < t.n; i++)
		items[i] = NULL;
	if (items)
		o->tiers = (struct conf_list){ items, t.n };
	for (size_t i = 0; r == 0 && i < t.n; i++) {
		if (t.v[i].storage && profile_is_path(t.v[i].storage))
			r = absolute(&t.v[i].storage, dir);
		if (r == 0)
			r = options_set_tier(o, i, &t.v[i]);
	}
	tiers_fini(&t);
	return r;
}

int options_absolute(struct options *o, const char *dir)
{
	int r = absolute(&o->common.config, dir);

	if (r == 0)
		r = absolute(&o->trace, dir);
	if (r == 0)
		r = absolute(&o->peer_key, dir);
	if (r == 0 && o->nic && profile_is_path(o->nic))
		r = absolute(&o->nic, dir);
	if (r == 0 && o->common.json && strcmp(o->common.json, "-"))
		r = absolute(&o->common.json, dir);
	if (r == 0 && profile_is_path(o->storage))
		r = absolute(&o->storage, dir);
	if (r == 0)
		r = absolute_tiers(o, dir);
	if (r == 0 && !options_log_is(o, "stderr") &&
	    !options_log_is(o, "syslog"))
		r = absolute(&o->log, dir);
	return r;
}

/* Source: mount(8), "filesystem-independent mount options" and COMMENT;
 * systemd.mount(5); nobootwait: Ubuntu's mountall. And ro: the dataset is
 * read-only anyway, but with ro the kernel would also refuse writes to
 * `control` (--read-only). nonempty is ours (fs/mount/mountpoint.h): libfuse 3
 * lacks it. */
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
	char *left = calloc(1, (copy ? strlen(copy) : 0) + 5);
	char *save, *word = left && copy ? strtok_r(copy, ",", &save) : NULL;

	if (left && o->read_only)
		strcpy(left, "ro");
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
