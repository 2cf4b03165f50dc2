/* SPDX-License-Identifier: MIT */
/*
 * The profile database: profiles/<kind>/<name>.yaml, one file per profile.
 * Searched in $GPEMU_PROFILES if set, else in `../profiles` and
 * `../share/gpemu/profiles` relative to the folder of the running executable,
 * then relative to that of this shared library, then in the installation
 * folder.
 */
#ifndef GPEMU_EMU_PROFILE_PROFILE_H
#define GPEMU_EMU_PROFILE_PROFILE_H

#include <stdbool.h>

#include "common/conf/conf.h"
#include "common/err.h"

/*
 * A folder shipped with the programs: `in_tree` or `installed`, both relative
 * to the folder of the running executable. *ret is malloc'ed. -ENOENT with a
 * text: neither exists.
 */
int profile_beside_executable(const char *in_tree, const char *installed,
			      char **ret, struct err *err);

/* The first fields of a profile of most kinds. */
#define PROFILE_HEAD(object)                                                 \
	{ CONF_KEY(name, CONF_STRING, object), .required = true },           \
		{ CONF_KEY(source, CONF_STRING, object), .required = true }, \
		{ CONF_KEY(verified, CONF_BOOL, object), .required = true }, \
	{                                                                    \
		CONF_KEY(notes, CONF_STRING, object)                         \
	}

enum profile_kind {
	PROFILE_GPU,
	PROFILE_STORAGE,
	PROFILE_DATASET,
	PROFILE_PREP,
	PROFILE_NODE,
	PROFILE_SHARE,
	PROFILE_N_KINDS
};

/* "gpu", "storage", "dataset", "prep", "node", "share": also the folder's name.
 */
const char *profile_kind_name(enum profile_kind kind);
/* The kind of that name, or -EINVAL with a text that lists them. */
int profile_kind_find(const char *name, struct err *err);

/* The folder of the database; *ret is malloc'ed. -ENOENT with a text. */
int profile_database(char **ret, struct err *err);

/*
 * The file of a profile: `name` is a word in the database (for GPUs also an
 * alias: a short name such as "v100"), or a path when it holds a '/' or ends
 * in ".yaml". *ret is malloc'ed.
 * -ENOENT with a text that lists the known names; -EINVAL for an empty name.
 */
int profile_path(enum profile_kind kind, const char *name, char **ret,
		 struct err *err);
/* The `check` of a conf_field: the text at `name`, a char **, must be such a
 * word or a path. The file need not exist, because the working directory may
 * still change. Errors as above. */
int profile_check_gpu(const void *name, struct err *err);
int profile_check_storage(const void *name, struct err *err);
int profile_check_dataset(const void *name, struct err *err);
int profile_check_prep(const void *name, struct err *err);
int profile_check_node(const void *name, struct err *err);
int profile_check_share(const void *name, struct err *err);
/* What a conf_field has that names a profile of this kind. */
#define PROFILE_NAME(kind) .check = profile_check_##kind, .profile = #kind

/*
 * All names of a kind, sorted; *ret is a malloc'ed array of malloc'ed
 * strings, ended by NULL. -ENOENT when there is no database.
 */
int profile_names(enum profile_kind kind, char ***ret, struct err *err);
void profile_names_free(char **names);
/* Print them, one per line: the `print` of a struct cli_kind for a profile
 * kind. */
int profile_names_print(int kind, struct err *err);

static inline void profile_names_freep(char ***names)
{
	profile_names_free(*names);
}

/* Is `name` a path (holds a '/' or ends in ".yaml"), not a word? */
bool profile_is_path(const char *name);

/*
 * Common part of reading all kinds: decode by `fields`, then `check`
 * constraints over several fields, with the tree for positions. The caller
 * frees `object` by `fields`, failed or not.
 */
typedef int (*profile_check_fn)(const void *object,
				const struct conf_node *root, const char *name,
				struct err *err);
int profile_parse(const char *bytes, size_t n, const char *name,
		  const struct conf_field *fields, profile_check_fn check,
		  void *object, struct err *err);
int profile_load(enum profile_kind kind, const char *name,
		 const struct conf_field *fields, profile_check_fn check,
		 void *object, struct err *err);

/*
 * Declares the functions of a kind, such as share_profile_load: by name or
 * path, or from bytes (`name` starts the error texts). Free it with
 * share_profile_free, failed or not. share_profile_json: all of it, as in the
 * file; NULL: no memory.
 */
#define PROFILE_DECLARE(kind)                                                  \
	int kind##_profile_load(const char *name, struct kind##_profile *ret,  \
				struct err *err);                              \
	int kind##_profile_parse(const char *bytes, size_t n,                  \
				 const char *name, struct kind##_profile *ret, \
				 struct err *err);                             \
	void kind##_profile_free(struct kind##_profile *p);                    \
	json_t *kind##_profile_json(const struct kind##_profile *p)
/*
 * Defines them: by the `fields` and the `check` of its file, from the defaults
 * that follow. `end` is what load and parse then return, an expression of `ret`
 * that may complete it.
 */
#define PROFILE_FUNCTIONS(kind, which, check, end, ...)                        \
	int kind##_profile_load(const char *name, struct kind##_profile *ret,  \
				struct err *err)                               \
	{                                                                      \
		int r;                                                         \
                                                                               \
		*ret = (struct kind##_profile){ __VA_ARGS__ };                 \
		r = profile_load(which, name, fields, check, ret, err);        \
		return r < 0 ? r : (end);                                      \
	}                                                                      \
	int kind##_profile_parse(const char *bytes, size_t n,                  \
				 const char *name, struct kind##_profile *ret, \
				 struct err *err)                              \
	{                                                                      \
		int r;                                                         \
                                                                               \
		*ret = (struct kind##_profile){ __VA_ARGS__ };                 \
		r = profile_parse(bytes, n, name, fields, check, ret, err);    \
		return r < 0 ? r : (end);                                      \
	}                                                                      \
	void kind##_profile_free(struct kind##_profile *p)                     \
	{                                                                      \
		conf_free(fields, p);                                          \
	}                                                                      \
	json_t *kind##_profile_json(const struct kind##_profile *p)            \
	{                                                                      \
		return conf_json(fields, p);                                   \
	}

#endif
