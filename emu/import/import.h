/* SPDX-License-Identifier: MIT */
/*
 * Tables of training steps as others publish them, read into a struct table:
 * what gpemu-profile import and verify work on.
 *
 * A format is a plug-in: one file, import_<word>.c, and its word in
 * emu/meson.build. A reader adds the training steps of a file and leaves out
 * what is not one (inference, for instance). Columns that the source lacks
 * stay 0; only the share of the forward pass is made up where it has none
 * (struct import_step).
 */
#ifndef GPEMU_EMU_IMPORT_IMPORT_H
#define GPEMU_EMU_IMPORT_IMPORT_H

#include "common/conf/plugin_choice.h"
#include "common/plugin.h"
#include "emu/profile/profile_table.h"

struct import_file {
	const char *path; /* names the file in errors */
	const char *bytes;
	size_t n;
	const void *options; /* of the plug-in; NULL: the defaults */
	struct table *table;
	struct err *err;
};

struct import_ops {
	struct plugin plugin;
	/* Is the file of this format? By its name and its first bytes. */
	bool (*knows)(const struct import_file *f);
	/* Add its steps to f->table. -EINVAL with "file:line:column: what", or
	 * "file:line: what" for a format whose lines are not free text. */
	int (*read)(const struct import_file *f);
};

extern const struct plugin *const import_table[];

/*
 * Add a file to a table, which the caller zeroes before the first and frees
 * with table_free, failed or not. `format`: NAME[:OPTIONS] of a reader, or
 * NULL: the first one that knows the file. -EINVAL with a text, -ENOMEM; of
 * import_load also what reading fails with.
 */
int import_parse(const char *bytes, size_t n, const char *path,
		 const char *format, struct table *t, struct err *err);
int import_load(const char *path, const char *format, struct table *t,
		struct err *err);

/* A `check` of a conf_field: such a `format`, a char **. */
int import_check(const void *object, struct err *err);

/* --- for readers ---------------------------------------------------------- */

/* Bounds of what is read: beyond any device, far from overflow, and what a
 * profile takes (profile_gpu.c). Below a nanosecond a clock does not move. */
#define IMPORT_MS_MIN 1e-6
#define IMPORT_MS_MAX 1e9
#define IMPORT_BATCH_MAX 1048576
#define IMPORT_SAMPLE_MAX 1e12

struct import_step {
	const char *model; /* with its variant, as profile_gpu.h has it */
	uint64_t batch;
	/* Of the whole step, and of its forward pass. 0: not given. A third is
	 * forward then: nominal, the cost of a backward pass is about twice
	 * that of the forward pass (Kaplan et al., "Scaling Laws for Neural
	 * Language Models", 2020, section 2.1). */
	double step_ms, forward_ms;
	uint64_t sample_bytes, parameters; /* 0: not given */
	double cv; /* standard deviation over mean of step times; 0: unknown */
	bool average; /* with a step that is there */
	bool cite;    /* the path, as the file is of this model alone */
};

/*
 * Add a step. -EINVAL with a text that has no position: a name that a profile
 * cannot have, a time or a batch size that cannot be, a step that is there
 * already. -ENOMEM.
 */
int import_add(const struct import_file *f, const struct import_step *step,
	       struct err *err);
/* The last component of the path. */
const char *import_base(const struct import_file *f);
/* Do the first 4096 bytes contain `word`? */
bool import_contains(const struct import_file *f, const char *word);

#endif
