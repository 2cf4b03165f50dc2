/* SPDX-License-Identifier: MIT */
/*
 * The reload on SIGHUP. The new options are read into a copy, and the new
 * profile, policy and size are checked before anything changes, so that an
 * error leaves the mount as it was.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/thread.h"
#include "common/tick.h"
#include "common/util.h"
#include "emu/profile/profile.h"
#include "emu/profile/profile_storage.h"
#include "fs/layer/trace.h"
#include "fs/mount/mount.h"

/* Keys of options that can change while mounted. */
static const char *const live[] = { "storage", "cache_policy", "cache_size",
				    "log_level" };

bool mount_is_live(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(live); i++)
		if (!strcmp(live[i], key))
			return true;
	return false;
}

static char *text_of(const json_t *v)
{
	return v ? json_dumps(v, JSON_ENCODE_ANY) : strdup("nothing");
}

void mount_report_fixed(json_t *old, json_t *fresh, const char *what)
{
	const char *key;
	json_t *v;

	/* a key in only one of them is a text option that was not given */
	json_object_foreach (fresh, key, v) {
		if (!json_object_get(old, key))
			json_object_set_new(old, key, json_null());
	}
	json_object_foreach (old, key, v) {
		json_t *to = json_object_get(fresh, key);

		if (mount_is_live(key) || (to && json_equal(v, to)) ||
		    (!to && json_is_null(v)))
			continue;
		_cleanup_free_ char *a = text_of(v), *b = text_of(to);

		log_warn("%s: %s stays %s; to change it to %s, unmount and "
			 "mount again",
			 what, key, a ? a : "?", b ? b : "?");
	}
}

/* Can this profile be loaded? */
static int try_storage(const char *name, struct err *err)
{
	struct storage_profile *p = NULL;
	int r = storage_profile_load(name, &p, err);

	storage_profile_free(p);
	return r;
}

static bool same_size(const struct units_capacity *a,
		      const struct units_capacity *b)
{
	return a->bytes == b->bytes && a->fraction == b->fraction &&
	       a->yields == b->yields;
}

static void take_text(char **into, char **from)
{
	free(*into);
	*into = TAKE_PTR(*from);
}

static int apply(struct mount *m, struct options *fresh, struct err *err)
{
	struct options *o = &m->o;
	int r = profile_is_path(fresh->base.fs.storage)
			? ctl_check_file(fresh->base.fs.storage, err)
			: 0;

	if (r == 0)
		r = try_storage(fresh->base.fs.storage, err);

	/* an unchanged cache keeps its content; tiers do not change here */
	if (r == 0 && o->base.fs.cache_policy && fresh->base.fs.cache_policy &&
	    (strcmp(o->base.fs.cache_policy, fresh->base.fs.cache_policy) ||
	     !same_size(&o->base.fs.cache_size, &fresh->base.fs.cache_size)))
		r = server_set_cache(m->setup.server,
				     fresh->base.fs.cache_policy,
				     &fresh->base.fs.cache_size, err);
	/* the file may have changed */
	if (r == 0 && (strcmp(o->base.fs.storage, fresh->base.fs.storage) ||
		       profile_is_path(fresh->base.fs.storage)))
		r = server_set_storage(m->setup.server, fresh->base.fs.storage,
				       err);
	if (r < 0)
		return r;
	pthread_mutex_lock(&m->options_lock);
	if (o->base.fs.cache_policy && fresh->base.fs.cache_policy) {
		take_text(&o->base.fs.cache_policy,
			  &fresh->base.fs.cache_policy);
		o->base.fs.cache_size = fresh->base.fs.cache_size;
	}
	take_text(&o->base.fs.storage, &fresh->base.fs.storage);
	take_text(&o->base.log_level, &fresh->base.log_level);
	pthread_mutex_unlock(&m->options_lock);
	log_set_level(setup_log_level(&o->base, o->common.verbose));
	return 0;
}

static int load(struct mount *m, struct options *fresh, struct err *err)
{
	int r = ctl_check_file(m->o.common.config, err);

	if (r == 0)
		r = options_init(fresh);
	if (r == 0 && !(fresh->common.config = strdup(m->o.common.config)))
		r = -ENOMEM;
	if (r == 0)
		r = cli_reload(&options_program, true, m->argc, m->argv, fresh,
			       err);
	if (r == 0)
		r = options_absolute(fresh, m->start_dir);
	return r < 0 ? err_set(err, r, "%s", strerror(-r)) : 0;
}

static json_t *json_of(struct mount *m)
{
	LOCK_SCOPE(&m->options_lock);
	return conf_json(options_program.fields, &m->o);
}

static void reload_config(struct mount *m)
{
	struct options fresh = { 0 };
	struct err err = { 0 };
	int r = load(m, &fresh, &err);

	if (r == 0) {
		json_auto_t *a = json_of(m);
		json_auto_t *b = conf_json(options_program.fields, &fresh);

		r = apply(m, &fresh, &err);
		if (r == 0 && a && b)
			mount_report_fixed(a, b, "reload");
	}
	options_fini(&fresh);
	if (r < 0)
		log_error("reload: %s; the configuration is unchanged",
			  err.text);
	else
		log_info("reload: %s is in force", m->o.common.config);
}

static void reopen_log(const struct mount *m)
{
	int r;

	/* before `ready`, the log is the caller's stderr */
	if (!__atomic_load_n(&m->ready, __ATOMIC_ACQUIRE) ||
	    options_log_is(&m->o, "stderr") || options_log_is(&m->o, "syslog"))
		return;
	r = log_to_file(m->o.log);
	if (r < 0)
		log_error("reload: --log %s: %s", m->o.log, strerror(-r));
}

static void reopen_trace(struct mount *m)
{
	struct err err = { 0 };

	if (m->setup.trace && trace_reopen(m->setup.trace, &err) < 0)
		log_error("reload: %s; the trace continues in the old file",
			  err.text);
}

void mount_reload(struct mount *m)
{
	/* Source: sd_notify(3): systemd then waits for the end of the reload */
	mount_notify(m, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
		     tick_wall() / 1000);
	reopen_log(m);
	reopen_trace(m);
	if (m->o.common.config)
		reload_config(m);
	else
		log_info("reload: nothing to read again: mounted without "
			 "--config");
	mount_notify(m, "READY=1");
}
