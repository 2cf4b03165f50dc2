/* SPDX-License-Identifier: MIT */
#include "emu/node/turns.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "common/conf/plugin_choice.h"
#include "common/util.h"

enum { PHASES = 3, MEMBERS_MAX = TURNS };

/* --- options -------------------------------------------------------------- */

/* arbitrary: an hour is no stage of an iteration */
#define STAGE_MAX_NS 3600e9

static const struct conf_field stage_fields[] = {
	{ "storage", CONF_DURATION, offsetof(struct turns_stages, storage_ns),
	  .max = STAGE_MAX_NS },
	{ "cpu", CONF_DURATION, offsetof(struct turns_stages, cpu_ns),
	  .max = STAGE_MAX_NS },
	{ "load", CONF_DURATION, offsetof(struct turns_stages, load_ns),
	  .max = STAGE_MAX_NS },
	{ "network", CONF_DURATION, offsetof(struct turns_stages, network_ns),
	  .max = STAGE_MAX_NS },
	{ 0 },
};

static const struct conf_field turn_fields[] = {
	{ CONF_KEY(fd, CONF_UINT, struct turns), .max = 1 << 20 },
	{ CONF_KEY(index, CONF_UINT, struct turns), .max = MEMBERS_MAX - 1 },
	{ CONF_KEY(members, CONF_UINT, struct turns), .min = 1,
	  .max = MEMBERS_MAX },
	{ CONF_KEY(offset, CONF_UINT, struct turns), .max = TURNS - 1 },
	{ 0 },
};

/* The options are read like a plug-in's. */
static int parse(const char *text, const struct plugin *p, void *ret,
		 struct err *err)
{
	const struct plugin *const table[] = { p, NULL };
	_cleanup_free_ char *named = NULL;
	struct plugin_choice c;
	int r;

	if (asprintf(&named, "%s:%s", p->name, text) < 0)
		return err_set(err, -ENOMEM, "out of memory");
	r = plugin_choose(table, "option", named, &c, err);
	if (r == 0)
		memcpy(ret, c.options, p->options_size);
	plugin_choice_fini(&c);
	return r;
}

int turns_parse_stages(const char *text, struct turns_stages *ret,
		       struct err *err)
{
	static const struct turns_stages none;
	static const struct plugin p = { .name = "stages",
					 PLUGIN_OPTIONS(stage_fields, none) };

	return parse(text, &p, ret, err);
}

int turns_parse(const char *text, struct turns *ret, struct err *err)
{
	static const struct turns none;
	static const struct plugin p = { .name = "turns",
					 PLUGIN_OPTIONS(turn_fields, none) };
	int r = parse(text, &p, ret, err);

	if (r < 0)
		return r;
	if (ret->index >= ret->members)
		return err_set(err, -EINVAL,
			       "turns: index %" PRIu64 " is not below members "
			       "%" PRIu64,
			       ret->index, ret->members);
	r = turns_enter((int)ret->fd, ret->index);
	return r < 0 ? err_set(err, r, "turns: descriptor %" PRIu64 ": %s",
			       ret->fd, strerror(-r))
		     : 0;
}

/* --- turns ---------------------------------------------------------------- */

/* The byte of a member in a phase. */
static uint64_t byte_of(uint64_t index, uint64_t phase)
{
	return PHASES * index + phase % PHASES;
}

int turns_enter(int fd, uint64_t index)
{
	return util_lock_byte(fd, byte_of(index, 0), F_WRLCK);
}

/* Until this phase is over for all. */
static int next_phase(struct turns *t)
{
	uint64_t phase = t->phase++;
	int fd = (int)t->fd;
	int r = util_lock_byte_wait(fd, byte_of(t->index, phase + 1), F_WRLCK);

	if (r == 0)
		r = util_lock_byte(fd, byte_of(t->index, phase), F_UNLCK);
	for (uint64_t i = 0; r == 0 && i < t->members; i++) {
		if (i == t->index)
			continue;
		r = util_lock_byte_wait(fd, byte_of(i, phase), F_RDLCK);
		if (r == 0)
			r = util_lock_byte(fd, byte_of(i, phase), F_UNLCK);
	}
	return r;
}

int turns_take(struct turns *t, enum turn turn)
{
	int r = 0;

	while (r == 0 && (t->phase + TURNS - t->offset) % TURNS != turn)
		r = next_phase(t);
	return r;
}

void turns_leave(struct turns *t)
{
	struct flock all = { .l_type = F_UNLCK, .l_whence = SEEK_SET };

	if (t->members)
		fcntl((int)t->fd, F_OFD_SETLK, &all);
	t->members = 0;
}
