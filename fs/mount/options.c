/* SPDX-License-Identifier: MIT */
#include "fs/mount/options.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/tick.h"
#include "common/util.h"
#include "emu/node/profile_node.h"
#include "emu/profile/profile.h"
#include "emu/profile/profile_storage.h"
#include "fs/cache/policy.h"
#include "fs/peer/peer_net.h"
#include "fs/server/layer.h"
#include "fs/source/source.h"

static int check_peers(const void *object, struct err *err)
{
	return peer_net_check(*(char *const *)object, err);
}

static const struct conf_field fields[] = {
	FS_CONFIG_FIELDS(struct options, base.fs),
	SETUP_FIELDS(struct options, base,
		     "/, anywhere; with allow_other source"),
	{ CONF_KEY(foreground, CONF_BOOL, struct options), .short_opt = 'f',
	  .cli_only = true, .help = "stay in the foreground" },
	{ CONF_KEY(mount_options, CONF_STRING, struct options),
	  .short_opt = 'o', .arg = "OPT[,OPT]",
	  .help = "mount options of mount(8), and any option here as "
		  "KEY=VALUE" },
	{ CONF_KEY(read_only, CONF_BOOL, struct options), .arg = "on|off",
	  .help = "mount with ro: the kernel refuses every write, also "
		  "commands to .gpemu/control (default: off)" },
	{ CONF_KEY(writable, CONF_STRING, struct options), .arg = "DIR",
	  .help = "files and folders can be made in the mount: they go to "
		  "DIR, and the dataset stays as it is (default: read-only)" },
	{ CONF_KEY(writable_scale, CONF_DOUBLE, struct options), .arg = "X",
	  .min = 0.001, .max = 1,
	  .help = "each byte in DIR takes the device's time of 1/X bytes "
		  "(default: 1)" },
	{ CONF_KEY(capacity, CONF_SIZE, struct options), .arg = "SIZE",
	  .max = STORAGE_MOST_CAPACITY,
	  .help = "capacity of the device with --writable, for the dataset "
		  "and what is made (default: that of the profile, or no "
		  "limit but that of DIR)" },
	{ CONF_KEY(replace, CONF_BOOL, struct options), .cli_only = true,
	  .help = "replace a gpemu-fs that is mounted there" },
	{ CONF_KEY(peers, CONF_STRING, struct options), .check = check_peers,
	  .arg = "HOST:PORT,HOST:PORT[,...]",
	  .help = "the nodes of a partitioned cache, including this one: each "
		  "caches its share of the dataset and gets the rest from the "
		  "others" },
	{ CONF_KEY(node, CONF_UINT, struct options), .arg = "I",
	  .max = PLACE_NODES - 1,
	  .help = "index of this node in --peers, from 0 (default: 0)" },
	{ CONF_KEY(peer_key, CONF_STRING, struct options), .arg = "FILE",
	  .help = "file with the secret that all nodes share, at least 32 "
		  "bytes (default, on one machine: ~/.config/gpemu/key)" },
	{ CONF_KEY(peer_timeout, CONF_DURATION, struct options),
	  .arg = "DURATION", .min = NS_PER_MS, .max = 3600. * NS_PER_S,
	  .help = "read from the storage if another node does not reply within "
		  "this time (default: 5s)" },
	{ CONF_KEY(hit_path, CONF_STRING, struct options), .arg = "PATH",
	  .help = "how cached files are read: auto, reply or passthrough "
		  "(default: auto)" },
	{ CONF_KEY(transport, CONF_STRING, struct options), .arg = "WAY",
	  .help = "transport of requests from the kernel: auto, dev "
		  "(/dev/fuse) or "
		  "uring (default: auto)" },
	{ CONF_KEY(selftest, CONF_BOOL, struct options), .cli_only = true,
	  .help = "compare the latency and throughput that a client sees with "
		  "the storage profile; SOURCE and MOUNTPOINT are optional" },
	{ CONF_KEY(log, CONF_STRING, struct options),
	  .arg = "stderr|syslog|FILE",
	  .help = "destination of messages once mounted (default: stderr with "
		  "-f, else syslog)" },
	CLI_COMMON_FIELDS(struct options, common),
	{ 0 },
};

static const struct cli_kind kinds[] = {
	SETUP_KINDS,
	{ "node", .print = profile_names_print, .which = PROFILE_NODE },
	{ 0 },
};

int options_init(struct options *o)
{
	*o = (struct options){ .peer_timeout = PEER_TIMEOUT_NS,
			       .writable_scale = 1,
			       .hit_path = strdup("auto"),
			       .transport = strdup("auto") };
	return setup_options_init(&o->base) == 0 && o->hit_path && o->transport
		       ? 0
		       : -ENOMEM;
}

void options_fini(struct options *o)
{
	conf_free(fields, o);
}

static int settle_peers(const struct options *o, struct err *err)
{
	if (!o->peers)
		return 0;
	if (strcmp(o->base.group, "1"))
		return err_set(err, -EINVAL,
			       "--peers and --group: the files of a group "
			       "belong to different nodes; leave one out");
	if (o->replace)
		return err_set(err, -EINVAL,
			       "--peers and --replace: the old mount listens "
			       "at the address; unmount it first");
	return setup_check_layer(&o->base, "--peers", "peer", err);
}

static int settle_writable(const struct options *o, struct err *err)
{
	if (!o->writable)
		return 0;
	if (o->read_only || setup_has_word(o->mount_options, "ro"))
		return err_set(err, -EINVAL, "--writable and %s: leave one out",
			       o->read_only ? "--read-only" : "-o ro");
	if (o->replace)
		return err_set(err, -EINVAL,
			       "--writable and --replace: the old mount may be "
			       "using the folder; unmount it first");
	return 0;
}

static int settle_options(void *options, struct err *err)
{
	struct options *o = options;
	enum front_transport transport;
	enum hit_path path;
	int r;

	if (isnan(o->base.time_scale) && !o->selftest)
		o->base.time_scale = 1;
	r = setup_settle(&o->base, fs_config_policy(&o->base.fs, o->peers),
			 err);
	if (r == 0 && o->base.fs.prefetch)
		r = setup_check_layer(&o->base, "--prefetch", "prefetch", err);
	if (r == 0)
		r = settle_peers(o, err);
	if (r == 0)
		r = settle_writable(o, err);
	if (r == 0)
		r = hit_path_parse(o->hit_path, &path, err);
	return r < 0 ? r : front_transport_parse(o->transport, &transport, err);
}

const struct cli_program options_program = {
	.name = "gpemu-fs",
	.args = "SOURCE MOUNTPOINT",
	.n_optional = 2,
	.summary = "Serve the dataset SOURCE (a directory, pack:FILE, "
		   "synth:DATASET or s3://BUCKET) at MOUNTPOINT, behind an "
		   "emulated storage device with a "
		   "cache.",
	.notes = "MOUNTPOINT/.gpemu/ holds stats, stats.prom, config and "
		 "control. Unmount with fusermount3 -u MOUNTPOINT, SIGTERM or "
		 "Ctrl-C; SIGHUP reads --config again, SIGUSR1 logs the stats. "
		 "--list layer, node, policy, source or storage lists the "
		 "names.",
	.fields = fields,
	.kinds = kinds,
	.words = "mount_options",
	.settle = settle_options,
};

bool options_log_is(const struct options *o, const char *word)
{
	const char *log = o->log ? o->log : o->foreground ? "stderr" : "syslog";

	return !strcmp(log, word);
}

int options_absolute(struct options *o, const char *dir)
{
	int r = setup_absolute_path(&o->common.config, dir);

	if (r == 0)
		r = setup_absolute(&o->base, dir);
	if (r == 0)
		r = setup_absolute_path(&o->writable, dir);
	if (r == 0)
		r = setup_absolute_path(&o->peer_key, dir);
	if (r == 0 && o->common.json && strcmp(o->common.json, "-"))
		r = setup_absolute_path(&o->common.json, dir);
	if (r == 0 && !options_log_is(o, "stderr") &&
	    !options_log_is(o, "syslog"))
		r = setup_absolute_path(&o->log, dir);
	return r;
}

/* Source: mount(8), "filesystem-independent mount options" and COMMENT;
 * systemd.mount(5); nobootwait: Ubuntu's mountall. And ro: the dataset is
 * read-only anyway (and ro excludes --writable), but with ro the kernel would
 * also refuse writes to `control` (--read-only). nonempty is ours
 * (fs/mount/mountpoint.h): libfuse 3 lacks it. */
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

/* --- other nodes --------------------------------------------------------- */

static int read_nic(const struct fs_config *c, struct peer_net *net,
		    struct err *err)
{
	struct node_profile p;
	int r = fs_config_nic(c, &p, err);

	if (r == 0)
		nic_limit(net->nic, p.nic.gb_per_s * 1e9, p.nic.latency_ns);
	node_profile_free(&p);
	return r;
}

int options_peers(const struct options *o, struct peer_net *ret,
		  struct err *err)
{
	int r = peer_net_init(ret, o->peers, o->node, o->peer_key, err);

	ret->timeout_ns = o->peer_timeout;
	return r == 0 && o->base.fs.nic ? read_nic(&o->base.fs, ret, err) : r;
}
