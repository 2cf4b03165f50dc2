/* SPDX-License-Identifier: MIT */
#include "loader/options/train_job.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/util.h"
#include "emu/profile/profile.h"
#include "loader/options/train_table.h"

static const char *const keys[] = {
	"data",	      "format",	      "order",	   "seed",
	"batch",      "gpus",	      "parallel",  "drop_last",
	"rank",	      "world_size",   "prep",	   "prep_output",
	"image_size", "prep_profile", "prep_time", "time_scale",
};

enum { HEX = 16 + 1 };

static void fingerprint(const struct dataset *d, char ret[HEX])
{
	snprintf(ret, HEX, "%016" PRIx64, dataset_fingerprint(d));
}

/* The workers have other working directories. */
static void set_path(json_t *j, const char *key, const char *path)
{
	_cleanup_free_ char *absolute = realpath(path, NULL);

	if (absolute)
		json_add_text(j, key, absolute);
}

json_t *train_job_json(const struct train_options *o, const struct dataset *d,
		       bool all_ranks, const struct prep_last *without)
{
	json_auto_t *all = conf_json(train_fields, o);
	json_t *some = json_object();
	char hex[HEX];

	if (!all || !some) {
		json_decref(some);
		return NULL;
	}
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		json_t *value = json_object_get(all, keys[i]);

		if (value)
			json_object_set(some, keys[i], value);
	}
	if (all_ranks) {
		json_object_del(some, "rank");
		json_object_del(some, "world_size");
	}
	if (without)
		json_add_text(some, without->option, without->value);
	set_path(some, "data", o->data);
	fingerprint(d, hex);
	return json_pack("{s:o, s:I, s:s}", "options", some, "samples",
			 (json_int_t)d->n, "fingerprint", hex);
}

/* Whoever sends a definition names no files: errors would say what is in them.
 * The dataset's path is checked where that is opened. */
static int check_names(const struct train_options *o, struct err *err)
{
	return o->prep_profile && profile_is_path(o->prep_profile)
		       ? err_set(err, -EACCES,
				 "the job's prep_profile is a file: workers "
				 "accept only names of profiles")
		       : 0;
}

static const struct conf_field *field(const char *key)
{
	const struct conf_field *f = train_fields;

	while (strcmp(f->key, key) != 0)
		f++;
	return f;
}

static json_t *parse(const char *text, struct err *err)
{
	json_error_t why;
	json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, &why);

	if (!j)
		err_set(err, -EINVAL, "the job's definition: %s", why.text);
	return j;
}

int train_job_read(const char *text, struct train_options *o, struct err *err)
{
	struct conf_field fields[ARRAY_SIZE(keys) + 1] = { 0 };
	json_auto_t *j = parse(text, err);
	_cleanup_free_ char *options = NULL;
	int r;

	if (!j)
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		fields[i] = *field(keys[i]);
	options = json_dumps(json_object_get(j, "options"), 0);
	if (!options)
		return err_set(err, -EINVAL,
			       "the job's definition has no options");
	r = conf_parse(options, strlen(options), "the job", fields, o, err);
	return r < 0 ? r : check_names(o, err);
}

int train_job_check(const char *text, const struct dataset *d, struct err *err)
{
	json_auto_t *j = parse(text, err);
	json_int_t n = json_integer_value(json_object_get(j, "samples"));
	const char *theirs =
		json_string_value(json_object_get(j, "fingerprint"));
	char hex[HEX];

	if (!j)
		return -EINVAL;
	fingerprint(d, hex);
	if ((uint64_t)n == d->n && theirs && !strcmp(hex, theirs))
		return 0;
	return err_set(err, -ESTALE,
		       "%s has different samples here (%zu) and at the trainer "
		       "(%lld): names and sizes must be the same",
		       d->root, d->n, (long long)n);
}
