/* SPDX-License-Identifier: MIT */
#include "emu/profile/variant.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "emu/profile/precision.h"
#include "emu/profile/profile.h"

/* Is the part of a name at `s` a word before a number, as "seq1024"? */
static bool is_part(const char *s, const char *word)
{
	size_t n = strlen(word);

	return !strncmp(s, word, n) && isdigit((unsigned char)s[n]);
}

/* The first part behind a ':' that begins so; NULL: none. */
static const char *part(const char *name, const char *word)
{
	while ((name = strchr(name, ':')))
		if (is_part(++name, word))
			return name;
	return NULL;
}

/* `name` with ":seqN" behind the model's own name, unless it has one. */
static int with_sequence(const char *name, uint64_t sequence_length, char **ret,
			 struct err *err)
{
	const char *given = part(name, "seq");
	size_t own = strcspn(name, ":");

	if (sequence_length && given &&
	    strtoull(given + 3, NULL, 10) != sequence_length)
		return err_set(err, -EINVAL,
			       "--sequence-length %" PRIu64
			       ": differs from that of --model %s",
			       sequence_length, name);
	if (given || !sequence_length) {
		*ret = strdup(name);
		return *ret ? 0 : -ENOMEM;
	}
	return asprintf(ret, "%.*s:seq%" PRIu64 "%s", (int)own, name,
			sequence_length, name + own) < 0
		       ? -ENOMEM
		       : 0;
}

/* Where the precision stands in a name: before the layout and the number of
 * GPUs (profile_gpu.h). */
static size_t place_of(const char *name)
{
	const char *at = name;

	while ((at = strchr(at, ':'))) {
		size_t place = (size_t)(at++ - name);

		if (!strncmp(at, "channels_last", 13) || is_part(at, "dp") ||
		    is_part(at, "tp") || is_part(at, "pp"))
			return place;
	}
	return strlen(name);
}

static bool has(const char *name, const char *precision)
{
	size_t n = strlen(precision);

	while ((name = strchr(name, ':'))) {
		name++;
		if (!strncmp(name, precision, n) &&
		    (!name[n] || name[n] == ':'))
			return true;
	}
	return false;
}

static const struct gpu_model *in_precision(const struct gpu_profile *p,
					    const char *name,
					    const struct precision *precision,
					    struct err *err)
{
	_cleanup_free_ char *full = NULL;
	const struct gpu_model *m;
	size_t at = place_of(name);

	if (has(name, precision->name))
		return gpu_profile_model(p, name, err);
	if (asprintf(&full, "%.*s:%s%s", (int)at, name, precision->name,
		     name + at) < 0) {
		full = NULL;
		err_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	m = gpu_profile_model(p, full, NULL);
	if (m)
		return m;
	m = gpu_profile_model(p, name, err);
	if (m && p->precision && !strcmp(p->precision, precision->name))
		return m;
	if (m)
		err_set(err, -ENOENT,
			"%s: %s was not measured in %s (the profile: %s)",
			p->name, name, precision->name,
			p->precision ? p->precision : "precision not given");
	return NULL;
}

/* The GPUs of the database that have the model. */
static void list_gpus(const char *name, char gpus[ERR_LIST])
{
	_cleanup_(profile_names_freep) char **names = NULL;

	if (profile_names(PROFILE_GPU, &names, NULL) < 0)
		return;
	for (size_t i = 0; names[i]; i++) {
		struct gpu_profile p;

		if (gpu_profile_load(names[i], &p, NULL) == 0 &&
		    gpu_profile_model(&p, name, NULL))
			err_list(gpus, names[i]);
		gpu_profile_free(&p);
	}
}

static void not_found(const struct gpu_profile *p, const char *name,
		      const struct err *why, struct err *err)
{
	char gpus[ERR_LIST] = "";

	if (!err)
		return;
	/* it is there, in another precision */
	if (!gpu_profile_model(p, name, NULL))
		list_gpus(name, gpus);
	if (gpus[0])
		err_set(err, -ENOENT, "these GPUs have %s: %s; %.*s", name,
			gpus, ERR_LIST, why->text);
	else
		err_set(err, -ENOENT, "%s", why->text);
}

const char *variant_precision(const struct gpu_profile *p,
			      const struct gpu_model *m)
{
	const char *at = m->name;

	while ((at = strchr(at, ':'))) {
		const struct precision *known;
		char word[16];

		at++;
		snprintf(word, sizeof(word), "%.*s", (int)strcspn(at, ":"), at);
		known = precision_find(word, NULL);
		if (known)
			return known->name;
	}
	return p->precision;
}

const struct gpu_model *variant_find(const struct gpu_profile *p,
				     const char *name, uint64_t sequence_length,
				     const char *precision, struct err *err)
{
	const struct precision *known = NULL;
	_cleanup_free_ char *full = NULL;
	const struct gpu_model *m;
	struct err why = { 0 };

	if (precision && precision[0]) {
		known = precision_find(precision, err);
		if (!known)
			return NULL;
	}
	if (with_sequence(name, sequence_length, &full, err) < 0)
		return NULL;
	m = known ? in_precision(p, full, known, &why)
		  : gpu_profile_model(p, full, &why);
	if (!m)
		not_found(p, full, &why, err);
	return m;
}
