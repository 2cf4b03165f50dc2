/* SPDX-License-Identifier: MIT */
/*
 * The profile database: profiles/<kind>/<name>.yaml, one file a profile.
 *
 * Searched in $GPEMU_PROFILES when set, else in `../profiles` and then in
 * `../share/gpemu/profiles` beside the folder of the running executable.
 */
#ifndef GPEMU_EMU_PROFILE_H
#define GPEMU_EMU_PROFILE_H

#include "common/conf.h"
#include "common/err.h"

enum profile_kind { PROFILE_GPU, PROFILE_STORAGE, PROFILE_DATASET };

/*
 * The file of a profile: `name` is a word in the database (for GPUs also an
 * alias: a short name such as "v100"), or a path when it holds a '/' or ends
 * in ".yaml". *ret is malloc'ed.
 * -ENOENT with a text that lists the known names; -EINVAL for an empty name.
 */
int profile_path(enum profile_kind kind, const char *name, char **ret,
		 struct err *err);

/*
 * All names of a kind, sorted; *ret is a malloc'ed array of malloc'ed
 * strings, ended by NULL. -ENOENT when there is no database.
 */
int profile_names(enum profile_kind kind, char ***ret, struct err *err);
void profile_names_free(char **names);

#endif
